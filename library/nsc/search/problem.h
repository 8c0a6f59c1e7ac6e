// The problem of a search: which networks are tried, and what a network costs.
#pragma once

#include <nsc/search/comparators.h>

namespace nsc::search {

enum class Objective : int64_t { size, depth, cost };

// A problem as Python states it: study/search/engine.py has the same fields. `rows` is a pool's, in
// the order of pool.h, 8 words a row.
struct Problem {
    int64_t wires, symmetric;
    Objective objective;
    int64_t most_layers;  // 0 for any number
    int64_t prefix_count, behind_count, outputs, blocks;
    const Comparator *prefix, *behind;
    const uint8_t *output_wires;
    const uint64_t *rows;
    int64_t has_most;

    Comparator mirrored(Comparator c) const {
        return {uint8_t(wires - 1 - c.hi), uint8_t(wires - 1 - c.lo)};
    }

    // The comparators that a list stands for: with symmetry, of an even number of wires, each is
    // followed by its mirror image, which shares no wire with it.
    void expand(const Comparators &list, Comparators &whole) const {
        if (!symmetric) {
            whole = list;
            return;
        }
        whole.count = 0;
        for (int64_t k = 0; k < list.count; ++k) {
            const Comparator image = mirrored(list.at[k]);
            whole.add(list.at[k]);
            if (!(image == list.at[k])) whole.add(image);
        }
    }
};

// Layers of a network whose comparators come as early as they can, and comparators in the last.
struct Layers {
    int64_t depth, in_last;
};

inline Layers layers_of(const Problem &problem, const Comparators &whole) {
    int64_t free[most_wires] = {};
    Layers layers{0, 0};
    const auto add = [&](Comparator c) {
        const int64_t layer = 1 + (free[c.lo] > free[c.hi] ? free[c.lo] : free[c.hi]);
        free[c.lo] = free[c.hi] = layer;
        if (layer > layers.depth) layers = {layer, 0};
        layers.in_last += layer == layers.depth;
    };
    for (int64_t k = 0; k < problem.prefix_count; ++k) add(problem.prefix[k]);
    for (int64_t k = 0; k < whole.count; ++k) add(whole.at[k]);
    return layers;
}

// The minima and maxima that the outputs depend on.
inline int64_t half_operations_of(const Problem &problem, const Comparators &whole) {
    bool live[most_wires] = {};
    int64_t halves = 0;
    for (int64_t k = 0; k < problem.outputs; ++k) live[problem.output_wires[k]] = true;
    const auto use = [&](Comparator c) {
        halves += live[c.lo] + live[c.hi];
        live[c.lo] = live[c.hi] = live[c.lo] || live[c.hi];
    };
    for (int64_t k = whole.count; k--;) use(whole.at[k]);
    for (int64_t k = problem.prefix_count; k--;) use(problem.prefix[k]);
    return halves;
}

// Removes the comparators of a list that no output depends on. With symmetry a comparator and its
// mirror image are both needed or both not.
inline void remove_idle(const Problem &problem, Comparators &list) {
    bool live[most_wires] = {};
    for (int64_t k = 0; k < problem.outputs; ++k) live[problem.output_wires[k]] = true;
    const auto use = [&](Comparator c) { live[c.lo] = live[c.hi] = true; };
    for (int64_t k = list.count; k--;) {
        const Comparator c = list.at[k];
        if (live[c.lo] || live[c.hi]) {
            use(c);
            if (problem.symmetric) use(problem.mirrored(c));
        } else {
            list.remove(k);
        }
    }
}

// A cost is one number of terms of 16 bits, the first in the highest ones. The terms are as in
// Goal.cost in study/search/goal.py.
inline uint64_t in_one(int64_t a, int64_t b, int64_t c, int64_t d = 0) {
    return uint64_t(a) << 48 | uint64_t(b) << 32 | uint64_t(c) << 16 | uint64_t(d);
}

inline int64_t excess_of(const Problem &problem, const Layers &layers) {
    const int64_t most = problem.most_layers;
    return most && layers.depth > most ? layers.depth - most : 0;
}

// The cost of a network.
inline uint64_t cost_of(const Problem &problem, const Comparators &whole) {
    const int64_t size = whole.count + problem.prefix_count;
    const Layers layers = layers_of(problem, whole);
    const int64_t excess = excess_of(problem, layers);
    switch (problem.objective) {
        case Objective::size: return in_one(excess, size, layers.depth);
        case Objective::depth: return in_one(excess, layers.depth, size);
        default: return in_one(excess, half_operations_of(problem, whole), size, layers.depth);
    }
}

// A number that no step of a walk makes larger. Between networks of one size, or of one number of
// half operations, it steps freely. From one depth to the next it empties the last layer.
inline uint64_t step_cost_of(const Problem &problem, const Comparators &whole) {
    const bool by_depth = problem.objective == Objective::depth;
    Layers layers{0, 0};
    if (by_depth || problem.most_layers) layers = layers_of(problem, whole);
    const int64_t excess = excess_of(problem, layers);
    if (by_depth) return in_one(excess, layers.depth, layers.in_last);
    const bool by_size = problem.objective == Objective::size;
    const int64_t first = by_size ? whole.count : half_operations_of(problem, whole);
    return in_one(excess, excess ? layers.in_last : 0, first);
}

}  // namespace nsc::search
