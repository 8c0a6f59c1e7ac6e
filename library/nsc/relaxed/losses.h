// Losses of P against the true ranks, entry by entry, in C++ and in CUDA.
#pragma once

#include <nsc/relaxed/probability.h>

namespace nsc {

// The losses, in the order of nsc.contract.routings. Each is a struct with
//
//     at_truth_alone    whether it is a mean over columns, of the entry at the true rank, or one
//     over all entries; of(p, is_true)    the loss of an entry; slope(p, is_true) its derivative,
//     in units. Where there is one entry of a column, it does not read p.rest.
#define NSC_LOSSES(each) each(cross_entropy) each(binary_cross_entropy)

// The mean over columns of -log P[rank, column].
struct cross_entropy {
    static constexpr bool at_truth_alone = true;
    template <class real>
    static NSC_FUNCTION double of(Probability<real> p, bool) {
        return -double(log_of<real>(p));
    }
    template <class Relaxation, class real>
    static NSC_FUNCTION real slope(Probability<real> p, bool) {
        return -slope_of_log<Relaxation>(p.p);
    }
};

// The mean over entries of -log p where the entry's row is the true rank, and of -log(1 - p)
// elsewhere.
struct binary_cross_entropy {
    static constexpr bool at_truth_alone = false;
    template <class real>
    static NSC_FUNCTION double of(Probability<real> p, bool is_true) {
        return -double(log_of<real>(is_true ? p : complement(p)));
    }
    template <class Relaxation, class real>
    static NSC_FUNCTION real slope(Probability<real> p, bool is_true) {
        return is_true ? -slope_of_log<Relaxation>(p.p) : slope_of_log<Relaxation>(p.rest);
    }
};

// An entry's part of the mean that a loss is, and what its derivative is multiplied with.
template <class Loss>
NSC_FUNCTION double mean_part(double loss, int64_t wires) {
    return Loss::at_truth_alone ? loss / double(wires) : loss / double(wires) / double(wires);
}

template <class Loss, class real>
NSC_FUNCTION real mean_share(int64_t wires) {
    const real share = real(1) / real(wires);
    return Loss::at_truth_alone ? share : share * share;
}

}  // namespace nsc
