// Columns in front of a final merge: the probabilities of their truths behind it, and the way back.
#pragma once

#include <nsc/relaxed/columns.h>
#include <nsc/relaxed/final_merge.h>
#include <nsc/relaxed/groups.h>

namespace nsc {

// The columns of a sample with a factored merge.
template <class P, class real>
struct MergeColumns {
    using Row = Vec<real>;
    using Term = typename Merge<P, real>::Term;
    static constexpr int64_t parts_of_tile = Merge<P, real>::parts_of_tile;

    // Fills a group with columns of the unit matrix, from `column` on, in their half of the wires.
    void load_units(Row *group, int64_t column, int64_t width) const {
        memset(group + column / half() * half() * group_blocks, 0,
               sizeof(Row) * half() * group_blocks);
        for (int64_t k = 0; k < width; ++k)
            group[(column + k) * group_blocks + k / lanes<real>][k % lanes<real>] = side_unit<real>;
    }

    // The probabilities of the truths of a block of columns, given A, which is left transposed:
    // in tiles of `lanes` wires and as many columns. `sums`: by column, the products with its row.
    NSC_NOINLINE Probability<real> probability_of(const Truths<real> &truths, int64_t side, Row *a,
                                                  Row (*sums)[parts_of_tile]) const {
        a += side * half() * group_blocks;
        Term terms[lanes<real>];
        for (int64_t lane = 0; lane < lanes<real>; ++lane) {
            terms[lane] = merge.term_of(rank_of(truths, lane), false);
            for (int64_t part = 0; part < parts_of_tile; ++part) sums[lane][part] = Row{};
        }
        for_strips([&](int64_t begin, int64_t end) {
            transpose_tiles(a, a, begin, end);
            for (int64_t lane = 0; lane < lanes<real>; ++lane) {
                const real *row = merge.rows_of(side) + terms[lane].row;
                const Row *at = a + lane * group_blocks;
                NSC_UNROLL
                for (int64_t part = 0; part < parts_of_tile; ++part) {
                    Row sum = sums[lane][part];
                    for (int64_t w = begin + part * lanes<real>; w < end; w += merge_block)
                        sum += at[w * group_blocks] * load(row + w);
                    sums[lane][part] = sum;
                }
            }
        });
        Row products[lanes<real>];
        for (int64_t lane = 0; lane < lanes<real>; ++lane) {
            const real *tile = merge.parts + terms[lane].tile;
            products[lane] = sums[lane][0] * load(tile);
            for (int64_t part = 1; part < parts_of_tile; ++part)
                products[lane] += sums[lane][part] * load(tile + part * lanes<real>);
        }
        const Row p = row_sums<real>(products);
        if (!any(is_large<real>(p))) return probability<real>(p, p);
        for (int64_t lane = 0; lane < lanes<real>; ++lane)
            products[lane] = p[lane] > real(0.75) * unit<real>
                                 ? sum_of_column(merge.term_of(rank_of(truths, lane), true), side,
                                                 a + lane * group_blocks)
                                 : Row{};
        return probability<real>(p, row_sums<real>(products));
    }
    // The sum over wires of a term times a column, by lanes. A is transposed.
    Row sum_of_column(Term term, int64_t side, const Row *a) const {
        const real *table = merge.rows_of(side), *tile = merge.parts + term.tile;
        Row sum = {};
        for (int64_t w = 0; w < half(); w += lanes<real>) {
            Row paths = load(table + term.row + w) * load(tile + w % merge_block);
            if (term.other >= 0) paths += load(table + term.other + w);
            sum += paths * a[w * group_blocks];
        }
        return sum;
    }

    // Puts the gradient of A into `grads`, and adds up the gradients of the tables. A is
    // transposed, and lost. Of several ranks that are almost certain the slope stands negated at
    // all others.
    NSC_NOINLINE void find_gradients(const Truths<real> &truths, int64_t side, Row *a, Row *grads,
                                     const Row (*sums)[parts_of_tile], Row p, Row slope,
                                     Sums<real> to) const {
        a += side * half() * group_blocks, grads += side * half() * group_blocks;
        const real *table = merge.rows_of(side);
        const bool may_negate = truths.several && any(is_large<real>(p));
        Row scaled[lanes<real>][parts_of_tile];
        Term terms[lanes<real>];
        for (int64_t lane = 0; lane < lanes<real>; ++lane) {
            const int64_t rank = rank_of(truths, lane);
            const bool negates =
                may_negate && p[lane] > real(0.75) * unit<real> && merge.last_of(rank) > rank;
            if (negates) slope[lane] = -slope[lane];
            terms[lane] = merge.term_of(rank, negates);
            const real *tile = merge.parts + terms[lane].tile;
            real *grad = to.tiles + terms[lane].tile;
            for (int64_t part = 0; part < parts_of_tile;
                 ++part, tile += lanes<real>, grad += lanes<real>) {
                scaled[lane][part] = slope[lane] * load(tile);
                store(grad, load(grad) + slope[lane] * sums[lane][part]);
            }
        }
        for_strips([&](int64_t begin, int64_t end) {
            for (int64_t lane = 0; lane < lanes<real>; ++lane) {
                const real *row = table + terms[lane].row;
                real *grad = to.rows + terms[lane].row;
                Row *at = a + lane * group_blocks;
                if (terms[lane].other >= 0) {
                    add_gradients_with_others(terms[lane], table, to.rows, scaled[lane],
                                              slope[lane], begin, end, at);
                    continue;
                }
                NSC_UNROLL
                for (int64_t part = 0; part < parts_of_tile; ++part)
                    for (int64_t w = begin + part * lanes<real>; w < end; w += merge_block) {
                        Row &entry = at[w * group_blocks];
                        store(grad + w, load(grad + w) + scaled[lane][part] * entry);
                        entry = scaled[lane][part] * load(row + w);
                    }
            }
            transpose_tiles(a, grads, begin, end);
        });
    }
    NSC_NOINLINE static void add_gradients_with_others(Term term, const real *table, real *grads,
                                                       const Row *scaled, real slope, int64_t begin,
                                                       int64_t end, Row *a) {
        for (int64_t w = begin; w < end; w += lanes<real>) {
            const Row entry = a[w * group_blocks], of_part = scaled[w % merge_block / lanes<real>];
            real *grad = grads + term.row + w, *other = grads + term.other + w;
            store(grad, load(grad) + of_part * entry);
            store(other, load(other) + slope * entry);
            a[w * group_blocks] =
                of_part * load(table + term.row + w) + slope * load(table + term.other + w);
        }
    }

    // The rank of a column; of one that counts nothing the first rank, which no interval has
    // inside.
    static int64_t rank_of(const Truths<real> &truths, int64_t lane) {
        return lane < truths.width && truths.weight[lane] != 0 ? truths.rank[lane] : 0;
    }
    // Wires in strips that stay in the cache.
    template <class Visit>
    void for_strips(Visit visit) const {
        const int64_t strip = half() < 32 ? half() : 32;
        for (int64_t w = 0; w < half(); w += strip) visit(w, w + strip);
    }
    NSC_NOINLINE static void transpose_tiles(const Row *from, Row *to, int64_t begin, int64_t end) {
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
        Row sums[lanes<real>][parts_of_tile];
        const Probability<real> p = probability_of(truths, column / half(), a, sums);
        add_losses_of_truths<Loss>(merge.plan, p, truths, losses);
    }
    // The gradient of these losses by A; the losses are added unless `losses` is null.
    template <class Loss>
    void find_loss_gradient(const Truths<real> &truths, int64_t column, Row *a, Row *grads,
                            Sums<real> to, double *losses) const {
        Row sums[lanes<real>][parts_of_tile];
        const Probability<real> p = probability_of(truths, column / half(), a, sums);
        if (losses) add_losses_of_truths<Loss>(merge.plan, p, truths, losses);
        find_gradients(truths, column / half(), a, grads, sums, p.p,
                       slope_of_truths<Loss>(merge.plan, p, truths), to);
    }

    int64_t half() const { return merge.half(merge.plan); }
    const Merge<P, real> &merge;
};

// Calls visit(loss) with the loss of a routing that asks for one entry of each column.
template <class Visit>
NSC_STEP void with_loss_of_truth(Routing routing, Visit visit) {
    with_loss(routing, [&](auto loss) {
        if constexpr (decltype(loss)::of_truth) visit(loss);
    });
}

}  // namespace nsc
