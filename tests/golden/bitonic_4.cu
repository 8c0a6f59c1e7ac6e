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

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <math.h>
#include <stdint.h>
#endif

// How functions and tables are declared that the kernels of all targets share.
#define NSC_FUNCTION __device__ inline
#define NSC_TABLE __device__ const
// Always inlined, with rows in registers: a step is part of its codelet, which is part of its caller.
#define NSC_INLINE __attribute__((always_inline))
#define NSC_STEP __device__ __forceinline__
#define NSC_CODELET NSC_STEP
#define NSC_UNROLL _Pragma("unroll")

// The block's memory, as much as the launch asks for.
extern __shared__ __align__(16) unsigned char shared_memory[];

namespace {

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

// What the routing pass does.
enum Routing {
    none = 0,
    permutation = 1,
    route = 2,
    transposed = 3,
    rows = 4,
    cross_entropy = 5,
    binary_cross_entropy = 6,
};

// Whether a routing gives a loss for each sample.
NSC_FUNCTION bool is_loss(Routing routing) {
    switch (routing) {
        case cross_entropy:
        case binary_cross_entropy:
            return true;
        default:
            return false;
    }
}

// Whether a routing's payload is the unit matrix: what is routed is P, or a loss is read off it.
NSC_FUNCTION bool routes_identity(Routing routing) {
    switch (routing) {
        case permutation:
        case cross_entropy:
        case binary_cross_entropy:
            return true;
        default:
            return false;
    }
}

// Whether a routing takes columns of a payload.
NSC_FUNCTION bool has_columns(Routing routing) {
    switch (routing) {
        case route:
        case transposed:
            return true;
        default:
            return false;
    }
}

// Whether a routing takes ranks, whose rows of P are wanted.
NSC_FUNCTION bool has_ranks(Routing routing) {
    switch (routing) {
        case rows:
            return true;
        default:
            return false;
    }
}

// Whether a routing runs the comparators from the last to the first.
NSC_FUNCTION bool is_reversed(Routing routing) {
    switch (routing) {
        case transposed:
        case rows:
            return true;
        default:
            return false;
    }
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

// --------------------------------------------------------------------------------------- lanes

// A thread computes one number where a processor's register would hold many.
template <class T>
using Vec = T;

template <class T>
__device__ inline T all(T value) {
    return value;
}

// --------------------------------------------------------------------------------------- threads

template <class real>
__device__ inline real lesser(real a, real b) {
    return a < b ? a : b;
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

// Losses take logarithms in the type of the kernel.
template <class real>
using Log = real;

template <class real>
__device__ inline real logarithm(real x) {
    return log(x);
}

template <class real>
__device__ inline real logarithm_1p(real x) {
    return log1p(x);
}

// ------------------------------------------------------------------------------------- functions

template <class real>
NSC_FUNCTION Vec<real> magnitude(Vec<real> v) {
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
    // Added to a number, it leaves no places behind the point, and the last bits are those of an exponent.
    static constexpr float rounding = 12583039;
    static constexpr float log2_high = 0.693145751953125, log2_low = 1.42860677e-6;
    static constexpr int32_t root_guess = 0x4f581840;
    static constexpr int newton_steps = 0;
    static NSC_FUNCTION constexpr Table<float, 5> exp() {
        return { { 0.5, 0.166665769, 0.0416665545, 0.00836319488, 0.00139262034 } };
    }
    static NSC_FUNCTION constexpr Table<float, 5> root() {
        return { { 0.2500000239, 0.1562427445, 0.117174033, 0.09674244691, 0.08267930173 } };
    }
};
// Sums coefficients.at[k] x^k.
template <class real, int count>
NSC_FUNCTION Vec<real> polynomial(Table<real, count> coefficients, Vec<real> x) {
    Vec<real> sum = all(coefficients.at[count - 1]);
    NSC_UNROLL
    for (int k = count - 2; k >= 0; --k) sum = sum * x + coefficients.at[k];
    return sum;
}
// exp(r) - 1 for |r| <= log(2) / 2, and 2^k for a whole k that was rounded by adding `rounding`.
template <class real>
NSC_FUNCTION Vec<real> small_exp_less_1(Vec<real> r) {
    return r + r * r * polynomial(Constants<real>::exp(), r);
}

template <class real>
NSC_FUNCTION Vec<real> small_exp(Vec<real> r) {
    return (polynomial(Constants<real>::exp(), r) * r + 1) * r + 1;
}

template <class real>
NSC_FUNCTION Vec<real> power_of_two(Vec<real> shifted) {
    return from_bits<real>(bits_of<real>(shifted) << Constants<real>::mantissa_bits);
}
// The lesser of t >= 0 and the least t whose 2^k is zero for exp(-t); NaN stays NaN.
template <class real>
NSC_FUNCTION Vec<real> within_exp(Vec<real> t) {
    return lesser(all(real(Constants<real>::exponent_bias * 0.69314718055994531)), t);
}
// The exponential is zero where it is below the smallest normal number.
template <class real>
NSC_FUNCTION Vec<real> logistic_tail(Vec<real> t) {
    using C = Constants<real>;
    // -t = k log(2) + r; log(2) in two parts, the first so short that its products with k are exact.
    const Vec<real> inside = within_exp<real>(t);
    const Vec<real> shifted = C::rounding - inside * real(1.4426950408889634), k = shifted - C::rounding;
    const Vec<real> r = (-inside - k * C::log2_high) - k * C::log2_low;
    const Vec<real> odds = small_exp<real>(r) * power_of_two<real>(shifted);
    return odds / (1 + odds);
}
// x^(-1/4) of a finite x > 0: a guess from the exponent, a polynomial correction, then Newton steps.
template <class real>
NSC_FUNCTION Vec<real> inverse_power(Vec<real> x) {
    using C = Constants<real>;
    const auto lacks = [&](Vec<real> power) NSC_INLINE { return 1 - x * (power * power) * (power * power); };
    Vec<real> y = from_bits<real>(C::root_guess - (bits_of<real>(x) >> 2));
    const Vec<real> d = lacks(y);
    y = y + y * (d * polynomial(C::root(), d));
    for (int step = 0; step < C::newton_steps; ++step) y = y + y * lacks(y) / 4;
    return y;
}

// ------------------------------------------------------------------------------------ relaxation

// f(-t) for t >= 0, the smaller weight of a comparator. f is logistic, Petersen et al., ICML 2021.
template <class real>
NSC_FUNCTION Vec<real> tail_of(Vec<real> t) {
    return logistic_tail<real>(t);
}

// The two weights of a comparator: keep = f(v) and swap = f(-v) = 1 - f(v).
template <class real>
struct Sigmoid {
    Vec<real> keep, swap;
};

// The smaller weight is computed, so that both have full precision: 1 - keep has none where keep rounds to 1.
template <class real>
NSC_FUNCTION Sigmoid<real> sigmoid(Vec<real> v) {
    const Vec<real> tail = tail_of<real>(magnitude<real>(v)), rest = 1 - tail;
    return {v < 0 ? tail : rest, v < 0 ? rest : tail};
}

// f'(v), given both weights.
template <class real>
NSC_FUNCTION Vec<real> sigmoid_slope(Vec<real> v, Vec<real> keep, Vec<real> swap) {
    const Vec<real> t = magnitude<real>(v);
    (void)t, (void)keep, (void)swap;
    return keep * swap;
}

// The activation replacement is phi(d) = d times a stretch, which depends on the size |d|. The elasticity of phi,
// d phi'(d) / phi(d), is given the stretch as well.
// phi(d) = d / (|d| + 1e-10)^lambda, lambda = 0.25.
template <class real>
NSC_FUNCTION Vec<real> stretch_of(Vec<real> size) {
    return inverse_power<real>(size + real(1e-10));
}

template <class real>
NSC_FUNCTION Vec<real> elasticity(Vec<real> size, Vec<real> power) {
    (void)size, (void)power;
    return real(0x1.8000000000000p-1) + real(0x1.0000000000000p-2) * real(1e-10) * ((power * power) * (power * power));
}

template <class real>
NSC_FUNCTION Vec<real> phi(Vec<real> d) {
    return d * stretch_of<real>(magnitude<real>(d));
}

template <class real>
NSC_FUNCTION Vec<real> phi_slope(Vec<real> d) {
    const Vec<real> size = magnitude<real>(d), power = stretch_of<real>(size);
    return power * elasticity<real>(size, power);
}

// --------------------------------------------------------------------------------------- weights

// The weights of mixes, by slot.
template <class T>
struct Mixes {
    T *keep, *swap;
    NSC_FUNCTION Mixes from(int64_t slot) const { return {keep + slot, swap + slot}; }
};

// What the keys pass leaves for the routing and for the backward pass, by slot.
template <class T>
struct Weights {
    Mixes<T> forward, backward;  // the same arrays
    T *gap;  // x[hi] - x[lo]; infinite where the weights are constant
    NSC_FUNCTION Weights from(int64_t slot) const { return {forward.from(slot), backward.from(slot), gap + slot}; }
};

constexpr int64_t arrays = 3;  // of weights, per sample

// Weights in arrays that are `stride` apart.
template <class T>
NSC_FUNCTION Weights<T> weights_at(T *start, int64_t stride) {
    const Mixes<T> mixes = {start, start + stride};
    return {mixes, mixes, start + 2 * stride};
}

// A comparator's weights.
template <class T>
struct Mix {
    T keep, swap;
};

// Both results of a comparator are mixed in this order of terms: a compiler that fuses a product with the sum
// then fuses the same one in both, and renaming the wires changes no bit.
template <class T>
NSC_STEP T mixed(Mix<T> m, T a, T b) {
    return m.keep * a + m.swap * b;
}

// ------------------------------------------------------------------------------------- keys pass

// The weights of a sample.
template <class T>
__device__ inline Weights<T> weights_of(T *weights, int64_t sample) {
    return weights_at(weights + sample * arrays * slots, slots);
}

// A sample's wires in shared memory, with gaps so that wires 32 apart lie in different banks; the last
// place is no wire's.
constexpr int32_t samples_per_block = keys_threads / sample_threads, sample_places = wires + wires / 32 + 1;

__device__ inline int32_t place_of(int32_t wire) { return wire + wire / 32; }

__device__ inline void wait_for_sample() {
    if constexpr (sample_threads <= 32)
        __syncwarp();
    else
        __syncthreads();
}

// This thread's part of a sample's work.
struct Share {
    __device__ explicit Share(int64_t batch)
        : thread(int32_t(threadIdx.x) % sample_threads), place(int32_t(threadIdx.x) / sample_threads),
          sample(int64_t(blockIdx.x) * samples_per_block + place), is_there(sample < batch) {
        if (!is_there) sample = batch - 1;  // there is no sample for it here, but every thread must reach the barriers
    }
    int32_t thread, place;
    int64_t sample;
    bool is_there;
};

// The comparator of a thread in a round that begins and ends at these places of the table.
struct Bounds {
    int32_t begin, end;
};

__device__ inline Bounds bounds_of(int32_t turn, bool backwards) {
    if (turn >= rounds) return {0, 0};
    const int32_t round = backwards ? rounds - 1 - turn : turn;
    return {round ? round_ends[round - 1] : 0, round_ends[round]};
}

__device__ inline Comparator comparator_of(Bounds bounds, int32_t thread) {
    const int32_t place = bounds.begin + thread;
    if (place >= bounds.end) return {};
    return in_rounds[place];
}

// Calls visit(comparator, what fetch(slot) returned) for this thread's comparators, round by round, with a barrier
// behind each. A round's reads are requested in the rounds before it: its bounds three rounds ahead, its comparators two,
// its fetched numbers one.
template <class Fetch, class Visit>
__device__ __forceinline__ void for_each_comparator(bool backwards, int32_t thread, Fetch fetch, Visit visit) {
    using Fetched = decltype(fetch(0));
    const auto fetched_for = [&](Comparator comparator) { return comparator.lo == comparator.hi ? Fetched{} : fetch(comparator.slot); };
    Comparator next = comparator_of(bounds_of(0, backwards), thread), second = comparator_of(bounds_of(1, backwards), thread);
    Bounds third = bounds_of(2, backwards);
    Fetched fetched_next = fetched_for(next);
    for (int32_t turn = 0; turn < rounds; ++turn) {
        const Comparator comparator = next;
        const Fetched fetched = fetched_next;
        next = second;
        fetched_next = fetched_for(next);
        second = comparator_of(third, thread);
        third = bounds_of(turn + 3, backwards);
        if (comparator.lo != comparator.hi) visit(comparator, fetched);
        wait_for_sample();
    }
}

// What a pass fetches that needs no numbers.
struct Nothing {};

// The steepness, or NaN for an invalid one.
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

// What a comparator leaves for the routing and for the backward pass.
template <class real>
struct Compared {
    Mix<real> forward, backward;
    real gap;
};

// From the values of two wires to their mixed values; returns the weights.
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

// values: may be null; weights: null where they are not needed; target: null, or ranks that must be a permutation.
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
    const auto fetch = [](int32_t) { return Nothing(); };
    for_each_comparator(false, share.thread, fetch, [&](Comparator c, Nothing) {
        const Compared<real> made = compare(y[place_of(c.lo)], y[place_of(c.hi)], slope);
        if (!keeps) return;
        const int32_t slot = c.slot;
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
__device__ inline void sum_chunks(int32_t batch, int32_t chunks, real *weight_grads) {
    constexpr int32_t at_a_time = 8;  // loads in flight
    constexpr int64_t per_sample = slots > 0 ? slots : 1;
    const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (number >= batch * slots) return;
    real *parts = weight_grads + number / per_sample * chunks * slots + number % per_sample, sum = parts[0];
    for (int32_t first = 1; first < chunks; first += at_a_time) {
        real next[at_a_time];
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k) next[k] = first + k < chunks ? parts[(first + k) * slots] : real(0);
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k) sum += next[k];
    }
    parts[0] = sum;
}

// What the backward pass reads for a comparator: its gap, the gradient of its weight, and its weights.
template <class real>
struct Fetched {
    real gap, weight_grad;
    Mix<real> soft;
};

// From gradients of the values, null for zero, and of the weights, null or in the first of `chunks` places per
// sample, to those of x and of the steepness, null where it is not needed.
template <class real>
__device__ inline void keys_backward(int32_t batch, const real *steepness, int64_t steepness_stride, const real *values_grad,
                                     const real *weights, const real *weight_grads, int32_t chunks, real *x_grad,
                                     real *steepness_grad) {
    const Share share(batch);
    real *grad = reinterpret_cast<real *>(shared_memory) + share.place * sample_places, steepness_part = 0;
    const real slope = checked(steepness[share.sample * steepness_stride]);
    const real *from = values_grad ? values_grad + share.sample * wires : nullptr;
    for (int32_t i = share.thread; i < wires; i += sample_threads) grad[place_of(i)] = from ? from[i] : real(0);
    wait_for_sample();
    const Weights<const real> kept = weights_of(weights, share.sample);
    const real *weight_grad = weight_grads ? weight_grads + share.sample * chunks * slots : nullptr;
    const auto fetch = [&](int32_t slot) {
        return Fetched<real>{kept.gap[slot], weight_grad ? weight_grad[slot] : real(0), {kept.backward.keep[slot], kept.backward.swap[slot]}};
    };
    for_each_comparator(true, share.thread, fetch, [&](Comparator c, Fetched<real> fetched) {
        real &at_lo = grad[place_of(c.lo)], &at_hi = grad[place_of(c.hi)];
        const real a = at_lo, b = at_hi, gap = fetched.gap, into = fetched.weight_grad - (a - b) * gap;
        const Mix<real> soft = fetched.soft;
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
NSC_FUNCTION Probability<real> complement(Probability<real> of) {
    return {of.rest, of.p};
}

// Whether 1 - p would lose digits. Then the sum of the column's other entries takes its place. Columns sum to
// 1, so at most one entry is so large.
template <class real>
NSC_FUNCTION bool is_large(real p) {
    return p > real(0.75) * unit<real>;
}

// The logarithm of a probability. NaN stays NaN.
template <class real>
NSC_FUNCTION Log<real> log_of(Probability<real> of) {
    if (is_large(of.p)) return logarithm_1p(-Log<real>(of.rest / unit<real>));
    return of.p <= least_probability<real> ? Log<real>(lowest_log) : logarithm(Log<real>(of.p / unit<real>));
}

// The derivative of that logarithm: 1 / p, and 0 where it is cut.
template <class real>
NSC_FUNCTION real slope_of_log(real p) {
    return p <= least_probability<real> ? real(0) : 1 / p;
}

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
    static NSC_CODELET void run(Rows rows, Step step) {
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
    static NSC_CODELET void run_backwards(Rows rows, Step step) {
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
    NSC_CODELET void run_in(Rows rows, Step step) const {
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

// The rows that a codelet works on. Rows are `pitch` apart.
template <class Row, int32_t pitch, class Spread>
struct InPlace {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return first[spread[k] * pitch]; }
    NSC_STEP void store(int32_t k, Row value) const { first[spread[k] * pitch] = value; }
    Row *first;
    Spread spread;
};

// Rows in place. A copy of each that is loaded is kept.
template <class Row, int32_t pitch, class Spread>
struct Keeping {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return kept[k * pitch] = in_place.load(k); }
    NSC_STEP void store(int32_t k, Row value) const { in_place.store(k, value); }
    InPlace<Row, pitch, Spread> in_place;
    Row *kept;
};

// The kept copies. Nothing is stored.
template <class Row, int32_t pitch>
struct Kept {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return kept[k * pitch]; }
    NSC_STEP void store(int32_t, Row) const {}
    const Row *kept;
};

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
    static __device__ constexpr Table<int32_t, 4> places() { return { { 0, 1, 2, 3 } }; }
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
        forward = weights_of(call.weights, sample).forward;
        backward = weights_of(call.backward_weights, sample).backward;
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
    Mixes<const real> forward = {}, backward = {};
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
__device__ __forceinline__ RowsOf<real, T> rows_of(const Tile<real> &tile, T *tensor) {
    return {tile, tensor + int64_t(tile.sample) * wires * tile.call.columns};
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

// ----------------------------------------------------------------------------- losses of columns

// The true rank of a column of this lane; -1 for a number that is no rank.
template <class real>
__device__ __forceinline__ int32_t target_of(const Tile<real> &tile, int32_t k) {
    const int64_t rank = k < tile.present ? tile.call.ranks_of(tile.sample)[tile.column + k] : -1;
    return rank >= 0 && rank < wires ? int32_t(rank) : -1;
}

// The sum of the other entries of a column of this lane. Rarely run: it is not worth as much code as there are wires.
template <class real>
__device__ __forceinline__ real rest_of_column(const Tile<real> &tile, int32_t k, int32_t row) {
    real sum = 0;
    _Pragma("unroll 4")
    for (int32_t other = 0; other < wires; ++other)
        if (other != row) sum += tile.mine[other * tile_lanes].at[k];
    return sum;
}

template <class real>
__device__ __forceinline__ Probability<real> probability_at(const Tile<real> &tile, int32_t k, int32_t row) {
    const real p = tile.mine[row * tile_lanes].at[k];
    return {p, is_large(p) ? rest_of_column(tile, k, row) : unit<real> - p};
}

// The mean over columns of -log P[target, column]; this thread's part of one of its columns.
template <class real>
__device__ __forceinline__ double cross_entropy_loss(const Tile<real> &tile, int32_t k, int32_t target) {
    if (tile.team) return 0;
    return -double(log_of<real>(probability_at(tile, k, target))) / wires;
}

template <class real>
__device__ __forceinline__ void cross_entropy_gradient(const Tile<real> &tile, const int32_t (&target)[lane_columns<real>]) {
    constexpr real share = real(1) / wires;
    real slope[lane_columns<real>];
    for (int32_t k = 0; k < lane_columns<real>; ++k) {
        const real p = target[k] < 0 ? not_a_number<real>() : tile.mine[target[k] * tile_lanes].at[k];
        slope[k] = -share * slope_of_log(p);
    }
    Tile<real>::wait();
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k) at.at[k] = row == target[k] && k < tile.present ? slope[k] : real(0);
    });
}
// The mean over entries of -log p where the target is the entry's row, and of -log(1 - p) elsewhere; this thread's
// part of one of its columns.
template <class real>
__device__ __forceinline__ double binary_cross_entropy_loss(const Tile<real> &tile, int32_t k, int32_t target) {
    double sum = 0;
    tile.for_each_row([&](int32_t row, Columns<real> &) {
        const Probability<real> p = probability_at(tile, k, row);
        sum -= double(log_of<real>(target == row ? p : complement(p)));
    });
    return sum / wires / wires;
}

template <class real>
__device__ __forceinline__ void binary_cross_entropy_gradient(const Tile<real> &tile, const int32_t (&target)[lane_columns<real>]) {
    constexpr real share = real(1) / wires;
    // At most one entry of a column is large. The sum of the others is taken before any is overwritten.
    real rest[lane_columns<real>] = {};
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k)
            if (is_large(at.at[k])) rest[k] = rest_of_column(tile, k, row);
    });
    Tile<real>::wait();
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k) {
            const real p = at.at[k], slope = target[k] == row ? -slope_of_log(p) : slope_of_log(is_large(p) ? rest[k] : unit<real> - p);
            at.at[k] = k < tile.present ? share * share * slope : real(0);
        }
    });
}
// This thread's part of the loss of one of its columns, which are columns of P.
template <class real>
__device__ __forceinline__ double loss_of_column(const Tile<real> &tile, int32_t k) {
    const int32_t target = target_of(tile, k);
    if (target < 0) return not_a_number<double>();
    switch (tile.call.routing) {
        case cross_entropy: return cross_entropy_loss(tile, k, target);
        case binary_cross_entropy: return binary_cross_entropy_loss(tile, k, target);
        default: __builtin_unreachable();
    }
}

template <class real>
__device__ __forceinline__ double loss_part(const Tile<real> &tile) {
    double sum = 0;
    for (int32_t k = 0; k < tile.present; ++k) sum += loss_of_column(tile, k);
    return sum;
}

// Puts the gradient of that loss in place of the tile.
template <class real>
__device__ __forceinline__ void load_loss_gradient(const Tile<real> &tile) {
    int32_t target[lane_columns<real>];
    for (int32_t k = 0; k < lane_columns<real>; ++k) target[k] = target_of(tile, k);
    switch (tile.call.routing) {
        case cross_entropy: return cross_entropy_gradient(tile, target);
        case binary_cross_entropy: return binary_cross_entropy_gradient(tile, target);
        default: __builtin_unreachable();
    }
}

// Stores the loss of a task, the sum over the threads of each of its samples; uses the tile.
template <class real>
__device__ __forceinline__ void store_loss(const Tile<real> &tile, int32_t task, double loss, double *losses) {
    const int32_t lanes = tile.group / Tile<real>::each;
    for (int32_t bit = lanes / 2; bit; bit /= 2) loss += __shfl_xor_sync(tile.mask, loss, bit);
    const int64_t place = int64_t(tile.sample) * tile.call.chunks + task % tile.call.chunks;
    if constexpr (Tile<real>::teams == 1) {
        if (tile.is_sample && tile.lane % lanes == 0) losses[place] = loss;
    } else {
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

// ------------------------------------------------------------------------------ mixes of two rows

template <class Row, class T>
NSC_STEP void mix(Row &lo, Row &hi, Mix<T> m) {
    const Row a = lo, b = hi;
    lo = mixed(m, a, b);
    hi = mixed(m, b, a);
}

// The difference of two rows. A comparator's weight is multiplied with it.
template <class Row>
NSC_STEP Row difference(const Row &a, const Row &b) {
    return a - b;
}

// ---------------------------------------------------------------------------------- routing pass

// Some weights that lie at a multiple of 16 bytes, read 16 bytes at a time.
template <class real>
struct alignas(16) Pack {
    real at[16 / sizeof(real)];
};

// The weights of a codelet, which begin at a slot. They are used in order, so a pack is read when its first weight is
// used, and takes registers only until its last weight is used.
template <class real, class Code>
struct MixesOf {
    static constexpr int32_t per_pack = 16 / sizeof(real);
    __device__ MixesOf(Mixes<const real> mixes, int32_t slot)
        : keep(reinterpret_cast<const Pack<real> *>(mixes.keep + slot)), swap(reinterpret_cast<const Pack<real> *>(mixes.swap + slot)) {}
    __device__ __forceinline__ Mix<real> operator[](int32_t c) {
        if (c / per_pack != pack) {
            pack = c / per_pack;
            keep_now = keep[pack], swap_now = swap[pack];
        }
        return {keep_now.at[c % per_pack], swap_now.at[c % per_pack]};
    }
    const Pack<real> *keep, *swap;
    Pack<real> keep_now, swap_now;
    int32_t pack = -1;
};

template <class real>
struct MixesOf<real, Tabled> {
    __device__ MixesOf(Mixes<const real> mixes, int32_t slot) : keep(mixes.keep + slot), swap(mixes.swap + slot) {}
    __device__ Mix<real> operator[](int32_t c) const { return {keep[c], swap[c]}; }
    const real *keep, *swap;
};

// This lane's part of the memory for the rows that a tile's codelets load. Each codelet has room for the widest.
template <class real>
__device__ __forceinline__ Columns<real> *kept_by(Columns<real> *kept, int32_t place) {
    return kept + place * (int32_t(widest_codelet) * tile_lanes);
}

// Runs the listed codelets on a tile; `reversed` runs them backwards. With `keeps`, stores in `kept`
// what each of them loads.
template <class real, bool reversed, bool keeps>
__device__ __forceinline__ void run_forward(const Tile<real> &tile, Columns<real> *kept) {
    tile.for_each_codelet(reversed, [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = codelets[number];
        with_code_of(codelet, [&](auto code, auto spread) NSC_INLINE {
            using Rows = InPlace<Columns<real>, tile_lanes, decltype(spread)>;
            const Rows rows = {tile.mine + codelet.base * tile_lanes, spread};
            MixesOf<real, decltype(code)> mixes(tile.forward, codelet.slot);
            const auto step = [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half) NSC_INLINE { mix(a, b, mixes[c], half...); };
            if constexpr (keeps)
                run_code<reversed>(code, Keeping<Columns<real>, tile_lanes, decltype(spread)>{rows, kept_by(kept, place)}, step);
            else
                run_code<reversed>(code, rows, step);
        });
    });
}

// The sums over `count` neighbouring threads of `count` numbers, in thread k that of number k: threads whose numbers
// differ in a bit exchange halves.
template <int32_t count, int32_t bit = count / 2, class real>
__device__ __forceinline__ real folded(real (&numbers)[count], int32_t lane, uint32_t mask) {
    if constexpr (bit > 0) {
        NSC_UNROLL
        for (int32_t k = 0; k < bit; ++k) {
            const real mine = lane & bit ? numbers[k + bit] : numbers[k], other = lane & bit ? numbers[k] : numbers[k + bit];
            numbers[k] = mine + __shfl_xor_sync(mask, other, bit);
        }
        return folded<count, bit / 2>(numbers, lane, mask);
    }
    return numbers[0];
}

// Adds the sums over a sample's columns to the gradients of a codelet's weights.
template <class real, class Code>
__device__ __forceinline__ void add_sums(const Tile<real> &tile, Code code, const Columns<real> (&products)[Code::most()], real *weight_grad) {
    constexpr int32_t lanes = Tile<real>::full_group / Tile<real>::each, length = Code::most();
    if (tile.group == Tile<real>::each) {
        if (!tile.is_sample) return;
        NSC_UNROLL
        for (int32_t c = 0; c < length; ++c)
            if (c < code.count()) weight_grad[c] += products[c].at[0];
    } else if constexpr (Code::is_straight()) {
        const int32_t place = tile.lane % lanes;
        NSC_UNROLL
        for (int32_t first = 0; first < length; first += lanes) {
            real numbers[lanes];
            NSC_UNROLL
            for (int32_t k = 0; k < lanes; ++k) numbers[k] = first + k < length ? products[first + k < length ? first + k : 0].at[0] : real(0);
            const real sum = folded<lanes>(numbers, place, tile.mask);
            if (tile.is_sample && first + place < length) weight_grad[first + place] += sum;
        }
    } else {
        for (int32_t c = 0; c < code.count(); ++c) {
            real sum = products[c].at[0];
            for (int32_t bit = lanes / 2; bit; bit /= 2) sum += __shfl_xor_sync(tile.mask, sum, bit);
            if (tile.is_sample && tile.lane % lanes == c % lanes) weight_grad[c] += sum;
        }
    }
}

// Takes the gradient of a routed tile back to the payload, in place, and adds the gradients of the
// weights to `weight_grad`. `kept` is what run_forward kept.
template <class real, bool reversed>
__device__ __forceinline__ void run_backward(const Tile<real> &tile, Columns<real> *kept, real *weight_grad) {
    tile.for_each_codelet(!reversed, [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = codelets[number];
        with_code_of(codelet, [&](auto code, auto spread) NSC_INLINE {
            // For each comparator first the difference of the payload in front of it. Then its products with the
            // difference of the gradient behind it, summed over the columns into the first column.
            Columns<real> products[decltype(code)::most()];
            MixesOf<real, decltype(code)> forward(tile.forward, codelet.slot);
            run_code<reversed>(code, Kept<Columns<real>, tile_lanes>{kept_by(kept, place)}, [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half) NSC_INLINE {
                products[c] = difference(a, b, half...);
                mix(a, b, forward[c], half...);
            });
            // Else the compiler reads ahead for the second half, and the registers are full.
            __syncwarp(tile.mask);
            using Rows = InPlace<Columns<real>, tile_lanes, decltype(spread)>;
            const Rows rows = {tile.mine + codelet.base * tile_lanes, spread};
            MixesOf<real, decltype(code)> backward(tile.backward, codelet.slot);
            run_code<!reversed>(code, rows, [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half) NSC_INLINE {
                products[c].at[0] = dot(products[c], difference(a, b, half...));
                mix(a, b, backward[c], half...);
            });
            add_sums(tile, code, products, weight_grad + codelet.slot);
        });
    });
}

// Fills the tile with columns of the payload. The ones of a unit matrix are `unit_entry`.
template <class real>
__device__ __forceinline__ void load_payload(const Tile<real> &tile, real unit_entry) {
    const Call<real> &call = tile.call;
    if (has_columns(call.routing)) {
        const real *payload = static_cast<const real *>(call.payload) + tile.sample * call.payload_stride;
        return read_rows(tile, RowsOf<real, const real>(tile, payload));
    }
    // The row of each column's one, and the value of its other rows: NaN where the rank is invalid.
    int32_t ones[lane_columns<real>];
    real others[lane_columns<real>];
    for (int32_t k = 0; k < lane_columns<real>; ++k) {
        const bool is_there = k < tile.present;
        const int64_t rank = is_there && has_ranks(call.routing) ? call.ranks_of(tile.sample)[tile.column + k] : tile.column + k;
        const bool is_rank = rank >= 0 && rank < wires;
        ones[k] = is_there && is_rank ? int32_t(rank) : -1;
        others[k] = is_there && !is_rank ? not_a_number<real>() : real(0);
    }
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k) at.at[k] = row == ones[k] ? unit_entry : others[k];
    });
}

// routed: the result, null for a loss. losses: a part for each sample and chunk.
template <class real, bool reversed>
__device__ __forceinline__ void route_forward(const Call<real> &call, real *__restrict__ routed, double *__restrict__ losses) {
    Tile<real> tile(call);
    const real scale = has_columns(call.routing) ? real(1) : 1 / unit<real>;
    for (int32_t task = Tile<real>::number(); task < tile.tasks; task += Tile<real>::count()) {
        double loss = 0;
        for (int32_t piece = tile.first_piece(task); piece < tile.end_piece(task); ++piece) {
            tile.go_to(task, piece);
            load_payload(tile, unit<real>);
            Tile<real>::wait();
            run_forward<real, reversed, false>(tile, nullptr);
            if (is_loss(call.routing)) {
                loss += loss_part(tile);
            } else {
                write_rows(tile, rows_of(tile, routed), scale);
            }
            Tile<real>::wait();
        }
        if (is_loss(call.routing)) store_loss(tile, task, loss, losses);
    }
}

// routed_grad: the gradient of the routed payload, null for a loss. losses: a part of the loss for each sample and
// chunk, or null. weight_grads: for each sample and chunk, a place for each slot. payload_grad: as the payload, or
// null. kept: for each tile of the grid, memory for the rows that its codelets load.
template <class real, bool reversed>
__device__ __forceinline__ void route_backward(const Call<real> &call, const real *__restrict__ routed_grad,
                                               real *__restrict__ weight_grads, real *__restrict__ payload_grad,
                                               double *__restrict__ losses, Columns<real> *__restrict__ kept, int32_t kept_rows) {
    Tile<real> tile(call);
    kept += int64_t(Tile<real>::number()) * kept_rows * tile_lanes + tile.lane;
    for (int32_t task = Tile<real>::number(); task < tile.tasks; task += Tile<real>::count()) {
        double loss = 0;
        tile.go_to(task, tile.first_piece(task));
        real *weight_grad = weight_grads + (int64_t(tile.sample) * call.chunks + task % call.chunks) * slots;
        const int32_t lanes = tile.group / Tile<real>::each;
        for (int32_t slot = tile.team * lanes + tile.lane % lanes; tile.is_sample && slot < slots; slot += Tile<real>::teams * lanes)
            weight_grad[slot] = 0;
        for (int32_t piece = tile.first_piece(task); piece < tile.end_piece(task); ++piece) {
            tile.go_to(task, piece);
            load_payload(tile, is_loss(call.routing) ? unit<real> : real(1));
            Tile<real>::wait();
            run_forward<real, reversed, true>(tile, kept);
            if (losses) loss += loss_part(tile);
            if (is_loss(call.routing))
                load_loss_gradient(tile);
            else
                read_rows(tile, rows_of(tile, routed_grad));
            Tile<real>::wait();
            run_backward<real, reversed>(tile, kept, weight_grad);
            if (payload_grad) write_rows(tile, rows_of(tile, payload_grad), real(1));
            Tile<real>::wait();
        }
        if (losses) store_loss(tile, task, loss, losses);
    }
}

}  // namespace

// ----------------------------------------------------------------------------------- the kernels

// What these kernels are. The runtime compares it with the manifest, so that a changed manifest cannot make a launch
// misread its memory.
extern "C" __device__ const char nsc_facts[] = "{\"abi\": 9, \"kind\": \"relaxed\", \"name\": \"bitonic_4\", \"network\": \"8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a\", \"proof\": \"proved\", \"n\": 4, \"size\": 6, \"depth\": 3, \"selection\": null, \"outputs\": null, \"sigmoid\": \"logistic\", \"art_lambda\": 0.25, \"error_free\": false, \"reals\": {\"float32\": [\"float32\", \"bfloat16\", \"float16\"]}, \"cuda\": {\"slots\": 16, \"arrays\": 3, \"kept_rows\": 16, \"kept_rows_permutation\": 16, \"tile_threads\": 32, \"tile_lanes\": 32, \"widest_group\": 4, \"routing_threads\": 128, \"sample_threads\": 8, \"keys_threads\": 128}, \"network.json\": \"e36af305ca221a49831e525e84b2d0b946b7d99fe6e21128b5a0195e5e503e65\", \"proof.json\": \"f7d0e33dcfeeabdf085697252fcd479f178e69c215cd07dad070d75701da6e21\"}";

// float32
extern "C" __global__ void __launch_bounds__(keys_threads) nsc_keys_f32(
    int64_t batch, const float *__restrict__ x, const float *__restrict__ steepness, int64_t steepness_stride,
    const int64_t *__restrict__ target, int64_t target_stride, float *__restrict__ values, float *__restrict__ weights) {
    keys_forward<float>(batch, x, steepness, steepness_stride, target, target_stride, values, weights);
}

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
extern "C" __global__ void __launch_bounds__(routing_threads, 3) nsc_route_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const void *__restrict__ payload,
    int64_t payload_stride, int32_t columns, float *__restrict__ routed, double *__restrict__ losses) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, weights, payload, payload_stride, columns};
    route_forward<float, false>(call, routed, losses);
}

extern "C" __global__ void __launch_bounds__(routing_threads, 1) nsc_route_backward_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const float *__restrict__ backward_weights,
    const void *__restrict__ payload, int64_t payload_stride, int32_t columns, const float *__restrict__ routed_grad,
    float *__restrict__ weight_grads, float *__restrict__ payload_grad, double *__restrict__ losses,
    void *__restrict__ kept, int32_t kept_rows) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, backward_weights, payload, payload_stride, columns};
    route_backward<float, false>(
        call, routed_grad, weight_grads, payload_grad, losses, static_cast<Columns<float> *>(kept), kept_rows);
}
extern "C" __global__ void __launch_bounds__(routing_threads, 3) nsc_reversed_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const void *__restrict__ payload,
    int64_t payload_stride, int32_t columns, float *__restrict__ routed, double *__restrict__ losses) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, weights, payload, payload_stride, columns};
    route_forward<float, true>(call, routed, losses);
}

extern "C" __global__ void __launch_bounds__(routing_threads, 1) nsc_reversed_backward_f32(
    int32_t routing, int32_t batch, int32_t chunks, const float *__restrict__ weights, const float *__restrict__ backward_weights,
    const void *__restrict__ payload, int64_t payload_stride, int32_t columns, const float *__restrict__ routed_grad,
    float *__restrict__ weight_grads, float *__restrict__ payload_grad, double *__restrict__ losses,
    void *__restrict__ kept, int32_t kept_rows) {
    const Call<float> call = {static_cast<Routing>(routing), batch, chunks, weights, backward_weights, payload, payload_stride, columns};
    route_backward<float, true>(
        call, routed_grad, weight_grads, payload_grad, losses, static_cast<Columns<float> *>(kept), kept_rows);
}
