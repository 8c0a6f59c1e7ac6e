//! four.rs: exact sorting of 4 values, for Rust 1.63 and later.
//!
//! Made by: nsc emit rust best --n 4 --name four
//! nsc:     0
//! Network: 4 wires, 5 comparators, 3 layers, sha256 48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4
//! Proof:   sorts every input, by exhaustion: all 2^4 0-1 inputs come out sorted
//! Licence: MIT, Copyright (c) 2026 The nsc authors
//! SPDX-License-Identifier: MIT
//!
//! A module of a crate with `std` or without: `mod four;`. It allocates nothing.
//!
//! Arrays are taken and returned by value, so that values need not be `Copy`.
//! Equal values, or values with equal keys, may come in any order.

#![forbid(unsafe_code)]
// A crate may use some of the functions alone.
#![allow(dead_code)]

/// Returns all values, the smallest first.
///
/// ```ignore
/// let results = four::sort(values);
/// ```
#[inline]
pub fn sort<T: Ord>(values: [T; 4]) -> [T; 4] {
    run(values, |a, b| a < b)
}

/// Does as `sort`, but orders values by their keys; calls `key` once for each value.
#[inline]
pub fn sort_by_key<T, K: Ord>(values: [T; 4], mut key: impl FnMut(&T) -> K) -> [T; 4] {
    let keyed = values.map(|value| (key(&value), value));
    run(keyed, |a, b| a.0 < b.0).map(|(_, value)| value)
}

/// Does as `sort`, in the order of `f32::total_cmp`: -NaN, -inf, …, -0, 0, …, inf, NaN.
#[inline]
pub fn sort_f32(values: [f32; 4]) -> [f32; 4] {
    let turned = |bits: i32| bits ^ ((bits >> (i32::BITS - 1)) & i32::MAX);
    let keys = values.map(|value| turned(value.to_bits() as i32));
    sort(keys).map(|key| f32::from_bits(turned(key) as u32))
}

/// Does as `sort`, in the order of `f64::total_cmp`: -NaN, -inf, …, -0, 0, …, inf, NaN.
#[inline]
pub fn sort_f64(values: [f64; 4]) -> [f64; 4] {
    let turned = |bits: i64| bits ^ ((bits >> (i64::BITS - 1)) & i64::MAX);
    let keys = values.map(|value| turned(value.to_bits() as i64));
    sort(keys).map(|key| f64::from_bits(turned(key) as u64))
}

/// Runs the network; a result that nothing needs is dropped.
#[inline]
#[rustfmt::skip]
fn run<T>(values: [T; 4], mut is_less: impl FnMut(&T, &T) -> bool) -> [T; 4] {
    let [
        mut w0, mut w1, mut w2, mut w3,
    ] = values;
    let mut order = |a: T, b: T| if is_less(&b, &a) { (b, a) } else { (a, b) };
    (w0, w2) = order(w0, w2);
    (w1, w3) = order(w1, w3);
    (w0, w1) = order(w0, w1);
    (w2, w3) = order(w2, w3);
    (w1, w2) = order(w1, w2);
    [
        w0, w1, w2, w3,
    ]
}
