// Networks of many wires: one sample, and a few columns of a payload, through the levels together.
//
// The weights of all comparators would take 12 bytes each: 53 MB for bitonic 65,536, whose x takes
// 256 KB. So levels are cut into segments, about as many as a segment has levels. On the way up the
// values are copied where a segment begins; on the way down a segment runs forward again from
// there, and what it keeps is for itself alone. Copies and segment together take O(n sqrt(depth)).
//
// What a routing takes through the network goes up with the values, or down with their gradients:
//
//     route        the payload goes up, the gradient of the result down;
//     transposed   the payload goes down, the gradient of the result up.
//
// Either way the gradient of a comparator's weight is the product of two differences of its wires:
// of what goes up, in front of the comparator, and of what goes down, behind it.
#pragma once

#include <nsc/relaxed/groups.h>
#include <nsc/relaxed/levels.h>

namespace nsc {

// Columns of a payload, at most: each is gathered by itself. More take butterflies.
constexpr int64_t most_long_columns = 4;

// Comparators that are a thread's task in a level that joins ranges of wires.
constexpr int64_t level_task = 1024;

// Whether a call takes this pass: the values alone, or a few columns.
template <class P, class real>
bool is_long(const Call<P, real> &call) {
    if constexpr (P::may_be_long)
        return call.plan.is_long() && !routes_identity(call.routing) &&
               call.columns() <= most_long_columns;
    return false;
}

template <class P>
int64_t begin_of_level(const P &plan, int64_t level) {
    return level ? plan.level_end[level - 1] : 0;
}

// How the levels are cut.
template <class P, class real>
struct Segments {
    explicit Segments(const P &plan) : plan(plan), count(root_of(plan.levels)) {}
    int64_t begin(int64_t segment) const { return cut(plan.levels, count, segment); }
    // Registers that the comparators of a level fill, and those of a segment, at most.
    int64_t rows_of_level() const { return plan.wires / 2 / lanes<real> + most_ranges; }
    int64_t rows() const { return (plan.levels / count + 1) * rows_of_level(); }
    const P &plan;
    int64_t count;
};

// Gathers the numbers of two wires of each of some comparators, and writes them back.
template <class real>
inline void gather(const Comparator *at, int64_t count, const real *from, Gathered<real> &both) {
    real *lo = both.lo(), *hi = both.hi();
    for (int64_t k = 0; k < count; ++k) lo[k] = from[at[k].lo], hi[k] = from[at[k].hi];
}

template <class real>
inline void scatter(const Comparator *at, int64_t count, real *to, Gathered<real> &both) {
    const real *lo = both.lo(), *hi = both.hi();
    for (int64_t k = 0; k < count; ++k) to[at[k].lo] = lo[k], to[at[k].hi] = hi[k];
}

// A sample on its way. Kept: what a segment keeps of each comparator, Weights, or Derivatives where
// the values alone are wanted.
template <class P, class real, class Kept>
struct LongPass {
    using Row = Vec<real>;
    using Relaxation = typename P::Relaxation;
    static constexpr bool keeps_weights = are_same<Kept, Weights<Row>>;

    const P &plan;
    const ParallelFor pool;
    const Segments<P, real> segments;
    const int64_t columns;
    const bool is_reversed;
    const real steepness;
    const bool careful;
    real *x, *up, *down;         // the values; what goes up and what goes down, column by column
    real *x_copies, *up_copies;  // at the beginning of each segment
    Kept kept;                   // of a segment
    Row *differences;            // of what goes up, of a segment; null: not kept

    // Calls run(both, comparators, count, level, row, task) for runs of comparators of levels, in
    // order or backwards; `row` counts the registers of the level before. Levels that join no
    // ranges of wires are run range by range, one level after the other while a range is in the
    // cache; a range is a task. A level that does is cut into tasks by itself.
    template <bool backwards, class Run>
    Status for_levels(int64_t first, int64_t end, Run run) const {
        while (first < end) {
            int64_t from = backwards ? end - 1 : first, to = from + 1;
            if (plan.joins_ranges[from]) {
                const Status status = for_level(from, run);
                if (status != ok) return status;
            } else {
                if (backwards)
                    while (from > first && !plan.joins_ranges[from - 1]) --from;
                else
                    while (to < end && !plan.joins_ranges[to]) ++to;
                const Status status =
                    parallel(pool, most_ranges, 1, 0, [&](int64_t range, const Memory &) {
                    Gathered<real> both;
                    for (int64_t l = from; l < to; ++l) {
                        const int64_t level = backwards ? to - 1 - (l - from) : l;
                        const int32_t *ends = plan.range_end + level * most_ranges + range;
                        const int64_t begin = begin_of_level(plan, level);
                        for_runs(both, begin, range ? ends[-1] : begin, ends[0], level, range,
                                 range, run);
                    }
                });
                if (status != ok) return status;
            }
            (backwards ? end : first) = backwards ? from : to;
        }
        return ok;
    }
    template <class Run>
    Status for_level(int64_t level, Run run) const {
        const int64_t begin = begin_of_level(plan, level), end = plan.level_end[level];
        return parallel(pool, (end - begin + level_task - 1) / level_task, grain_of(level_task), 0,
                        [&](int64_t task, const Memory &) {
            Gathered<real> both;
            const int64_t from = begin + task * level_task,
                          to = end - from < level_task ? end : from + level_task;
            for_runs(both, begin, from, to, level, 0, task, run);
        });
    }
    template <class Run>
    static void for_runs(Gathered<real> &both, int64_t begin, int64_t from, int64_t to,
                         int64_t level, int64_t spare_rows, int64_t task, Run run) {
        constexpr int64_t most = most_in_layer * lanes<real>;
        for (int64_t i = from; i < to; i += most)
            run(both, i, to - i < most ? to - i : most, level,
                (i - begin) / lanes<real> + spare_rows, task);
    }
    static int32_t rows_of(int64_t count) {
        return int32_t((count + lanes<real> - 1) / lanes<real>);
    }

    // Where what is kept of a register of a level of segment s lies.
    int64_t place(int64_t s, int64_t level, int64_t row) const {
        return (level - segments.begin(s)) * segments.rows_of_level() + row;
    }

    // Runs a segment forward, and keeps what the way down needs if `keeps`.
    template <bool keeps>
    Status run_segment(int64_t s) const {
        const Row steepnesses = all(steepness);
        return for_levels<false>(segments.begin(s), segments.begin(s + 1),
                                 [&](Gathered<real> &both, int64_t first, int64_t count,
                                     int64_t level, int64_t row, int64_t) {
            const Comparator *at = plan.in_levels + first;
            const auto run = [&](auto of_run) {
                gather(at, count, x, both);
                if (careful)
                    compare<real, true, 1>(plan, rows_of(count), gathered.at, both.rows,
                                           &steepnesses, of_run);
                else
                    compare<real, false, 1>(plan, rows_of(count), gathered.at, both.rows,
                                            &steepnesses, of_run);
                scatter(at, count, x, both);
                if constexpr (are_same<decltype(of_run), Weights<Row>>)
                    for (int64_t c = 0; up && c < columns; ++c) {
                        mix_column(at, count, both, up + c * plan.wires,
                                   is_reversed ? of_run.backward : of_run.forward,
                                   [&](int32_t r, Row difference) {
                            if (keeps && differences)
                                differences[c * segments.rows() + place(s, level, row) + r] =
                                    difference;
                        });
                    }
            };
            if constexpr (keeps) {
                run(kept.from(place(s, level, row)));
            } else if (keeps_weights && up) {
                Row held[arrays<Relaxation> * most_in_layer];
                run(weights_at<Relaxation>(held, most_in_layer));
            } else {
                run(Nothing());
            }
        });
    }

    // Mixes the wires of comparators in a column, and calls visit(r, difference) for each register.
    template <class Visit>
    void mix_column(const Comparator *at, int64_t count, Gathered<real> &both, real *column,
                    Mixes<Row> m, Visit visit) const {
        gather(at, count, column, both);
        for (int32_t r = 0; r < rows_of(count); ++r) {
            Row &a = both.rows[r], &b = both.rows[most_in_layer + r];
            visit(r, a - b);
            mix(a, b, Mix<Row>{m.keep[r], m.swap[r]});
        }
        scatter(at, count, column, both);
    }

    // Runs all levels forward. Copies what segments begin with, if there are places for it, and
    // then keeps what the last one needs.
    Status go_up() const {
        Status status = ok;
        for (int64_t s = 0; status == ok && s < segments.count; ++s) {
            if (!x_copies) {
                status = run_segment<false>(s);
                continue;
            }
            memcpy(x_copies + s * plan.wires, x, sizeof(real) * plan.wires);
            if (up_copies)
                memcpy(up_copies + s * columns * plan.wires, up,
                       sizeof(real) * columns * plan.wires);
            status = s < segments.count - 1 ? run_segment<false>(s) : run_segment<true>(s);
        }
        return status;
    }

    // Calls visit(s) for the segments from the last to the first, when what it needs is kept. The
    // values are overwritten.
    template <class Visit>
    Status go_down(Visit visit) const {
        Status status = ok;
        for (int64_t s = segments.count - 1; status == ok && s >= 0; --s) {
            if (s < segments.count - 1) {
                memcpy(x, x_copies + s * plan.wires, sizeof(real) * plan.wires);
                if (up_copies)
                    memcpy(up, up_copies + s * columns * plan.wires,
                           sizeof(real) * columns * plan.wires);
                status = run_segment<true>(s);
            }
            if (status == ok) status = visit(s);
        }
        return status;
    }

    // Takes what goes down through a segment.
    Status route_down(int64_t s) const {
        return for_levels<true>(segments.begin(s), segments.begin(s + 1),
                                [&](Gathered<real> &both, int64_t first, int64_t count,
                                    int64_t level, int64_t row, int64_t) {
            for (int64_t c = 0; c < columns; ++c)
                mix_column(plan.in_levels + first, count, both, down + c * plan.wires,
                           kept.from(place(s, level, row)).forward, [](int32_t, Row) {});
        });
    }

    // The same with gradients: of the columns, and of the values to `grad`. The parts of the
    // gradient of the steepness go to the places of their tasks in `sums`, if it is wanted.
    Status gradients_down(int64_t s, real *grad, double *sums) const {
        return for_levels<true>(segments.begin(s), segments.begin(s + 1),
                                [&](Gathered<real> &both, int64_t first, int64_t count,
                                    int64_t level, int64_t row, int64_t task) {
            const Comparator *at = plan.in_levels + first;
            const int32_t rows = rows_of(count);
            const int64_t here = place(s, level, row);
            const Kept of_run = kept.from(here);
            Row parts[most_in_layer];
            if constexpr (keeps_weights) {
                Row weight_grad[most_in_layer] = {};
                for (int64_t c = 0; c < columns; ++c) {
                    const Row *of_column = differences + c * segments.rows() + here;
                    mix_column(at, count, both, down + c * plan.wires,
                               is_reversed ? of_run.forward : of_run.backward,
                               [&](int32_t r, Row difference) {
                        weight_grad[r] += of_column[r] * difference;
                    });
                }
                gather(at, count, grad, both);
                compare_backward<real, Relaxation>(rows, gathered.at, both.rows, weight_grad,
                                                   all(steepness), of_run, sums ? parts : nullptr);
            } else {
                gather(at, count, grad, both);
                for (int32_t r = 0; r < rows; ++r) {
                    Row &lo = both.rows[r], &hi = both.rows[most_in_layer + r];
                    if (sums) parts[r] = (hi - lo) * of_run.steepness[r];
                    move_gradients<real>(lo, hi, of_run.share[r]);
                }
            }
            scatter(at, count, grad, both);
            for (int64_t k = 0; sums && k < count; ++k) sums[task] += singly<real>(parts)[k];
        });
    }
    // Tasks of levels, at most.
    static int64_t most_tasks(const P &plan) {
        const int64_t of_level = plan.wires / 2 / level_task + 1;
        return of_level > most_ranges ? of_level : most_ranges;
    }
};

// Takes rows of a few columns to columns by themselves.
template <class real>
void split_columns(const real *from, int64_t wires, int64_t columns, real *to) {
    for (int64_t wire = 0; wire < wires; ++wire)
        for (int64_t c = 0; c < columns; ++c) to[c * wires + wire] = from[wire * columns + c];
}

// And back.
template <class real>
void join_columns(const real *from, int64_t wires, int64_t columns, real scale, real *to) {
    for (int64_t wire = 0; wire < wires; ++wire)
        for (int64_t c = 0; c < columns; ++c)
            to[wire * columns + c] = from[c * wires + wire] * scale;
}

// Takes a sample's payload to columns by themselves. The ones of a unit matrix are `one`.
template <class P, class real>
void take_columns(const Call<P, real> &call, int64_t sample, real one, real *to) {
    const int64_t wires = call.plan.wires, columns = call.columns();
    if (has_ranks(call.routing)) {
        memset(to, 0, sizeof(real) * wires * columns);
        for (int64_t c = 0; c < columns; ++c) to[c * wires + call.ranks_of(sample)[c]] = one;
        return;
    }
    split_columns(static_cast<const real *>(call.payload) + sample * call.payload_stride, wires,
                  columns, to);
}

// See `forward`.
template <class P, class real>
Status long_forward(const Call<P, real> &call, real *values, real *routed, ParallelFor pool) {
    using Row = Vec<real>;
    using Kept = Weights<Row>;
    const P &plan = call.plan;
    const Segments<P, real> segments(plan);
    const int64_t wires = plan.wires, columns = call.columns(), of_columns = wires * columns;
    const bool reversed = is_reversed(call.routing), goes_down = reversed && columns > 0;
    const int64_t kept_rows = goes_down ? arrays<typename P::Relaxation> * segments.rows() : 0,
                  copies = goes_down ? segments.count : 0;
    const Memory memory(sizeof(Row) * kept_rows +
                        sizeof(real) * (of_columns + (copies + goes_down) * wires));
    if (!memory.start) return out_of_memory;
    Row *kept = memory.get<Row>();
    real *routing = reinterpret_cast<real *>(kept + kept_rows), *x_copies = routing + of_columns,
         *again = x_copies + copies * wires;
    const real one = has_ranks(call.routing) ? unit<real> : 1;
    for (int64_t b = 0; b < call.batch; ++b) {
        real *x = values + b * wires;
        memcpy(x, call.x + b * wires, sizeof(real) * wires);
        if (columns) take_columns(call, b, one, routing);
        const real steepness = call.steepness_of(b);
        LongPass<P, real, Kept> pass = {plan,
                                        pool,
                                        segments,
                                        columns,
                                        reversed,
                                        steepness,
                                        are_extreme(plan, x, steepness),
                                        x,
                                        columns && !reversed ? routing : nullptr,
                                        goes_down ? routing : nullptr,
                                        goes_down ? x_copies : nullptr,
                                        nullptr,
                                        weights_at<typename P::Relaxation>(kept, segments.rows()),
                                        nullptr};
        Status status = pass.go_up();
        if (goes_down) {
            pass.x = again;  // the values stay
            if (status == ok) status = pass.go_down([&](int64_t s) { return pass.route_down(s); });
        }
        if (status != ok) return status;
        if (columns) join_columns(routing, wires, columns, 1 / one, routed + b * of_columns);
    }
    return ok;
}

// Kept: as of LongPass. See `backward`.
template <class Kept, class P, class real>
Status long_backward_keeping(const Call<P, real> &call, const real *values_grad,
                             const real *routed_grad, real *x_grad, real *steepness_grad,
                             real *payload_grad, ParallelFor pool) {
    using Row = Vec<real>;
    using Pass = LongPass<P, real, Kept>;
    const P &plan = call.plan;
    const Segments<P, real> segments(plan);
    const int64_t wires = plan.wires, columns = Pass::keeps_weights ? call.columns() : 0,
                  of_columns = wires * columns, tasks = Pass::most_tasks(plan);
    const bool reversed = is_reversed(call.routing);
    const int64_t of_kept = Pass::keeps_weights ? arrays<typename P::Relaxation>
                                                : 1 + (steepness_grad != nullptr),
                  kept_rows = (of_kept + columns) * segments.rows();
    const Memory memory(sizeof(Row) * kept_rows + sizeof(double) * tasks +
                        sizeof(real) * ((1 + segments.count) * (wires + of_columns) + of_columns));
    if (!memory.start) return out_of_memory;
    Row *kept = memory.get<Row>();
    double *sums = reinterpret_cast<double *>(kept + kept_rows);
    real *x = reinterpret_cast<real *>(sums + tasks), *x_copies = x + wires,
         *up = x_copies + segments.count * wires, *up_copies = up + of_columns,
         *down = up_copies + segments.count * of_columns;
    Kept of_segment;
    if constexpr (Pass::keeps_weights)
        of_segment = weights_at<typename P::Relaxation>(kept, segments.rows());
    else
        of_segment = {kept, steepness_grad ? kept + segments.rows() : nullptr};
    for (int64_t b = 0; b < call.batch; ++b) {
        memcpy(x, call.x + b * wires, sizeof(real) * wires);
        if (columns) {
            take_columns(call, b, real(1), reversed ? down : up);
            split_columns(routed_grad + b * of_columns, wires, columns, reversed ? up : down);
        }
        const real steepness = call.steepness_of(b);
        const Pass pass = {plan,
                           pool,
                           segments,
                           columns,
                           reversed,
                           steepness,
                           are_extreme(plan, x, steepness),
                           x,
                           columns ? up : nullptr,
                           down,
                           x_copies,
                           columns ? up_copies : nullptr,
                           of_segment,
                           columns ? kept + of_kept * segments.rows() : nullptr};
        Status status = pass.go_up();
        if (status != ok) return status;
        if (columns && payload_grad && reversed)
            join_columns(up, wires, columns, real(1), payload_grad + b * of_columns);
        real *grad = x_grad + b * wires;
        copy_or_clear(grad, values_grad ? values_grad + b * wires : nullptr, wires);
        memset(sums, 0, sizeof(double) * tasks);
        status = pass.go_down([&](int64_t s) {
            return pass.gradients_down(s, grad, steepness_grad ? sums : nullptr);
        });
        if (status != ok) return status;
        if (steepness_grad) steepness_grad[b] = sum_of<real>(sums, tasks);
        if (columns && payload_grad && !reversed)
            join_columns(down, wires, columns, real(1), payload_grad + b * of_columns);
    }
    return ok;
}

template <class P, class real>
Status long_backward(const Call<P, real> &call, const real *values_grad, const real *routed_grad,
                     real *x_grad, real *steepness_grad, real *payload_grad, ParallelFor pool) {
    if (routed_grad && call.columns())
        return long_backward_keeping<Weights<Vec<real>>>(call, values_grad, routed_grad, x_grad,
                                                         steepness_grad, payload_grad, pool);
    return long_backward_keeping<Derivatives<Vec<real>>>(call, values_grad, routed_grad, x_grad,
                                                         steepness_grad, payload_grad, pool);
}

}  // namespace nsc
