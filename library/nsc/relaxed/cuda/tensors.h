// Between tensors and tiles: rows are read and written, a lane at a time where they are aligned.
#pragma once

#include <nsc/relaxed/cuda/tile.h>

namespace nsc::cuda {

// The rows of a tensor (samples, wires, columns) that a tile's columns belong to, this lane's part.
template <class real, class T>
struct RowsOf {
    template <class Plan>
    __device__ RowsOf(const Tile<Plan, real> &tile, T *start)
        : first(start + tile.column),
          columns(tile.call.columns),
          present(tile.present),
          aligned(tile.call.columns % lane_columns<real> == 0 &&
                  reinterpret_cast<uint64_t>(start) % sizeof(Columns<real>) == 0) {}
    T *first;
    int32_t columns, present;
    bool aligned;  // whether a lane's columns lie at a multiple of their bytes; then all of them
                   // are there, or none
};

template <class Plan, class real, class T>
__device__ __forceinline__ RowsOf<real, T> rows_of(const Tile<Plan, real> &tile, T *tensor,
                                                   int64_t stride) {
    return {tile, tensor + tile.sample * stride};
}

// Fills the tile from a tensor. Several rows are requested before the first is stored, since each
// request takes the time of a read from memory.
template <bool aligned, class Plan, class real>
__device__ __forceinline__ void read_rows(const Tile<Plan, real> &tile,
                                          const RowsOf<real, const real> &rows) {
    constexpr int32_t teams = Tile<Plan, real>::teams, each = lane_columns<real>, at_a_time = 8;
    NSC_NO_UNROLL
    for (int32_t first = tile.team; first < Plan::wires; first += at_a_time * teams) {
        Columns<real> read[at_a_time] = {};
        NSC_UNROLL
        for (int32_t i = 0; i < at_a_time; ++i) {
            const int32_t row = first + i * teams, present = row < Plan::wires ? rows.present : 0;
            const real *from = rows.first + int64_t(row) * rows.columns;
            if constexpr (aligned) {
                if (present) read[i] = *reinterpret_cast<const Columns<real> *>(from);
            } else {
                for (int32_t k = 0; k < each; ++k)
                    if (k < present) read[i].at[k] = from[k];
            }
        }
        // Else the compiler stores each row before it asks for the next.
        __syncwarp(tile.mask);
        NSC_UNROLL
        for (int32_t i = 0; i < at_a_time; ++i)
            if (first + i * teams < Plan::wires)
                tile.lane_rows[(first + i * teams) * Plan::tile_lanes] = read[i];
    }
}

template <class Plan, class real>
__device__ __forceinline__ void read_rows(const Tile<Plan, real> &tile,
                                          const RowsOf<real, const real> &rows) {
    if (rows.aligned)
        read_rows<true>(tile, rows);
    else
        read_rows<false>(tile, rows);
}

// Writes the tile, times a factor, to a tensor.
template <bool aligned, class Plan, class real>
__device__ __forceinline__ void write_rows(const Tile<Plan, real> &tile,
                                           const RowsOf<real, real> &rows, real factor) {
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        const Columns<real> scaled = factor * at;
        real *to = rows.first + int64_t(row) * rows.columns;
        if constexpr (aligned) {
            if (rows.present) *reinterpret_cast<Columns<real> *>(to) = scaled;
        } else {
            for (int32_t k = 0; k < lane_columns<real>; ++k)
                if (k < rows.present) to[k] = scaled.at[k];
        }
    });
}

template <class Plan, class real>
__device__ __forceinline__ void write_rows(const Tile<Plan, real> &tile,
                                           const RowsOf<real, real> &rows, real factor) {
    if (rows.aligned)
        write_rows<true>(tile, rows, factor);
    else
        write_rows<false>(tile, rows, factor);
}

}  // namespace nsc::cuda
