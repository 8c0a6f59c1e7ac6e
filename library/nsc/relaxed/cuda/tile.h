// Tiles of columns in shared memory: a team of threads runs a codelet on its tile.
#pragma once

#include <nsc/cuda/shared_memory.h>
#include <nsc/relaxed/cuda/network.h>
#include <nsc/relaxed/routings.h>

namespace nsc::cuda {

// Bytes of a row that a lane holds: two neighbouring columns of float32, one of float64.
constexpr int32_t lane_bytes = 8;

template <class real>
constexpr int32_t lane_columns = lane_bytes / int32_t(sizeof(real));

// A lane's columns of a row.
template <class real>
struct alignas(lane_bytes) Columns {
    real at[lane_columns<real>];
};

template <class real>
__device__ __forceinline__ Columns<real> operator-(Columns<real> a, Columns<real> b) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] -= b.at[k];
    return a;
}

template <class real>
__device__ __forceinline__ Columns<real> operator*(real factor, Columns<real> a) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] *= factor;
    return a;
}

template <class real>
__device__ __forceinline__ Columns<real> mixed(Mix<real> m, Columns<real> a, Columns<real> b) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] = mixed(m, a.at[k], b.at[k]);
    return a;
}

template <class real>
__device__ __forceinline__ real dot(Columns<real> a, Columns<real> b) {
    real sum = a.at[0] * b.at[0];
    for (int32_t k = 1; k < lane_columns<real>; ++k) sum += a.at[k] * b.at[k];
    return sum;
}

// A tensor of real numbers (samples, wires, columns) whose samples are `stride` numbers apart.
template <class real>
struct Tensor {
    const real *start;
    int64_t stride;
};

// The operands of a routing. The weights come by two pointers, although both may point to the same
// numbers: the compiler then reads them again for the backward pass, instead of keeping them in
// registers from the forward pass on.
template <class real>
struct Call {
    Routing routing;
    int32_t batch;
    int32_t chunks;  // parts of the columns of a sample, each with its own sums
    const real *weights, *backward_weights;
    const void *payload;
    int64_t payload_stride;  // 0: one payload for all samples
    int32_t columns;
    bool gradient_first;  // whether the gradient runs forwards, with its weights, and then the
                          // payload backwards

    __device__ const int64_t *ranks_of(int32_t sample) const {
        return static_cast<const int64_t *>(payload) + sample * payload_stride;
    }
};

// A tile of columns, and this thread in it. A tile has columns of several samples, `group` columns
// for each, in two cases:
//
// - The network has fewer wires than the tile has columns.
// - The payload has no more columns than a lane. Then the tile has as many samples as lanes.
//
// A team of threads, one per lane, runs a codelet; teams share the codelets of a level.
template <class Plan, class real>
struct Tile {
    static constexpr int32_t each = lane_columns<real>, width = Plan::tile_lanes * each;
    static constexpr int32_t threads = 32 * Plan::tile_warps, teams = threads / Plan::tile_lanes,
                             tiles_per_block = Plan::routing_threads / threads;
    static constexpr int32_t full_group = Plan::widest_group < each    ? each
                                          : Plan::widest_group < width ? Plan::widest_group
                                                                       : width;
    static_assert(teams == 1 || full_group == width, "teams share a tile of one sample");

    // levels: how many levels of codelets are run, from the first on.
    __device__ Tile(const Call<real> &call, int32_t levels)
        : call(call),
          levels(levels),
          team(int32_t(threadIdx.x) % threads / Plan::tile_lanes),
          lane(int32_t(threadIdx.x) % Plan::tile_lanes),
          tile(reinterpret_cast<Columns<real> *>(shared_memory) +
               int32_t(threadIdx.x) / threads * Plan::tile_lanes * int32_t(Plan::wires)),
          lane_rows(tile + lane),
          mask((0xffffffffu >> (32 - Plan::tile_lanes))
               << (int32_t(threadIdx.x) % 32 / Plan::tile_lanes * Plan::tile_lanes)),
          group(call.columns <= each ? each : full_group),
          samples(width / group),
          slices((call.columns + group - 1) / group),
          tasks((call.batch + samples - 1) / samples * call.chunks) {}

    // This tile's number in the grid, and the number of tiles in the grid.
    __device__ static int32_t number() {
        return int32_t(blockIdx.x) * tiles_per_block + int32_t(threadIdx.x) / threads;
    }
    __device__ static int32_t count() { return int32_t(gridDim.x) * tiles_per_block; }

    __device__ static void wait() {
        if constexpr (Plan::tile_warps == 1)
            __syncwarp();
        else
            __syncthreads();
    }

    // Goes to some columns of a task: a group of samples and a slice of their columns.
    __device__ void go_to(int32_t task, int32_t slice) {
        const int32_t group_lanes = group / each;
        sample = task / call.chunks * samples + lane / group_lanes;
        column = slice * group + lane % group_lanes * each;
        is_sample = sample < call.batch;
        if (!is_sample) sample = call.batch - 1;
        present = !is_sample || column >= call.columns ? 0
                  : call.columns - column < each       ? call.columns - column
                                                       : each;
        if (!present) column = 0;
        list = routes_identity(call.routing) ? slice * group / Plan::cone_columns : Plan::cones;
        const Weights<const real> weights = weights_of<Plan>(call.weights, sample),
                                  again = weights_of<Plan>(call.backward_weights, sample);
        first = call.gradient_first ? weights.backward : weights.forward;
        second = call.gradient_first ? again.forward : again.backward;
    }
    __device__ int32_t first_slice(int32_t task) const {
        return slices * (task % call.chunks) / call.chunks;
    }
    __device__ int32_t end_slice(int32_t task) const {
        return slices * (task % call.chunks + 1) / call.chunks;
    }

    // Calls visit(row, this thread's columns of the row) for the rows that are this team's.
    template <class Visit>
    __device__ __forceinline__ void for_each_row(Visit visit) const {
        for (int32_t row = team; row < Plan::wires; row += teams)
            visit(row, lane_rows[row * Plan::tile_lanes]);
    }

    // Calls visit(number of the codelet, its place in the list) for this team's codelets, level by
    // level: of all levels, or of the turns begin ... end - 1.
    template <class Visit>
    __device__ __forceinline__ void for_each_codelet(bool backwards, Visit visit) const {
        for_each_codelet(backwards, 0, levels, visit);
    }
    template <class Visit>
    __device__ __forceinline__ void for_each_codelet(bool backwards, int32_t begin_turn,
                                                     int32_t end_turn, Visit visit) const {
        const int32_t *bounds = Plan::level_bounds(list);
        for (int32_t turn = begin_turn; turn < end_turn; ++turn) {
            const int32_t level = backwards ? levels - 1 - turn : turn, begin = bounds[level],
                          end = bounds[level + 1];
            for (int32_t i = begin + team; i < end; i += teams)
                visit(Plan::listed(i), i - bounds[0]);
            if (end > begin) wait();
        }
    }

    Call<real> call;
    int32_t levels, team, lane;
    Columns<real> *tile, *lane_rows;  // the tile, and this lane's columns of its first row
    uint32_t mask;                    // of the team's threads
    int32_t group, samples, slices, tasks;
    // where it is
    int32_t sample = 0, column = 0,
            present = 0;  // this lane's first column, and the number of its columns that exist
    bool is_sample = false;
    int32_t list = Plan::cones;
    Mixes<const real> first = {},
                      second = {};  // the weights of a run through the codelets, and of one back
};

}  // namespace nsc::cuda
