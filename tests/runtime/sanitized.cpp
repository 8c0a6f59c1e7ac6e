// Calls everything a kernel offers for arithmetic in REAL, on memory of exactly the size that it may
// touch: `sanitized WIRES`. Compiled together with a kernel under the address and undefined-behaviour
// sanitizers. Prints a digest of all results.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

using Body = void (*)(int64_t begin, int64_t end, void *context);

#define DECLARE(real, suffix)                                                                                          \
    extern "C" int32_t nsc_forward_##suffix(int32_t, int64_t, const real *, const real *, int64_t, const void *,       \
                                            int64_t, int64_t, real *, real *, void *);                                 \
    extern "C" int32_t nsc_backward_##suffix(int32_t, int64_t, const real *, const real *, int64_t, const void *,      \
                                             int64_t, int64_t, const real *, const real *, real *, real *, real *,     \
                                             real *, void *);                                                          \
    template <>                                                                                                        \
    struct Kernel<real> {                                                                                              \
        static constexpr auto forward = nsc_forward_##suffix;                                                          \
        static constexpr auto backward = nsc_backward_##suffix;                                                        \
    };

template <class real>
struct Kernel;
DECLARE(float, f32)
DECLARE(double, f64)
extern "C" int32_t nsc_prepare();

enum Routing { none, permutation, route, transposed, rows, cross_entropy, of_intervals, of_shares, last_routing = cross_entropy + 5 };
constexpr int64_t ignored = -100;

static std::mt19937 random_bits(0);
static uint64_t digest = 0;

static void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

// A pool that runs its tasks on three threads.
static void run_on_threads(int64_t begin, int64_t end, int64_t, Body body, void *context) {
    std::vector<std::thread> threads;
    for (int64_t k = 0; k < 3; ++k) {
        const int64_t first = begin + (end - begin) * k / 3, last = begin + (end - begin) * (k + 1) / 3;
        if (first < last) threads.emplace_back([=] { body(first, last, context); });
    }
    for (std::thread &thread : threads) thread.join();
}

// Exactly `count` values, each with a mark that no computation leaves.
template <class T>
struct Array {
    explicit Array(int64_t count) : count(count), start(static_cast<T *>(malloc(count * sizeof(T)))) {
        for (int64_t i = 0; i < count; ++i) memcpy(start + i, &mark, sizeof(T));
    }
    ~Array() { free(start); }
    Array(const Array &) = delete;
    // Whether no mark is left; adds the values to the digest.
    bool is_written() const {
        for (int64_t i = 0; i < count; ++i) {
            if (!memcmp(start + i, &mark, sizeof(T))) return false;
            uint64_t bits = 0;
            memcpy(&bits, start + i, sizeof(T));
            digest = (digest ^ bits) * 0x9e3779b97f4a7c15 + (digest >> 29);
        }
        return true;
    }
    static constexpr uint64_t mark = 0x7ffbadba7ffbadba;
    int64_t count;
    T *start;
};

// Values of some kind: 0 plain, 1 ties and zeros, 2 tiny and huge, 3 with infinities and NaN.
template <class real>
static void fill(Array<real> &array, int kind) {
    using Limits = std::numeric_limits<real>;
    const real special[] = {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN(), 0, 1};
    const real sizes[] = {Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(), -Limits::denorm_min(), 1};
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < array.count; ++i) {
        const uint32_t draw = random_bits();
        array.start[i] = kind == 1   ? real(draw % 3) * (draw & 64 ? real(-1) : real(1))
                         : kind == 2 ? sizes[draw % 6]
                         : kind == 3 && draw % 2 ? special[draw / 2 % 6]
                                     : real(normal(random_bits));
    }
}

template <class real>
static void call_all(int64_t wires, int64_t batch, int kind, void *pool) {
    Array<real> x(batch * wires);
    fill(x, kind);

    const int64_t steepness_stride = kind % 2;  // 0: one value for all samples
    Array<real> steepness(steepness_stride ? batch : 1);
    for (int64_t b = 0; b < steepness.count; ++b) steepness.start[b] = real(0.5) + real(b);

    for (int routing = none; routing <= last_routing; ++routing)
        for (const int64_t wanted : {1, 3, 17}) {
            const bool is_loss = routing >= cross_entropy;
            // Of each loss against ranks, intervals, and shares with weights behind them.
            const int form = is_loss ? (routing - cross_entropy) % 3 : 0;
            const bool has_columns = routing == route || routing == transposed;
            if (wanted > 1 && !has_columns && routing != rows) break;
            const int64_t columns = is_loss || routing == permutation ? wires : routing == none ? 0 : wanted;
            const bool shared = kind == 0;  // one payload for all samples
            const int64_t samples = shared ? 1 : batch;
            const int64_t per_sample = form == 1     ? 3 * wires
                                       : form == 2   ? (wires + 1) * wires
                                       : has_columns ? wires * columns
                                                     : columns;
            const bool of_reals = has_columns || form, has_gradient = has_columns || form == 2;
            Array<real> payload(of_reals ? samples * per_sample : 0);
            Array<int64_t> ranks(!of_reals && (is_loss || routing == rows) ? samples * per_sample : 0);
            if (has_columns) fill(payload, kind);
            for (int64_t i = 0; form && i < payload.count; ++i) {
                const int64_t row = i % per_sample / wires, c = i % wires;
                const bool is_rank = form == 1 && row < 2;
                payload.start[i] = is_rank ? real(row ? wires - 1 : c / 2) : real(random_bits() % 5) / 4;
            }
            for (int64_t i = 0; i < ranks.count; ++i) {
                const int64_t c = i % columns;
                ranks.start[i] = is_loss ? (c + i / columns) % wires : random_bits() % wires;
                if (is_loss && random_bits() % 4 == 0) ranks.start[i] = ignored;
            }
            const void *taken = of_reals ? static_cast<void *>(payload.start) : ranks.start;
            const int64_t stride = shared ? 0 : per_sample;

            Array<real> values(batch * wires), routed(is_loss ? batch : batch * wires * columns);
            int32_t status = Kernel<real>::forward(routing, batch, x.start, steepness.start, steepness_stride, taken,
                                                   stride, columns, values.start, routed.start, pool);
            require(status == 0, "forward fails");
            require(values.is_written() && routed.is_written(), "forward leaves results unwritten");

            // Gradients of the values, of what is routed, of both; then a loss with its gradient.
            for (int given = 1; given <= (is_loss ? 4 : 3); ++given) {
                Array<real> values_grad(values.count), routed_grad(routed.count), losses(given == 4 ? batch : 0);
                Array<real> x_grad(x.count), steepness_grad(batch), payload_grad(has_gradient ? batch * per_sample : 0);
                fill(values_grad, 0);
                fill(routed_grad, 0);
                status = Kernel<real>::backward(
                    routing, batch, x.start, steepness.start, steepness_stride, taken, stride, columns,
                    given & 1 ? values_grad.start : nullptr, given & 2 ? routed_grad.start : nullptr, x_grad.start,
                    given == 2 ? nullptr : steepness_grad.start, has_gradient ? payload_grad.start : nullptr,
                    given == 4 ? losses.start : nullptr, pool);
                require(status == 0, "backward fails");
                require(x_grad.is_written(), "backward leaves the gradient of x unwritten");
                if (given != 2) require(steepness_grad.is_written(), "backward leaves that of the steepness unwritten");
                if (given > 1) require(payload_grad.is_written(), "backward leaves the payload's gradient unwritten");
                require(losses.is_written(), "a loss is left unwritten");
            }
        }
}

template <class real>
static void refuse_bad_calls(int64_t wires) {
    Array<real> x(wires), values(wires), routed(wires * wires), steepness(1);
    Array<int64_t> target(wires);
    fill(x, 0);
    const auto status = [&](Routing routing) {
        return Kernel<real>::forward(routing, 1, x.start, steepness.start, 0, target.start, 0, wires, values.start,
                                     routed.start, nullptr);
    };
    for (int64_t c = 0; c < wires; ++c) target.start[c] = c;
    steepness.start[0] = 0;
    require(status(none) == 2, "a steepness of 0 is taken");
    steepness.start[0] = 1;
    target.start[0] = wires - 1;
    if (wires > 1) require(status(cross_entropy) == 3, "a target with a rank twice is taken");
    for (const int64_t rank : {int64_t(-1), wires, INT64_MIN, INT64_MAX}) {
        target.start[wires - 1] = rank;
        require(status(rows) == 4 && status(cross_entropy) != 0, "a rank out of range is taken");
    }
    // Of each number that a target of reals has for an item, one that is wrong.
    Array<real> reals((wires > 2 ? wires + 1 : 3) * wires);
    const auto is_refused = [&](Routing routing, int64_t row, real wrong) {
        for (int64_t i = 0; i < reals.count; ++i) reals.start[i] = 0;
        reals.start[row * wires + wires - 1] = wrong;
        return Kernel<real>::forward(routing, 1, x.start, steepness.start, 0, reals.start, 0, wires, values.start,
                                     routed.start, nullptr) == 3;
    };
    using Limits = std::numeric_limits<real>;
    for (const real wrong : {real(-1), real(1) / 2, real(wires), Limits::max(), Limits::infinity(), Limits::quiet_NaN()}) {
        require(is_refused(of_intervals, 0, wrong), "a first rank that is none is taken");
        require(is_refused(of_intervals, 1, wrong), "a last rank that is none is taken");
        if (wrong == wrong && wrong != real(1) / 2 && wrong != 1)
            require(is_refused(of_shares, 0, wrong), "a share that is none is taken");
        if (!(wrong >= 0 && wrong <= Limits::max()))
            require(is_refused(of_intervals, 2, wrong) && is_refused(of_shares, wires, wrong),
                    "a weight that is none is taken");
    }
}

template <class real>
static void exercise(int64_t wires) {
    for (const int64_t batch : {0, 1, 2, 17})
        for (int kind = wires > 64 ? 3 : 0; kind < 4; ++kind) call_all<real>(wires, batch, kind, nullptr);
    call_all<real>(wires, 17, 0, reinterpret_cast<void *>(run_on_threads));
    refuse_bad_calls<real>(wires);
}

int main(int, char **arguments) {
    const int64_t wires = atoll(arguments[1]);
    require(nsc_prepare() == 0, "prepare fails");
    exercise<REAL>(wires);
    printf("%llx\n", static_cast<unsigned long long>(digest));
}
