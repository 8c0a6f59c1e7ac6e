// A network that ends in a merge of all its wires, for the tests of merges.
#pragma once

#include <nsc/relaxed/plan.h>

using namespace nsc;

// The bitonic sorter of 2^k wires, two layers to a codelet of one butterfly, the last layer alone
// where their number is odd. With 21 layers, the sixth merge of 64 wires begins inside a butterfly.
template <int k>
struct Merging : AnyNetwork {
    static constexpr int n = 1 << k, depth = k * (k + 1) / 2, most = n / 4 * ((depth + 1) / 2) * 2;
    Merging(bool in_parts) : AnyNetwork() {
        int distances[depth], sizes[depth], layer = 0;
        for (int merge = 1; merge <= k; ++merge)
            for (int d = 1 << (merge - 1); d; d /= 2)
                distances[layer] = d, sizes[layer++] = 1 << merge;
        for (layer = 0; layer < depth; layer += 2) {
            const bool is_single = layer + 1 == depth;
            const int a = distances[layer], b = is_single ? 0 : distances[layer + 1];
            for (int wire = 0; wire < n; ++wire) {
                if (wire & a || wire & b) continue;
                // A merge but the last sorts downwards where the wire has the bit of its size.
                const bool down = wire & sizes[layer] % n,
                           other_down = !is_single && (wire & sizes[layer + 1] % n),
                           second_down = !is_single && ((wire + b) & sizes[layer] % n),
                           third_down = !is_single && ((wire + a) & sizes[layer + 1] % n);
                const int pattern = down | second_down << 1 | other_down << 2 | third_down << 3;
                const int spread = 4 * layer;
                all_codelets[codelet_count++] = {is_single, spread, wire, int32_t(slots), pattern};
                slots += slot_alignment;
                comparators += is_single ? 1 : 4;
            }
            const uint16_t of_layer[] = {0, uint16_t(a), uint16_t(b), uint16_t(a + b)};
            memcpy(all_spreads + 4 * layer, of_layer, sizeof of_layer);
        }
        for (int i = 0; i < 16; ++i) all_flips[i] = {{uint64_t(i), 0}};
        wires = n, layers = depth, merge_layers = in_parts ? k : 0;
        longest_codelet = slot_alignment, butterfly_count = codelet_count;
        codelets = all_codelets, spreads = all_spreads, flips = all_flips;
        shapes = all_shapes, pairs = all_pairs, shape_butterflies = all_butterflies;
    }
    static constexpr Shape all_shapes[] = {{4, 0, 4, 0}, {2, 4, 1, 1}};
    static constexpr Pair all_pairs[] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}};
    static constexpr ShapeButterfly all_butterflies[] = {{cross, {0, 1, 2, 3}},
                                                         {single, {0, 1, 0, 0}}};
    Codelet all_codelets[most];
    uint16_t all_spreads[4 * depth];
    Flips all_flips[16];
};

template <int k>
static Plan<AnyNetwork, Logistic> &plan_of(bool in_parts) {
    static const Merging<k> networks[] = {false, true};
    static Plan<AnyNetwork, Logistic> plans[2] = {};
    Plan<AnyNetwork, Logistic> &plan = plans[in_parts];
    if (!plan.wires) static_cast<AnyNetwork &>(plan) = networks[in_parts];
    EXPECT(plan.prepare() == ok);
    return plan;
}
