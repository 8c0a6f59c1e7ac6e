// The network of a kernel, as its text has it: counts and tables.
#pragma once

#include <stdint.h>

namespace nsc {

// The comparators, cut into codelets: sequences of them that are run on few wires. The wires are
// base + spreads[spread + k] for each k. A codelet's weights begin at slot `slot`; `flips` is the
// number of its pattern of flipped comparators.
struct Codelet {
    int32_t shape, spread, base, slot, flips;
};

// A shape, common to codelets: comparators between places in their spreads of wires. Their
// butterflies come from number `first_butterfly` on.
struct Shape {
    int32_t wires, first_pair, comparators, first_butterfly;
};

struct Pair {
    uint8_t a, b;
};

// Most comparators of a codelet, most wires, and the multiple at which its slots begin.
inline constexpr int32_t most_comparators = 128, most_wires = 16, slot_alignment = 16;

// A bit for each comparator of a codelet: whether it leaves the minimum on its second wire.
struct Flips {
    uint64_t words[most_comparators / 64];
};

// Which rows of a butterfly its comparators join, in order:
//   single: (0, 1)
//   funnel: (0, 1) (2, 3), then (1, 2)
//   fan:    (1, 2), then (0, 1) (2, 3)
//   cross:  (0, 1) (2, 3), then (0, 2) (1, 3)
enum Pattern : uint8_t { single, funnel, fan, cross };

constexpr int32_t count_of(Pattern pattern) {
    return pattern == cross ? 4 : pattern == single ? 1 : 3;
}
constexpr int32_t rows_of(Pattern pattern) { return pattern == single ? 2 : 4; }

// A butterfly of a shape, between places in its spread of wires.
struct ShapeButterfly {
    Pattern pattern;
    uint8_t places[4];
};

// P of networks of so few wires takes the narrow pass.
constexpr int64_t most_narrow_wires = 32;

// A network as data, which the engine reads. The text of one network's kernel has a struct with the
// same members, static and constant, so that the compiler knows them.
struct AnyNetwork {
    int64_t wires, comparators;
    int64_t layers;           // its depth
    int64_t merge_layers;     // layers of the merge that it ends in, see final_merge.h; 0: none
    int64_t slots;            // places for weights, a multiple of slot_alignment for each codelet
    int64_t longest_codelet;  // most slots of a codelet, at least slot_alignment
    int64_t codelet_count, butterfly_count;
    const Codelet *codelets;
    const uint16_t *spreads;
    const Shape *shapes;
    const Pair *pairs;
    const Flips *flips;
    const ShapeButterfly *shape_butterflies;
};

// Networks of so many wires are long: their values, and a few columns, take a pass of their own.
constexpr int64_t fewest_long_wires = 8192;

// Whether a network takes it. A long one has a library of its own, as the engine builds in three
// quarters of the time without this pass.
template <class Network>
constexpr bool has_long_pass = Network::wires >= fewest_long_wires;
template <>
constexpr bool has_long_pass<AnyNetwork> = false;

// Whether P of a network may take the narrow pass.
template <class Network>
constexpr bool may_be_narrow = Network::wires <= most_narrow_wires;
template <>
constexpr bool may_be_narrow<AnyNetwork> = true;

// Whether a network may end in a merge.
template <class Network>
constexpr bool may_end_in_merge = Network::merge_layers > 0;
template <>
constexpr bool may_end_in_merge<AnyNetwork> = true;

}  // namespace nsc
