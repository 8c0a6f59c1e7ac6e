// bitonic_4: differentiable sorting of 4 values on a GPU.
//
// Made by:    nsc compile bitonic --n 4 --target cuda
// nsc:        0
// Network:    4 wires, 6 comparators, 3 layers, sha256 8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a
// Proof:      sorts every input, by exhaustion: untangled to standard form; all 2^4 0-1 inputs come out sorted
// Relaxation: logistic, ART λ = 0.25
//
// A relaxed comparator (lo, hi) is a 2x2 mix with the weights keep = f(v) and swap = f(-v) = 1 - f(v) of
// v = steepness * phi(x[hi] - x[lo]), each from its own tail:
//
//     y[lo] = keep x[lo] + swap x[hi]          y[hi] = keep x[hi] + swap x[lo]
//
// so the network is a product P of these mixes and y = P x. There are two passes:
//
//   keys     x -> the weights of all comparators and the sorted values y. 8 threads share a sample,
//            whose values lie in shared memory.
//   routing  the same mixes applied to the rows of a payload: P V in the order of the layers, P^T U in
//            the reverse order. P itself is the payload V = I. A tile of columns lies in shared memory,
//            a thread's columns are its own, and codelets, pieces of at most 16 wires, run in registers.
//
// The backward routing keeps what each codelet loads and recomputes what lies inside; one reverse keys
// pass then turns gradients of weights and values into gradients of x and of the steepness.
//
// Only the shapes decide how sums are cut into pieces, and the pieces are added in a fixed order, without atomics:
// the same input gives the same bits. Calls do not check values on the host, which would have to wait for the
// device: an invalid target or steepness gives NaN.

#include <nsc/relaxed/routings.h>
#include <nsc/relaxed/weights.h>

// The block's memory, as much as the launch asks for.
extern __shared__ __align__(16) unsigned char shared_memory[];

namespace {

using namespace nsc;

constexpr int64_t wires = 4;
constexpr int64_t comparators = 6;
constexpr int64_t levels = 3;  // at most
constexpr int64_t codelet_count = 1;
constexpr int64_t slots = 16, slot_alignment = 16;  // places for weights
constexpr int64_t widest_codelet = 16, longest_codelet = 16;  // most wires, most slots

// The comparators, cut into codelets that are run on the wires they load: base + spreads[spread + k] for
// each k. A codelet's weights begin at slot `slot`.
struct alignas(16) Codelet {
    int32_t shape, spread, base, slot;
    int32_t turns;
};

NSC_TABLE Codelet codelets[] = {
    {0, 0, 0, 0, 0}, {},
};

NSC_TABLE uint16_t spreads[] = {
    0, 1, 2, 3, 0,
};

// What codelets of one shape do: comparators between places in their spreads of wires.
struct Shape {
    int32_t wires, first_pair, comparators;
};

struct Pair {
    uint8_t a, b;
};

NSC_TABLE Shape shapes[] = {
    {4, 0, 6}, {0, 0, 0},
};

NSC_TABLE Pair shape_pairs[] = {
    {0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}, {2, 3}, {0, 0},
};

// Whether a codelet's comparator leaves the minimum on its second wire.
NSC_TABLE uint64_t turns[][2] = {
    {0x2, 0x0},
};

NSC_FUNCTION bool is_turned(Codelet codelet, int32_t comparator) {
    return turns[codelet.turns][comparator / 64] >> comparator % 64 & 1;
}

// ------------------------------------------------------------------------- rounds, levels, cones

constexpr int32_t tile_warps = 1;  // warps that share a tile of columns
constexpr int32_t widest_group = 4;  // columns of a tile that a sample takes, at most
constexpr int32_t sample_threads = 8;  // threads that share a sample's keys
constexpr int32_t keys_threads = 128, routing_threads = 128;  // threads of a block

// The keys pass runs in rounds: comparators that share no wire, at most one for each thread of a sample. Here
// each leaves the minimum on wire lo. An entry with lo = hi is no comparator.
struct alignas(8) Comparator {
    uint16_t lo, hi;
    int32_t slot;
};

constexpr int32_t rounds = 3;

NSC_TABLE Comparator in_rounds[] = {
    {0, 1, 0}, {3, 2, 1}, {0, 2, 2}, {1, 3, 3}, {0, 1, 4}, {2, 3, 5}, {},
};

NSC_TABLE int32_t round_ends[] = {
    2, 4, 6, 0,
};

// The routing runs in levels: codelets that take no wire from each other. A light cone lists the codelets
// that 32 columns of P reach; through all others these columns are zero. The last list has all codelets.
constexpr int32_t codelet_levels = 1;
constexpr int32_t cone_columns = 32, cones = 1;

NSC_TABLE int32_t listed[] = {
    0, 0, 0,
};

// Where in the table of listed codelets each list begins, and where each of its levels ends.
NSC_TABLE int32_t level_bounds[cones + 1][codelet_levels + 1] = {
    {0, 1}, {1, 2},
};

// logistic, ART λ = 0.25. See nsc/relaxed/weights.h.
struct Relaxation {
    static constexpr bool error_free = false;

    // f(-t) for t >= 0, and f'(v) at |v| = t. f is logistic, Petersen et al., ICML 2021.
    template <class real>
    static NSC_FUNCTION nsc::Vec<real> tail([[maybe_unused]] nsc::Vec<real> t) {
        using namespace nsc;
        return logistic_tail<real>(t);
    }
    template <class real>
    static NSC_FUNCTION nsc::Vec<real> slope([[maybe_unused]] nsc::Vec<real> t, [[maybe_unused]] nsc::Vec<real> keep,
                                             [[maybe_unused]] nsc::Vec<real> swap) {
        using namespace nsc;
        return keep * swap;
    }

    // phi(d) = d / (|d| + 1e-10)^lambda, lambda = 0.25.
    template <class real>
    static NSC_FUNCTION nsc::Vec<real> stretch([[maybe_unused]] nsc::Vec<real> size) {
        using namespace nsc;
        return inverse_root<4, real>(size + real(1e-10));
    }
    template <class real>
    static NSC_FUNCTION nsc::Vec<real> elasticity([[maybe_unused]] nsc::Vec<real> size, [[maybe_unused]] nsc::Vec<real> stretch) {
        using namespace nsc;
        return real(0x1.8000000000000p-1) + real(0x1.0000000000000p-2) * real(1e-10) * power_of<4>(stretch);
    }
};

[cuda/keys.cu]

// -------------------------------------------------------------------------------------- codelets
//
// Codelets of one shape share its code, which loads a codelet's rows, takes a step on pairs of them, and stores
// them. The most frequent shapes have straight-line code in registers; the others run from their table.

// The code of a shape, of `count()` comparators, `most()` at most.
template <int32_t shape>
struct Straight;

// 4 wires, 6 comparators.
template <>
struct Straight<0> {
    static NSC_FUNCTION constexpr bool is_straight() { return true; }
    static NSC_FUNCTION constexpr int32_t most() { return 6; }
    static NSC_FUNCTION constexpr int32_t count() { return 6; }
    static NSC_FUNCTION constexpr int32_t loads() { return 4; }
    template <class Rows, class Step>
    static NSC_STEP void run(Rows rows, Step step) {
        auto w0 = rows.load(0);
        auto w1 = rows.load(1);
        auto w2 = rows.load(2);
        auto w3 = rows.load(3);
        step(0, w0, w1);
        step(1, w2, w3);
        step(2, w0, w2);
        step(3, w1, w3);
        step(4, w0, w1);
        step(5, w2, w3);
        rows.store(0, w0);
        rows.store(1, w1);
        rows.store(2, w2);
        rows.store(3, w3);
    }
    template <class Rows, class Step>
    static NSC_STEP void run_backwards(Rows rows, Step step) {
        auto w0 = rows.load(0);
        auto w1 = rows.load(1);
        auto w2 = rows.load(2);
        auto w3 = rows.load(3);
        step(5, w2, w3);
        step(4, w0, w1);
        step(3, w1, w3);
        step(2, w0, w2);
        step(1, w2, w3);
        step(0, w0, w1);
        rows.store(0, w0);
        rows.store(1, w1);
        rows.store(2, w2);
        rows.store(3, w3);
    }
};

struct Tabled {
    static NSC_FUNCTION constexpr bool is_straight() { return false; }
    static NSC_FUNCTION constexpr int32_t most() { return longest_codelet; }
    NSC_FUNCTION int32_t count() const { return shape.comparators; }
    NSC_FUNCTION int32_t loads() const { return shape.wires; }
    template <bool backwards, class Rows, class Step>
    NSC_STEP void run_in(Rows rows, Step step) const {
        typename Rows::row held[widest_codelet];
        for (int32_t k = 0; k < shape.wires; ++k) held[k] = rows.load(k);
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const int32_t c = backwards ? shape.comparators - 1 - i : i;
            const Pair pair = shape_pairs[shape.first_pair + c];
            typename Rows::row &a = held[pair.a], &b = held[pair.b];
            step(c, a, b);
        }
        for (int32_t k = 0; k < shape.wires; ++k) rows.store(k, held[k]);
    }
    template <class Rows, class Step>
    NSC_STEP void run(Rows rows, Step step) const {
        run_in<false>(rows, step);
    }
    template <class Rows, class Step>
    NSC_STEP void run_backwards(Rows rows, Step step) const {
        run_in<true>(rows, step);
    }
    Shape shape;
};

template <bool backwards, class Code, class Rows, class Step>
NSC_STEP void run_code(Code code, Rows rows, Step step) {
    if constexpr (backwards)
        code.run_backwards(rows, step);
    else
        code.run(rows, step);
}

[cuda/rows.cu]

[cuda/kept_rows.cu]

// How far a codelet's wires lie from its first wire, read from the table.
struct SpreadOf {
    __device__ explicit SpreadOf(Codelet codelet) : places(spreads + codelet.spread) {}
    __device__ __forceinline__ int32_t operator[](int32_t k) const { return places[k]; }
    const uint16_t *places;
};

// The same of a spread that begins at a known place of the table: rows then lie at offsets that the compiler knows.
template <int32_t begin>
struct KnownSpread;
template <>
struct KnownSpread<0> {
    static __device__ constexpr Polynomial<int32_t, 4> places() { return { { 0, 1, 2, 3 } }; }
    __device__ __forceinline__ int32_t operator[](int32_t k) const { return places().at[k]; }
};
// Calls use(code, spread) with the code of a codelet's shape and the spread of its wires.
template <class Use>
__device__ __forceinline__ void with_code_of(Codelet codelet, Use use) {
    switch (codelet.shape) {
        case 0:
            if (codelet.spread == 0) return use(Straight<0>(), KnownSpread<0>());
            return;
    }
}

// ---------------------------------------------------------------------------- tiles of columns

// A lane holds 8 bytes of a row: two neighbouring columns of float32, one of float64.
template <class real>
constexpr int32_t lane_columns = 8 / int32_t(sizeof(real));

// Lanes of a tile of columns. The build chooses fewer where a block has too little shared memory.
#ifndef NSC_TILE_LANES
#define NSC_TILE_LANES 32
#endif
constexpr int32_t tile_lanes = NSC_TILE_LANES;

// A lane's columns of a row.
template <class real>
struct alignas(8) Columns {
    real at[lane_columns<real>];
};

template <class real>
__device__ __forceinline__ Columns<real> operator-(Columns<real> a, Columns<real> b) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] -= b.at[k];
    return a;
}

template <class real>
__device__ __forceinline__ Columns<real> operator-(Columns<real> a) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] = -a.at[k];
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

// What is routed. The weights come twice, by two pointers, although both may point to the same: the compiler then
// reads them again for the backward pass, instead of keeping them in registers from the forward pass on.
template <class real>
struct Call {
    Routing routing;
    int32_t batch;
    int32_t chunks;  // pieces that the columns of a sample are cut into
    const real *weights, *backward_weights;
    const void *payload;
    int64_t payload_stride;  // 0: one payload for all samples
    int32_t columns;
    bool gradient_first;  // whether the gradient runs forwards, with its weights, and then the payload backwards

    __device__ const int64_t *ranks_of(int32_t sample) const {
        return static_cast<const int64_t *>(payload) + sample * payload_stride;
    }
};

// A tile of columns, and this thread in it. Where a network has fewer wires than a tile has columns, a tile
// has columns of several samples, and where a payload has no more columns than a lane, of as many samples as it has
// lanes: `group` columns for each. A team of threads, one per lane, runs a codelet; teams share the codelets of a level.
template <class real>
struct Tile {
    static constexpr int32_t each = lane_columns<real>, width = tile_lanes * each;
    static constexpr int32_t threads = 32 * tile_warps, teams = threads / tile_lanes, tiles_per_block = routing_threads / threads;
    static constexpr int32_t full_group = widest_group < each ? each : widest_group < width ? widest_group : width;
    static_assert(teams == 1 || full_group == width, "teams share a tile of one sample");

    __device__ explicit Tile(const Call<real> &call)
        : call(call), team(int32_t(threadIdx.x) % threads / tile_lanes), lane(int32_t(threadIdx.x) % tile_lanes),
          tile(reinterpret_cast<Columns<real> *>(shared_memory) + int32_t(threadIdx.x) / threads * tile_lanes * int32_t(wires)),
          mine(tile + lane), mask((0xffffffffu >> (32 - tile_lanes)) << (int32_t(threadIdx.x) % 32 / tile_lanes * tile_lanes)),
          group(call.columns <= each ? each : full_group), samples(width / group), pieces((call.columns + group - 1) / group),
          tasks((call.batch + samples - 1) / samples * call.chunks) {}

    // This tile's number in the grid, and the number of tiles in the grid.
    __device__ static int32_t number() { return int32_t(blockIdx.x) * tiles_per_block + int32_t(threadIdx.x) / threads; }
    __device__ static int32_t count() { return int32_t(gridDim.x) * tiles_per_block; }

    __device__ static void wait() {
        if constexpr (tile_warps == 1)
            __syncwarp();
        else
            __syncthreads();
    }

    // Goes to some columns of a task: a group of samples and a piece of their columns.
    __device__ void go_to(int32_t task, int32_t piece) {
        const int32_t group_lanes = group / each;
        sample = task / call.chunks * samples + lane / group_lanes;
        column = piece * group + lane % group_lanes * each;
        is_sample = sample < call.batch;
        if (!is_sample) sample = call.batch - 1;
        present = !is_sample || column >= call.columns ? 0 : call.columns - column < each ? call.columns - column : each;
        if (!present) column = 0;
        list = routes_identity(call.routing) ? piece * group / cone_columns : cones;
        const Weights<const real> weights = weights_of(call.weights, sample), again = weights_of(call.backward_weights, sample);
        first = call.gradient_first ? weights.backward : weights.forward;
        second = call.gradient_first ? again.forward : again.backward;
    }
    __device__ int32_t first_piece(int32_t task) const { return pieces * (task % call.chunks) / call.chunks; }
    __device__ int32_t end_piece(int32_t task) const { return pieces * (task % call.chunks + 1) / call.chunks; }

    // Calls visit(row, this thread's columns of the row) for the rows that are this team's.
    template <class Visit>
    __device__ __forceinline__ void for_each_row(Visit visit) const {
        for (int32_t row = team; row < wires; row += teams) visit(row, mine[row * tile_lanes]);
    }

    // Calls visit(number of the codelet, its place in the list) for this team's codelets of each level in turn.
    template <class Visit>
    __device__ __forceinline__ void for_each_codelet(bool backwards, Visit visit) const {
        const int32_t *bounds = level_bounds[list];
        for (int32_t l = 0; l < codelet_levels; ++l) {
            const int32_t level = backwards ? codelet_levels - 1 - l : l, begin = bounds[level], end = bounds[level + 1];
            for (int32_t i = begin + team; i < end; i += teams) visit(listed[i], i - bounds[0]);
            if (end > begin) wait();
        }
    }

    Call<real> call;
    int32_t team, lane;
    Columns<real> *tile, *mine;  // the tile, and this lane's columns of its first row
    uint32_t mask;               // of the team's threads
    int32_t group, samples, pieces, tasks;
    // where it is
    int32_t sample = 0, column = 0, present = 0;  // this lane's first column, and the number of its columns that exist
    bool is_sample = false;
    int32_t list = cones;
    Mixes<const real> first = {}, second = {};  // the weights of a run through the codelets, and of one back
};

// The rows of a tensor (samples, wires, columns) that a tile's columns belong to, this lane's part.
template <class real, class T>
struct RowsOf {
    __device__ RowsOf(const Tile<real> &tile, T *start)
        : first(start + tile.column), columns(tile.call.columns), present(tile.present),
          aligned(tile.call.columns % lane_columns<real> == 0 && reinterpret_cast<uint64_t>(start) % sizeof(Columns<real>) == 0) {}
    T *first;
    int32_t columns, present;
    bool aligned;  // whether a lane's columns lie at a multiple of their bytes; then all of them are there, or none
};

template <class real, class T>
__device__ __forceinline__ RowsOf<real, T> rows_of(const Tile<real> &tile, T *tensor, int64_t stride) {
    return {tile, tensor + tile.sample * stride};
}

// Fills the tile from a tensor. Several rows are requested before the first is stored, since each request takes
// the time of a read from memory.
template <bool aligned, class real>
__device__ __forceinline__ void read_rows(const Tile<real> &tile, const RowsOf<real, const real> &rows) {
    constexpr int32_t teams = Tile<real>::teams, each = lane_columns<real>, at_a_time = 8;
    for (int32_t first = tile.team; first < wires; first += at_a_time * teams) {
        Columns<real> read[at_a_time] = {};
        NSC_UNROLL
        for (int32_t i = 0; i < at_a_time; ++i) {
            const int32_t row = first + i * teams, present = row < wires ? rows.present : 0;
            const real *from = rows.first + int64_t(row) * rows.columns;
            if constexpr (aligned) {
                if (present) read[i] = *reinterpret_cast<const Columns<real> *>(from);
            } else {
                for (int32_t k = 0; k < each; ++k)
                    if (k < present) read[i].at[k] = from[k];
            }
        }
        NSC_UNROLL
        for (int32_t i = 0; i < at_a_time; ++i)
            if (first + i * teams < wires) tile.mine[(first + i * teams) * tile_lanes] = read[i];
    }
}

template <class real>
__device__ __forceinline__ void read_rows(const Tile<real> &tile, const RowsOf<real, const real> &rows) {
    if (rows.aligned)
        read_rows<true>(tile, rows);
    else
        read_rows<false>(tile, rows);
}

// Writes the tile, times a factor, to a tensor.
template <bool aligned, class real>
__device__ __forceinline__ void write_rows(const Tile<real> &tile, const RowsOf<real, real> &rows, real factor) {
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

template <class real>
__device__ __forceinline__ void write_rows(const Tile<real> &tile, const RowsOf<real, real> &rows, real factor) {
    if (rows.aligned)
        write_rows<true>(tile, rows, factor);
    else
        write_rows<false>(tile, rows, factor);
}

[cuda/losses.cu]

// The difference of two rows. A comparator's weight is multiplied with it.
template <class Row>
NSC_STEP Row difference(const Row &a, const Row &b) {
    return a - b;
}

[cuda/routing.cu]

}  // namespace

// ----------------------------------------------------------------------------------- the kernels

// What these kernels are. The runtime compares it with the manifest, so that a changed manifest cannot make a launch
// misread its memory.
extern "C" __device__ const char nsc_facts[] = "{\"abi\": 9, \"kind\": \"relaxed\", \"name\": \"bitonic_4\", \"library\": \"[library]\", \"network\": \"8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a\", \"proof\": \"proved\", \"n\": 4, \"size\": 6, \"depth\": 3, \"selection\": null, \"outputs\": null, \"sigmoid\": \"logistic\", \"art_lambda\": 0.25, \"error_free\": false, \"reals\": {\"float32\": [\"float32\", \"bfloat16\", \"float16\"]}, \"cuda\": {\"slots\": 16, \"arrays\": 3, \"kept_rows\": 16, \"kept_rows_permutation\": 16, \"tile_threads\": 32, \"tile_lanes\": 32, \"widest_group\": 4, \"routing_threads\": 128, \"sample_threads\": 8, \"keys_threads\": 128}, \"network.json\": \"e36af305ca221a49831e525e84b2d0b946b7d99fe6e21128b5a0195e5e503e65\", \"proof.json\": \"f7d0e33dcfeeabdf085697252fcd479f178e69c215cd07dad070d75701da6e21\"}";

// The build compiles parts of these functions, each by itself, with the name of a part defined. Without a name it
// compiles all of them.
#if !defined(NSC_FORWARD) && !defined(NSC_BACKWARD) && !defined(NSC_REVERSED)
#define NSC_FORWARD
#define NSC_BACKWARD
#define NSC_REVERSED
#endif

// float32
#if defined(NSC_FORWARD)
extern "C" __global__ void __launch_bounds__(keys_threads) nsc_keys_f32(
    int64_t batch, const float *__restrict__ x, const float *__restrict__ steepness, int64_t steepness_stride,
    const int64_t *__restrict__ target, int64_t target_stride, float *__restrict__ values, float *__restrict__ weights) {
    keys_forward<float>(batch, x, steepness, steepness_stride, target, target_stride, values, weights);
}

extern "C" __global__ void __launch_bounds__(routing_threads, 3) nsc_route_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const void *__restrict__ payload,
    int64_t payload_stride, int32_t columns, float *__restrict__ routed, double *__restrict__ losses) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, weights, payload, payload_stride, columns, false};
    route_forward<float, false>(call, routed, losses);
}
#endif

#if defined(NSC_BACKWARD)
extern "C" __global__ void __launch_bounds__(keys_threads) nsc_keys_backward_f32(
    int32_t batch, const float *__restrict__ steepness, int64_t steepness_stride, const float *__restrict__ values_grad,
    const float *__restrict__ weights, const float *__restrict__ weight_grads, int32_t chunks,
    float *__restrict__ x_grad, float *__restrict__ steepness_grad) {
    keys_backward<float>(batch, steepness, steepness_stride, values_grad, weights, weight_grads, chunks, x_grad, steepness_grad);
}

extern "C" __global__ void __launch_bounds__(keys_threads) nsc_sum_f32(
    int32_t batch, int32_t chunks, float *__restrict__ weight_grads) {
    sum_chunks<float>(batch, chunks, weight_grads);
}

extern "C" __global__ void __launch_bounds__(routing_threads, 1) nsc_route_backward_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const float *__restrict__ backward_weights,
    const void *__restrict__ forwards, int64_t forwards_stride, const void *__restrict__ backwards, int64_t backwards_stride,
    int32_t columns, float *__restrict__ weight_grads, float *__restrict__ payload_grad, double *__restrict__ losses,
    void *__restrict__ kept, int32_t kept_rows) {
    const bool reversed = is_reversed(static_cast<Routing>(routing));
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, backward_weights, reversed ? backwards : forwards,
                                     reversed ? backwards_stride : forwards_stride, columns, reversed};
    route_backward<float>(
        call, {static_cast<const float *>(forwards), forwards_stride}, {static_cast<const float *>(backwards), backwards_stride}, weight_grads, payload_grad, losses, static_cast<Columns<float> *>(kept), kept_rows);
}
#endif

#if defined(NSC_REVERSED)
extern "C" __global__ void __launch_bounds__(routing_threads, 3) nsc_reversed_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const void *__restrict__ payload,
    int64_t payload_stride, int32_t columns, float *__restrict__ routed, double *__restrict__ losses) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, weights, payload, payload_stride, columns, false};
    route_forward<float, true>(call, routed, losses);
}
#endif
