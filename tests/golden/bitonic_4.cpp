// bitonic_4: differentiable sorting of 4 values.
//
// Made by:    nsc compile --net bitonic --n 4
// nsc:        0
// Network:    4 wires, 6 comparators, 3 layers, sha256 8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a
// Proof:      sorts every input, by exhaustive: untangled to standard form; all 2^4 0-1 inputs come out sorted
// Relaxation: logistic, ART λ = 0.25
//
// A relaxed comparator (lo, hi) is a 2x2 mix with keep weight a = f(steepness * phi(x[hi] - x[lo])):
//
//     y[lo] = a x[lo] + (1 - a) x[hi]          y[hi] = (1 - a) x[lo] + a x[hi]
//
// so the network is a product P of such mixes and y = P x. Everything is one of two passes:
//
//   keys     x -> the weights a of all comparators and the sorted values y;
//   routing  the same mixes applied to the rows of a payload: P V in the order of the layers,
//            P^T U in the reverse order. P itself is the payload V = I, a block of columns at a time.
//
// The routing runs codelets, pieces of at most 16 wires that stay in registers. The backward routing
// keeps what each codelet loads and recomputes what lies inside; a gradient G of the routed payload
// goes back through the same mixes, and the gradient of a weight is the sum over columns of
// (G[lo] - G[hi]) (V[lo] - V[hi]). One reverse keys pass then turns gradients
// of weights and values into gradients of x and of the steepness.
//
// Results do not depend on the number of threads: sums are cut into pieces by shape alone and added
// in a fixed order.

// C headers only: what is compiled here needs no C++ library.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace {

// The functions of math.h for both arithmetic types.
inline float exp(float x) { return __builtin_expf(x); }
inline float log(float x) { return __builtin_logf(x); }
inline float log1p(float x) { return __builtin_log1pf(x); }
inline float erfc(float x) { return __builtin_erfcf(x); }
inline float atan(float x) { return __builtin_atanf(x); }
inline float fabs(float x) { return __builtin_fabsf(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float pow(float x, float y) { return __builtin_powf(x, y); }
inline double exp(double x) { return __builtin_exp(x); }
inline double log(double x) { return __builtin_log(x); }
inline double log1p(double x) { return __builtin_log1p(x); }
inline double erfc(double x) { return __builtin_erfc(x); }
inline double atan(double x) { return __builtin_atan(x); }
inline double fabs(double x) { return __builtin_fabs(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline double pow(double x, double y) { return __builtin_pow(x, y); }

constexpr int64_t wires = 4;
constexpr int64_t comparators = 6;
constexpr int64_t run_count = 4;
constexpr int64_t codelet_count = 1;
constexpr int64_t loads = 4;  // wires that the codelets load together
constexpr int64_t slots = 16;  // places for weights
constexpr int64_t widest_codelet = 16, longest_codelet = 128;  // most wires, most comparators
constexpr int64_t most_chunks = 16;  // pieces that a sample's columns are cut into
constexpr int64_t scratch_bytes = 33554432;  // aim for the weights held at a time

// Comparators (lo + i step, hi + i step) for i < count, the first of which is comparator `first`.
struct Run {
    int32_t lo, hi, step, count, first;
};

// One line per layer.
constexpr Run runs[] = {
    {0, 1, 1, 1, 0}, {3, 2, 1, 1, 1},
    {0, 2, 1, 2, 2},
    {0, 1, 2, 2, 4},
    {0, 0, 0, 0, 6},
};

// The same comparators, cut into codelets that are run on the wires they load: base + spread[k] for k
// from `spread` on. A codelet's weights begin at slot `slot`.
struct Codelet {
    int32_t shape, spread, base, slot;
};

constexpr Codelet codelets[] = {
    {0, 0, 0, 0}, {0, 0, 0, 0},
};

constexpr uint16_t spreads[] = {
    0, 1, 2, 3, 0,
};

// What codelets of one shape do: comparators between places in their spreads of wires.
struct Shape {
    int32_t wires, first_pair, comparators;
};

struct Pair {
    uint8_t a, b;
};

constexpr Shape shapes[] = {
    {4, 0, 6}, {0, 0, 0},
};

constexpr Pair shape_pairs[] = {
    {0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}, {2, 3}, {0, 0},
};

enum Status { ok = 0, out_of_memory = 1, bad_steepness = 2, no_permutation = 3 };
enum Routing { none = 0, permutation = 1, route = 2, transposed = 3, cross_entropy = 4, binary_cross_entropy = 5 };

// ----------------------------------------------------------------------------------- preparation

// Memory that is freed on leaving its scope; null when there is none.
struct Memory {
    explicit Memory(int64_t bytes) : start(malloc(bytes + 64)) {}
    ~Memory() { free(start); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    // The memory from the next cache line on.
    template <class T>
    T *get() const {
        return reinterpret_cast<T *>((reinterpret_cast<uintptr_t>(start) + 63) & ~uintptr_t(63));
    }
    void *start;
};

// The slot of each comparator, in the order of the runs.
int32_t slot_of[comparators + 1];

// Light cones: for each 16 columns of P, a bit for each codelet that they reach; on all others
// these columns are zero.
constexpr int64_t cone_columns = 16;
constexpr int64_t cones = (wires + cone_columns - 1) / cone_columns;
constexpr int64_t cone_words = (cones + 63) / 64, codelet_words = (codelet_count + 63) / 64;
uint64_t reached_from[cones][codelet_words + 1];

// Finds the slots: the k-th comparator on a wire is the same in the order of the runs and of the codelets.
Status find_slots() {
    const Memory memory(sizeof(int32_t) * (2 * wires + 1 + 2 * comparators));
    if (!memory.start) return out_of_memory;
    int32_t *start = memory.get<int32_t>(), *seen = start + wires + 1, *slots_on = seen + wires;
    memset(start, 0, sizeof(int32_t) * (2 * wires + 1));
    for (int64_t r = 0; r < run_count; ++r)
        for (int32_t i = 0; i < runs[r].count; ++i)
            ++start[runs[r].lo + i * runs[r].step + 1], ++start[runs[r].hi + i * runs[r].step + 1];
    for (int64_t w = 0; w < wires; ++w) start[w + 1] += start[w];
    for (int64_t c = 0; c < codelet_count; ++c) {
        const Shape shape = shapes[codelets[c].shape];
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const Pair pair = shape_pairs[shape.first_pair + i];
            const uint16_t *spread = spreads + codelets[c].spread;
            const int32_t a = codelets[c].base + spread[pair.a], b = codelets[c].base + spread[pair.b];
            slots_on[start[a] + seen[a]++] = slots_on[start[b] + seen[b]++] = codelets[c].slot + i;
        }
    }
    memset(seen, 0, sizeof(int32_t) * wires);
    for (int64_t r = 0; r < run_count; ++r)
        for (int32_t i = 0; i < runs[r].count; ++i) {
            const int32_t lo = runs[r].lo + i * runs[r].step, hi = runs[r].hi + i * runs[r].step;
            slot_of[runs[r].first + i] = slots_on[start[lo] + seen[lo]++];
            ++seen[hi];
        }
    return ok;
}

// Finds the light cones: what reaches one of a codelet's wires reaches, behind it, all of them.
Status find_cones() {
    using Reached = uint64_t[cone_words];
    const Memory memory(sizeof(Reached) * wires);
    if (!memory.start) return out_of_memory;
    Reached *on = memory.get<Reached>();
    memset(on, 0, sizeof(Reached) * wires);
    for (int64_t w = 0; w < wires; ++w) on[w][w / cone_columns / 64] |= uint64_t(1) << w / cone_columns % 64;
    for (int64_t c = 0; c < codelet_count; ++c) {
        const uint16_t *spread = spreads + codelets[c].spread;
        Reached *at = on + codelets[c].base;
        const int32_t count = shapes[codelets[c].shape].wires;
        for (int64_t word = 0; word < cone_words; ++word) {
            uint64_t any = 0;
            for (int32_t k = 0; k < count; ++k) any |= at[spread[k]][word];
            for (int32_t k = 0; k < count; ++k) at[spread[k]][word] = any;
            for (; any; any &= any - 1)
                reached_from[64 * word + __builtin_ctzll(any)][c / 64] |= uint64_t(1) << c % 64;
        }
    }
    return ok;
}

Status prepare() {
    const Status slots_found = find_slots();
    return slots_found == ok ? find_cones() : slots_found;
}

// ------------------------------------------------------------------------------------ relaxation

// f(v): logistic, Petersen et al., ICML 2021
template <class real>
inline real sigmoid(real v) {
    return 1 / (1 + exp(-v));
}

// f'(v), given alpha = f(v).
template <class real>
inline real sigmoid_slope(real v, real alpha) {
    (void)v, (void)alpha;
    return alpha * (1 - alpha);
}

// The activation replacement trick: phi(d) = d / (|d| + 1e-10)^lambda, lambda = 0.25.
template <class real>
inline real phi(real d, real *slope) {
    const real size = fabs(d) + real(1e-10);
    const real power = sqrt(sqrt(size));
    *slope = 1 / power - real(0x1.0000000000000p-2) * fabs(d) / (power * size);
    return d / power;
}

// a times x, where a weight of zero silences an infinite x.
template <class real>
inline real weighted(real a, real x) {
    return a == 0 ? real(0) : a * x;
}

// ------------------------------------------------------------------------------------- keys pass

// What the keys pass leaves for the routing and for the backward pass, by slot.
template <class real>
struct Weights {
    real *keep;  // the weight that the forward mixes use
    real *soft;  // the weight that the backward mixes use; the same array
    real *gap;   // x[hi] - x[lo] in front of the comparator; infinite where the weight is constant
};

template <class real>
void keys_forward(const real *x, real steepness, real *y, Weights<real> w) {
    memcpy(y, x, sizeof(real) * wires);
    for (int64_t r = 0; r < run_count; ++r) {
        const Run run = runs[r];
        for (int32_t i = 0; i < run.count; ++i) {
            real &lo = y[run.lo + i * run.step], &hi = y[run.hi + i * run.step];
            const real a = lo, b = hi;
            const bool tie = a == b;
            real gap = tie ? real(0) : b - a;
            real slope;
            real soft = sigmoid(steepness * phi(gap, &slope));
            if (__builtin_isinf(gap) || (tie && __builtin_isinf(a))) {  // limits: infinite values sort exactly
                soft = tie ? real(0.5) : gap > 0 ? real(1) : real(0);
                gap = real(__builtin_inf());
            }
            const real keep = soft;
            const int32_t slot = slot_of[run.first + i];
            w.gap[slot] = gap;
            w.soft[slot] = soft;
            w.keep[slot] = keep;
            lo = weighted(keep, a) + weighted(1 - keep, b);
            hi = weighted(1 - keep, a) + weighted(keep, b);
        }
    }
}

// Turns the gradient of the values, in place in `grad`, and of the weights into the gradient of x;
// returns the gradient of the steepness.
template <class real>
real keys_backward(real *grad, const real *weight_grad, real steepness, Weights<real> w) {
    real steepness_grad = 0;
    for (int64_t r = run_count - 1; r >= 0; --r) {
        const Run run = runs[r];
        for (int32_t i = 0; i < run.count; ++i) {
            real &lo = grad[run.lo + i * run.step], &hi = grad[run.hi + i * run.step];
            const int32_t slot = slot_of[run.first + i];
            const real a = lo, b = hi, gap = w.gap[slot], soft = w.soft[slot];
            const real mixed_lo = soft * a + (1 - soft) * b, mixed_hi = (1 - soft) * a + soft * b;
            real through = 0;
            if (!__builtin_isinf(gap)) {
                real phi_slope;
                const real activation = phi(gap, &phi_slope);
                const real into = (weight_grad[slot] - (a - b) * gap) *
                                  sigmoid_slope(steepness * activation, soft);
                through = into * steepness * phi_slope;
                steepness_grad += into * activation;
            }
            lo = mixed_lo - through;
            hi = mixed_hi + through;
        }
    }
    return steepness_grad;
}

// ---------------------------------------------------------------------------------- routing pass

#if defined(__AVX512F__)
constexpr int64_t register_bytes = 64;
#elif defined(__AVX__)
constexpr int64_t register_bytes = 32;
#else
constexpr int64_t register_bytes = 16;
#endif

// One row of a block: `lanes` columns of a payload in a register.
template <class real>
struct VecOf {
    typedef real type __attribute__((vector_size(register_bytes)));
};

template <class real>
using Vec = typename VecOf<real>::type;

template <class real>
constexpr int64_t lanes = register_bytes / int64_t(sizeof(real));

template <class real>
inline void mix(Vec<real> &lo, Vec<real> &hi, real keep) {
    const real swap = 1 - keep;
    const Vec<real> a = lo, b = hi;
    lo = keep * a + swap * b;
    hi = swap * a + keep * b;
}

// Sums over lanes, `lanes` rows at a time: folding two rows into one halves the lanes of each, so that
// in the end every lane of one register is the sum of a row.
template <int... places>
struct Places {};

template <int count, int... places>
struct PlacesTo : PlacesTo<count - 1, count - 1, places...> {};

template <int... places>
struct PlacesTo<0, places...> {
    using list = Places<places...>;
};

// Where lane `place` of a fold comes from: p and q hold groups of `group` lanes, each folded to its half.
constexpr int fold_source(int place, int group, int width, int half) {
    const int which = place / (group / 2), groups = width / group;
    return (which % groups) * group + place % (group / 2) + half * (group / 2) + (which / groups) * width;
}

template <class real, int group, int... places>
inline Vec<real> fold(Vec<real> p, Vec<real> q, Places<places...>) {
    constexpr int width = lanes<real>;
    return __builtin_shufflevector(p, q, fold_source(places, group, width, 0)...) +
           __builtin_shufflevector(p, q, fold_source(places, group, width, 1)...);
}

template <class real, int group>
inline Vec<real> row_sums(Vec<real> *rows) {
    if constexpr (group > 1) {
        for (int i = 0; i < group / 2; ++i)
            rows[i] = fold<real, group>(rows[2 * i], rows[2 * i + 1], typename PlacesTo<lanes<real>>::list());
        return row_sums<real, group / 2>(rows);
    }
    return rows[0];
}
// Shape 0: 4 wires, 6 comparators.
template <class real>
void shape_0_forward(Vec<real> *block, const uint16_t *spread, const real *keep) {
    Vec<real> w0 = block[spread[0]];
    Vec<real> w1 = block[spread[1]];
    Vec<real> w2 = block[spread[2]];
    Vec<real> w3 = block[spread[3]];
    mix<real>(w0, w1, keep[0]);
    mix<real>(w2, w3, keep[1]);
    mix<real>(w0, w2, keep[2]);
    mix<real>(w1, w3, keep[3]);
    mix<real>(w0, w1, keep[4]);
    mix<real>(w2, w3, keep[5]);
    block[spread[0]] = w0;
    block[spread[1]] = w1;
    block[spread[2]] = w2;
    block[spread[3]] = w3;
}

template <class real>
void shape_0_backward(const Vec<real> *kept, Vec<real> *grad, const uint16_t *spread, const real *keep,
                      const real *soft, Vec<real> *product) {
    Vec<real> w0 = kept[0];
    Vec<real> w1 = kept[1];
    Vec<real> w2 = kept[2];
    Vec<real> w3 = kept[3];
    product[0] = w0 - w1, mix<real>(w0, w1, keep[0]);
    product[1] = w2 - w3, mix<real>(w2, w3, keep[1]);
    product[2] = w0 - w2, mix<real>(w0, w2, keep[2]);
    product[3] = w1 - w3, mix<real>(w1, w3, keep[3]);
    product[4] = w0 - w1, mix<real>(w0, w1, keep[4]);
    product[5] = w2 - w3, mix<real>(w2, w3, keep[5]);
    w0 = grad[spread[0]];
    w1 = grad[spread[1]];
    w2 = grad[spread[2]];
    w3 = grad[spread[3]];
    product[5] *= w2 - w3, mix<real>(w2, w3, soft[5]);
    product[4] *= w0 - w1, mix<real>(w0, w1, soft[4]);
    product[3] *= w1 - w3, mix<real>(w1, w3, soft[3]);
    product[2] *= w0 - w2, mix<real>(w0, w2, soft[2]);
    product[1] *= w2 - w3, mix<real>(w2, w3, soft[1]);
    product[0] *= w0 - w1, mix<real>(w0, w1, soft[0]);
    grad[spread[0]] = w0;
    grad[spread[1]] = w1;
    grad[spread[2]] = w2;
    grad[spread[3]] = w3;
}
// Runs a codelet on a block, one row per wire; `reversed` runs its comparators backwards.
template <class real>
void codelet_forward(Codelet codelet, Vec<real> *block, const real *keep, bool reversed) {
    const uint16_t *spread = spreads + codelet.spread;
    block += codelet.base, keep += codelet.slot;
    if (!reversed) switch (codelet.shape) {
            case 0: return shape_0_forward<real>(block, spread, keep);
        }
    const Shape shape = shapes[codelet.shape];
    const Pair *pairs = shape_pairs + shape.first_pair;
    for (int32_t i = 0; i < shape.comparators; ++i) {
        const int32_t c = reversed ? shape.comparators - 1 - i : i;
        mix<real>(block[spread[pairs[c].a]], block[spread[pairs[c].b]], keep[c]);
    }
}

// Takes a gradient back through a codelet, in place, and adds the gradients of its weights. `kept` is
// what the codelet loaded.
template <class real>
void codelet_backward(Codelet codelet, Vec<real> *kept, Vec<real> *grad, Weights<real> w, bool reversed,
                      real *weight_grad) {
    const uint16_t *spread = spreads + codelet.spread;
    const real *keep = w.keep + codelet.slot, *soft = w.soft + codelet.slot;
    grad += codelet.base, weight_grad += codelet.slot;
    const Shape shape = shapes[codelet.shape];
    Vec<real> product[longest_codelet];  // differences of the payload, then times those of the gradient
    const auto by_table = [&] {
        const Pair *pairs = shape_pairs + shape.first_pair;
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const int32_t c = reversed ? shape.comparators - 1 - i : i;
            Vec<real> &a = kept[pairs[c].a], &b = kept[pairs[c].b];
            product[c] = a - b, mix<real>(a, b, keep[c]);
        }
        for (int32_t i = shape.comparators - 1; i >= 0; --i) {
            const int32_t c = reversed ? shape.comparators - 1 - i : i;
            Vec<real> &a = grad[spread[pairs[c].a]], &b = grad[spread[pairs[c].b]];
            product[c] *= a - b, mix<real>(a, b, soft[c]);
        }
    };
    switch (reversed ? -1 : codelet.shape) {
        case 0: shape_0_backward<real>(kept, grad, spread, keep, soft, product); break;
        default: by_table();
    }
    for (int32_t c = 0; c < shape.comparators; c += lanes<real>) {
        for (int32_t rest = shape.comparators; rest < c + lanes<real>; ++rest) product[rest] = Vec<real>{};
        Vec<real> sum;
        memcpy(&sum, weight_grad + c, sizeof sum);
        sum += row_sums<real, lanes<real>>(product + c);
        memcpy(weight_grad + c, &sum, sizeof sum);
    }
}

// Runs the listed codelets, in order, on a block. With `kept`, stores there what each of
// them loads, and returns its end.
template <class real>
Vec<real> *route_forward(Vec<real> *block, const int32_t *list, int64_t count, const real *keep, bool reversed,
                         Vec<real> *kept) {
    for (int64_t i = 0; i < count; ++i) {
        const Codelet codelet = codelets[list[i]];
        if (kept) {
            const uint16_t *spread = spreads + codelet.spread;
            for (int32_t k = 0; k < shapes[codelet.shape].wires; ++k) *kept++ = block[codelet.base + spread[k]];
        }
        codelet_forward<real>(codelet, block, keep, reversed);
    }
    return kept;
}

// Takes the gradient of a routed block back to the payload, in place in `grad`, and adds the
// gradients of the weights to `weight_grad`. `kept` is the end that route_forward returned.
template <class real>
void route_backward(Vec<real> *grad, const int32_t *list, int64_t count, Vec<real> *kept, Weights<real> w,
                    bool reversed, real *weight_grad) {
    while (count > 0) {
        const Codelet codelet = codelets[list[--count]];
        kept -= shapes[codelet.shape].wires;
        codelet_backward<real>(codelet, kept, grad, w, reversed, weight_grad);
    }
}

// ---------------------------------------------------------------------------------------- losses

// Logarithms are cut off at -100 and denominators at 1e-12, as torch's binary cross entropy does, so
// that a probability of exactly 0 has a finite loss and gradient. Rounding may leave a probability
// outside [0, 1] by 1e-7; it is moved to the border. Comparisons let NaN through.
template <class real>
inline real clipped(real p) {
    return p < 0 ? real(0) : p > 1 ? real(1) : p;
}

inline double cut_log(double log) { return log < -100 ? -100 : log; }

template <class real>
inline real at_least(real x, real bound) {
    return x < bound ? bound : x;
}

// The loss of the columns first ... first + width - 1 of P, which are in the block.
template <class real>
double block_loss(const Vec<real> *block, Routing routing, const int64_t *target, int64_t first, int64_t width) {
    double sum = 0;
    if (routing == cross_entropy) {
        for (int64_t k = 0; k < width; ++k) sum -= cut_log(log(double(clipped(block[target[first + k]][k]))));
        return sum / wires;
    }
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const real p = clipped(block[row][k]);
            sum -= cut_log(target[first + k] == row ? log(double(p)) : log1p(-double(p)));
        }
    return sum / wires / wires;
}

// The gradient of that loss, times `scale`.
template <class real>
void block_loss_gradient(const Vec<real> *block, Vec<real> *grad, Routing routing, const int64_t *target,
                         int64_t first, int64_t width, real scale) {
    memset(grad, 0, sizeof(Vec<real>) * wires);
    if (routing == cross_entropy) {
        for (int64_t k = 0; k < width; ++k) {
            const int64_t row = target[first + k];
            grad[row][k] = -scale / wires / at_least(clipped(block[row][k]), real(1e-12));
        }
        return;
    }
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const real p = clipped(block[row][k]), truth = target[first + k] == row;
            grad[row][k] = scale / wires / wires * (p - truth) / at_least(p * (1 - p), real(1e-12));
        }
}

bool is_permutation(const int64_t *target, uint8_t *seen) {
    memset(seen, 0, wires);
    for (int64_t c = 0; c < wires; ++c) {
        if (target[c] < 0 || target[c] >= wires || seen[target[c]]) return false;
        seen[target[c]] = 1;
    }
    return true;
}

// ------------------------------------------------------------------------------------- the calls

// torch_parallel_for, or null for one thread.
using Body = void (*)(int64_t begin, int64_t end, void *context);
using ParallelFor = void (*)(int64_t begin, int64_t end, int64_t grain, Body body, void *context);

template <class Work>
void parallel(ParallelFor pool, int64_t count, int64_t grain, Work &work) {
    const Body body = [](int64_t begin, int64_t end, void *context) { (*static_cast<Work *>(context))(begin, end); };
    if (pool && count > 1)
        pool(0, count, grain, body, &work);
    else
        body(0, count, &work);
}

inline int64_t cut(int64_t total, int64_t pieces, int64_t piece) { return total * piece / pieces; }

template <class real>
struct Call {
    Routing routing;
    int64_t batch;
    const real *x;
    const real *steepness;
    int64_t steepness_stride;
    const void *payload;
    int64_t payload_stride;  // 0: one payload for all samples
    int64_t payload_columns;

    bool is_loss() const { return routing == cross_entropy || routing == binary_cross_entropy; }
    bool reversed() const { return routing == transposed; }
    int64_t columns() const {
        return routing == none ? 0 : routing == route || routing == transposed ? payload_columns : wires;
    }
    int64_t blocks() const { return (columns() + lanes<real> - 1) / lanes<real>; }
    int64_t chunks() const { return blocks() < most_chunks ? blocks() : most_chunks; }
    real steepness_of(int64_t sample) const { return steepness[sample * steepness_stride]; }
    const real *payload_of(int64_t sample) const {
        return static_cast<const real *>(payload) + sample * payload_stride;
    }
    const int64_t *target_of(int64_t sample) const {
        return static_cast<const int64_t *>(payload) + sample * payload_stride;
    }

    Status check() const {
        for (int64_t b = 0; b < batch; ++b)
            if (!(steepness_of(b) > 0 && __builtin_isfinite(steepness_of(b)))) return bad_steepness;
        if (!is_loss()) return ok;
        const Memory seen(wires);
        if (!seen.start) return out_of_memory;
        for (int64_t b = 0; b < batch; ++b)
            if (!is_permutation(target_of(b), seen.get<uint8_t>())) return no_permutation;
        return ok;
    }

    // Lists the codelets to run on the block that begins at a column, in running order: of P those
    // that its columns reach, of any other payload all.
    int64_t list_codelets(int32_t *list, int64_t column) const {
        int64_t count = 0;
        if (routing == permutation || is_loss()) {
            const uint64_t *reached = reached_from[column / cone_columns];
            for (int64_t word = 0; word < codelet_words; ++word)
                for (uint64_t bits = reached[word]; bits; bits &= bits - 1)
                    list[count++] = int32_t(64 * word + __builtin_ctzll(bits));
        } else {
            for (; count < codelet_count; ++count)
                list[count] = int32_t(reversed() ? codelet_count - 1 - count : count);
        }
        return count;
    }

    // Fills a block with columns first ... first + width - 1 of the payload of a sample.
    void load(Vec<real> *block, int64_t sample, int64_t first, int64_t width) const {
        if (width < lanes<real> || routing == permutation || is_loss()) memset(block, 0, sizeof(Vec<real>) * wires);
        if (routing == permutation || is_loss()) {
            for (int64_t k = 0; k < width; ++k) block[first + k][k] = 1;
            return;
        }
        const real *from = payload_of(sample) + first;
        for (int64_t row = 0; row < wires; ++row)
            memcpy(&block[row], from + row * payload_columns, sizeof(real) * width);
    }
};

// A block between its memory, one row per wire of `columns` values, and a payload.
template <class real>
void store(const Vec<real> *block, real *to, int64_t columns, int64_t width) {
    for (int64_t row = 0; row < wires; ++row) memcpy(to + row * columns, &block[row], sizeof(real) * width);
}

template <class real>
void load_gradient(Vec<real> *block, const real *from, int64_t columns, int64_t width) {
    if (width < lanes<real>) memset(block, 0, sizeof(Vec<real>) * wires);
    for (int64_t row = 0; row < wires; ++row) memcpy(&block[row], from + row * columns, sizeof(real) * width);
}

// Samples whose weights are held at a time: as many as fit the aim, at least one.
inline int64_t group_size(int64_t batch, int64_t bytes_per_sample) {
    const int64_t fits = scratch_bytes / (bytes_per_sample + 1);
    return fits < 1 ? 1 : fits < batch ? fits : batch;
}

// A grain that gives a thread at least some ten microseconds of work.
inline int64_t grain_of(int64_t work_per_task) { return 1 + 32768 / (work_per_task + 1); }

template <class real>
Weights<real> weights_at(real *memory, int64_t sample) {
    real *start = memory + sample * 2 * slots;
    return {start, start, start + slots};
}

// values: (batch, wires). routed: (batch, wires, columns), or (batch) losses, or null.
template <class real>
Status forward(Call<real> call, real *values, real *routed, ParallelFor pool) {
    const Status checked = call.check();
    if (checked != ok) return checked;
    const int64_t per_sample = 2 * slots, chunks = call.chunks(), columns = call.columns();
    const int64_t group = group_size(call.batch, per_sample * sizeof(real));
    const Memory weight_memory(group * per_sample * sizeof(real)), loss_memory(group * chunks * sizeof(double));
    if (!weight_memory.start || !loss_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>();
    double *losses = loss_memory.get<double>();
    int32_t status = ok;
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        auto keys = [&](int64_t begin, int64_t end) {
            for (int64_t b = begin; b < end; ++b)
                keys_forward(call.x + (first + b) * wires, call.steepness_of(first + b),
                             values + (first + b) * wires, weights_at(weights, b));
        };
        parallel(pool, count, grain_of(8 * comparators), keys);
        if (call.routing == none) continue;
        auto routing = [&](int64_t begin, int64_t end) {
            const Memory memory(sizeof(Vec<real>) * wires + sizeof(int32_t) * codelet_count);
            if (!memory.start) return (void)__atomic_store_n(&status, int32_t(out_of_memory), __ATOMIC_RELAXED);
            auto *block = memory.get<Vec<real>>();
            auto *list = reinterpret_cast<int32_t *>(block + wires);
            for (int64_t task = begin; task < end; ++task) {
                const int64_t b = task / chunks, sample = first + b, chunk = task % chunks;
                double loss = 0;
                for (int64_t at = cut(call.blocks(), chunks, chunk); at < cut(call.blocks(), chunks, chunk + 1); ++at) {
                    const int64_t column = at * lanes<real>, width = columns - column < lanes<real> ? columns - column : lanes<real>;
                    call.load(block, sample, column, width);
                    route_forward<real>(block, list, call.list_codelets(list, column), weights_at(weights, b).keep,
                                        call.reversed(), nullptr);
                    if (call.is_loss())
                        loss += block_loss<real>(block, call.routing, call.target_of(sample), column, width);
                    else
                        store<real>(block, routed + sample * wires * columns + column, columns, width);
                }
                losses[task] = loss;
            }
        };
        parallel(pool, count * chunks, grain_of(comparators), routing);
        if (!call.is_loss()) continue;
        for (int64_t b = 0; b < count; ++b) {
            double sum = 0;
            for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += losses[b * chunks + chunk];
            routed[first + b] = real(sum);
        }
    }
    return static_cast<Status>(status);
}

// values_grad, routed_grad: as the outputs of forward, or null for zero. x_grad: (batch, wires).
// steepness_grad: (batch). payload_grad: as the payload, or null.
template <class real>
Status backward(Call<real> call, const real *values_grad, const real *routed_grad, real *x_grad,
                real *steepness_grad, real *payload_grad, ParallelFor pool) {
    const Status checked = call.check();
    if (checked != ok) return checked;
    if (!routed_grad) call.routing = none;
    const int64_t arrays = 2 * slots, chunks = call.chunks(), columns = call.columns();
    const int64_t sums = (chunks > 0 ? chunks : 1) * slots;
    const int64_t group = group_size(call.batch, (arrays + sums) * sizeof(real));
    const Memory weight_memory(group * arrays * sizeof(real)), sum_memory(group * sums * sizeof(real));
    if (!weight_memory.start || !sum_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>(), *weight_grads = sum_memory.get<real>();
    int32_t status = ok;
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        auto keys = [&](int64_t begin, int64_t end) {
            for (int64_t b = begin; b < end; ++b)  // x_grad takes the values, which are not needed
                keys_forward(call.x + (first + b) * wires, call.steepness_of(first + b),
                             x_grad + (first + b) * wires, weights_at(weights, b));
        };
        parallel(pool, count, grain_of(8 * comparators), keys);
        auto routing = [&](int64_t begin, int64_t end) {
            const Memory memory(sizeof(Vec<real>) * (2 * wires + loads) + sizeof(int32_t) * codelet_count);
            if (!memory.start) return (void)__atomic_store_n(&status, int32_t(out_of_memory), __ATOMIC_RELAXED);
            auto *block = memory.get<Vec<real>>(), *grad = block + wires, *kept = grad + wires;
            auto *list = reinterpret_cast<int32_t *>(kept + loads);
            for (int64_t task = begin; task < end; ++task) {
                const int64_t b = task / chunks, sample = first + b, chunk = task % chunks;
                const Weights<real> w = weights_at(weights, b);
                real *weight_grad = weight_grads + task * slots;
                memset(weight_grad, 0, sizeof(real) * slots);
                for (int64_t at = cut(call.blocks(), chunks, chunk); at < cut(call.blocks(), chunks, chunk + 1); ++at) {
                    const int64_t column = at * lanes<real>, width = columns - column < lanes<real> ? columns - column : lanes<real>;
                    const int64_t place = sample * wires * columns + column;
                    call.load(block, sample, column, width);
                    const int64_t listed = call.list_codelets(list, column);
                    Vec<real> *end = route_forward<real>(block, list, listed, w.keep, call.reversed(), kept);
                    if (call.is_loss())
                        block_loss_gradient<real>(block, grad, call.routing, call.target_of(sample), column, width,
                                                  routed_grad[sample]);
                    else
                        load_gradient<real>(grad, routed_grad + place, columns, width);
                    route_backward<real>(grad, list, listed, end, w, call.reversed(), weight_grad);
                    if (payload_grad) store<real>(grad, payload_grad + place, columns, width);
                }
            }
        };
        if (call.routing != none) parallel(pool, count * chunks, grain_of(4 * comparators), routing);
        auto finish = [&](int64_t begin, int64_t end) {
            for (int64_t b = begin; b < end; ++b) {
                real *total = weight_grads + b * sums;
                if (call.routing == none) memset(total, 0, sizeof(real) * slots);
                for (int64_t chunk = 1; chunk < chunks; ++chunk)
                    for (int64_t c = 0; c < slots; ++c) total[c] += total[chunk * slots + c];
                real *grad = x_grad + (first + b) * wires;
                if (values_grad)
                    memcpy(grad, values_grad + (first + b) * wires, sizeof(real) * wires);
                else
                    memset(grad, 0, sizeof(real) * wires);
                steepness_grad[first + b] =
                    keys_backward(grad, total, call.steepness_of(first + b), weights_at(weights, b));
            }
        };
        parallel(pool, count, grain_of(8 * comparators), finish);
    }
    return static_cast<Status>(status);
}

// The order of x ascending, ties by position and NaN last, as torch's stable argsort.
template <class real>
Status argsort(int64_t batch, const real *x, int64_t *indices, ParallelFor pool) {
    int32_t status = ok;
    auto work = [&](int64_t begin, int64_t end) {
        const Memory memory(sizeof(real) * wires);
        if (!memory.start) return (void)__atomic_store_n(&status, int32_t(out_of_memory), __ATOMIC_RELAXED);
        real *key = memory.get<real>();
        for (int64_t b = begin; b < end; ++b) {
            int64_t *index = indices + b * wires;
            memcpy(key, x + b * wires, sizeof(real) * wires);
            for (int64_t w = 0; w < wires; ++w) index[w] = w;
            for (int64_t r = 0; r < run_count; ++r) {
                const Run run = runs[r];
                for (int32_t i = 0; i < run.count; ++i) {
                    const int64_t lo = run.lo + i * run.step, hi = run.hi + i * run.step;
                    const real a = key[lo], c = key[hi];
                    const int64_t p = index[lo], q = index[hi];
                    const bool before = c < a || (a != a && c == c);
                    const bool equal = a == c || (a != a && c != c);
                    const bool swap = before || (equal && q < p);
                    key[lo] = swap ? c : a, key[hi] = swap ? a : c;
                    index[lo] = swap ? q : p, index[hi] = swap ? p : q;
                }
            }
        }
    };
    parallel(pool, batch, grain_of(2 * comparators), work);
    return static_cast<Status>(status);
}

}  // namespace

// ------------------------------------------------------------------------------------ the C ABI

#define NSC_API extern "C" __attribute__((visibility("default")))

NSC_API int64_t nsc_abi() { return 1; }

// Must be called once before anything below.
NSC_API int32_t nsc_prepare() { return prepare(); }

// float32
NSC_API int32_t nsc_forward_f32(
    int32_t routing, int64_t batch, const float *x, const float *steepness, int64_t steepness_stride,
    const void *payload, int64_t payload_stride, int64_t payload_columns, float *values, float *routed,
    void *pool) {
    return forward<float>({static_cast<Routing>(routing), batch, x, steepness, steepness_stride, payload,
                           payload_stride, payload_columns},
                          values, routed, reinterpret_cast<ParallelFor>(pool));
}

NSC_API int32_t nsc_backward_f32(
    int32_t routing, int64_t batch, const float *x, const float *steepness, int64_t steepness_stride,
    const void *payload, int64_t payload_stride, int64_t payload_columns, const float *values_grad,
    const float *routed_grad, float *x_grad, float *steepness_grad, float *payload_grad, void *pool) {
    return backward<float>({static_cast<Routing>(routing), batch, x, steepness, steepness_stride, payload,
                            payload_stride, payload_columns},
                           values_grad, routed_grad, x_grad, steepness_grad, payload_grad,
                           reinterpret_cast<ParallelFor>(pool));
}

NSC_API int32_t nsc_argsort_f32(int64_t batch, const float *x, int64_t *indices, void *pool) {
    return argsort<float>(batch, x, indices, reinterpret_cast<ParallelFor>(pool));
}
