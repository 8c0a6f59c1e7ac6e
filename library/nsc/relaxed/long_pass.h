// Networks of many wires: one sample, and a few columns of a payload, through the layers together.
//
// The weights of all comparators would take 12 bytes each: 53 MB for bitonic 65,536, whose x takes
// 256 KB. So layers are cut into segments, about as many as a segment has layers. On the way up the
// values are copied where a segment begins; on the way down a segment runs forward again from
// there, and what it keeps is for itself alone. Copies and segment together take O(n sqrt(depth)).
//
// A routing takes payloads up with the values, or down with their gradients:
//
//     route               the payload goes up, the gradient of the result down;
//     transposed, rows    the payload goes down, the gradient of the result up.
//
// Either way the gradient of a comparator's weight is the product of two differences of its wires:
// of what goes up, in front of the comparator, and of what goes down, behind it.
//
// A comparator cannot run backwards instead: at a tie both results are the mean, and the
// difference is lost. Ranks and their gradient run the keys forward four times and not twice, and
// still take less time than if the weights of all comparators went through memory. A layer that
// joins no quarters of the wires runs quarter by quarter, each a task, and there sixteenth by
// sixteenth, whose values fit the first-level cache. Three of the 136 layers of bitonic 65,536
// join quarters. More columns take butterflies, whose light cones a thread finds for 64 blocks of
// columns at a time: a table of all would take a gigabyte.
#pragma once

#include <nsc/relaxed/groups.h>
#include <nsc/relaxed/layers.h>

namespace nsc {

// Columns of a payload, at most: each is gathered by itself. More take butterflies.
constexpr int64_t most_long_columns = 4;

// Comparators that are a thread's task in a layer that joins parts of the wires.
constexpr int64_t layer_task = 1024;

// Whether a call takes this pass: the values alone, or a few columns.
template <class P, class real>
bool takes_long_pass(const Call<P, real> &call) {
    return P::is_long && !routes_identity(call.routing) && call.columns() <= most_long_columns;
}

// How the layers are cut, and what is kept of a segment. A part of the wires has rows of its own,
// as its thread may be in another segment than the other parts.
template <class P, class real>
struct Segments {
    explicit Segments(const P &plan) : plan(plan), count(root_of(plan.layers)) {}
    int64_t begin(int64_t segment) const { return cut(plan.layers, count, segment); }
    // Registers that the comparators of a layer fill, at most: in a part, in all, in a segment.
    int64_t rows_of_part() const {
        return plan.wires / parts / 2 / lanes<real> + 2 + ranges / parts;
    }
    int64_t rows_of_layer() const { return parts * rows_of_part(); }
    int64_t rows() const { return (plan.layers / count + 1) * rows_of_layer(); }
    // Tasks of a layer, at most.
    int64_t tasks() const {
        const int64_t of_layer = plan.wires / 2 / layer_task + 1;
        return of_layer > ranges ? of_layer : ranges;
    }
    const P &plan;
    const int64_t count;
};

// Gathers the numbers of the two wires of some comparators, and writes them back.
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

// Comparators of a layer that are run together: their number, the layer, the first of the registers
// of what is kept of them, counted in their layer, and the number of their task.
struct Run {
    const Comparator *at;
    int64_t count, layer, row, task;
    template <class real>
    int32_t registers() const {
        return int32_t((count + lanes<real> - 1) / lanes<real>);
    }
};

// A sample on its way. Kept: what a segment keeps of each comparator, Weights, or Derivatives where
// the values alone are wanted.
template <class P, class real, class Kept>
struct LongPass {
    using Row = Vec<real>;
    using Relaxation = typename P::Relaxation;
    static constexpr bool keeps_weights = are_same<Kept, Weights<Row>>;

    const P &plan;
    const ParallelFor pool;
    const Segments<P, real> &segments;
    const int64_t columns;
    const bool is_reversed;
    const real steepness;
    const bool careful;
    real *x, *up, *down;         // the values; what goes up, or null, and what goes down, by column
    real *x_copies, *up_copies;  // where segments begin; null: nothing is copied
    Kept kept;                   // of a segment
    Row *differences;            // of what goes up, of a segment

    // Calls run(both, its comparators) for all comparators of layers, in order or backwards. Layers
    // that join no parts of the wires are run part by part, each a task; a layer that does is cut
    // into tasks by itself. `part`: this one alone, by this thread, of layers that join none.
    template <bool backwards, class Visit>
    Status for_layers(int64_t part, int64_t first, int64_t end, Visit visit) const {
        if (part != all_parts) {
            for_layers_of_part<backwards>(part, first, end, visit);
            return ok;
        }
        Status status = ok;
        while (status == ok && first < end) {
            const int64_t border = end_of_stretch<backwards>(joins_parts, first, end),
                          from = backwards ? border : first, to = backwards ? end : border;
            status = plan.joins[from] == joins_parts
                         ? for_layer(from, visit)
                         : parallel(pool, parts, 1, 0, [&](int64_t each, const Memory &) {
                for_layers_of_part<backwards>(each, from, to, visit);
            });
            (backwards ? end : first) = border;
        }
        return status;
    }
    // Returns where layers end that join less than `most`, or one that does not.
    template <bool backwards>
    int64_t end_of_stretch(Joins most, int64_t first, int64_t end) const {
        if (backwards) {
            if (plan.joins[--end] < most)
                while (end > first && plan.joins[end - 1] < most) --end;
            return end;
        }
        if (plan.joins[first++] < most)
            while (first < end && plan.joins[first] < most) ++first;
        return first;
    }
    // Layers that join no ranges of wires are run one after the other while a range is in the
    // cache.
    template <bool backwards, class Visit>
    void for_layers_of_part(int64_t part, int64_t first, int64_t end, Visit visit) const {
        Gathered<real> both;
        const int64_t first_range = part * ranges / parts, end_range = first_range + ranges / parts;
        while (first < end) {
            const int64_t border = end_of_stretch<backwards>(joins_ranges, first, end),
                          from = backwards ? border : first, to = backwards ? end : border;
            const int64_t at_once = plan.joins[from] == joins_nothing ? 1 : ranges / parts;
            for (int64_t range = first_range; range < end_range; range += at_once)
                for (int64_t l = from; l < to; ++l) {
                    const int64_t layer = backwards ? to - 1 - (l - from) : l,
                                  begin = begin_of_range(layer, range),
                                  of_part = begin_of_range(layer, first_range);
                    for_runs(both, begin, begin_of_range(layer, range + at_once), visit,
                             {nullptr, 0, layer,
                              part * segments.rows_of_part() + (begin - of_part) / lanes<real> +
                                  (range - first_range),
                              range});
                }
            (backwards ? end : first) = border;
        }
    }
    int64_t begin_of_range(int64_t layer, int64_t range) const {
        const int64_t before = layer * ranges + range;
        return before ? plan.range_end[before - 1] : 0;
    }
    template <class Visit>
    Status for_layer(int64_t layer, Visit visit) const {
        const int64_t begin = begin_of_range(layer, 0), end = plan.layer_end[layer];
        return parallel(pool, (end - begin + layer_task - 1) / layer_task, grain_of(layer_task), 0,
                        [&](int64_t task, const Memory &) {
            Gathered<real> both;
            const int64_t from = begin + task * layer_task,
                          to = end - from < layer_task ? end : from + layer_task;
            for_runs(both, from, to, visit,
                     {nullptr, 0, layer, (from - begin) / lanes<real>, task});
        });
    }
    template <class Visit>
    void for_runs(Gathered<real> &both, int64_t begin, int64_t end, Visit visit, Run run) const {
        constexpr int64_t most = most_in_bundle * lanes<real>;
        for (int64_t i = begin; i < end; i += most, run.row += most_in_bundle) {
            run.at = plan.in_layers + i, run.count = end - i < most ? end - i : most;
            visit(both, run);
        }
    }

    // Where what is kept of a run of a segment begins.
    int64_t place(int64_t segment, const Run &run) const {
        return (run.layer - segments.begin(segment)) * segments.rows_of_layer() + run.row;
    }

    // Runs layers of a segment forward, and keeps what the way down needs if `keeps`.
    template <bool keeps>
    Status run_up(int64_t segment, int64_t part, int64_t first, int64_t end) const {
        return for_layers<false>(part, first, end, [&](Gathered<real> &both, const Run &run) {
            if constexpr (keeps) {
                const int64_t at = place(segment, run);
                compare_run(both, run, kept.from(at));
                mix_up(both, run, kept.from(at), [&](int64_t c, int32_t r, Row difference) {
                    differences[c * segments.rows() + at + r] = difference;
                });
            } else if (up) {
                Row held[arrays<Relaxation> * most_in_bundle];
                const Weights<Row> w = weights_at<Relaxation>(held, most_in_bundle);
                compare_run(both, run, w);
                mix_up(both, run, w, [](int64_t, int32_t, Row) {});
            } else {
                compare_run(both, run, Nothing());
            }
        });
    }
    template <class Keep>
    void compare_run(Gathered<real> &both, const Run &run, Keep keep) const {
        const int32_t rows = run.template registers<real>();
        gather(run.at, run.count, x, both);
        if (careful)
            compare<real, Relaxation, true>(rows, gathered.at, both.rows, all(steepness), keep);
        else
            compare<real, Relaxation, false>(rows, gathered.at, both.rows, all(steepness), keep);
        scatter(run.at, run.count, x, both);
    }
    // Mixes what goes up, and calls visit(column, register, difference in front).
    template <class Keep, class Visit>
    void mix_up(Gathered<real> &both, const Run &run, Keep keep, Visit visit) const {
        if constexpr (are_same<Keep, Weights<Row>>)
            for (int64_t c = 0; up && c < columns; ++c)
                mix_column(both, run, up + c * plan.wires,
                           is_reversed ? keep.backward : keep.forward,
                           [&](int32_t r, Row difference) { visit(c, r, difference); });
    }
    template <class Visit>
    static void mix_column(Gathered<real> &both, const Run &run, real *column, Mixes<Row> m,
                           Visit visit) {
        gather(run.at, run.count, column, both);
        for (int32_t r = 0; r < run.template registers<real>(); ++r) {
            Row &a = both.rows[r], &b = both.rows[most_in_bundle + r];
            visit(r, a - b);
            mix(a, b, Mix<Row>{m.keep[r], m.swap[r]});
        }
        scatter(run.at, run.count, column, both);
    }

    // Copies columns, on the wires of a part or on all.
    void copy(int64_t part, real *to, const real *from, int64_t count) const {
        const int64_t begin = part == all_parts ? 0 : cut(plan.wires, parts, part),
                      end = part == all_parts ? plan.wires : cut(plan.wires, parts, part + 1);
        for (int64_t c = 0; c < count; ++c)
            memcpy(to + c * plan.wires + begin, from + c * plan.wires + begin,
                   sizeof(real) * (end - begin));
    }

    // Runs all layers forward. Copies what segments begin with, and then keeps what the last one
    // needs, if anything is copied.
    Status go_up() const {
        Status status = ok;
        for (int64_t first = 0, end; status == ok && first < plan.layers; first = end) {
            end = end_of_stretch<false>(joins_parts, first, plan.layers);
            status = plan.joins[first] == joins_parts
                         ? go_up_through(all_parts, first, end)
                         : parallel(pool, parts, 1, 0, [&](int64_t part, const Memory &) {
                go_up_through(part, first, end);
            });
        }
        return status;
    }
    Status go_up_through(int64_t part, int64_t first, int64_t end) const {
        Status status = ok;
        for (int64_t s = 0; status == ok && s < segments.count; ++s) {
            const int64_t begin = segments.begin(s), behind = segments.begin(s + 1),
                          from = first > begin ? first : begin, to = end < behind ? end : behind;
            if (from >= to) continue;
            if (x_copies && from == begin) copy(part, x_copies + s * plan.wires, x, 1);
            if (up_copies && from == begin)
                copy(part, up_copies + s * columns * plan.wires, up, columns);
            status = x_copies && s == segments.count - 1 ? run_up<true>(s, part, from, to)
                                                         : run_up<false>(s, part, from, to);
        }
        return status;
    }

    // Calls visit(segment, part) for the segments from the last to the first, when what it needs is
    // kept. The values are overwritten.
    template <class Visit>
    Status go_down(Visit visit) const {
        Status status = ok;
        for (int64_t s = segments.count - 1; status == ok && s >= 0;) {
            const int64_t last = s;
            while (s >= 0 && joins_no_parts(s)) --s;
            status = s == last ? go_down_through(s--, all_parts, visit)
                               : parallel(pool, parts, 1, 0, [&](int64_t part, const Memory &) {
                for (int64_t each = last; each > s; --each) go_down_through(each, part, visit);
            });
        }
        return status;
    }
    template <class Visit>
    Status go_down_through(int64_t s, int64_t part, Visit visit) const {
        Status status = ok;
        if (s < segments.count - 1) {
            copy(part, x, x_copies + s * plan.wires, 1);
            if (up_copies) copy(part, up, up_copies + s * columns * plan.wires, columns);
            status = run_up<true>(s, part, segments.begin(s), segments.begin(s + 1));
        }
        return status == ok ? visit(s, part) : status;
    }
    bool joins_no_parts(int64_t s) const {
        bool joins = false;
        for (int64_t layer = segments.begin(s); layer < segments.begin(s + 1); ++layer)
            joins |= plan.joins[layer] == joins_parts;
        return !joins;
    }

    // Takes what goes down through a segment.
    Status route_down(int64_t s, int64_t part) const {
        return for_layers<true>(part, segments.begin(s), segments.begin(s + 1),
                                [&](Gathered<real> &both, const Run &run) {
            for (int64_t c = 0; c < columns; ++c)
                mix_column(both, run, down + c * plan.wires, kept.from(place(s, run)).forward,
                           [](int32_t, Row) {});
        });
    }

    // The same with gradients: of the columns, and of the values to `grad`. The parts of the
    // gradient of the steepness are added to the places of their tasks in `sums`, if it is wanted.
    Status gradients_down(int64_t s, int64_t part, real *grad, double *sums) const {
        return for_layers<true>(part, segments.begin(s), segments.begin(s + 1),
                                [&](Gathered<real> &both, const Run &run) {
            Row of_steepness[most_in_bundle];
            if constexpr (keeps_weights)
                take_weights_back(both, run, place(s, run), grad, sums ? of_steepness : nullptr);
            else
                take_values_back(both, run, place(s, run), grad, sums ? of_steepness : nullptr);
            for (int64_t k = 0; sums && k < run.count; ++k)
                sums[run.task] += singly<real>(of_steepness)[k];
        });
    }
    void take_weights_back(Gathered<real> &both, const Run &run, int64_t at, real *grad,
                           Row *of_steepness) const {
        const Kept w = kept.from(at);
        Row weight_grad[most_in_bundle] = {};
        for (int64_t c = 0; c < columns; ++c) {
            const Row *in_front = differences + c * segments.rows() + at;
            mix_column(
                both, run, down + c * plan.wires, is_reversed ? w.forward : w.backward,
                [&](int32_t r, Row difference) { weight_grad[r] += in_front[r] * difference; });
        }
        gather(run.at, run.count, grad, both);
        compare_backward<real, Relaxation>(run.template registers<real>(), gathered.at, both.rows,
                                           weight_grad, all(steepness), w, of_steepness);
        scatter(run.at, run.count, grad, both);
    }
    void take_values_back(Gathered<real> &both, const Run &run, int64_t at, real *grad,
                          Row *of_steepness) const {
        const Kept d = kept.from(at);
        gather(run.at, run.count, grad, both);
        for (int32_t r = 0; r < run.template registers<real>(); ++r) {
            Row &lo = both.rows[r], &hi = both.rows[most_in_bundle + r];
            if (of_steepness) of_steepness[r] = (hi - lo) * d.steepness[r];
            move_gradients<real>(lo, hi, d.share[r]);
        }
        scatter(run.at, run.count, grad, both);
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
    if (!has_ranks(call.routing))
        return split_columns(static_cast<const real *>(call.payload) + sample * call.payload_stride,
                             wires, columns, to);
    memset(to, 0, sizeof(real) * wires * columns);
    for (int64_t c = 0; c < columns; ++c) to[c * wires + call.ranks_of(sample)[c]] = one;
}

// Calls take(sample, memory, pool) for all samples: many at the same time, or few one after the
// other, each on all threads.
template <class P, class real, class Take>
Status for_samples(const Call<P, real> &call, int64_t bytes, ParallelFor pool, Take take) {
    const bool are_many = call.batch >= many_samples;
    return parallel_ranges(are_many ? pool : nullptr, call.batch, 1, bytes,
                           [&](int64_t begin, int64_t end, const Memory &memory) {
        Status status = ok;
        for (int64_t b = begin; status == ok && b < end; ++b)
            status = take(b, memory, are_many ? nullptr : pool);
        return status;
    });
}

// See `forward`.
template <class P, class real>
Status long_forward(const Call<P, real> &call, real *values, real *routed, ParallelFor pool) {
    using Row = Vec<real>;
    using Relaxation = typename P::Relaxation;
    using Pass = LongPass<P, real, Weights<Row>>;
    const P &plan = call.plan;
    const Segments<P, real> segments(plan);
    const int64_t wires = plan.wires, columns = call.columns(), of_columns = wires * columns;
    const bool reversed = is_reversed(call.routing) && columns > 0;
    const int64_t kept_rows = reversed ? arrays<Relaxation> * segments.rows() : 0,
                  copies = reversed ? segments.count + 1 : 0;
    const real one = has_ranks(call.routing) ? unit<real> : 1;
    return for_samples(call, sizeof(Row) * kept_rows + sizeof(real) * (of_columns + copies * wires),
                       pool, [&](int64_t b, const Memory &memory, ParallelFor threads) {
        Row *kept = memory.get<Row>();
        real *routing = reinterpret_cast<real *>(kept + kept_rows), *again = routing + of_columns,
             *x_copies = again + wires, *x = values + b * wires;
        const real steepness = call.steepness_of(b);
        memcpy(x, call.x + b * wires, sizeof(real) * wires);
        if (columns) take_columns(call, b, one, routing);
        Pass pass = {plan,
                     threads,
                     segments,
                     columns,
                     reversed,
                     steepness,
                     are_extreme(plan, x, steepness),
                     x,
                     columns && !reversed ? routing : nullptr,
                     routing,
                     reversed ? x_copies : nullptr,
                     nullptr,
                     weights_at<Relaxation>(kept, segments.rows()),
                     nullptr};
        Status status = pass.go_up();
        if (reversed && status == ok) {
            pass.x = again;  // the values stay
            status =
                pass.go_down([&](int64_t s, int64_t part) { return pass.route_down(s, part); });
        }
        if (columns && status == ok)
            join_columns(routing, wires, columns, 1 / one, routed + b * of_columns);
        return status;
    });
}

// Kept: see LongPass. See `backward` too.
template <class Kept, class P, class real>
Status long_backward_keeping(const Call<P, real> &call, const real *values_grad,
                             const real *routed_grad, real *x_grad, real *steepness_grad,
                             real *payload_grad, ParallelFor pool) {
    using Row = Vec<real>;
    using Relaxation = typename P::Relaxation;
    using Pass = LongPass<P, real, Kept>;
    const P &plan = call.plan;
    const Segments<P, real> segments(plan);
    const int64_t wires = plan.wires, columns = Pass::keeps_weights ? call.columns() : 0,
                  of_columns = wires * columns, rows = segments.rows(), tasks = segments.tasks();
    const bool reversed = is_reversed(call.routing);
    const int64_t of_kept = Pass::keeps_weights ? arrays<Relaxation>
                            : steepness_grad    ? 2
                                                : 1,
                  kept_rows = (of_kept + columns) * rows,
                  reals = (1 + segments.count) * (wires + of_columns) + of_columns;
    return for_samples(call,
                       sizeof(Row) * kept_rows + sizeof(double) * tasks + sizeof(real) * reals,
                       pool, [&](int64_t b, const Memory &memory, ParallelFor threads) {
        Row *kept = memory.get<Row>();
        double *sums = reinterpret_cast<double *>(kept + kept_rows);
        real *x = reinterpret_cast<real *>(sums + tasks), *x_copies = x + wires,
             *up = x_copies + segments.count * wires, *up_copies = up + of_columns,
             *down = up_copies + segments.count * of_columns, *grad = x_grad + b * wires;
        Kept of_segment;
        if constexpr (Pass::keeps_weights)
            of_segment = weights_at<Relaxation>(kept, rows);
        else
            of_segment = {kept, steepness_grad ? kept + rows : nullptr};
        const real steepness = call.steepness_of(b);
        memcpy(x, call.x + b * wires, sizeof(real) * wires);
        if (columns) {
            take_columns(call, b, real(1), reversed ? down : up);
            split_columns(routed_grad + b * of_columns, wires, columns, reversed ? up : down);
        }
        const Pass pass = {plan,
                           threads,
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
                           kept + of_kept * rows};
        Status status = pass.go_up();
        if (status != ok) return status;
        if (columns && payload_grad && reversed)
            join_columns(up, wires, columns, real(1), payload_grad + b * of_columns);
        copy_or_clear(grad, values_grad ? values_grad + b * wires : nullptr, wires);
        memset(sums, 0, sizeof(double) * tasks);
        status = pass.go_down([&](int64_t s, int64_t part) {
            return pass.gradients_down(s, part, grad, steepness_grad ? sums : nullptr);
        });
        if (steepness_grad) steepness_grad[b] = sum_of<real>(sums, tasks);
        if (columns && payload_grad && !reversed && status == ok)
            join_columns(down, wires, columns, real(1), payload_grad + b * of_columns);
        return status;
    });
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
