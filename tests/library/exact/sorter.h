// A network of five wires, and samples that are sorted by insertion, for the tests of exact
// kernels.
#pragma once

#include <nsc/exact/network.h>

using namespace nsc;

// Five wires, of which outputs 0 ... 3 are given in another order.
struct Sorter {
    static constexpr int64_t wires = 5, comparators = 9, outputs = 4;
    static constexpr uint16_t output_wires[] = {4, 0, 1, 3};
    static constexpr WirePair pairs[] = {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1},
                                         {2, 4}, {1, 2}, {3, 4}, {2, 3}};
    static inline int runs = 0;  // calls of run()
    template <class Form>
    static void run(typename Form::Item *r) {
        ++runs;
        for (const WirePair pair : pairs) Form::order(r[pair.lo], r[pair.hi]);
    }
};

// A small generator of numbers, with ties.
struct Numbers {
    uint64_t state = 1;
    uint64_t next() { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 40; }
};

template <class Key>
struct Sample {
    Key values[Sorter::wires];
    int64_t indices[Sorter::wires];
    explicit Sample(const Key *x, int64_t stride) {
        for (int64_t w = 0; w < Sorter::wires; ++w) {
            int64_t at = w;
            for (; at > 0 && x[w * stride] < values[at - 1]; --at)
                values[at] = values[at - 1], indices[at] = indices[at - 1];
            values[at] = x[w * stride], indices[at] = w;
        }
    }
};
