// The routing pass, and the calls that the passes make up.
#pragma once

#include <nsc/relaxed/columns.h>
#include <nsc/relaxed/groups.h>
#include <nsc/relaxed/keys_pass.h>
#include <nsc/relaxed/narrow_pass.h>

namespace nsc {

template <class result>
inline result sum_of(const double *parts, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += parts[i];
    return result(sum);
}

// How many reals a call of forward can keep for one of backward, which then need not work them out
// anew.
template <class real, class P>
int64_t count_kept(const P &plan, Routing routing, int64_t batch) {
    if constexpr (P::may_be_narrow)
        if (plan.is_narrow() && routes_identity(routing)) return narrow_kept<real>(plan, batch);
    return 0;
}

// From so many samples on, a thread takes whole samples through all passes. The columns of fewer
// samples are shared out in chunks, and the passes follow one another, as few samples may be too
// few for the threads.
constexpr int64_t many_samples = 8;

// A thread's scratch memory: a group and its gradients, differences, copies of the group where
// segments begin (the first begins with the payload, the last needs none), the sums of a chunk, and
// the blocks of each butterfly.
template <class P, class real>
struct RoutingMemory {
    using Row = Vec<real>;
    static int64_t rows_of_group(const P &plan) { return group_blocks * plan.wires; }
    static int64_t most_copies(const P &plan) {
        return most_segments(plan) > 2 ? most_segments(plan) - 2 : 0;
    }
    static int64_t rows_backward(const P &plan) {
        return (2 + most_copies(plan)) * rows_of_group(plan) + kept_rows(plan);
    }
    static int64_t bytes_forward(const P &plan) {
        return sizeof(Row) * rows_of_group(plan) + plan.butterfly_count;
    }
    static int64_t bytes_backward(const P &plan) {
        return sizeof(Row) * rows_backward(plan) + sizeof(real) * plan.slots +
               sizeof(int64_t) * most_segments(plan) + plan.butterfly_count;
    }
    static RoutingMemory forward(const P &plan, void *start) {
        Row *rows = static_cast<Row *>(start);
        return {rows,
                nullptr,
                nullptr,
                nullptr,
                nullptr,
                nullptr,
                reinterpret_cast<uint8_t *>(rows + rows_of_group(plan))};
    }
    static RoutingMemory backward(const P &plan, void *start) {
        const int64_t size = rows_of_group(plan);
        Row *rows = static_cast<Row *>(start), *grads = rows + size, *copies = grads + size;
        real *sums = reinterpret_cast<real *>(rows + rows_backward(plan));
        int64_t *segments = reinterpret_cast<int64_t *>(sums + plan.slots);
        return {rows,
                grads,
                copies,
                copies + most_copies(plan) * size,
                segments,
                sums,
                reinterpret_cast<uint8_t *>(segments + most_segments(plan))};
    }
    Row *rows, *grads, *copies, *kept;
    int64_t *segments;  // where they begin, the last first
    real *sums;
    uint8_t *on;
};

// Calls visit(group) for the groups of a chunk of the columns.
template <class P, class real, class Visit>
inline void for_groups(const Call<P, real> &call, int64_t chunk, Visit visit) {
    const int64_t chunks = call.chunks();
    for (int64_t group = cut(call.groups(), chunks, chunk);
         group < cut(call.groups(), chunks, chunk + 1); ++group)
        visit(group);
}

// The truths of a block of a sample's columns.
template <class P, class real>
Truths<real> truths_of_block(const Call<P, real> &call, const Target<real> &target, int64_t block) {
    const int64_t first = block * lanes<real>;
    return {call.width_of(first), [&](int64_t) -> const Target<real> & { return target; },
            [&](int64_t k) { return first + k; }};
}

// Routes a chunk of a sample's columns to `routed`. A loss is returned instead.
template <class P, class real>
double route_chunk(const Call<P, real> &call, int64_t sample, int64_t chunk, const real *keep,
                   real *routed, RoutingMemory<P, real> memory) {
    const P &plan = call.plan;
    double loss_of_lanes[lanes<real>] = {};
    const Target<real> target = call.target_of(sample);
    for_groups(call, chunk, [&](int64_t group) {
        const int64_t at = group * group_blocks, used = call.used_in(group),
                      width = call.width_of_group(group);
        load_payload(call, memory.rows, sample, at, width, unit<real>);
        call.find_blocks(memory.on, sample, at, used);
        const Steps steps = {call.butterflies(), memory.on, 0, plan.butterfly_count};
        route_group<false, real>(plan, memory.rows, steps, keep, nullptr);
        if (!is_loss(call.routing)) {
            real *to = routed + sample * plan.wires * call.columns() + at * lanes<real>;
            return store_group<real>(plan, memory.rows, to, call.columns(), width,
                                     has_columns(call.routing) ? real(1) : 1 / unit<real>);
        }
        for (int64_t k = 0; k < used; ++k)
            add_losses<P, real>(plan, call.routing, {memory.rows + k, group_blocks},
                                truths_of_block(call, target, at + k), loss_of_lanes);
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
// gradients of the weights to `weight_grad`. The gradient of a loss is worked out on the way, and
// the loss returned if it is wanted.
template <class P, class real>
double route_chunk_back(const Call<P, real> &call, int64_t sample, int64_t chunk, Weights<real> w,
                        const real *routed_grad, real *payload_grad, bool wants_loss,
                        real *weight_grad, RoutingMemory<P, real> memory) {
    const P &plan = call.plan;
    double loss_of_lanes[lanes<real>] = {};
    const Target<real> target = call.target_of(sample);
    for_groups(call, chunk, [&](int64_t group) {
        const int64_t at = group * group_blocks, used = call.used_in(group),
                      width = call.width_of_group(group);
        const int64_t place = sample * plan.wires * call.columns() + at * lanes<real>;
        const auto load = [&] {
            load_payload(call, memory.rows, sample, at, width,
                         is_loss(call.routing) ? unit<real> : real(1));
        };
        const auto ended = [&] {
            if (!is_loss(call.routing))
                return load_group<real>(plan, memory.grads, routed_grad + place, call.columns(),
                                        width);
            for (int64_t k = 0; k < used; ++k) {
                const Truths<real> truths = truths_of_block(call, target, at + k);
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
        call.find_blocks(memory.on, sample, at, used);
        route_group_both_ways(plan, {call.butterflies(), memory.on, 0, plan.butterfly_count}, w,
                              weight_grad, memory, load, ended);
        if (payload_grad && !is_loss(call.routing))
            store_group<real>(plan, memory.grads, payload_grad + place, call.columns(), width, 1);
    });
    return sum_of<double>(loss_of_lanes, lanes<real>);
}

// Calls work(first, count, memory) for all samples, at most `lanes` at a time, on the threads of a
// pool. Each thread has `bytes` of memory, and `bytes_per_sample` more for each of those samples.
template <class P, class real, class Work>
Status parallel_samples(const Call<P, real> &call, int64_t work_per_sample, int64_t bytes,
                        int64_t bytes_per_sample, ParallelFor pool, Work work) {
    const int64_t most = group_size<real>(lanes<real>, bytes_per_sample);
    return parallel_ranges(pool, call.batch, grain_of(work_per_sample),
                           bytes + most * bytes_per_sample,
                           [&](int64_t begin, int64_t end, const Memory &memory) {
        Status status = ok;
        for (int64_t first = begin; status == ok && first < end; first += most)
            status = work(first, end - first < most ? end - first : most, memory);
        return status;
    });
}

template <class P, class real>
Status forward_samples(const Call<P, real> &call, real *values, real *routed, ParallelFor pool) {
    using Scratch = RoutingMemory<P, real>;
    using Relaxation = typename P::Relaxation;
    const P &plan = call.plan;
    const int64_t work = call.chunks() * call.mixes_per_chunk();
    return parallel_samples(call, work, Scratch::bytes_forward(plan),
                            sizeof(real) * weights_per_sample(plan), pool,
                            [&](int64_t first, int64_t count, const Memory &memory) {
        real *weights = memory.get<real>();
        const auto routing = Scratch::forward(plan, weights + count * weights_per_sample(plan));
        const Status status =
            keys_forward(call, first, count, values + first * plan.wires, weights, nullptr);
        for (int64_t b = 0; status == ok && b < count; ++b) {
            const real *keep =
                weights_at<Relaxation>(weights + b * weights_per_sample(plan), plan.slots)
                    .forward.keep;
            double loss = 0;
            for (int64_t chunk = 0; chunk < call.chunks(); ++chunk)
                loss += route_chunk(call, first + b, chunk, keep, routed, routing);
            if (is_loss(call.routing)) routed[first + b] = real(loss);
        }
        return status;
    });
}

template <class P, class real>
Status forward_chunks(const Call<P, real> &call, real *values, real *routed, ParallelFor pool) {
    using Scratch = RoutingMemory<P, real>;
    using Relaxation = typename P::Relaxation;
    const P &plan = call.plan;
    const int64_t chunks = call.chunks();
    const int64_t group = group_size<real>(call.batch, weights_per_sample(plan) * sizeof(real));
    const Memory weight_memory(group * weights_per_sample(plan) * sizeof(real)),
        loss_memory(group * chunks * sizeof(double));
    if (!weight_memory.start || !loss_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>();
    double *losses = loss_memory.get<double>();
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        Status status =
            keys_forward(call, first, count, values + first * plan.wires, weights, pool);
        if (status != ok) return status;
        status = parallel(pool, count * chunks, grain_of(call.mixes_per_chunk()),
                          Scratch::bytes_forward(plan), [&](int64_t task, const Memory &memory) {
            const int64_t b = task / chunks;
            const real *keep =
                weights_at<Relaxation>(weights + b * weights_per_sample(plan), plan.slots)
                    .forward.keep;
            losses[task] = route_chunk(call, first + b, task % chunks, keep, routed,
                                       Scratch::forward(plan, memory.get<Vec<real>>()));
        });
        if (status != ok) return status;
        for (int64_t b = 0; is_loss(call.routing) && b < count; ++b)
            routed[first + b] = sum_of<real>(losses + b * chunks, chunks);
    }
    return ok;
}

// Checks a call, and writes the tables that its keys pass needs.
template <class P, class real>
Status make_ready(P &plan, const Call<P, real> &call) {
    const Status checked = call.check();
    return checked == ok && call.batch > 1 ? plan.prepare_layers() : checked;
}

// values: (batch, wires). routed: (batch, wires, columns), or (batch) losses, or null. kept:
// count_kept reals, or null.
template <class P, class real>
Status forward(P &plan, const Call<P, real> &call, real *values, real *routed, real *kept,
               ParallelFor pool) {
    const Status ready = make_ready(plan, call);
    if (ready != ok) return ready;
    if (call.routing == none)
        return keys_forward<P, real>(call, 0, call.batch, values, nullptr, pool);
    if (!is_loss(call.routing))
        expect_writes(routed, sizeof(real) * call.batch * plan.wires * call.columns());
    if constexpr (P::may_be_narrow)
        if (plan.is_narrow() && routes_identity(call.routing))
            return narrow_forward(call, values, routed, kept, pool);
    if (call.batch >= many_samples) return forward_samples(call, values, routed, pool);
    return forward_chunks(call, values, routed, pool);
}

// Slots come in whole registers.
template <class real>
void add_to(real *to, const real *from, int64_t slots) {
    for (int64_t c = 0; c < slots; c += lanes<real>) store(to + c, load(to + c) + load(from + c));
}

// The gradients of a sample's weights are sums over its chunks of columns, added in order. A thread
// that begins with a sample's first chunk adds the following ones to it. A thread that begins
// inside a sample leaves its chunks apart, to be added when all threads have ended.
template <class real>
struct ChunkSums {
    // Where the sums of a chunk begin at zero. `spare` is the thread's own memory.
    real *begin(int64_t task, int64_t first_task, real *spare) const {
        const bool is_apart = task - task % chunks < first_task;
        apart[task] = is_apart;
        real *sums = is_apart || task % chunks == 0 ? of(task) : spare;
        memset(sums, 0, sizeof(real) * slots);
        return sums;
    }
    void end(int64_t task, const real *sums) const {
        if (sums != of(task)) add(task, sums);
    }
    // Adds the chunks of a sample that lie apart.
    void finish(int64_t sample) const {
        for (int64_t task = sample * chunks + 1; task < (sample + 1) * chunks; ++task)
            if (apart[task]) add(task, of(task));
    }
    void add(int64_t task, const real *sums) const {
        add_to(of(task - task % chunks), sums, slots);
    }
    real *of(int64_t task) const { return weight_grads + task * slots; }
    real *weight_grads;
    bool *apart;
    int64_t chunks, slots;
};

template <class P, class real>
Status backward_samples(const Call<P, real> &call, const real *values_grad, const real *routed_grad,
                        real *x_grad, real *steepness_grad, real *payload_grad, real *losses,
                        ParallelFor pool) {
    using Scratch = RoutingMemory<P, real>;
    using Relaxation = typename P::Relaxation;
    const P &plan = call.plan;
    const int64_t work = 4 * call.chunks() * call.mixes_per_chunk();
    return parallel_samples(call, work, Scratch::bytes_backward(plan),
                            sizeof(real) * (weights_per_sample(plan) + plan.slots), pool,
                            [&](int64_t first, int64_t count, const Memory &memory) {
        real *weights = memory.get<real>(),
             *weight_grads = weights + count * weights_per_sample(plan);
        const auto routing =
            Scratch::backward(plan, weights + count * (weights_per_sample(plan) + plan.slots));
        // x_grad takes the values, which are not needed
        const Status status =
            keys_forward(call, first, count, x_grad + first * plan.wires, weights, nullptr);
        if (status != ok) return status;
        memset(weight_grads, 0, sizeof(real) * count * plan.slots);
        for (int64_t b = 0; b < count; ++b) {
            const Weights<real> w =
                weights_at<Relaxation>(weights + b * weights_per_sample(plan), plan.slots);
            real *total = weight_grads + b * plan.slots;
            double loss = 0;
            for (int64_t chunk = 0; chunk < call.chunks(); ++chunk) {
                real *sums = chunk ? routing.sums : total;
                if (chunk) memset(sums, 0, sizeof(real) * plan.slots);
                loss += route_chunk_back(call, first + b, chunk, w, routed_grad, payload_grad,
                                         losses, sums, routing);
                if (chunk) add_to(total, sums, plan.slots);
            }
            if (losses) losses[first + b] = real(loss);
        }
        return keys_backward(call, first, count, values_grad, weights, weight_grads, plan.slots,
                             x_grad, steepness_grad, nullptr);
    });
}

template <class P, class real>
Status backward_chunks(const Call<P, real> &call, const real *values_grad, const real *routed_grad,
                       real *x_grad, real *steepness_grad, real *payload_grad, real *losses,
                       ParallelFor pool) {
    using Scratch = RoutingMemory<P, real>;
    using Relaxation = typename P::Relaxation;
    const P &plan = call.plan;
    const int64_t chunks = call.chunks();
    const int64_t sums = (chunks > 0 ? chunks : 1) * plan.slots;
    const int64_t group =
        group_size<real>(call.batch, (weights_per_sample(plan) + sums) * sizeof(real));
    const Memory weight_memory(group * weights_per_sample(plan) * sizeof(real)),
        sum_memory(group * sums * sizeof(real));
    const Memory loss_memory(group * chunks * (sizeof(double) + sizeof(bool)));
    if (!weight_memory.start || !sum_memory.start || !loss_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>(), *weight_grads = sum_memory.get<real>();
    double *chunk_losses = loss_memory.get<double>();
    const ChunkSums<real> sums_of = {
        weight_grads, reinterpret_cast<bool *>(chunk_losses + group * chunks), chunks, plan.slots};
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        // x_grad takes the values, which are not needed
        Status status =
            keys_forward(call, first, count, x_grad + first * plan.wires, weights, pool);
        if (status != ok) return status;
        status = parallel_ranges(pool, count * chunks, grain_of(4 * call.mixes_per_chunk()),
                                 Scratch::bytes_backward(plan),
                                 [&](int64_t first_task, int64_t end_task, const Memory &memory) {
            const auto routing = Scratch::backward(plan, memory.get<Vec<real>>());
            for (int64_t task = first_task; task < end_task; ++task) {
                const int64_t b = task / chunks;
                const Weights<real> w =
                    weights_at<Relaxation>(weights + b * weights_per_sample(plan), plan.slots);
                real *weight_grad = sums_of.begin(task, first_task, routing.sums);
                chunk_losses[task] =
                    route_chunk_back(call, first + b, task % chunks, w, routed_grad, payload_grad,
                                     losses, weight_grad, routing);
                sums_of.end(task, weight_grad);
            }
            return ok;
        });
        if (status != ok) return status;
        for (int64_t b = 0; losses && b < count; ++b)
            losses[first + b] = sum_of<real>(chunk_losses + b * chunks, chunks);
        status = parallel(pool, count, grain_of(chunks * plan.comparators), 0,
                          [&](int64_t b, const Memory &) {
            if (!chunks) memset(weight_grads + b * sums, 0, sizeof(real) * plan.slots);
            sums_of.finish(b);
        });
        if (status == ok)
            status = keys_backward(call, first, count, values_grad, weights, weight_grads, sums,
                                   x_grad, steepness_grad, pool);
        if (status != ok) return status;
    }
    return ok;
}

// values_grad, routed_grad: as the outputs of forward, or null for zero. x_grad: (batch, wires).
// steepness_grad: (batch), or null. payload_grad: as the payload, or null; of a loss, the
// gradient of its shares.
// A loss has no routed_grad. Each sample's loss goes to `losses`, (batch), and the gradients are
// its gradients. kept: what forward kept in a call with the same arguments, or null.
template <class P, class real>
Status backward(P &plan, const Call<P, real> &call, const real *values_grad,
                const real *routed_grad, real *x_grad, real *steepness_grad, real *payload_grad,
                real *losses, real *kept, ParallelFor pool) {
    const Status ready = make_ready(plan, call);
    if (ready != ok) return ready;
    if (!routed_grad && !losses)
        return values_backward(call, values_grad, x_grad, steepness_grad, pool);
    if constexpr (P::may_be_narrow)
        if (plan.is_narrow() && routes_identity(call.routing))
            return narrow_backward(call, values_grad, routed_grad, x_grad, steepness_grad,
                                   payload_grad, losses, kept, pool);
    if (call.batch >= many_samples)
        return backward_samples(call, values_grad, routed_grad, x_grad, steepness_grad,
                                payload_grad, losses, pool);
    return backward_chunks(call, values_grad, routed_grad, x_grad, steepness_grad, payload_grad,
                           losses, pool);
}

}  // namespace nsc
