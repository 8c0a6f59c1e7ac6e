// The code of a codelet: the code of its shape, and the spread of its wires.
#pragma once

#include <nsc/relaxed/cuda/halves.h>
#include <nsc/relaxed/cuda/network.h>

namespace nsc::cuda {

// How far a codelet's wires lie from its first wire, read from the table.
template <class Plan>
struct SpreadOf {
    NSC_FUNCTION int32_t operator[](int32_t k) const { return Plan::spread(begin + k); }
    int32_t begin;
};

// The code of a shape loads a codelet's rows, takes a step on pairs of them, and stores them. It
// has `count()` comparators, `most()` at most. Straight-line code stands in the kernel's text.

// The code of any shape, run from its table.
template <class Plan>
struct Tabled {
    static NSC_FUNCTION constexpr bool is_straight() { return false; }
    static NSC_FUNCTION constexpr int32_t most() { return Plan::longest_codelet; }
    NSC_FUNCTION int32_t count() const { return shape.comparators; }
    NSC_FUNCTION int32_t loads() const { return shape.wires; }
    template <bool backwards, class Rows, class Step>
    NSC_STEP void run_in(Rows rows, Step step) const {
        typename Rows::row held[Plan::widest_codelet];
        for (int32_t k = 0; k < shape.wires; ++k) held[k] = rows.load(k);
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const int32_t c = backwards ? shape.comparators - 1 - i : i;
            const Pair pair = Plan::pair(shape.first_pair + c);
            typename Rows::row &a = held[pair.a], &b = held[pair.b];
            if (Plan::halved && pair.needed == 1)
                step(c, a, b, Half<backwards, 1>());
            else if (Plan::halved && pair.needed == 2)
                step(c, a, b, Half<backwards, 2>());
            else
                step(c, a, b);
        }
        for (int32_t k = 0; k < shape.wires; ++k) rows.store(k, held[k]);
    }
    template <class Rows, class Step>
    NSC_STEP void run(Rows rows, Step step) const {
        run_in<false>(rows, step);
    }
    template <class Rows, class Step>
    NSC_STEP void run_backwards(Rows rows, Step step) const {
        run_in<true>(rows, step);
    }
    Shape shape;
};

template <bool backwards, class Code, class Rows, class Step>
NSC_STEP void run_code(Code code, Rows rows, Step step) {
    if constexpr (backwards)
        code.run_backwards(rows, step);
    else
        code.run(rows, step);
}

}  // namespace nsc::cuda
