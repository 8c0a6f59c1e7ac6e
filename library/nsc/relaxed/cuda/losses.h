// Losses of the columns of a tile, and their gradients.
#pragma once

#include <nsc/relaxed/cuda/tile.h>

namespace nsc::cuda {

// The target of the tile's sample. All lanes of a sample must call it together.
template <class Plan, class real>
__device__ __forceinline__ Target<real> target_of(const Tile<Plan, real> &tile) {
    const Form form = form_of(tile.call.routing);
    if (form != of_ranks) {
        const real *reals = static_cast<const real *>(tile.call.payload);
        return {form, reals + tile.sample * tile.call.payload_stride, Plan::wires, 0};
    }
    const int64_t *ranks = tile.call.ranks_of(tile.sample);
    const int32_t lanes = tile.group / Tile<Plan, real>::each;
    int32_t count = 0;
    for (int32_t i = tile.lane % lanes; i < Plan::wires; i += lanes) count += ranks[i] != ignored;
    for (int32_t bit = lanes / 2; bit; bit /= 2) count += __shfl_xor_sync(tile.mask, count, bit);
    return {form, ranks, Plan::wires, count ? 1 / real(count) : 0};
}

// The truth of a column that exists. Its weight is NaN where the target has wrong numbers.
template <class real>
__device__ __forceinline__ Truth<real> truth_of(const Target<real> &target, int32_t column) {
    if (!target.is_valid(column)) return {0, 0, not_a_number<real>()};
    return target.truth(column);
}

// Whether the loss leaves out the tile's columns, as none of them counts. Shares that do not count
// are still looked at. Threads whose tiles wait for each other get the same answer.
template <class Plan, class real>
__device__ __forceinline__ bool leaves_out(const Tile<Plan, real> &tile) {
    const Form form = form_of(tile.call.routing);
    if (!is_loss(tile.call.routing) || form == of_shares) return false;
    const int64_t bytes = form == of_ranks ? sizeof(int64_t) : sizeof(real);
    const void *start = static_cast<const char *>(tile.call.payload) +
                        tile.sample * tile.call.payload_stride * bytes;
    const Target<real> target = {form, start, Plan::wires, 1};
    int32_t counts = 0;
    for (int32_t k = 0; k < lane_columns<real>; ++k)
        counts |= k < tile.present && target.counts(tile.column + k);
    // Not a vote: behind one NVRTC does not see that nobody writes the payload.
    for (int32_t bit = Plan::tile_lanes / 2; bit; bit /= 2)
        counts |= __shfl_xor_sync(tile.mask, counts, bit);
    return !counts;
}

// The sums of the entries of a column of this lane inside and outside of its truth. Rarely run: it
// is not worth as much code as there are wires.
template <class Plan, class real>
__device__ __forceinline__ Probability<real> masses_of(const Tile<Plan, real> &tile, int32_t k,
                                                       Truth<real> truth) {
    Probability<real> sums = {};
    _Pragma("unroll 4") for (int32_t row = 0; row < Plan::wires; ++row) {
        const real entry = tile.lane_rows[row * Plan::tile_lanes].at[k];
        sums.p += truth.is_in(row) ? entry : real(0);
        sums.rest += truth.is_in(row) ? real(0) : entry;
    }
    return sums;
}

// The probability that the item of a column has one of its true ranks.
template <class Plan, class real>
__device__ __forceinline__ Probability<real> probability_of(const Tile<Plan, real> &tile, int32_t k,
                                                            Truth<real> truth) {
    Probability<real> sums = {tile.lane_rows[truth.first * Plan::tile_lanes].at[k], 0};
    if (truth.first != truth.last || is_large<real>(sums.p)) sums = masses_of(tile, k, truth);
    return {sums.p, is_large<real>(sums.p) ? sums.rest : unit<real> - sums.p};
}

// The functions below are parts of loss_part. Columns are taken one after the other: two at a time
// would be twice the code, and most of it is logarithms.
#define NSC_EACH_COLUMN _Pragma("unroll 1")

// The part of a loss that counts true ranks alone.
template <class Loss, bool backward, class Plan, class real>
__device__ __forceinline__ double loss_of_truths(const Tile<Plan, real> &tile,
                                                 const Target<real> &target) {
    double loss = 0;
    int32_t first[lane_columns<real>] = {}, last[lane_columns<real>] = {};
    // The slope of each column at its true ranks. If several true ranks are almost certain, the
    // slope stands negated at the other ranks, which is the same, as columns sum to 1. Mixes of
    // equal slopes differ in the last place, and a small gradient would drown in that.
    real slopes[lane_columns<real>] = {};
    bool at_others[lane_columns<real>] = {};
    NSC_EACH_COLUMN for (int32_t k = 0; k < tile.present; ++k) {
        if (!backward && tile.team) break;
        const Truth<real> truth = truth_of(target, tile.column + k);
        const Probability<real> p = probability_of(tile, k, truth);
        if (tile.team == 0) loss += truth.weight * Loss::template of<real>(p, true);
        const real slope =
            truth.weight * Loss::template slope<typename Plan::Relaxation, real>(p, true);
        const bool is_negated = truth.first != truth.last && is_large<real>(p.p);
        // Not [k]: arrays with an index that is known only at run time lie in memory.
        for (int32_t at = 0; at < lane_columns<real>; ++at) {
            first[at] = at == k ? truth.first : first[at];
            last[at] = at == k ? truth.last : last[at];
            slopes[at] = at == k ? (is_negated ? -slope : slope) : slopes[at];
            at_others[at] = at == k ? is_negated : at_others[at];
        }
    }
    if (!backward) return loss;
    Tile<Plan, real>::wait();
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k)
            at.at[k] = (first[k] <= row && row <= last[k]) != at_others[k] ? slopes[k] : real(0);
    });
    return loss;
}

// The part of a loss that counts all entries. share_grad: the gradient of the shares of this lane's
// first column, or null.
template <class Loss, bool backward, class Plan, class real>
__device__ __forceinline__ double loss_of_entries(const Tile<Plan, real> &tile,
                                                  const Target<real> &target, real *share_grad) {
    double loss = 0;
    NSC_EACH_COLUMN for (int32_t k = 0; k < lane_columns<real>; ++k) {
        const bool is_there = k < tile.present;
        const Truth<real> truth = is_there ? truth_of(target, tile.column + k) : Truth<real>{};
        const real weight = entry_weight<Loss>(truth.weight, Plan::wires), part = truth.part();
        // The rest of the large entry, since entries are overwritten. At most one entry is large.
        real rest_of_large = 0;
        tile.for_each_row([&](int32_t row, Columns<real> &at) {
            if (is_large<real>(at.at[k])) rest_of_large = masses_of(tile, k, {row, row, 1}).rest;
        });
        if (backward) Tile<Plan, real>::wait();
        if (!is_there) continue;
        tile.for_each_row([&](int32_t row, Columns<real> &at) {
            const Probability<real> p = {
                at.at[k], is_large<real>(at.at[k]) ? rest_of_large : unit<real> - at.at[k]};
            real share = truth.is_in(row) ? part : real(0);
            if (target.form == of_shares) {
                share = target.share(row, tile.column + k);
                if (!is_share(share)) share = not_a_number<real>();
            }
            loss += weight * mean_loss<Loss>(p, share);
            if (!backward) return;
            at.at[k] = weight * mean_slope<Loss, typename Plan::Relaxation>(p, share);
            if (share_grad)
                share_grad[row * int32_t(Plan::wires) + k] = weight * real(share_slope<Loss>(p));
        });
    }
    return loss;
}

// This thread's part of the loss of its columns, which are columns of P. With `backward` it puts
// the gradient in place of the tile, and writes the gradient of the shares of all samples, if that
// has a place.
template <bool backward, class Plan, class real>
__device__ __forceinline__ double loss_part(const Tile<Plan, real> &tile, real *share_grad) {
    constexpr int64_t wires = Plan::wires;
    const Target<real> target = target_of(tile);
    if (backward && share_grad) {
        share_grad += tile.sample * numbers_of(of_shares, wires) + tile.column;
        for (int32_t k = 0; k < tile.present && tile.team == 0; ++k)
            share_grad[wires * wires + k] = 0;  // weights have none
    }
    double loss = 0;
    with_loss(tile.call.routing, [&](auto kind) NSC_INLINE {
        using Loss = decltype(kind);
        if (Loss::of_truth && target.form != of_shares)
            loss = loss_of_truths<Loss, backward>(tile, target);
        else
            loss = loss_of_entries<Loss, backward>(tile, target, share_grad);
    });
    return loss;
}

// Stores the loss of each sample of a task, the sum over the sample's threads; uses the tile, whose
// rows nobody may still read.
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

}  // namespace nsc::cuda
