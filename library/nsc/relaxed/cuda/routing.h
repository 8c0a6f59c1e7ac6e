// The routing pass on a GPU: payloads, losses and their gradients through the codelets.
//
// NVRTC takes most of its time for the backward routing, so one function serves both directions.
// The rows that a codelet loads are kept for the way back: in shared memory up to 16 wires, in
// memory of the call beyond. The last codelets run only if a call asks for their result.
//
// Three designs were counted and not kept, on bitonic 1024:
//
// - Sharing the difference between mix and gradient takes 6.9 instructions of a warp instead of 4.9
//   forward, and 29 instead of 24 backward.
// - On tensor cores, with a float32 as two parts of TF32, a codelet takes 1.2 times fewer
//   instructions, but errors of P grow from 7e-7 to 5e-6.
// - Keeping the rows of every second stage alone would halve the kept memory, but the other rows
//   find no room beside the tile.
#pragma once

#include <nsc/relaxed/cuda/codelets.h>
#include <nsc/relaxed/cuda/final_merge.h>
#include <nsc/relaxed/cuda/tensors.h>

namespace nsc::cuda {

// Fills the tile with columns of the unit matrix, or with the columns of ranks. Their ones are
// `unit_entry`.
template <class Plan, class real>
__device__ __forceinline__ void load_unit_columns(const Tile<Plan, real> &tile, real unit_entry) {
    const Call<real> &call = tile.call;
    // The row of each column's one, and the value of its other rows: NaN where the rank is invalid.
    int32_t ones[lane_columns<real>];
    real others[lane_columns<real>];
    for (int32_t k = 0; k < lane_columns<real>; ++k) {
        const bool is_there = k < tile.present;
        const int64_t rank = is_there && has_ranks(call.routing)
                                 ? call.ranks_of(tile.sample)[tile.column + k]
                                 : tile.column + k;
        const bool is_rank = rank >= 0 && rank < Plan::wires;
        ones[k] = is_there && is_rank ? int32_t(rank) : -1;
        others[k] = is_there && !is_rank ? not_a_number<real>() : real(0);
    }
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k)
            at.at[k] = row == ones[k] ? unit_entry : others[k];
    });
}

// This thread's part of the loss of a tile's columns, see loss_part, whether the merge is taken
// apart or not.
template <bool backward, class Plan, class real>
__device__ __forceinline__ double loss_of(const Tile<Plan, real> &tile, bool parted, int32_t slice,
                                          const MergeProducts<real> &products, real *share_grad) {
    double loss = 0;
    if constexpr (Plan::merge_layers > 0) {
        if (parted) {
            with_loss(tile.call.routing, [&](auto kind) NSC_INLINE {
                using Loss = decltype(kind);
                if constexpr (Loss::of_truth)
                    loss = parted_loss<backward, Loss>(tile, slice, products);
            });
            return loss;
        }
    }
    return loss_part<backward>(tile, share_grad);
}

// Clears the products that the columns of a tile give to the merge, if that is taken apart.
template <class Plan, class real>
__device__ __forceinline__ void clear_products(const Tile<Plan, real> &tile, bool parted,
                                               int32_t slice, const MergeProducts<real> &products) {
    if constexpr (Plan::merge_layers > 0)
        if (parted) clear_first_products(tile, slice, products);
}

template <class Plan>
__device__ inline int32_t levels_of(bool parted) {
    return parted ? Plan::front_levels : Plan::codelet_levels;
}

// routed: the result, null for a loss. losses: a part for each sample and chunk.
template <class Plan, bool reversed, class real>
__device__ __forceinline__ void route_forward(const Call<real> &call, real *__restrict__ routed,
                                              double *__restrict__ losses) {
    const bool parted = !reversed && is_parted<Plan>(call.routing);
    Tile<Plan, real> tile(call, levels_of<Plan>(parted));
    const real scale = has_columns(call.routing) ? real(1) : 1 / unit<real>;
    const bool gives_loss = !reversed && is_loss(call.routing);  // code of no use is left out
    for (int32_t task = Tile<Plan, real>::number(); task < tile.tasks;
         task += Tile<Plan, real>::count()) {
        double loss = 0;
        for (int32_t slice = tile.first_slice(task); slice < tile.end_slice(task); ++slice) {
            tile.go_to(task, slice);
            if (gives_loss && leaves_out(tile)) continue;
            if (has_columns(call.routing))
                read_rows(tile, rows_of(tile, static_cast<const real *>(call.payload),
                                        call.payload_stride));
            else
                load_unit_columns(tile, unit<real>);
            Tile<Plan, real>::wait();
            run_forward<reversed, false>(tile, tile.levels, static_cast<Columns<real> *>(nullptr));
            if (gives_loss) {
                loss += loss_of<false>(tile, parted, slice, {}, static_cast<real *>(nullptr));
            } else {
                write_rows(tile, rows_of(tile, routed, Plan::wires * call.columns), scale);
            }
            Tile<Plan, real>::wait();
        }
        if (gives_loss) store_loss(tile, task, loss, losses);
    }
}

// The gradient of a weight is the product of two differences: of the rows in front of its
// comparator that run forwards through the network, and of the rows behind it that run backwards.
// The payload runs forwards and the gradient of the result backwards; in a reversed routing it is
// the other way round. So one function serves both directions.
//
//     forwards, backwards  the operands that run so, where they are tensors;
//     losses               of a loss, a part for each sample and chunk;
//     weight_grads         for each sample and chunk, a place for each slot;
//     payload_grad         as the payload, or null; of a loss, the gradient of its shares;
//     kept                 for each tile of the grid, memory for the rows that its codelets load;
//     products             of a merge that is taken apart.
template <class Plan, class real>
__device__ __forceinline__ void route_backward(
    const Call<real> &call, Tensor<real> forwards, Tensor<real> backwards,
    real *__restrict__ weight_grads, real *__restrict__ payload_grad, double *__restrict__ losses,
    Columns<real> *__restrict__ kept, int32_t kept_rows, MergeProducts<real> products) {
    const bool parted = is_parted<Plan>(call.routing);
    Tile<Plan, real> tile(call, levels_of<Plan>(parted));
    kept = kept_rows_of(tile, kept, kept_rows);
    // The last level does not run where nobody reads its results.
    const bool needs_last =
        tile.levels == 0 || is_loss(call.routing) || (payload_grad && call.gradient_first);
    for (int32_t task = Tile<Plan, real>::number(); task < tile.tasks;
         task += Tile<Plan, real>::count()) {
        double loss = 0;
        tile.go_to(task, tile.first_slice(task));
        real *weight_grad =
            weight_grads + (int64_t(tile.sample) * call.chunks + task % call.chunks) * Plan::slots;
        const int32_t lanes = tile.group / Tile<Plan, real>::each;
        for (int32_t slot = tile.team * lanes + tile.lane % lanes;
             tile.is_sample && slot < Plan::slots; slot += Tile<Plan, real>::teams * lanes)
            weight_grad[slot] = 0;
        for (int32_t slice = tile.first_slice(task); slice < tile.end_slice(task); ++slice) {
            tile.go_to(task, slice);
            if (leaves_out(tile)) {
                clear_products(tile, parted, slice, products);
                continue;
            }
            if (routes_identity(call.routing))
                load_unit_columns(tile, is_loss(call.routing) ? unit<real> : real(1));
            else
                read_rows(tile, rows_of(tile, forwards.start, forwards.stride));
            Tile<Plan, real>::wait();
            run_forward<false, true>(tile, tile.levels - !needs_last, kept);
            if (!needs_last) keep_last(tile, kept);
            if (payload_grad && call.gradient_first)
                write_rows(tile, rows_of(tile, payload_grad, Plan::wires * call.columns), real(1));
            if (is_loss(call.routing))
                loss += loss_of<true>(tile, parted, slice, products, payload_grad);
            else if (has_ranks(call.routing))
                load_unit_columns(tile, real(1));
            else
                read_rows(tile, rows_of(tile, backwards.start, backwards.stride));
            Tile<Plan, real>::wait();
            run_backward(tile, kept, weight_grad);
            // All threads waited behind the last level. Each thread loads again the rows that it
            // writes.
            if (payload_grad && !call.gradient_first && !is_loss(call.routing))
                write_rows(tile, rows_of(tile, payload_grad, Plan::wires * call.columns), real(1));
        }
        if (is_loss(call.routing)) store_loss(tile, task, loss, losses);
    }
}

}  // namespace nsc::cuda
