// Columns of P: their losses and the gradients of these, against sums over entries in double.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/columns.h>

using namespace nsc;

constexpr int wires = 5, pitch = 3;

struct OfWires {
    using Relaxation = Logistic;
    static constexpr int64_t wires = ::wires;
};

// Columns that sum to 1. That of lane 0 has an entry near 1, whose rest is 1e-6.
static double entry(int row, int column) {
    if (column == 0) return row == 3 ? 1 - 1e-6 : 0.25e-6;
    double sum = 0;
    for (int i = 0; i < wires; ++i) sum += 2 + number(wires * column + i);
    return (2 + number(wires * column + row)) / sum;
}

template <class real>
struct Block {
    Block() {
        for (int row = 0; row < wires; ++row)
            for (int64_t k = 0; k < lanes<real>; ++k)
                rows[row * pitch][k] = real(entry(row, int(k)) * unit<double>);
    }
    Columns<real> columns() { return {rows, pitch}; }
    Vec<real> rows[wires * pitch] = {};
};

static double loss_of(Routing loss, double p, bool is_true) {
    if (loss == cross_entropy_routing) return is_true ? -log(p) / wires : 0;
    return -log(is_true ? p : 1 - p) / (wires * wires);
}

static double slope_of(Routing loss, double p, bool is_true) {
    if (loss == cross_entropy_routing) return is_true ? -1 / p / wires : 0;
    return (is_true ? -1 / p : 1 / (1 - p)) / (wires * wires);
}

template <class real>
static void expect_losses(Routing loss, int64_t width) {
    const OfWires plan;
    Block<real> block, grad;
    const int64_t rank[] = {3, 1, 4, 0, 2, 2, 0, 1, 3, 1, 4, 0, 2, 2, 0, 1};
    double losses[16] = {};
    for (double &each : losses) each = 1;  // they are added to
    add_losses<OfWires, real>(plan, loss, block.columns(), rank, width, losses);
    find_loss_gradient<OfWires, real>(plan, loss, block.columns(), grad.columns(), rank, width);
    const double relative = sizeof(real) == 4 ? 2e-6 : 1e-10;
    for (int k = 0; k < lanes<real>; ++k) {
        double expected = 1;
        for (int row = 0; k < width && row < wires; ++row) {
            const double p = entry(row, k), slope = slope_of(loss, p, rank[k] == row);
            expected += loss_of(loss, p, rank[k] == row);
            EXPECT_NEAR(grad.columns()[row][k] * unit<double>, slope, fabs(slope) * relative);
        }
        EXPECT_NEAR(losses[k], expected, relative);
    }
    // A rest keeps its digits where 1 - p has lost them.
    EXPECT_NEAR(losses[0] - 1,
                loss_of(loss, entry(3, 0), true) +
                    (loss == cross_entropy_routing ? 0 : 4 * loss_of(loss, 0.25e-6, false)),
                1e-13);
}

TEST(losses_of_columns_and_their_gradients) {
    for (Routing loss : {cross_entropy_routing, binary_cross_entropy_routing}) {
        for (int64_t width = 1; width <= lanes<float>; ++width) expect_losses<float>(loss, width);
        for (int64_t width = 1; width <= lanes<double>; ++width) expect_losses<double>(loss, width);
    }
}

TEST(the_rest_of_a_column_is_the_sum_of_the_entries_that_are_not_large) {
    const OfWires plan;
    Block<double> block;
    const Vec<double> rests = rests_of_columns<OfWires, double>(plan, block.columns());
    EXPECT_NEAR(rests[0] / unit<double>, 1e-6, 1e-20);
    EXPECT_NEAR(rests[1] / unit<double>, 1, 1e-14);
    EXPECT(probability(unit<double> * 0.9, 7.0).rest == 7);
    EXPECT(probability(unit<double> * 0.5, 7.0).rest == unit<double> * 0.5);
}

TEST(cleared_columns_leave_their_neighbours) {
    Block<float> block;
    block.rows[1] = all(5.0f);
    block.columns().clear(2);
    EXPECT(block.rows[0][0] == 0 && block.rows[pitch][0] == 0);
    EXPECT(block.rows[1][0] == 5 && block.rows[2 * pitch][0] != 0);
}
