// Networks: what a kernel's text says.
#include "../expect.h"

#include <nsc/relaxed/network.h>

using namespace nsc;

TEST(patterns_have_so_many_comparators_on_so_many_rows) {
    EXPECT(count_of(single) == 1 && rows_of(single) == 2);
    EXPECT(count_of(funnel) == 3 && rows_of(funnel) == 4);
    EXPECT(count_of(fan) == 3 && rows_of(fan) == 4);
    EXPECT(count_of(cross) == 4 && rows_of(cross) == 4);
}

TEST(limits_hold_together) {
    EXPECT(sizeof(Flips) * 8 == most_comparators);
    EXPECT(most_comparators % slot_alignment == 0);
    // A wire's number in a narrow butterfly and a place in a codelet take a byte.
    EXPECT(most_narrow_wires < 255 && most_wires < 255);
    EXPECT(AnyNetwork().wires == 0 && AnyNetwork().codelets == nullptr);
}
