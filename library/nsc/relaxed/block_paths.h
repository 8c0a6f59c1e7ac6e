// The last four layers of a merge: its paths from the wires of a block to the ranks of the block.
#pragma once

#include <nsc/relaxed/network.h>
#include <nsc/vectors.h>

namespace nsc {

// Ranks of a block, and their layers.
constexpr int64_t merge_block = 16, merge_block_layers = 4;

// The last four layers on the wires of a block, which join wires 8, 4, 2 and 1 apart. A row has a
// number for every one of these wires. Each layer halves the ranks that paths can still reach:
// `sub` is the number of a part of 2 d ranks, in front of comparators d wires apart.
template <class real>
struct BlockPaths {
    typedef real Row __attribute__((vector_size(merge_block * sizeof(real))));
    using Sixteen = typename PlacesTo<merge_block>::list;

    // Each layer has eight comparators in a block; layers begin `stride` numbers after each other.
    BlockPaths(const real *keep, const real *swap, int64_t stride) {
        NSC_UNROLL
        for (int64_t layer = 0; layer < merge_block_layers; ++layer) {
            memcpy(&weights[layer], keep + layer * stride, sizeof(Row) / 2);
            memcpy(reinterpret_cast<char *>(&weights[layer]) + sizeof(Row) / 2,
                   swap + layer * stride, sizeof(Row) / 2);
        }
    }
    static constexpr int layer_of(int d) { return d == 8 ? 0 : d == 4 ? 1 : d == 2 ? 2 : 3; }
    // The weights of the paths from each wire to an output, the first or the second. Rows are
    // passed by reference: they may be wider than a register.
    template <int d, int sub, int out, int... places>
    NSC_STEP void take_weights(Row &to, Places<places...>) const {
        to = __builtin_shufflevector(weights[layer_of(d)], weights[layer_of(d)],
                                     (sub * d + places % d + ((places / d & 1) != out ? 8 : 0))...);
    }
    // Calls visit(sub, row) for each rank, with the products of its paths' weights, times `from`.
    template <int d = 8, int sub = 0, class Visit>
    NSC_STEP void each_rank(const Row &from, Visit visit) const {
        if constexpr (d == 0) {
            visit(sub, from);
        } else {
            Row zero, one;
            take_weights<d, sub, 0>(zero, Sixteen()), take_weights<d, sub, 1>(one, Sixteen());
            zero *= from, one *= from;
            each_rank<d / 2, 2 * sub>(zero, visit);
            each_rank<d / 2, 2 * sub + 1>(one, visit);
        }
    }
    // Takes gradients of the ranks' products back to `grad`, the gradient of `from`, and writes the
    // gradients of the weights.
    template <int d = 8, int sub = 0>
    NSC_STEP void back(const Row &from, const Row *of_ranks, Row &grad, real *weight_grads,
                       int64_t stride) const {
        if constexpr (d == 0) {
            grad = of_ranks[sub];
        } else {
            Row zero, one, of_zero, of_one;
            take_weights<d, sub, 0>(zero, Sixteen()), take_weights<d, sub, 1>(one, Sixteen());
            const Row to_zero = from * zero, to_one = from * one;
            back<d / 2, 2 * sub>(to_zero, of_ranks, of_zero, weight_grads, stride);
            back<d / 2, 2 * sub + 1>(to_one, of_ranks, of_one, weight_grads, stride);
            grad = of_zero * zero + of_one * one;
            Row sums = (of_zero - of_one) * from;
            subtract_other<d>(sums, Sixteen());
            add_others<2 * d>(sums, Sixteen());
            memcpy(weight_grads + layer_of(d) * stride + sub * d, &sums, d * sizeof(real));
        }
    }
    // Lane k gets the difference of lanes k and k + d, and then the sum of all with the same k % d.
    template <int d, int... places>
    NSC_STEP static void subtract_other(Row &row, Places<places...>) {
        row -= __builtin_shufflevector(row, row, (places ^ d)...);
    }
    template <int bit, int... places>
    NSC_STEP static void add_others(Row &row, Places<places...> list) {
        if constexpr (bit < merge_block) {
            row += __builtin_shufflevector(row, row, (places ^ bit)...);
            add_others<2 * bit>(row, list);
        }
    }

    Row weights[merge_block_layers];  // of each layer, eight that keep, then eight that swap
};

}  // namespace nsc
