// Butterflies: groups of columns through the mixes of a network and back, against plain loops in
// double.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/butterflies.h>

using namespace nsc;

template <class Network>
static Plan<Network, Logistic> &prepared() {
    static Plan<Network, Logistic> plan = {};
    EXPECT(plan.prepare() == ok);
    return plan;
}

// Visits as digits: 10 a + b for each comparator of the rows a and b, in the order of the visits.
template <Pattern pattern, bool backwards>
static int64_t visits() {
    int rows[] = {1, 2, 3, 4};
    int64_t digits = 0;
    run_butterfly<pattern, backwards>(
        rows, [&](int32_t c, int &a, int &b) { digits = 1000 * digits + 100 * c + 10 * a + b; });
    return digits;
}

TEST(patterns_run_their_comparators_in_order_and_backwards) {
    EXPECT((visits<single, false>() == 12 && visits<single, true>() == 12));
    EXPECT((visits<cross, false>() == 12134213324 && visits<cross, true>() == 213324012134));
    EXPECT((visits<funnel, false>() == 12134223 && visits<funnel, true>() == 223012134));
    EXPECT((visits<fan, false>() == 23112234 && visits<fan, true>() == 112234023));
}

TEST(a_pattern_is_handed_on_as_a_constant) {
    for (Pattern pattern : {single, funnel, fan, cross}) {
        int called = 0;
        with_pattern(pattern,
                     [&](auto kind) { called += decltype(kind)::value == pattern ? 1 : 9; });
        EXPECT(called == 1);
    }
}

// A group of columns, and what plain loops make of them.
template <class Network, class real>
struct Routed {
    static constexpr int columns = int(group_blocks * lanes<real>), wires = Network::wires;
    Routed() {
        for (int slot = 0; slot < Network::slots; ++slot) {
            const double weight = 0.5 + number(slot) / 2;
            keep[slot] = real(weight), keep[Network::slots + slot] = real(1 - weight);
        }
        for (int row = 0; row < wires; ++row)
            for (int k = 0; k < columns; ++k) {
                plain[row][k] = at(group, row, k) = real(number(row * columns + k));
                plain_grad[row][k] = at(grads, row, k) = real(number(row * columns + k + 1000));
            }
    }
    static real &at(Vec<real> *rows, int row, int k) {
        return reinterpret_cast<real *>(rows)[row * columns + k];
    }
    // Runs the mixes on columns that `on` has the block of, and their gradients back.
    void run(bool backwards, uint32_t on) {
        double differences[Network::comparators][columns];
        for (int i = 0; i < Network::comparators; ++i) {
            const Exchange &each = Network::exchanges[backwards ? Network::comparators - 1 - i : i];
            for (int k = 0; k < columns; ++k) {
                differences[i][k] = plain[each.lo][k] - plain[each.hi][k];
                if (on >> k / lanes<real> & 1) mix(plain, each, k);
            }
        }
        for (int i = Network::comparators - 1; i >= 0; --i) {
            const Exchange &each = Network::exchanges[backwards ? Network::comparators - 1 - i : i];
            for (int k = 0; k < columns; ++k)
                if (on >> k / lanes<real> & 1) {
                    plain_weights[each.slot] +=
                        differences[i][k] * (plain_grad[each.lo][k] - plain_grad[each.hi][k]);
                    mix(plain_grad, each, k);
                }
        }
    }
    void mix(double (*of)[columns], const Exchange &each, int k) {
        const double lo = of[each.lo][k], hi = of[each.hi][k], kept = keep[each.slot],
                     swapped = keep[Network::slots + each.slot];
        of[each.lo][k] = kept * lo + swapped * hi;
        of[each.hi][k] = kept * hi + swapped * lo;
    }
    void expect_same() {
        for (int row = 0; row < wires; ++row)
            for (int k = 0; k < columns; ++k) {
                EXPECT_NEAR(at(group, row, k), plain[row][k], nearly<real>);
                EXPECT_NEAR(at(grads, row, k), plain_grad[row][k], nearly<real>);
            }
        for (int slot = 0; slot < Network::slots; ++slot)
            EXPECT_NEAR(weights[slot], plain_weights[slot], 20 * nearly<real>);
    }
    Vec<real> group[wires * group_blocks], grads[wires * group_blocks];
    real keep[2 * Network::slots], weights[Network::slots] = {};
    double plain[wires][columns], plain_grad[wires][columns], plain_weights[Network::slots] = {};
};

template <class Network, class real, bool backwards>
static void expect_routed(uint8_t on_first) {
    const auto &plan = prepared<Network>();
    Routed<Network, real> routed;
    uint8_t on[3];
    memset(on, on_first, sizeof on);
    Vec<real> kept[Network::comparators * group_blocks], other[Network::wires * group_blocks];
    memcpy(other, routed.group, sizeof other);
    const Butterfly *of = backwards ? plan.mirrored_butterflies : plan.butterflies;
    const Steps steps = {of, on, 0, plan.butterfly_count};
    EXPECT((route_group<false, real>(plan, other, steps, routed.keep, nullptr) == nullptr));
    const Vec<real> *end = route_group<true, real>(plan, routed.group, steps, routed.keep, kept);
    EXPECT(end - kept == Network::comparators * __builtin_popcount(on_first));
    EXPECT(memcmp(other, routed.group, sizeof other) == 0);
    route_group_back<real>(plan, routed.grads, steps, routed.keep, end, routed.weights);
    routed.run(backwards, on_first);
    routed.expect_same();
}

template <class Network, class real>
static void expect_routed_both_ways() {
    const uint8_t every = (1 << group_blocks) - 1;
    for (uint8_t on : {every, uint8_t(every & 0xa5), uint8_t(1), uint8_t(0)}) {
        expect_routed<Network, real, false>(on);
        expect_routed<Network, real, true>(on);
    }
}

TEST(groups_go_through_the_mixes_and_gradients_back) {
    expect_routed_both_ways<Bitonic, float>();
    expect_routed_both_ways<Braid, double>();
}

TEST(steps_are_a_range_of_the_butterflies) {
    const auto &plan = prepared<Bitonic>();
    Routed<Bitonic, double> whole, parts;
    const uint8_t on[] = {1, 1, 1};
    const Steps steps = {plan.mirrored_butterflies, on, 0, 3};
    route_group<false, double>(plan, whole.group, steps, whole.keep, nullptr);
    route_group<false, double>(plan, parts.group, steps.between(0, 1), whole.keep, nullptr);
    EXPECT(!same_bits(whole.group, parts.group));
    route_group<false, double>(plan, parts.group, steps.between(1, 3), whole.keep, nullptr);
    EXPECT(same_bits(whole.group, parts.group));
}

// Sums go to the slots of a butterfly, whose other comparators are in front of the first or behind.
template <class real, Pattern pattern>
static void expect_sums(int others) {
    constexpr int32_t count = count_of(pattern);
    const Butterfly butterfly = {{}, 4, int16_t(others), pattern};
    Vec<real> rows[count];
    real sums[12], expected[12];
    for (int slot = 0; slot < 12; ++slot) sums[slot] = expected[slot] = real(slot);
    for (int32_t c = 0; c < count; ++c)
        for (int64_t k = 0; k < lanes<real>; ++k) {
            rows[c][k] = real(10 * c + k);
            expected[slot_of(butterfly, pattern, c)] += rows[c][k];
        }
    add_sums<pattern, real>(rows, butterfly, sums);
    EXPECT(same_bits(sums, expected));
}

template <class real>
static void expect_sums_of_patterns() {
    expect_sums<real, single>(1);
    expect_sums<real, funnel>(2), expect_sums<real, funnel>(-1);
    expect_sums<real, fan>(1), expect_sums<real, fan>(-2);
    expect_sums<real, cross>(2), expect_sums<real, cross>(-2);
}

TEST(sums_over_lanes_are_added) {
    expect_sums_of_patterns<float>();
    expect_sums_of_patterns<double>();
}

// What says how much is kept of a network.
template <bool is_any_long>
struct SizesOf {
    static constexpr bool is_long = is_any_long;
    int64_t wires, comparators, layers;
};
using Sizes = SizesOf<false>;

TEST(a_long_network_keeps_as_many_differences_as_copies_of_a_group) {
    const SizesOf<true> bitonic = {65536, 4456448, 136};
    const int64_t copies = most_segments(bitonic) - 2,
                  of_copies = copies * group_blocks * bitonic.wires;
    EXPECT(copies == 10);
    EXPECT(kept_rows(bitonic) < of_copies && 2 * kept_rows(bitonic) > of_copies);
}

TEST(a_segment_keeps_as_many_differences_as_there_is_room_for) {
    const auto &plan = prepared<Bitonic>();
    EXPECT(kept_room(plan) * register_bytes == least_kept_bytes);
    EXPECT(kept_rows(plan) == group_blocks * Bitonic::comparators && most_segments(plan) == 1);
    constexpr uint8_t every = (1 << group_blocks) - 1, on[] = {every, every, every};
    EXPECT(first_of_segment(plan, {plan.butterflies, on, 0, 3}, 3) == 0);
    // More differences than there is room for, whatever the width of registers.
    constexpr int64_t count = least_kept_bytes / 16;
    static Butterfly butterflies[count];
    static uint8_t each[count];
    for (int64_t i = 0; i < count; ++i)
        butterflies[i].pattern = i % 3 ? cross : single, each[i] = 1;
    const Steps steps = {butterflies, each, 0, count};
    const Sizes large = {4, 3 * count, 2};
    const int64_t room = kept_rows(large);
    EXPECT(room == kept_room(large) && most_segments(large) > 1);
    for (int64_t end = count; end > 0; end = end > 7 ? end / 2 - 1 : end - 1) {
        const int64_t first = first_of_segment(large, steps, end);
        int64_t kept = 0;
        for (int64_t i = first; i < end; ++i) kept += count_of(butterflies[i].pattern);
        EXPECT(kept <= room &&
               (first == 0 || kept + count_of(butterflies[first - 1].pattern) > room));
    }
}
