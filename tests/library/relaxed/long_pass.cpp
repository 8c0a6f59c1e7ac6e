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
            expect_calls<Wide<Braid>, float>(routing, batch, last_first);
        }
}

TEST(layers_are_cut_into_segments_whose_parts_have_rows_of_their_own) {
    struct Sizes {
        int64_t wires, layers;
    };
    for (const Sizes of : {Sizes{4, 3}, Sizes{8192, 91}, Sizes{65536, 136}, Sizes{8200, 8200}}) {
        const Segments<Sizes, float> segments(of);
        EXPECT(segments.begin(0) == 0 && segments.begin(segments.count) == of.layers);
        for (int64_t s = 0; s < segments.count; ++s)
            EXPECT((segments.begin(s + 1) - segments.begin(s)) * segments.rows_of_layer() <=
                   segments.rows());
        // A register more for each range but the first, which need not end with a full one.
        EXPECT(segments.rows_of_part() * lanes<float> >= (of.wires / parts + 1) / 2);
        EXPECT(segments.rows_of_layer() * lanes<float> >= of.wires / 2);
    }
}

TEST(columns_are_split_and_joined_again) {
    const double rows[] = {1, 2, 3, 4, 5, 6};
    double columns[6], again[6];
    split_columns(rows, 3, 2, columns);
    for (int i = 0; i < 6; ++i) EXPECT(columns[i] == (i < 3 ? 2 * i + 1 : 2 * (i - 3) + 2));
    join_columns(columns, 3, 2, 0.5, again);
    for (int i = 0; i < 6; ++i) EXPECT(again[i] == rows[i] / 2);
}
