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

// What an item counts, and the ranks that it may have, in a target of each form.
template <class real>
struct Truth3 {
    explicit Truth3(Form form) : form(form) {
        for (int i = 0; i < wires; ++i) {
            ranks[i] = (3 * i + 3) % wires;
            reals[i] = real(form == of_intervals ? i % 3 : 0.1 * i);
            reals[wires + i] = real(form == of_intervals ? i % 3 + i % 2 : 0.3);
            for (int row = 2; row <= wires; ++row) reals[row * wires + i] = real(0.2 * (row % 4));
            reals[(form == of_intervals ? 2 : wires) * wires + i] = real(i % 4 * 0.5);
        }
        ranks[2] = ignored;
    }
    Target<real> target() const {
        const void *start = form == of_ranks ? static_cast<const void *>(ranks) : reals;
        return {form, start, wires, 0.25};
    }
    Form form;
    int64_t ranks[wires];
    real reals[(wires + 1) * wires];
};

// The loss of column k of the block, of item k % wires, and its derivatives by entries.
struct Expected {
    double loss = 0, slopes[wires] = {};
};

template <class real>
static Expected expected(bool by_row, const Target<real> &target, int k) {
    const int item = k % wires;
    const Truth<real> truth = target.truth(item);
    Expected found;
    if (!by_row && target.form != of_shares) {
        double mass = 0;
        for (int row = 0; row < wires; ++row) mass += truth.is_in(row) ? entry(row, k) : 0;
        found.loss = -truth.weight * log(mass);
        for (int row = 0; row < wires; ++row)
            found.slopes[row] = truth.is_in(row) ? -truth.weight / mass : 0;
        return found;
    }
    for (int row = 0; row < wires; ++row) {
        const double p = entry(row, k), weight = by_row ? truth.weight / wires : truth.weight,
                     share = target.form == of_shares ? double(target.share(row, item))
                                                      : truth.share(row),
                     other = by_row ? 1 - share : 0;
        found.loss -= weight * (share * log(p) + other * log(1 - p));
        found.slopes[row] = weight * (other / (1 - p) - share / p);
    }
    return found;
}

template <class real>
static void expect_losses(Routing loss, int64_t width) {
    const OfWires plan;
    Block<real> block, grad;
    const Truth3<real> truth(form_of(loss));
    const Target<real> target = truth.target();
    const Truths<real> truths(width, [&](int64_t) -> const Target<real> & { return target; },
                              [](int64_t k) { return k % wires; });
    double losses[16] = {};
    for (double &each : losses) each = 1;  // they are added to
    add_losses<OfWires, real>(plan, loss, block.columns(), truths, losses);
    double same[16] = {};
    for (double &each : same) each = 1;
    find_loss_gradient<OfWires, real>(plan, loss, block.columns(), grad.columns(), truths, same);
    EXPECT(same_bits(same, losses));
    find_loss_gradient<OfWires, real>(plan, loss, block.columns(), grad.columns(), truths, nullptr);
    const double relative = sizeof(real) == 4 ? 3e-6 : 1e-10;
    const bool by_row = loss >= binary_cross_entropy_routing;
    for (int k = 0; k < lanes<real>; ++k) {
        const Expected wanted = k < width ? expected(by_row, target, k) : Expected();
        EXPECT_NEAR(losses[k], 1 + wanted.loss, relative * (1 + wanted.loss));
        for (int row = 0; row < wires; ++row)
            EXPECT_NEAR(grad.columns()[row][k] * unit<double>, wanted.slopes[row],
                        fabs(wanted.slopes[row]) * relative);
    }
    if (!has_shares(loss)) return;
    real grads[16][(wires + 1) * wires];
    real *starts[16];
    for (int k = 0; k < 16; ++k) starts[k] = grads[k];
    find_share_gradient<OfWires, real>(plan, loss, block.columns(), truths, starts);
    for (int k = 0; k < width; ++k)
        for (int row = 0; row <= wires; ++row) {
            const double p = row < wires ? entry(row, k) : 0.5,
                         weight = target.truth(k % wires).weight / (by_row ? wires : 1),
                         slope = weight * ((by_row ? log(1 - p) : 0) - log(p));
            EXPECT_NEAR(grads[k][row * wires], row < wires ? slope : 0, 1e-6 * (1 + fabs(slope)));
        }
}

TEST(losses_of_columns_and_their_gradients) {
    for (Routing loss : {cross_entropy_routing, cross_entropy_of_intervals, cross_entropy_of_shares,
                         binary_cross_entropy_routing, binary_cross_entropy_of_intervals,
                         binary_cross_entropy_of_shares}) {
        for (int64_t width = 1; width <= lanes<float>; ++width) expect_losses<float>(loss, width);
        for (int64_t width = 1; width <= lanes<double>; ++width) expect_losses<double>(loss, width);
    }
}

// -log p and -log(1 - p) are nearly equal there.
TEST(the_slope_of_a_share_keeps_its_digits_near_a_half) {
    const OfWires plan;
    Block<float> block;
    const float nearly = 0x1.0001p-1f;
    block.rows[pitch][0] = nearly * unit<float>;
    const Truth3<float> truth(of_shares);
    const Target<float> target = truth.target();
    const Truths<float> truths(1, [&](int64_t) -> const Target<float> & { return target; },
                               [](int64_t) { return int64_t(1); });
    float grads[(wires + 1) * wires];
    float *const start = grads;
    find_share_gradient<OfWires, float>(plan, binary_cross_entropy_of_shares, block.columns(),
                                        truths, &start);
    const double slope = target.truth(1).weight / wires * log((1 - double(nearly)) / nearly);
    EXPECT_NEAR(grads[wires], slope, 2e-7 * fabs(slope));
}

TEST(a_rest_keeps_its_digits_where_1_minus_p_has_lost_them) {
    const OfWires plan;
    Block<float> block;
    const float intervals[] = {2, 2, 0, 0, 0, 3, 3, 0, 0, 0, 1, 0, 0, 0, 0};
    const int64_t ranks[] = {3, ignored, ignored, ignored, ignored};
    for (const Target<float> target : {Target<float>{of_ranks, ranks, wires, 1},
                                       Target<float>{of_intervals, intervals, wires, 0}}) {
        const Truths<float> truths(1, [&](int64_t) -> const Target<float> & { return target; },
                                   [](int64_t) { return int64_t(0); });
        double loss[lanes<float>] = {};
        const Routing routing =
            target.form == of_ranks ? cross_entropy_routing : cross_entropy_of_intervals;
        add_losses<OfWires, float>(plan, routing, block.columns(), truths, loss);
        EXPECT_NEAR(loss[0], target.form == of_ranks ? 1e-6 : 0.75e-6, 1e-12);
    }
}

TEST(the_rest_of_a_column_is_the_sum_of_the_entries_that_are_not_large) {
    const OfWires plan;
    Block<double> block;
    const Vec<double> rests = rests_of_columns<OfWires, double>(plan, block.columns());
    EXPECT_NEAR(rests[0] / unit<double>, 1e-6, 1e-20);
    EXPECT_NEAR(rests[1] / unit<double>, 1, 1e-14);
    EXPECT(probability<double>(all(unit<double> * 0.9), all(7.0)).rest[0] == 7);
    EXPECT(probability<double>(all(unit<double> * 0.5), all(7.0)).rest[0] == unit<double> * 0.5);
}

TEST(cleared_columns_leave_their_neighbours) {
    Block<float> block;
    block.rows[1] = all(5.0f);
    block.columns().clear(2);
    EXPECT(block.rows[0][0] == 0 && block.rows[pitch][0] == 0);
    EXPECT(block.rows[1][0] == 5 && block.rows[2 * pitch][0] != 0);
}
