// Routings: what the routing pass does, in C++ and in CUDA.
#pragma once

#include <nsc/relaxed/losses.h>

namespace nsc {

// The routings and their numbers, as nsc.contract.routings has them. The losses come last, each
// with the forms of its target.
enum Routing {
    none,
    permutation,
    route,
    transposed,
    rows,
#define NSC_LOSS(name) name##_routing, name##_of_intervals, name##_of_shares,
    NSC_LOSSES(NSC_LOSS)
#undef NSC_LOSS
};

// Whether a routing gives a loss for each sample.
NSC_FUNCTION bool is_loss(Routing routing) { return routing > rows; }

// The form of a loss's target.
NSC_FUNCTION Form form_of(Routing routing) { return Form((routing - rows - 1) % 3); }

// Whether a routing has a payload of reals, with a gradient for it.
NSC_FUNCTION bool has_shares(Routing routing) {
    return is_loss(routing) && form_of(routing) == of_shares;
}

// Whether a routing's payload is the unit matrix: what is routed is P, or a loss is read off it.
NSC_FUNCTION bool routes_identity(Routing routing) {
    return routing == permutation || is_loss(routing);
}

// Whether a routing takes columns of a payload.
NSC_FUNCTION bool has_columns(Routing routing) { return routing == route || routing == transposed; }

// Whether a routing takes ranks, whose rows of P are wanted.
NSC_FUNCTION bool has_ranks(Routing routing) { return routing == rows; }

// Whether a routing runs the comparators from the last to the first.
NSC_FUNCTION bool is_reversed(Routing routing) { return routing == transposed || routing == rows; }

// Calls visit(Loss()) with the loss of a routing.
template <class Visit>
NSC_STEP void with_loss(Routing routing, Visit visit) {
    switch (routing) {
#define NSC_LOSS(name)        \
    case name##_routing:      \
    case name##_of_intervals: \
    case name##_of_shares: return visit(name());
        NSC_LOSSES(NSC_LOSS)
#undef NSC_LOSS
        default: return;
    }
}

}  // namespace nsc
