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
    EXPECT(forward(plan, call, values, routed, pool) == ok);
    operands.expect_forward(values, routed);
    const bool loss = is_loss(routing), has_gradient = has_columns(routing) || has_shares(routing);
    const real *routed_grad = loss || routing == none ? nullptr : operands.routed_grad;
    EXPECT(backward(plan, call, operands.values_grad, routed_grad, x_grad, steepness_grad,
                    has_gradient ? payload_grad : nullptr, loss ? losses : nullptr, pool) == ok);
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
            expect_calls<Braid, float>(routing, batch, last_first);
        }
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
        EXPECT(forward(plan, call, values, routed[i], pool) == ok);
        EXPECT(backward(plan, call, (double *)nullptr, payload, x_grad[i], (double *)nullptr,
                        payload_grad[i], (double *)nullptr, pool) == ok);
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
