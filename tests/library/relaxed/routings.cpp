// Routings: what each takes and gives.
#include "../expect.h"

#include <nsc/relaxed/routings.h>

using namespace nsc;

struct Facts {
    Routing routing;
    bool loss, identity, columns, ranks, reversed;
};

constexpr Facts facts[] = {
    {none, false, false, false, false, false},
    {permutation, false, true, false, false, false},
    {route, false, false, true, false, false},
    {transposed, false, false, true, false, true},
    {rows, false, false, false, true, true},
    {cross_entropy_routing, true, true, false, false, false},
    {cross_entropy_of_intervals, true, true, false, false, false},
    {cross_entropy_of_shares, true, true, false, false, false},
    {binary_cross_entropy_routing, true, true, false, false, false},
    {binary_cross_entropy_of_intervals, true, true, false, false, false},
    {binary_cross_entropy_of_shares, true, true, false, false, false},
};

TEST(routings_are_numbered_and_say_what_they_take) {
    int code = 0;
    for (const Facts &each : facts) {
        EXPECT(each.routing == code++);
        EXPECT(is_loss(each.routing) == each.loss);
        EXPECT(routes_identity(each.routing) == each.identity);
        EXPECT(has_columns(each.routing) == each.columns);
        EXPECT(has_ranks(each.routing) == each.ranks);
        EXPECT(is_reversed(each.routing) == each.reversed);
    }
}

static int number_of(cross_entropy) { return 1; }
static int number_of(binary_cross_entropy) { return 2; }

static int loss_of(Routing routing) {
    int visited = 0;
    with_loss(routing, [&](auto loss) { visited = 10 * visited + number_of(loss); });
    return visited;
}

TEST(the_loss_of_a_routing_is_visited_once) {
    EXPECT(loss_of(cross_entropy_routing) == 1);
    EXPECT(loss_of(cross_entropy_of_shares) == 1);
    EXPECT(loss_of(binary_cross_entropy_of_intervals) == 2);
    EXPECT(loss_of(binary_cross_entropy_routing) == 2);
    EXPECT(loss_of(permutation) == 0 && loss_of(none) == 0);
}

TEST(each_loss_has_the_three_forms_of_a_target) {
    EXPECT(form_of(cross_entropy_routing) == of_ranks);
    EXPECT(form_of(cross_entropy_of_intervals) == of_intervals);
    EXPECT(form_of(binary_cross_entropy_routing) == of_ranks);
    EXPECT(form_of(binary_cross_entropy_of_shares) == of_shares);
    EXPECT(has_shares(cross_entropy_of_shares) && !has_shares(cross_entropy_of_intervals));
    EXPECT(!has_shares(permutation) && !has_shares(route));
}
