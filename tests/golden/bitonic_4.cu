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
//            a thread's columns are its own, and codelets of at most 16 wires run in registers.
//
// The backward routing keeps what each codelet loads and recomputes what lies inside; one reverse keys
// pass then turns gradients of weights and values into gradients of x and of the steepness.
//
// Only the shapes decide how sums are cut, and their parts are added in a fixed order, without atomics:
// the same input gives the same bits. Calls do not check values on the host, which would have to wait for the
// device: an invalid target or steepness gives NaN.
//
// This is the network and its relaxation. What runs them, and is the same for all, is nsc's library of headers.

#include <nsc/relaxed/cuda/keys.h>
#include <nsc/relaxed/cuda/routing.h>
#include <nsc/relaxed/cuda/sums.h>
#include <nsc/relaxed/relaxations.h>

// Lanes of a tile of columns. The build chooses fewer where a block has too little shared memory.
#ifndef NSC_TILE_LANES
#define NSC_TILE_LANES 32
#endif

namespace {

// Shape, spread, first wire, first slot.
NSC_TABLE nsc::cuda::Codelet codelets[] = {
    {0, 0, 0, 0}, {},
};

NSC_TABLE uint16_t spreads[] = {
    0, 1, 2, 3, 0,
};

// Wires, first pair, comparators.
NSC_TABLE nsc::cuda::Shape shapes[] = {
    {4, 0, 6}, {0, 0, 0},
};

NSC_TABLE nsc::cuda::Pair shape_pairs[] = {
    {0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}, {2, 3}, {},
};

// The rounds of the keys pass, each 8 comparators or none: lo, hi, slot.
NSC_TABLE nsc::cuda::Comparator in_rounds[] = {
    {0, 1, 0}, {3, 2, 1}, {}, {}, {}, {}, {}, {}, {0, 2, 2}, {1, 3, 3}, {}, {}, {}, {}, {}, {},
    {0, 1, 4}, {2, 3, 5}, {}, {}, {}, {}, {}, {}, {},
};

// The slots of the merge that is taken apart, by level and then from wire 0 on.
NSC_TABLE int32_t merge_slots[] = {
    0,
};

// The codelets that each 32 columns of P reach, by level; then all codelets.
NSC_TABLE int32_t listed_codelets[] = {
    0, 0, 0,
};

NSC_TABLE int32_t bounds_of_levels[][1 + 1] = {
    {0, 1}, {1, 2},
};

// The code of the most frequent shapes, see nsc/relaxed/cuda/codelets.h.
template <int32_t shape>
struct Straight;

// 4 wires, 6 comparators.
template <>
struct Straight<0> {
    static NSC_FUNCTION constexpr bool is_straight() { return true; }
    static NSC_FUNCTION constexpr int32_t most() { return 6; }
    static NSC_FUNCTION constexpr int32_t count() { return 6; }
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

// See nsc/relaxed/cuda/network.h.
struct Network {
    static constexpr int64_t wires = 4;
    static constexpr int64_t slots = 16;
    static constexpr int64_t widest_codelet = 16, longest_codelet = 16;
    static constexpr int32_t tile_warps = 1, tile_lanes = NSC_TILE_LANES, widest_group = 4;
    static constexpr int32_t sample_threads = 8;
    static constexpr int32_t keys_threads = 128, routing_threads = 128;
    static constexpr int32_t forward_blocks = 3;
    static constexpr int32_t kept_rows_in_block = 16;
    static constexpr int32_t rounds = 3, codelet_levels = 1;
    static constexpr int32_t merge_layers = 0;
    static constexpr int32_t front_levels = 0, front_slots = 0;
    static constexpr int32_t cone_columns = 32, cones = 1;

    static NSC_STEP nsc::cuda::Codelet codelet(int32_t number) { return codelets[number]; }
    static NSC_STEP int32_t spread(int32_t place) { return spreads[place]; }
    static NSC_STEP nsc::cuda::Shape shape(int32_t number) { return shapes[number]; }
    static NSC_STEP nsc::cuda::Pair pair(int32_t number) { return shape_pairs[number]; }
    static NSC_STEP nsc::cuda::Comparator in_round(int32_t place) { return in_rounds[place]; }
    static NSC_STEP int32_t merge_slot(int32_t place) { return merge_slots[place]; }
    static NSC_STEP int32_t listed(int32_t place) { return listed_codelets[place]; }
    static NSC_STEP const int32_t *level_bounds(int32_t list) { return bounds_of_levels[list]; }

    template <class Plan, class Use>
    static NSC_STEP void with_code_of(nsc::cuda::Codelet codelet, Use use) {
        switch (codelet.shape) {
            case 0: return use(Straight<0>());
        }
    }
};

// logistic, ART λ = 0.25. See nsc/relaxed/relaxations.h.
using Relaxation = nsc::Relaxation<nsc::logistic, nsc::Root<4>, false>;

using Plan = nsc::cuda::Plan<Network, Relaxation>;

}  // namespace

// What these kernels are. The runtime compares it with the manifest, so that a changed manifest cannot make a launch
// misread its memory.
extern "C" __device__ const char nsc_facts[] = "{\"abi\": 11, \"kind\": \"relaxed\", \"name\": \"bitonic_4\", \"library\": \"[library]\", \"network\": \"8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a\", \"proof\": \"proved\", \"targets\": [\"cuda\"], \"n\": 4, \"size\": 6, \"depth\": 3, \"selection\": null, \"outputs\": null, \"sigmoid\": \"logistic\", \"art_lambda\": 0.25, \"error_free\": false, \"reals\": {\"float32\": [\"float32\", \"bfloat16\", \"float16\"]}, \"cuda\": {\"slots\": 16, \"arrays\": 3, \"kept_rows\": 16, \"kept_rows_permutation\": 16, \"kept_rows_front\": 0, \"kept_rows_in_block\": 16, \"merge_layers\": 0, \"tile_threads\": 32, \"tile_lanes\": 32, \"widest_group\": 4, \"routing_threads\": 128, \"sample_threads\": 8, \"keys_threads\": 128}, \"network.json\": \"e36af305ca221a49831e525e84b2d0b946b7d99fe6e21128b5a0195e5e503e65\", \"proof.json\": \"afe7ae5c6f9874ffc9b7df9879af9883583a7f01d3ad71f578b932c62b4df20e\"}";

// The build compiles parts of these functions, each by itself, with the name of a part defined. Without a name it
// compiles all of them.
#if !defined(NSC_FORWARD) && !defined(NSC_BACKWARD) && !defined(NSC_REVERSED)
#define NSC_FORWARD
#define NSC_BACKWARD
#define NSC_REVERSED
#endif

// float32
#if defined(NSC_FORWARD)
extern "C" __global__ void __launch_bounds__(Plan::keys_threads) nsc_keys_f32(
    int64_t batch, const float *__restrict__ x, const float *__restrict__ steepness, int64_t steepness_stride,
    const int64_t *__restrict__ target, int64_t target_stride, float *__restrict__ values, float *__restrict__ weights) {
    nsc::cuda::keys_forward<Plan, float>(batch, x, steepness, steepness_stride, target, target_stride, values, weights);
}
#endif

#if defined(NSC_BACKWARD)
extern "C" __global__ void __launch_bounds__(Plan::keys_threads) nsc_keys_backward_f32(
    int32_t batch, const float *__restrict__ steepness, int64_t steepness_stride, const float *__restrict__ values_grad,
    const float *__restrict__ weights, const float *__restrict__ weight_grads, int32_t chunks,
    float *__restrict__ x_grad, float *__restrict__ steepness_grad) {
    nsc::cuda::keys_backward<Plan, float>(batch, steepness, steepness_stride, values_grad, weights, weight_grads, chunks, x_grad, steepness_grad);
}

extern "C" __global__ void __launch_bounds__(Plan::keys_threads) nsc_sum_f32(
    int32_t batch, int32_t chunks, float *__restrict__ weight_grads,
    const float *__restrict__ weights, float *products, float *first_products,
    int32_t first_rows) {
    nsc::cuda::sum_chunks<Plan, float>(
        batch, chunks, weight_grads, weights, {products, first_products, first_rows});
}

extern "C" __global__ void __launch_bounds__(Plan::routing_threads, 1) nsc_route_backward_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const float *__restrict__ backward_weights,
    const void *__restrict__ forwards, int64_t forwards_stride, const void *__restrict__ backwards, int64_t backwards_stride,
    int32_t columns, float *__restrict__ weight_grads, float *__restrict__ payload_grad, double *__restrict__ losses,
    void *__restrict__ kept, int32_t kept_rows, float *products, float *first_products,
    int32_t first_rows) {
    const bool reversed = nsc::is_reversed(static_cast<nsc::Routing>(routing));
    const nsc::cuda::Call<float> call = {static_cast<nsc::Routing>(routing), batch, chunks, weights, backward_weights, reversed ? backwards : forwards,
                                     reversed ? backwards_stride : forwards_stride, columns, reversed};
    nsc::cuda::route_backward<Plan, float>(
        call, {static_cast<const float *>(forwards), forwards_stride}, {static_cast<const float *>(backwards), backwards_stride}, weight_grads, payload_grad, losses, static_cast<nsc::cuda::Columns<float> *>(kept), kept_rows,
        {products, first_products, first_rows});
}
#endif

#if defined(NSC_FORWARD)
extern "C" __global__ void __launch_bounds__(Plan::routing_threads, Plan::forward_blocks) nsc_route_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const void *__restrict__ payload,
    int64_t payload_stride, int32_t columns, float *__restrict__ routed, double *__restrict__ losses) {
    const nsc::cuda::Call<float> call = {static_cast<nsc::Routing>(routing), batch, chunks, weights, weights, payload, payload_stride, columns, false};
    nsc::cuda::route_forward<Plan, false>(call, routed, losses);
}
#endif

#if defined(NSC_REVERSED)
extern "C" __global__ void __launch_bounds__(Plan::routing_threads, Plan::forward_blocks) nsc_reversed_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const void *__restrict__ payload,
    int64_t payload_stride, int32_t columns, float *__restrict__ routed, double *__restrict__ losses) {
    const nsc::cuda::Call<float> call = {static_cast<nsc::Routing>(routing), batch, chunks, weights, weights, payload, payload_stride, columns, false};
    nsc::cuda::route_forward<Plan, true>(call, routed, losses);
}
#endif
