// P of few wires: a lane is a sample in every pass.
//
// Up to 32 wires P of a few samples fits the caches, so for P and for losses a lane is a sample
// and not a column. Weights fill registers, no sum runs over lanes, nothing is computed twice, and
// a column meets only the comparators of its light cone. A small batch leaves lanes idle and runs
// in the same way, as bits must not depend on the batch. Payloads and rows of P take the general
// routing, whose lanes are columns.
#pragma once

#include <nsc/relaxed/call.h>
#include <nsc/relaxed/columns.h>
#include <nsc/relaxed/samples.h>

namespace nsc {

// A task takes `lanes` samples through all passes. Weights of a comparator fill a register, no sum
// runs over lanes, and each column of P meets only the comparators in its own light cone. Lanes
// without a sample compute on zeros, so that a sample's results do not depend on the rest of its
// batch.

// Columns that are held at a time, and the places from a row to the next. A power of two would send
// many rows to the same few sets of the cache.
template <class P>
constexpr int64_t held_columns(const P &plan) {
    return plan.wires < 16 ? (plan.wires + narrow_columns - 1) / narrow_columns * narrow_columns
                           : 16;
}

// `held`: of rows of all held columns, or of those that are routed narrow_columns.
template <bool held, class P>
constexpr int64_t pitch_of(const P &plan) {
    return !held             ? narrow_columns
           : plan.wires > 16 ? held_columns(plan) + narrow_columns
                             : held_columns(plan);
}

// Fills rows with unit columns, which the cone turns into columns of P.
template <bool held, class P, class real>
void begin_columns(const P &plan, Vec<real> *rows, int64_t column, const NarrowCone &cone,
                   real one) {
    const int64_t pitch = pitch_of<held>(plan);
    for (int64_t wire = column; wire < column + narrow_columns && wire < plan.wires; ++wire)
        for (int64_t k = 0; k < narrow_columns; ++k)
            rows[wire * pitch + k] = wire == column + k ? all(one) : Vec<real>{};
    for (int64_t wire = 0; wire < plan.wires && !cone.reaches_all; ++wire)
        if (!cone.reaches[wire])
            for (int64_t k = 0; k < narrow_columns; ++k) rows[wire * pitch + k] = Vec<real>{};
}

// Calls visit(column, c, m, a, b) for each column and comparator c of a step, whose weights are m.
template <Pattern pattern, bool backwards, class real, class Visit>
NSC_STEP void run_step(int64_t pitch, Vec<real> *rows, const NarrowStep &step, Mixes<Vec<real>> w,
                       Visit visit) {
    using Row = Vec<real>;
    constexpr int32_t count = count_of(pattern), taken = rows_of(pattern);
    Mix<Row> m[count];
    NSC_UNROLL
    for (int32_t c = 0; c < count; ++c)
        m[c] = {w.keep[step.butterfly.slot + c], w.swap[step.butterfly.slot + c]};
    const Row *from[taken];
    Row *to[taken];
    NSC_UNROLL
    for (int32_t k = 0; k < taken; ++k) {
        to[k] = rows + step.butterfly.rows[k] * pitch;
        from[k] = backwards ? to[k] : rows + step.from[k] * pitch;
    }
    NSC_UNROLL
    for (int64_t column = 0; column < narrow_columns; ++column) {
        Row r[taken];
        NSC_UNROLL
        for (int32_t k = 0; k < taken; ++k) r[k] = from[k][column];
        run_butterfly<pattern, backwards>(
            r, [&](int32_t c, Row &a, Row &b) NSC_INLINE { visit(column, c, m[c], a, b); });
        NSC_UNROLL
        for (int32_t k = 0; k < taken; ++k) to[k][column] = r[k];
    }
}

// Takes columns through their cone. With `keeping`, the differences in front of each comparator go
// to `differences`, whose end is returned.
template <bool held, bool keeping, class real, class P>
Vec<real> *route_columns(const P &plan, Vec<real> *rows, const NarrowCone &cone, Mixes<Vec<real>> w,
                         Vec<real> *differences) {
    using Row = Vec<real>;
    for (int32_t i = 0; i < cone.count; ++i)
        with_pattern(cone.steps[i].butterfly.pattern, [&](auto kind) NSC_INLINE {
            constexpr Pattern pattern = decltype(kind)::value;
            constexpr int32_t count = count_of(pattern);
            run_step<pattern, false, real>(
                pitch_of<held>(plan), rows, cone.steps[i], w,
                [differences](int64_t column, int32_t c, Mix<Row> m, Row &a, Row &b) NSC_INLINE {
                if (keeping) differences[column * count + c] = a - b;
                mix(a, b, m);
            });
            differences += keeping ? narrow_columns * count : 0;
        });
    return differences;
}

// Takes the gradient of columns back through their cone, in place, and adds the gradients of the
// weights. `differences` is the end that route_columns returned.
template <class real, class P>
void route_columns_back(const P &plan, Vec<real> *grad, const NarrowCone &cone, Mixes<Vec<real>> w,
                        const Vec<real> *differences, Vec<real> *weight_grad) {
    using Row = Vec<real>;
    for (int32_t i = cone.count - 1; i >= 0; --i)
        with_pattern(cone.steps[i].butterfly.pattern, [&](auto kind) NSC_INLINE {
            constexpr Pattern pattern = decltype(kind)::value;
            constexpr int32_t count = count_of(pattern);
            const NarrowStep &step = cone.steps[i];
            differences -= narrow_columns * count;
            Row sums[count];
            NSC_UNROLL
            for (int32_t c = 0; c < count; ++c) sums[c] = weight_grad[step.butterfly.slot + c];
            run_step<pattern, true, real>(
                pitch_of<true>(plan), grad, step, w,
                [differences, &sums](int64_t column, int32_t c, Mix<Row> m, Row &a, Row &b)
                    NSC_INLINE {
                sums[c] += differences[column * count + c] * (a - b);
                mix(a, b, m);
            });
            NSC_UNROLL
            for (int32_t c = 0; c < count; ++c) weight_grad[step.butterfly.slot + c] = sums[c];
        });
}

// Calls visit(first, length, place) for runs of `length` numbers from number `first` of each
// sample's matrix on: place(i) is the row that holds the i-th of them. Held columns of a wider
// matrix have a run for every row.
template <class P, class Visit>
inline void for_each_run(const P &plan, int64_t column, int64_t width, Visit visit) {
    const int64_t wires = plan.wires, pitch = pitch_of<true>(plan);
    if (wires <= held_columns(plan))
        return visit(0, wires * wires, [=](int64_t i) { return i / wires * pitch + i % wires; });
    for (int64_t row = 0; row < wires; ++row)
        visit(row * wires + column, width, [=](int64_t i) { return row * pitch + i; });
}

// A square of a matrix and rows: `run` numbers side by side of every one of `count` samples,
// `stride` apart. A whole square stays in registers.
template <class real>
bool is_whole(int64_t run, int64_t count) {
    return run == lanes<real> && count == lanes<real>;
}

template <class real, class Place>
NSC_STEP void store_square(const Vec<real> *rows, Place place, real *to, int64_t stride,
                           int64_t run, int64_t count, real scale) {
    Vec<real> square[lanes<real>];
    if (is_whole<real>(run, count)) {
        NSC_UNROLL
        for (int64_t k = 0; k < lanes<real>; ++k) square[k] = rows[place(k)] * scale;
        transpose_from<real>(square);
        NSC_UNROLL
        for (int64_t k = 0; k < lanes<real>; ++k) store(to + k * stride, square[k]);
    } else {
        for (int64_t k = 0; k < lanes<real>; ++k)
            square[k] = k < run ? rows[place(k)] * scale : Vec<real>{};
        transpose<real>(square);
        for (int64_t k = 0; k < count; ++k) store(to + k * stride, square[k], run);
    }
}

template <class real, class Place>
NSC_STEP void load_square(Vec<real> *rows, Place place, const real *from, int64_t stride,
                          int64_t run, int64_t count) {
    Vec<real> square[lanes<real>];
    if (is_whole<real>(run, count)) {
        NSC_UNROLL
        for (int64_t k = 0; k < lanes<real>; ++k) square[k] = load(from + k * stride);
        transpose_from<real>(square);
        NSC_UNROLL
        for (int64_t k = 0; k < lanes<real>; ++k) rows[place(k)] = square[k];
    } else {
        for (int64_t k = 0; k < lanes<real>; ++k)
            square[k] = k < count ? load(from + k * stride, run) : Vec<real>{};
        transpose<real>(square);
        for (int64_t k = 0; k < run; ++k) rows[place(k)] = square[k];
    }
}

// Calls visit(first, run, place) for each square of such runs: place(k) is the row of its k-th
// number.
template <class real, class P, class Visit>
inline void for_each_square(const P &plan, int64_t column, int64_t width, Visit visit) {
    for_each_run(plan, column, width, [&](int64_t first, int64_t length, auto place) {
        for (int64_t i = 0; i < length; i += lanes<real>)
            visit(first + i, length - i < lanes<real> ? length - i : lanes<real>,
                  [place, i](int64_t k) { return place(i + k); });
    });
}

// Between matrices of `count` samples and rows of their columns column ... column + width - 1.
template <class P, class real>
void store_columns(const P &plan, const Vec<real> *rows, int64_t column, int64_t width, real *to,
                   int64_t count, real scale) {
    for_each_square<real>(plan, column, width, [&](int64_t first, int64_t run, auto place) {
        store_square(rows, place, to + first, plan.wires * plan.wires, run, count, scale);
    });
}

template <class P, class real>
void load_columns(const P &plan, Vec<real> *rows, int64_t column, int64_t width, const real *from,
                  int64_t count) {
    for_each_square<real>(plan, column, width, [&](int64_t first, int64_t run, auto place) {
        load_square(rows, place, from + first, plan.wires * plan.wires, run, count);
    });
    for (int64_t none = width; none % narrow_columns; ++none)
        Columns<real>{rows + none, pitch_of<true>(plan)}.clear(plan.wires);
}

// The samples of a task.
template <class P, class real>
struct Samples {
    Samples(const Call<P, real> &call, int64_t task)
        : call(call),
          first(task * lanes<real>),
          count(call.batch - first < lanes<real> ? call.batch - first : lanes<real>) {
        for (int64_t k = 0; k < lanes<real>; ++k)
            steepness[k] = call.steepness_of(k < count ? first + k : first);
        for (int64_t k = 0; k < count; ++k) targets[k] = call.target_of(first + k);
    }
    static int64_t count_tasks(int64_t batch) { return (batch + lanes<real> - 1) / lanes<real>; }
    // Runs the keys pass: the values go to `block`, the weights to w.
    void compare(Vec<real> *block, Weights<Vec<real>> w) const {
        const P &plan = call.plan;
        load_samples(plan, call.x + first * plan.wires, count, block);
        compare_block<real>(plan, block, steepness, w);
    }
    // The same backwards on gradients, given the gradients of the weights.
    void compare_backward(Vec<real> *grad, const Vec<real> *weight_grad, Weights<Vec<real>> w,
                          Vec<real> *parts) const {
        for (int32_t p = call.plan.bundle_count - 1; p >= 0; --p) {
            const Bundle bundle = call.plan.bundles[p];
            const Comparator *at = call.plan.in_bundles + bundle.first;
            Vec<real> steepness_grad[most_in_bundle];
            nsc::compare_backward<real, typename P::Relaxation>(bundle.count, at, grad, weight_grad,
                                                                steepness, w,
                                                                parts ? steepness_grad : nullptr);
            for (int32_t i = bundle.count - 1; parts && i >= 0; --i)
                parts[at[i].slot % slot_alignment] += steepness_grad[i];
        }
    }
    // The truth of each sample's item `column`, if the routing is a loss.
    Truths<real> truths(int64_t column) const {
        return {count, [&](int64_t k) -> const Target<real> & { return targets[k]; },
                [&](int64_t) { return column; }};
    }
    const Call<P, real> &call;
    int64_t first, count;
    Vec<real> steepness;
    Target<real> targets[lanes<real>];
};

template <class P, class real>
Status narrow_forward(const Call<P, real> &call, real *values, real *routed, ParallelFor pool) {
    using Row = Vec<real>;
    using Relaxation = typename P::Relaxation;
    const P &plan = call.plan;
    const int64_t places =
        plan.wires + weights_per_sample(plan) + (plan.wires + 1) * pitch_of<true>(plan);
    return parallel(pool, Samples<P, real>::count_tasks(call.batch),
                    grain_of(4 * plan.comparators * (plan.wires + 16)), sizeof(Row) * places,
                    [&](int64_t task, const Memory &memory) {
        const int64_t wires = plan.wires, slots = plan.slots, pitch = pitch_of<true>(plan),
                      held = held_columns(plan);
        const Samples<P, real> samples(call, task);
        Row *block = memory.get<Row>(), *rows = block + wires + weights_per_sample(plan);
        const Weights<Row> w = weights_at<Relaxation>(block + wires, slots);
        samples.compare(block, w);
        store_samples(plan, values + samples.first * wires, samples.count, block);
        memset(rows + wires * pitch, 0, sizeof(Row) * pitch);
        double losses[lanes<real>] = {};
        for (int64_t column = 0; column < wires; column += held) {
            const int64_t width = wires - column < held ? wires - column : held;
            for (int64_t at = 0; at < width; at += narrow_columns) {
                const NarrowCone &cone = plan.narrow_cones[(column + at) / narrow_columns];
                begin_columns<true>(plan, rows + at, column + at, cone, unit<real>);
                route_columns<true, false, real>(plan, rows + at, cone, w.forward, nullptr);
            }
            if (!is_loss(call.routing)) {
                store_columns(plan, rows, column, width, routed + samples.first * wires * wires,
                              samples.count, 1 / unit<real>);
                continue;
            }
            for (int64_t at = 0; at < width; ++at)
                add_losses<P, real>(plan, call.routing, {rows + at, pitch},
                                    samples.truths(column + at), losses);
        }
        for (int64_t k = 0; is_loss(call.routing) && k < samples.count; ++k)
            routed[samples.first + k] = real(losses[k]);
    });
}

template <class P, class real>
Status narrow_backward(const Call<P, real> &call, const real *values_grad, const real *routed_grad,
                       real *x_grad, real *steepness_grad, real *share_grad, real *loss_of_samples,
                       ParallelFor pool) {
    using Row = Vec<real>;
    using Relaxation = typename P::Relaxation;
    const P &plan = call.plan;
    const int64_t places = plan.wires + slot_alignment + plan.slots + weights_per_sample(plan) +
                           (plan.wires + 1) * (pitch_of<true>(plan) + narrow_columns) +
                           plan.comparators * narrow_columns;
    return parallel(pool, Samples<P, real>::count_tasks(call.batch),
                    grain_of(6 * plan.comparators * (plan.wires + 16)), sizeof(Row) * places,
                    [&](int64_t task, const Memory &memory) {
        const int64_t wires = plan.wires, slots = plan.slots, pitch = pitch_of<true>(plan),
                      held = held_columns(plan);
        const Samples<P, real> samples(call, task);
        Row *block = memory.get<Row>(), *parts = block + wires,
            *weight_grad = parts + slot_alignment;
        const Weights<Row> w = weights_at<Relaxation>(weight_grad + slots, slots);
        Row *grad = weight_grad + slots + weights_per_sample(plan),
            *rows = grad + (wires + 1) * pitch, *differences = rows + (wires + 1) * narrow_columns;
        samples.compare(block, w);
        memset(weight_grad, 0, sizeof(Row) * slots);
        memset(rows + wires * narrow_columns, 0, sizeof(Row) * narrow_columns);
        double losses[lanes<real>] = {};
        for (int64_t column = 0; column < wires; column += held) {
            const int64_t width = wires - column < held ? wires - column : held;
            if (!is_loss(call.routing))
                load_columns(plan, grad, column, width, routed_grad + samples.first * wires * wires,
                             samples.count);
            for (int64_t at = 0; at < width; at += narrow_columns) {
                const NarrowCone &cone = plan.narrow_cones[(column + at) / narrow_columns];
                begin_columns<false>(plan, rows, column + at, cone,
                                     is_loss(call.routing) ? unit<real> : real(1));
                const Row *end =
                    route_columns<false, true, real>(plan, rows, cone, w.forward, differences);
                for (int64_t k = 0; k < narrow_columns && is_loss(call.routing); ++k) {
                    const int64_t item = column + at + k;
                    const Columns<real> block = {rows + k, narrow_columns},
                                        block_grad = {grad + at + k, pitch};
                    if (item >= wires) {
                        block_grad.clear(wires);
                        continue;
                    }
                    const Truths<real> truths = samples.truths(item);
                    find_loss_gradient(plan, call.routing, block, block_grad, truths,
                                       loss_of_samples ? losses : nullptr);
                    if (!share_grad) continue;
                    real *share_grads[lanes<real>];
                    for (int64_t lane = 0; lane < lanes<real>; ++lane)
                        share_grads[lane] = share_grad +
                                            (samples.first + lane) * numbers_of(of_shares, wires) +
                                            item;
                    find_share_gradient(plan, call.routing, block, truths, share_grads);
                }
                route_columns_back<real>(plan, grad + at, cone, w.backward, end, weight_grad);
            }
        }
        for (int64_t k = 0; loss_of_samples && k < samples.count; ++k)
            loss_of_samples[samples.first + k] = real(losses[k]);
        load_gradient(plan, values_grad ? values_grad + samples.first * wires : nullptr,
                      samples.count, block);
        memset(parts, 0, sizeof(Row) * slot_alignment);
        samples.compare_backward(block, weight_grad, w, steepness_grad ? parts : nullptr);
        store_samples(plan, x_grad + samples.first * wires, samples.count, block);
        if (steepness_grad)
            store(steepness_grad + samples.first, sum_of_parts(parts), samples.count);
    });
}

}  // namespace nsc
