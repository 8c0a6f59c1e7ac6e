// Calls: what operands are refused, how columns are cut, which blocks a butterfly is run on.
#include "calls.h"

#include <nsc/relaxed/call.h>

using namespace nsc;

template <class Network>
static Plan<Network, Logistic> &prepared() {
    static Plan<Network, Logistic> plan = {};
    EXPECT(plan.prepare() == ok);
    return plan;
}

template <class real>
static Call<Plan<Comb, Logistic>, real> call_of(Routing routing, int64_t columns,
                                                const void *payload = nullptr) {
    static const real steepness[] = {2, 3};
    return {prepared<Comb>(), routing, 2, nullptr, steepness, 1, payload, columns, columns};
}

template <class real>
static void expect_cuts() {
    for (int64_t columns : {int64_t(1), lanes<real>, 3 * lanes<real> + 1, int64_t(200)}) {
        const auto call = call_of<real>(route, columns);
        EXPECT(call.columns() == columns);
        int64_t blocks = 0, width = 0, of_groups = 0;
        for (int64_t group = 0; group < call.groups(); ++group) {
            EXPECT(0 < call.used_in(group) && call.used_in(group) <= group_blocks);
            blocks += call.used_in(group), of_groups += call.width_of_group(group);
        }
        for (int64_t block = 0; block < call.blocks(); ++block)
            width += call.width_of(block * lanes<real>);
        EXPECT(blocks == call.blocks() && width == columns && of_groups == columns);
    }
}

TEST(blocks_and_groups_cover_the_columns) {
    expect_cuts<float>();
    expect_cuts<double>();
}

TEST(a_routing_has_columns_of_its_own_or_of_a_payload) {
    EXPECT(call_of<float>(none, 7).columns() == 0);
    EXPECT(call_of<float>(permutation, 7).columns() == Comb::wires);
    EXPECT(call_of<float>(cross_entropy_routing, 7).columns() == Comb::wires);
    EXPECT(call_of<float>(rows, 7).columns() == 7 && call_of<float>(transposed, 7).columns() == 7);
}

TEST(chunks_are_cut_by_shape_alone) {
    EXPECT(call_of<float>(none, 0).chunks() == 0 && call_of<float>(none, 0).mixes_per_chunk() == 0);
    EXPECT(call_of<float>(route, 1).chunks() == 1);
    const auto large = call_of<float>(route, 100000);
    EXPECT(large.chunks() == most_chunks);
    EXPECT(large.mixes_per_chunk() == Comb::comparators * large.blocks() / most_chunks);
    const auto middle =
        call_of<double>(route, 200 * lanes<double>);  // 8,000 comparators times blocks
    EXPECT(middle.chunks() == 1 + Comb::comparators * 200 / chunk_mixes);
}

static Status checked(Routing routing, double steepness, int64_t last_rank) {
    const double both[] = {1, steepness};
    int64_t ranks[2 * Bitonic::wires] = {2, 0, 3, 1, 1, 3, 0, last_rank};
    const Call<Plan<Bitonic, Logistic>, double> call = {
        prepared<Bitonic>(), routing, 2, nullptr, both, 1, ranks, Bitonic::wires, Bitonic::wires};
    return call.check();
}

TEST(wrong_operands_are_refused) {
    for (Routing routing : {none, permutation, rows, cross_entropy_routing}) {
        EXPECT(checked(routing, 2, 2) == ok);
        for (double wrong : {0.0, -1.0, double(INFINITY), double(NAN)})
            EXPECT(checked(routing, wrong, 2) == bad_steepness);
    }
    EXPECT(checked(rows, 1, 3) == ok);  // a rank may be wanted twice
    EXPECT(checked(rows, 1, 4) == no_rank && checked(rows, 1, -1) == no_rank);
    for (int64_t wrong : {-1, 3, 4}) EXPECT(checked(cross_entropy_routing, 1, wrong) == bad_target);
    EXPECT(checked(cross_entropy_routing, 1, ignored) == ok);
}

TEST(shares_are_from_0_to_1) {
    float numbers[2 * lanes<float> + 3];
    constexpr int64_t count = sizeof numbers / sizeof *numbers;
    for (float wrong : {-0.1f, 1.1f, float(NAN), float(INFINITY)})
        for (int64_t at = 0; at < count; ++at) {
            for (int64_t i = 0; i < count; ++i) numbers[i] = i % 2 ? 0.0f : 1.0f;
            EXPECT(are_shares(numbers, count));
            numbers[at] = wrong;
            EXPECT(!are_shares(numbers, count) && are_shares(numbers, at));
        }
}

TEST(reversed_routings_run_the_mirrored_butterflies) {
    const auto &plan = prepared<Comb>();
    EXPECT(call_of<float>(permutation, 0).butterflies() == plan.butterflies);
    EXPECT(call_of<float>(route, 1).butterflies() == plan.butterflies);
    EXPECT(call_of<float>(transposed, 1).butterflies() == plan.mirrored_butterflies);
    EXPECT(call_of<float>(rows, 1).butterflies() == plan.mirrored_butterflies);
}

TEST(one_steepness_and_one_payload_may_serve_all_samples) {
    const float steepness[] = {2, 3};
    const int64_t ranks[] = {1, 2, 3, 4};
    using P = Plan<Comb, Logistic>;
    const Call<P, float> each = {prepared<Comb>(), rows, 2, nullptr, steepness, 1, ranks, 2, 2},
                         same = {prepared<Comb>(), rows, 2, nullptr, steepness, 0, ranks, 0, 2};
    EXPECT(each.steepness_of(1) == 3 && each.ranks_of(1)[0] == 3);
    EXPECT(same.steepness_of(1) == 2 && same.ranks_of(1)[0] == 1);
}

// A comparator of the comb has its two wires alone. Of rows, the mirrored butterflies are run.
template <class real>
static void expect_blocks() {
    const int64_t ranks[] = {0, 79, 3, 8, 8, 41, 42, 43, 44, 45, 46, 47, 1, 60, 61, 62, 63};
    constexpr int64_t count = sizeof ranks / sizeof *ranks;
    uint8_t on[Comb::butterfly_count];
    const auto of_P = call_of<real>(permutation, 0), of_rows = call_of<real>(rows, count, ranks),
               of_payload = call_of<real>(route, count);
    for (int64_t group = 0; group < of_P.groups(); ++group) {
        const int64_t first = group * group_blocks, used = of_P.used_in(group);
        of_P.find_blocks(on, of_P.cones_of(of_P.word_of(group), false, nullptr), 0, first, used);
        const Butterfly *butterflies = of_P.butterflies();
        for (int64_t i = 0; i < Comb::butterfly_count; ++i)
            for (int64_t k = 0; k < 8; ++k) {
                const bool meets = (first + k) * lanes<real> / cone_columns ==
                                   butterflies[i].rows[0] / cone_columns;
                EXPECT((on[i] >> k & 1) == (k < used && meets));
            }
    }
    for (int64_t group = 0; group < of_rows.groups(); ++group) {
        const int64_t first = group * group_blocks, used = of_rows.used_in(group);
        of_rows.find_blocks(on, nullptr, 0, first, used);
        const Butterfly *butterflies = of_rows.butterflies();
        for (int64_t i = 0; i < Comb::butterfly_count; ++i)
            for (int64_t k = 0; k < 8; ++k) {
                bool meets = false;
                for (int64_t c = (first + k) * lanes<real>; c < (first + k + 1) * lanes<real>; ++c)
                    meets |= c < count &&
                             ranks[c] / cone_columns == butterflies[i].rows[0] / cone_columns;
                EXPECT((on[i] >> k & 1) == (k < used && meets));
            }
        of_payload.find_blocks(on, nullptr, 0, first, used);
        for (uint8_t each : on) EXPECT(each == (1 << used) - 1);
    }
}

TEST(a_butterfly_is_run_on_the_blocks_in_its_cone) {
    expect_blocks<float>();
    expect_blocks<double>();
}

TEST(a_loss_leaves_out_groups_in_which_no_item_counts) {
    int64_t ranks[Comb::wires];
    float intervals[3 * Comb::wires] = {};
    static float shares[(Comb::wires + 1) * Comb::wires];
    constexpr int64_t columns = group_blocks * lanes<float>, counted = columns + 1;
    for (int64_t c = 0; c < Comb::wires; ++c) ranks[c] = c == counted ? 3 : ignored;
    intervals[2 * Comb::wires + counted] = 0.5;
    for (int64_t c = 0; c < Comb::wires; ++c) shares[c] = 1;
    shares[Comb::wires * Comb::wires + counted] = 0.5;
    const auto of_ranks = call_of<float>(cross_entropy_routing, 0, ranks),
               of_intervals = call_of<float>(cross_entropy_of_intervals, 0, intervals),
               of_shares = call_of<float>(cross_entropy_of_shares, 0, shares),
               of_P = call_of<float>(permutation, 0);
    for (int64_t group = 0; group < of_P.groups(); ++group) {
        const bool counts = counted / columns == group;
        EXPECT(of_ranks.counts(0, group) == counts && of_intervals.counts(0, group) == counts);
        EXPECT(of_shares.counts(0, group) == counts && of_P.counts(0, group));
    }
}
