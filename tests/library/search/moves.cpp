// Moves: every change leaves comparators of the network's wires, in standard form.
#include "../expect.h"
#include "inputs.h"

#include <nsc/search/moves.h>

using namespace nsc::search;

TEST(changes_leave_comparators_in_standard_form) {
    const Inputs inputs(4, {0, 1, 2, 3});
    const Problem problem = inputs.problem();
    Random random{1};
    Comparators list;
    int64_t shortest = 99, longest = 0;
    for (int64_t step = 0; step < 20000; ++step) {
        const int64_t before = list.count;
        change(problem, random, list);
        EXPECT(list.count - before <= 1 && before - list.count <= 1);
        for (int64_t k = 0; k < list.count; ++k)
            EXPECT(list.at[k].lo < list.at[k].hi && list.at[k].hi < 4);
        if (list.count < shortest) shortest = list.count;
        if (list.count > longest) longest = list.count;
    }
    EXPECT(shortest == 0);
    EXPECT(longest > 20);
}

TEST(a_full_list_does_not_grow) {
    const Inputs inputs(4, {0, 1, 2, 3});
    Random random{2};
    Comparators list;
    while (list.count < most_listed) list.add({0, 1});
    for (int64_t step = 0; step < 5000; ++step) {
        change(inputs.problem(), random, list);
        EXPECT(list.count <= most_listed);
    }
}

TEST(random_comparators_are_all_that_there_are) {
    const Inputs inputs(4, {0, 1, 2, 3});
    Random random{3};
    int64_t seen[4][4] = {};
    for (int64_t k = 0; k < 6000; ++k) {
        const Comparator c = random_comparator(inputs.problem(), random);
        ++seen[c.lo][c.hi];
    }
    for (int64_t lo = 0; lo < 4; ++lo)
        for (int64_t hi = lo + 1; hi < 4; ++hi) EXPECT(seen[lo][hi] > 800 && seen[lo][hi] < 1200);
}
