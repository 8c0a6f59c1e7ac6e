// The cross entropy of a network that ends in a merge: in two parts it is what it is in one.
#include "calls.h"
#include "merging.h"

#include <nsc/relaxed/kernel.h>
#include <nsc/relaxed/merge_columns.h>

using namespace nsc;

template <class real, int n>
struct Results {
    static constexpr int64_t most = many_samples + 1;
    real losses[most], at_once[most], x_grad[most * n], steepness_grad[most], values[most * n];
};

// What items are to have: ranks, intervals that are apart, some that are not, or ranks and
// intervals of few items.
enum Wanted { each_a_rank, apart, overlapping, ranks_of_few, intervals_of_few };

// Whether an item may count. Of few items, these are the first ones, or those of a half.
static bool may_count(int64_t n, int64_t sample, int64_t item, Wanted wanted) {
    if (wanted != ranks_of_few && wanted != intervals_of_few) return true;
    return sample % 3 == 0 ? item < 5 : item / (n / 2) == sample % 3 - 1;
}

// Writes the interval of an item of some rank, and what it counts. Samples have groups of several
// sizes, one of which begins and ends with a block, or a rank for each item.
template <class real>
static void set_interval(real *of_sample, int64_t n, int64_t sample, int64_t item, int64_t rank,
                         Wanted wanted) {
    const int64_t sizes[] = {1, 3, 16, 12, 33, 1, 1, 20, 5};
    int64_t first = 0, end = 0;
    for (int64_t i = 0; end <= rank; ++i) {
        first = end;
        end += sample % 4 == 1 ? n / 4 + 1 : sample % 4 == 2 ? 1 : sizes[i % 9];
    }
    if (end > n) end = n;
    if (wanted == overlapping && sample % 2 && rank % 5 == 0) first = rank / 2;
    const bool counts = item % 11 != 3 && may_count(n, sample, item, wanted);
    of_sample[item] = counts ? real(first) : 0;
    of_sample[n + item] = counts ? real(end - 1) : real(item % 3);
    of_sample[2 * n + item] = counts ? real(1 + item % 2) / real(n) : 0;
}

// The losses and gradients of a few samples, of which one is nearly sorted and one is far from it.
template <class real, int k>
static Results<real, 1 << k> &results_of(bool in_parts, int64_t batch, real steep, ParallelFor pool,
                                         Wanted wanted = each_a_rank) {
    constexpr int n = 1 << k;
    using Found = Results<real, n>;
    static Found results[2];
    static real x[Found::most * n], steepness[Found::most], values_grad[Found::most * n];
    static int64_t ranks[Found::most * n];
    static real intervals[Found::most * 3 * n];
    Found &found = results[in_parts];
    for (int64_t i = 0; i < batch * n; ++i) {
        const int64_t sample = i / n, item = i % n, rank = (item * 37 + sample) % n;
        ranks[i] = may_count(n, sample, item, wanted) ? rank : ignored;
        set_interval(intervals + sample * 3 * n, n, sample, item, rank, wanted);
        x[i] = real(sample == 1 ? double(rank) : sample == 2 ? -double(rank) : 9 * number(i)) / n;
        values_grad[i] = real(number(i + 7)) / n;
    }
    if (batch > 1) ranks[n + 3] = ignored;
    for (int64_t b = 0; b < batch; ++b) steepness[b] = steep * real(1 + b % 3);
    auto &plan = plan_of<k>(in_parts);
    const bool is_rank = wanted == each_a_rank || wanted == ranks_of_few;
    const void *payload = is_rank ? static_cast<const void *>(ranks) : intervals;
    const auto call = call_of(plan, is_rank ? cross_entropy_routing : cross_entropy_of_intervals,
                              batch, x, steepness, 1, payload, is_rank ? n : 3 * n, n);
    EXPECT(call.is_parted() == (in_parts && n >= fewest_parted_wires));
    EXPECT(forward(plan, call, found.values, found.losses, pool) == ok);
    EXPECT(backward(plan, call, values_grad, (real *)nullptr, found.x_grad, found.steepness_grad,
                    (real *)nullptr, found.at_once, pool) == ok);
    return found;
}

// A loss is that of one part, and gradients are as near to those in double.
template <class real, int k>
static void expect_the_same(real steep, Wanted wanted) {
    constexpr int n = 1 << k;
    for (int64_t batch : {int64_t(1), int64_t(3), many_samples + 1}) {
        static Results<double, n> exact = {};
        exact = results_of<double, k>(false, batch, double(steep), nullptr, wanted);
        const auto &whole = results_of<real, k>(false, batch, steep, nullptr, wanted),
                   &parts = results_of<real, k>(true, batch, steep, nullptr, wanted);
        for (int64_t b = 0; b < batch; ++b) {
            EXPECT(same_bits(parts.losses[b], parts.at_once[b]));
            EXPECT_NEAR(parts.losses[b], whole.losses[b], nearly<real> * fabs(whole.losses[b]));
            const double of_steepness = exact.steepness_grad[b];
            double most = fabs(of_steepness), error = fabs(whole.steepness_grad[b] - of_steepness);
            for (int64_t i = b * n; i < (b + 1) * n; ++i) {
                most = fmax(most, fabs(exact.x_grad[i]));
                error = fmax(error, fabs(whole.x_grad[i] - exact.x_grad[i]));
            }
            const double tolerance = 3 * error + nearly<real> * most;
            for (int64_t i = b * n; i < (b + 1) * n; ++i)
                EXPECT_NEAR(parts.x_grad[i], exact.x_grad[i], tolerance);
            EXPECT_NEAR(parts.steepness_grad[b], of_steepness, tolerance);
        }
    }
}

TEST(in_two_parts_a_loss_and_its_gradients_are_what_they_are_in_one) {
    for (Wanted wanted : {each_a_rank, apart, overlapping, ranks_of_few, intervals_of_few})
        for (float steep : {1.f, 30.f, 900.f}) {
            expect_the_same<float, 6>(steep, wanted);
            expect_the_same<double, 6>(steep, wanted);
        }
    for (Wanted wanted : {each_a_rank, apart, intervals_of_few}) {
        expect_the_same<float, 7>(30, wanted);
        expect_the_same<double, 7>(30, wanted);
    }
}

// 1 - p of items that are almost certain of their rank: a sum, without a difference.
TEST(small_losses_have_all_digits) {
    for (Wanted wanted : {each_a_rank, apart}) {
        const double exact = results_of<double, 8>(true, 2, 2000, nullptr, wanted).losses[1];
        EXPECT(exact > 0 && exact < 1e-3);
        const float found = results_of<float, 8>(true, 2, 2000, nullptr, wanted).losses[1];
        EXPECT_NEAR(found, exact, 1e-4 * exact);
    }
}

TEST(bits_are_the_same_in_any_pool_and_any_batch) {
    constexpr int k = 7, n = 1 << k;
    for (Wanted wanted : {each_a_rank, apart, overlapping, ranks_of_few, intervals_of_few}) {
        static Results<float, n> alone = {};
        alone = results_of<float, k>(true, 3, 20, nullptr, wanted);
        const auto &pooled = results_of<float, k>(true, 3, 20, last_first, wanted);
        EXPECT(memcmp(alone.losses, pooled.losses, sizeof(float) * 3) == 0);
        EXPECT(memcmp(alone.x_grad, pooled.x_grad, sizeof(float) * 3 * n) == 0);
        const auto &many = results_of<float, k>(true, many_samples + 1, 20, last_first, wanted);
        EXPECT(memcmp(alone.losses, many.losses, sizeof(float) * 3) == 0);
        EXPECT(memcmp(alone.x_grad, many.x_grad, sizeof(float) * 3 * n) == 0);
        EXPECT(memcmp(alone.steepness_grad, many.steepness_grad, sizeof(float) * 3) == 0);
    }
}
