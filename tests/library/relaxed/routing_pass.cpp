// The routing pass: every routing of a call, forward and backward, against the definitions.
#include "calls.h"

#include <nsc/relaxed/routing_pass.h>

using namespace nsc;

template <class Network, class Relaxed = Logistic>
static Plan<Network, Relaxed> &prepared() {
    static Plan<Network, Relaxed> plan = {};
    EXPECT(plan.prepare() == ok);
    return plan;
}

template <class Network, class real>
static void expect_calls(Routing routing, int64_t batch, ParallelFor pool) {
    auto &plan = prepared<Network>();
    using Of = Operands<Network, real>;
    static real values[Of::most * Of::wires], x_grad[Of::most * Of::wires],
        steepness_grad[Of::most], losses[Of::most], routed[Of::most * Of::wires * Of::most_columns],
        payload_grad[Of::most * Of::wires * Of::most_columns];
    Of operands(routing, batch, Of::most_columns);
    const auto call = operands.call(plan);
    // P and losses of few wires take the narrow pass, which keeps weights for the way back.
    const bool is_narrow = plan.is_narrow() && routes_identity(routing);
    const int64_t count = count_kept<real>(plan, routing, batch);
    EXPECT(count == (is_narrow ? narrow_kept<real>(plan, batch) : 0));
    const Memory memory(count * int64_t(sizeof(real)));
    real *const kept = count ? memory.get<real>() : nullptr;
    EXPECT(forward(plan, call, values, routed, kept, pool) == ok);
    operands.expect_forward(values, routed);
    const bool loss = is_loss(routing), has_gradient = has_columns(routing) || has_shares(routing);
    const real *routed_grad = loss || routing == none ? nullptr : operands.routed_grad;
    EXPECT(backward(plan, call, operands.values_grad, routed_grad, x_grad, steepness_grad,
                    has_gradient ? payload_grad : nullptr, loss ? losses : nullptr, kept,
                    pool) == ok);
    operands.expect_backward(x_grad, steepness_grad, has_gradient ? payload_grad : nullptr,
                             loss ? losses : nullptr);
}

constexpr Routing routings[] = {none,
                                permutation,
                                route,
                                transposed,
                                rows,
                                cross_entropy_routing,
                                cross_entropy_of_intervals,
                                cross_entropy_of_shares,
                                binary_cross_entropy_routing,
                                binary_cross_entropy_of_intervals,
                                binary_cross_entropy_of_shares};

TEST(every_routing_of_few_samples_and_of_many) {
    for (Routing routing : routings)
        for (int64_t batch : {int64_t(1), int64_t(3), many_samples + 1}) {
            expect_calls<Bitonic, double>(routing, batch, nullptr);
            expect_calls<Wide<Braid>, float>(routing, batch, last_first);
        }
}

TEST(wrong_operands_write_nothing) {
    auto &plan = prepared<Bitonic>();
    Operands<Bitonic, double> operands(cross_entropy_routing, 2);
    operands.steepness[1] = 0;
    double values[8] = {9}, losses[2] = {9};
    EXPECT(forward(plan, operands.call(plan), values, losses, (double *)nullptr, nullptr) ==
           bad_steepness);
    operands.steepness[1] = 1, operands.ranks[4] = operands.ranks[5];
    EXPECT(forward(plan, operands.call(plan), values, losses, (double *)nullptr, nullptr) ==
           bad_target);
    EXPECT(values[0] == 9 && losses[0] == 9);
}

// So many columns that they are cut into chunks, which a pool takes apart.
TEST(chunks_of_columns_have_the_same_bits_in_any_pool) {
    constexpr int64_t columns = 700 * lanes<double> + 1, batch = 2, count = batch * 4 * columns;
    auto &plan = prepared<Bitonic>();
    static double payload[count], routed[2][count], payload_grad[2][count];
    double values[8], x_grad[2][8], x[8];
    const double steepness[] = {2, 3};
    for (int64_t i = 0; i < count; ++i) payload[i] = number(i);
    for (int i = 0; i < 8; ++i) x[i] = number(i);
    const Call<Plan<Bitonic, Logistic>, double> call = {
        plan, route, batch, x, steepness, 1, payload, 4 * columns, columns};
    EXPECT(call.chunks() > 1);
    for (int i = 0; i < 2; ++i) {
        const ParallelFor pool = i ? last_first : ParallelFor(nullptr);
        EXPECT(forward(plan, call, values, routed[i], (double *)nullptr, pool) == ok);
        EXPECT(backward(plan, call, (double *)nullptr, payload, x_grad[i], (double *)nullptr,
                        payload_grad[i], (double *)nullptr, (double *)nullptr, pool) == ok);
    }
    EXPECT(same_bits(routed[0], routed[1]) && same_bits(payload_grad[0], payload_grad[1]));
    EXPECT(same_bits(x_grad[0], x_grad[1]));
    for (int64_t b = 0; b < batch; ++b) {
        double one[4];
        memcpy(one, x + 4 * b, sizeof one);
        const double *of = payload + b * 4 * columns;
        const auto total = [&] {
            const Plain<Bitonic> plain(one, steepness[b]);
            double sum = 0;
            for (int64_t row = 0; row < 4; ++row)
                for (int64_t i = 0; i < 4; ++i)
                    for (int64_t c = 0; c < columns; ++c)
                        sum += of[row * columns + c] * plain.P[row][i] * of[i * columns + c];
            return sum;
        };
        for (int wire = 0; wire < 4; ++wire)
            EXPECT_NEAR(x_grad[0][4 * b + wire], derivative(one[wire], total), 1e-4);
    }
}

// So many comparators that the differences of a group are kept for a segment at a time.
struct Long : AnyNetwork {
    static constexpr int64_t turns = 5 * least_kept_bytes / 128 / 8;
    Long() : AnyNetwork(as_variables(Bitonic())) {
        for (int64_t i = 0; i < turns; ++i) repeated[i] = {0, 0, 0, int32_t(16 * i), 1};
        comparators = 4 * turns, layers = 2 * turns, slots = 16 * turns;
        codelet_count = butterfly_count = turns, narrow_count = 0, codelets = repeated;
    }
    Codelet repeated[turns];
};

static void expect_segments(bool backwards) {
    static const Long network;
    static Plan<AnyNetwork, Logistic> plan = {};
    static_cast<AnyNetwork &>(plan) = network;
    EXPECT(plan.prepare() == ok);
    EXPECT(most_segments(plan) > 2);
    static float weights[3 * 16 * Long::turns], weight_grads[2][16 * Long::turns];
    memset(weight_grads, 0, sizeof weight_grads);
    for (int64_t i = 0; i < plan.slots; ++i) {
        weights[i] = float(0.9 + number(i) / 10);
        weights[plan.slots + i] = 1 - weights[i];
    }
    using Scratch = RoutingMemory<Plan<AnyNetwork, Logistic>, float>;
    const Memory memory(Scratch::bytes_backward(plan)),
        differences(sizeof(Vec<float>) * group_blocks * plan.comparators);
    const Scratch scratch = Scratch::backward(plan, memory.start + 1);
    memset(scratch.on, (1 << group_blocks) - 1, plan.butterfly_count);
    const auto fill = [](Vec<float> *rows) {
        for (int64_t i = 0; i < 4 * group_blocks * lanes<float>; ++i)
            reinterpret_cast<float *>(rows)[i] = float(number(i));
    };
    const Steps steps = {backwards ? plan.mirrored_butterflies : plan.butterflies, scratch.on, 0,
                         plan.butterfly_count};
    int ended = 0;
    route_group_both_ways(plan, steps, weights_at<Logistic>(weights, plan.slots), weight_grads[0],
                          scratch, [&] { fill(scratch.rows); },
                          [&] { ++ended, fill(scratch.grads); });
    // The same in one segment.
    Vec<float> group[4 * group_blocks], grads[4 * group_blocks];
    fill(group), fill(grads);
    const Vec<float> *end =
        route_group<true, float>(plan, group, steps, weights, differences.get<Vec<float>>());
    route_group_back<float>(plan, grads, steps, weights, end, weight_grads[1]);
    EXPECT(ended == 1 && same_bits(weight_grads[0], weight_grads[1]));
    EXPECT(memcmp(scratch.grads, grads, sizeof grads) == 0);
}

TEST(segments_give_the_bits_of_one) {
    expect_segments(false);
    expect_segments(true);
}

TEST(sums_of_chunks_are_added_in_their_order_wherever_a_thread_begins) {
    constexpr int64_t chunks = 4, slots = Bitonic::slots;
    // So many columns that they are cut into 4 chunks.
    constexpr int64_t columns = (chunks - 1) * chunk_mixes / Bitonic::comparators * lanes<double>;
    const Call<Plan<Bitonic, Logistic>, double> call = {
        prepared<Bitonic>(), route, 2, nullptr, nullptr, 0, nullptr, 0, columns + lanes<double>};
    EXPECT(call.chunks() == chunks);
    for (int64_t begin = 0; begin < 8; ++begin) {
        double weight_grads[8 * slots], spare[slots];
        bool separate[8];
        const ChunkSums<Plan<Bitonic, Logistic>, double> sums = {call, nullptr, weight_grads,
                                                                 separate};
        const auto take = [&](int64_t first, int64_t end) {
            for (int64_t task = first; task < end; ++task) {
                const Sums<double> to = sums.begin(task, first, spare);
                EXPECT(to.slots[0] == 0 && to.slots[1] == 0);
                to.slots[0] += double(task + 1), to.slots[1] += 100;
                sums.end(task, to);
            }
        };
        take(begin, 8), take(0, begin);
        sums.finish(0, nullptr), sums.finish(1, nullptr);
        EXPECT(weight_grads[0] == 1 + 2 + 3 + 4 && weight_grads[1] == 400);
        EXPECT(weight_grads[4 * slots] == 5 + 6 + 7 + 8 && weight_grads[4 * slots + 1] == 400);
    }
    const double parts[] = {1, 2, 4};
    EXPECT(sum_of<float>(parts, 3) == 7);
}
