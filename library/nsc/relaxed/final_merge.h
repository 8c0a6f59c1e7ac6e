// The cross entropy of a network that ends in a merge of all its wires, as a bitonic sorter does.
//
// P = B A, where the merge is B. An item needs one entry of its column of P: the sum over wires of
// B[rank, wire] A[wire, item]. Through the merge one path leads from each wire to each rank, so an
// entry of B is a product of weights, one of each level. The last four levels are apart:
// B[rank, wire] = tile[rank, wire % 16] block[rank / 16, wire], so that few numbers stand for all
// of B. A column of A is zero outside of its half of the wires. All factors and sums are of numbers
// that are not negative.
#pragma once

#include <nsc/relaxed/columns.h>
#include <nsc/relaxed/groups.h>

namespace nsc {

// What stands for 1 in A and in blocks, so that `unit` stands for it in their product.
template <class real>
constexpr real side_unit = real(0x1p36);

// Ranks of a block, and their levels.
constexpr int64_t merge_block = 16, merge_block_levels = 4;

// The last four levels on the wires of a block, which join wires 8, 4, 2 and 1 apart. A row has a
// number for each of these wires. Each level halves the ranks that paths can still reach: `sub` is
// the number of a part of 2 d ranks, in front of comparators d wires apart.
template <class real>
struct BlockPaths {
    typedef real Row __attribute__((vector_size(merge_block * sizeof(real))));
    using Sixteen = typename PlacesTo<merge_block>::list;

    // Each level has eight comparators in a block; levels are `stride` apart.
    BlockPaths(const real *keep, const real *swap, int64_t stride) {
        NSC_UNROLL
        for (int64_t level = 0; level < merge_block_levels; ++level) {
            memcpy(&weights[level], keep + level * stride, sizeof(Row) / 2);
            memcpy(reinterpret_cast<char *>(&weights[level]) + sizeof(Row) / 2,
                   swap + level * stride, sizeof(Row) / 2);
        }
    }
    static constexpr int level_of(int d) { return d == 8 ? 0 : d == 4 ? 1 : d == 2 ? 2 : 3; }
    // The weights of the paths from each wire to an output, the first or the second. Rows are
    // passed by reference: they may be wider than a register.
    template <int d, int sub, int out, int... places>
    NSC_STEP void take_weights(Row &to, Places<places...>) const {
        to = __builtin_shufflevector(weights[level_of(d)], weights[level_of(d)],
                                     (sub * d + places % d + ((places / d & 1) != out ? 8 : 0))...);
    }
    // Calls visit(sub, row) for each rank, with the products of its paths' weights, times `from`.
    template <int d = 8, int sub = 0, class Visit>
    NSC_STEP void each_rank(const Row &from, Visit visit) const {
        if constexpr (d == 0) {
            visit(sub, from);
        } else {
            Row zero, one;
            take_weights<d, sub, 0>(zero, Sixteen()), take_weights<d, sub, 1>(one, Sixteen());
            zero *= from, one *= from;
            each_rank<d / 2, 2 * sub>(zero, visit);
            each_rank<d / 2, 2 * sub + 1>(one, visit);
        }
    }
    // The same with what the products lack to 1; `from` is what is lacking in front.
    template <int d = 8, int sub = 0, class Visit>
    NSC_STEP void each_lack(const Row &from, Visit visit) const {
        if constexpr (d == 0) {
            visit(sub, from);
        } else {
            Row zero, one;
            take_weights<d, sub, 0>(zero, Sixteen()), take_weights<d, sub, 1>(one, Sixteen());
            const Row of_zero = one + zero * from, of_one = zero + one * from;
            each_lack<d / 2, 2 * sub>(of_zero, visit);
            each_lack<d / 2, 2 * sub + 1>(of_one, visit);
        }
    }
    // Takes gradients of the ranks' products back to `grad`, that of `from`, and writes those of
    // the weights.
    template <int d = 8, int sub = 0>
    NSC_STEP void back(const Row &from, const Row *of_ranks, Row &grad, real *weight_grads,
                       int64_t stride) const {
        if constexpr (d == 0) {
            grad = of_ranks[sub];
        } else {
            Row zero, one, of_zero, of_one;
            take_weights<d, sub, 0>(zero, Sixteen()), take_weights<d, sub, 1>(one, Sixteen());
            const Row to_zero = from * zero, to_one = from * one;
            back<d / 2, 2 * sub>(to_zero, of_ranks, of_zero, weight_grads, stride);
            back<d / 2, 2 * sub + 1>(to_one, of_ranks, of_one, weight_grads, stride);
            grad = of_zero * zero + of_one * one;
            Row sums = (of_zero - of_one) * from;
            subtract_other<d>(sums, Sixteen());
            add_others<2 * d>(sums, Sixteen());
            memcpy(weight_grads + level_of(d) * stride + sub * d, &sums, d * sizeof(real));
        }
    }
    // Lane k gets the difference of lanes k and k + d, and then the sum of all with the same k % d.
    template <int d, int... places>
    NSC_STEP static void subtract_other(Row &row, Places<places...>) {
        row -= __builtin_shufflevector(row, row, (places ^ d)...);
    }
    template <int bit, int... places>
    NSC_STEP static void add_others(Row &row, Places<places...> list) {
        if constexpr (bit < merge_block) {
            row += __builtin_shufflevector(row, row, (places ^ bit)...);
            add_others<2 * bit>(row, list);
        }
    }

    Row weights[merge_block_levels];  // of each level, eight that keep, then eight that swap
};

// Slots come in whole registers.
template <class real>
void add_to(real *to, const real *from, int64_t slots) {
    for (int64_t c = 0; c < slots; c += lanes<real>) store(to + c, load(to + c) + load(from + c));
}

// Where the gradients of a sample's weights are added up, and of the tiles and blocks of its merge,
// one behind the other.
template <class real>
struct Sums {
    real *slots, *tiles, *blocks;
};

// The merge of a sample.
template <class P, class real>
struct Merge {
    using Row = Vec<real>;
    using Paths = BlockPaths<real>;
    using PathRow = typename Paths::Row;

    static int64_t half(const P &plan) { return plan.wires / 2; }
    static int64_t block_levels(const P &plan) { return plan.merge_levels - merge_block_levels; }
    static int64_t weight_reals(const P &plan) { return plan.merge_levels * half(plan); }
    static int64_t tile_reals(const P &plan) { return merge_block * plan.wires; }
    // Of a half of the wires.
    static int64_t block_reals(const P &plan) { return plan.wires / merge_block * half(plan); }
    static int64_t reals(const P &plan) {
        return 2 * (weight_reals(plan) + tile_reals(plan) + block_reals(plan));
    }
    // Of the sums of a half of the columns, behind the slots.
    static int64_t sum_reals(const P &plan) { return tile_reals(plan) + block_reals(plan); }
    // Each level on the way to a rank keeps two rows.
    static int64_t spare_rows(const P &plan) { return 2 * block_levels(plan); }
    // Memory of backward(): rows, and the gradients of weights.
    static int64_t spare_reals(const P &plan) {
        return spare_rows(plan) * half(plan) + weight_reals(plan);
    }

    Merge(const P &plan, real *memory)
        : plan(plan),
          keep(memory),
          swap(keep + weight_reals(plan)),
          tiles(swap + weight_reals(plan)),
          lacks(tiles + tile_reals(plan)),
          blocks(lacks + tile_reals(plan)) {}

    real *block_row(int64_t of_half, int64_t block) const {
        return blocks + of_half * block_reals(plan) + block * half(plan);
    }

    Sums<real> sums_at(real *start) const {
        return {start, start + plan.slots, start + plan.slots + tile_reals(plan)};
    }

    // Finds the products, given weights by slot.
    NSC_APART void find(const real *by_slot) const {
        const int64_t count = weight_reals(plan), in_blocks = block_levels(plan) * half(plan);
        for (int64_t i = 0; i < count; ++i) {
            keep[i] = by_slot[plan.merge_slots[i]];
            swap[i] = by_slot[plan.merge_slots[i] + plan.slots];
        }
        for (int64_t block = 0; block < plan.wires / merge_block; ++block) {
            const Paths paths(keep + in_blocks + 8 * block, swap + in_blocks + 8 * block,
                              half(plan));
            const int64_t place = block * merge_block * merge_block;
            paths.each_rank(PathRow{} + 1, [&](int sub, const PathRow &row) NSC_INLINE {
                memcpy(tiles + place + sub * merge_block, &row, sizeof row);
            });
            paths.each_lack(PathRow{}, [&](int sub, const PathRow &row) NSC_INLINE {
                memcpy(lacks + place + sub * merge_block, &row, sizeof row);
            });
        }
        const int64_t first = int64_t(1) << (block_levels(plan) - 1);
        for (int64_t of_half = 0; of_half < 2; ++of_half) {
            for (int64_t out = 0; out < 2; ++out) {
                const real *from = out == of_half ? keep : swap;
                real *to = block_row(of_half, out * first);
                for (int64_t y = 0; y < half(plan); y += lanes<real>)
                    store(to + y, load(from + y) * side_unit<real>);
            }
            for (int64_t level = 1; level < block_levels(plan); ++level)
                for (int64_t prefix = 0; prefix < int64_t(1) << level; ++prefix) {
                    const int64_t apart = int64_t(1) << (block_levels(plan) - 1 - level);
                    split(level, prefix, block_row(of_half, 2 * prefix * apart),
                          block_row(of_half, (2 * prefix + 1) * apart));
                }
        }
    }

    // Takes a row of paths through comparators: those to their first outputs stay in place.
    void split(int64_t level, int64_t prefix, real *row, real *second) const {
        const int64_t d = half(plan) >> level;
        const real *k = keep + level * half(plan) + prefix * d,
                   *s = swap + level * half(plan) + prefix * d;
        for (int64_t x = 0; x < half(plan); x += 2 * d)
            for (int64_t y = 0; y < d; y += lanes<real>) {
                const Row a = load(row + x + y), b = load(row + x + d + y), kept = load(k + y),
                          swapped = load(s + y);
                store(row + x + y, a * kept), store(second + x + y, a * swapped);
                store(row + x + d + y, b * swapped), store(second + x + d + y, b * kept);
            }
    }

    // What the probability of a column's truth lacks to 1, by lanes: the sum over wires of
    // (1 - B) A. A is transposed.
    Row rest_of(int64_t rank, int64_t of_half, const Row *a) const {
        const int64_t block = rank / merge_block;
        const real *tile = tiles + rank * merge_block, *lack = lacks + rank * merge_block;
        Row sum = {};
        for (int64_t w = 0; w < half(plan); w += lanes<real>) {
            Row lacking = {};
            for (int64_t level = 0; level < block_levels(plan); ++level) {
                const int64_t d = half(plan) >> level,
                              out = block >> (block_levels(plan) - 1 - level),
                              at = level * half(plan) + (out >> 1) * d + w % d,
                              input = level ? w / d : of_half;
                const bool stays = (input ^ out) % 2 == 0;
                const Row kept = load(keep + at), swapped = load(swap + at);
                lacking = stays ? swapped + kept * lacking : kept + swapped * lacking;
            }
            const int64_t u = w % merge_block;
            sum += (load(lack + u) + load(tile + u) * lacking) * a[w * group_blocks];
        }
        return sum * side_unit<real>;
    }

    static constexpr int64_t parts = merge_block / lanes<real>;  // registers of a row of a tile

    // Fills a group with columns of the unit matrix, from `column` on, in their half of the wires.
    void load_units(Row *group, int64_t column, int64_t width) const {
        memset(group + column / half(plan) * half(plan) * group_blocks, 0,
               sizeof(Row) * half(plan) * group_blocks);
        for (int64_t k = 0; k < width; ++k)
            group[(column + k) * group_blocks + k / lanes<real>][k % lanes<real>] = side_unit<real>;
    }

    // The probabilities of the truths of a block of columns, given A, which is left transposed:
    // in tiles of `lanes` wires and as many columns. `sums`: by column, the products with its
    // block.
    NSC_APART Probability<real> probability_of(const Truths<real> &truths, int64_t of_half, Row *a,
                                               Row (*sums)[parts]) const {
        a += of_half * half(plan) * group_blocks;
        for (int64_t lane = 0; lane < lanes<real>; ++lane)
            for (int64_t part = 0; part < parts; ++part) sums[lane][part] = Row{};
        for_strips([&](int64_t begin, int64_t end) {
            transpose_tiles(a, a, begin, end);
            for (int64_t lane = 0; lane < lanes<real>; ++lane) {
                const real *row = block_row(of_half, rank_of(truths, lane) / merge_block);
                const Row *at = a + lane * group_blocks;
                NSC_UNROLL
                for (int64_t part = 0; part < parts; ++part) {
                    Row sum = sums[lane][part];
                    for (int64_t w = begin + part * lanes<real>; w < end; w += merge_block)
                        sum += at[w * group_blocks] * load(row + w);
                    sums[lane][part] = sum;
                }
            }
        });
        Row products[lanes<real>];
        for (int64_t lane = 0; lane < lanes<real>; ++lane) {
            const real *tile = tiles + rank_of(truths, lane) * merge_block;
            products[lane] = sums[lane][0] * load(tile);
            for (int64_t part = 1; part < parts; ++part)
                products[lane] += sums[lane][part] * load(tile + part * lanes<real>);
        }
        const Row p = row_sums<real>(products);
        if (!any(is_large<real>(p))) return probability<real>(p, p);
        for (int64_t lane = 0; lane < lanes<real>; ++lane)
            products[lane] = p[lane] > real(0.75) * unit<real>
                                 ? rest_of(rank_of(truths, lane), of_half, a + lane * group_blocks)
                                 : Row{};
        return probability<real>(p, row_sums<real>(products));
    }

    // Puts the gradient of A into `grads`, and adds up those of the merge. A is transposed, and
    // lost.
    NSC_APART void find_gradients(const Truths<real> &truths, int64_t of_half, Row *a, Row *grads,
                                  const Row (*sums)[parts], Row slope, Sums<real> to) const {
        a += of_half * half(plan) * group_blocks, grads += of_half * half(plan) * group_blocks;
        Row scaled[lanes<real>][parts];
        for (int64_t lane = 0; lane < lanes<real>; ++lane) {
            const real *tile = tiles + rank_of(truths, lane) * merge_block;
            real *grad = to.tiles + rank_of(truths, lane) * merge_block;
            for (int64_t part = 0; part < parts; ++part, tile += lanes<real>, grad += lanes<real>) {
                scaled[lane][part] = slope[lane] * load(tile);
                store(grad, load(grad) + slope[lane] * sums[lane][part]);
            }
        }
        for_strips([&](int64_t begin, int64_t end) {
            for (int64_t lane = 0; lane < lanes<real>; ++lane) {
                const int64_t block = rank_of(truths, lane) / merge_block;
                const real *row = block_row(of_half, block);
                real *grad = to.blocks + block * half(plan);
                Row *at = a + lane * group_blocks;
                NSC_UNROLL
                for (int64_t part = 0; part < parts; ++part)
                    for (int64_t w = begin + part * lanes<real>; w < end; w += merge_block) {
                        Row &entry = at[w * group_blocks];
                        store(grad + w, load(grad + w) + scaled[lane][part] * entry);
                        entry = scaled[lane][part] * load(row + w);
                    }
            }
            transpose_tiles(a, grads, begin, end);
        });
    }

    // The rank of a column; any rank of an item that has none, whose weight is zero.
    static int64_t rank_of(const Truths<real> &truths, int64_t lane) {
        return lane < truths.width ? truths.rank[lane] : 0;
    }
    // Wires in strips that stay in the cache.
    template <class Visit>
    void for_strips(Visit visit) const {
        const int64_t strip = half(plan) < 32 ? half(plan) : 32;
        for (int64_t w = 0; w < half(plan); w += strip) visit(w, w + strip);
    }
    NSC_APART static void transpose_tiles(const Row *from, Row *to, int64_t begin, int64_t end) {
        for (int64_t w = begin; w < end; w += lanes<real>) {
            Row tile[lanes<real>];
            NSC_UNROLL
            for (int i = 0; i < lanes<real>; ++i) tile[i] = from[(w + i) * group_blocks];
            transpose_from<real>(tile);
            NSC_UNROLL
            for (int i = 0; i < lanes<real>; ++i) to[(w + i) * group_blocks] = tile[i];
        }
    }

    // Adds the losses of a block of columns, from `column` on, given A, which is lost.
    template <class Loss>
    void add_losses(const Truths<real> &truths, int64_t column, Row *a, double *losses) const {
        Row sums[lanes<real>][parts];
        const Probability<real> p = probability_of(truths, column / half(plan), a, sums);
        add_losses_of_truths<Loss>(plan, p, truths, losses);
    }
    // The gradient of these losses by A; the losses are added unless `losses` is null.
    template <class Loss>
    void find_loss_gradient(const Truths<real> &truths, int64_t column, Row *a, Row *grads,
                            Sums<real> to, double *losses) const {
        Row sums[lanes<real>][parts];
        const Probability<real> p = probability_of(truths, column / half(plan), a, sums);
        if (losses) add_losses_of_truths<Loss>(plan, p, truths, losses);
        find_gradients(truths, column / half(plan), a, grads, sums,
                       slope_of_truths<Loss>(plan, p, truths), to);
    }

    // Adds the sums of the second half of the columns to those of the first, and the gradients of
    // the merge's weights to those of their slots.
    NSC_APART void backward(Sums<real> first, Sums<real> second, real *spare) const {
        add_to(first.slots, second.slots, plan.slots);
        add_to(first.tiles, second.tiles, tile_reals(plan));
        real *weight_grads = spare + spare_rows(plan) * half(plan);
        memset(weight_grads, 0, sizeof(real) * weight_reals(plan));
        const int64_t in_blocks = block_levels(plan) * half(plan),
                      apart = int64_t(1) << (block_levels(plan) - 1);
        for (int64_t block = 0; block < plan.wires / merge_block; ++block) {
            const Paths paths(keep + in_blocks + 8 * block, swap + in_blocks + 8 * block,
                              half(plan));
            PathRow grads[merge_block];
            memcpy(grads, first.tiles + block * merge_block * merge_block, sizeof grads);
            PathRow grad;
            paths.back(PathRow{} + 1, grads, grad, weight_grads + in_blocks + 8 * block,
                       half(plan));
        }
        for (int64_t of_half = 0; of_half < 2; ++of_half)
            for (int64_t out = 0; out < 2; ++out) {
                const real *from = out == of_half ? keep : swap;
                for (int64_t y = 0; y < half(plan); y += lanes<real>)
                    store(spare + y, load(from + y) * side_unit<real>);
                real *grads = (of_half ? second : first).blocks + out * apart * half(plan);
                back(1, out, spare, grads, weight_grads);
                const real sign = out == of_half ? side_unit<real> : -side_unit<real>;
                for (int64_t y = 0; y < half(plan); y += lanes<real>)
                    store(weight_grads + y, load(weight_grads + y) + sign * load(grads + y));
            }
        for (int64_t i = 0; i < weight_reals(plan); ++i)
            first.slots[plan.merge_slots[i]] += weight_grads[i];
    }
    // Given a row of paths and the gradients of those behind it, puts its own in place.
    void back(int64_t level, int64_t prefix, real *row, real *grads, real *weight_grads) const {
        if (level == block_levels(plan)) return;
        const int64_t d = half(plan) >> level, apart = int64_t(1)
                                                       << (block_levels(plan) - 1 - level);
        real *second = grads + apart * half(plan);
        if (level + 1 < block_levels(plan)) {
            real *behind = row + half(plan), *other = behind + half(plan);
            memcpy(behind, row, sizeof(real) * half(plan));
            split(level, prefix, behind, other);
            // `other` is where the rows behind `behind` begin: it goes last.
            back(level + 1, 2 * prefix + 1, other, second, weight_grads);
            back(level + 1, 2 * prefix, behind, grads, weight_grads);
        }
        const real *k = keep + level * half(plan) + prefix * d,
                   *s = swap + level * half(plan) + prefix * d;
        real *to = weight_grads + level * half(plan) + prefix * d;
        for (int64_t x = 0; x < half(plan); x += 2 * d)
            for (int64_t y = 0; y < d; y += lanes<real>) {
                const Row a = load(row + x + y), b = load(row + x + d + y), kept = load(k + y),
                          swapped = load(s + y);
                const Row a0 = load(grads + x + y), a1 = load(second + x + y),
                          b0 = load(grads + x + d + y), b1 = load(second + x + d + y);
                store(to + y, load(to + y) + ((a0 - a1) * a - (b0 - b1) * b));
                store(grads + x + y, a0 * kept + a1 * swapped);
                store(grads + x + d + y, b0 * swapped + b1 * kept);
            }
    }

    const P &plan;
    real *keep, *swap;    // weights by level, then from wire 0 on
    real *tiles, *lacks;  // 16 for each rank, and what these lack to 1
    real *blocks;         // for each half of the wires and each block of ranks, one for each wire
};

// Reals of a sample's merge, of its sums and of its backward pass; none if a call has no merge
// apart.
struct MergeReals {
    int64_t merge, sums, backward;
};

template <class P, class real>
MergeReals merge_reals(const Call<P, real> &call) {
    if constexpr (Call<P, real>::may_be_parted) {
        using Of = Merge<P, real>;
        if (call.is_parted())
            return {Of::reals(call.plan), Of::sum_reals(call.plan), Of::spare_reals(call.plan)};
    }
    return {};
}

// Calls visit(merge) with a sample's merge if the call takes it apart; returns whether it does.
template <class P, class real, class Visit>
NSC_STEP bool with_merge(const Call<P, real> &call, real *of_merge, Visit visit) {
    if constexpr (Call<P, real>::may_be_parted)
        if (call.is_parted()) {
            visit(Merge<P, real>(call.plan, of_merge));
            return true;
        }
    return false;
}

// Calls visit(loss) with the loss of a routing that asks for one entry of each column.
template <class Visit>
NSC_STEP void with_loss_of_truth(Routing routing, Visit visit) {
    with_loss(routing, [&](auto loss) {
        if constexpr (decltype(loss)::of_truth) visit(loss);
    });
}

}  // namespace nsc
