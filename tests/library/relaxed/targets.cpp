// Targets: the truth of a column, and which numbers are refused.
#include "../expect.h"

#include <nsc/relaxed/targets.h>

using namespace nsc;

constexpr int64_t wires = 3;

TEST(ranks_count_the_same_but_for_those_that_are_ignored) {
    const int64_t ranks[] = {2, ignored, 0};
    const Target<float> target = {of_ranks, ranks, wires, 0.5};
    EXPECT(target.truth(0).first == 2 && target.truth(0).last == 2 &&
           target.truth(0).weight == 0.5);
    EXPECT(target.truth(1).weight == 0 && target.truth(2).first == 0);
    EXPECT(numbers_of(of_ranks, wires) == 3);
}

TEST(an_interval_shares_itself_out) {
    const double reals[] = {0, 1, 2, 1, 1, 2, 0.25, 0, 3};
    const Target<double> target = {of_intervals, reals, wires, 0};
    const Truth<double> truth = target.truth(0);
    EXPECT(truth.first == 0 && truth.last == 1 && truth.weight == 0.25);
    EXPECT(truth.is_in(0) && truth.is_in(1) && !truth.is_in(2));
    EXPECT(truth.share(1) == 0.5 && truth.share(2) == 0);
    EXPECT(target.truth(2).share(2) == 1 && target.truth(2).weight == 3);
    EXPECT(numbers_of(of_intervals, wires) == 9);
}

TEST(shares_have_weights_behind_them) {
    const float reals[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1, 2, 3};
    const Target<float> target = {of_shares, reals, wires, 0};
    EXPECT(target.share(1, 2) == 0.6f && target.truth(1).weight == 2);
    EXPECT(numbers_of(of_shares, wires) == 12);
}

TEST(wrong_numbers_are_refused) {
    for (int64_t wrong : {-1, 3, -101, -99}) {
        const int64_t ranks[] = {wrong, 2, ignored};
        const Target<float> target = {of_ranks, ranks, wires, 1};
        EXPECT(!target.is_valid(0) && target.is_valid(1) && target.is_valid(2));
    }
    const double nan = __builtin_nan(""), infinity = __builtin_inf();
    const auto interval = [](double first, double last, double weight) {
        const double reals[] = {first, 0, 0, last, 0, 0, weight, 0, 0};
        return Target<double>{of_intervals, reals, wires, 0}.is_valid(0);
    };
    EXPECT(interval(0, 2, 1) && interval(1, 1, 0));
    EXPECT(!interval(-1, 2, 1) && !interval(2, 1, 1) && !interval(0, 3, 1) && !interval(0.5, 1, 1));
    EXPECT(!interval(0, 1.5, 1) && !interval(nan, 1, 1) && !interval(0, nan, 1));
    EXPECT(!interval(0, 1, -1) && !interval(0, 1, nan) && !interval(0, 1, infinity));
    const auto shares = [](double share, double weight) {
        const double reals[] = {0, 0, 0, share, 0, 0, 0, 0, 0, weight, 0, 0};
        const Target<double> target = {of_shares, reals, wires, 0};
        return target.is_valid(0) && is_share(share);
    };
    EXPECT(shares(0, 0) && shares(1, 2) && !shares(-0.1, 1) && !shares(1.1, 1));
    EXPECT(!shares(nan, 1) && !shares(0.5, -1) && !shares(0.5, nan) && !shares(0.5, infinity));
}
