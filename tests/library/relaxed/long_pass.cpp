// The long pass: the values and a few columns of a sample, against the definitions.
#include "calls.h"

#include <nsc/relaxed/long_pass.h>

using namespace nsc;

// A plan with the tables of a long network, whatever its wires.
template <class Network, class Relaxed = Logistic>
static Plan<Network, Relaxed> &prepared() {
    static Plan<Network, Relaxed> plan = {};
    EXPECT(plan.prepare() == ok);
    EXPECT(allot(plan.range_end, plan.layers * ranges) && allot(plan.joins, plan.layers));
    EXPECT(find_ranges(plan) == ok);
    return plan;
}

template <class Network, class real>
static void expect_calls(Routing routing, int64_t batch, ParallelFor pool) {
    auto &plan = prepared<Network>();
    using Of = Operands<Network, real>;
    static real values[Of::most * Of::wires], x_grad[Of::most * Of::wires],
        steepness_grad[Of::most], routed[Of::most * Of::wires * Of::most_columns],
        payload_grad[Of::most * Of::wires * Of::most_columns];
    Of operands(routing, batch, Of::most_columns);
    const auto call = operands.call(plan);
    EXPECT(long_forward(call, values, routed, pool) == ok);
    operands.expect_forward(values, routed);
    real *const of_payload = has_columns(routing) ? payload_grad : nullptr;
    EXPECT(long_backward(call, operands.values_grad,
                         routing == none ? nullptr : operands.routed_grad, x_grad, steepness_grad,
                         of_payload, pool) == ok);
    operands.expect_backward(x_grad, steepness_grad, of_payload, nullptr);
}

TEST(every_routing_of_few_samples_and_of_many) {
    for (Routing routing : {none, route, transposed, rows})
        for (int64_t batch : {int64_t(1), int64_t(3), many_samples + 1}) {
            expect_calls<Bitonic, double>(routing, batch, nullptr);
            expect_calls<Braid, float>(routing, batch, last_first);
        }
}
