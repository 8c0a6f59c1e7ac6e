// Networks: what a kernel's text says, and the same as variables.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/network.h>

using namespace nsc;

TEST(patterns_have_so_many_comparators_on_so_many_rows) {
    EXPECT(count_of(single) == 1 && rows_of(single) == 2);
    EXPECT(count_of(funnel) == 3 && rows_of(funnel) == 4);
    EXPECT(count_of(fan) == 3 && rows_of(fan) == 4);
    EXPECT(count_of(cross) == 4 && rows_of(cross) == 4);
}

template <class Network>
static void expect_same() {
    const AnyNetwork any = as_variables(Network());
    EXPECT(any.wires == Network::wires && any.comparators == Network::comparators);
    EXPECT(any.levels == Network::levels && any.merge_levels == Network::merge_levels);
    EXPECT(any.slots == Network::slots);
    EXPECT(any.longest_codelet == Network::longest_codelet);
    EXPECT(any.codelet_count == Network::codelet_count);
    EXPECT(any.butterfly_count == Network::butterfly_count);
    EXPECT(any.narrow_count == Network::narrow_count);
    EXPECT(any.codelets == Network::codelets && any.spreads == Network::spreads);
    EXPECT(any.shapes == Network::shapes && any.pairs == Network::pairs);
    EXPECT(any.flips == Network::flips && any.shape_butterflies == Network::shape_butterflies);
    EXPECT(any.narrow_butterflies == Network::narrow_butterflies);
}

TEST(a_network_as_variables_is_the_same) {
    expect_same<Bitonic>();
    expect_same<Braid>();
}

TEST(limits_hold_together) {
    EXPECT(sizeof(Flips) * 8 == most_comparators);
    EXPECT(most_comparators % slot_alignment == 0);
    // A wire's number in a narrow butterfly and a place in a codelet take a byte.
    EXPECT(most_narrow_wires < 255 && most_wires < 255);
    EXPECT(AnyNetwork().wires == 0 && AnyNetwork().codelets == nullptr);
}
