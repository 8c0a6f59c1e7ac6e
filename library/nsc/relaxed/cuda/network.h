// The network in a CUDA kernel's text: counts, tables and straight-line code.
//
// CUDA shares polynomials, sigmoids, mixes and losses with C++, but not the order in which
// comparators run: keys take rounds of comparators that share no wire, and routing takes tiles of
// columns in shared memory, 8 bytes of a row on each lane. compiler/relaxed decides rounds, stages
// and threads. No sum is atomic.
#pragma once

#include <nsc/integers.h>
#include <nsc/relaxed/weights.h>

namespace nsc::cuda {

// The comparators, cut into codelets that are run on the wires they load: base + spread(k) for each
// k from `spread` on. The weights of a codelet begin at slot `slot`.
struct alignas(16) Codelet {
    int32_t shape, spread, base, slot;
};

// The work of codelets of one shape: comparators between places in their spreads of wires.
struct Shape {
    int32_t wires, first_pair, comparators;
};

struct Pair {
    uint8_t a, b;
};

// A comparator of the keys pass, or none; it leaves the minimum on wire lo. Both wires lie in one
// word: as two numbers of 16 bits each would take several instructions to move.
struct alignas(8) Comparator {
    __device__ constexpr Comparator() : wires(0), slot(-1) {}
    __device__ constexpr Comparator(uint32_t lo, uint32_t hi, int32_t slot)
        : wires(lo | hi << 16), slot(slot) {}
    NSC_FUNCTION bool is_there() const { return slot >= 0; }
    NSC_FUNCTION int32_t lo() const { return wires & 0xffff; }
    NSC_FUNCTION int32_t hi() const { return wires >> 16; }

    uint32_t wires;
    int32_t slot;
};

// A network is a struct of the kernel's text. Its counts are constants:
//
//     wires                          of the network;
//     slots                          places for weights;
//     widest_codelet, longest_codelet   most wires, most slots of a codelet;
//     tile_warps, tile_lanes         warps that share a tile of columns; lanes that it lies on;
//     widest_group                   columns of a tile that a sample takes, at most;
//     sample_threads                 threads that share a sample's keys;
//     keys_threads, routing_threads  threads of a block;
//     forward_blocks                 blocks of the forward routing that a multiprocessor must hold;
//     kept_rows_in_block             rows of a tile that the backward routing keeps in shared
//                                    memory; 0: they lie in the memory of the call;
//     rounds                         of the keys pass: comparators that share no wire, one or none
//                                    for each thread of a sample;
//     codelet_levels                 of the routing: codelets that take no wire from each other;
//     merge_layers                   of the merge of all wires that it ends in; 0 if the merge is
//                                    not taken apart, see final_merge.h;
//     front_levels, front_slots      levels of codelets, and slots, in front of that merge;
//     cone_columns, cones            columns of P whose light cone is taken as one, and the cones.
//
// Its tables are functions of a number:
//
//     codelet, spread, shape, pair
//     in_round                       the comparators of each round, by thread;
//     merge_slot                     the slots of the merge, by level and then from wire 0 on;
//     listed                         the codelets of each light cone; the last list has all.
//
// level_bounds(list) points to where in `listed` the list begins and where its levels end.
// with_code_of(codelet, use) calls use(code), see codelets.h, with the code of the codelet's shape.
template <class TheNetwork, class TheRelaxation>
struct Plan : TheNetwork {
    using Relaxation = TheRelaxation;
};

// Comparators of a merge that is taken apart.
template <class Plan>
constexpr int64_t merge_comparators = Plan::merge_layers * Plan::wires / 2;

// Numbers that the keys pass leaves of a sample: its weights by slot. For a merge that is taken
// apart also its weights by level, and the item of each rank.
template <class Plan>
constexpr int64_t kept_numbers =
    arrays<typename Plan::Relaxation> * Plan::slots +
    (Plan::merge_layers ? 2 * merge_comparators<Plan> + Plan::wires : 0);

// The weights of a sample.
template <class Plan, class T>
__device__ inline Weights<T> weights_of(T *weights, int64_t sample) {
    return weights_at<typename Plan::Relaxation>(weights + sample * kept_numbers<Plan>,
                                                 Plan::slots);
}

// The weights of its merge, by level.
template <class Plan, class T>
__device__ inline Mixes<T> merge_of(T *weights, int64_t sample) {
    T *keep =
        weights + sample * kept_numbers<Plan> + arrays<typename Plan::Relaxation> * Plan::slots;
    return {keep, keep + merge_comparators<Plan>};
}

// Where the item of each rank is, an int32_t; -1 for none.
template <class Plan, class T>
__device__ inline T *items_of(T *weights, int64_t sample) {
    return merge_of<Plan>(weights, sample).swap + merge_comparators<Plan>;
}

}  // namespace nsc::cuda
