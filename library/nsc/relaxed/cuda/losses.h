// Losses of the columns of a tile, and their gradients.
#pragma once

#include <nsc/relaxed/cuda/tile.h>

namespace nsc {

// The true rank of a column of this lane; -1 for a number that is no rank.
template <class Plan, class real>
__device__ __forceinline__ int32_t target_of(const Tile<Plan, real> &tile, int32_t k) {
    const int64_t rank = k < tile.present ? tile.call.ranks_of(tile.sample)[tile.column + k] : -1;
    return rank >= 0 && rank < Plan::wires ? int32_t(rank) : -1;
}

// The sum of the other entries of a column of this lane. Rarely run: it is not worth as much code
// as there are wires.
template <class Plan, class real>
__device__ __forceinline__ real rest_of_column(const Tile<Plan, real> &tile, int32_t k,
                                               int32_t row) {
    real sum = 0;
    _Pragma("unroll 4") for (int32_t other = 0; other < Plan::wires; ++other) if (other != row)
        sum += tile.lane_rows[other * Plan::tile_lanes].at[k];
    return sum;
}

template <class Plan, class real>
__device__ __forceinline__ Probability<real> probability_at(const Tile<Plan, real> &tile, int32_t k,
                                                            int32_t row) {
    const real p = tile.lane_rows[row * Plan::tile_lanes].at[k];
    return {p, is_large(p) ? rest_of_column(tile, k, row) : unit<real> - p};
}

// This thread's part of a loss of one of its columns, whose true rank is `target`.
template <class Loss, class Plan, class real>
__device__ __forceinline__ double loss_of_column(const Tile<Plan, real> &tile, int32_t k,
                                                 int32_t target) {
    if (Loss::at_truth_alone)
        return tile.team
                   ? 0
                   : mean_part<Loss>(Loss::template of<real>(probability_at(tile, k, target), true),
                                     Plan::wires);
    double sum = 0;
    tile.for_each_row([&](int32_t row, Columns<real> &) {
        sum += Loss::template of<real>(probability_at(tile, k, row), target == row);
    });
    return mean_part<Loss>(sum, Plan::wires);
}

// This thread's part of the loss of its columns, which are columns of P.
template <class Plan, class real>
__device__ __forceinline__ double loss_part(const Tile<Plan, real> &tile) {
    double sum = 0;
    for (int32_t k = 0; k < tile.present; ++k) {
        const int32_t target = target_of(tile, k);
        if (target < 0) return not_a_number<double>();
        with_loss(tile.call.routing, [&](auto loss) NSC_INLINE {
            sum += loss_of_column<decltype(loss)>(tile, k, target);
        });
    }
    return sum;
}

// Puts the gradient of a loss in place of the tile. NaN stands where there is no true rank.
template <class Loss, class Plan, class real>
__device__ __forceinline__ void load_gradient_of(const Tile<Plan, real> &tile,
                                                 const int32_t (&target)[lane_columns<real>]) {
    const real share = mean_share<Loss, real>(Plan::wires);
    // Of each column the slope at the true rank; or, as entries are overwritten, the rest of its
    // large entry, of which there is at most one.
    real held[lane_columns<real>] = {};
    if constexpr (Loss::at_truth_alone) {
        for (int32_t k = 0; k < lane_columns<real>; ++k) {
            const real p = target[k] < 0 ? not_a_number<real>()
                                         : tile.lane_rows[target[k] * Plan::tile_lanes].at[k];
            held[k] = share * Loss::template slope<typename Plan::Relaxation, real>(
                                  {p, unit<real> - p}, true);
        }
    } else {
        tile.for_each_row([&](int32_t row, Columns<real> &at) {
            for (int32_t k = 0; k < lane_columns<real>; ++k)
                if (is_large(at.at[k])) held[k] = rest_of_column(tile, k, row);
        });
    }
    Tile<Plan, real>::wait();
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k) {
            if constexpr (Loss::at_truth_alone) {
                at.at[k] = row == target[k] && k < tile.present ? held[k] : real(0);
            } else {
                const real p = at.at[k];
                const Probability<real> entry = {p, is_large(p) ? held[k] : unit<real> - p};
                at.at[k] = k < tile.present
                               ? share * Loss::template slope<typename Plan::Relaxation, real>(
                                             entry, target[k] == row)
                               : real(0);
            }
        }
    });
}

template <class Plan, class real>
__device__ __forceinline__ void load_loss_gradient(const Tile<Plan, real> &tile) {
    int32_t target[lane_columns<real>];
    for (int32_t k = 0; k < lane_columns<real>; ++k) target[k] = target_of(tile, k);
    with_loss(tile.call.routing,
              [&](auto loss) NSC_INLINE { load_gradient_of<decltype(loss)>(tile, target); });
}

// Stores the loss of a task, the sum over the threads of each of its samples; uses the tile.
template <class Plan, class real>
__device__ __forceinline__ void store_loss(const Tile<Plan, real> &tile, int32_t task, double loss,
                                           double *losses) {
    const int32_t lanes = tile.group / Tile<Plan, real>::each;
    for (int32_t bit = lanes / 2; bit; bit /= 2) loss += __shfl_xor_sync(tile.mask, loss, bit);
    const int64_t place = int64_t(tile.sample) * tile.call.chunks + task % tile.call.chunks;
    if constexpr (Tile<Plan, real>::teams == 1) {
        if (tile.is_sample && tile.lane % lanes == 0) losses[place] = loss;
    } else {
        double *parts = reinterpret_cast<double *>(tile.tile);
        Tile<Plan, real>::wait();
        if (tile.lane == 0) parts[tile.team] = loss;
        Tile<Plan, real>::wait();
        if (tile.team == 0 && tile.lane == 0) {
            double sum = 0;
            for (int32_t team = 0; team < Tile<Plan, real>::teams; ++team) sum += parts[team];
            losses[place] = sum;
        }
        Tile<Plan, real>::wait();
    }
}

}  // namespace nsc
