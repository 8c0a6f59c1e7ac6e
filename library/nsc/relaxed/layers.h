// Comparators of a layer in lanes: the keys pass of one sample.
#pragma once

#include <nsc/relaxed/comparators.h>

namespace nsc {

// Comparators of one layer, gathered: their first wires, then their second ones.
template <class real>
struct Gathered {
    Vec<real> rows[2 * most_in_bundle] = {};
    real *lo() { return reinterpret_cast<real *>(rows); }
    real *hi() { return reinterpret_cast<real *>(rows + most_in_bundle); }
};

struct GatheredComparators {
    constexpr GatheredComparators() : at() {
        for (int32_t i = 0; i < most_in_bundle; ++i)
            at[i] = {uint16_t(i), uint16_t(most_in_bundle + i), i};
    }
    Comparator at[most_in_bundle];
};

constexpr GatheredComparators gathered;

// A register's reals one by one.
template <class real>
inline real *singly(Vec<real> *rows) {
    return reinterpret_cast<real *>(rows);
}

template <class real>
inline Mixes<real> singly(Mixes<Vec<real>> mixes) {
    return {singly<real>(mixes.keep), singly<real>(mixes.swap)};
}

template <class real>
inline Weights<real> singly(Weights<Vec<real>> w) {
    return {singly<real>(w.forward), singly<real>(w.backward), singly<real>(w.gap)};
}

template <class result>
inline result sum_of(const double *parts, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += parts[i];
    return result(sum);
}

template <class real>
inline void copy_or_clear(real *to, const real *from, int64_t count) {
    if (from)
        memcpy(to, from, sizeof(real) * count);
    else
        memset(to, 0, sizeof(real) * count);
}

// Registers for what is kept of comparators in the order of layers. A layer begins with a new
// register.
template <class real, class P>
int64_t layer_rows(const P &plan) {
    return plan.comparators / lanes<real> + plan.layers;
}

// Calls run(comparators, count, row) for runs of comparators of each layer in turn; `row` counts
// the registers before.
template <class real, class P, class Run>
inline void for_each_in_layers(const P &plan, bool backwards, Run run) {
    constexpr int64_t most = most_in_bundle * lanes<real>;
    const auto rows_of_layer = [](int64_t count) {
        return (count + lanes<real> - 1) / lanes<real>;
    };
    int64_t row = 0;
    for (int64_t layer = 0; backwards && layer < plan.layers; ++layer)
        row += rows_of_layer(plan.layer_end[layer] - (layer ? plan.layer_end[layer - 1] : 0));
    for (int64_t l = 0; l < plan.layers; ++l) {
        const int64_t layer = backwards ? plan.layers - 1 - l : l,
                      begin = layer ? plan.layer_end[layer - 1] : 0, end = plan.layer_end[layer];
        if (backwards) row -= rows_of_layer(end - begin);
        for (int64_t i = begin; i < end; i += most)
            run(plan.in_layers + i, end - i < most ? end - i : most,
                row + (i - begin) / lanes<real>);
        if (!backwards) row += rows_of_layer(end - begin);
    }
}

template <class real, class P>
inline bool are_extreme(const P &plan, const real *y, real steepness) {
    bool extreme = false;
    for (int64_t wire = 0; wire < plan.wires; wire += lanes<real>) {
        const Vec<real> row =
            load(y + wire, plan.wires - wire < lanes<real> ? plan.wires - wire : lanes<real>);
        extreme |= are_extreme<typename P::Relaxation, real>(&row, 1, all(steepness));
    }
    return extreme;
}

// Runs all comparators on y in place. What is kept of a run begins at its first register; behind it
// `keep` is called.
template <bool careful, class real, class Kept, class Keep, class P>
void compare_layers(const P &plan, real *y, real steepness, Kept kept, Keep keep) {
    Gathered<real> both;
    real *lo = both.lo(), *hi = both.hi();
    for_each_in_layers<real>(plan, false, [&](const Comparator *at, int64_t count, int64_t row) {
        for (int64_t k = 0; k < count; ++k) lo[k] = y[at[k].lo], hi[k] = y[at[k].hi];
        const int32_t rows = int32_t((count + lanes<real> - 1) / lanes<real>);
        compare<real, typename P::Relaxation, careful>(rows, gathered.at, both.rows, all(steepness),
                                                       kept.from(row));
        for (int64_t k = 0; k < count; ++k) y[at[k].lo] = lo[k], y[at[k].hi] = hi[k];
        keep(at, count);
    });
}

// Runs all comparators on y in place. Keeps nothing, or derivatives in the order of layers.
template <class real, class Kept, class P>
void compare_layers(const P &plan, real *y, real steepness, Kept kept) {
    const auto nothing = [](const Comparator *, int64_t) {};
    if (are_extreme(plan, y, steepness))
        compare_layers<true>(plan, y, steepness, kept, nothing);
    else
        compare_layers<false>(plan, y, steepness, kept, nothing);
}

// Runs all comparators on y in place. The weights go to their slots.
template <class real, class P>
void compare_layers_to_slots(const P &plan, real *y, real steepness, Weights<real> w) {
    using Relaxation = typename P::Relaxation;
    struct Held {
        Weights<Vec<real>> from(int64_t) const {
            return weights_at<Relaxation>(rows, most_in_bundle);
        }
        Vec<real> *rows;
    };
    Vec<real> rows[arrays<Relaxation> * most_in_bundle];
    const Held kept = {rows};
    const Weights<real> held = singly<real>(kept.from(0));
    const auto keep = [&](const Comparator *at, int64_t count) {
        for (int64_t k = 0; k < count; ++k) {
            const int32_t slot = at[k].slot;
            w.forward.keep[slot] = held.forward.keep[k],
            w.forward.swap[slot] = held.forward.swap[k];
            if (Relaxation::error_free)
                w.backward.keep[slot] = held.backward.keep[k],
                w.backward.swap[slot] = held.backward.swap[k];
            w.gap[slot] = held.gap[k];
        }
    };
    if (are_extreme(plan, y, steepness))
        compare_layers<true>(plan, y, steepness, kept, keep);
    else
        compare_layers<false>(plan, y, steepness, kept, keep);
}

// Calls add(part, slot) for slots in the order of `sum_of_parts`, and returns this sum.
template <class real, class P, class Add>
inline real sum_of_slots(const P &plan, Add add) {
    real parts[slot_alignment] = {};
    for (int64_t c = plan.codelet_count - 1; c >= 0; --c)
        for (int32_t k = plan.shapes[plan.codelets[c].shape].comparators - 1; k >= 0; --k)
            add(parts[k % slot_alignment], plan.codelets[c].slot + k);
    return sum_of_parts(parts);
}

// Turns the gradient of the values, in place in `grad`, and of the weights into the gradient of x;
// returns the gradient of the steepness. Overwrites the gaps.
template <class real, class P>
real compare_layers_backward(const P &plan, real *grad, const real *weight_grad, real steepness,
                             Weights<real> w) {
    using Relaxation = typename P::Relaxation;
    Gathered<real> both;
    Vec<real> rows[arrays<Relaxation> * most_in_bundle] = {}, into_rows[most_in_bundle] = {},
                                        part_rows[most_in_bundle];
    const Weights<Vec<real>> kept = weights_at<Relaxation>(rows, most_in_bundle);
    const Weights<real> held = singly<real>(kept);
    real *lo = both.lo(), *hi = both.hi(), *into = singly<real>(into_rows),
         *part = singly<real>(part_rows);
    for_each_in_layers<real>(plan, true, [&](const Comparator *at, int64_t count, int64_t) {
        for (int64_t k = 0; k < count; ++k) {
            lo[k] = grad[at[k].lo], hi[k] = grad[at[k].hi];
            const int32_t slot = at[k].slot;
            held.backward.keep[k] = w.backward.keep[slot],
            held.backward.swap[k] = w.backward.swap[slot];
            held.gap[k] = w.gap[slot];
            into[k] = weight_grad[slot];
        }
        const int32_t count_rows = int32_t((count + lanes<real> - 1) / lanes<real>);
        compare_backward<real, Relaxation>(count_rows, gathered.at, both.rows, into_rows,
                                           all(steepness), kept, part_rows);
        for (int64_t k = 0; k < count; ++k) {
            grad[at[k].lo] = lo[k], grad[at[k].hi] = hi[k];
            w.gap[at[k].slot] = part[k];
        }
    });
    return sum_of_slots<real>(plan, [&](real &part, int64_t slot) { part += w.gap[slot]; });
}

// The same for gradients of the values alone, given the derivatives in the order of layers.
// `by_slot` has two places for each slot where the gradient of the steepness is wanted, as samples
// in lanes fuse the product of both with the sum.
template <class real, class P>
real derive_layers_backward(const P &plan, real *grad, Derivatives<Vec<real>> kept, real *by_slot) {
    Gathered<real> both;
    real *lo = both.lo(), *hi = both.hi();
    for_each_in_layers<real>(plan, true, [&](const Comparator *at, int64_t count, int64_t row) {
        for (int64_t k = 0; k < count; ++k) lo[k] = grad[at[k].lo], hi[k] = grad[at[k].hi];
        for (int64_t k = 0; by_slot && k < count; ++k) {
            real *const pair = by_slot + 2 * at[k].slot;
            pair[0] = hi[k] - lo[k], pair[1] = singly<real>(kept.steepness + row)[k];
        }
        for (int64_t r = 0; r * lanes<real> < count; ++r)
            move_gradients<real>(both.rows[r], both.rows[most_in_bundle + r], kept.share[row + r]);
        for (int64_t k = 0; k < count; ++k) grad[at[k].lo] = lo[k], grad[at[k].hi] = hi[k];
    });
    if (!by_slot) return 0;
    return sum_of_slots<real>(
        plan, [&](real &part, int64_t slot) { part += by_slot[2 * slot] * by_slot[2 * slot + 1]; });
}

}  // namespace nsc
