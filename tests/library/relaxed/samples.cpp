// Samples in lanes: between samples and blocks, and a block's comparators forward and backward.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/samples.h>

using namespace nsc;

constexpr double steepness = 4;

template <class Network, class Relaxed = Logistic>
static Plan<Network, Relaxed> &prepared() {
    static Plan<Network, Relaxed> plan = {};
    EXPECT(plan.prepare() == ok && plan.prepare_bundles() == ok);
    return plan;
}

// Samples one behind the other, and a block of them.
template <class Network, class real>
struct InLanes {
    static constexpr int wires = Network::wires, most = int(lanes<real>);
    explicit InLanes(int64_t count = most, int from = 0) : count(count) {
        for (int i = 0; i < most * wires; ++i) samples[i] = real(number(i + from));
        load_samples(prepared<Network>(), samples, count, rows);
    }
    // One sample in double.
    const double *sample(int64_t k) {
        for (int wire = 0; wire < wires; ++wire) one[wire] = samples[k * wires + wire];
        return one;
    }
    int64_t count;
    real samples[most * wires];
    double one[wires];
    Vec<real> rows[wires];
};

template <class Network, class real>
static void expect_loads() {
    for (int64_t count = 1; count <= lanes<real>; ++count) {
        const InLanes<Network, real> block(count);
        for (int64_t k = 0; k < lanes<real>; ++k)
            for (int wire = 0; wire < Network::wires; ++wire)
                EXPECT(block.rows[wire][k] ==
                       (k < count ? block.samples[k * Network::wires + wire] : 0));
        real stored[InLanes<Network, real>::most * Network::wires + 1];
        for (real &each : stored) each = 9;
        store_samples(prepared<Network>(), stored, count, block.rows);
        for (int64_t i = 0; i < count * Network::wires; ++i) EXPECT(stored[i] == block.samples[i]);
        EXPECT(stored[count * Network::wires] == 9);
    }
}

TEST(a_block_has_a_row_for_each_wire_and_a_lane_for_each_sample) {
    expect_loads<Bitonic, float>();
    expect_loads<Bitonic, double>();
    expect_loads<Braid, float>();
    expect_loads<Braid, double>();
}

template <class Network, class real>
static void expect_values(bool extreme) {
    const auto &plan = prepared<Network>();
    InLanes<Network, real> block, by_codelets;
    Vec<real> held[3 * Network::slots] = {}, tile[3 * Network::longest_codelet] = {};
    const Weights<Vec<real>> w = weights_at<Logistic>(held, Network::slots),
                             of_codelet = weights_at<Logistic>(tile, Network::longest_codelet);
    compare_block<real>(plan, extreme, block.rows, all(real(steepness)), w);
    for (int64_t c = 0; c < plan.codelet_count; ++c) {
        if (extreme)
            compare_codelet<real, true>(plan, c, by_codelets.rows, all(real(steepness)),
                                        of_codelet);
        else
            compare_codelet<real, false>(plan, c, by_codelets.rows, all(real(steepness)),
                                         of_codelet);
        // What a codelet keeps begins at its first slot.
        EXPECT(same_bits(of_codelet.gap[0], w.gap[plan.codelets[c].slot]));
    }
    EXPECT(same_bits(block.rows, by_codelets.rows));
    for (int64_t k = 0; k < lanes<real>; ++k) {
        const Plain<Network> expected(block.sample(k), steepness);
        for (int wire = 0; wire < Network::wires; ++wire)
            EXPECT_NEAR(block.rows[wire][k], expected.values[wire], nearly<real>);
        for (const Exchange &each : Network::exchanges) {
            EXPECT_NEAR(w.forward.keep[each.slot][k], expected.keep[each.slot], 9 * nearly<real>);
            EXPECT_NEAR(w.gap[each.slot][k], expected.gap[each.slot], nearly<real>);
        }
    }
}

TEST(a_block_is_run_as_each_of_its_samples) {
    for (bool extreme : {false, true}) {
        expect_values<Bitonic, float>(extreme);
        expect_values<Bitonic, double>(extreme);
        expect_values<Braid, double>(extreme);
    }
}

// The gradient of grads * values + sum of 0.3 keep by one sample's input and steepness.
template <class Network>
struct Slopes {
    Slopes(const double *x, const double *grads, double of_weights) {
        double at[Network::wires], steep = steepness;
        for (int wire = 0; wire < Network::wires; ++wire) at[wire] = x[wire];
        const auto total = [&] {
            const Plain<Network> of(at, steep);
            double sum = 0;
            for (int wire = 0; wire < Network::wires; ++wire) sum += grads[wire] * of.values[wire];
            for (const Exchange &each : Network::exchanges) sum += of_weights * of.keep[each.slot];
            return sum;
        };
        for (int wire = 0; wire < Network::wires; ++wire) of_x[wire] = derivative(at[wire], total);
        of_steepness = derivative(steep, total);
    }
    double of_x[Network::wires], of_steepness;
};

template <class Network, class real>
static void expect_gradients(double of_weights, InLanes<Network, real> &block,
                             InLanes<Network, real> &grads, const Vec<real> *found,
                             const Vec<real> *parts) {
    for (int64_t k = 0; k < lanes<real>; ++k) {
        double of_values[Network::wires];
        memcpy(of_values, grads.sample(k), sizeof of_values);
        const Slopes<Network> expected(block.sample(k), of_values, of_weights);
        for (int wire = 0; wire < Network::wires; ++wire)
            EXPECT_NEAR(found[wire][k], expected.of_x[wire], nearly_slope<real>);
        if (parts) EXPECT_NEAR(sum_of_parts(parts)[k], expected.of_steepness, nearly_slope<real>);
    }
}

template <class Network, class real>
static void expect_backward() {
    const auto &plan = prepared<Network>();
    InLanes<Network, real> block, run = block, grads(lanes<real>, 50), back = grads, bare = grads;
    Vec<real> tiles[Network::codelet_count][3 * Network::longest_codelet],
        weight_grad[Network::longest_codelet], parts[slot_alignment] = {};
    for (Vec<real> &each : weight_grad) each = all(real(0.3));
    const Vec<real> steep = all(real(steepness));
    const auto weights = [&](int64_t c) {
        return weights_at<Logistic>(tiles[c], Network::longest_codelet);
    };
    for (int64_t c = 0; c < plan.codelet_count; ++c)
        compare_codelet<real, false>(plan, c, run.rows, steep, weights(c));
    for (int64_t c = plan.codelet_count - 1; c >= 0; --c) {
        compare_codelet_backward<real>(plan, c, back.rows, weight_grad, steep, weights(c), parts);
        compare_codelet_backward<real>(plan, c, bare.rows, weight_grad, steep, weights(c), nullptr);
    }
    EXPECT(same_bits(back.rows, bare.rows));
    expect_gradients<Network, real>(0.3, block, grads, back.rows, parts);
}

TEST(codelets_backward_give_gradients_of_values_and_weights) {
    expect_backward<Bitonic, float>();
    expect_backward<Bitonic, double>();
    expect_backward<Braid, double>();
}

template <class Network, class real>
static void expect_derived() {
    const auto &plan = prepared<Network>();
    InLanes<Network, real> block, run = block, grads(lanes<real>, 50), back = grads;
    Vec<real> held[2 * Network::slots] = {}, parts[slot_alignment] = {};
    const Derivatives<Vec<real>> kept = {held, held + Network::slots};
    compare_block<real>(plan, false, run.rows, all(real(steepness)), kept);
    derive_backward<real>(plan, back.rows, kept, parts);
    expect_gradients<Network, real>(0, block, grads, back.rows, parts);
    // Without the gradient of the steepness, of one block and of two.
    Vec<real> both[2 * Network::wires], shares[2 * Network::slots];
    for (int i = 0; i < 2; ++i) {
        memcpy(both + i * Network::wires, grads.rows, sizeof grads.rows);
        memcpy(shares + i * Network::slots, held, sizeof(Vec<real>) * Network::slots);
    }
    derive_backward<real>(plan, both, {shares, nullptr}, int64_t(2));
    derive_backward<real>(plan, grads.rows, {held, nullptr}, int64_t(1));
    EXPECT(same_bits(grads.rows, back.rows));
    EXPECT(memcmp(both, back.rows, sizeof back.rows) == 0);
    EXPECT(memcmp(both + Network::wires, back.rows, sizeof back.rows) == 0);
}

TEST(shares_backward_give_gradients_of_values) {
    expect_derived<Bitonic, float>();
    expect_derived<Bitonic, double>();
    expect_derived<Braid, float>();
}

template <class real>
static void expect_slots() {
    constexpr int slot_count = slot_alignment, stride = 40;
    real from[lanes<real> * stride], to[lanes<real> * stride];
    for (int i = 0; i < lanes<real> * stride; ++i) from[i] = real(i), to[i] = -1;
    const int64_t count = lanes<real> - 1;
    Vec<real> rows[slot_count];
    gather_slots(from, stride, count, slot_count, rows);
    for (int slot = 0; slot < slot_count; ++slot)
        for (int64_t k = 0; k < lanes<real>; ++k)
            EXPECT(rows[slot][k] == (k < count ? from[k * stride + slot] : 0));
    scatter_slots(to, stride, count, slot_count, rows);
    for (int i = 0; i < lanes<real> * stride; ++i)
        EXPECT(to[i] == (i / stride < count && i % stride < slot_count ? from[i] : -1));
}

TEST(slots_of_samples_become_rows_and_come_back) {
    expect_slots<float>();
    expect_slots<double>();
}
