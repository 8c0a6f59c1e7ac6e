// Runs codelets on tiles, forwards and back.
#pragma once

#include <nsc/relaxed/cuda/lane_sums.h>
#include <nsc/relaxed/cuda/mixes.h>
#include <nsc/relaxed/cuda/rows.h>

namespace nsc::cuda {

// This lane's part of the memory for the rows that a tile's codelets load: behind the block's tiles
// if they are few, else in the memory that the call has for each tile of the grid.
template <class Plan, class real>
__device__ __forceinline__ Columns<real> *kept_rows_of(const Tile<Plan, real> &tile,
                                                       Columns<real> *kept, int32_t kept_rows) {
    if constexpr (Plan::kept_rows_in_block > 0) {
        constexpr int32_t rows = Tile<Plan, real>::tiles_per_block * int32_t(Plan::wires);
        const int32_t of_tile = int32_t(threadIdx.x) / Tile<Plan, real>::threads;
        return reinterpret_cast<Columns<real> *>(shared_memory) +
               (rows + of_tile * Plan::kept_rows_in_block) * Plan::tile_lanes + tile.lane;
    }
    return kept + int64_t(Tile<Plan, real>::number()) * kept_rows * Plan::tile_lanes + tile.lane;
}

// The part of that memory for a codelet. It has room for the widest codelet.
template <class Plan, class real>
__device__ __forceinline__ Columns<real> *kept_by(Columns<real> *kept, int32_t place) {
    return kept + place * (int32_t(Plan::widest_codelet) * Plan::tile_lanes);
}

// Runs the listed codelets of the first `levels` levels on a tile, with the weights of its first
// run; `reversed` runs them backwards. With `keeps`, stores in `kept` the rows that codelets load.
template <bool reversed, bool keeps, class Plan, class real>
__device__ __forceinline__ void run_forward(const Tile<Plan, real> &tile, int32_t levels,
                                            Columns<real> *kept) {
    tile.for_each_codelet(reversed, 0, levels, [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = Plan::codelet(number);
        Plan::template with_code_of<Plan>(codelet, [&](auto code, auto spread) NSC_INLINE {
            using Rows = InPlace<Columns<real>, Plan::tile_lanes, decltype(spread)>;
            const Rows rows = {tile.lane_rows + codelet.base * Plan::tile_lanes, spread};
            MixesOf<real, decltype(code)> mixes(tile.first, codelet.slot);
            const auto step = [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half)
                                  NSC_INLINE { mix(a, b, mixes[c], half...); };
            if constexpr (keeps)
                run_code<reversed>(code,
                                   Keeping<Columns<real>, Plan::tile_lanes, decltype(spread)>{
                                       rows, kept_by<Plan>(kept, place)},
                                   step);
            else
                run_code<reversed>(code, rows, step);
        });
    });
}

// Stores in `kept` the rows that codelets of the last level load, and does not run the codelets.
template <class Plan, class real>
__device__ __forceinline__ void keep_last(const Tile<Plan, real> &tile, Columns<real> *kept) {
    tile.for_each_codelet(false, tile.levels - 1, tile.levels,
                          [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = Plan::codelet(number);
        const int32_t wires = Plan::shape(codelet.shape).wires;
        for (int32_t k = 0; k < wires; ++k)
            kept_by<Plan>(kept, place)[k * Plan::tile_lanes] =
                tile.lane_rows[(codelet.base + Plan::spread(codelet.spread + k)) *
                               Plan::tile_lanes];
    });
}

// Runs the listed codelets backwards on a tile, with the weights of its second run, and adds the
// gradients of the weights to `weight_grad`. `kept` has the rows that run_forward kept.
template <class Plan, class real>
__device__ __forceinline__ void run_backward(const Tile<Plan, real> &tile, Columns<real> *kept,
                                             real *weight_grad) {
    tile.for_each_codelet(true, [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = Plan::codelet(number);
        Plan::template with_code_of<Plan>(codelet, [&](auto code, auto spread) NSC_INLINE {
            // For each comparator first the difference of the rows in front of it, as the first
            // run had them. Then its products with the difference of the rows behind it, summed
            // over the columns into the first column.
            Columns<real> products[decltype(code)::most()];
            MixesOf<real, decltype(code)> first(tile.first, codelet.slot);
            run_code<false>(code, Kept<Columns<real>, Plan::tile_lanes>{kept_by<Plan>(kept, place)},
                            [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half)
                                NSC_INLINE {
                products[c] = difference(a, b, half...);
                mix(a, b, first[c], half...);
            });
            // Else the compiler reads ahead for the second half, and the registers are full.
            __syncwarp(tile.mask);
            using Rows = InPlace<Columns<real>, Plan::tile_lanes, decltype(spread)>;
            const Rows rows = {tile.lane_rows + codelet.base * Plan::tile_lanes, spread};
            MixesOf<real, decltype(code)> second(tile.second, codelet.slot);
            run_code<true>(code, rows,
                           [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half)
                               NSC_INLINE {
                products[c].at[0] = dot(products[c], difference(a, b, half...));
                mix(a, b, second[c], half...);
            });
            add_sums(tile, code, products, weight_grad + codelet.slot);
        });
    });
}

}  // namespace nsc::cuda
