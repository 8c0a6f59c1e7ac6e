// The narrow pass: P of few wires and losses of it, forward and backward, against the definitions.
#include "calls.h"

#include <nsc/relaxed/narrow_pass.h>

using namespace nsc;

template <class Network, class Relaxed = Logistic>
static Plan<Network, Relaxed> &prepared() {
    static Plan<Network, Relaxed> plan = {};
    EXPECT(plan.prepare() == ok);
    return plan;
}

template <class Network, class real>
static void expect_pass(Routing routing, int64_t batch, bool of_values, ParallelFor pool) {
    const auto &plan = prepared<Network>();
    constexpr int most = Operands<Network, real>::most, wires = Network::wires;
    Operands<Network, real> operands(routing, batch, 0, of_values);
    const auto call = operands.call(plan);
    real values[most * wires], routed[most * wires * wires], others[most * wires * wires];
    real kept[(most + lanes<real> + 1) * 3 * Network::slots];
    EXPECT(narrow_kept<real>(plan, batch) * int64_t(sizeof(real)) <= int64_t(sizeof kept));
    EXPECT(narrow_forward(call, values, others, (real *)nullptr, pool) == ok);
    EXPECT(narrow_forward(call, values, routed, kept, pool) == ok);
    const int64_t results = is_loss(routing) ? batch : batch * wires * wires;
    EXPECT(memcmp(routed, others, sizeof(real) * results) == 0);
    operands.expect_forward(values, routed);
    // Backward with what was kept, and without.
    real x_grad[most * wires], again[most * wires], steepness_grad[most], losses[most];
    const real *values_grad = of_values ? operands.values_grad : nullptr;
    const bool loss = is_loss(routing);
    static real share_grad[most * (wires + 1) * wires];
    real *const of_shares = has_shares(routing) ? share_grad : nullptr;
    EXPECT(narrow_backward(call, values_grad, operands.routed_grad, x_grad, steepness_grad,
                           of_shares, loss ? losses : nullptr, kept, pool) == ok);
    EXPECT(narrow_backward(call, values_grad, operands.routed_grad, again, (real *)nullptr,
                           (real *)nullptr, (real *)nullptr, (real *)nullptr, pool) == ok);
    EXPECT(memcmp(x_grad, again, sizeof(real) * batch * wires) == 0);
    operands.expect_backward(x_grad, steepness_grad, of_shares, loss ? losses : nullptr);
    if (loss) EXPECT(memcmp(losses, routed, sizeof(real) * batch) == 0);
}

TEST(P_losses_and_their_gradients_are_those_of_the_definitions) {
    for (Routing routing : {permutation, cross_entropy_routing, cross_entropy_of_intervals,
                            cross_entropy_of_shares, binary_cross_entropy_routing,
                            binary_cross_entropy_of_intervals, binary_cross_entropy_of_shares})
        for (int64_t batch : {1, 5}) {
            expect_pass<Bitonic, double>(routing, batch, batch == 1, nullptr);
            expect_pass<Braid, float>(routing, batch, batch == 5, last_first);
        }
}

TEST(the_error_free_form_gives_a_permutation) {
    const auto &plan = prepared<Bitonic, Exact>();
    Operands<Bitonic, double> operands(permutation, 3);
    double values[12], P[48];
    EXPECT(narrow_forward(operands.call(plan), values, P, (double *)nullptr, nullptr) == ok);
    for (int b = 0; b < 3; ++b) {
        operands.take(b);
        const Plain<Bitonic, true> plain(operands.one, operands.steep);
        EXPECT(memcmp(plain.values, values + 4 * b, sizeof plain.values) == 0);
        for (int i = 0; i < 16; ++i) EXPECT(P[16 * b + i] == plain.P[i / 4][i % 4]);
    }
}

struct OfWires {
    int64_t wires;
};

TEST(held_columns_have_a_pitch_that_is_no_power_of_two_in_wide_rows) {
    EXPECT(held_columns(OfWires{3}) == 4 && held_columns(OfWires{5}) == 8);
    EXPECT(held_columns(OfWires{16}) == 16 && held_columns(OfWires{32}) == 16);
    EXPECT(pitch_of<true>(OfWires{5}) == 8 && pitch_of<true>(OfWires{16}) == 16);
    EXPECT(pitch_of<true>(OfWires{32}) == 20 && pitch_of<false>(OfWires{32}) == narrow_columns);
}

// Matrices of samples, and rows of a few of their columns.
template <class real>
static void expect_columns(int64_t wires, int64_t column, int64_t width, int64_t count) {
    const OfWires plan = {wires};
    const int64_t pitch = pitch_of<true>(plan);
    static real matrices[lanes<real> * 20 * 20], stored[lanes<real> * 20 * 20];
    static Vec<real> rows[21 * 24];
    for (int i = 0; i < lanes<real> * 400; ++i) matrices[i] = real(i), stored[i] = -1;
    for (Vec<real> &each : rows) each = all(real(5));
    load_columns(plan, rows, column, width, matrices, count);
    store_columns(plan, rows, column, width, stored, count, real(2));
    for (int64_t b = 0; b < lanes<real>; ++b)
        for (int64_t i = 0; i < wires * wires; ++i) {
            const int64_t row = i / wires, k = i % wires - column, place = b * wires * wires + i;
            const bool inside = 0 <= k && k < width;
            if (inside) EXPECT(rows[row * pitch + k][b] == (b < count ? matrices[place] : 0));
            EXPECT(stored[place] == (inside && b < count ? 2 * matrices[place] : -1));
        }
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = width; k % narrow_columns; ++k) EXPECT(rows[row * pitch + k][0] == 0);
}

TEST(columns_of_matrices_become_rows_and_come_back) {
    for (int64_t count = 1; count <= lanes<float>; ++count) {
        expect_columns<float>(4, 0, 4, count);
        expect_columns<float>(5, 0, 5, count);
        expect_columns<float>(20, 0, 16, count);
        expect_columns<float>(20, 16, 4, count);
        expect_columns<float>(19, 16, 3, count);
    }
    expect_columns<double>(20, 0, 16, 2);
    expect_columns<double>(5, 0, 5, 1);
}

TEST(kept_weights_begin_at_a_register_and_one_task_ends_where_the_next_begins) {
    const auto &plan = prepared<Bitonic>();
    float memory[narrow_columns * 1000];
    for (int shift = 0; shift < 4; ++shift) {
        Vec<float> *first = kept_weights(plan, memory + shift, 0),
                   *second = kept_weights(plan, memory + shift, 1);
        EXPECT(is_aligned(first, register_bytes) && second - first == 3 * Bitonic::slots);
        const float *end = reinterpret_cast<float *>(second);
        EXPECT(end <= memory + shift + narrow_kept<float>(plan, lanes<float>));
        EXPECT(reinterpret_cast<float *>(first) >= memory + shift);
    }
}
