// Samples in lanes: the keys pass of a group of samples.
#pragma once

#include <nsc/relaxed/comparators.h>

namespace nsc {

// Between `count` samples of `plan.wires` values each and rows of one value of each.
template <class real, class P>
void load_samples(const P &plan, const real *from, int64_t count, Vec<real> *block) {
    for (int64_t wire = 0; wire < plan.wires; wire += lanes<real>) {
        const int64_t width = plan.wires - wire < lanes<real> ? plan.wires - wire : lanes<real>;
        Vec<real> tile[lanes<real>];
        for (int64_t k = 0; k < lanes<real>; ++k)
            tile[k] = k < count ? load(from + k * plan.wires + wire, width) : Vec<real>{};
        transpose<real>(tile);
        for (int64_t k = 0; k < width; ++k) block[wire + k] = tile[k];
    }
}

// Fills a block with the gradients of the values of `count` samples, null for zero.
template <class real, class P>
inline void load_gradient(const P &plan, const real *values_grad, int64_t count, Vec<real> *block) {
    if (values_grad)
        load_samples(plan, values_grad, count, block);
    else
        memset(block, 0, sizeof(Vec<real>) * plan.wires);
}

template <class real, class P>
void store_samples(const P &plan, real *to, int64_t count, const Vec<real> *block) {
    for (int64_t wire = 0; wire < plan.wires; wire += lanes<real>) {
        const int64_t width = plan.wires - wire < lanes<real> ? plan.wires - wire : lanes<real>;
        Vec<real> tile[lanes<real>];
        for (int64_t k = 0; k < lanes<real>; ++k)
            tile[k] = k < width ? block[wire + k] : Vec<real>{};
        transpose<real>(tile);
        for (int64_t k = 0; k < count; ++k) store(to + k * plan.wires + wire, tile[k], width);
    }
}

// Runs all comparators on a block in place. What it keeps begins at the first slot.
template <class real, class Kept, class P>
inline void compare_block(const P &plan, Vec<real> *block, Vec<real> steepness, Kept kept) {
    const bool extreme = are_extreme<typename P::Relaxation, real>(block, plan.wires, steepness);
    for (int32_t p = 0; p < plan.bundle_count; ++p) {
        const Bundle bundle = plan.bundles[p];
        const Comparator *at = plan.in_bundles + bundle.first;
        if (extreme)
            compare<real, typename P::Relaxation, true>(bundle.count, at, block, steepness, kept);
        else
            compare<real, typename P::Relaxation, false>(bundle.count, at, block, steepness, kept);
    }
}

// Runs a codelet on a block in place. What it keeps begins at its first slot.
template <class real, bool careful, class Kept, class P>
inline void compare_codelet(const P &plan, int64_t codelet, Vec<real> *block, Vec<real> steepness,
                            Kept kept) {
    for (int32_t p = plan.first_bundle[codelet]; p < plan.first_bundle[codelet + 1]; ++p) {
        const Bundle bundle = plan.codelet_bundles[p];
        compare<real, typename P::Relaxation, careful>(
            bundle.count, plan.in_codelets + bundle.first, block, steepness, kept);
    }
}

// The same backwards on gradients, given the gradients of its weights.
template <class real, class P>
inline void compare_codelet_backward(const P &plan, int64_t codelet, Vec<real> *grad,
                                     const Vec<real> *weight_grad, Vec<real> steepness,
                                     Weights<Vec<real>> w, Vec<real> *steepness_parts) {
    for (int32_t p = plan.first_bundle[codelet + 1] - 1; p >= plan.first_bundle[codelet]; --p) {
        const Bundle bundle = plan.codelet_bundles[p];
        const Comparator *at = plan.in_codelets + bundle.first;
        Vec<real> steepness_grad[most_in_bundle];
        compare_backward<real, typename P::Relaxation>(bundle.count, at, grad, weight_grad,
                                                       steepness, w,
                                                       steepness_parts ? steepness_grad : nullptr);
        for (int32_t i = bundle.count - 1; steepness_parts && i >= 0; --i)
            steepness_parts[at[i].slot % slot_alignment] += steepness_grad[i];
    }
}

// The same for gradients of the values alone, given the derivatives. The parts of the gradient of
// the steepness are added unless `steepness_parts` is null.
template <class real, class P>
inline void derive_backward(const P &plan, Vec<real> *grad, Derivatives<Vec<real>> d,
                            Vec<real> *steepness_parts) {
    for (int64_t c = plan.codelet_count - 1; c >= 0; --c) {
        const Comparator *at = plan.in_codelets + plan.codelet_bundles[plan.first_bundle[c]].first;
        const Derivatives<Vec<real>> of_codelet = d.from(plan.codelets[c].slot);
        for (int32_t k = plan.shapes[plan.codelets[c].shape].comparators - 1; k >= 0; --k) {
            Vec<real> &lo = grad[at[k].lo], &hi = grad[at[k].hi];
            if (steepness_parts)
                steepness_parts[k % slot_alignment] += (hi - lo) * of_codelet.steepness[k];
            move_gradients<real>(lo, hi, of_codelet.share[k]);
        }
    }
}

// Between the slots of `count` samples, `stride` apart, and rows of one slot of each. Weights begin
// at multiples of slot_alignment, which is a multiple of lanes.
template <class real>
inline void gather_slots(const real *from, int64_t stride, int64_t count, int64_t slot_count,
                         Vec<real> *rows) {
    for (int64_t s = 0; s < slot_count; s += lanes<real>) {
        Vec<real> *tile = rows + s;
        for (int64_t k = 0; k < lanes<real>; ++k)
            tile[k] = k < count ? load(from + k * stride + s) : Vec<real>{};
        transpose<real>(tile);
    }
}

template <class real>
inline void scatter_slots(real *to, int64_t stride, int64_t count, int64_t slot_count,
                          Vec<real> *rows) {
    for (int64_t s = 0; s < slot_count; s += lanes<real>) {
        Vec<real> *tile = rows + s;
        transpose<real>(tile);
        for (int64_t k = 0; k < count; ++k) store(to + k * stride + s, tile[k]);
    }
}

}  // namespace nsc
