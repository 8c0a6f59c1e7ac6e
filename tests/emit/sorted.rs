// Compares the functions of modules with the sorts of the standard library.

use std::array::from_fn;
use std::cmp::Reverse;
use std::fmt::Debug;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn float(&mut self) -> f32 {
        let nan = f32::from_bits(0x7fc0_0123);
        let special = [0.0, -0.0, f32::INFINITY, -f32::INFINITY, nan, -nan, 1e-40, -1e-40];
        let random = f32::from_bits(self.next() as u32);
        *special.get(self.next() as usize % 12).unwrap_or(&random)
    }
}

fn check<T: Debug + Ord, const N: usize>(found: Vec<T>, mut values: [T; N], ranks: &[usize]) {
    values.sort_unstable();
    assert_eq!(found.len(), ranks.len());
    for (found, rank) in found.iter().zip(ranks) {
        assert_eq!(*found, values[*rank]);
    }
}

macro_rules! many {
    ($results:expr) => {
        Vec::from($results)
    };
}

macro_rules! one {
    ($result:expr) => {
        vec![$result]
    };
}

macro_rules! check_module {
    ($name:ident, $n:literal, $ranks:expr, $list:ident, $sort:ident, $by_key:ident, $f32:ident, $f64:ident) => {
        if $n <= 12 {
            for bits in 0..1u64 << $n {
                let x: [u8; $n] = from_fn(|k| (bits >> k & 1) as u8);
                check($list!($name::$sort(x)), x, &$ranks);
            }
        }
        let mut random = Random(88172645463325252);
        for _ in 0..100 {
            let x: [u8; $n] = from_fn(|_| random.next() as u8);
            check($list!($name::$sort(x)), x, &$ranks);
            let x: [i64; $n] = from_fn(|_| random.next() as i64);
            check($list!($name::$sort(x)), x, &$ranks);
            let strings = x.map(|value| format!("{:x}", value % 99));
            check($list!($name::$sort(strings.clone())), strings, &$ranks);

            // Different keys, so that one order is right.
            let mut calls = 0;
            let keyed: [(Reverse<i64>, usize); $n] = from_fn(|k| (Reverse(x[k]), k));
            let found = $name::$by_key(keyed, |value| {
                calls += 1;
                value.0
            });
            check($list!(found), keyed, &$ranks);
            assert_eq!(calls, $n);

            // Bits in the place of floats, whose comparison takes -0 for 0 and knows no order of NaN.
            let x: [f32; $n] = from_fn(|_| random.float());
            let mut expected = x;
            expected.sort_unstable_by(f32::total_cmp);
            for (value, rank) in $list!($name::$f32(x)).iter().zip($ranks) {
                assert_eq!(value.to_bits(), expected[rank].to_bits());
            }
            let x = x.map(f64::from);
            let mut expected = x;
            expected.sort_unstable_by(f64::total_cmp);
            for (value, rank) in $list!($name::$f64(x)).iter().zip($ranks) {
                assert_eq!(value.to_bits(), expected[rank].to_bits());
            }
        }
    };
}
