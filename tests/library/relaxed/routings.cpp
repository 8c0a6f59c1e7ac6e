// Routings: what each takes and gives.
#include "../expect.h"

#include <nsc/relaxed/routings.h>

using namespace nsc;

struct Facts {
    Routing routing;
    bool loss, identity, columns, ranks, reversed;
};

constexpr Facts facts[] = {{none, false, false, false, false, false},
                           {permutation, false, true, false, false, false},
                           {route, false, false, true, false, false},
                           {transposed, false, false, true, false, true},
                           {rows, false, false, false, true, true},
#define NSC_FACTS(name)                                         \
    {name##_routing, true, true, false, false, false},          \
        {name##_of_intervals, true, true, false, false, false}, \
        {name##_of_shares, true, true, false, false, false},
                           NSC_LOSSES(NSC_FACTS)
#undef NSC_FACTS
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

#define NSC_NUMBER(name) \
    static int number_of(name) { return name##_routing; }
NSC_LOSSES(NSC_NUMBER)
#undef NSC_NUMBER

static int loss_of(Routing routing) {
    int visited = 0;
    with_loss(routing, [&](auto loss) { visited = 100 * visited + number_of(loss); });
    return visited;
}

TEST(the_loss_of_a_routing_is_visited_once) {
#define NSC_VISITS(name)                                    \
    EXPECT(loss_of(name##_routing) == name##_routing);      \
    EXPECT(loss_of(name##_of_intervals) == name##_routing); \
    EXPECT(loss_of(name##_of_shares) == name##_routing);
    NSC_LOSSES(NSC_VISITS)
#undef NSC_VISITS
    EXPECT(loss_of(permutation) == 0 && loss_of(none) == 0);
}

TEST(each_loss_has_the_three_forms_of_a_target) {
#define NSC_FORMS(name)                                   \
    EXPECT(form_of(name##_routing) == of_ranks);          \
    EXPECT(form_of(name##_of_intervals) == of_intervals); \
    EXPECT(form_of(name##_of_shares) == of_shares);
    NSC_LOSSES(NSC_FORMS)
#undef NSC_FORMS
    EXPECT(has_shares(cross_entropy_of_shares) && !has_shares(cross_entropy_of_intervals));
    EXPECT(!has_shares(permutation) && !has_shares(route));
}
