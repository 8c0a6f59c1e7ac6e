// The routing pass, and the calls that the passes make up.
#pragma once

#include <nsc/relaxed/columns.h>
#include <nsc/relaxed/groups.h>
#include <nsc/relaxed/keys_pass.h>
#include <nsc/relaxed/long_pass.h>
#include <nsc/relaxed/merge_columns.h>
#include <nsc/relaxed/narrow_pass.h>

namespace nsc {

// A thread's scratch memory: a group and its gradients, differences, copies of the group where
// segments begin (the first begins with the payload, the last needs none), and the blocks of each
// butterfly.
template <class P, class real>
struct RoutingMemory {
    using Row = Vec<real>;
    static int64_t rows_of_group(const P &plan) { return group_blocks * plan.wires; }
    static int64_t most_copies(const P &plan) {
        return most_segments(plan) > 2 ? most_segments(plan) - 2 : 0;
    }
    static int64_t most_steps(const P &plan) {
        return plan.front_count > plan.butterfly_count ? plan.front_count : plan.butterfly_count;
    }
    // Words of the light cones of a long network, see `cones_of`.
    static int64_t cone_words(const P &plan) {
        return P::is_long ? most_steps(plan) + plan.wires : 0;
    }
    static int64_t bytes_of_steps(const P &plan) {
        return sizeof(uint64_t) * cone_words(plan) + most_steps(plan);
    }
    static int64_t rows_backward(const P &plan) {
        return (2 + most_copies(plan)) * rows_of_group(plan) + kept_rows(plan);
    }
    static int64_t bytes_forward(const P &plan) {
        return sizeof(Row) * rows_of_group(plan) + bytes_of_steps(plan);
    }
    static int64_t bytes_backward(const P &plan) {
        return sizeof(Row) * rows_backward(plan) + sizeof(int64_t) * most_segments(plan) +
               bytes_of_steps(plan);
    }
    static RoutingMemory forward(const P &plan, void *start) {
        Row *rows = static_cast<Row *>(start);
        uint64_t *cones = reinterpret_cast<uint64_t *>(rows + rows_of_group(plan));
        return {rows,
                nullptr,
                nullptr,
                nullptr,
                nullptr,
                cones,
                reinterpret_cast<uint8_t *>(cones + cone_words(plan))};
    }
    static RoutingMemory backward(const P &plan, void *start) {
        const int64_t size = rows_of_group(plan);
        Row *rows = static_cast<Row *>(start), *grads = rows + size, *copies = grads + size;
        int64_t *segments = reinterpret_cast<int64_t *>(rows + rows_backward(plan));
        uint64_t *cones = reinterpret_cast<uint64_t *>(segments + most_segments(plan));
        return {rows,
                grads,
                copies,
                copies + most_copies(plan) * size,
                segments,
                cones,
                reinterpret_cast<uint8_t *>(cones + cone_words(plan))};
    }
    Row *rows, *grads, *copies, *kept;
    int64_t *segments;  // where they begin, the last first
    uint64_t *cones;
    uint8_t *on;
};

// Calls visit(group, steps) for the groups of a chunk of a sample's columns, with the butterflies
// that they take. A loss leaves out groups in which no item counts, unless it wants the gradient of
// shares, whose weights have one where they are 0.
template <class P, class real, class Visit>
inline void for_groups(const Call<P, real> &call, real *of_merge, int64_t sample, int64_t chunk,
                       bool wants_shares, RoutingMemory<P, real> memory, Visit visit) {
    const bool is_factored = with_merge(call, of_merge, [](const auto &) {});
    const int64_t chunks = call.chunks();
    const uint64_t *cones = nullptr;
    int64_t word = -1;
    for (int64_t group = cut(call.groups(), chunks, chunk);
         group < cut(call.groups(), chunks, chunk + 1); ++group) {
        if (!wants_shares && !call.counts(sample, group)) continue;
        if (routes_identity(call.routing) && word != call.word_of(group)) {
            word = call.word_of(group);
            cones = call.cones_of(word, is_factored, memory.cones);
        }
        visit(group, call.steps_of(sample, group, memory.on, cones, is_factored));
    }
}

// The truths of a block of a sample's columns.
template <class P, class real>
Truths<real> truths_of_block(const Call<P, real> &call, const Target<real> &target, int64_t block) {
    const int64_t first = block * lanes<real>;
    return {call.width_of(first), [&](int64_t) -> const Target<real> & { return target; },
            [&](int64_t k) { return first + k; }};
}

// Fills a group of columns of a sample's payload. The ones of a unit matrix are `one`, of a network
// in two parts the columns of a side.
template <class P, class real>
void load_group(const Call<P, real> &call, real *of_merge, Vec<real> *rows, int64_t sample,
                int64_t group, real one) {
    const int64_t first = group * group_blocks, width = call.width_of_group(group);
    const auto load = [&](const auto &merge) {
        MergeColumns<P, real>{merge}.load_units(rows, first * lanes<real>, width);
    };
    if (!with_merge(call, of_merge, load)) load_payload(call, rows, sample, first, width, one);
}

// Routes a chunk of a sample's columns to `routed`. A loss is returned instead.
template <class P, class real>
double route_chunk(const Call<P, real> &call, int64_t sample, int64_t chunk, const real *keep,
                   real *of_merge, real *routed, RoutingMemory<P, real> memory) {
    const P &plan = call.plan;
    double loss_of_lanes[lanes<real>] = {};
    const Target<real> target = call.target_of(sample);
    for_groups(call, of_merge, sample, chunk, false, memory, [&](int64_t group, Steps steps) {
        const int64_t at = group * group_blocks, used = call.used_in(group),
                      width = call.width_of_group(group);
        load_group(call, of_merge, memory.rows, sample, group, unit<real>);
        route_group<false, real>(plan, memory.rows, steps, keep, nullptr);
        if (!is_loss(call.routing)) {
            real *to = routed + sample * plan.wires * call.columns() + at * lanes<real>;
            return store_group<real>(plan, memory.rows, to, call.columns(), width,
                                     has_columns(call.routing) ? real(1) : 1 / unit<real>);
        }
        for (int64_t k = 0; k < used; ++k) {
            const Truths<real> truths = truths_of_block(call, target, at + k);
            const auto of_parts = [&](const auto &merge) {
                with_loss_of_truth(call.routing, [&](auto loss) {
                    MergeColumns<P, real>{merge}.template add_losses<decltype(loss)>(
                        truths, (at + k) * lanes<real>, memory.rows + k, loss_of_lanes);
                });
            };
            if (!with_merge(call, of_merge, of_parts))
                add_losses<P, real>(plan, call.routing, {memory.rows + k, group_blocks}, truths,
                                    loss_of_lanes);
        }
    });
    return sum_of<double>(loss_of_lanes, lanes<real>);
}

// Takes a group of columns of a payload through steps and the gradient behind them back, in
// place in memory.grads, and adds the gradients of the weights to `weight_grad`. load() fills the
// group with the payload; ended() is called when the group is routed and fills memory.grads.
template <class P, class real, class Load, class Ended>
void route_group_both_ways(const P &plan, Steps steps, Weights<real> w, real *weight_grad,
                           RoutingMemory<P, real> memory, Load load, Ended ended) {
    const int64_t size = group_blocks * plan.wires;
    const auto copy_of = [&](int64_t segment) { return memory.copies + (segment - 1) * size; };
    int64_t *first = memory.segments, last = 0;
    first[0] = first_of_segment(plan, steps, steps.end);
    while (first[last] > 0) first[last + 1] = first_of_segment(plan, steps, first[last]), ++last;
    load();
    for (int64_t segment = last; segment > 0; --segment) {
        route_group<false, real>(plan, memory.rows,
                                 steps.between(first[segment], first[segment - 1]), w.forward.keep,
                                 nullptr);
        if (segment > 1) memcpy(copy_of(segment - 1), memory.rows, sizeof(Vec<real>) * size);
    }
    for (int64_t segment = 0; segment <= last; ++segment) {
        if (segment > 0 && segment < last)
            memcpy(memory.rows, copy_of(segment), sizeof(Vec<real>) * size);
        if (segment > 0 && segment == last) load();
        const Steps part = steps.between(first[segment], segment ? first[segment - 1] : steps.end);
        const Vec<real> *end =
            route_group<true, real>(plan, memory.rows, part, w.forward.keep, memory.kept);
        if (segment == 0) ended();
        route_group_back<real>(plan, memory.grads, part, w.backward.keep, end, weight_grad);
    }
}

// Takes the gradient of a chunk of a sample's routed columns back to the payload, and adds the
// gradients of the weights to `sums`. The gradient of a loss is worked out on the way, and the
// loss returned if it is wanted.
template <class P, class real>
double route_chunk_back(const Call<P, real> &call, int64_t sample, int64_t chunk, Weights<real> w,
                        const real *routed_grad, real *payload_grad, bool wants_loss,
                        real *of_merge, Sums<real> sums, RoutingMemory<P, real> memory) {
    const P &plan = call.plan;
    double loss_of_lanes[lanes<real>] = {};
    const Target<real> target = call.target_of(sample);
    const bool wants_shares = is_loss(call.routing) && payload_grad;
    for_groups(call, of_merge, sample, chunk, wants_shares, memory,
               [&](int64_t group, Steps steps) {
        const int64_t at = group * group_blocks, used = call.used_in(group),
                      width = call.width_of_group(group);
        const int64_t place = sample * plan.wires * call.columns() + at * lanes<real>;
        const auto load = [&] {
            load_group(call, of_merge, memory.rows, sample, group,
                       is_loss(call.routing) ? unit<real> : real(1));
        };
        const auto ended = [&] {
            if (!is_loss(call.routing))
                return load_group<real>(plan, memory.grads, routed_grad + place, call.columns(),
                                        width);
            for (int64_t k = 0; k < used; ++k) {
                const Truths<real> truths = truths_of_block(call, target, at + k);
                const auto of_parts = [&](const auto &merge) {
                    with_loss_of_truth(call.routing, [&](auto loss) {
                        MergeColumns<P, real>{merge}.template find_loss_gradient<decltype(loss)>(
                            truths, (at + k) * lanes<real>, memory.rows + k, memory.grads + k, sums,
                            wants_loss ? loss_of_lanes : nullptr);
                    });
                };
                if (with_merge(call, of_merge, of_parts)) continue;
                const Columns<real> block = {memory.rows + k, group_blocks},
                                    grad = {memory.grads + k, group_blocks};
                find_loss_gradient(plan, call.routing, block, grad, truths,
                                   wants_loss ? loss_of_lanes : nullptr);
                if (!payload_grad) continue;
                real *share_grads[lanes<real>];
                for (int64_t lane = 0; lane < lanes<real>; ++lane)
                    share_grads[lane] = payload_grad + sample * numbers_of(of_shares, plan.wires) +
                                        (at + k) * lanes<real> + lane;
                find_share_gradient(plan, call.routing, block, truths, share_grads);
            }
        };
        route_group_both_ways(plan, steps, w, sums.slots, memory, load, ended);
        if (payload_grad && !is_loss(call.routing))
            store_group<real>(plan, memory.grads, payload_grad + place, call.columns(), width, 1);
    });
    return sum_of<double>(loss_of_lanes, lanes<real>);
}

// Calls run(begin, end, pool) for ranges of samples. A thread takes many samples through all
// passes, without a pool. Few samples share out their chunks on the pool.
template <class P, class real, class Run>
Status for_samples_of(const Call<P, real> &call, int64_t work_per_sample, ParallelFor pool,
                      Run run) {
    if (call.batch < many_samples) return run(0, call.batch, pool);
    return parallel_ranges(
        pool, call.batch, grain_of(work_per_sample), 0,
        [&](int64_t begin, int64_t end, const Memory &) { return run(begin, end, nullptr); });
}

// Samples that go through the keys pass together, at most: of many samples, as many as a register
// has lanes, whose weights stay in the cache.
template <class P, class real>
int64_t most_in_group(const Call<P, real> &call) {
    return call.batch < many_samples ? call.batch : lanes<real>;
}

// The weights of a sample of a group.
template <class P, class real>
Weights<real> weights_of(const P &plan, real *weights, int64_t b) {
    return weights_at<typename P::Relaxation>(weights + b * weights_per_sample(plan), plan.slots);
}

// Finds the tables of the merges of samples, if the call factors them.
template <class P, class real>
Status find_merges(const Call<P, real> &call, int64_t first, int64_t count, real *weights,
                   real *merges, ParallelFor pool) {
    if (!call.some_factored) return ok;
    return parallel(pool, count, 1, 0, [&](int64_t b, const Memory &) {
        find_merge(call, first + b, weights_of(call.plan, weights, b),
                   merges + b * merge_reals(call).merge);
    });
}

// Runs samples begin ... end - 1. Without a pool each is routed by itself, while its tables are in
// the cache.
template <class P, class real>
Status forward_samples(const Call<P, real> &call, int64_t begin, int64_t end, real *values,
                       real *routed, ParallelFor pool) {
    using Scratch = RoutingMemory<P, real>;
    const P &plan = call.plan;
    const int64_t chunks = call.chunks();
    const int64_t group = group_size<real>(
        most_in_group(call), (weights_per_sample(plan) + merge_reals(call).merge) * sizeof(real));
    const int64_t together = pool ? group : 1, bytes = Scratch::bytes_forward(plan);
    const Memory weight_memory(group * weights_per_sample(plan) * sizeof(real)),
        merge_memory(together * merge_reals(call).merge * sizeof(real)),
        loss_memory(together * chunks * sizeof(double)), own_memory(pool ? 0 : bytes);
    if (!weight_memory.start || !merge_memory.start || !loss_memory.start || !own_memory.start)
        return out_of_memory;
    double *losses = loss_memory.get<double>();
    for (int64_t first = begin; first < end; first += group) {
        const int64_t count = end - first < group ? end - first : group;
        Status status = keys_forward(call, first, count, values + first * plan.wires,
                                     weight_memory.get<real>(), pool);
        for (int64_t part = 0; status == ok && part < count; part += together) {
            const int64_t in_part = count - part < together ? count - part : together;
            real *weights = weight_memory.get<real>() + part * weights_per_sample(plan);
            status =
                find_merges(call, first + part, in_part, weights, merge_memory.get<real>(), pool);
            if (status != ok) return status;
            status = parallel_ranges(
                own_memory, pool, in_part * chunks, grain_of(call.mixes_per_chunk()), bytes,
                [&](int64_t first_task, int64_t end_task, const Memory &memory) {
                const auto routing = Scratch::forward(plan, memory.get<Vec<real>>());
                for (int64_t task = first_task; task < end_task; ++task) {
                    const int64_t b = task / chunks;
                    losses[task] = route_chunk(
                        call, first + part + b, task % chunks,
                        weights_of(plan, weights, b).forward.keep,
                        merge_memory.get<real>() + b * merge_reals(call).merge, routed, routing);
                }
                return ok;
            });
            for (int64_t b = 0; is_loss(call.routing) && status == ok && b < in_part; ++b)
                routed[first + part + b] = sum_of<real>(losses + b * chunks, chunks);
        }
        if (status != ok) return status;
    }
    return ok;
}

// Checks a call, and writes the tables that it needs.
template <class P, class real>
Status make_ready(P &plan, const Call<P, real> &call) {
    const Status checked = call.check();
    if (checked != ok || takes_long_pass(call)) return checked;
    return P::is_long ? plan.prepare_routing() : ok;
}

// values: (batch, wires). routed: (batch, wires, columns), or (batch) losses, or null.
template <class P, class real>
Status forward(P &plan, const Call<P, real> &call, real *values, real *routed, ParallelFor pool) {
    const Status ready = make_ready(plan, call);
    if (ready != ok) return ready;
    if constexpr (P::is_long)
        if (takes_long_pass(call)) return long_forward(call, values, routed, pool);
    if (call.routing == none)
        return keys_forward<P, real>(call, 0, call.batch, values, nullptr, pool);
    if (!is_loss(call.routing))
        expect_writes(routed, sizeof(real) * call.batch * plan.wires * call.columns());
    if constexpr (P::may_be_narrow)
        if (plan.is_narrow() && routes_identity(call.routing))
            return narrow_forward(call, values, routed, pool);
    return for_samples_of(call, call.chunks() * call.mixes_per_chunk(), pool,
                          [&](int64_t begin, int64_t end, ParallelFor threads) {
        return forward_samples(call, begin, end, values, routed, threads);
    });
}

// The gradients of a sample's weights are sums over its chunks of columns. Chunks are added in
// order, so that bits do not depend on threads: the thread with a sample's first chunk adds in
// place, other threads write to separate memory, and `finish` adds that in order. With a factored
// merge each half of the columns has sums of its own.
template <class P, class real>
struct ChunkSums {
    static int64_t sides(const Call<P, real> &call) { return call.is_parted() ? 2 : 1; }
    // Reals of a chunk's sums, of which a sample may use a part.
    static int64_t reals(const Call<P, real> &call) {
        return call.plan.slots + merge_reals(call).sums;
    }
    int64_t used(int64_t task) const {
        int64_t count = call.plan.slots;
        with_merge(call, merges + task / call.chunks() * merge_reals(call).merge,
                   [&](const auto &merge) {
            if (merge.has_half(side_of(task))) count += merge.used_sums();
        });
        return count;
    }
    Sums<real> at(real *memory) const {
        if constexpr (Call<P, real>::may_be_parted)
            if (call.some_factored)
                return Merge<P, real>::sums_at(call.plan, form_of(call.routing), memory);
        return {memory, nullptr, nullptr};
    }
    int64_t side_of(int64_t task) const {
        return task % call.chunks() / (call.chunks() / sides(call));
    }
    // How many chunks a chunk is behind the first one of its side, to which it is added.
    int64_t behind_first(int64_t task) const { return task % (call.chunks() / sides(call)); }
    // Where a chunk's sums belong. The sums of a sample's first chunks come first.
    Sums<real> of(int64_t task) const {
        const int64_t place = behind_first(task) * sides(call) + side_of(task);
        return at(start + (task - task % call.chunks() + place) * reals(call));
    }
    // Where the sums of a chunk begin at zero. `spare` is the thread's own memory.
    Sums<real> begin(int64_t task, int64_t first_task, real *spare) const {
        separate[task] = task - behind_first(task) < first_task;
        const Sums<real> sums = separate[task] || !behind_first(task) ? of(task) : at(spare);
        memset(sums.slots, 0, sizeof(real) * used(task));
        return sums;
    }
    void end(int64_t task, Sums<real> sums) const {
        if (!separate[task] && behind_first(task)) add(task, sums);
    }
    void add(int64_t task, Sums<real> sums) const {
        add_to(of(task - behind_first(task)).slots, sums.slots, used(task));
    }
    // Adds the separate chunks of a sample, and takes the sums of its merge to its slots.
    // `spare` is memory for that.
    void finish(int64_t sample, real *spare) const {
        const int64_t first = sample * call.chunks(), end = first + call.chunks();
        for (int64_t task = first; task < end; ++task)
            if (separate[task] && behind_first(task)) add(task, of(task));
        if (!call.is_parted()) return;
        const Sums<real> sums = of(first), other = of(first + call.chunks() / 2);
        add_to(sums.slots, other.slots, call.plan.slots);
        with_merge(call, merges + sample * merge_reals(call).merge,
                   [&](const auto &merge) { merge.backward(sums, other, spare); });
    }
    const Call<P, real> &call;
    real *merges;  // of the samples that the first task begins with
    real *start;
    bool *separate;
};

// Takes samples begin ... end - 1 back. Without a pool each is routed by itself, while its tables
// are in the cache.
template <class P, class real>
Status backward_samples(const Call<P, real> &call, int64_t begin, int64_t end,
                        const real *values_grad, const real *routed_grad, real *x_grad,
                        real *steepness_grad, real *payload_grad, real *losses, ParallelFor pool) {
    using Scratch = RoutingMemory<P, real>;
    using Chunks = ChunkSums<P, real>;
    const P &plan = call.plan;
    const int64_t chunks = call.chunks(), of_chunk = Chunks::reals(call);
    const int64_t sums = (chunks > 0 ? chunks : 1) * of_chunk;
    const int64_t group = group_size<real>(
        most_in_group(call),
        (weights_per_sample(plan) + merge_reals(call).merge + sums) * sizeof(real));
    const int64_t together = pool ? group : 1,
                  bytes = Scratch::bytes_backward(plan) + sizeof(real) * of_chunk,
                  finish_bytes = sizeof(real) * merge_reals(call).backward;
    const Memory weight_memory(group * weights_per_sample(plan) * sizeof(real)),
        merge_memory(together * merge_reals(call).merge * sizeof(real)),
        sum_memory(group * sums * sizeof(real));
    const Memory loss_memory(together * chunks * (sizeof(double) + sizeof(bool))),
        own_memory(pool                   ? 0
                   : bytes > finish_bytes ? bytes
                                          : finish_bytes);
    if (!weight_memory.start || !merge_memory.start || !sum_memory.start || !loss_memory.start ||
        !own_memory.start)
        return out_of_memory;
    real *merges = merge_memory.get<real>();
    double *chunk_losses = loss_memory.get<double>();
    bool *separate = reinterpret_cast<bool *>(chunk_losses + together * chunks);
    for (int64_t first = begin; first < end; first += group) {
        const int64_t count = end - first < group ? end - first : group;
        // x_grad takes the values, which are not needed
        Status status = keys_forward(call, first, count, x_grad + first * plan.wires,
                                     weight_memory.get<real>(), pool);
        for (int64_t part = 0; status == ok && part < count; part += together) {
            const int64_t in_part = count - part < together ? count - part : together;
            real *weights = weight_memory.get<real>() + part * weights_per_sample(plan),
                 *weight_grads = sum_memory.get<real>() + part * sums;
            const Chunks sums_of = {call, merges, weight_grads, separate};
            status = find_merges(call, first + part, in_part, weights, merges, pool);
            if (status != ok) return status;
            status = parallel_ranges(
                own_memory, pool, in_part * chunks, grain_of(4 * call.mixes_per_chunk()), bytes,
                [&](int64_t first_task, int64_t end_task, const Memory &memory) {
                real *const spare = memory.get<real>();
                const auto routing = Scratch::backward(plan, spare + of_chunk);
                for (int64_t task = first_task; task < end_task; ++task) {
                    const int64_t b = task / chunks;
                    const Sums<real> sums = sums_of.begin(task, first_task, spare);
                    chunk_losses[task] = route_chunk_back(
                        call, first + part + b, task % chunks, weights_of(plan, weights, b),
                        routed_grad, payload_grad, losses, merges + b * merge_reals(call).merge,
                        sums, routing);
                    sums_of.end(task, sums);
                }
                return ok;
            });
            if (status != ok) return status;
            for (int64_t b = 0; losses && b < in_part; ++b)
                losses[first + part + b] = sum_of<real>(chunk_losses + b * chunks, chunks);
            status = parallel_ranges(
                own_memory, pool, in_part, grain_of(chunks * plan.comparators), finish_bytes,
                [&](int64_t begin_part, int64_t end_part, const Memory &memory) {
                for (int64_t b = begin_part; b < end_part; ++b)
                    if (chunks)
                        sums_of.finish(b, memory.get<real>());
                    else
                        memset(weight_grads + b * sums, 0, sizeof(real) * plan.slots);
                return ok;
            });
        }
        if (status == ok)
            status = keys_backward(call, first, count, values_grad, weight_memory.get<real>(),
                                   sum_memory.get<real>(), sums, x_grad, steepness_grad, pool);
        if (status != ok) return status;
    }
    return ok;
}

// values_grad, routed_grad: as the outputs of forward, or null for zero. x_grad: (batch, wires).
// steepness_grad: (batch), or null. payload_grad: as the payload, or null; of a loss, the
// gradient of its shares.
// A loss has no routed_grad. Each sample's loss goes to `losses`, (batch), and the gradients are
// its gradients.
template <class P, class real>
Status backward(P &plan, const Call<P, real> &call, const real *values_grad,
                const real *routed_grad, real *x_grad, real *steepness_grad, real *payload_grad,
                real *losses, ParallelFor pool) {
    const Status ready = make_ready(plan, call);
    if (ready != ok) return ready;
    if constexpr (P::is_long)
        if (takes_long_pass(call))
            return long_backward(call, values_grad, routed_grad, x_grad, steepness_grad,
                                 payload_grad, pool);
    if (!routed_grad && !losses)
        return values_backward(call, values_grad, x_grad, steepness_grad, pool);
    if constexpr (P::may_be_narrow)
        if (plan.is_narrow() && routes_identity(call.routing))
            return narrow_backward(call, values_grad, routed_grad, x_grad, steepness_grad,
                                   payload_grad, losses, pool);
    return for_samples_of(call, 4 * call.chunks() * call.mixes_per_chunk(), pool,
                          [&](int64_t begin, int64_t end, ParallelFor threads) {
        return backward_samples(call, begin, end, values_grad, routed_grad, x_grad, steepness_grad,
                                payload_grad, losses, threads);
    });
}

}  // namespace nsc
