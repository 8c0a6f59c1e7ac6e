// The keys pass: values, weights and gradients of a batch, against plain loops in double.
#include "calls.h"

#include <nsc/relaxed/keys_pass.h>

using namespace nsc;

template <class Network>
static Plan<Network, Logistic> &prepared() {
    static Plan<Network, Logistic> plan = {};
    EXPECT(plan.prepare() == ok && plan.prepare_bundles() == ok);
    return plan;
}

TEST(groups_of_samples_fit_the_aim) {
    EXPECT(group_size<float>(100, 1) == 100);
    EXPECT(group_size<float>(100, 2 * scratch_bytes) == 1);
    EXPECT(group_size<float>(1 << 20, scratch_bytes / 50) == 50 / lanes<float> * lanes<float>);
    EXPECT(group_size<double>(2, scratch_bytes / 50) == 2);
}

TEST(tasks_cover_a_group) {
    const auto &plan = prepared<Bitonic>();
    using OfPlan = Plan<Bitonic, Logistic>;
    Operands<Bitonic, float> operands(none, 10);
    const auto call = operands.call(plan);
    using Task = KeysTask<OfPlan, float, 2>;
    EXPECT(Task::count_at_once(plan, 1) == 1 && Task::count_at_once(plan, 2) == 2 * lanes<float>);
    for (int64_t count = 1; count < 9; ++count) {
        int64_t next = 0;
        for (int64_t number = 0; number < Task::count_tasks(plan, count); ++number) {
            const Task task(call, 1, count, number);
            EXPECT(task.place == next && task.first == 1 + next);
            int64_t in_blocks = 0;
            for (int64_t block = 0; block < task.blocks; ++block)
                for (int64_t k = 0; k < task.in_block(block); ++k, ++in_blocks)
                    EXPECT(task.steepness[block][k] ==
                           call.steepness_of(task.first + task.before(block) + k));
            EXPECT(in_blocks == task.count);
            next += task.count;
        }
        EXPECT(next == count);
    }
}

template <class Network, class real>
static void expect_passes(int64_t batch, ParallelFor pool) {
    const auto &plan = prepared<Network>();
    constexpr int most = Operands<Network, real>::most, wires = Network::wires,
                  slots = Network::slots;
    Operands<Network, real> operands(none, batch);
    const auto call = operands.call(plan);
    real values[most * wires], others[most * wires], weights[most * 3 * slots];
    EXPECT(keys_forward(call, 0, batch, values, weights, pool) == ok);
    EXPECT(keys_forward(call, 0, batch, others, (real *)nullptr, pool) == ok);
    EXPECT(memcmp(values, others, sizeof(real) * batch * wires) == 0);
    operands.expect_forward(values, nullptr);
    for (int64_t b = 0; b < batch; ++b) {
        operands.take(b);
        const Plain<Network> plain(operands.one, operands.steep);
        const Weights<real> w = weights_at<Logistic>(weights + b * 3 * slots, slots);
        for (const Exchange &each : Network::exchanges)
            EXPECT_NEAR(w.forward.keep[each.slot], plain.keep[each.slot], 9 * nearly<real>);
    }
    // Gradients of the values, by shares and by weights whose own gradients are 0.
    real x_grad[most * wires], again[most * wires], bare[most * wires], steepness_grad[most],
        steepness_again[most], nothing[most * slots] = {};
    EXPECT(values_backward(call, operands.values_grad, x_grad, steepness_grad, pool) == ok);
    EXPECT(values_backward(call, operands.values_grad, bare, (real *)nullptr, pool) == ok);
    EXPECT(memcmp(x_grad, bare, sizeof(real) * batch * wires) == 0);
    EXPECT(keys_backward(call, 0, batch, operands.values_grad, weights, nothing, slots, again,
                         steepness_again, pool) == ok);
    operands.expect_backward(x_grad, steepness_grad, nullptr, nullptr);
    operands.expect_backward(again, steepness_again, nullptr, nullptr);
}

TEST(a_batch_of_any_size_is_run_as_each_of_its_samples) {
    for (const ParallelFor pool : {ParallelFor(nullptr), ParallelFor(last_first)})
        for (int64_t batch : {1, 2, 5, 10}) {
            expect_passes<Bitonic, double>(batch, pool);
            expect_passes<Braid, float>(batch, pool);
        }
}

TEST(a_range_of_samples_goes_to_its_own_place) {
    const auto &plan = prepared<Bitonic>();
    Operands<Bitonic, float> operands(none, 10);
    const auto call = operands.call(plan);
    float all_values[40], some[12], weights[10 * 3 * Bitonic::slots];
    keys_forward(call, 0, 10, all_values, (float *)nullptr, nullptr);
    for (float *kept : {(float *)nullptr, weights}) {
        EXPECT(keys_forward(call, 4, 3, some, kept, nullptr) == ok);
        EXPECT(memcmp(some, all_values + 4 * 4, sizeof some) == 0);
    }
}

// The gradient of one sample's weight keep in slot 2 alone, beside samples without any.
TEST(gradients_of_weights_reach_their_own_sample) {
    const auto &plan = prepared<Bitonic>();
    Operands<Bitonic, double> operands(none, 5, 0, false);
    const auto call = operands.call(plan);
    constexpr int64_t stride = Bitonic::slots + 16;
    double values[20], weights[5 * 3 * Bitonic::slots], x_grad[20], of_steepness[5],
        of_weights[5 * stride] = {};
    of_weights[3 * stride + 2] = 1;
    keys_forward(call, 0, 5, values, weights, nullptr);
    EXPECT(keys_backward(call, 0, 5, (double *)nullptr, weights, of_weights, stride, x_grad,
                         of_steepness, nullptr) == ok);
    for (int b = 0; b < 5; ++b) {
        operands.take(b);
        const auto keep = [&] { return Plain<Bitonic>(operands.one, operands.steep).keep[2]; };
        for (int wire = 0; wire < 4; ++wire)
            EXPECT_NEAR(x_grad[4 * b + wire], b == 3 ? derivative(operands.one[wire], keep) : 0,
                        1e-8);
        EXPECT_NEAR(of_steepness[b], b == 3 ? derivative(operands.steep, keep) : 0, 1e-8);
    }
}

TEST(infinite_samples_do_not_change_their_neighbours) {
    const auto &plan = prepared<Bitonic>();
    Operands<Bitonic, float> operands(none, 6);
    const auto call = operands.call(plan);
    float before[24], after[24];
    keys_forward(call, 0, 6, before, (float *)nullptr, nullptr);
    operands.x[4 * 2 + 1] = INFINITY, operands.x[4 * 2 + 3] = -INFINITY;
    keys_forward(call, 0, 6, after, (float *)nullptr, nullptr);
    for (int i = 0; i < 24; ++i)
        if (i / 4 != 2) EXPECT(before[i] == after[i]);
    EXPECT(after[8] == -INFINITY && after[11] == INFINITY && after[9] <= after[10]);
}

TEST(two_blocks_go_together_where_they_fit_the_cache) {
    struct OfSlots {
        int64_t slots;
    };
    int64_t blocks = 0;
    const auto take = [&](auto most) { return blocks = decltype(most)::count, ok; };
    with_value_blocks<float>(OfSlots{cache_bytes / register_bytes / 2}, take);
    EXPECT(blocks == 2);
    with_value_blocks<float>(OfSlots{cache_bytes / register_bytes / 2 + 1}, take);
    EXPECT(blocks == 1);
    const float three[] = {1, 2, 3};
    float to[] = {9, 9, 9};
    copy_or_clear(to, three, 3);
    EXPECT(same_bits(to, three));
    copy_or_clear<float>(to, nullptr, 2);
    EXPECT(to[0] == 0 && to[1] == 0 && to[2] == 3);
}
