// Plans: the orders in which a network's comparators are run, found from its tables.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/plan.h>

using namespace nsc;

template <class Network>
static Plan<Network, Logistic> &prepared() {
    static Plan<Network, Logistic> plan = {};
    EXPECT(plan.prepare() == ok && plan.prepare_bundles() == ok);
    return plan;
}

static bool are_same(const Comparator &a, const Exchange &b) {
    return a.lo == b.lo && a.hi == b.hi && a.slot == b.slot;
}

template <class Network>
static void expect_visits() {
    int at = 0;
    for_each_comparator(Network(), [&](int32_t lo, int32_t hi, int32_t slot) {
        const Comparator found = {uint16_t(lo), uint16_t(hi), slot};
        EXPECT(are_same(found, Network::exchanges[at++]));
    });
    EXPECT(at == Network::comparators);
}

TEST(comparators_are_visited_in_order_with_their_flips_and_slots) {
    expect_visits<Bitonic>();
    expect_visits<Braid>();
}

// Whether a list has each comparator of the network once, and never one before another that it
// needs: of two that share a wire, the first in the text comes first.
template <class Network>
static bool is_an_order(const Comparator *list) {
    int places[Network::slots];
    for (int i = 0; i < Network::comparators; ++i) {
        places[i] = -1;
        for (int k = 0; k < Network::comparators; ++k)
            if (are_same(list[k], Network::exchanges[i])) places[i] = k;
        if (places[i] < 0) return false;
        for (int before = 0; before < i; ++before) {
            const Exchange &a = Network::exchanges[before], &b = Network::exchanges[i];
            const bool meet = a.lo == b.lo || a.lo == b.hi || a.hi == b.lo || a.hi == b.hi;
            if (meet && places[before] > places[i]) return false;
        }
    }
    return true;
}

// Whether no two comparators of a range share a wire.
static bool are_disjoint(const Comparator *from, int32_t count) {
    uint32_t wires = 0;
    for (int32_t i = 0; i < count; ++i) {
        const uint32_t of = 1u << from[i].lo | 1u << from[i].hi;
        if (wires & of) return false;
        wires |= of;
    }
    return true;
}

template <class Network>
static void expect_layers() {
    const auto &plan = prepared<Network>();
    EXPECT(is_an_order<Network>(plan.in_layers));
    EXPECT(plan.layer_end[Network::layers - 1] == Network::comparators);
    for (int layer = 0; layer < Network::layers; ++layer) {
        const int32_t begin = layer ? plan.layer_end[layer - 1] : 0;
        EXPECT(plan.layer_end[layer] > begin);
        EXPECT(are_disjoint(plan.in_layers + begin, plan.layer_end[layer] - begin));
    }
}

TEST(layers_hold_all_comparators_whose_inputs_are_there) {
    expect_layers<Bitonic>();
    expect_layers<Braid>();
    const auto &plan = prepared<Braid>();
    EXPECT(plan.layer_end[0] == 2 && plan.layer_end[1] == 3 && plan.layer_end[2] == 4);
}

template <class Network>
static void expect_bundles() {
    const auto &plan = prepared<Network>();
    EXPECT(is_an_order<Network>(plan.in_bundles));
    int32_t done = 0;
    for (int32_t i = 0; i < plan.bundle_count; ++i) {
        const Bundle bundle = plan.bundles[i];
        EXPECT(bundle.first == done && 0 < bundle.count && bundle.count <= most_in_bundle);
        EXPECT(are_disjoint(plan.in_bundles + bundle.first, bundle.count));
        done += bundle.count;
    }
    EXPECT(done == Network::comparators);
}

template <class Network>
static void expect_bundles_of_codelets() {
    const auto &plan = prepared<Network>();
    int32_t done = 0;
    for (int64_t c = 0; c < Network::codelet_count; ++c)
        for (int32_t i = plan.first_bundle[c]; i < plan.first_bundle[c + 1]; ++i) {
            const Bundle bundle = plan.codelet_bundles[i];
            EXPECT(bundle.first == done && bundle.count <= most_in_bundle);
            EXPECT(are_disjoint(plan.in_codelets + bundle.first, bundle.count));
            for (int32_t k = 0; k < bundle.count; ++k, ++done) {
                Comparator found = plan.in_codelets[done];
                found.slot += Network::codelets[c].slot;
                EXPECT(are_same(found, Network::exchanges[done]));
            }
        }
    EXPECT(done == Network::comparators);
}

TEST(bundles_hold_comparators_that_share_no_wire) {
    expect_bundles<Bitonic>();
    expect_bundles<Braid>();
    EXPECT(prepared<Bitonic>().bundle_count == 3);  // fuller than those of its codelets
    EXPECT(prepared<Bitonic>().first_bundle[Bitonic::codelet_count] == 4);
    expect_bundles_of_codelets<Bitonic>();
    expect_bundles_of_codelets<Braid>();
}

TEST(a_bundle_is_full_with_eight) {
    const auto &plan = prepared<Comb>();
    EXPECT(plan.bundle_count == 5);
    for (int32_t i = 0; i < 5; ++i) EXPECT(plan.bundles[i].count == most_in_bundle);
    for (int32_t i = 0; i < 40; ++i) EXPECT(plan.in_bundles[i].lo == 2 * i);
}

TEST(butterflies_have_the_wires_and_slots_of_their_comparators) {
    const Butterfly *of = prepared<Bitonic>().butterflies;
    EXPECT(of[0].pattern == cross && of[0].slot == 0 && of[0].rows[3] == 3);
    EXPECT(of[1].pattern == single && of[1].slot == 16 && of[1].rows[0] == 0 && of[1].rows[1] == 1);
    EXPECT(of[2].pattern == single && of[2].slot == 32 && of[2].rows[0] == 2 && of[2].rows[1] == 3);
    of = prepared<Braid>().butterflies;
    EXPECT(of[0].pattern == funnel && of[0].slot == 0 && of[0].rows[2] == 3);
    EXPECT(of[1].pattern == fan && of[1].slot == 3 && of[1].rows[3] == 4);
}

// Two butterflies on the wires of two cones.
struct Two : Comb {
    static constexpr int64_t wires = 2 * cone_columns, butterfly_count = 2;
};

// The slots of a butterfly's comparators and the wires that they join, in running order.
static void expect_comparators(const Butterfly &of, std::initializer_list<Exchange> expected) {
    EXPECT(count_of(of.pattern) == int32_t(expected.size()));
    static constexpr int places[][4][2] = {{{0, 1}},
                                           {{0, 1}, {2, 3}, {1, 2}},
                                           {{1, 2}, {0, 1}, {2, 3}},
                                           {{0, 1}, {2, 3}, {0, 2}, {1, 3}}};
    int32_t c = 0;
    for (const Exchange &each : expected) {
        const auto &place = places[of.pattern][c];
        EXPECT(slot_of(of, of.pattern, c++) == each.slot);
        EXPECT(of.rows[place[0]] == each.lo && of.rows[place[1]] == each.hi);
    }
}

TEST(mirrored_butterflies_run_the_same_comparators_from_the_last_to_the_first) {
    const auto &bitonic = prepared<Bitonic>();
    const Butterfly *of = bitonic.butterflies, *mirror = bitonic.mirrored_butterflies;
    expect_comparators(of[0], {{0, 1, 0}, {2, 3, 1}, {0, 2, 2}, {1, 3, 3}});
    expect_comparators(of[2], {{2, 3, 32}});
    expect_comparators(mirror[0], {{2, 3, 32}});
    expect_comparators(mirror[1], {{0, 1, 16}});
    expect_comparators(mirror[2], {{0, 2, 2}, {1, 3, 3}, {0, 1, 0}, {2, 3, 1}});
    of = prepared<Braid>().butterflies, mirror = prepared<Braid>().mirrored_butterflies;
    expect_comparators(of[0], {{0, 1, 0}, {3, 4, 1}, {1, 3, 2}});
    expect_comparators(of[1], {{1, 3, 3}, {0, 1, 4}, {3, 4, 5}});
    expect_comparators(mirror[0], {{0, 1, 4}, {3, 4, 5}, {1, 3, 3}});
    expect_comparators(mirror[1], {{1, 3, 2}, {0, 1, 0}, {3, 4, 1}});
}

TEST(light_cones_say_which_columns_reach_a_butterfly_and_which_rows_it_reaches) {
    const auto &plan = prepared<Comb>();
    EXPECT(plan.cone_words() == (80 + 64 * cone_columns - 1) / (64 * cone_columns));
    for (int64_t i = 0; i < 40; ++i) {
        const int64_t cone = 2 * i / cone_columns;
        for (int64_t word = 0; word < plan.cone_words(); ++word) {
            const uint64_t expected = cone / 64 == word ? uint64_t(1) << cone % 64 : 0;
            EXPECT(plan.reached_by[word * 40 + i] == expected);
            EXPECT(plan.reaches[word * 40 + 39 - i] == expected);
        }
    }
    // The second joins both cones.
    Butterfly butterflies[] = {{{0, 1, 0, 0}, 0, 1, single},
                               {{1, uint16_t(cone_columns), 0, 0}, 1, 1, single}},
              mirrored_butterflies[] = {butterflies[1], butterflies[0]};
    uint64_t reached_by[3] = {}, reaches[3] = {};
    Plan<Two, Logistic> two = {};
    two.butterflies = butterflies, two.mirrored_butterflies = mirrored_butterflies;
    two.reached_by = reached_by, two.reaches = reaches;
    EXPECT(find_cones(two) == ok);
    EXPECT(reached_by[0] == 1 && reached_by[1] == 3);
    EXPECT(reaches[0] == 3 && reaches[1] == 3);
}

TEST(narrow_cones_take_unreached_wires_from_the_row_of_zeros) {
    const auto &plan = prepared<Braid>();
    EXPECT(plan.is_narrow() && !prepared<Wide<Bitonic>>().is_narrow());
    // Columns 0 to 3 reach wires 0 to 3 at once, and wire 4 through the funnel.
    const NarrowCone &first = plan.narrow_cones[0], &last = plan.narrow_cones[1];
    EXPECT(first.count == 2 && first.reaches_all);
    EXPECT(first.steps[0].from[0] == 0 && first.steps[0].from[1] == 1);
    EXPECT(first.steps[0].from[2] == 3 && first.steps[0].from[3] == Braid::wires);
    EXPECT(first.steps[1].from[3] == 4);
    // Column 4 reaches all but wire 2, which no comparator touches.
    EXPECT(last.count == 2 && !last.reaches_all);
    EXPECT(last.steps[0].from[0] == Braid::wires && last.steps[0].from[3] == 4);
    EXPECT(last.steps[1].from[0] == 0 && last.steps[1].butterfly.pattern == fan);
    EXPECT(last.reaches[0] && !last.reaches[2] && last.reaches[4]);
}

TEST(a_plan_is_prepared_once) {
    auto &plan = prepared<Bitonic>();
    const Comparator *const before = plan.in_layers, *const bundles = plan.in_bundles;
    EXPECT(plan.prepare() == ok && plan.prepare_bundles() == ok);
    EXPECT(plan.in_layers == before && plan.in_bundles == bundles);
}

TEST(tables_begin_as_zero_and_more_than_there_can_be_is_refused) {
    int64_t *table = nullptr;
    EXPECT(allot(table, 100));
    for (int i = 0; i <= 100; ++i) EXPECT(table[i] == 0);
    table[0] = 1;
    EXPECT(allot(table, 3) && table[0] == 0);
    EXPECT(!allot(table, int64_t(1) << 59) && table == nullptr);
}
