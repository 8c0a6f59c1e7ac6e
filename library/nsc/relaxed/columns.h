// Columns of P in lanes, and their losses.
//
// P of 1,024 wires takes 4 MB a sample. A loss reads a block of columns and forgets it, and the
// same pass finds the gradient. The gradient is the derivative of the value returned. Logarithms
// are cut at -80 in both types, because a single weight below e^-87 is 0 in float32. P begins at
// 2^72 and is scaled where it is stored, so that small products stay normal numbers.
#pragma once

#include <nsc/relaxed/routings.h>
#include <nsc/vectors.h>

namespace nsc {

// A column of P in each lane, of one sample or of several. Rows are `pitch` apart.
template <class real>
struct Columns {
    Vec<real> &operator[](int64_t row) const { return first[row * pitch]; }
    void clear(int64_t wires) const {
        for (int64_t row = 0; row < wires; ++row) (*this)[row] = Vec<real>{};
    }
    Vec<real> *first;
    int64_t pitch;
};

// The rest of each column's large entry: the sum of those that are not large, in a fixed order.
template <class P, class real>
Vec<real> rests_of_columns(const P &plan, Columns<real> block) {
    Vec<real> sums[4] = {};
    for (int64_t row = 0; row < plan.wires; ++row)
        sums[row % 4] += block[row] > real(0.75) * unit<real> ? Vec<real>{} : block[row];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Entries as probabilities, given the rest of each column's large one.
template <class real>
inline Probability<real> probability(Vec<real> p, Vec<real> rests) {
    return {p, is_large<real>(p) ? rests : unit<real> - p};
}

template <class real>
inline Probability<double> in_doubles(Probability<real> of, int64_t which) {
    return {nsc::in_doubles<real>(of.p, which), nsc::in_doubles<real>(of.rest, which)};
}

// The truths of a block of columns, one in each lane: columns of a sample, or a column of several
// samples. Lanes that have none count nothing.
template <class real>
struct Truths {
    // Takes `width` truths; target_of(k) is the target of lane k, column_of(k) its column.
    template <class TargetOf, class ColumnOf>
    Truths(int64_t width, TargetOf target_of, ColumnOf column_of) : width(width) {
        for (int64_t k = 0; k < width; ++k) {
            const Target<real> &target = target_of(k);
            const Truth<real> truth = target.truth(column_of(k));
            rank[k] = truth.first;
            first[k] = real(truth.first), last[k] = real(truth.last);
            weight[k] = truth.weight, part[k] = real(truth.part());
            several |= truth.first != truth.last;
            shares = target.form == of_shares, stride = target.wires;
            if (shares) share_of[k] = target.reals() + column_of(k);
            adjacent &= shares && share_of[k] == share_of[0] + k;
        }
    }
    // The lanes whose truth a row is in.
    auto has(int64_t row) const { return (first <= all(real(row))) & (last >= all(real(row))); }
    // How much of a row each lane's item has.
    Vec<real> share(int64_t row) const {
        if (!shares) return has(row) ? part : Vec<real>{};
        if (adjacent) return load(share_of[0] + row * stride, width);
        Vec<real> found = {};
        for (int64_t k = 0; k < width; ++k) found[k] = share_of[k][row * stride];
        return found;
    }
    // How much an entry of each lane's column counts.
    template <class Loss>
    Vec<real> entry_weights(int64_t wires) const {
        Vec<real> found = {};
        for (int64_t k = 0; k < width; ++k) found[k] = real(entry_weight<Loss>(weight[k], wires));
        return found;
    }
    int64_t width;
    int64_t rank[lanes<real>];                   // the first one, `first` as an index
    Vec<real> first = {}, last = {}, part = {};  // of its ranks each item has a part
    double weight[lanes<real>];
    bool several = false;  // whether an item has one of several ranks
    bool shares = false;   // whether the target is one of shares: share_of[k][row * stride]
    bool adjacent = true;  // whether these lie side by side
    const real *share_of[lanes<real>];
    int64_t stride = 0;
};

// The probability of each column's truth.
template <class P, class real>
Probability<real> probability_of(const P &plan, Columns<real> block, const Truths<real> &truths) {
    Vec<real> inside = {}, outside = {};
    if (truths.several) {
        for (int64_t row = 0; row < plan.wires; ++row) {
            const auto is_in = truths.has(row);
            inside += is_in ? block[row] : Vec<real>{};
            outside += is_in ? Vec<real>{} : block[row];
        }
    } else {
        for (int64_t k = 0; k < truths.width; ++k) inside[k] = block[truths.rank[k]][k];
        if (any(is_large<real>(inside))) outside = rests_of_columns(plan, block);
    }
    return probability<real>(inside, outside);
}

// Adds losses, given the losses of the truths' lanes before their weights.
template <class Loss, class P, class real>
void add_weighted(const P &plan, const Vec<double> *of_lanes, const Truths<real> &truths,
                  double *losses) {
    for (int64_t k = 0; k < truths.width; ++k)
        if (truths.weight[k])
            losses[k] += entry_weight<Loss>(truths.weight[k], plan.wires) *
                         of_lanes[k / lanes<double>][k % lanes<double>];
}

// Adds the losses of truths of known probability.
template <class Loss, class P, class real>
void add_losses_of_truths(const P &plan, Probability<real> p, const Truths<real> &truths,
                          double *losses) {
    Vec<double> of_lanes[double_registers<real>];
    NSC_UNROLL
    for (int64_t i = 0; i < double_registers<real>; ++i)
        of_lanes[i] = Loss::template of<double>(in_doubles(p, i), true);
    add_weighted<Loss>(plan, of_lanes, truths, losses);
}

// Adds the losses of all entries of columns.
template <class Loss, class P, class real>
void add_losses_of_entries(const P &plan, Columns<real> block, Vec<real> rests,
                           const Truths<real> &truths, double *losses) {
    Vec<double> sums[double_registers<real>] = {};
    for (int64_t row = 0; row < plan.wires; ++row) {
        const Probability<real> p = probability<real>(block[row], rests);
        const Vec<real> share = truths.share(row);
        NSC_UNROLL
        for (int64_t i = 0; i < double_registers<real>; ++i)
            sums[i] += mean_loss<Loss>(in_doubles(p, i), in_doubles<real>(share, i));
    }
    add_weighted<Loss>(plan, sums, truths, losses);
}

// Adds the losses of columns.
template <class Loss, class P, class real>
NSC_NOINLINE void add_losses(const P &plan, Columns<real> block, const Truths<real> &truths,
                             double *losses) {
    if (Loss::of_truth && !truths.shares)
        add_losses_of_truths<Loss>(plan, probability_of(plan, block, truths), truths, losses);
    else
        add_losses_of_entries<Loss>(plan, block, rests_of_columns(plan, block), truths, losses);
}

// Slopes times what their columns count. Slopes of columns that count nothing may be infinite.
template <class real>
inline Vec<real> weighted(Vec<real> weights, Vec<real> slope) {
    return weights != 0 ? weights * slope : Vec<real>{};
}

// The derivative of the losses of truths by their probabilities.
template <class Loss, class P, class real>
Vec<real> slope_of_truths(const P &plan, Probability<real> p, const Truths<real> &truths) {
    return weighted<real>(truths.template entry_weights<Loss>(plan.wires),
                          Loss::template slope<typename P::Relaxation, real>(p, true));
}

// The gradient of these losses, which are added unless `losses` is null.
template <class Loss, class P, class real>
NSC_NOINLINE void find_loss_gradient(const P &plan, Columns<real> block, Columns<real> grad,
                                     const Truths<real> &truths, double *losses) {
    using Relaxation = typename P::Relaxation;
    if (!Loss::of_truth || truths.shares) {
        const Vec<real> weights = truths.template entry_weights<Loss>(plan.wires);
        const Vec<real> rests = rests_of_columns(plan, block);
        if (losses) add_losses_of_entries<Loss>(plan, block, rests, truths, losses);
        for (int64_t row = 0; row < plan.wires; ++row)
            grad[row] = weighted<real>(
                weights, mean_slope<Loss, Relaxation>(probability<real>(block[row], rests),
                                                      truths.share(row)));
        return;
    }
    const Probability<real> p = probability_of(plan, block, truths);
    if (losses) add_losses_of_truths<Loss>(plan, p, truths, losses);
    const Vec<real> slope = slope_of_truths<Loss>(plan, p, truths);
    if (!truths.several) {
        grad.clear(plan.wires);
        for (int64_t k = 0; k < truths.width; ++k) grad[truths.rank[k]][k] = slope[k];
        return;
    }
    // If several ranks are almost certain, the slope stands negated at the others, which is the
    // same, as columns sum to 1. Mixes of equal slopes differ in the last place, in which a small
    // gradient would drown.
    const auto negated = is_large<real>(p.p) & (truths.first != truths.last);
    const Vec<real> found = negated ? -slope : slope;
    for (int64_t row = 0; row < plan.wires; ++row)
        grad[row] = (truths.has(row) ^ negated) ? found : Vec<real>{};
}

// The gradient of the shares of columns. The gradient of lane k begins at grads[k] and lies as the
// shares; weights have none.
template <class Loss, class P, class real>
NSC_NOINLINE void find_share_gradient(const P &plan, Columns<real> block,
                                      const Truths<real> &truths, real *const *grads) {
    const Vec<real> rests = rests_of_columns(plan, block),
                    weights = truths.template entry_weights<Loss>(plan.wires);
    for (int64_t row = 0; row < plan.wires; ++row) {
        const Probability<real> p = probability<real>(block[row], rests);
        Vec<double> slopes[double_registers<real>];
        NSC_UNROLL
        for (int64_t i = 0; i < double_registers<real>; ++i)
            slopes[i] = share_slope<Loss>(in_doubles(p, i));
        for (int64_t k = 0; k < truths.width; ++k)
            grads[k][row * truths.stride] =
                real(weights[k] * slopes[k / lanes<double>][k % lanes<double>]);
    }
    for (int64_t k = 0; k < truths.width; ++k) grads[k][plan.wires * truths.stride] = 0;
}

template <class P, class real>
void add_losses(const P &plan, Routing loss, Columns<real> block, const Truths<real> &truths,
                double *losses) {
    with_loss(loss, [&](auto kind) { add_losses<decltype(kind)>(plan, block, truths, losses); });
}

template <class P, class real>
void find_loss_gradient(const P &plan, Routing loss, Columns<real> block, Columns<real> grad,
                        const Truths<real> &truths, double *losses) {
    with_loss(loss, [&](auto kind) {
        find_loss_gradient<decltype(kind)>(plan, block, grad, truths, losses);
    });
}

template <class P, class real>
void find_share_gradient(const P &plan, Routing loss, Columns<real> block,
                         const Truths<real> &truths, real *const *grads) {
    with_loss(loss,
              [&](auto kind) { find_share_gradient<decltype(kind)>(plan, block, truths, grads); });
}

}  // namespace nsc
