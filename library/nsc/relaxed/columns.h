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

// Adds the losses of `width` columns, one of each lane; rank[k] is the true rank of the column in
// lane k.
template <class Loss, class P, class real>
NSC_APART void add_losses(const P &plan, Columns<real> block, const int64_t *rank, int64_t width,
                          double *losses) {
    if (Loss::at_truth_alone) {
        bool large = false;
        for (int64_t k = 0; k < width; ++k) large |= is_large<real>(block[rank[k]][k]);
        const Vec<real> rests = large ? rests_of_columns(plan, block) : Vec<real>{};
        for (int64_t k = 0; k < width; ++k)
            losses[k] += mean_part<Loss>(
                Loss::template of<real>(probability<real>(block[rank[k]][k], rests[k]), true),
                plan.wires);
        return;
    }
    const Vec<real> rests = rests_of_columns(plan, block);
    for (int64_t row = 0; row < plan.wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            losses[k] += mean_part<Loss>(Loss::template of<real>(p, rank[k] == row), plan.wires);
        }
}

// The gradient of these losses.
template <class Loss, class P, class real>
NSC_APART void find_loss_gradient(const P &plan, Columns<real> block, Columns<real> grad,
                                  const int64_t *rank, int64_t width) {
    const real share = mean_share<Loss, real>(plan.wires);
    if (Loss::at_truth_alone) {
        grad.clear(plan.wires);
        for (int64_t k = 0; k < width; ++k) {
            const real p = block[rank[k]][k];
            grad[rank[k]][k] = share * Loss::template slope<typename P::Relaxation, real>(
                                           {p, unit<real> - p}, true);
        }
        return;
    }
    const Vec<real> rests = rests_of_columns(plan, block);
    for (int64_t row = 0; row < plan.wires; ++row) {
        grad[row] = Vec<real>{};
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            grad[row][k] =
                share * Loss::template slope<typename P::Relaxation, real>(p, rank[k] == row);
        }
    }
}

template <class P, class real>
void add_losses(const P &plan, Routing loss, Columns<real> block, const int64_t *rank,
                int64_t width, double *losses) {
    with_loss(loss,
              [&](auto kind) { add_losses<decltype(kind)>(plan, block, rank, width, losses); });
}

template <class P, class real>
void find_loss_gradient(const P &plan, Routing loss, Columns<real> block, Columns<real> grad,
                        const int64_t *rank, int64_t width) {
    with_loss(loss, [&](auto kind) {
        find_loss_gradient<decltype(kind)>(plan, block, grad, rank, width);
    });
}

}  // namespace nsc
