// Columns of P in lanes, and their losses.
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

template <class real>
inline Probability<real> probability(real p, real rest_of_column) {
    return {p, is_large(p) ? rest_of_column : unit<real> - p};
}

// The truths of a block of columns, one in each lane: those of a sample, or a column of several.
template <class real>
struct Truths {
    // Takes `width` truths; target_of(k) is the target of lane k, column_of(k) its column.
    template <class TargetOf, class ColumnOf>
    Truths(int64_t width, TargetOf target_of, ColumnOf column_of) : width(width) {
        for (int64_t k = 0; k < width; ++k) {
            const Target<real> &target = target_of(k);
            const Truth<real> truth = target.truth(column_of(k));
            first[k] = truth.first, last[k] = truth.last, weight[k] = truth.weight;
            shares = target.form == of_shares, stride = target.wires;
            if (shares) share_of[k] = target.reals() + column_of(k);
            several |= truth.first != truth.last;
        }
        for (int64_t k = 0; several && k < width; ++k)
            part[k] = Truth<real>{first[k], last[k], weight[k]}.part();
    }
    double share(int64_t row, int64_t k) const {
        if (shares) return share_of[k][row * stride];
        return first[k] <= row && row <= last[k] ? part[k] : 0;
    }
    int64_t width;
    int32_t first[lanes<real>], last[lanes<real>];
    double weight[lanes<real>];
    double part[lanes<real>];  // what the item has of each of its ranks
    bool several = false;      // whether an item has one of several ranks
    bool shares = false;       // whether the target is one of shares: share_of[k][row * stride]
    const real *share_of[lanes<real>];
    int64_t stride = 0;
};

// The sums of each column's entries inside and outside of its truth, each in a fixed order.
template <class real>
struct Masses {
    Vec<real> inside, outside;
};

template <class P, class real>
Masses<real> masses_of(const P &plan, Columns<real> block, const Truths<real> &truths) {
    Masses<real> sums = {};
    Vec<real> first = {}, last = {};
    for (int64_t k = 0; k < truths.width; ++k)
        first[k] = real(truths.first[k]), last[k] = real(truths.last[k]);
    for (int64_t row = 0; row < plan.wires; ++row) {
        const auto is_in = (first <= all(real(row))) & (last >= all(real(row)));
        sums.inside += is_in ? block[row] : Vec<real>{};
        sums.outside += is_in ? Vec<real>{} : block[row];
    }
    return sums;
}

// Calls visit(k, p) with the probability of the truth of each column that counts.
template <class P, class real, class Visit>
void for_each_truth(const P &plan, Columns<real> block, const Truths<real> &truths, Visit visit) {
    Masses<real> masses = {};
    if (truths.several) {
        masses = masses_of(plan, block, truths);
    } else {
        bool large = false;
        for (int64_t k = 0; k < truths.width; ++k) {
            masses.inside[k] = block[truths.first[k]][k];
            large |= is_large<real>(masses.inside[k]);
        }
        if (large) masses.outside = rests_of_columns(plan, block);
    }
    for (int64_t k = 0; k < truths.width; ++k)
        if (truths.weight[k]) visit(k, probability<real>(masses.inside[k], masses.outside[k]));
}

// Calls visit(row, k, p) with each entry.
template <class P, class real, class Visit>
void for_each_entry(const P &plan, Columns<real> block, const Truths<real> &truths, Visit visit) {
    const Vec<real> rests = rests_of_columns(plan, block);
    for (int64_t row = 0; row < plan.wires; ++row)
        for (int64_t k = 0; k < truths.width; ++k)
            visit(row, k, probability<real>(block[row][k], rests[k]));
}

// Adds the losses of columns.
template <class Loss, class P, class real>
NSC_APART void add_losses(const P &plan, Columns<real> block, const Truths<real> &truths,
                          double *losses) {
    if (Loss::of_truth && !truths.shares)
        return for_each_truth(plan, block, truths, [&](int64_t k, Probability<real> p) {
            losses[k] += truths.weight[k] * Loss::template of<real>(p, true);
        });
    double sums[lanes<real>] = {};
    if (truths.shares || truths.several)
        for_each_entry(plan, block, truths, [&](int64_t row, int64_t k, Probability<real> p) {
            sums[k] += mean_of<Loss>(p, truths.share(row, k));
        });
    else
        for_each_entry(plan, block, truths, [&](int64_t row, int64_t k, Probability<real> p) {
            sums[k] += Loss::template of<real>(p, truths.first[k] == row);
        });
    for (int64_t k = 0; k < truths.width; ++k)
        losses[k] += entry_weight<Loss>(truths.weight[k], plan.wires) * sums[k];
}

// The gradient of these losses.
template <class Loss, class P, class real>
NSC_APART void find_loss_gradient(const P &plan, Columns<real> block, Columns<real> grad,
                                  const Truths<real> &truths) {
    using Relaxation = typename P::Relaxation;
    grad.clear(plan.wires);
    if (Loss::of_truth && !truths.shares)
        return for_each_truth(plan, block, truths, [&](int64_t k, Probability<real> p) {
            const real slope =
                real(truths.weight[k]) * Loss::template slope<Relaxation, real>(p, true);
            const int64_t first = truths.first[k], last = truths.last[k];
            if (first == last || !is_large<real>(p.p)) {
                for (int64_t row = first; row <= last; ++row) grad[row][k] = slope;
                return;
            }
            // Of several ranks that are almost certain the slope stands negated at the others,
            // which is the same, as columns sum to 1. Mixes of equal slopes differ in the last
            // place, in which a small gradient would drown.
            for (int64_t row = 0; row < first; ++row) grad[row][k] = -slope;
            for (int64_t row = last + 1; row < plan.wires; ++row) grad[row][k] = -slope;
        });
    if (truths.shares || truths.several)
        for_each_entry(plan, block, truths, [&](int64_t row, int64_t k, Probability<real> p) {
            grad[row][k] = mean_slope<Loss, Relaxation>(p, real(truths.share(row, k)));
        });
    else
        for_each_entry(plan, block, truths, [&](int64_t row, int64_t k, Probability<real> p) {
            grad[row][k] = Loss::template slope<Relaxation, real>(p, truths.first[k] == row);
        });
    Vec<real> weights = {};
    for (int64_t k = 0; k < truths.width; ++k)
        weights[k] = real(entry_weight<Loss>(truths.weight[k], plan.wires));
    for (int64_t row = 0; row < plan.wires; ++row) grad[row] *= weights;
}

// The gradient of the shares of columns. That of lane k begins at grads[k] and lies as the shares;
// weights have none.
template <class Loss, class P, class real>
NSC_APART void find_share_gradient(const P &plan, Columns<real> block, const Truths<real> &truths,
                                   real *const *grads) {
    for (int64_t row = 0; row <= plan.wires; ++row)
        for (int64_t k = 0; k < truths.width; ++k) grads[k][row * truths.stride] = 0;
    for_each_entry(plan, block, truths, [&](int64_t row, int64_t k, Probability<real> p) {
        const double weight = entry_weight<Loss>(truths.weight[k], plan.wires);
        grads[k][row * truths.stride] = real(weight * share_slope<Loss>(p));
    });
}

template <class P, class real>
void add_losses(const P &plan, Routing loss, Columns<real> block, const Truths<real> &truths,
                double *losses) {
    with_loss(loss, [&](auto kind) { add_losses<decltype(kind)>(plan, block, truths, losses); });
}

template <class P, class real>
void find_loss_gradient(const P &plan, Routing loss, Columns<real> block, Columns<real> grad,
                        const Truths<real> &truths) {
    with_loss(loss,
              [&](auto kind) { find_loss_gradient<decltype(kind)>(plan, block, grad, truths); });
}

template <class P, class real>
void find_share_gradient(const P &plan, Routing loss, Columns<real> block,
                         const Truths<real> &truths, real *const *grads) {
    with_loss(loss,
              [&](auto kind) { find_share_gradient<decltype(kind)>(plan, block, truths, grads); });
}

}  // namespace nsc
