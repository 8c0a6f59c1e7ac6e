// odd_even_3: differentiable sorting of 3 values.
//
// Made by:    nsc compile --net odd_even --n 3 --relaxation optimal --art-lambda 0.3 --error-free --dtype float32 --dtype float64
// nsc:        0
// Network:    3 wires, 3 comparators, 3 layers, sha256 f03dc35fa13cc49324073750abefca014963a8ecf8c9c943afe8222dcc321e17
// Proof:      sorts every input, by primitive: only neighbours are compared, and the reversed input of 3 values comes out sorted
// Relaxation: optimal, ART λ = 0.3, error-free
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
// The backward routing keeps the payload at segment boundaries and recomputes what lies between; a
// gradient G of the routed payload goes back through the same mixes, and the gradient of a weight is
// the sum over columns of (G[lo] - G[hi]) (V[lo] - V[hi]). One reverse keys pass then turns gradients
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

constexpr int64_t wires = 3;
constexpr int64_t comparators = 3;
constexpr int64_t layers = 3;
constexpr int64_t segments = 1;
constexpr int64_t widest_segment = 3;  // comparators in the largest segment
constexpr int64_t lanes = 16;  // columns of a payload that are routed together
constexpr int64_t most_chunks = 16;  // pieces that a sample's columns are cut into
constexpr int64_t scratch_bytes = 33554432;  // aim for the weights held at a time

// Comparators (lo + i step, hi + i step) for i < count; their weights are stored from `weight` on.
struct Run {
    int32_t lo, hi, step, count, weight;
};

// One line per layer.
constexpr Run runs[] = {
    {0, 1, 1, 1, 0},
    {1, 2, 1, 1, 1},
    {0, 1, 1, 1, 2},
    {0, 0, 0, 0, 3},
};

// Layer l is runs[layer_runs[l]] ... runs[layer_runs[l + 1] - 1].
constexpr int32_t layer_runs[] = {
    0, 1, 2, 3
};

// Segment s is layers segment_layers[s] ... segment_layers[s + 1] - 1.
constexpr int32_t segment_layers[] = {
    0, 3
};

enum Status { ok = 0, out_of_memory = 1, bad_steepness = 2, no_permutation = 3 };
enum Routing { none = 0, permutation = 1, route = 2, transposed = 3, cross_entropy = 4, binary_cross_entropy = 5 };

// ------------------------------------------------------------------------------------ relaxation

// f(v): optimal, Petersen et al., ICLR 2022
template <class real>
inline real sigmoid(real v) {
    return v > real(0.25) ? 1 - 1 / (16 * v) : v < real(-0.25) ? -1 / (16 * v) : v + real(0.5);
}

// f'(v), given alpha = f(v).
template <class real>
inline real sigmoid_slope(real v, real alpha) {
    (void)v, (void)alpha;
    return fabs(v) > real(0.25) ? 1 / (16 * v * v) : real(1);
}

// The activation replacement trick: phi(d) = d / (|d| + 1e-10)^lambda, lambda = 0.3.
template <class real>
inline real phi(real d, real *slope) {
    const real size = fabs(d) + real(1e-10);
    const real power = pow(size, real(0x1.3333333333333p-2));
    *slope = 1 / power - real(0x1.3333333333333p-2) * fabs(d) / (power * size);
    return d / power;
}

// a times x, where a weight of zero silences an infinite x.
template <class real>
inline real weighted(real a, real x) {
    return a == 0 ? real(0) : a * x;
}

// ------------------------------------------------------------------------------------- keys pass

// What the keys pass leaves for the routing and for the backward pass, one entry per comparator.
template <class real>
struct Weights {
    real *keep;  // the weight that the forward mixes use
    real *soft;  // the weight that the backward mixes use
    real *gap;   // x[hi] - x[lo] in front of the comparator; infinite where the weight is constant
};

template <class real>
void keys_forward(const real *x, real steepness, real *y, Weights<real> w) {
    memcpy(y, x, sizeof(real) * wires);
    for (int64_t r = 0; r < layer_runs[layers]; ++r) {
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
            const real keep = b < a ? real(0) : b >= a ? real(1) : soft;  // a tie keeps its places
            w.gap[run.weight + i] = gap;
            w.soft[run.weight + i] = soft;
            w.keep[run.weight + i] = keep;
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
    for (int64_t r = layer_runs[layers] - 1; r >= 0; --r) {
        const Run run = runs[r];
        for (int32_t i = 0; i < run.count; ++i) {
            real &lo = grad[run.lo + i * run.step], &hi = grad[run.hi + i * run.step];
            const real a = lo, b = hi, gap = w.gap[run.weight + i], soft = w.soft[run.weight + i];
            const real mixed_lo = soft * a + (1 - soft) * b, mixed_hi = (1 - soft) * a + soft * b;
            real through = 0;
            if (!__builtin_isinf(gap)) {
                real phi_slope;
                const real activation = phi(gap, &phi_slope);
                const real into = (weight_grad[run.weight + i] - (a - b) * gap) *
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

// A block is `lanes` columns of a payload, one row per wire.
template <class real>
using Row = real[lanes];

template <class real>
inline void mix(real *__restrict lo, real *__restrict hi, real keep) {
    const real swap = 1 - keep;
    for (int64_t k = 0; k < lanes; ++k) {
        const real a = lo[k], b = hi[k];
        lo[k] = keep * a + swap * b;
        hi[k] = swap * a + keep * b;
    }
}

// The sum of a row, as a tree of halves.
template <int64_t half, class real>
inline real row_sum(real *row) {
    for (int64_t k = 0; k < half; ++k) row[k] += row[k + half];
    if constexpr (half > 1) row_sum<half / 2>(row);
    return row[0];
}

// The layer at a place of the running order, which for the transposed routing is reversed.
inline int64_t layer_at(int64_t layer, bool reversed) { return reversed ? layers - 1 - layer : layer; }

inline int64_t segment_begin(int64_t segment, bool reversed) {
    return reversed ? layers - segment_layers[segments - segment] : segment_layers[segment];
}

template <class real>
void route_layer(Row<real> *block, int64_t layer, const real *keep) {
    for (int64_t r = layer_runs[layer]; r < layer_runs[layer + 1]; ++r) {
        const Run run = runs[r];
        for (int32_t i = 0; i < run.count; ++i)
            mix(block[run.lo + i * run.step], block[run.hi + i * run.step], keep[run.weight + i]);
    }
}

// Runs a block through the network; with `kept`, stores it in front of every segment.
template <class real>
void route_forward(Row<real> *block, const real *keep, bool reversed, Row<real> *kept) {
    for (int64_t s = 0; s < segments; ++s) {
        if (kept) memcpy(kept + s * wires, block, sizeof(Row<real>) * wires);
        for (int64_t l = segment_begin(s, reversed); l < segment_begin(s + 1, reversed); ++l)
            route_layer(block, layer_at(l, reversed), keep);
    }
}

// Takes the gradient of a routed block back to the payload, in place in `grad`, and adds the
// gradients of the weights to `weight_grad`. `kept` is overwritten.
template <class real>
void route_backward(Row<real> *grad, Row<real> *kept, Row<real> *gaps, Weights<real> w, bool reversed,
                    real *weight_grad) {
    for (int64_t s = segments - 1; s >= 0; --s) {
        Row<real> *block = kept + s * wires;
        const int64_t begin = segment_begin(s, reversed), end = segment_begin(s + 1, reversed);
        const int64_t lowest = reversed ? layer_at(end - 1, true) : begin;
        const int64_t first_weight = begin < end ? runs[layer_runs[lowest]].weight : 0;
        for (int64_t l = begin; l < end; ++l) {
            const int64_t layer = layer_at(l, reversed);
            for (int64_t r = layer_runs[layer]; r < layer_runs[layer + 1]; ++r) {
                const Run run = runs[r];
                for (int32_t i = 0; i < run.count; ++i) {
                    real *gap = gaps[run.weight + i - first_weight];
                    real *lo = block[run.lo + i * run.step], *hi = block[run.hi + i * run.step];
                    for (int64_t k = 0; k < lanes; ++k) gap[k] = lo[k] - hi[k];
                    mix(lo, hi, w.keep[run.weight + i]);
                }
            }
        }
        for (int64_t l = end - 1; l >= begin; --l) {
            const int64_t layer = layer_at(l, reversed);
            for (int64_t r = layer_runs[layer]; r < layer_runs[layer + 1]; ++r) {
                const Run run = runs[r];
                for (int32_t i = 0; i < run.count; ++i) {
                    const real *gap = gaps[run.weight + i - first_weight];
                    real *lo = grad[run.lo + i * run.step], *hi = grad[run.hi + i * run.step];
                    Row<real> product;
                    for (int64_t k = 0; k < lanes; ++k) product[k] = (lo[k] - hi[k]) * gap[k];
                    weight_grad[run.weight + i] += row_sum<lanes / 2>(product);
                    mix(lo, hi, w.soft[run.weight + i]);
                }
            }
        }
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
double block_loss(const Row<real> *block, Routing routing, const int64_t *target, int64_t first, int64_t width) {
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
void block_loss_gradient(const Row<real> *block, Row<real> *grad, Routing routing, const int64_t *target,
                         int64_t first, int64_t width, real scale) {
    memset(grad, 0, sizeof(Row<real>) * wires);
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
    int64_t blocks() const { return (columns() + lanes - 1) / lanes; }
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

    // Fills a block with columns first ... first + width - 1 of the payload of a sample.
    void load(Row<real> *block, int64_t sample, int64_t first, int64_t width) const {
        if (width < lanes || routing == permutation || is_loss()) memset(block, 0, sizeof(Row<real>) * wires);
        if (routing == permutation || is_loss()) {
            for (int64_t k = 0; k < width; ++k) block[first + k][k] = 1;
            return;
        }
        const real *from = payload_of(sample) + first;
        for (int64_t row = 0; row < wires; ++row)
            memcpy(block[row], from + row * payload_columns, sizeof(real) * width);
    }
};

// A block between its memory, one row per wire of `columns` values, and a payload.
template <class real>
void store(const Row<real> *block, real *to, int64_t columns, int64_t width) {
    for (int64_t row = 0; row < wires; ++row) memcpy(to + row * columns, block[row], sizeof(real) * width);
}

template <class real>
void load_gradient(Row<real> *block, const real *from, int64_t columns, int64_t width) {
    if (width < lanes) memset(block, 0, sizeof(Row<real>) * wires);
    for (int64_t row = 0; row < wires; ++row) memcpy(block[row], from + row * columns, sizeof(real) * width);
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
    real *start = memory + sample * 3 * comparators;
    return {start, start + comparators, start + 2 * comparators};
}

// values: (batch, wires). routed: (batch, wires, columns), or (batch) losses, or null.
template <class real>
Status forward(Call<real> call, real *values, real *routed, ParallelFor pool) {
    const Status checked = call.check();
    if (checked != ok) return checked;
    const int64_t per_sample = 3 * comparators, chunks = call.chunks(), columns = call.columns();
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
            const Memory memory(sizeof(Row<real>) * wires);
            if (!memory.start) return (void)__atomic_store_n(&status, int32_t(out_of_memory), __ATOMIC_RELAXED);
            auto *block = memory.get<Row<real>>();
            for (int64_t task = begin; task < end; ++task) {
                const int64_t b = task / chunks, sample = first + b, chunk = task % chunks;
                double loss = 0;
                for (int64_t at = cut(call.blocks(), chunks, chunk); at < cut(call.blocks(), chunks, chunk + 1); ++at) {
                    const int64_t column = at * lanes, width = columns - column < lanes ? columns - column : lanes;
                    call.load(block, sample, column, width);
                    route_forward<real>(block, weights_at(weights, b).keep, call.reversed(), nullptr);
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
    const int64_t arrays = 3 * comparators, chunks = call.chunks(), columns = call.columns();
    const int64_t sums = (chunks > 0 ? chunks : 1) * comparators;
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
            constexpr int64_t rows = wires * (segments + 2) + widest_segment;
            const Memory memory(sizeof(Row<real>) * rows);
            if (!memory.start) return (void)__atomic_store_n(&status, int32_t(out_of_memory), __ATOMIC_RELAXED);
            auto *block = memory.get<Row<real>>(), *grad = block + wires, *kept = grad + wires;
            auto *gaps = kept + segments * wires;
            for (int64_t task = begin; task < end; ++task) {
                const int64_t b = task / chunks, sample = first + b, chunk = task % chunks;
                const Weights<real> w = weights_at(weights, b);
                real *weight_grad = weight_grads + task * comparators;
                memset(weight_grad, 0, sizeof(real) * comparators);
                for (int64_t at = cut(call.blocks(), chunks, chunk); at < cut(call.blocks(), chunks, chunk + 1); ++at) {
                    const int64_t column = at * lanes, width = columns - column < lanes ? columns - column : lanes;
                    const int64_t place = sample * wires * columns + column;
                    call.load(block, sample, column, width);
                    route_forward<real>(block, w.keep, call.reversed(), kept);
                    if (call.is_loss())
                        block_loss_gradient<real>(block, grad, call.routing, call.target_of(sample), column, width,
                                                  routed_grad[sample]);
                    else
                        load_gradient<real>(grad, routed_grad + place, columns, width);
                    route_backward<real>(grad, kept, gaps, w, call.reversed(), weight_grad);
                    if (payload_grad) store<real>(grad, payload_grad + place, columns, width);
                }
            }
        };
        if (call.routing != none) parallel(pool, count * chunks, grain_of(4 * comparators), routing);
        auto finish = [&](int64_t begin, int64_t end) {
            for (int64_t b = begin; b < end; ++b) {
                real *total = weight_grads + b * sums;
                if (call.routing == none) memset(total, 0, sizeof(real) * comparators);
                for (int64_t chunk = 1; chunk < chunks; ++chunk)
                    for (int64_t c = 0; c < comparators; ++c) total[c] += total[chunk * comparators + c];
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
            for (int64_t r = 0; r < layer_runs[layers]; ++r) {
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

// float64
NSC_API int32_t nsc_forward_f64(
    int32_t routing, int64_t batch, const double *x, const double *steepness, int64_t steepness_stride,
    const void *payload, int64_t payload_stride, int64_t payload_columns, double *values, double *routed,
    void *pool) {
    return forward<double>({static_cast<Routing>(routing), batch, x, steepness, steepness_stride, payload,
                           payload_stride, payload_columns},
                          values, routed, reinterpret_cast<ParallelFor>(pool));
}

NSC_API int32_t nsc_backward_f64(
    int32_t routing, int64_t batch, const double *x, const double *steepness, int64_t steepness_stride,
    const void *payload, int64_t payload_stride, int64_t payload_columns, const double *values_grad,
    const double *routed_grad, double *x_grad, double *steepness_grad, double *payload_grad, void *pool) {
    return backward<double>({static_cast<Routing>(routing), batch, x, steepness, steepness_stride, payload,
                            payload_stride, payload_columns},
                           values_grad, routed_grad, x_grad, steepness_grad, payload_grad,
                           reinterpret_cast<ParallelFor>(pool));
}

NSC_API int32_t nsc_argsort_f64(int64_t batch, const double *x, int64_t *indices, void *pool) {
    return argsort<double>(batch, x, indices, reinterpret_cast<ParallelFor>(pool));
}
