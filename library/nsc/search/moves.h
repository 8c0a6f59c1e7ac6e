// Random changes of a list of comparators.
#pragma once

#include <nsc/search/problem.h>

namespace nsc::search {

// Source: Steele, Lea and Flood 2014, SplitMix64.
struct Random {
    uint64_t state;

    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }

    // A number below a bound, which is below 2^32.
    int64_t below(int64_t bound) { return int64_t((next() >> 32) * uint64_t(bound) >> 32); }
};

inline Comparator random_comparator(const Problem &problem, Random &random) {
    const int64_t a = random.below(problem.wires), b = random.below(problem.wires - 1);
    return joined(a, b + (b >= a));
}

// Leaves at least half of the room, which mirror images may need.
constexpr int64_t most_listed = most_comparators / 2;

enum Move : int64_t {
    removes,
    moves_an_end,
    exchanges,
    replaces,
    adds,
    moves_along,
    crosses,
    move_count
};

// Changes one or two comparators of a list. One that would join a wire to itself is not made.
inline void change(const Problem &problem, Random &random, Comparators &list) {
    const Move move = Move(random.below(move_count));
    if (move == adds) {
        if (list.count < most_listed)
            list.insert(random.below(list.count + 1), random_comparator(problem, random));
        return;
    }
    if (!list.count) return;
    const int64_t i = random.below(list.count), j = random.below(list.count);
    Comparator &c = list.at[i], &d = list.at[j];
    const Comparator first = c, second = d;
    switch (move) {
        case removes: list.remove(i); break;
        case moves_an_end: {
            const int64_t kept = random.below(2) ? c.lo : c.hi, wire = random.below(problem.wires);
            if (wire != kept) c = joined(kept, wire);
            break;
        }
        case exchanges: c = second, d = first; break;
        case replaces: c = random_comparator(problem, random); break;
        case moves_along:
            list.remove(i);
            list.insert(j, first);
            break;
        case crosses: {
            const bool straight = random.below(2);
            const Comparator one = joined(first.lo, straight ? second.lo : second.hi);
            const Comparator other = joined(first.hi, straight ? second.hi : second.lo);
            if (one.lo != one.hi && other.lo != other.hi) c = one, d = other;
            break;
        }
        default: break;
    }
}

}  // namespace nsc::search
