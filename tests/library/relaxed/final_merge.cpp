// The tables of a final merge, and what is in front of it.
#include "calls.h"
#include "merging.h"

#include <nsc/relaxed/final_merge.h>
#include <nsc/relaxed/routing_pass.h>

using namespace nsc;

// Tables of random weights. `intervals`: the first and the last rank of each; null: of ranks.
template <int k, class real>
struct Tables {
    static constexpr int64_t n = 1 << k;
    using Merges = Merge<Plan<AnyNetwork, Logistic>, real>;
    explicit Tables(const int64_t (*intervals)[2] = nullptr, int64_t count = 0)
        : plan(plan_of<k>(true)),
          form(intervals ? of_intervals : of_ranks),
          memory(sizeof(real) * Merges::reals(plan, form)),
          merge(plan, form, memory.template get<real>()) {
        for (int64_t slot = 0; slot < plan.slots; ++slot)
            weights[slot] = real(number(slot) + 1) / 2,
            weights[slot + plan.slots] = 1 - weights[slot];
        // Intervals belong to columns of both halves in turn.
        for (int64_t column = 0; column < n; ++column) {
            const int64_t item = column % (n / 2) * 2 + column / (n / 2);
            const bool counts = item < count;
            target[column] = counts ? real(intervals[item][0]) : 0;
            target[n + column] = counts ? real(intervals[item][1]) : real(n - 1);
            target[2 * n + column] = counts ? real(1) / real(n) : 0;
        }
        merge.find(weights, Target<real>{form, target, n, 0});
    }
    real entry(int64_t of_half, int64_t rank, int64_t wire, bool of_others) const {
        const auto term = merge.term_of(rank, of_others);
        const real *rows = merge.rows_of(of_half);
        const real sum = rows[term.row + wire] * merge.parts[term.tile + wire % merge_block] +
                         (term.other >= 0 ? rows[term.other + wire] : 0);
        return sum / side_unit<real>;
    }
    Plan<AnyNetwork, Logistic> &plan;
    Form form;
    real weights[2 * Merging<k>::most * slot_alignment], target[3 * n];
    Memory memory;
    Merges merge;
};

// A column of B sums to 1, and each rank with all others.
TEST(rows_of_all_ranks_are_shares) {
    static const Tables<7, double> tables;
    for (int64_t of_half = 0; of_half < 2; ++of_half)
        for (int64_t wire = 0; wire < 64; ++wire) {
            double sum = 0;
            for (int64_t rank = 0; rank < 128; ++rank) {
                const double entry = tables.entry(of_half, rank, wire, false);
                sum += entry;
                EXPECT(entry >= 0);
                EXPECT_NEAR(entry + tables.entry(of_half, rank, wire, true), 1, 1e-13);
            }
            EXPECT_NEAR(sum, 1, 1e-13);
        }
}

// Intervals inside of a block, over the border of two, and of whole blocks.
TEST(the_row_of_an_interval_is_the_sum_of_its_ranks) {
    const int64_t intervals[][2] = {{0, 0},   {1, 9},   {10, 15}, {16, 31},
                                    {32, 70}, {75, 80}, {96, 127}};
    static const Tables<7, double> of_ranks, tables(intervals, 7);
    EXPECT(tables.merge.is_factored() && tables.merge.long_count() == 3);
    for (const auto &each : intervals)
        for (int64_t of_half = 0; of_half < 2; ++of_half)
            for (int64_t wire = 0; wire < 64; ++wire) {
                double sum = 0;
                for (int64_t rank = each[0]; rank <= each[1]; ++rank)
                    sum += of_ranks.entry(of_half, rank, wire, false);
                const double found = tables.entry(of_half, each[0], wire, false),
                             others = tables.entry(of_half, each[0], wire, true);
                EXPECT_NEAR(found, sum, 1e-13);
                EXPECT_NEAR(found + others, 1, 1e-13);
            }
}

// Equal ones may repeat; others must not share a rank, nor begin with the same.
TEST(intervals_that_share_ranks_are_not_apart) {
    const int64_t same[][2] = {{3, 40}, {3, 40}, {50, 60}}, begin[][2] = {{3, 40}, {3, 41}},
                  inner[][2] = {{3, 40}, {20, 30}}, ends[][2] = {{3, 40}, {40, 60}},
                  block[][2] = {{3, 40}, {16, 16}};
    static const Tables<7, float> apart(same, 3), first(begin, 2), second(inner, 2), third(ends, 2),
        fourth(block, 2);
    EXPECT(apart.merge.is_factored());
    EXPECT(!first.merge.is_factored() && !second.merge.is_factored());
    EXPECT(!third.merge.is_factored() && !fourth.merge.is_factored());
}

// A half of the wires in which nothing counts has no tables, and few columns have none.
TEST(tables_are_of_halves_that_pay) {
    using Merges = Merge<Plan<AnyNetwork, Logistic>, float>;
    int64_t ranks[1024];
    Plan<AnyNetwork, Logistic> plan = {};
    plan.wires = 1024;
    const auto halves_of = [&](int64_t first, int64_t end) {
        for (int64_t c = 0; c < 1024; ++c) ranks[c] = first <= c && c < end ? c : ignored;
        return Merges::halves_of(plan, Target<float>{of_ranks, ranks, 1024, 0});
    };
    const int64_t group = group_blocks * lanes<float>;
    EXPECT(halves_of(0, 1024) == 3);
    EXPECT(halves_of(0, 512) == 1 && halves_of(512, 1024) == 2);
    EXPECT(halves_of(0, 512 / groups_for_tables) == 0);
    EXPECT(halves_of(0, 512 / groups_for_tables + 1) == 1);
    EXPECT(halves_of(512 - group, 512 + group) == 0);
}

// Butterflies in front have each comparator in front once, and no other; its columns stay in
// halves.
TEST(the_front_is_what_the_merge_leaves) {
    auto &plan = plan_of<6>(true);
    bool seen[Merging<6>::most * slot_alignment] = {};
    for (int64_t i = 0; i < plan.front_count; ++i) {
        const Butterfly &each = plan.front_butterflies[i];
        for (int32_t c = 0; c < count_of(each.pattern); ++c) {
            bool &at = seen[slot_of(each, each.pattern, c)];
            EXPECT(!at);
            at = true;
        }
        for (int32_t row = 0; row < rows_of(each.pattern); ++row)
            EXPECT(each.rows[row] / 32 == each.rows[0] / 32);
    }
    for (int64_t i = 0; i < plan.merge_layers * 32; ++i) {
        EXPECT(!seen[plan.merge_slots[i]]);
        seen[plan.merge_slots[i]] = true;
    }
    int64_t found = 0;
    for (bool each : seen) found += each;
    EXPECT(found == plan.comparators);
}

// The error-free form has other weights backward, and other losses ask for all entries.
TEST(other_calls_take_the_network_whole) {
    auto &plan = plan_of<8>(true);
    const float steepness = 1;
    for (Routing routing : {permutation, cross_entropy_of_shares, binary_cross_entropy_routing}) {
        const Call<Plan<AnyNetwork, Logistic>, float> call = {
            plan, routing, 1, nullptr, &steepness, 1, nullptr, 256, 256};
        EXPECT(!call.is_parted());
    }
    Plan<AnyNetwork, Exact> exact = {};
    static_cast<AnyNetwork &>(exact) = Merging<8>(true);
    const Call<Plan<AnyNetwork, Exact>, float> call = {
        exact, cross_entropy_routing, 1, nullptr, &steepness, 1, nullptr, 256, 256};
    EXPECT(!call.is_parted());
}
