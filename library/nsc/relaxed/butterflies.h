// Butterflies on groups of columns.
//
// A processor has too few registers for the 16 wires of a codelet and their weights. So a codelet
// runs as butterflies: comparators of two layers on four wires. The weights of a butterfly stay in
// registers for all columns of a group, and its rows stay in the first-level cache. One loop
// serves every network.
//
// The backward pass keeps the differences that gradients of weights need, for one group of columns
// and one segment of its steps at a time. It runs forward again in front of each segment but the
// last. P of a bitonic network of 512 wires or fewer is one segment. A group has 128 bytes of each
// row: two to eight blocks, whose products share the sums over lanes. Weights are computed anew,
// so the forward pass saves only its inputs.
#pragma once

#include <nsc/relaxed/plan.h>
#include <nsc/relaxed/weights.h>
#include <nsc/vectors.h>

namespace nsc {

// Blocks of columns run through the butterflies together: a row has the registers of all of them
// side by side. What a butterfly needs stays in registers for the whole group: its weights, and the
// sums over columns that are the gradients of its weights.

// Blocks of a group. A row of them fills two cache lines: two blocks of the widest registers share
// a butterfly's weights and the sums over their lanes, and four blocks of registers half as wide.
constexpr int64_t group_blocks = 128 / register_bytes;

// The differences of a group are kept for a segment of its steps at a time: of all, if there is
// room. With so many bytes, or an eighth of P in float32 if that is more, two threads need less
// memory for P of 1,024 wires than P itself. A long network has about as many segments as a segment
// has layers, so that copies of the group where they begin take as much as what is kept.
constexpr int64_t least_kept_bytes = 700 << 10;

template <class P>
int64_t kept_room(const P &plan) {
    if constexpr (P::is_long) return group_blocks * (plan.comparators / root_of(plan.layers) + 5);
    const int64_t eighth = plan.wires * plan.wires / 2;
    return (least_kept_bytes > eighth ? least_kept_bytes : eighth) / register_bytes;
}

template <class P>
int64_t kept_rows(const P &plan) {
    const int64_t all_rows = group_blocks * plan.comparators;
    return all_rows < kept_room(plan) ? all_rows : kept_room(plan);
}

template <class P>
int64_t most_segments(const P &plan) {
    return 1 + group_blocks * plan.comparators / (kept_room(plan) - 4 * group_blocks);
}

// Calls visit(c, m, a, b) for each comparator c, whose weights are m, on every one of `blocks`, and
// ended() behind each.
template <Pattern pattern, bool backwards, class real, class P, class Visit, class Ended>
NSC_STEP void mix_butterfly(const P &plan, const Butterfly &butterfly, uint32_t blocks,
                            Vec<real> *group, const real *keep, Visit visit, Ended ended) {
    constexpr int32_t count = count_of(pattern), held = rows_of(pattern);
    Mix<Vec<real>> m[count];
    NSC_UNROLL
    for (int32_t c = 0; c < count; ++c)
        m[c] = {broadcast(keep[slot_of(butterfly, pattern, c)]),
                broadcast(keep[slot_of(butterfly, pattern, c) + plan.slots])};
    Vec<real> *rows[held];
    NSC_UNROLL
    for (int32_t k = 0; k < held; ++k) rows[k] = group + butterfly.rows[k] * group_blocks;
    const auto run = [&](int64_t block) NSC_INLINE {
        Vec<real> r[held];
        NSC_UNROLL
        for (int32_t k = 0; k < held; ++k) r[k] = rows[k][block];
        run_butterfly<pattern, backwards>(
            r, [&](int32_t c, Vec<real> &a, Vec<real> &b) NSC_INLINE { visit(c, m[c], a, b); });
        NSC_UNROLL
        for (int32_t k = 0; k < held; ++k) rows[k][block] = r[k];
        ended();
    };
    if (blocks == (1 << group_blocks) - 1) {
        NSC_UNROLL
        for (int64_t block = 0; block < group_blocks; ++block) run(block);
    } else {
        for (; blocks; blocks &= blocks - 1) run(__builtin_ctz(blocks));
    }
}

// Steps first ... end - 1 of a routing: butterflies, each on the blocks of `on`.
struct Steps {
    const Butterfly *butterflies;
    const uint8_t *on;
    int64_t first, end;
    Steps between(int64_t from, int64_t to) const { return {butterflies, on, from, to}; }
};

// Returns where a segment of the steps begins whose differences are kept, given its end.
template <class P>
int64_t first_of_segment(const P &plan, Steps steps, int64_t end) {
    if (group_blocks * plan.comparators <= kept_room(plan)) return 0;
    for (int64_t kept = 0; end > 0; --end) {
        const int64_t i = end - 1;
        kept += count_of(steps.butterflies[i].pattern) * __builtin_popcount(steps.on[i]);
        if (kept > kept_rows(plan)) break;
    }
    return end;
}

// Takes a group through steps. With `keeping`, the differences in front of each comparator go to
// `kept`, whose end is returned.
template <bool keeping, class real, class P>
NSC_NOINLINE Vec<real> *route_group(const P &plan, Vec<real> *group, Steps steps, const real *keep,
                                    Vec<real> *kept) {
    const uint8_t *on = steps.on;
    const Butterfly *butterflies = steps.butterflies;
    for (int64_t i = steps.first; i < steps.end; ++i) {
        if (!on[i]) continue;
        with_pattern(butterflies[i].pattern, [&](auto kind) NSC_INLINE {
            constexpr Pattern pattern = decltype(kind)::value;
            constexpr int32_t count = count_of(pattern);
            mix_butterfly<pattern, false, real>(
                plan, butterflies[i], on[i], group, keep,
                [&](int32_t c, Mix<Vec<real>> m, Vec<real> &a, Vec<real> &b) NSC_INLINE {
                if (keeping) kept[c] = a - b;
                mix(a, b, m);
            }, [&]() NSC_INLINE { kept += keeping ? count : 0; });
        });
    }
    return kept;
}

// Adds the sums of rows over their lanes, one for each comparator, to the numbers of their slots.
template <Pattern pattern, class real>
NSC_STEP void add_sums(const Vec<real> *rows, const Butterfly &butterfly, real *to) {
    constexpr int32_t count = count_of(pattern);
    constexpr typename PlacesTo<lanes<real>>::list places;
    Vec<real> sums[(count + 1) / 2];  // of pairs of rows, in every second lane
    NSC_UNROLL
    for (int32_t k = 0; k < count; k += 2)
        sums[k / 2] = fold<real, 1>(rows[k], k + 1 < count ? rows[k + 1] : Vec<real>{}, places);
    if constexpr (lanes<real> == 2) {
        NSC_UNROLL
        for (int32_t c = 0; c < count; ++c)
            to[slot_of(butterfly, pattern, c)] += sums[c / 2][c % 2];
    } else {
        Vec<real> sum =
            fold<real, 2>(sums[0], count > 2 ? sums[(count - 1) / 2] : Vec<real>{}, places);
        if constexpr (lanes<real> > 4) sum = fold<real, 4>(sum, sum, places);
        if constexpr (lanes<real> > 8) sum = fold<real, 8>(sum, sum, places);
        typedef real Four __attribute__((vector_size(4 * sizeof(real))));
        Four four;
        memcpy(&four, &sum, sizeof four);
        if (count == 4 && butterfly.others == first_of(pattern)) {
            Four all_four;
            memcpy(&all_four, to + butterfly.slot, sizeof four);
            all_four += four;
            memcpy(to + butterfly.slot, &all_four, sizeof four);
        } else {
            NSC_UNROLL
            for (int32_t c = 0; c < count; ++c) to[slot_of(butterfly, pattern, c)] += four[c];
        }
    }
}

// Takes gradients back through the steps of `route_group`, in place, and adds the gradients of the
// weights to `weight_grad`. `kept` is the end that it returned.
template <class real, class P>
NSC_NOINLINE void route_group_back(const P &plan, Vec<real> *grads, Steps steps, const real *keep,
                                   const Vec<real> *kept, real *weight_grad) {
    const uint8_t *on = steps.on;
    const Butterfly *butterflies = steps.butterflies;
    for (int64_t i = steps.end - 1; i >= steps.first; --i) {
        if (!on[i]) continue;
        with_pattern(butterflies[i].pattern, [&](auto kind) NSC_INLINE {
            constexpr Pattern pattern = decltype(kind)::value;
            constexpr int32_t count = count_of(pattern);
            const Vec<real> *differences = kept -= count * __builtin_popcount(on[i]);
            Vec<real> products[count] = {};
            mix_butterfly<pattern, true, real>(
                plan, butterflies[i], on[i], grads, keep,
                [&](int32_t c, Mix<Vec<real>> m, Vec<real> &a, Vec<real> &b) NSC_INLINE {
                products[c] += differences[c] * (a - b);
                mix(a, b, m);
            }, [&]() NSC_INLINE { differences += count; });
            add_sums<pattern, real>(products, butterflies[i], weight_grad);
        });
    }
}

}  // namespace nsc
