// The cross entropy of a network that ends in a merge of all its wires, as a bitonic sorter does.
//
// P = B A, where B is the merge. In front of the merge a column of A lies in its half of the wires.
// The column's item asks for one rank, and one path leads there from each wire. So each level of
// the merge leaves half of the column's numbers: the numbers on the way to the rank. The numbers
// that leave the way add up to 1 - p. All sums are of numbers that are not negative.
//
// A column goes through the merge by itself. A few lanes hold its numbers in registers. The way
// back leaves n / 2 products a column, and the kernel of the sums adds up the products of each
// comparator in the order of the ranks.
//
// The merge is taken apart for targets that are ranks, on 128 to 2,048 wires. The cross entropy
// with its gradient then keeps about half of the rows. The instructions of its PTX are fewer by
//
//     17 % on 128 wires, 15 % on 256, 25 % on 512 and 1,024.
//
// In return codelets end in front of the merge, so that P takes 1 % more on 128 and 256 wires and
// 4 % more on 1,024.
#pragma once

#include <nsc/relaxed/cuda/losses.h>

namespace nsc::cuda {

// Whether a routing asks for one entry of each column, so that the merge is taken apart.
template <class Plan>
__device__ inline bool is_parted(Routing routing) {
    if (Plan::merge_layers == 0 || !is_loss(routing) || form_of(routing) != of_ranks) return false;
    bool asks_for_one = false;
    with_loss(routing, [&](auto loss) { asks_for_one = decltype(loss)::of_truth; });
    return asks_for_one;
}

constexpr int32_t log2_of(int32_t number) { return number > 1 ? 1 + log2_of(number / 2) : 0; }

// Memory for products, whose sums are the gradients of the weights of a merge. Each sample has
//
//     columns  a row for each column, with the products of all levels but the first;
//     first    rows for the first level, whose products each warp of each tile sums over its
//              columns.
//
// A row has a number for each wire of a half.
template <class real>
struct MergeProducts {
    real *columns, *first;
    int32_t first_rows;  // rows of a sample in `first`
};

// The columns of a tile in front of the merge. They take the rows of their half of the wires; the
// rows of the other half are free. A group of lanes takes a column: as few lanes as have registers
// for all of its numbers, since each level on which lanes exchange numbers takes instructions.
template <class Plan, class real>
struct MergeColumns {
    static constexpr int32_t half = Plan::wires / 2, warps = Plan::tile_warps;
    static constexpr int32_t lanes = half < 512 ? half / 16 : 32, columns_at_a_time = 32 / lanes;
    // Numbers of a lane: in front of the merge, and on the way, behind all levels together.
    static constexpr int32_t most = half / lanes;
    static constexpr int32_t numbers = 2 * most - 1 + log2_of(lanes);

    __device__ explicit MergeColumns(const Tile<Plan, real> &tile)
        : tile(tile),
          target(target_of(tile)),
          of_merge(merge_of<Plan>(tile.call.weights, tile.sample)),
          lane(int32_t(threadIdx.x) % lanes),
          group(int32_t(threadIdx.x) % 32 / lanes),
          warp(int32_t(threadIdx.x) % (32 * warps) / 32),
          first_column(tile.column - tile.lane * tile.each),
          is_second(first_column >= half),
          rows(tile.tile + (is_second ? half * Plan::tile_lanes : 0)),
          turned(reinterpret_cast<real *>(tile.tile + (is_second ? 0 : half * Plan::tile_lanes))) {}

    // The place of an entry in the free rows. The columns of a wire lie in different banks, and so
    // do the wires of the columns that a warp takes at a time.
    __device__ real &at(int32_t column, int32_t wire) const {
        const int32_t bank = column * lanes % 32 + column / columns_at_a_time;
        return turned[column * half + (wire ^ bank)];
    }
    // Copies the columns to the free rows, or back.
    template <bool back>
    __device__ void turn() const {
        for (int32_t wire = tile.team; wire < half; wire += tile.teams) {
            Columns<real> &row = rows[wire * Plan::tile_lanes + tile.lane];
            for (int32_t k = 0; k < tile.each; ++k) {
                real &entry = at(tile.lane * tile.each + k, wire);
                if constexpr (back)
                    row.at[k] = entry;
                else
                    entry = row.at[k];
            }
        }
    }

    // A comparator of a level on the way to a rank, by the number of its first wire behind those
    // that the level takes apart: the shares of its first wire and of its second that stay on the
    // way.
    struct Step {
        Mix<real> mix;  // keep: of the first wire
        bool is_second;
    };
    __device__ __forceinline__ Step step(int32_t level, int32_t rank, int32_t wire) const {
        const int32_t d = half >> level, place = level * half + (rank / (2 * d) * d + wire);
        const bool second = rank & d;
        const real keep = of_merge.keep[place], swap = of_merge.swap[place];
        return {{second ? swap : keep, second ? keep : swap}, second};
    }

    // Takes the numbers on the way to a rank, from the first level to the last. Returns p, in all
    // lanes of the group, and the sum of this lane's numbers that leave the way. A group may have
    // no column.
    __device__ __forceinline__ Probability<real> walk(int32_t column, bool is_there, int32_t rank,
                                                      real (&way)[numbers]) const {
        real rest = 0;
        const bool stays = (rank >= half) == is_second;
        NSC_UNROLL
        for (int32_t r = 0; r < most; ++r) {
            const int32_t wire = lane + lanes * r;
            const real keep = of_merge.keep[wire], swap = of_merge.swap[wire],
                       entry = is_there ? at(column, wire) : real(0);
            way[r] = (stays ? keep : swap) * entry;
            rest += (stays ? swap : keep) * entry;
        }
        take_level<1, most, 0>(rank, way, rest);
        return {way[numbers - 1], rest};
    }
    // Takes one level. In front of it a lane has `size` numbers, from the number `from` on; behind
    // it half as many, or one. Templates, since numbers with an index that is known only at run
    // time would lie in memory.
    template <int32_t level, int32_t size, int32_t from>
    __device__ __forceinline__ void take_level(int32_t rank, real (&way)[numbers],
                                               real &rest) const {
        constexpr int32_t d = half >> level;
        if constexpr (size > 1) {
            NSC_UNROLL
            for (int32_t r = 0; r < size / 2; ++r) {
                const Mix<real> mix = step(level, rank, lane + lanes * r).mix;
                const real a = way[from + r], b = way[from + size / 2 + r];
                way[from + size + r] = mixed(mix, a, b);
                rest += mixed(mix, b, a);
            }
            take_level<level + 1, size / 2, from + size>(rank, way, rest);
        } else if constexpr (d > 0) {
            const Mix<real> mix = step(level, rank, lane & (d - 1)).mix;
            const real own = way[from], other = __shfl_xor_sync(0xffffffffu, own, d);
            const real a = lane & d ? other : own, b = lane & d ? own : other;
            way[from + 1] = mixed(mix, a, b);
            if (lane < d) rest += mixed(mix, b, a);
            take_level<level + 1, 1, from + 1>(rank, way, rest);
        }
    }

    // From the slope of p to the gradient of the column, in its place. Puts the products of all
    // levels but the first into a row, and adds the products of the first level to `of_first`.
    __device__ __forceinline__ void walk_back(int32_t column, bool is_there, int32_t rank,
                                              const real (&way)[numbers], real slope, real *row,
                                              real (&of_first)[most]) const {
        real grads[most];
        take_level_back<1, most, 0>(rank, way, slope, is_there ? row : nullptr, grads);
        if (!is_there) return;
        const bool stays = (rank >= half) == is_second;
        NSC_UNROLL
        for (int32_t r = 0; r < most; ++r) {
            const int32_t wire = lane + lanes * r;
            real &entry = at(column, wire);
            of_first[r] += (stays ? entry : -entry) * grads[r];
            entry = (stays ? of_merge.keep[wire] : of_merge.swap[wire]) * grads[r];
        }
    }
    // The gradients of the numbers in front of a level. row: null for a group without a column.
    template <int32_t level, int32_t size, int32_t from>
    __device__ __forceinline__ void take_level_back(int32_t rank, const real (&way)[numbers],
                                                    real slope, real *row,
                                                    real (&grads)[most]) const {
        constexpr int32_t d = half >> level;
        if constexpr (size > 1) {
            take_level_back<level + 1, size / 2, from + size>(rank, way, slope, row, grads);
            NSC_UNROLL
            for (int32_t r = 0; r < size / 2; ++r) {
                const Step on_way = step(level, rank, lane + lanes * r);
                const real difference = way[from + r] - way[from + size / 2 + r];
                if (row)
                    row[half - 2 * d + lane + lanes * r] =
                        (on_way.is_second ? -difference : difference) * grads[r];
                grads[size / 2 + r] = on_way.mix.swap * grads[r];
                grads[r] *= on_way.mix.keep;
            }
        } else if constexpr (d > 0) {
            take_level_back<level + 1, 1, from + 1>(rank, way, slope, row, grads);
            const Step on_way = step(level, rank, lane & (d - 1));
            const real own = way[from], other = __shfl_xor_sync(0xffffffffu, own, d);
            const real difference = lane & d ? other - own : own - other;  // of the wires
            if (lane < d && row)
                row[half - 2 * d + lane] = (on_way.is_second ? -difference : difference) * grads[0];
            grads[0] *= lane & d ? on_way.mix.swap : on_way.mix.keep;
        } else {
            grads[0] = slope;
        }
    }

    const Tile<Plan, real> &tile;
    const Target<real> target;
    const Mixes<const real> of_merge;
    int32_t lane, group, warp, first_column;  // lane: of its group, group: of its warp
    bool is_second;                           // whether these columns are of the second half
    Columns<real> *rows;                      // of their half
    real *turned;
};

// This thread's part of the loss of the columns of a tile, given A. With `backward` it puts the
// gradient of A in place of the tile, and the products into `products`.
template <bool backward, class Loss, class Plan, class real>
__device__ __forceinline__ double parted_loss(const Tile<Plan, real> &tile, int32_t slice,
                                              const MergeProducts<real> &products) {
    using Of = MergeColumns<Plan, real>;
    const Of of(tile);
    of.template turn<false>();
    Tile<Plan, real>::wait();
    real of_first[Of::most] = {};
    // For the column that this lane's group takes in the turn with the lane's number.
    Probability<real> found = {};
    Log<real> weight = 0;
    const int64_t row = int64_t(tile.sample) * Plan::wires + of.first_column;
    NSC_NO_UNROLL
    for (int32_t turn = 0, first = of.warp * Of::columns_at_a_time; first < tile.width;
         first += Of::warps * Of::columns_at_a_time, ++turn) {
        // A narrow tile may have fewer columns than groups. All lanes take part in exchanges.
        const int32_t column = first + of.group;
        const bool is_there = column < tile.width;
        Truth<real> truth = {0, 0, 0};
        if (is_there) truth = truth_of(of.target, of.first_column + column);
        real way[Of::numbers];
        Probability<real> p = of.walk(column, is_there, truth.first, way);
        for (int32_t bit = Of::lanes / 2; bit; bit /= 2)
            p.rest += __shfl_xor_sync(0xffffffffu, p.rest, bit);
        if (!is_large<real>(p.p)) p.rest = unit<real> - p.p;
        if (of.lane == turn) found = p, weight = truth.weight;
        if constexpr (backward) {
            const real slope =
                truth.weight * Loss::template slope<typename Plan::Relaxation, real>(p, true);
            of.walk_back(column, is_there, truth.first, way, slope,
                         products.columns + (row + column) * Of::half, of_first);
        }
    }
    if constexpr (backward) {
        real *first =
            products.first +
            (int64_t(tile.sample) * products.first_rows + slice * Of::warps + of.warp) * Of::half;
        NSC_UNROLL
        for (int32_t r = 0; r < Of::most; ++r) {
            for (int32_t bit = Of::lanes; bit < 32; bit *= 2)
                of_first[r] += __shfl_xor_sync(0xffffffffu, of_first[r], bit);
            if (of.group == 0) first[of.lane + Of::lanes * r] = of_first[r];
        }
        Tile<Plan, real>::wait();
        of.template turn<true>();
    }
    return weight * Loss::template of<real>(found, true);
}

// Puts zero in the place of the products of the first level. Products of other levels are read only
// for items that count.
template <class Plan, class real>
__device__ __forceinline__ void clear_first_products(const Tile<Plan, real> &tile, int32_t slice,
                                                     const MergeProducts<real> &products) {
    using Of = MergeColumns<Plan, real>;
    real *first = products.first +
                  (int64_t(tile.sample) * products.first_rows + slice * Of::warps) * Of::half;
    for (int32_t i = tile.team * Plan::tile_lanes + tile.lane; i < Of::warps * Of::half;
         i += tile.threads)
        first[i] = 0;
}

// Puts the gradients of the weights of merges into the gradients of slots, in the first chunk. A
// thread sums the products of one comparator, in order.
template <class Plan, class real>
__device__ inline void sum_merge(int64_t number, int32_t chunks, const real *weights,
                                 const MergeProducts<real> &products, real *weight_grads) {
    constexpr int32_t half = Plan::wires / 2, at_a_time = 8;
    const int64_t sample = number / merge_comparators<Plan>;
    const int32_t place = int32_t(number % merge_comparators<Plan>), level = place / half,
                  d = half >> level, wire = place % d;
    const int32_t first_rank = place % half / d * (2 * d);
    const int32_t *items = reinterpret_cast<const int32_t *>(items_of<Plan>(weights, sample));
    const real *from = level
                           ? products.columns + sample * Plan::wires * half + (half - 2 * d + wire)
                           : products.first + sample * products.first_rows * half + wire;
    const int32_t count = level ? 2 * d : products.first_rows;
    real sum = 0;
    for (int32_t first = 0; first < count; first += at_a_time) {
        real next[at_a_time];
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k) {
            const int32_t i = first + k;
            // No item may have a rank.
            const int32_t at = i >= count ? -1 : level ? items[first_rank + i] : i;
            next[k] = at >= 0 ? from[int64_t(at) * half] : real(0);
        }
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k) sum += next[k];
    }
    weight_grads[sample * chunks * Plan::slots + Plan::merge_slot(place)] = sum;
}

}  // namespace nsc::cuda
