// Losses of P against a target, entry by entry, in C++ and in CUDA.
#pragma once

#include <nsc/relaxed/probability.h>
#include <nsc/relaxed/targets.h>

namespace nsc {

// The losses, in the order of nsc.contract.routings. Each is a struct with
//
//     of_truth            whether entries that are not true count nothing. An item that has one of
//                         several ranks then counts by the sum of their entries;
//     of(p, is_true)      the loss of an entry p that is true or not;
//     slope(p, is_true)   its derivative by p, in units.
#define NSC_LOSSES(each) each(cross_entropy) each(binary_cross_entropy)

// The mean over items of -log P[rank, item].
struct cross_entropy {
    static constexpr bool of_truth = true;
    template <class real>
    static NSC_FUNCTION double of(Probability<real> p, bool is_true) {
        return is_true ? -double(log_of<real>(p)) : 0;
    }
    template <class Relaxation, class real>
    static NSC_FUNCTION real slope(Probability<real> p, bool is_true) {
        return is_true ? -slope_of_log<Relaxation>(p.p) : 0;
    }
};

// The mean over entries of -log p where the entry is true, and of -log(1 - p) elsewhere.
struct binary_cross_entropy {
    static constexpr bool of_truth = false;
    template <class real>
    static NSC_FUNCTION double of(Probability<real> p, bool is_true) {
        return -double(log_of<real>(is_true ? p : complement(p)));
    }
    template <class Relaxation, class real>
    static NSC_FUNCTION real slope(Probability<real> p, bool is_true) {
        return is_true ? -slope_of_log<Relaxation>(p.p) : slope_of_log<Relaxation>(p.rest);
    }
};

// The loss of an entry that is true by a share: the mean of both. And its derivatives, by p in
// units and by the share.
template <class Loss, class real>
NSC_FUNCTION double mean_of(Probability<real> p, Log<real> share) {
    // What counts more comes first: of most entries the other counts nothing.
    const bool is_true = share > Log<real>(0.5);
    const Log<real> more = is_true ? share : 1 - share, less = is_true ? 1 - share : share;
    const double loss = more * Loss::template of<real>(p, is_true);
    return less ? loss + less * Loss::template of<real>(p, !is_true) : loss;
}

template <class Loss, class Relaxation, class real>
NSC_FUNCTION real mean_slope(Probability<real> p, real share) {
    if (share == 0 || share == 1) return Loss::template slope<Relaxation, real>(p, share != 0);
    return share * Loss::template slope<Relaxation, real>(p, true) +
           (1 - share) * Loss::template slope<Relaxation, real>(p, false);
}

template <class Loss, class real>
NSC_FUNCTION double share_slope(Probability<real> p) {
    return Loss::template of<real>(p, true) - Loss::template of<real>(p, false);
}

// What an entry counts in the loss of a sample, given what its item counts.
template <class Loss, class Weight>
NSC_FUNCTION Weight entry_weight(Weight item, int64_t wires) {
    return Loss::of_truth ? item : item * (1 / Weight(wires));
}

}  // namespace nsc
