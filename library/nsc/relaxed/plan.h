// Plans: a network with the orders in which its comparators are run, worked out once.
//
// A plan is `Plan<Network, Relaxation>`. The engine's network is AnyNetwork, whose sizes are
// variables; the network of a kernel with a library of its own has constants. Both are instances
// of one text, so their bits are the same.
//
// Light cones: a block of columns of P reaches few comparators near the inputs. To skip the others
// saves 66 % of the work on P for bitonic 1024, and 31 % for odd-even.
#pragma once

#include <nsc/memory.h>
#include <nsc/registers.h>
#include <nsc/relaxed/network.h>
#include <nsc/threads.h>

namespace nsc {

template <class T>
inline void exchange(T &a, T &b) {
    const T was = a;
    a = b, b = was;
}

// A comparator, which leaves the minimum on wire lo, and the slot of its weights.
struct Comparator {
    uint16_t lo, hi;
    int32_t slot;
};

// A bundle: comparators first ... first + count - 1, which share no wire. The keys pass takes a
// bundle through all of its stages, short chains of instructions, before the next bundle: one
// comparator's whole chain is longer than a processor can look ahead.
struct Bundle {
    int32_t first, count;
};

// Most comparators of a bundle; later comparators that may fill one up.
constexpr int32_t most_in_bundle = 8, bundle_window = 32;

// A butterfly of the network. The slots of the comparators that it runs first begin at `slot`, the
// slots of the others at `slot + others`.
struct Butterfly {
    uint16_t rows[4];
    int32_t slot;
    int16_t others;
    Pattern pattern;
};

// How many comparators a butterfly runs first.
constexpr int32_t first_of(Pattern pattern) { return pattern == single || pattern == fan ? 1 : 2; }

// The slot of comparator c, in running order.
constexpr int64_t slot_of(const Butterfly &butterfly, Pattern pattern, int32_t c) {
    const int32_t first = first_of(pattern);
    return int64_t(butterfly.slot) + (c < first ? c : butterfly.others + c - first);
}

// The same comparators, run backwards.
inline Butterfly mirrored(Butterfly of) {
    if (of.pattern == single) return of;
    of.slot += of.others;
    of.others = int16_t(-of.others);
    if (of.pattern == cross)
        exchange(of.rows[1], of.rows[2]);
    else
        of.pattern = of.pattern == funnel ? fan : funnel;
    return of;
}

// Calls visit(c, a, b) for each comparator c of a butterfly on its rows r, in running order or
// backwards.
template <Pattern pattern, bool backwards, class Row, class Visit>
NSC_STEP void run_butterfly(Row *r, Visit visit) {
    if constexpr (pattern == single) {
        visit(0, r[0], r[1]);
    } else if constexpr (pattern == cross) {
        if (backwards) visit(2, r[0], r[2]), visit(3, r[1], r[3]);
        visit(0, r[0], r[1]), visit(1, r[2], r[3]);
        if (!backwards) visit(2, r[0], r[2]), visit(3, r[1], r[3]);
    } else {
        constexpr bool middle_first = (pattern == fan) != backwards;
        constexpr int32_t middle = pattern == fan ? 0 : 2, outer = pattern == fan ? 1 : 0;
        if (middle_first) visit(middle, r[1], r[2]);
        visit(outer, r[0], r[1]), visit(outer + 1, r[2], r[3]);
        if (!middle_first) visit(middle, r[1], r[2]);
    }
}

// Calls run(Kind<p>()) for a butterfly's pattern p.
template <Pattern pattern>
struct Kind {
    static constexpr Pattern value = pattern;
};

template <class Run>
NSC_STEP void with_pattern(Pattern pattern, Run run) {
    switch (pattern) {
        case cross: return run(Kind<cross>());
        case funnel: return run(Kind<funnel>());
        case fan: return run(Kind<fan>());
        case single: return run(Kind<single>());
    }
}

// The wires of a long network are cut into ranges, whose numbers fit a first-level cache, and into
// parts, which are tasks of threads. Where parts meet, threads wait for each other.
constexpr int64_t ranges = 16, parts = 4, all_parts = -1;

// The largest pieces of the wires that a layer joins.
enum Joins : uint8_t { joins_nothing, joins_ranges, joins_parts };

// The least whole number whose square is no less.
constexpr int64_t root_of(int64_t square) {
    int64_t root = 1;
    while (root * root < square) ++root;
    return root;
}

// Columns of P whose light cone is taken as one.
constexpr int64_t cone_columns = lanes<float>;

// Columns of the P of a narrow network that are routed together.
constexpr int64_t narrow_columns = 4;

// A butterfly in the light cone of a few columns, and the rows that it takes. The row `wires` is
// zero; it stands for a wire that no column of the cone has reached.
struct NarrowStep {
    Butterfly butterfly;
    uint8_t from[4];
};

// The steps of a light cone, and the wires that it reaches in the end.
struct NarrowCone {
    const NarrowStep *steps;
    int32_t count;
    bool reaches[most_narrow_wires], reaches_all;
};

template <class Network, class Relaxed>
struct Plan : Network {
    using Relaxation = Relaxed;
    static constexpr bool may_be_narrow = nsc::may_be_narrow<Network>,
                          may_end_in_merge = nsc::may_end_in_merge<Network>,
                          is_long = nsc::has_long_pass<Network>;

    // Comparators by layer: the comparators of a layer have their inputs from layers before it.
    Comparator *in_layers;
    int32_t *layer_end;
    // For a long network: where the comparators of each range of wires end, by layer, and what each
    // layer joins.
    int32_t *range_end;
    Joins *joins;
    // Comparators of codelets with their slots in their codelet, and the bundles of each codelet.
    Comparator *in_codelets;
    Bundle *codelet_bundles;
    int32_t *first_bundle;
    // Comparators of all codelets in fuller bundles, each made of the next `bundle_window`
    // comparators that are left.
    Comparator *in_bundles;
    Bundle *bundles;
    int32_t bundle_count;

    // Butterflies in running order, and the same network backwards.
    Butterfly *butterflies, *mirrored_butterflies;
    // Light cones, a bit for each cone_columns columns of P that reach butterfly b, or rows that
    // the mirrored butterfly b reaches. All other columns or rows are zero there. Word w of b is
    // number w * butterfly_count + b, so that butterflies fill registers.
    // A long network has none: it finds a word when it routes its columns, and takes its few rows
    // everywhere.
    uint64_t *reached_by, *reaches;
    NarrowCone *narrow_cones;
    NarrowStep *narrow_steps;

    // For a network that ends in a merge: the butterflies in front of it, with their light cones,
    // and the slots of its comparators, by layer and then from wire 0 on.
    Butterfly *front_butterflies;
    int64_t front_count;
    uint64_t *front_reached_by;
    int32_t *merge_slots;

    Once once, once_routing;

    // Words of a light cone.
    int64_t cone_words() const {
        return (this->wires + 64 * cone_columns - 1) / (64 * cone_columns);
    }
    // Whether P takes the narrow pass.
    bool is_narrow() const { return this->wires <= most_narrow_wires; }

    // Writes the tables that calls need; for a long network only the tables of the long pass.
    // Returns out_of_memory if there is none for them.
    Status prepare();
    // Writes the tables that other calls of a long network need. It has no tables of light cones:
    // for bitonic 65,536 they would take a gigabyte.
    Status prepare_routing();
};

// Calls visit(lo, hi, slot) for each comparator, in an order that respects the graph.
template <class Network, class Visit>
void for_each_comparator(const Network &network, Visit visit) {
    for (int64_t c = 0; c < network.codelet_count; ++c) {
        const Codelet codelet = network.codelets[c];
        const Shape shape = network.shapes[codelet.shape];
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const Pair pair = network.pairs[shape.first_pair + i];
            int32_t lo = codelet.base + network.spreads[codelet.spread + pair.a];
            int32_t hi = codelet.base + network.spreads[codelet.spread + pair.b];
            if (network.flips[codelet.flips].words[i / 64] >> i % 64 & 1) exchange(lo, hi);
            visit(lo, hi, codelet.slot + i);
        }
    }
}

template <class P>
Status find_layers(P &plan) {
    const Memory memory(sizeof(int32_t) * (plan.wires + plan.layers + 1));
    if (!memory.start) return out_of_memory;
    int32_t *layer_of = memory.get<int32_t>(), *next = layer_of + plan.wires;
    const auto enter = [&](int32_t lo, int32_t hi) {
        const int32_t layer = layer_of[lo] > layer_of[hi] ? layer_of[lo] : layer_of[hi];
        layer_of[lo] = layer_of[hi] = layer + 1;
        return layer;
    };
    memset(layer_of, 0, sizeof(int32_t) * plan.wires);
    memset(plan.layer_end, 0, sizeof(int32_t) * (plan.layers + 1));
    for_each_comparator(plan,
                        [&](int32_t lo, int32_t hi, int32_t) { ++plan.layer_end[enter(lo, hi)]; });
    for (int64_t layer = 0, before = 0; layer < plan.layers; ++layer) {
        next[layer] = int32_t(before);
        before = plan.layer_end[layer] += int32_t(before);
    }
    memset(layer_of, 0, sizeof(int32_t) * plan.wires);
    for_each_comparator(plan, [&](int32_t lo, int32_t hi, int32_t slot) {
        plan.in_layers[next[enter(lo, hi)]++] = {uint16_t(lo), uint16_t(hi), slot};
    });
    return ok;
}

// Brings the comparators of each layer in the order of their wires, and finds what layers join.
template <class P>
Status find_ranges(P &plan) {
    const Memory memory(sizeof(Comparator) * plan.wires);
    if (!memory.start) return out_of_memory;
    Comparator *of_wire = memory.get<Comparator>(), *next = plan.in_layers;
    memset(of_wire, 0, sizeof(Comparator) * plan.wires);
    for (int64_t layer = 0; layer < plan.layers; ++layer) {
        Comparator *const end = plan.in_layers + plan.layer_end[layer];
        for (Comparator *each = next; each != end; ++each)
            of_wire[each->lo < each->hi ? each->lo : each->hi] = *each;
        for (int64_t range = 0, wire = 0; range < ranges; ++range) {
            const int64_t end_of_range = cut(plan.wires, ranges, range + 1),
                          end_of_part = cut(plan.wires, parts, range * parts / ranges + 1);
            for (; wire < end_of_range; ++wire) {
                Comparator &each = of_wire[wire];
                if (each.lo == each.hi) continue;
                const int64_t other = each.lo > each.hi ? each.lo : each.hi;
                const Joins joins = other >= end_of_part    ? joins_parts
                                    : other >= end_of_range ? joins_ranges
                                                            : joins_nothing;
                if (joins > plan.joins[layer]) plan.joins[layer] = joins;
                *next++ = each;
                each = {};
            }
            plan.range_end[layer * ranges + range] = int32_t(next - plan.in_layers);
        }
    }
    return ok;
}

template <class P>
Status find_bundles_of_codelets(P &plan) {
    const Memory memory(sizeof(int32_t) * plan.wires);
    if (!memory.start) return out_of_memory;
    int32_t *bundle_of = memory.get<int32_t>(), count = 0, at = 0, codelet = 0;
    memset(bundle_of, 0, sizeof(int32_t) * plan.wires);
    for_each_comparator(plan, [&](int32_t lo, int32_t hi, int32_t slot) {
        const bool begins = codelet < plan.codelet_count && slot == plan.codelets[codelet].slot;
        if (begins) plan.first_bundle[codelet++] = count;
        if (begins || bundle_of[lo] == count || bundle_of[hi] == count ||
            plan.codelet_bundles[count - 1].count == most_in_bundle)
            plan.codelet_bundles[count++] = {at, 0};
        bundle_of[lo] = bundle_of[hi] = count;
        ++plan.codelet_bundles[count - 1].count;
        plan.in_codelets[at++] = {uint16_t(lo), uint16_t(hi),
                                  slot - plan.codelets[codelet - 1].slot};
    });
    plan.first_bundle[plan.codelet_count] = count;
    return ok;
}

template <class P>
Status find_fuller_bundles(P &plan) {
    const Memory memory(sizeof(int32_t) * plan.wires);
    if (!memory.start) return out_of_memory;
    int32_t *bundle_of = memory.get<int32_t>(), waiting = 0, done = 0;
    Comparator left[bundle_window];
    memset(bundle_of, 0, sizeof(int32_t) * plan.wires);
    plan.bundle_count = 0;
    const auto take_bundle = [&] {
        Bundle &bundle = plan.bundles[plan.bundle_count++];
        bundle = {done, 0};
        const int32_t number = plan.bundle_count, waited = waiting;
        waiting = 0;
        for (int32_t i = 0; i < waited; ++i) {
            const Comparator c = left[i];
            const bool is_free = bundle_of[c.lo] != number && bundle_of[c.hi] != number &&
                                 bundle.count < most_in_bundle;
            bundle_of[c.lo] = bundle_of[c.hi] =
                number;  // those behind it wait for it, taken or not
            if (is_free)
                plan.in_bundles[done++] = c, ++bundle.count;
            else
                left[waiting++] = c;
        }
    };
    for_each_comparator(plan, [&](int32_t lo, int32_t hi, int32_t slot) {
        if (waiting == bundle_window) take_bundle();
        left[waiting++] = {uint16_t(lo), uint16_t(hi), slot};
    });
    while (waiting) take_bundle();
    return ok;
}

template <class P>
void find_butterflies(P &plan) {
    Butterfly *next = plan.butterflies;
    for (int64_t c = 0; c < plan.codelet_count; ++c) {
        const Codelet codelet = plan.codelets[c];
        const Shape shape = plan.shapes[codelet.shape];
        const ShapeButterfly *each = plan.shape_butterflies + shape.first_butterfly;
        for (int32_t done = 0; done < shape.comparators; done += count_of(each++->pattern)) {
            for (int32_t k = 0; k < 4; ++k)
                next->rows[k] =
                    uint16_t(codelet.base + plan.spreads[codelet.spread + each->places[k]]);
            next->slot = codelet.slot + done, next->pattern = each->pattern;
            next->others = int16_t(first_of(each->pattern));
            ++next;
        }
    }
    for (Butterfly *to = plan.mirrored_butterflies; next != plan.butterflies;)
        *to++ = mirrored(*--next);
}

// Finds the butterflies in front of the last merge. Of one that reaches into the merge, what is in
// front of it stands as comparators of their own.
template <class P>
Status find_front(P &plan) {
    const Memory memory(sizeof(int32_t) * plan.wires);
    if (!memory.start) return out_of_memory;
    int32_t *layer_of = memory.get<int32_t>();
    memset(layer_of, 0, sizeof(int32_t) * plan.wires);
    const int32_t merge = int32_t(plan.layers - plan.merge_layers);
    Butterfly *next = plan.front_butterflies;
    for (int64_t i = 0; i < plan.butterfly_count; ++i) {
        const Butterfly &each = plan.butterflies[i];
        Butterfly *const begin = next;
        uint16_t rows[4];
        memcpy(rows, each.rows, sizeof rows);
        with_pattern(each.pattern, [&](auto kind) {
            constexpr Pattern pattern = decltype(kind)::value;
            run_butterfly<pattern, false>(rows, [&](int32_t c, uint16_t a, uint16_t b) {
                const int32_t layer = layer_of[a] > layer_of[b] ? layer_of[a] : layer_of[b];
                layer_of[a] = layer_of[b] = layer + 1;
                if (layer < merge)
                    *next++ = {{a, b}, int32_t(slot_of(each, pattern, c)), 1, single};
            });
        });
        if (next - begin == count_of(each.pattern)) *begin = each, next = begin + 1;
    }
    plan.front_count = next - plan.front_butterflies;
    const int64_t half = plan.wires / 2;
    for (int64_t layer = 0; layer < plan.merge_layers; ++layer) {
        const int64_t d = half >> layer, of_layer = merge + layer;
        for (int32_t i = of_layer ? plan.layer_end[of_layer - 1] : 0; i < plan.layer_end[of_layer];
             ++i) {
            const Comparator &each = plan.in_layers[i];
            const int64_t wire = each.lo < each.hi ? each.lo : each.hi;
            plan.merge_slots[layer * half + wire / (2 * d) * d + wire % d] = each.slot;
        }
    }
    return ok;
}

// Finds a word of the light cones of butterflies. A column that reaches one of a butterfly's wires
// reaches all of them behind it. Rows do the same backwards. `on` is memory for a word of each
// wire.
inline void follow_cones(int64_t wires, const Butterfly *butterflies, int64_t count, int64_t word,
                         uint64_t *on, uint64_t *of_butterflies) {
    memset(on, 0, sizeof(uint64_t) * wires);
    const int64_t first = word * 64 * cone_columns, end = first + 64 * cone_columns;
    for (int64_t w = first; w < end && w < wires; ++w) on[w] = uint64_t(1) << w / cone_columns % 64;
    for (int64_t k = 0; k < count; ++k) {
        const Butterfly &each = butterflies[k];
        const int32_t rows = rows_of(each.pattern);
        uint64_t any = 0;
        for (int32_t row = 0; row < rows; ++row) any |= on[each.rows[row]];
        for (int32_t row = 0; row < rows; ++row) on[each.rows[row]] = any;
        of_butterflies[k] = any;
    }
}

template <class P>
Status find_cones(P &plan) {
    const Memory memory(sizeof(uint64_t) * plan.wires);
    if (!memory.start) return out_of_memory;
    for (int64_t word = 0; word < plan.cone_words(); ++word) {
        const auto follow = [&](const Butterfly *butterflies, int64_t count, uint64_t *cones) {
            follow_cones(plan.wires, butterflies, count, word, memory.get<uint64_t>(),
                         cones + word * count);
        };
        follow(plan.butterflies, plan.butterfly_count, plan.reached_by);
        follow(plan.mirrored_butterflies, plan.butterfly_count, plan.reaches);
        if (plan.merge_layers > 0)
            follow(plan.front_butterflies, plan.front_count, plan.front_reached_by);
    }
    return ok;
}

template <class P>
void find_narrow_cones(P &plan) {
    NarrowStep *steps = plan.narrow_steps;
    NarrowCone *cone = plan.narrow_cones;
    for (int64_t column = 0; column < plan.wires; column += narrow_columns, ++cone) {
        cone->steps = steps;
        for (int64_t wire = 0; wire < plan.wires; ++wire)
            cone->reaches[wire] = column <= wire && wire < column + narrow_columns;
        for (int64_t b = 0; b < plan.butterfly_count; ++b) {
            const Butterfly &butterfly = plan.butterflies[b];
            const int32_t rows = rows_of(butterfly.pattern);
            bool reached = false;
            for (int32_t k = 0; k < rows; ++k) reached |= cone->reaches[butterfly.rows[k]];
            if (!reached) continue;
            steps->butterfly = butterfly;
            for (int32_t k = 0; k < rows; ++k) {
                bool &reaches = cone->reaches[butterfly.rows[k]];
                steps->from[k] = uint8_t(reaches ? butterfly.rows[k] : plan.wires);
                reaches = true;
            }
            ++steps;
        }
        cone->count = int32_t(steps - cone->steps);
        cone->reaches_all = true;
        for (int64_t wire = 0; wire < plan.wires; ++wire) cone->reaches_all &= cone->reaches[wire];
    }
}

// Gives a plan memory for a table, all zero, in place of what a failed attempt left; false if there
// is none.
template <class T>
bool allot(T *&table, int64_t count) {
    free(table);
    table = static_cast<T *>(calloc(size_t(count + 1), sizeof(T)));
    return table != nullptr;
}

template <class P>
Status make_bundles(P &plan) {
    const int64_t count = plan.comparators;
    if (!allot(plan.in_codelets, count) || !allot(plan.codelet_bundles, count) ||
        !allot(plan.first_bundle, plan.codelet_count) || !allot(plan.in_bundles, count) ||
        !allot(plan.bundles, count))
        return out_of_memory;
    const Status status = find_bundles_of_codelets(plan);
    return status == ok ? find_fuller_bundles(plan) : status;
}

template <class P>
Status make_butterflies(P &plan) {
    const int64_t count = plan.butterfly_count;
    if (!allot(plan.butterflies, count) || !allot(plan.mirrored_butterflies, count))
        return out_of_memory;
    find_butterflies(plan);
    if (!P::may_end_in_merge || !plan.merge_layers) return ok;
    if (!allot(plan.front_butterflies, plan.comparators) ||
        !allot(plan.merge_slots, plan.merge_layers * plan.wires / 2))
        return out_of_memory;
    return find_front(plan);
}

template <class P>
Status make_cones(P &plan) {
    const int64_t words = plan.cone_words(),
                  narrow = (plan.wires + narrow_columns - 1) / narrow_columns;
    if (!allot(plan.reached_by, plan.butterfly_count * words) ||
        !allot(plan.reaches, plan.butterfly_count * words) ||
        !allot(plan.front_reached_by, plan.front_count * words))
        return out_of_memory;
    if (plan.is_narrow()) {
        if (!allot(plan.narrow_cones, narrow) ||
            !allot(plan.narrow_steps, narrow * plan.butterfly_count))
            return out_of_memory;
        find_narrow_cones(plan);
    }
    return find_cones(plan);
}

template <class Network, class Relaxed>
Status Plan<Network, Relaxed>::prepare() {
    return once.run([&] {
        if (!allot(in_layers, this->comparators) || !allot(layer_end, this->layers))
            return out_of_memory;
        Status status = find_layers(*this);
        if (status != ok) return status;
        if (is_long) {
            if (!allot(range_end, this->layers * ranges) || !allot(joins, this->layers))
                return out_of_memory;
            return find_ranges(*this);
        }
        status = prepare_routing();
        return status == ok ? make_cones(*this) : status;
    });
}

template <class Network, class Relaxed>
Status Plan<Network, Relaxed>::prepare_routing() {
    return once_routing.run([&] {
        const Status status = make_bundles(*this);
        return status == ok ? make_butterflies(*this) : status;
    });
}

}  // namespace nsc
