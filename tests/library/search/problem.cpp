// Problems: mirror images, layers, what outputs need, costs.
#include "../expect.h"
#include "inputs.h"

#include <nsc/search/problem.h>

using namespace nsc::search;

TEST(mirror_images_follow_their_comparators) {
    Problem problem = Inputs(4, {0, 1, 2, 3}).problem();
    Comparators whole;
    problem.symmetric = 1;
    problem.expand(listed({{0, 1}, {0, 3}}), whole);
    EXPECT(whole.count == 3);
    EXPECT(whole.at[1] == Comparator{2, 3});
    EXPECT(whole.at[2] == Comparator{0, 3});
}

TEST(a_comparator_comes_as_early_as_it_can) {
    const Inputs inputs(4, {0, 1, 2, 3});
    const Problem problem = inputs.problem();
    EXPECT(layers_of(problem, sorter_of_four()).depth == 3);
    EXPECT(layers_of(problem, sorter_of_four()).in_last == 1);
    EXPECT(layers_of(problem, listed({{0, 1}, {0, 1}, {2, 3}, {2, 3}})).depth == 2);
    EXPECT(layers_of(problem, listed({{0, 1}, {0, 1}, {2, 3}, {2, 3}})).in_last == 2);
}

TEST(what_no_output_needs_is_not_counted) {
    const Inputs least(4, {0});
    EXPECT(half_operations_of(least.problem(), sorter_of_four()) == 3);
    Comparators list = sorter_of_four();
    remove_idle(least.problem(), list);
    EXPECT(list.count == 3);
    EXPECT(list.at[2] == Comparator{0, 1});
    EXPECT(half_operations_of(least.problem(), list) == 3);
}

TEST(costs_have_their_first_term_highest) {
    const Inputs inputs(4, {0, 1, 2, 3});
    Problem problem = inputs.problem();
    const auto cost = [&] { return cost_of(problem, sorter_of_four()); };
    EXPECT(cost() == in_one(0, 5, 3));
    problem.objective = Objective::depth;
    EXPECT(cost() == in_one(0, 3, 5));
    EXPECT(step_cost_of(problem, sorter_of_four()) == in_one(0, 3, 1));
    problem.objective = Objective::cost;
    EXPECT(cost() == in_one(0, 10, 5, 3));
    EXPECT(step_cost_of(problem, sorter_of_four()) == in_one(0, 0, 10));
    problem.most_layers = 2;
    EXPECT(cost() == in_one(1, 10, 5, 3));
    EXPECT(step_cost_of(problem, sorter_of_four()) == in_one(1, 1, 10));
}
