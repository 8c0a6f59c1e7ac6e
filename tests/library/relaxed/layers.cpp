// Layers: the keys pass of one sample, a comparator in each lane, against plain loops in double.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/layers.h>
#include <nsc/relaxed/samples.h>

using namespace nsc;

constexpr double steepness = 4;

template <class Network, class Relaxed = Logistic>
static Plan<Network, Relaxed> &prepared() {
    static Plan<Network, Relaxed> plan = {};
    EXPECT(plan.prepare() == ok && plan.prepare_bundles() == ok);
    return plan;
}

template <class Network, class real>
struct Sample {
    explicit Sample(int from = 0) {
        for (int wire = 0; wire < Network::wires; ++wire)
            plain[wire] = values[wire] = real(number(wire + from));
    }
    double plain[Network::wires];
    real values[Network::wires];
};

template <class real>
static void expect_runs() {
    const auto &plan = prepared<Braid>();
    for (bool backwards : {false, true}) {
        int64_t found[Braid::layers] = {}, rows[Braid::layers] = {}, at = 0;
        for_each_in_layers<real>(plan, backwards,
                                 [&](const Comparator *from, int64_t count, int64_t row) {
            EXPECT(at < Braid::layers);
            rows[at] = row, found[at++] = 10 * (from - plan.in_layers) + count;
        });
        EXPECT(at == Braid::layers);
        // Two comparators, one, one, two: each layer begins with a register.
        const int64_t places[] = {2, 21, 31, 42};
        for (int i = 0; i < 4; ++i) {
            EXPECT(found[backwards ? 3 - i : i] == places[i]);
            EXPECT(rows[backwards ? 3 - i : i] == i);
        }
    }
    EXPECT(layer_rows<real>(plan) >= Braid::layers);
}

TEST(runs_of_each_layer_in_turn_and_their_registers) {
    expect_runs<float>();
    expect_runs<double>();
}

template <class Network, class real>
static void expect_values() {
    const auto &plan = prepared<Network>();
    Sample<Network, real> bare, weighed, derived;
    real weights[3 * Network::slots] = {};
    Vec<real> shares[16];
    const Weights<real> w = weights_at<Logistic>(weights, Network::slots);
    compare_layers(plan, bare.values, real(steepness), Nothing());
    compare_layers(plan, derived.values, real(steepness), Derivatives<Vec<real>>{shares, nullptr});
    compare_layers_to_slots(plan, weighed.values, real(steepness), w);
    EXPECT(same_bits(bare.values, weighed.values) && same_bits(bare.values, derived.values));
    const Plain<Network> expected(bare.plain, steepness);
    for (int wire = 0; wire < Network::wires; ++wire)
        EXPECT_NEAR(bare.values[wire], expected.values[wire], nearly<real>);
    for (const Exchange &each : Network::exchanges) {
        EXPECT_NEAR(w.forward.keep[each.slot], expected.keep[each.slot], 9 * nearly<real>);
        EXPECT_NEAR(w.forward.swap[each.slot], expected.swap[each.slot], 9 * nearly<real>);
        EXPECT_NEAR(w.gap[each.slot], expected.gap[each.slot], nearly<real>);
    }
    // A sample's bits are those of a lane of a block.
    Vec<real> block[Network::wires];
    const Sample<Network, real> again;
    load_samples(plan, again.values, 1, block);
    compare_block<real>(plan, false, block, all(real(steepness)), Nothing());
    for (int wire = 0; wire < Network::wires; ++wire) EXPECT(block[wire][0] == bare.values[wire]);
}

TEST(values_and_weights_of_one_sample) {
    expect_values<Bitonic, float>();
    expect_values<Braid, double>();
}

TEST(the_error_free_form_keeps_both_kinds_of_weights) {
    Sample<Bitonic, double> sample;
    double weights[5 * Bitonic::slots] = {};
    const Weights<double> w = weights_at<Exact>(weights, Bitonic::slots);
    compare_layers_to_slots(prepared<Bitonic, Exact>(), sample.values, steepness, w);
    const Plain<Bitonic, true> expected(sample.plain, steepness);
    EXPECT(same_bits(sample.values, expected.values));
    for (const Exchange &each : Bitonic::exchanges) {
        const double d = expected.gap[each.slot],
                     keep = 1 / (1 + exp(-steepness * d / (1 + fabs(d))));
        EXPECT(w.forward.keep[each.slot] == expected.keep[each.slot]);
        EXPECT(w.forward.swap[each.slot] == expected.swap[each.slot]);
        EXPECT_NEAR(w.backward.keep[each.slot], keep, nearly<double>);
        EXPECT_NEAR(w.backward.swap[each.slot], 1 - keep, nearly<double>);
    }
}

TEST(extreme_values_are_seen_before_the_first_layer) {
    const auto &plan = prepared<Braid>();
    for (int wire = 0; wire < Braid::wires; ++wire) {
        Sample<Braid, float> sample;
        EXPECT(!are_extreme(plan, sample.values, 2.0f));
        sample.values[wire] = INFINITY;
        EXPECT(are_extreme(plan, sample.values, 2.0f));
        compare_layers(plan, sample.values, 2.0f, Nothing());
        int infinite = 0, nan = 0;
        for (float each : sample.values) infinite += isinf(each), nan += isnan(each);
        EXPECT(infinite == 1 && nan == 0);
    }
}

template <class Network, class real>
static void expect_gradients() {
    const auto &plan = prepared<Network>();
    Sample<Network, real> sample, run, grads(70), back(70), derived(70);
    real weights[3 * Network::slots] = {}, weight_grad[Network::slots], by_slot[2 * Network::slots];
    Vec<real> held[32];
    for (real &each : weight_grad) each = real(0.3);
    const Weights<real> w = weights_at<Logistic>(weights, Network::slots);
    compare_layers_to_slots(plan, run.values, real(steepness), w);
    const real of_steepness =
        compare_layers_backward(plan, back.values, weight_grad, real(steepness), w);
    compare_layers(plan, sample.values, real(steepness), Derivatives<Vec<real>>{held, held + 16});
    const real derived_steepness = derive_layers_backward<real>(
        plan, derived.values, Derivatives<Vec<real>>{held, held + 16}, by_slot);
    for (double of_weights : {0.0, 0.3}) {
        const real *found = of_weights ? back.values : derived.values;
        double steep = steepness;
        const auto total = [&] {
            const Plain<Network> of(sample.plain, steep);
            double sum = 0;
            for (int wire = 0; wire < Network::wires; ++wire)
                sum += grads.plain[wire] * of.values[wire];
            for (const Exchange &each : Network::exchanges) sum += of_weights * of.keep[each.slot];
            return sum;
        };
        for (int wire = 0; wire < Network::wires; ++wire)
            EXPECT_NEAR(found[wire], derivative(sample.plain[wire], total), nearly_slope<real>);
        EXPECT_NEAR(of_weights ? of_steepness : derived_steepness, derivative(steep, total),
                    nearly_slope<real>);
    }
    EXPECT(derive_layers_backward<real>(plan, grads.values, {held, nullptr}, nullptr) == 0);
    EXPECT(same_bits(grads.values, derived.values));
}

TEST(gradients_of_one_sample) {
    expect_gradients<Bitonic, float>();
    expect_gradients<Braid, double>();
}

TEST(sums_over_slots_have_all_comparators_and_no_other_slot) {
    double by_slot[Bitonic::slots];
    for (double &each : by_slot) each = 1000;
    double expected = 0;
    for (const Exchange &each : Bitonic::exchanges) expected += by_slot[each.slot] = each.slot + 1;
    const auto add = [&](double &part, int64_t slot) { part += by_slot[slot]; };
    EXPECT(sum_of_slots<double>(prepared<Bitonic>(), add) == expected);
}

TEST(registers_one_by_one_are_the_same_memory) {
    Vec<float> rows[6];
    const Weights<float> w = singly<float>(weights_at<Logistic>(rows, 2));
    EXPECT(w.forward.keep == singly<float>(rows) && w.gap == singly<float>(rows + 4));
    EXPECT(w.forward.swap == w.backward.swap && w.backward.swap == singly<float>(rows + 2));
    Gathered<float> both;
    EXPECT(both.lo() == singly<float>(both.rows) &&
           both.hi() - both.lo() == most_in_bundle * lanes<float>);
    for (int32_t i = 0; i < most_in_bundle; ++i)
        EXPECT(gathered.at[i].lo == i && gathered.at[i].hi == most_in_bundle + i &&
               gathered.at[i].slot == i);
}
