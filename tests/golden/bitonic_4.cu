// bitonic_4: differentiable sorting of 4 values on a GPU.
//
// Made by:    nsc compile --net bitonic --n 4 --target cuda
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
// so the network is a product P of such mixes and y = P x. Everything is one of two passes:
//
//   keys     x -> the weights of all comparators and the sorted values y. 8 threads share a sample,
//            whose values lie in shared memory.
//   routing  the same mixes applied to the rows of a payload: P V in the order of the layers, P^T U in
//            the reverse order. P itself is the payload V = I. A tile of columns lies in shared memory,
//            a thread's column is its own, and codelets, pieces of at most 16 wires, run in registers.
//
// The backward routing keeps what each codelet loads and recomputes what lies inside; one reverse keys
// pass then turns gradients of weights and values into gradients of x and of the steepness.
//
// Sums are cut into pieces by shape alone and added in a fixed order, without atomics: the same input
// gives the same bits. A steepness or a target that makes no sense gives NaN, since a check on the
// host would have to wait for the device.

#if defined(__CUDACC_RTC__)
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <math.h>
#include <stdint.h>
#endif

#define NSC_INLINE
#define NSC_UNROLL _Pragma("unroll")

// The block's memory, as much as the launch asks for.
#ifndef shared_memory
extern __shared__ __align__(16) unsigned char shared_memory[];
#endif

namespace {

constexpr int64_t wires = 4;
constexpr int64_t comparators = 6;
constexpr int64_t levels = 3;  // at most
constexpr int64_t codelet_count = 1;
constexpr int64_t loads = 4;  // wires that the codelets load together
constexpr int64_t slots = 16, slot_alignment = 16;  // places for weights
constexpr int64_t widest_codelet = 16, longest_codelet = 16;  // most wires, most slots

// The comparators, cut into codelets that are run on the wires they load: base + spreads[spread + k] for
// each k. A codelet's weights begin at slot `slot`.
struct Codelet {
    int32_t shape, spread, base, slot, turns;
};

__device__ const Codelet codelets[] = {
    {0, 0, 0, 0, 0}, {},
};

__device__ const uint16_t spreads[] = {
    0, 1, 2, 3, 0,
};

// What codelets of one shape do: comparators between places in their spreads of wires.
struct Shape {
    int32_t wires, first_pair, comparators;
};

struct Pair {
    uint8_t a, b;
};

__device__ const Shape shapes[] = {
    {4, 0, 6}, {0, 0, 0},
};

__device__ const Pair shape_pairs[] = {
    {0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}, {2, 3}, {0, 0},
};

constexpr int64_t outputs = wires;

__device__ inline int64_t output_wire(int64_t place) { return place; }

// Whether a codelet's comparator leaves the minimum on its second wire.
__device__ const uint64_t turns[][2] = {
    {0x2, 0x0},
};

__device__ inline bool is_turned(Codelet codelet, int32_t comparator) {
    return turns[codelet.turns][comparator / 64] >> comparator % 64 & 1;
}

enum Routing { none, permutation, route, transposed, cross_entropy, binary_cross_entropy, rows };

// ---------------------------------------------------------------------------------------- levels
//
// Codelets are listed level by level: those of a level take their wires from levels before it, so they
// may run at the same time. Inside a codelet a step is a few comparators that share no wire.

constexpr int32_t codelet_levels = 1;
constexpr int32_t step_width = 8, most_steps = 3;  // comparators in a step, steps in a codelet
constexpr int32_t tile_warps = 1;  // warps that share a tile of columns
constexpr int32_t widest_group = 4;  // threads of a tile that share a sample of more than one column
constexpr int32_t sample_threads = 8;  // threads that share a sample's keys
constexpr int32_t keys_threads = 128, routing_threads = 128;  // threads of a block

// Where the codelets of each level end.
__device__ const int32_t level_ends[] = {
    1, 0,
};

// The steps of each shape: their number, and where in step_ends the comparator is that each begins with;
// the next entry is its end.
struct Steps {
    int32_t first, count;
};

__device__ const Steps steps_of[] = {
    {0, 3}, {0, 0},
};

__device__ const uint8_t step_ends[] = {
    0, 2, 4, 6, 0,
};

// Light cones: for each 32 columns of P the codelets that they reach, in order, and the rows that those
// before each of them load; through all others these columns are zero. The last list has all codelets.
constexpr int32_t cone_columns = 32, cones = 1;

struct Listed {
    int32_t codelet, rows_before;
};

__device__ Listed listed[cones + 1][codelet_count + 1];
__device__ int32_t listed_ends[cones + 1][codelet_levels + 1];

// What reaches one of a codelet's wires reaches, behind it, all of them.
__device__ inline void list_codelets() {
    const int32_t list = int32_t(blockIdx.x), lane = int32_t(threadIdx.x);
    unsigned char *reached = shared_memory;
    for (int32_t w = lane; w < wires; w += 32) reached[w] = list == cones || w / cone_columns == list;
    __syncwarp();
    int32_t count = 0, rows = 0, c = 0;
    for (int32_t level = 0; level < codelet_levels; ++level) {
        for (; c < level_ends[level]; ++c) {
            const Codelet codelet = codelets[c];
            const int32_t width = shapes[codelet.shape].wires;
            unsigned char *wire = reached + codelet.base + (lane < width ? spreads[codelet.spread + lane] : 0);
            if (!__any_sync(0xffffffffu, lane < width && *wire)) continue;
            if (lane < width) *wire = 1;
            if (lane == 0) listed[list][count] = {c, rows};
            ++count, rows += width;
            __syncwarp();
        }
        if (lane == 0) listed_ends[list][level] = count;
    }
}

// --------------------------------------------------------------------------------------- threads

// A thread computes one number where a processor's register would hold many.
template <class T>
using Vec = T;

// Whole numbers as wide as a real.
template <class real>
struct WholeOf {
    using type = int64_t;
};
template <>
struct WholeOf<float> {
    using type = int32_t;
};
template <class real>
using Whole = typename WholeOf<real>::type;

template <class T>
__device__ inline T all(T value) {
    return value;
}

// Numbers and their bits, whole numbers as numbers.
template <class real>
__device__ inline Whole<real> bits_of(real v) {
    if constexpr (sizeof(real) == 4)
        return __float_as_int(v);
    else
        return __double_as_longlong(v);
}

template <class real>
__device__ inline real from_bits(Whole<real> bits) {
    if constexpr (sizeof(real) == 4)
        return __int_as_float(bits);
    else
        return __longlong_as_double(bits);
}

template <class real>
__device__ inline real converted(Whole<real> v) {
    return real(v);
}

template <class real>
__device__ inline real infinity() {
    return from_bits<real>(sizeof(real) == 4 ? Whole<real>(0x7f800000) : Whole<real>(0x7ff0000000000000));
}

template <class real>
__device__ inline real not_a_number() {
    return infinity<real>() - infinity<real>();
}

template <class T>
__device__ inline void exchange(T &a, T &b) {
    const T was = a;
    a = b, b = was;
}

// ------------------------------------------------------------------------------------- functions

template <class real>
__device__ inline Vec<real> magnitude(Vec<real> v) {
    constexpr Whole<real> sign = Whole<real>(1) << (8 * sizeof(real) - 1);
    return from_bits<real>(bits_of<real>(v) & ~sign);
}

// The coefficients of a polynomial, from the constant on.
template <class real, int count>
struct Table {
    real at[count];
};

// What differs between the arithmetic types.
template <class real>
struct Constants;
template <>
struct Constants<float> {
    static constexpr int mantissa_bits = 23, exponent_bias = 127;
    static constexpr float rounding = 12582912;  // added, it leaves no places behind the point
    static constexpr float log2_high = 0.693145751953125, log2_low = 1.42860677e-6;
    static constexpr int32_t root_guess = 0x4f581840;
    static constexpr int newton_steps = 0;
    static __device__ inline constexpr Table<float, 5> exp() { return {{0.5, 0.166665769, 0.0416665545, 0.00836319488, 0.00139262034}}; }
    static __device__ inline constexpr Table<float, 6> root() { return {{0.2500000283, 0.1562500257, 0.1171732563, 0.09520192962, 0.08271840405, 0.07243496608}}; }
};
// Sums coefficients.at[k] x^k, neighbours first, which is a shorter chain than one term after another.
template <class real, int count>
__device__ inline Vec<real> polynomial(Table<real, count> coefficients, Vec<real> x) {
    Vec<real> terms[(count + 1) / 2];
    NSC_UNROLL
    for (int k = 0; k + 1 < count; k += 2) terms[k / 2] = coefficients.at[k] + coefficients.at[k + 1] * x;
    if (count % 2) terms[count / 2] = all(coefficients.at[count - 1]);
    Vec<real> power = x * x;
    NSC_UNROLL
    for (int left = (count + 1) / 2; left > 1; left = (left + 1) / 2, power = power * power) {
        NSC_UNROLL
        for (int k = 0; k + 1 < left; k += 2) terms[k / 2] = terms[k] + terms[k + 1] * power;
        if (left % 2) terms[left / 2] = terms[left - 1];
    }
    return terms[0];
}
// exp(r) - 1 for |r| <= log(2) / 2, and 2^k for a whole k that was rounded by adding `rounding`.
template <class real>
__device__ inline Vec<real> small_exp_less_1(Vec<real> r) {
    return r + r * r * polynomial(Constants<real>::exp(), r);
}

template <class real>
__device__ inline Vec<real> power_of_two(Vec<real> shifted) {
    using C = Constants<real>;
    return from_bits<real>((bits_of<real>(shifted) + C::exponent_bias) << C::mantissa_bits);
}
// factor * exp(x + low) for x <= 0 and a small `low`; zero where the exponential is below the smallest normal number.
template <class real>
__device__ inline Vec<real> exp_negative(Vec<real> x, Vec<real> low, Vec<real> factor) {
    using C = Constants<real>;
    constexpr real lowest = real((1 - C::exponent_bias) * 0.69314718055994531);
    const Vec<real> inside = x < lowest ? all(lowest) : x;
    // x = k log(2) + r; log(2) in two parts, the first so short that its products with k are exact.
    const Vec<real> shifted = inside * real(1.4426950408889634) + C::rounding, k = shifted - C::rounding;
    const Vec<real> r = (inside - k * C::log2_high) + (low - k * C::log2_low);
    return x < lowest ? Vec<real>{} : (factor + factor * small_exp_less_1<real>(r)) * power_of_two<real>(shifted);
}
template <class real>
__device__ inline Vec<real> logistic_tail(Vec<real> t) {
    const Vec<real> odds = exp_negative<real>(-t, Vec<real>{}, all(real(1)));
    return odds / (1 + odds);
}
// x^(-1/4), x > 0 and finite: a guess from the exponent, what it lacks, then Newton's steps.
template <class real>
__device__ inline Vec<real> inverse_power(Vec<real> x) {
    using C = Constants<real>;
    const auto lacks = [&](Vec<real> power) NSC_INLINE { return 1 - x * (power * power) * (power * power); };
    Vec<real> y = from_bits<real>(C::root_guess - (bits_of<real>(x) >> 2));
    const Vec<real> d = lacks(y);
    y = y + y * (d * polynomial(C::root(), d));
    for (int step = 0; step < C::newton_steps; ++step) y = y + y * lacks(y) / 4;
    return y;
}

// ------------------------------------------------------------------------------------ relaxation

// The two weights of a comparator: keep = f(v) and swap = f(-v) = 1 - f(v).
// f is logistic, Petersen et al., ICML 2021.
template <class real>
struct Sigmoid {
    Vec<real> keep, swap;
};

// The smaller weight is computed, so that both have full precision: 1 - keep has none where keep rounds to 1.
template <class real>
__device__ inline Sigmoid<real> sigmoid(Vec<real> v) {
    const Vec<real> t = magnitude<real>(v), tail = logistic_tail<real>(t), rest = 1 - tail;
    return {v < 0 ? tail : rest, v < 0 ? rest : tail};
}

// f'(v), given both weights.
template <class real>
__device__ inline Vec<real> sigmoid_slope(Vec<real> v, Vec<real> keep, Vec<real> swap) {
    const Vec<real> t = magnitude<real>(v);
    (void)t, (void)keep, (void)swap;
    return keep * swap;
}

// The activation replacement trick: phi(d) = d / (|d| + 1e-10)^lambda, lambda = 0.25.
template <class real>
__device__ inline Vec<real> phi(Vec<real> d) {
    return d * inverse_power<real>(magnitude<real>(d) + real(1e-10));
}

template <class real>
__device__ inline Vec<real> phi_slope(Vec<real> d) {
    const Vec<real> size = magnitude<real>(d) + real(1e-10), power = inverse_power<real>(size);
    return power * (1 - real(0x1.0000000000000p-2) * magnitude<real>(d) * (power * power) * (power * power));
}

// ------------------------------------------------------------------------------------- keys pass

// The weights of mixes, by slot.
template <class T>
struct Mixes {
    T *keep, *swap;
};

// What the keys pass leaves for the routing and for the backward pass, by slot.
template <class T>
struct Weights {
    Mixes<T> forward;
    Mixes<T> backward;  // the same arrays
    T *gap;  // x[hi] - x[lo]; infinite where the weights are constant
};

constexpr int64_t arrays = 3;  // of weights, per sample

template <class T>
__device__ inline Weights<T> weights_of(T *weights, int64_t sample) {
    T *start = weights + sample * arrays * slots;
    const Mixes<T> mixes = {start, start + slots};
    return {mixes, mixes, start + 2 * slots};
}

// A comparator's weights.
template <class real>
struct Mix {
    real keep, swap;
};

// Both results of a comparator are mixed in this order of terms: a compiler that fuses a product with the sum
// then fuses the same one in both, and renaming the wires changes no bit.
template <class real>
__device__ __forceinline__ real mixed(Mix<real> m, real a, real b) {
    return m.keep * a + m.swap * b;
}

// A sample's wires in shared memory, with gaps so that wires 32 apart lie in different banks; the last
// place is no wire's.
constexpr int32_t samples_per_block = keys_threads / sample_threads, sample_places = wires + wires / 32 + 1;

__device__ inline int32_t place_of(int32_t wire) { return wire + wire / 32; }

__device__ inline void wait_for_sample() {
    if (sample_threads <= 32)
        __syncwarp();
    else
        __syncthreads();
}

// The part of a sample's work that is this thread's.
struct Share {
    __device__ explicit Share(int64_t batch)
        : thread(int32_t(threadIdx.x) % sample_threads), place(int32_t(threadIdx.x) / sample_threads),
          sample(int64_t(blockIdx.x) * samples_per_block + place), is_there(sample < batch) {
        if (!is_there) sample = batch - 1;  // goes through the motions, for the others' barriers
    }
    int32_t thread, place;
    int64_t sample;
    bool is_there;
};

// Calls visit(lo, hi, slot) for this thread's comparators, with barriers between those that depend on
// each other: 8 threads run a codelet, a step at a time.
template <class Visit>
__device__ inline void for_each_comparator(bool backwards, int32_t thread, Visit visit) {
    const int32_t team = thread / step_width, lane = thread % step_width;
    for (int32_t l = 0; l < codelet_levels; ++l) {
        const int32_t level = backwards ? codelet_levels - 1 - l : l, end = level_ends[level];
        for (int32_t first = level ? level_ends[level - 1] : 0; first < end; first += sample_threads / step_width) {
            const bool has_codelet = first + team < end;
            const Codelet codelet = codelets[has_codelet ? first + team : first];
            const Steps steps = steps_of[codelet.shape];
            for (int32_t s = 0; s < most_steps; ++s) {
                if (has_codelet && s < steps.count) {
                    const uint8_t *ends = step_ends + steps.first + (backwards ? steps.count - 1 - s : s);
                    const int32_t c = ends[0] + lane;
                    if (c < ends[1]) {
                        const Pair pair = shape_pairs[shapes[codelet.shape].first_pair + c];
                        int32_t lo = codelet.base + spreads[codelet.spread + pair.a];
                        int32_t hi = codelet.base + spreads[codelet.spread + pair.b];
                        if (is_turned(codelet, c)) exchange(lo, hi);
                        visit(lo, hi, codelet.slot + c);
                    }
                }
                __syncwarp();
            }
        }
        wait_for_sample();
    }
}

// The steepness, or NaN for one that makes no sense.
template <class real>
__device__ inline real checked(real steepness) {
    return steepness > 0 && steepness < infinity<real>() ? steepness : not_a_number<real>();
}

// Whether a sample's target holds each rank once; uses the sample's shared memory.
template <class real>
__device__ inline bool is_permutation(const int64_t *target, int32_t thread, real *seen) {
    for (int32_t i = thread; i < sample_places; i += sample_threads) seen[i] = 0;
    wait_for_sample();
    for (int32_t i = thread; i < wires; i += sample_threads)
        if (target[i] >= 0 && target[i] < wires) seen[place_of(int32_t(target[i]))] = 1;
    wait_for_sample();
    for (int32_t i = thread; i < wires; i += sample_threads)
        if (seen[place_of(i)] == 0) seen[sample_places - 1] = 1;
    wait_for_sample();
    const bool missing = seen[sample_places - 1] != 0;
    wait_for_sample();
    return !missing;
}

// From the values of two wires to their mixed values; returns the weights.
template <class real>
struct Compared {
    Mix<real> forward, backward;
    real gap;
};

template <class real>
__device__ inline Compared<real> compare(real &lo, real &hi, real steepness) {
    const real a = lo, b = hi;
    Compared<real> made;
    made.gap = b - a;
    const bool finite = magnitude<real>(made.gap) < infinity<real>();
    const Sigmoid<real> f = sigmoid<real>(steepness * phi<real>(finite ? made.gap : real(0)));
    made.backward = {f.keep, f.swap};
    if (!finite) {  // infinite values sort exactly; NaN spreads
        const bool tie = a == b;
        made.gap = tie ? real(0) : made.gap;
        if (magnitude<real>(made.gap) == infinity<real>() || (tie && magnitude<real>(a) == infinity<real>())) {
            const real limit = tie ? real(0.5) : made.gap > 0 ? real(1) : real(0);
            made.backward.keep = steepness == steepness ? limit : steepness;
            made.backward.swap = steepness == steepness ? 1 - limit : steepness;
            made.gap = infinity<real>();
        } else if (made.gap != made.gap) {
            made.backward = {made.gap, made.gap};
        }
    }
    made.forward = made.backward;
    if (finite) {
        lo = mixed(made.forward, a, b), hi = mixed(made.forward, b, a);
    } else {  // 0 times infinity counts as 0
        const bool a_infinite = magnitude<real>(a) == infinity<real>(), b_infinite = magnitude<real>(b) == infinity<real>();
        const bool no_keep = made.forward.keep == 0, no_swap = made.forward.swap == 0;
        lo = mixed(made.forward, a_infinite && no_keep ? real(0) : a, b_infinite && no_swap ? real(0) : b);
        hi = mixed(made.forward, b_infinite && no_keep ? real(0) : b, a_infinite && no_swap ? real(0) : a);
    }
    return made;
}

// values: may be null; weights: null where they are not wanted; target: null, or ranks that must be a permutation.
template <class real>
__device__ inline void keys_forward(int64_t batch, const real *x, const real *steepness, int64_t steepness_stride,
                                    const int64_t *target, int64_t target_stride, real *values, real *weights) {
    const Share share(batch);
    real *y = reinterpret_cast<real *>(shared_memory) + share.place * sample_places;
    real slope = checked(steepness[share.sample * steepness_stride]);
    if (target && !is_permutation(target + share.sample * target_stride, share.thread, y)) slope = not_a_number<real>();
    for (int32_t i = share.thread; i < wires; i += sample_threads) y[place_of(i)] = x[share.sample * wires + i];
    wait_for_sample();
    const bool keeps = weights && share.is_there;
    const Weights<real> kept = weights_of(weights, keeps ? share.sample : 0);
    for_each_comparator(false, share.thread, [&](int32_t lo, int32_t hi, int32_t slot) {
        const Compared<real> made = compare(y[place_of(lo)], y[place_of(hi)], slope);
        if (!keeps) return;
        kept.forward.keep[slot] = made.forward.keep, kept.forward.swap[slot] = made.forward.swap;
        kept.gap[slot] = made.gap;
    });
    if (!values || !share.is_there) return;
    for (int32_t i = share.thread; i < wires; i += sample_threads) values[share.sample * wires + i] = y[place_of(i)];
}

// The sum over the threads of a sample, in its first; uses the sample's shared memory.
template <class real>
__device__ inline real sum_over_sample(real part, int32_t thread, real *shared) {
    for (int32_t bit = sample_threads < 32 ? sample_threads / 2 : 16; bit; bit /= 2) part += __shfl_xor_sync(0xffffffffu, part, bit);
    if (sample_threads <= 32) return part;
    if (thread % 32 == 0) shared[thread / 32] = part;
    wait_for_sample();
    real sum = 0;
    for (int32_t warp = 0; thread == 0 && warp < sample_threads / 32; ++warp) sum += shared[warp];
    return sum;
}

// Adds the parts of the gradients of weights, `chunks` per sample, in order; the sums take the place of the
// first parts. A thread adds those of one slot.
template <class real>
__device__ inline void sum_chunks(int64_t batch, int64_t chunks, real *weight_grads) {
    constexpr int32_t at_a_time = 8;  // loads in flight
    constexpr int64_t per_sample = slots > 0 ? slots : 1;
    const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (number >= batch * slots) return;
    real *parts = weight_grads + number / per_sample * chunks * slots + number % per_sample, sum = parts[0];
    for (int64_t first = 1; first < chunks; first += at_a_time) {
        real next[at_a_time];
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k) next[k] = first + k < chunks ? parts[(first + k) * slots] : real(0);
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k) sum += next[k];
    }
    parts[0] = sum;
}

// From gradients of the values, null for zero, and of the weights, null or in the first of `chunks` places per
// sample, to those of x and of the steepness, null where that is not wanted.
template <class real>
__device__ inline void keys_backward(int64_t batch, const real *steepness, int64_t steepness_stride, const real *values_grad,
                                     const real *weights, const real *weight_grads, int64_t chunks, real *x_grad,
                                     real *steepness_grad) {
    const Share share(batch);
    real *grad = reinterpret_cast<real *>(shared_memory) + share.place * sample_places, steepness_part = 0;
    const real slope = checked(steepness[share.sample * steepness_stride]);
    const real *from = values_grad ? values_grad + share.sample * wires : nullptr;
    for (int32_t i = share.thread; i < wires; i += sample_threads) grad[place_of(i)] = from ? from[i] : real(0);
    wait_for_sample();
    const Weights<const real> kept = weights_of(weights, share.sample);
    const real *weight_grad = weight_grads ? weight_grads + share.sample * chunks * slots : nullptr;
    for_each_comparator(true, share.thread, [&](int32_t lo, int32_t hi, int32_t slot) {
        real &at_lo = grad[place_of(lo)], &at_hi = grad[place_of(hi)];
        const real a = at_lo, b = at_hi, gap = kept.gap[slot];
        const Mix<real> soft = {kept.backward.keep[slot], kept.backward.swap[slot]};
        const real into = (weight_grad ? weight_grad[slot] : real(0)) - (a - b) * gap;
        const bool infinite = gap == infinity<real>();
        const real activation = phi<real>(infinite ? real(0) : gap), stretch = phi_slope<real>(infinite ? real(0) : gap);
        // A weight of 0 is constant, and a gradient that reaches it may be infinite.
        const bool constant = infinite || soft.keep == 0 || soft.swap == 0;
        const real through = constant ? real(0) : into * sigmoid_slope<real>(slope * activation, soft.keep, soft.swap);
        const real shift = through * slope * stretch;
        at_lo = mixed(soft, a, b) - shift;
        at_hi = mixed(soft, b, a) + shift;
        steepness_part += through * activation;
    });
    if (share.is_there)
        for (int32_t i = share.thread; i < wires; i += sample_threads) x_grad[share.sample * wires + i] = grad[place_of(i)];
    if (!steepness_grad) return;
    wait_for_sample();
    const real sum = sum_over_sample(steepness_part, share.thread, grad);
    if (share.is_there && share.thread == 0) steepness_grad[share.sample] = sum;
}

// ---------------------------------------------------------------------------------------- losses

// `unit` stands for 1 while P is computed. It is a power of two: tiny products stay normal numbers, and so do
// the reciprocals that the gradients of losses begin with.
template <class real>
constexpr real unit = real(0x1.0000000000000p+72);

// Losses cut logarithms here, where float32 still has gradients. The least probability is in units.
constexpr double lowest_log = -80;
template <class real>
constexpr real least_probability = real(0x1.7fd974d372e45p-116) * unit<real>;

// A probability p and 1 - p, in units; neither is a difference of nearly equal numbers.
template <class real>
struct Probability {
    real p, rest;
};

template <class real>
__device__ inline Probability<real> complement(Probability<real> of) {
    return {of.rest, of.p};
}

// Whether 1 - p would lose digits. Then the sum of the column's other entries takes its place. Columns sum to
// 1, so at most one entry is so large.
template <class real>
__device__ inline bool is_large(real p) {
    return p > real(0.75) * unit<real>;
}

// The logarithm of a probability. NaN stays NaN.
template <class real>
__device__ inline real log_of(Probability<real> of) {
    using Log = real;
    if (is_large(of.p)) return log1p(-Log(of.rest / unit<real>));
    return of.p <= least_probability<real> ? Log(lowest_log) : log(Log(of.p / unit<real>));
}

// The derivative of that logarithm: 1 / p, and 0 where it is cut.
template <class real>
__device__ inline real slope_of_log(real p) {
    return p <= least_probability<real> ? real(0) : 1 / p;
}

// -------------------------------------------------------------------------------------- codelets
//
// A codelet's shape is a function that loads its rows, takes a step on pairs of them, and stores them:
// straight-line code in registers for the most frequent shapes.

template <int32_t shape>
struct Straight;

template <>
struct Straight<0> {
    static constexpr bool is_straight = true;
    static constexpr int32_t width = 4, length = 6;  // wires, comparators
    template <class Rows, class Step>
    static __device__ __forceinline__ void run(Rows rows, Step step) {
        auto w0 = rows.load(0), w1 = rows.load(1), w2 = rows.load(2), w3 = rows.load(3);
        step(0, w0, w1);
        step(1, w2, w3);
        step(2, w0, w2);
        step(3, w1, w3);
        step(4, w0, w1);
        step(5, w2, w3);
        rows.store(0, w0), rows.store(1, w1), rows.store(2, w2), rows.store(3, w3);
    }
    template <class Rows, class Step>
    static __device__ __forceinline__ void run_backwards(Rows rows, Step step) {
        auto w0 = rows.load(0), w1 = rows.load(1), w2 = rows.load(2), w3 = rows.load(3);
        step(5, w2, w3);
        step(4, w0, w1);
        step(3, w1, w3);
        step(2, w0, w2);
        step(1, w2, w3);
        step(0, w0, w1);
        rows.store(0, w0), rows.store(1, w1), rows.store(2, w2), rows.store(3, w3);
    }
};

// Other shapes run from their table.
struct Tabled {
    static constexpr bool is_straight = false;
    static constexpr int32_t width = widest_codelet, length = longest_codelet;  // at most
    template <bool backwards, class Rows, class Step>
    __device__ __forceinline__ void run_in(Rows rows, Step step) const {
        typename Rows::real held[widest_codelet];
        for (int32_t k = 0; k < shape.wires; ++k) held[k] = rows.load(k);
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const int32_t c = backwards ? shape.comparators - 1 - i : i;
            const Pair pair = shape_pairs[shape.first_pair + c];
            typename Rows::real &a = held[pair.a], &b = held[pair.b];
            step(c, a, b);
        }
        for (int32_t k = 0; k < shape.wires; ++k) rows.store(k, held[k]);
    }
    template <class Rows, class Step>
    __device__ __forceinline__ void run(Rows rows, Step step) const {
        run_in<false>(rows, step);
    }
    template <class Rows, class Step>
    __device__ __forceinline__ void run_backwards(Rows rows, Step step) const {
        run_in<true>(rows, step);
    }
    Shape shape;
};

// Calls use(code) with the code of a shape.
template <class Use>
__device__ __forceinline__ void with_code_of(int32_t shape, Use use) {
    switch (shape) {
        case 0: return use(Straight<0>());
    }
}

template <bool backwards, class Code, class Rows, class Step>
__device__ __forceinline__ void run_code(Code code, Rows rows, Step step) {
    if constexpr (backwards)
        code.run_backwards(rows, step);
    else
        code.run(rows, step);
}

// A thread's column of the rows that a codelet works on. Rows are `pitch` values apart.
template <class Real, int32_t pitch>
struct InPlace {
    using real = Real;
    __device__ InPlace(Codelet codelet, real *column) : first(column + codelet.base * pitch), spread(spreads + codelet.spread) {}
    __device__ __forceinline__ real load(int32_t k) const { return first[spread[k] * pitch]; }
    __device__ __forceinline__ void store(int32_t k, real value) const { first[spread[k] * pitch] = value; }
    real *first;
    const uint16_t *spread;
};

// The same, and a copy of what is loaded is kept.
template <class Real, int32_t pitch>
struct Keeping : InPlace<Real, pitch> {
    __device__ Keeping(Codelet codelet, Real *column, Real *kept) : InPlace<Real, pitch>(codelet, column), kept(kept) {}
    __device__ __forceinline__ Real load(int32_t k) const { return kept[k * pitch] = InPlace<Real, pitch>::load(k); }
    Real *kept;
};

// That copy; what becomes of it is not wanted.
template <class Real, int32_t pitch>
struct Kept {
    using real = Real;
    __device__ __forceinline__ Real load(int32_t k) const { return kept[k * pitch]; }
    __device__ __forceinline__ void store(int32_t, Real) const {}
    const Real *kept;
};

// --------------------------------------------------------------------------------- exact sorting

// A whole number in the order of the reals. 0 and -0 are equal, and all NaN, which come last.
template <class real>
__device__ inline Whole<real> key_of(real x) {
    using whole = Whole<real>;
    constexpr whole most = sizeof(real) == 4 ? whole(0x7fffffff) : whole(0x7fffffffffffffff);
    if (x != x) return most;
    if (x == 0) return 0;
    const whole bits = bits_of<real>(x);
    return bits < 0 ? bits ^ most : bits;
}

// A value's key and where it comes from: ties sort by position, as in torch's stable sort.
template <class real>
struct alignas(2 * sizeof(real)) Entry {
    Whole<real> key;
    int32_t from;
    __device__ bool operator<(const Entry &other) const {
        return key < other.key || (key == other.key && from < other.from);
    }
};

// Puts the lesser of two entries, or where a comparator is turned the greater, on its first wire.
template <class real>
__device__ __forceinline__ void order(Entry<real> &a, Entry<real> &b, bool turned) {
    if ((b < a) != turned) exchange(a, b);
}

// A warp sorts as many samples as it has threads: a sample is a column of a tile, and its thread's own. A block has as
// many warps as the launch gives it.
template <class real>
__device__ __forceinline__ void sort_columns(int64_t batch, const real *x, real *values, int64_t *indices) {
    // One place more than a row needs: the threads of a warp then reach different banks along a column too.
    constexpr int32_t pitch = 33;
    const int32_t lane = int32_t(threadIdx.x) % 32;
    Entry<real> *tile = reinterpret_cast<Entry<real> *>(shared_memory) + threadIdx.x / 32 * wires * pitch;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x - lane) * wires, left = batch * wires - first;
    const int32_t count = left < 32 * wires ? left < 0 ? 0 : int32_t(left) : 32 * int32_t(wires);
    for (int32_t i = lane; i < count; i += 32) {
        const int32_t wire = i % int32_t(wires), sample = i / int32_t(wires);
        tile[wire * pitch + sample] = {key_of<real>(x[first + i]), wire};
    }
    __syncwarp();
    for (int32_t c = 0; c < codelet_count; ++c) {
        const Codelet codelet = codelets[c];
        with_code_of(codelet.shape, [&](auto code) {
            code.run(InPlace<Entry<real>, pitch>(codelet, tile + lane), [&](int32_t i, Entry<real> &a, Entry<real> &b, auto... half) {
                order(a, b, is_turned(codelet, i), half...);
            });
        });
    }
    __syncwarp();
    const int64_t first_out = first / wires * outputs;
    for (int32_t i = lane; i < count / int32_t(wires) * int32_t(outputs); i += 32) {
        const int32_t wire = int32_t(output_wire(i % int32_t(outputs))), sample = i / int32_t(outputs), from = tile[wire * pitch + sample].from;
        values[first_out + i] = x[first + sample * wires + from];
        indices[first_out + i] = from;
    }
}

// The threads of a sample's keys pass exchange entries in shared memory.
template <class real>
__device__ inline void sort_together(int64_t batch, const real *x, real *values, int64_t *indices) {
    const Share share(batch);
    Entry<real> *entries = reinterpret_cast<Entry<real> *>(shared_memory) + share.place * sample_places;
    const int64_t first = share.sample * wires;
    for (int32_t i = share.thread; i < wires; i += sample_threads) entries[place_of(i)] = {key_of<real>(x[first + i]), i};
    wait_for_sample();
    for_each_comparator(false, share.thread, [&](int32_t lo, int32_t hi, int32_t) {
        Entry<real> &a = entries[place_of(lo)], &b = entries[place_of(hi)];
        if (b < a) exchange(a, b);
    });
    if (!share.is_there) return;
    const int64_t first_out = share.sample * outputs;
    for (int32_t i = share.thread; i < outputs; i += sample_threads) {
        const int32_t from = entries[place_of(int32_t(output_wire(i)))].from;
        values[first_out + i] = x[first + from];
        indices[first_out + i] = from;
    }
}

template <class real>
__device__ inline void hard_sort(int64_t batch, const real *x, real *values, int64_t *indices) {
    if constexpr (tile_warps == 1)
        sort_columns(batch, x, values, indices);
    else
        sort_together(batch, x, values, indices);
}

// ---------------------------------------------------------------------------------- routing pass

// Columns in a tile: what the build says, by the shared memory of a block.
#ifndef NSC_TILE_COLUMNS_F32
#define NSC_TILE_COLUMNS_F32 32
#endif
#ifndef NSC_TILE_COLUMNS_F64
#define NSC_TILE_COLUMNS_F64 32
#endif

template <class real>
constexpr int32_t tile_columns = sizeof(real) == 4 ? NSC_TILE_COLUMNS_F32 : NSC_TILE_COLUMNS_F64;

template <class real>
struct Call {
    Routing routing;
    int64_t batch;
    int64_t chunks;  // pieces that the columns of a sample are cut into
    const real *weights;
    const void *payload;
    int64_t payload_stride;  // 0: one payload for all samples
    int64_t columns;

    __device__ bool is_loss() const { return routing == cross_entropy || routing == binary_cross_entropy; }
    __device__ bool has_payload() const { return routing == route || routing == transposed; }
    __device__ bool is_permutation() const { return routing == permutation || is_loss(); }  // the payload is P, or read off it
    __device__ const int64_t *ranks_of(int64_t sample) const {
        return static_cast<const int64_t *>(payload) + sample * payload_stride;
    }
};

// A tile of columns, and this thread in it. Where a network has fewer wires than a tile has columns, a tile
// has columns of several samples, and where a payload has one column, of as many samples as it has
// columns: `group` threads for each. A team of threads, one per column, runs a codelet; teams share the
// codelets of a level.
template <class real>
struct Tile {
    static constexpr int32_t width = tile_columns<real>, threads = 32 * tile_warps, teams = threads / width;
    static constexpr int32_t full_group = width < widest_group ? width : widest_group;
    static constexpr int32_t tiles_per_block = routing_threads / threads;

    __device__ explicit Tile(const Call<real> &call)
        : call(call), team(int32_t(threadIdx.x) % threads / width), lane(int32_t(threadIdx.x) % width),
          tile(reinterpret_cast<real *>(shared_memory) + threadIdx.x / threads * width * wires), column_of_tile(tile + lane),
          mask((0xffffffffu >> (32 - width)) << (int32_t(threadIdx.x) % 32 / width * width)), group(call.columns == 1 ? 1 : full_group) {
        samples = width / group;
        pieces = (call.columns + group - 1) / group;
        tasks = (call.batch + samples - 1) / samples * call.chunks;
    }

    // This tile's number among those of the grid, and how many there are.
    __device__ static int64_t number() { return int64_t(blockIdx.x) * tiles_per_block + threadIdx.x / threads; }
    __device__ static int64_t count() { return int64_t(gridDim.x) * tiles_per_block; }

    __device__ static void wait() {
        if (tile_warps == 1)
            __syncwarp();
        else
            __syncthreads();
    }

    // Goes to some columns of a task: a group of samples and a piece of their columns.
    __device__ void go_to(int64_t task, int64_t piece) {
        sample = task / call.chunks * samples + lane / group;
        column = piece * group + lane % group;
        is_sample = sample < call.batch;
        is_there = is_sample && column < call.columns;
        if (!is_sample) sample = call.batch - 1;
        if (!is_there) column = 0;
        list = call.is_permutation() ? int32_t(piece * group / cone_columns) : cones;
        weights = weights_of(call.weights, sample);
    }
    __device__ int64_t first_piece(int64_t task) const { return pieces * (task % call.chunks) / call.chunks; }
    __device__ int64_t end_piece(int64_t task) const { return pieces * (task % call.chunks + 1) / call.chunks; }

    // Calls visit(row, the place of the row in this thread's column) for this thread's rows.
    template <class Visit>
    __device__ __forceinline__ void for_each_row(Visit visit) const {
        for (int32_t row = team; row < wires; row += teams) visit(row, column_of_tile[row * width]);
    }
    __device__ int64_t place_of_row(int32_t row) const { return (sample * wires + row) * call.columns + column; }

    // Calls visit for this team's codelets of each level in turn.
    template <class Visit>
    __device__ __forceinline__ void for_each_codelet(bool backwards, Visit visit) const {
        for (int32_t l = 0; l < codelet_levels; ++l) {
            const int32_t level = backwards ? codelet_levels - 1 - l : l, end = listed_ends[list][level];
            const int32_t begin = level ? listed_ends[list][level - 1] : 0;
            for (int32_t i = begin + team; i < end; i += teams) visit(listed[list][i]);
            if (end > begin) wait();
        }
    }

    Call<real> call;
    int32_t team, lane;
    real *tile, *column_of_tile;
    uint32_t mask;  // of the team's threads
    int32_t group, samples;
    int64_t pieces, tasks;
    // where it is
    int64_t sample = 0, column = 0;
    bool is_sample = false, is_there = false;
    int32_t list = cones;
    Weights<const real> weights = {};
};

template <class real>
__device__ __forceinline__ void mix(real &lo, real &hi, Mix<real> m) {
    const real a = lo, b = hi;
    lo = mixed(m, a, b);
    hi = mixed(m, b, a);
}

// What a comparator's weight is multiplied with; a wire that nothing comes from counts as zero.
template <class Row>
__device__ __forceinline__ Row difference(const Row &a, const Row &b) {
    return a - b;
}

// Some weights that lie at a multiple of 16 bytes, read 16 bytes at a time.
template <class real>
struct alignas(16) Pack {
    real at[16 / sizeof(real)];
};

// The same address, of which the compiler does not know so: what it read there stays in no register.
template <class T>
__device__ __forceinline__ const T *read_anew(const T *from) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+l"(from));
#endif
    return from;
}

// The weights of a codelet, which begin at a slot.
template <class real, class Code>
struct MixesOf {
    static constexpr int32_t per_pack = 16 / sizeof(real), packs = (Code::length + per_pack - 1) / per_pack;
    __device__ MixesOf(Mixes<const real> mixes, int32_t slot) {
        NSC_UNROLL
        for (int32_t k = 0; k < packs; ++k) {
            keep[k] = reinterpret_cast<const Pack<real> *>(mixes.keep + slot)[k];
            swap[k] = reinterpret_cast<const Pack<real> *>(mixes.swap + slot)[k];
        }
    }
    __device__ Mix<real> operator[](int32_t c) const {
        return {keep[c / per_pack].at[c % per_pack], swap[c / per_pack].at[c % per_pack]};
    }
    Pack<real> keep[packs], swap[packs];
};

template <class real>
struct MixesOf<real, Tabled> {
    __device__ MixesOf(Mixes<const real> mixes, int32_t slot) : keep(mixes.keep + slot), swap(mixes.swap + slot) {}
    __device__ Mix<real> operator[](int32_t c) const { return {keep[c], swap[c]}; }
    const real *keep, *swap;
};

// Runs the listed codelets on a tile; `reversed` runs them backwards. With `keeps`, stores in `kept`
// what each of them loads.
template <class real, bool reversed, bool keeps>
__device__ __forceinline__ void run_forward(const Tile<real> &tile, real *kept) {
    constexpr int32_t width = Tile<real>::width;
    tile.for_each_codelet(reversed, [&](Listed entry) {
        const Codelet codelet = codelets[entry.codelet];
        with_code_of(codelet.shape, [&](auto code) {
            const MixesOf<real, decltype(code)> mixes(tile.weights.forward, codelet.slot);
            const auto step = [&mixes](int32_t c, real &a, real &b, auto... half) { mix(a, b, mixes[c], half...); };
            if constexpr (keeps)
                run_code<reversed>(code, Keeping<real, width>(codelet, tile.column_of_tile, kept + entry.rows_before * width), step);
            else
                run_code<reversed>(code, InPlace<real, width>(codelet, tile.column_of_tile), step);
        });
    });
}

// The sums over `width` neighbouring threads of `width` numbers, in thread k that of number k: threads whose numbers
// differ in a bit exchange halves.
template <int32_t width, int32_t bit = width / 2, class real>
__device__ __forceinline__ real folded(real (&numbers)[width], int32_t lane, uint32_t mask) {
    if constexpr (bit > 0) {
        NSC_UNROLL
        for (int32_t k = 0; k < bit; ++k) {
            const real mine = lane & bit ? numbers[k + bit] : numbers[k], other = lane & bit ? numbers[k] : numbers[k + bit];
            numbers[k] = mine + __shfl_xor_sync(mask, other, bit);
        }
        return folded<width, bit / 2>(numbers, lane, mask);
    }
    return numbers[0];
}

// Adds the sums over a sample's columns to the gradients of a codelet's weights; a sample of one column
// sees each codelet once.
template <class real, class Code>
__device__ __forceinline__ void add_sums(const Tile<real> &tile, Code, real (&products)[Code::length], int32_t count, real *weight_grad) {
    constexpr int32_t group = Tile<real>::full_group, length = Code::length;
    if (tile.group == 1) {
        if (!tile.is_sample) return;
        NSC_UNROLL
        for (int32_t c = 0; c < length; ++c)
            if (c < count) weight_grad[c] = products[c];
    } else if constexpr (Code::is_straight) {
        const int32_t place = tile.lane % group;
        NSC_UNROLL
        for (int32_t first = 0; first < length; first += group) {
            real numbers[group];
            NSC_UNROLL
            for (int32_t k = 0; k < group; ++k) numbers[k] = first + k < length ? products[first + k < length ? first + k : 0] : real(0);
            const real sum = folded<group>(numbers, place, tile.mask);
            if (tile.is_sample && first + place < length) weight_grad[first + place] += sum;
        }
    } else {
        for (int32_t c = 0; c < count; ++c) {
            real sum = products[c];
            for (int32_t bit = group / 2; bit; bit /= 2) sum += __shfl_xor_sync(tile.mask, sum, bit);
            if (tile.is_sample && tile.lane % group == c % group) weight_grad[c] += sum;
        }
    }
}

// Takes the gradient of a routed tile back to the payload, in place, and adds the gradients of the
// weights to `weight_grad`. `kept` is what run_forward kept.
template <class real, bool reversed>
__device__ __forceinline__ void run_backward(const Tile<real> &tile, const real *kept, real *weight_grad) {
    constexpr int32_t width = Tile<real>::width;
    tile.for_each_codelet(!reversed, [&](Listed entry) {
        const Codelet codelet = codelets[entry.codelet];
        with_code_of(codelet.shape, [&](auto code) {
            // Differences of the payload in front of each comparator, then times those of the gradient behind it.
            real product[decltype(code)::length];
            const MixesOf<real, decltype(code)> forward(tile.weights.forward, codelet.slot);
            run_code<reversed>(code, Kept<real, width>{kept + entry.rows_before * width}, [&](int32_t c, real &a, real &b, auto... half) {
                product[c] = difference(a, b, half...);
                mix(a, b, forward[c], half...);
            });
            const Mixes<const real> anew = {read_anew(tile.weights.backward.keep), read_anew(tile.weights.backward.swap)};
            const MixesOf<real, decltype(code)> backward(anew, codelet.slot);
            run_code<!reversed>(code, InPlace<real, width>(codelet, tile.column_of_tile), [&](int32_t c, real &a, real &b, auto... half) {
                product[c] *= difference(a, b, half...);
                mix(a, b, backward[c], half...);
            });
            add_sums(tile, code, product, shapes[codelet.shape].comparators, weight_grad + codelet.slot);
        });
    });
}

// Fills the tile with columns of the payload; where that is the unit matrix or columns of it, its ones are `unit_entry`.
template <class real>
__device__ __forceinline__ void load_payload(const Tile<real> &tile, real unit_entry) {
    const Call<real> &call = tile.call;
    if (call.has_payload()) {
        const real *from = static_cast<const real *>(call.payload) + tile.sample * call.payload_stride + tile.column;
        tile.for_each_row([&](int32_t row, real &at) { at = tile.is_there ? from[row * call.columns] : real(0); });
        return;
    }
    const int64_t one = call.routing == rows && tile.is_there ? call.ranks_of(tile.sample)[tile.column] : tile.column;
    const bool exists = one >= 0 && one < wires;
    tile.for_each_row([&](int32_t row, real &at) {
        at = !exists ? not_a_number<real>() : row == one && tile.is_there ? unit_entry : real(0);
    });
}

// The true rank of this thread's column; -1 for one that is none.
template <class real>
__device__ __forceinline__ int64_t target_of(const Tile<real> &tile) {
    const int64_t rank = tile.call.ranks_of(tile.sample)[tile.column];
    return rank >= 0 && rank < wires ? rank : -1;
}

// The sum of the other entries of this thread's column.
template <class real>
__device__ __forceinline__ real rest_of_column(const Tile<real> &tile, int64_t row) {
    real sum = 0;
    for (int32_t other = 0; other < wires; ++other)
        if (other != row) sum += tile.column_of_tile[other * Tile<real>::width];
    return sum;
}

template <class real>
__device__ __forceinline__ Probability<real> probability_at(const Tile<real> &tile, int64_t row) {
    const real p = tile.column_of_tile[row * Tile<real>::width];
    return {p, is_large(p) ? rest_of_column(tile, row) : unit<real> - p};
}

// This thread's part of the loss of the tile, which holds columns of P.
template <class real>
__device__ __forceinline__ double loss_part(const Tile<real> &tile) {
    if (!tile.is_there) return 0;
    const int64_t target = target_of(tile);
    if (target < 0) return not_a_number<double>();
    if (tile.call.routing == cross_entropy) {
        if (tile.team) return 0;
        return -double(log_of<real>(probability_at(tile, target))) / wires;
    }
    double sum = 0;
    tile.for_each_row([&](int32_t row, real &) {
        const Probability<real> p = probability_at(tile, row);
        sum -= double(log_of<real>(target == row ? p : complement(p)));
    });
    return sum / wires / wires;
}

// Puts the gradient of that loss in place of the tile.
template <class real>
__device__ __forceinline__ void load_loss_gradient(const Tile<real> &tile) {
    constexpr real share = real(1) / wires;
    const int64_t target = target_of(tile);
    if (tile.call.routing == cross_entropy) {
        const real p = target < 0 ? not_a_number<real>() : tile.column_of_tile[target * Tile<real>::width];
        Tile<real>::wait();
        tile.for_each_row([&](int32_t row, real &at) { at = row == target && tile.is_there ? -share * slope_of_log(p) : real(0); });
        return;
    }
    // At most one entry of a column is large. The sum of the others is taken before any is overwritten.
    real rest = 0;
    tile.for_each_row([&](int32_t row, real &at) {
        if (is_large(at)) rest = rest_of_column(tile, row);
    });
    Tile<real>::wait();
    tile.for_each_row([&](int32_t row, real &at) {
        const real slope = target == row ? -slope_of_log(at) : slope_of_log(is_large(at) ? rest : unit<real> - at);
        at = tile.is_there ? share * share * slope : real(0);
    });
}

// Stores the loss of a task, the sum over the threads of each of its samples; uses the tile.
template <class real>
__device__ __forceinline__ void store_loss(const Tile<real> &tile, int64_t task, double loss, double *losses) {
    for (int32_t bit = tile.group / 2; bit; bit /= 2) loss += __shfl_xor_sync(tile.mask, loss, bit);
    const int64_t place = tile.sample * tile.call.chunks + task % tile.call.chunks;
    if constexpr (Tile<real>::teams == 1) {
        if (tile.is_sample && tile.lane % tile.group == 0) losses[place] = loss;
    } else {
        // More than one team means more wires than a tile has columns: all of it is one sample.
        double *parts = reinterpret_cast<double *>(tile.tile);
        Tile<real>::wait();
        if (tile.lane == 0) parts[tile.team] = loss;
        Tile<real>::wait();
        if (tile.team == 0 && tile.lane == 0) {
            double sum = 0;
            for (int32_t team = 0; team < Tile<real>::teams; ++team) sum += parts[team];
            losses[place] = sum;
        }
        Tile<real>::wait();
    }
}

// routed: what is routed, null for a loss; losses: a part for each sample and chunk.
template <class real, bool reversed>
__device__ __forceinline__ void route_forward(const Call<real> &call, real *routed, double *losses) {
    Tile<real> tile(call);
    const real scale = call.has_payload() ? real(1) : 1 / unit<real>;
    for (int64_t task = Tile<real>::number(); task < tile.tasks; task += Tile<real>::count()) {
        double loss = 0;
        for (int64_t piece = tile.first_piece(task); piece < tile.end_piece(task); ++piece) {
            tile.go_to(task, piece);
            load_payload(tile, unit<real>);
            Tile<real>::wait();
            run_forward<real, reversed, false>(tile, nullptr);
            if (call.is_loss())
                loss += loss_part(tile);
            else if (tile.is_there)
                tile.for_each_row([&](int32_t row, real &at) { routed[tile.place_of_row(row)] = at * scale; });
            Tile<real>::wait();
        }
        if (call.is_loss()) store_loss(tile, task, loss, losses);
    }
}

// routed_grad: the gradient of what is routed, null for a loss. losses: a part of the loss for each sample and
// chunk, or null. weight_grads: for each sample and chunk, a
// place for each slot. payload_grad: as the payload, or null. kept: for each tile of the grid, memory for
// the rows that its codelets load.
template <class real, bool reversed>
__device__ __forceinline__ void route_backward(const Call<real> &call, const real *routed_grad, real *weight_grads, real *payload_grad,
                                      double *losses, real *kept, int64_t kept_rows) {
    Tile<real> tile(call);
    kept += Tile<real>::number() * kept_rows * Tile<real>::width + tile.lane;
    for (int64_t task = Tile<real>::number(); task < tile.tasks; task += Tile<real>::count()) {
        double loss = 0;
        tile.go_to(task, tile.first_piece(task));
        real *weight_grad = weight_grads + (tile.sample * call.chunks + task % call.chunks) * slots;
        for (int64_t slot = tile.team * tile.group + tile.lane % tile.group; tile.is_sample && slot < slots; slot += Tile<real>::teams * tile.group)
            weight_grad[slot] = 0;
        for (int64_t piece = tile.first_piece(task); piece < tile.end_piece(task); ++piece) {
            tile.go_to(task, piece);
            load_payload(tile, call.is_loss() ? unit<real> : real(1));
            Tile<real>::wait();
            run_forward<real, reversed, true>(tile, kept);
            if (losses) loss += loss_part(tile);
            if (call.is_loss())
                load_loss_gradient(tile);
            else
                tile.for_each_row([&](int32_t row, real &at) { at = tile.is_there ? routed_grad[tile.place_of_row(row)] : real(0); });
            Tile<real>::wait();
            run_backward<real, reversed>(tile, kept, weight_grad);
            if (payload_grad && tile.is_there)
                tile.for_each_row([&](int32_t row, real &at) { payload_grad[tile.place_of_row(row)] = at; });
            Tile<real>::wait();
        }
        if (losses) store_loss(tile, task, loss, losses);
    }
}

}  // namespace

// ----------------------------------------------------------------------------------- the kernels

// What these kernels are. The runtime compares it with the manifest, so that no text beside them can make a
// launch take its memory for what it is not.
extern "C" __device__ const char nsc_facts[] = "{\"abi\": 6, \"name\": \"bitonic_4\", \"n\": 4, \"size\": 6, \"depth\": 3, \"outputs\": null, \"sigmoid\": \"logistic\", \"art_lambda\": 0.25, \"error_free\": false, \"reals\": {\"float32\": [\"float32\", \"bfloat16\", \"float16\"]}, \"network.json\": \"e36af305ca221a49831e525e84b2d0b946b7d99fe6e21128b5a0195e5e503e65\", \"cuda\": {\"slots\": 16, \"arrays\": 3, \"cones\": 1, \"kept_rows\": 4, \"kept_rows_permutation\": 4, \"tile_threads\": 32, \"widest_group\": 4, \"routing_threads\": 128, \"sample_threads\": 8, \"keys_threads\": 128}}";

// Must run once before any other: a block of one warp for each cone, and one more.
extern "C" __global__ void nsc_prepare() { list_codelets(); }

// float32
extern "C" __global__ void __launch_bounds__(keys_threads) nsc_keys_f32(
    int64_t batch, const float *x, const float *steepness, int64_t steepness_stride, const int64_t *target,
    int64_t target_stride, float *values, float *weights) {
    keys_forward<float>(batch, x, steepness, steepness_stride, target, target_stride, values, weights);
}

extern "C" __global__ void __launch_bounds__(keys_threads) nsc_keys_backward_f32(
    int64_t batch, const float *steepness, int64_t steepness_stride, const float *values_grad, const float *weights,
    const float *weight_grads, int64_t chunks, float *x_grad, float *steepness_grad) {
    keys_backward<float>(batch, steepness, steepness_stride, values_grad, weights, weight_grads, chunks, x_grad, steepness_grad);
}

extern "C" __global__ void __launch_bounds__(keys_threads) nsc_sum_f32(int64_t batch, int64_t chunks, float *weight_grads) {
    sum_chunks<float>(batch, chunks, weight_grads);
}

extern "C" __global__ void __launch_bounds__(keys_threads, 1) nsc_sort_f32(
    int64_t batch, const float *x, float *values, int64_t *indices) {
    hard_sort<float>(batch, x, values, indices);
}
extern "C" __global__ void __launch_bounds__(routing_threads, 1) nsc_route_f32(
    int32_t routing, int64_t batch, int64_t chunks, const float *weights, const void *payload, int64_t payload_stride,
    int64_t columns, float *routed, double *losses) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, payload, payload_stride, columns};
    route_forward<float, false>(call, routed, losses);
}

extern "C" __global__ void __launch_bounds__(routing_threads, 1) nsc_route_backward_f32(
    int32_t routing, int64_t batch, int64_t chunks, const float *weights, const void *payload, int64_t payload_stride,
    int64_t columns, const float *routed_grad, float *weight_grads, float *payload_grad, double *losses, float *kept,
    int64_t kept_rows) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, payload, payload_stride, columns};
    route_backward<float, false>(call, routed_grad, weight_grads, payload_grad, losses, kept, kept_rows);
}
extern "C" __global__ void __launch_bounds__(routing_threads, 1) nsc_reversed_f32(
    int32_t routing, int64_t batch, int64_t chunks, const float *weights, const void *payload, int64_t payload_stride,
    int64_t columns, float *routed, double *losses) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, payload, payload_stride, columns};
    route_forward<float, true>(call, routed, losses);
}

extern "C" __global__ void __launch_bounds__(routing_threads, 1) nsc_reversed_backward_f32(
    int32_t routing, int64_t batch, int64_t chunks, const float *weights, const void *payload, int64_t payload_stride,
    int64_t columns, const float *routed_grad, float *weight_grads, float *payload_grad, double *losses, float *kept,
    int64_t kept_rows) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, payload, payload_stride, columns};
    route_backward<float, true>(call, routed_grad, weight_grads, payload_grad, losses, kept, kept_rows);
}
