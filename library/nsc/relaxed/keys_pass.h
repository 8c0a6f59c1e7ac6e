// The keys pass: from x to weights and values, and back.
//
// A comparator's sigmoid is a chain of about 30 operations, and each waits for the one before. So
// up to eight comparators that share no wire, a bundle, go through the stages of the chain
// together. Roots are polynomials: two square roots and a division take longer, in wide registers
// most of all. A group of samples with infinite, NaN or huge values is recognised once, from its
// inputs, and takes a path of its own.
//
// For gradients of the values alone a comparator leaves one number, its share: two gradients move
// towards each other by this share of their difference. So the way back takes three operations a
// comparator.
#pragma once

#include <nsc/relaxed/call.h>
#include <nsc/relaxed/layers.h>
#include <nsc/relaxed/samples.h>

namespace nsc {

// Aim for the bytes of the weights, and their gradients, of a group of samples.
constexpr int64_t scratch_bytes = 32 << 20;

// Samples whose weights are held at a time: as many as fit the aim, at least one.
template <class real>
inline int64_t group_size(int64_t batch, int64_t bytes_per_sample) {
    const int64_t fits = scratch_bytes / (bytes_per_sample + 1);
    const int64_t group = fits < 1             ? 1
                          : fits < lanes<real> ? fits
                                               : fits / lanes<real> * lanes<real>;
    return group < batch ? group : batch;
}

// Samples that go through the keys pass together, a lane each, or one sample.
template <class P, class real>
struct KeysTask {
    KeysTask(const Call<P, real> &call, int64_t group_first, int64_t group_count, int64_t task)
        : at_once(count_at_once(call.plan, group_count)),
          place(task * at_once),
          first(group_first + place),
          count(group_count - place < at_once ? group_count - place : at_once) {
        for (int64_t k = 0; k < lanes<real>; ++k)
            steepness[k] = call.steepness_of(k < count ? first + k : first);
    }
    // A lane per sample, for a few samples, takes less time than their comparators one sample after
    // another; but half of a register's samples are enough for several threads, unless one thread
    // takes them all.
    static int64_t count_at_once(const P &plan, int64_t group) {
        return group < (plan.comparators < 512 ? 2 : lanes<real> / 2) ? 1 : lanes<real>;
    }
    static int64_t count_tasks(const P &plan, int64_t group) {
        return (group + count_at_once(plan, group) - 1) / count_at_once(plan, group);
    }
    bool lanes_are_samples() const { return at_once > 1; }
    int64_t at_once, place, first, count;  // place in the group, first sample, samples
    Vec<real> steepness;
};

// Runs the keys pass on samples first ... first + count - 1: their values go to `values`, at the
// place of sample `first`.
template <class P, class real>
Status values_forward(const Call<P, real> &call, int64_t first, int64_t count, real *values,
                      ParallelFor pool) {
    using Task = KeysTask<P, real>;
    const P &plan = call.plan;
    const int64_t bytes = Task::count_at_once(plan, count) > 1 ? sizeof(Vec<real>) * plan.wires : 0;
    return parallel(pool, Task::count_tasks(plan, count), grain_of(8 * plan.comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const Task task(call, first, count, number);
        const real *x = call.x + task.first * plan.wires;
        real *to = values + task.place * plan.wires;
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * plan.wires);
            compare_layers(plan, to, task.steepness[0], Nothing());
            return;
        }
        Vec<real> *block = memory.get<Vec<real>>();
        load_samples(plan, x, task.count, block);
        compare_block<real>(plan, block, task.steepness, Nothing());
        store_samples(plan, to, task.count, block);
    });
}

// The same, and their weights go to `weights`, unless it is null.
template <class P, class real>
Status keys_forward(const Call<P, real> &call, int64_t first, int64_t count, real *values,
                    real *weights, ParallelFor pool) {
    if (!weights) return values_forward(call, first, count, values, pool);
    using Row = Vec<real>;
    using Task = KeysTask<P, real>;
    using Relaxation = typename P::Relaxation;
    const P &plan = call.plan;
    const bool by_lane = Task::count_at_once(plan, count) > 1;
    const int64_t bytes =
        by_lane ? sizeof(Row) * (plan.wires + arrays<Relaxation> * plan.longest_codelet) : 0;
    return parallel(pool, Task::count_tasks(plan, count), grain_of(8 * plan.comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const Task task(call, first, count, number);
        const real *x = call.x + task.first * plan.wires;
        real *to = values + task.place * plan.wires,
             *kept = weights + task.place * weights_per_sample(plan);
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * plan.wires);
            compare_layers_to_slots(plan, to, task.steepness[0],
                                    weights_at<Relaxation>(kept, plan.slots));
            return;
        }
        Row *block = memory.get<Row>(), *tile = block + plan.wires;
        load_samples(plan, x, task.count, block);
        const bool extreme = are_extreme<Relaxation, real>(block, plan.wires, task.steepness);
        for (int64_t c = 0; c < plan.codelet_count; ++c) {
            const Codelet codelet = plan.codelets[c];
            const Weights<Row> w = weights_at<Relaxation>(tile, plan.longest_codelet);
            if (extreme)
                compare_codelet<real, true>(plan, c, block, task.steepness, w);
            else
                compare_codelet<real, false>(plan, c, block, task.steepness, w);
            for (int64_t a = 0; a < arrays<Relaxation>; ++a)
                scatter_slots(kept + a * plan.slots + codelet.slot, weights_per_sample(plan),
                              task.count, plan.shapes[codelet.shape].comparators,
                              tile + a * plan.longest_codelet);
        }
        store_samples(plan, to, task.count, block);
    });
}

// Takes gradients of the values, null for zero, and of the weights to gradients of x and the
// steepness. `weights` come from keys_forward; weight_grads has `stride` reals per sample.
template <class P, class real>
Status keys_backward(const Call<P, real> &call, int64_t first, int64_t count,
                     const real *values_grad, real *weights, const real *weight_grads,
                     int64_t stride, real *x_grad, real *steepness_grad, ParallelFor pool) {
    using Row = Vec<real>;
    using Task = KeysTask<P, real>;
    using Relaxation = typename P::Relaxation;
    const P &plan = call.plan;
    const bool by_lane = Task::count_at_once(plan, count) > 1;
    const int64_t bytes = by_lane ? sizeof(Row) * (plan.wires + slot_alignment +
                                                   (arrays<Relaxation> + 1) * plan.longest_codelet)
                                  : 0;
    return parallel(pool, Task::count_tasks(plan, count), grain_of(8 * plan.comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const Task task(call, first, count, number);
        real *to = x_grad + task.first * plan.wires,
             *kept = weights + task.place * weights_per_sample(plan);
        const real *from = weight_grads + task.place * stride,
                   *of_values = values_grad ? values_grad + task.first * plan.wires : nullptr;
        if (!task.lanes_are_samples()) {
            copy_or_clear(to, of_values, plan.wires);
            const real sum = compare_layers_backward(plan, to, from, task.steepness[0],
                                                     weights_at<Relaxation>(kept, plan.slots));
            if (steepness_grad) steepness_grad[task.first] = sum;
            return;
        }
        Row *block = memory.get<Row>(), *parts = block + plan.wires, *into = parts + slot_alignment,
            *tile = into + plan.longest_codelet;
        load_gradient(plan, of_values, task.count, block);
        memset(parts, 0, sizeof(Row) * slot_alignment);
        for (int64_t c = plan.codelet_count - 1; c >= 0; --c) {
            const Codelet codelet = plan.codelets[c];
            const int64_t slot_count = plan.shapes[codelet.shape].comparators;
            gather_slots(from + codelet.slot, stride, task.count, slot_count, into);
            for (int64_t a = 0; a < arrays<Relaxation>; ++a)
                gather_slots(kept + a * plan.slots + codelet.slot, weights_per_sample(plan),
                             task.count, slot_count, tile + a * plan.longest_codelet);
            compare_codelet_backward<real>(plan, c, block, into, task.steepness,
                                           weights_at<Relaxation>(tile, plan.longest_codelet),
                                           steepness_grad ? parts : nullptr);
        }
        store_samples(plan, to, task.count, block);
        if (steepness_grad) store(steepness_grad + task.first, sum_of_parts(parts), task.count);
    });
}

// Both at once, for gradients of the values alone.
template <class P, class real>
Status values_backward(const Call<P, real> &call, const real *values_grad, real *x_grad,
                       real *steepness_grad, ParallelFor pool) {
    using Row = Vec<real>;
    using Task = KeysTask<P, real>;
    const P &plan = call.plan;
    const bool by_lane = Task::count_at_once(plan, call.batch) > 1;
    const int64_t rows = by_lane ? plan.slots : layer_rows<real>(plan),
                  kept_rows = (steepness_grad ? 2 : 1) * rows;
    const int64_t others = by_lane          ? sizeof(Row) * (plan.wires + slot_alignment)
                           : steepness_grad ? 2 * sizeof(real) * plan.slots
                                            : 0;
    return parallel(pool, Task::count_tasks(plan, call.batch), grain_of(16 * plan.comparators),
                    sizeof(Row) * kept_rows + others, [&](int64_t number, const Memory &memory) {
        const Task task(call, 0, call.batch, number);
        const real *x = call.x + task.first * plan.wires,
                   *from = values_grad ? values_grad + task.first * plan.wires : nullptr;
        real *to = x_grad + task.first * plan.wires;
        Row *held = memory.get<Row>(), *parts = held + kept_rows, *block = parts + slot_alignment;
        const Derivatives<Row> kept = {held, steepness_grad ? held + rows : nullptr};
        if (!task.lanes_are_samples()) {
            memcpy(to, x,
                   sizeof(real) * plan.wires);  // x_grad takes the values, which are not needed
            compare_layers(plan, to, task.steepness[0], kept);
            copy_or_clear(to, from, plan.wires);
            const real sum = derive_layers_backward<real>(
                plan, to, kept, steepness_grad ? singly<real>(parts) : nullptr);
            if (steepness_grad) steepness_grad[task.first] = sum;
            return;
        }
        load_samples(plan, x, task.count, block);
        compare_block<real>(plan, block, task.steepness, kept);
        load_gradient(plan, from, task.count, block);
        memset(parts, 0, sizeof(Row) * slot_alignment);
        derive_backward<real>(plan, block, kept, steepness_grad ? parts : nullptr);
        if (steepness_grad) store(steepness_grad + task.first, sum_of_parts(parts), task.count);
        store_samples(plan, to, task.count, block);
    });
}

}  // namespace nsc
