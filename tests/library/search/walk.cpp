// Walks: what is found, from nothing and from a network, again with the same seed.
#include "../expect.h"
#include "inputs.h"

#include <nsc/search/walk.h>

using namespace nsc::search;

static Standing nothing() {
    Standing standing;
    standing.current.count = standing.best.count = standing.origin.count = -1;
    standing.best_cost = ~uint64_t(0), standing.since = 0;
    return standing;
}

TEST(the_smallest_sorter_is_found_the_same_way_twice) {
    Inputs inputs(4, {0, 1, 2, 3});
    const Problem problem = inputs.problem();
    Standing first = nothing(), second = nothing();
    EXPECT(nsc_search(&problem, &first, 7, 5000, 1000, 0) == 5000);
    EXPECT(nsc_search(&problem, &second, 7, 5000, 1000, 0) == 5000);
    EXPECT(first.best.count == 5);
    EXPECT(inputs.pool().passes(first.best));
    EXPECT(inputs.pool().passes(first.current));
    EXPECT(first.current.count == second.current.count && first.best_cost == second.best_cost);
    EXPECT(!memcmp(first.current.at, second.current.at,
                   sizeof(Comparator) * size_t(first.current.count)));
}

TEST(it_ends_at_a_gain) {
    const Inputs inputs(4, {0, 1, 2, 3});
    const Problem problem = inputs.problem();
    Standing standing = nothing();
    standing.origin = sorter_of_four();
    standing.origin.add({0, 1});
    standing.best = standing.origin;
    const int64_t tried = nsc_search(&problem, &standing, 1, 100000, 100000, 1);
    EXPECT(tried > 0 && tried < 100000);
    EXPECT(standing.best.count == 5);
}

TEST(a_symmetric_walk_keeps_mirror_images) {
    const Inputs inputs(4, {0, 1, 2, 3});
    Problem problem = inputs.problem();
    problem.symmetric = 1;
    Standing standing = nothing();
    EXPECT(nsc_search(&problem, &standing, 5, 5000, 1000, 0) == 5000);
    Comparators whole;
    problem.expand(standing.best, whole);
    EXPECT(whole.count == 5);
    EXPECT(standing.best.count < 5);
}

TEST(what_can_be_left_out_is_found) {
    const Inputs inputs(4, {0, 1, 2, 3});
    const Problem problem = inputs.problem();
    Comparators list = sorter_of_four();
    list.add({0, 3}), list.add({1, 2});
    const int64_t places[] = {0, 0, 5, 5, 5, 6, 0, 6};
    bool removable[4];
    EXPECT(nsc_removable(&problem, &list, places, 4, removable) == 0);
    EXPECT(!removable[0] && removable[1] && removable[2] && !removable[3]);
}
