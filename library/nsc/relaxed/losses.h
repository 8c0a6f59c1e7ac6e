// Losses of P against a target, entry by entry, in C++ and in CUDA.
#pragma once

#include <nsc/relaxed/probability.h>
#include <nsc/relaxed/targets.h>

namespace nsc {

// The losses, in the order of nsc.contract.routings. Each is a struct with
//
//     of_truth            whether entries that are not true count nothing, and are not asked for.
//     An
//                         item that has one of several ranks then counts by the sum of their
//                         entries;
//     of(p, is_true)      the loss of an entry p that is true or not;
//     slope(p, is_true)   its derivative by p, in units.
#define NSC_LOSSES(each) each(cross_entropy) each(binary_cross_entropy)

// The mean over items of -log P[rank, item].
struct cross_entropy {
    static constexpr bool of_truth = true;
    template <class real>
    static NSC_FUNCTION Vec<real> of(Probability<real> p, bool) {
        return -log_of<real>(p);
    }
    template <class Relaxation, class real>
    static NSC_FUNCTION Vec<real> slope(Probability<real> p, bool) {
        return -slope_of_log<Relaxation, real>(p.p);
    }
};

// The mean over entries of -log p where the entry is true, and of -log(1 - p) elsewhere.
struct binary_cross_entropy {
    static constexpr bool of_truth = false;
    template <class real>
    static NSC_FUNCTION Vec<real> of(Probability<real> p, bool is_true) {
        return -log_of<real>(is_true ? p : complement(p));
    }
    template <class Relaxation, class real>
    static NSC_FUNCTION Vec<real> slope(Probability<real> p, bool is_true) {
        return is_true ? -slope_of_log<Relaxation, real>(p.p)
                       : slope_of_log<Relaxation, real>(p.rest);
    }
};

// The mean of what is found of entries that are true by a share: of(is_true) finds it of those that
// are, or are not. It is not called where it counts nothing, as at most entries.
template <class Loss, class real, class Of>
NSC_STEP Vec<real> mean_of(Vec<real> share, Of of) {
    Vec<real> mean = {};
    if (any(share != 0)) mean = share != 0 ? share * of(true) : mean;
    if (!Loss::of_truth && any(share != 1))
        mean += share != 1 ? (1 - share) * of(false) : Vec<real>{};
    return mean;
}

// The loss of entries that are true by a share. And its derivatives, by p in units and by the
// share.
template <class Loss, class real>
NSC_FUNCTION Vec<real> mean_loss(Probability<real> p, Vec<real> share) {
    return mean_of<Loss, real>(
        share, [&](bool is_true) NSC_INLINE { return Loss::template of<real>(p, is_true); });
}

template <class Loss, class Relaxation, class real>
NSC_FUNCTION Vec<real> mean_slope(Probability<real> p, Vec<real> share) {
    return mean_of<Loss, real>(share, [&](bool is_true) NSC_INLINE {
        return Loss::template slope<Relaxation, real>(p, is_true);
    });
}

template <class Loss, class real>
NSC_FUNCTION Vec<real> share_slope(Probability<real> p) {
    const Vec<real> slope = Loss::template of<real>(p, true);
    return Loss::of_truth ? slope : slope - Loss::template of<real>(p, false);
}

// How much an entry counts in the loss of a sample, given how much its item counts.
template <class Loss, class Weight>
NSC_FUNCTION Weight entry_weight(Weight item, int64_t wires) {
    return Loss::of_truth ? item : item * (1 / Weight(wires));
}

}  // namespace nsc
