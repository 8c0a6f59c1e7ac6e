// The keys pass on a GPU: rounds of comparators; the threads of a sample share its values.
#pragma once

#include <nsc/cuda/shared_memory.h>
#include <nsc/relaxed/cuda/network.h>
#include <nsc/relaxed/targets.h>
#include <nsc/relaxed/weights.h>

namespace nsc::cuda {

// A sample's wires in shared memory, with gaps so that wires 32 apart lie in different banks. No
// wire lies at the last place.
template <class Plan>
constexpr int32_t samples_per_block = Plan::keys_threads / Plan::sample_threads;
template <class Plan>
constexpr int32_t sample_places = Plan::wires + Plan::wires / 32 + 1;

template <class Plan>
__device__ inline int32_t place_of(int32_t wire) {
    return Plan::wires > 32 ? wire + wire / 32 : wire;
}

// This thread's part of a sample's work. Samples that take a warp at most share a block. A thread
// without a sample works on the last sample and stores nothing, since it must reach the barriers.
template <class Plan>
struct Share {
    static constexpr int32_t threads = Plan::sample_threads;
    static_assert(threads <= 32 || threads == Plan::keys_threads,
                  "a block's barrier is a sample's");

    __device__ explicit Share(int64_t batch)
        : thread(int32_t(threadIdx.x) % threads),
          place(int32_t(threadIdx.x) / threads),
          sample(int64_t(blockIdx.x) * samples_per_block<Plan> + place),
          is_there(threads > 32 || sample < batch) {
        if (!is_there) sample = batch - 1;
    }
    // Waits for the other threads of the sample.
    __device__ static void wait() {
        if constexpr (threads <= 32)
            __syncwarp();
        else
            __syncthreads();
    }
    int32_t thread, place;
    int64_t sample;
    bool is_there;
};

// Calls visit(comparator, what fetch(slot) returned) for this thread's comparators, round by round,
// with a barrier behind each. A round's reads are requested in the rounds before it: its comparator
// two rounds ahead, its fetched numbers one.
template <class Plan, class Fetch, class Visit>
__device__ __forceinline__ void for_each_comparator(bool backwards, const Share<Plan> &share,
                                                    Fetch fetch, Visit visit) {
    using Fetched = decltype(fetch(0));
    const auto comparator_of = [&](int32_t turn) {
        const int32_t round = backwards ? Plan::rounds - 1 - turn : turn;
        return turn < Plan::rounds ? Plan::in_round(round * Plan::sample_threads + share.thread)
                                   : Comparator{};
    };
    const auto fetched_for = [&](Comparator comparator) {
        return comparator.is_there() ? fetch(comparator.slot) : Fetched{};
    };
    Comparator next = comparator_of(0), second = comparator_of(1);
    Fetched fetched_next = fetched_for(next);
    for (int32_t turn = 0; turn < Plan::rounds; ++turn) {
        const Comparator comparator = next;
        const Fetched fetched = fetched_next;
        next = second;
        fetched_next = fetched_for(next);
        second = comparator_of(turn + 2);
        if (comparator.is_there()) visit(comparator, fetched);
        share.wait();
    }
}

// The fetched value of a pass that needs no numbers.
struct Nothing {};

// The steepness, or NaN for an invalid one.
template <class real>
__device__ inline real checked(real steepness) {
    return steepness > 0 && steepness < infinity<real>() ? steepness : not_a_number<real>();
}

// Whether the ranks of a sample's target are ranks, and differ where they are not `ignored`; uses
// the sample's shared memory. items: takes the item of each rank, -1 for none; or null.
template <class Plan>
__device__ inline bool are_target(const int64_t *ranks, const Share<Plan> &share, void *shared,
                                  int32_t *items) {
    int32_t *item_of = static_cast<int32_t *>(shared), *is_wrong = item_of + Plan::wires;
    if (share.thread == 0) *is_wrong = 0;
    if (items)
        for (int32_t i = share.thread; i < Plan::wires; i += Plan::sample_threads) item_of[i] = -1;
    share.wait();
    const auto for_each_item = [&](auto visit) {
        for (int32_t i = share.thread; i < Plan::wires; i += Plan::sample_threads)
            if (ranks[i] != ignored) visit(i, ranks[i]);
    };
    for_each_item([&](int32_t i, int64_t rank) {
        if (rank < 0 || rank >= Plan::wires)
            atomicExch(is_wrong, 1);
        else
            atomicExch(item_of + rank, i);
    });
    share.wait();
    // If two items have one rank, one finds the other in its place.
    for_each_item([&](int32_t i, int64_t rank) {
        if (rank >= 0 && rank < Plan::wires && item_of[rank] != i) atomicExch(is_wrong, 1);
    });
    share.wait();
    const bool is_right = !*is_wrong;
    if (items)
        for (int32_t i = share.thread; i < Plan::wires; i += Plan::sample_threads)
            items[i] = item_of[i];
    share.wait();
    return is_right;
}

// The numbers that a comparator leaves for the routing and for the backward pass.
template <class real>
struct Compared {
    Mix<real> forward, backward;
    real gap;
};

// From the values of two wires to their mixed values; returns the weights.
template <class Relaxation, class real>
__device__ inline Compared<real> compare(real &lo, real &hi, real steepness) {
    const real a = lo, b = hi;
    Compared<real> made;
    made.gap = b - a;
    const bool finite = magnitude<real>(made.gap) < infinity<real>();
    const Sigmoid<real> f =
        sigmoid<Relaxation, real>(steepness * phi<Relaxation, real>(finite ? made.gap : real(0)));
    made.backward = {f.keep, f.swap};
    if (!finite) {  // infinite values sort exactly; NaN spreads
        const bool tie = a == b;
        made.gap = tie ? real(0) : made.gap;
        if (magnitude<real>(made.gap) == infinity<real>() ||
            (tie && magnitude<real>(a) == infinity<real>())) {
            const real limit = tie ? real(0.5) : made.gap > 0 ? real(1) : real(0);
            made.backward.keep = steepness == steepness ? limit : steepness;
            made.backward.swap = steepness == steepness ? 1 - limit : steepness;
            made.gap = infinity<real>();
        } else if (made.gap != made.gap) {
            made.backward = {made.gap, made.gap};
        }
    }
    made.forward = made.backward;
    if constexpr (Relaxation::error_free) {
        if (steepness == steepness && a == a && b == b)
            made.forward.keep = b < a ? real(0) : real(1);  // a tie keeps its places
        made.forward.swap = 1 - made.forward.keep;
    }
    if (finite) {
        lo = mixed(made.forward, a, b), hi = mixed(made.forward, b, a);
    } else {  // 0 times infinity counts as 0
        const bool a_infinite = magnitude<real>(a) == infinity<real>(),
                   b_infinite = magnitude<real>(b) == infinity<real>();
        const bool no_keep = made.forward.keep == 0, no_swap = made.forward.swap == 0;
        lo = mixed(made.forward, a_infinite && no_keep ? real(0) : a,
                   b_infinite && no_swap ? real(0) : b);
        hi = mixed(made.forward, b_infinite && no_keep ? real(0) : b,
                   a_infinite && no_swap ? real(0) : a);
    }
    return made;
}

// values: may be null; weights: null where they are not needed; target: null, or ranks that must be
// a permutation.
template <class Plan, class real>
__device__ inline void keys_forward(int64_t batch, const real *x, const real *steepness,
                                    int64_t steepness_stride, const int64_t *target,
                                    int64_t target_stride, real *values, real *weights) {
    const Share<Plan> share(batch);
    real *y = reinterpret_cast<real *>(shared_memory) + share.place * sample_places<Plan>;
    real slope = checked(steepness[share.sample * steepness_stride]);
    const bool takes_merge = Plan::merge_layers > 0 && target && weights && share.is_there;
    int32_t *const items =
        takes_merge ? reinterpret_cast<int32_t *>(items_of<Plan>(weights, share.sample)) : nullptr;
    if (target && !are_target(target + share.sample * target_stride, share, y, items))
        slope = not_a_number<real>();
    for (int32_t i = share.thread; i < Plan::wires; i += Plan::sample_threads)
        y[place_of<Plan>(i)] = x[share.sample * Plan::wires + i];
    share.wait();
    const Weights<real> kept = weights_of<Plan>(weights, share.sample);
    const auto fetch = [](int32_t) { return Nothing(); };
    for_each_comparator(false, share, fetch, [&](Comparator c, Nothing) {
        const Compared<real> made = compare<typename Plan::Relaxation>(
            y[place_of<Plan>(c.lo())], y[place_of<Plan>(c.hi())], slope);
        if (!weights || !share.is_there) return;
        const int32_t slot = c.slot;
        kept.forward.keep[slot] = made.forward.keep, kept.forward.swap[slot] = made.forward.swap;
        if constexpr (Plan::Relaxation::error_free)
            kept.backward.keep[slot] = made.backward.keep,
            kept.backward.swap[slot] = made.backward.swap;
        kept.gap[slot] = made.gap;
    });
    if (takes_merge) {  // all threads of the sample have stored its weights
        const Mixes<real> of_merge = merge_of<Plan>(weights, share.sample);
        for (int32_t i = share.thread; i < merge_comparators<Plan>; i += Plan::sample_threads) {
            const int32_t slot = Plan::merge_slot(i);
            of_merge.keep[i] = kept.forward.keep[slot], of_merge.swap[i] = kept.forward.swap[slot];
        }
    }
    if (!values || !share.is_there) return;
    for (int32_t i = share.thread; i < Plan::wires; i += Plan::sample_threads)
        values[share.sample * Plan::wires + i] = y[place_of<Plan>(i)];
}

// The sum over the threads of a sample, in its first; uses the sample's shared memory.
template <class Plan, class real>
__device__ inline real sum_over_sample(real part, const Share<Plan> &share, real *shared) {
    constexpr int32_t threads = Plan::sample_threads;
    for (int32_t bit = threads < 32 ? threads / 2 : 16; bit; bit /= 2)
        part += __shfl_xor_sync(0xffffffffu, part, bit);
    if (threads <= 32) return part;
    if (share.thread % 32 == 0) shared[share.thread / 32] = part;
    share.wait();
    real sum = 0;
    for (int32_t warp = 0; share.thread == 0 && warp < threads / 32; ++warp) sum += shared[warp];
    return sum;
}

// The numbers that the backward pass reads for a comparator: its gap, the gradient of its weight,
// and its weights.
template <class real>
struct Fetched {
    real gap, weight_grad;
    Mix<real> soft;
};

// Takes gradients of the values and of the weights to gradients of x and of the steepness.
// Gradients of the values: null for zero. Gradients of the weights: null, or in the first of
// `chunks` places per sample. Gradient of the steepness: null where it is not needed.
template <class Plan, class real>
__device__ inline void keys_backward(int32_t batch, const real *steepness, int64_t steepness_stride,
                                     const real *values_grad, const real *weights,
                                     const real *weight_grads, int32_t chunks, real *x_grad,
                                     real *steepness_grad) {
    using Relaxation = typename Plan::Relaxation;
    const Share<Plan> share(batch);
    real *grad = reinterpret_cast<real *>(shared_memory) + share.place * sample_places<Plan>,
         steepness_part = 0;
    const real slope = checked(steepness[share.sample * steepness_stride]);
    const real *from = values_grad ? values_grad + share.sample * Plan::wires : nullptr;
    for (int32_t i = share.thread; i < Plan::wires; i += Plan::sample_threads)
        grad[place_of<Plan>(i)] = from ? from[i] : real(0);
    share.wait();
    const Weights<const real> kept = weights_of<Plan>(weights, share.sample);
    const real *weight_grad =
        weight_grads ? weight_grads + share.sample * chunks * Plan::slots : nullptr;
    const auto fetch = [&](int32_t slot) {
        return Fetched<real>{kept.gap[slot],
                             weight_grad ? weight_grad[slot] : real(0),
                             {kept.backward.keep[slot], kept.backward.swap[slot]}};
    };
    for_each_comparator(true, share, fetch, [&](Comparator c, Fetched<real> fetched) {
        real &at_lo = grad[place_of<Plan>(c.lo())], &at_hi = grad[place_of<Plan>(c.hi())];
        const real a = at_lo, b = at_hi, gap = fetched.gap,
                   into = fetched.weight_grad - (a - b) * gap;
        const Mix<real> soft = fetched.soft;
        const bool infinite = gap == infinity<real>();
        const real activation = phi<Relaxation, real>(infinite ? real(0) : gap),
                   stretch = phi_slope<Relaxation, real>(infinite ? real(0) : gap);
        // A weight of 0 is constant, and a gradient that reaches it may be infinite.
        const bool constant = infinite || soft.keep == 0 || soft.swap == 0;
        const real through = constant ? real(0)
                                      : into * sigmoid_slope<Relaxation, real>(
                                                   slope * activation, soft.keep, soft.swap);
        const real shift = through * slope * stretch;
        at_lo = mixed(soft, a, b) - shift;
        at_hi = mixed(soft, b, a) + shift;
        steepness_part += through * activation;
    });
    for (int32_t i = share.thread; share.is_there && i < Plan::wires; i += Plan::sample_threads)
        x_grad[share.sample * Plan::wires + i] = grad[place_of<Plan>(i)];
    if (!steepness_grad) return;
    share.wait();
    const real sum = sum_over_sample(steepness_part, share, grad);
    if (share.is_there && share.thread == 0) steepness_grad[share.sample] = sum;
}

}  // namespace nsc::cuda
