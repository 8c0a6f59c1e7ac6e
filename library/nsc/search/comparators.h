// Lists of comparators that a search changes.
#pragma once

#include <nsc/attributes.h>
#include <stdint.h>
#include <string.h>

namespace nsc::search {

constexpr int64_t most_wires = 64;
// A list is copied for each candidate, so it has no memory of its own.
constexpr int64_t most_comparators = 2048;

// The minimum comes to wire lo, the maximum to wire hi; lo < hi.
struct Comparator {
    uint8_t lo, hi;
};

inline bool operator==(Comparator a, Comparator b) { return a.lo == b.lo && a.hi == b.hi; }

inline Comparator joined(int64_t a, int64_t b) {
    return a < b ? Comparator{uint8_t(a), uint8_t(b)} : Comparator{uint8_t(b), uint8_t(a)};
}

// Comparators in the order in which they act.
struct Comparators {
    int64_t count;
    Comparator at[most_comparators];

    Comparators() : count(0) {}
    Comparators(const Comparators &other) { *this = other; }
    Comparators &operator=(const Comparators &other) {
        count = other.count;
        memcpy(at, other.at, sizeof(Comparator) * size_t(count));
        return *this;
    }

    void add(Comparator comparator) { at[count++] = comparator; }

    void insert(int64_t place, Comparator comparator) {
        memmove(at + place + 1, at + place, sizeof(Comparator) * size_t(count - place));
        at[place] = comparator;
        ++count;
    }

    void remove(int64_t place) {
        --count;
        memmove(at + place, at + place + 1, sizeof(Comparator) * size_t(count - place));
    }
};

}  // namespace nsc::search
