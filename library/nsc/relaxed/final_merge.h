// The cross entropy of a network that ends in a merge of all its wires, as a bitonic sorter does.
//
// P = B A, where the merge is B. An item needs one entry of its column of P, or the sum of the
// entries of an interval of ranks: the sum over wires of B[rank, wire] A[wire, item]. Through the
// merge one path leads from each wire to each rank, so an entry of B is a product of weights, one
// per layer. The last four layers are a factor of their own, so that few numbers stand for all of
// B:
//
//     B[rank, wire] = tile[rank, wire % 16] block[rank / 16, wire].
//
// A column of A is zero outside of its half of the wires. All factors and sums are of numbers that
// are not negative.
//
// In front of the merge a column stays in its half of the wires, and the merge has more than half
// of the comparators that a column meets. The tables of B take n * n / 16 + 16 n numbers and a few
// thousand operations. The way back adds up the gradients of tables, and takes them through the
// merge once a sample. What p lacks to 1 is the same sum over all other ranks, so it is a sum too.
//
// It serves sorters of 64 wires and more (128 with AVX2), and losses of ranks or of intervals that
// are equal or disjoint. All else takes P whole: other losses, shares, intervals that share some
// ranks, the error-free form, and samples of which few columns count. Rows of the B of any network
// could be routed by its mirrored butterflies, but what lies between rows and columns then takes
// what that saves. compiler/relaxed says which networks end in such a merge.
#pragma once

#include <nsc/relaxed/block_paths.h>
#include <nsc/relaxed/call.h>

namespace nsc {

// This number stands for 1 in A and in blocks, so that `unit` stands for it in their product.
template <class real>
constexpr real side_unit = real(0x1p36);

// A sample's merge is factored if more than an eighth of the groups of its columns count: tables
// for fewer cost more than they save.
constexpr int64_t groups_for_tables = 8;

// Slots come in whole registers.
template <class real>
void add_to(real *to, const real *from, int64_t slots) {
    for (int64_t c = 0; c < slots; c += lanes<real>) store(to + c, load(to + c) + load(from + c));
}

// Where the gradients of a sample's weights are added up, and of the tables of its merge, one
// behind the other: of tiles, and of rows.
template <class real>
struct Sums {
    real *slots, *tiles, *rows;
};

// Tables of rows, one row per block of 16 ranks: the paths to the block, and to all other blocks.
// For a rank r, or an interval of ranks in one block,
//
//     p     = sum over w of of_block[b, w] * tile[r, w % 16] * A[w]
//     1 - p = sum over w of (of_block[b, w] * other_tile[r, w % 16] + of_other_blocks[b, w]) *
//     A[w].
//
// A long interval, over several blocks, has two rows behind the tables: its own, and the row of all
// other ranks.
enum RowTable { of_block, of_other_blocks };

// The merge of a sample.
template <class P, class real>
struct Merge {
    using Row = Vec<real>;
    using Paths = BlockPaths<real>;
    using PathRow = typename Paths::Row;

    static int64_t half(const P &plan) { return plan.wires / 2; }
    static int64_t blocks_of(const P &plan) { return plan.wires / merge_block; }
    static int64_t block_layers(const P &plan) { return plan.merge_layers - merge_block_layers; }
    static int64_t weight_reals(const P &plan) { return plan.merge_layers * half(plan); }
    static int64_t tile_reals(const P &plan) { return merge_block * plan.wires; }
    // Reals of a table of rows, for a half of the wires.
    static int64_t row_reals(const P &plan) { return blocks_of(plan) * half(plan); }
    // Reals of the tables of tiles that rows go with, and of all tables of rows for a half of the
    // wires.
    static int64_t tile_reals(const P &plan, Form form) {
        return form == of_ranks ? 2 * tile_reals(plan) : 2 * tile_reals(plan) + merge_block;
    }
    static int64_t row_reals(const P &plan, Form form) {
        return (form == of_ranks ? 2 : 4) * row_reals(plan);
    }
    static int64_t reals(const P &plan, Form form) {
        return lanes<real> + 2 * weight_reals(plan) + tile_reals(plan, form) +
               2 * row_reals(plan, form) +
               (form == of_ranks ? 0 : tile_reals(plan) + 2 * plan.wires);
    }
    // Reals of the sums of a half of the columns, behind the slots. With targets that are ranks the
    // tables for other ranks have no gradients.
    static int64_t sum_reals(const P &plan, Form form) {
        return form == of_ranks ? tile_reals(plan) + row_reals(plan)
                                : tile_reals(plan, form) + row_reals(plan, form);
    }
    // Each layer on the way to a rank keeps two rows.
    static int64_t spare_rows(const P &plan) { return 2 * block_layers(plan); }
    // Memory of backward(): rows, and the gradients of weights and of tiles.
    static int64_t spare_reals(const P &plan) {
        return spare_rows(plan) * half(plan) + weight_reals(plan) + tile_reals(plan);
    }

    Merge(const P &plan, Form form, real *memory)
        : plan(plan),
          state(reinterpret_cast<State *>(memory)),
          keep(memory + lanes<real>),
          swap(keep + weight_reals(plan)),
          parts(swap + weight_reals(plan)),
          others(parts + tile_reals(plan)),
          rows(parts + tile_reals(plan, form)),
          half_rows(row_reals(plan, form)),
          tiles(form == of_ranks ? parts : rows + 2 * half_rows),
          last(form == of_ranks ? nullptr : reinterpret_cast<int32_t *>(tiles + tile_reals(plan))),
          beginning(last ? last + plan.wires : nullptr),
          ending(last ? beginning + blocks_of(plan) : nullptr) {}

    int64_t place_of(RowTable table, int64_t block) const {
        return table * row_reals(plan) + block * half(plan);
    }
    real *rows_of(int64_t side) const { return rows + side * half_rows; }
    real *row(RowTable table, int64_t side, int64_t block) const {
        return rows_of(side) + place_of(table, block);
    }
    real *sums_of(Sums<real> sums, RowTable table, int64_t block) const {
        return sums.rows + place_of(table, block);
    }
    // The place of the row of a long interval, or of the row of all other ranks.
    int64_t place_of_long(int64_t number, bool of_others) const {
        return 2 * row_reals(plan) + (2 * number + of_others) * half(plan);
    }
    // Reals of the sums that are used: there may be few long intervals.
    int64_t used_sums() const {
        return last ? tile_reals(plan, of_intervals) + place_of_long(long_count(), false)
                    : sum_reals(plan, of_ranks);
    }
    static Sums<real> sums_at(const P &plan, Form form, real *start) {
        real *tiles = start + plan.slots;
        return {start, tiles,
                tiles + (form == of_ranks ? tile_reals(plan) : tile_reals(plan, form))};
    }

    // Whether the merge is factored: enough columns must count, and intervals that are not equal
    // must share no rank.
    bool is_factored() const { return state->halves != 0; }
    // Whether a factored merge has columns that count in a half of the wires.
    bool has_half(int64_t side) const { return state->halves >> side & 1; }
    // How many intervals are long.
    int64_t long_count() const { return state->long_count; }
    // The last rank of the interval that begins with a rank, or with that part of it in a block.
    int64_t last_of(int64_t rank) const { return last ? last[rank] : rank; }
    bool spans(int64_t rank) const { return last_of(rank) / merge_block > rank / merge_block; }
    // Calls visit(first, last) for the intervals in order.
    template <class Visit>
    void for_intervals(Visit visit) const {
        for (int64_t rank = 0; rank < plan.wires; ++rank)
            if (last_of(rank) >= 0) visit(rank, last_of(rank)), rank = last_of(rank);
    }
    // Calls visit(number, first, last) for the long intervals in order.
    template <class Visit>
    void for_long_intervals(Visit visit) const {
        int64_t number = 0;
        if (long_count() > 0)
            for_intervals([&](int64_t first, int64_t end) {
                if (spans(first)) visit(number++, first, end);
            });
    }
    // Calls visit(from, to) for the parts of an interval, one in each block.
    template <class Visit>
    static void for_parts(int64_t first, int64_t last, Visit visit) {
        for (int64_t from = first; from <= last; from = (from / merge_block + 1) * merge_block)
            visit(from, end_of_part(from, last));
    }
    static int64_t end_of_part(int64_t from, int64_t last) {
        const int64_t end = from / merge_block * merge_block + merge_block - 1;
        return last < end ? last : end;
    }

    // In a block, the last rank of the part that begins with each, or a number below 0.
    struct Ends {
        int64_t at[merge_block];
    };
    Ends ends_of(int64_t begin) const {
        Ends ends;
        for (int64_t k = 0; k < merge_block; ++k)
            ends.at[k] = last ? end_of_part(begin + k, last[begin + k]) - begin : k;
        return ends;
    }

    // Finds the tables, given weights by slot.
    NSC_NOINLINE void find(const real *by_slot, const Target<real> &target) const {
        *state = {halves_of(plan, target), 0};
        if (last && is_factored() && !find_intervals(target)) state->halves = 0;
        if (!is_factored()) return;
        const int64_t count = weight_reals(plan), in_blocks = block_layers(plan) * half(plan);
        for (int64_t i = 0; i < count; ++i) {
            keep[i] = by_slot[plan.merge_slots[i]];
            swap[i] = by_slot[plan.merge_slots[i] + plan.slots];
        }
        for (int64_t block = 0; block < blocks_of(plan); ++block) {
            const Paths paths(keep + in_blocks + 8 * block, swap + in_blocks + 8 * block,
                              half(plan));
            const int64_t place = block * merge_block * merge_block;
            paths.each_rank(PathRow{} + 1, [&](int sub, const PathRow &row) NSC_INLINE {
                memcpy(tiles + place + sub * merge_block, &row, sizeof row);
            });
            find_parts(block * merge_block);
        }
        for (int64_t i = 0; last && i < merge_block; ++i) others[tile_reals(plan) + i] = 1;
        const int64_t first = int64_t(1) << (block_layers(plan) - 1);
        for (int64_t side = 0; side < 2; ++side) {
            if (!has_half(side)) continue;
            for (int64_t out = 0; out < 2; ++out) {
                const real *from = out == side ? keep : swap;
                real *to = row(of_block, side, out * first);
                for (int64_t y = 0; y < half(plan); y += lanes<real>)
                    store(to + y, load(from + y) * side_unit<real>);
            }
            for (int64_t layer = 1; layer < block_layers(plan); ++layer)
                for (int64_t prefix = 0; prefix < int64_t(1) << layer; ++prefix) {
                    const int64_t stride = int64_t(1) << (block_layers(plan) - 1 - layer);
                    split(layer, prefix, row(of_block, side, 2 * prefix * stride),
                          row(of_block, side, (2 * prefix + 1) * stride));
                }
            find_rows(side);
        }
    }

    // The halves of the wires in which columns of a sample count, a bit for each half; 0 if tables
    // do not pay.
    static int32_t halves_of(const P &plan, const Target<real> &target) {
        const int64_t size = group_blocks * lanes<real>, groups = half(plan) / size;
        int64_t counted = 0, halves = 0, bits = 0;
        for (int64_t side = 0; side < 2; ++side) {
            int64_t in_half = 0;
            for (int64_t k = 0; k < groups; ++k)
                in_half +=
                    target.counts((side * groups + k) * size, (side * groups + k + 1) * size);
            if (in_half) counted += in_half, ++halves, bits |= int64_t(1) << side;
        }
        return counted * groups_for_tables > halves * groups ? int32_t(bits) : 0;
    }

    // Finds the last rank of each interval that counts, and the long intervals. Returns whether
    // intervals are equal or disjoint.
    bool find_intervals(const Target<real> &target) const {
        memset(last, -1, sizeof(int32_t) * 2 * plan.wires);
        bool are_disjoint = true;
        int32_t &count = state->long_count;
        for (int64_t column = 0; column < plan.wires; ++column) {
            const Truth<real> truth = target.truth(column);
            if (truth.weight == 0) continue;
            are_disjoint &= last[truth.first] < 0 || last[truth.first] == truth.last;
            last[truth.first] = truth.last;
        }
        for (int64_t rank = 0; rank < plan.wires; ++rank) {
            const int32_t end = last[rank];
            if (end < 0) continue;
            if (end / merge_block > rank / merge_block)
                beginning[rank / merge_block] = ending[end / merge_block] = count++;
            for (; rank < end; ++rank) {
                are_disjoint &= last[rank + 1] < 0;
                if ((rank + 1) % merge_block == 0) last[rank + 1] = end;
            }
        }
        return are_disjoint;
    }

    // Finds what the parts of intervals in a block have of its tiles, and what other ranks have.
    void find_parts(int64_t begin) const {
        const Ends ends = ends_of(begin);
        for (int64_t part = 0; part < parts_of_tile; ++part) {
            const int64_t first = begin * merge_block + part * lanes<real>;
            Row before = {}, behind[merge_block + 1];
            behind[merge_block] = Row{};
            for (int64_t k = merge_block - 1; k >= 0; --k)
                behind[k] = behind[k + 1] + load(tiles + first + k * merge_block);
            for (int64_t k = 0; k < merge_block; ++k) {
                const int64_t at = first + k * merge_block;
                store(others + at, ends.at[k] < 0 ? Row{} : before + behind[ends.at[k] + 1]);
                before += load(tiles + at);
                if (!last) continue;
                Row sum = {};
                for (int64_t i = k; i <= ends.at[k]; ++i)
                    sum += load(tiles + first + i * merge_block);
                store(parts + at, sum);
            }
        }
    }

    // Finds the other rows, for a half of the wires.
    void find_rows(int64_t side) const {
        real *const table = rows_of(side), *const sums = row(of_other_blocks, side, 0);
        const auto of_others = [&](int64_t number) { return table + place_of_long(number, true); };
        const bool has_long = long_count() > 0;
        add_up<1>(table, [&](int64_t block, int64_t at, int64_t w, const Row &sum) {
            store(sums + at, sum);
            if (has_long && beginning[block] >= 0) store(of_others(beginning[block]) + w, sum);
        });
        add_up<-1>(table, [&](int64_t block, int64_t at, int64_t w, const Row &sum) {
            store(sums + at, load(sums + at) + sum);
            if (!has_long || ending[block] < 0) return;
            real *to = of_others(ending[block]) + w;
            store(to, load(to) + sum);
        });
        for_long_intervals([&](int64_t number, int64_t first, int64_t end) {
            real *of_interval = table + place_of_long(number, false);
            memset(of_interval, 0, sizeof(real) * half(plan));
            for_parts(first, end, [&](int64_t from, int64_t) {
                const real *paths = row(of_block, side, from / merge_block);
                add_part(of_interval, paths, parts + from * merge_block);
                add_part(of_others(number), paths, others + from * merge_block);
            });
        });
    }
    // Adds up the rows of a table, in the order of the blocks or backwards. In front of each,
    // visit(block, at, w, sum) is called with the sum of the rows before it, of the lanes from wire
    // w on, which are `at` in the table; it may add to the sum.
    template <int step, class Visit>
    NSC_STEP void add_up(const real *from, Visit visit) const {
        constexpr int64_t most = 8;  // registers of a strip: of a row, whole cache lines
        const int64_t strip = half(plan) < most * lanes<real> ? half(plan) : most * lanes<real>,
                      count = blocks_of(plan);
        for (int64_t begin = 0; begin < half(plan); begin += strip) {
            Row sums[most] = {};
            for (int64_t i = 0; i < count; ++i) {
                const int64_t block = step > 0 ? i : count - 1 - i;
                for (int64_t w = begin; w < begin + strip; w += lanes<real>) {
                    Row &sum = sums[(w - begin) / lanes<real>];
                    visit(block, block * half(plan) + w, w, sum);
                    sum += load(from + block * half(plan) + w);
                }
            }
        }
    }
    // Adds a row times a tile.
    void add_part(real *to, const real *from, const real *tile) const {
        for (int64_t w = 0; w < half(plan); w += lanes<real>)
            store(to + w, load(to + w) + load(from + w) * load(tile + w % merge_block));
    }

    // Takes a row of paths through comparators: those to their first outputs stay in place.
    void split(int64_t layer, int64_t prefix, real *row, real *second) const {
        const int64_t d = half(plan) >> layer;
        const real *k = keep + layer * half(plan) + prefix * d,
                   *s = swap + layer * half(plan) + prefix * d;
        for (int64_t x = 0; x < half(plan); x += 2 * d)
            for (int64_t y = 0; y < d; y += lanes<real>) {
                const Row a = load(row + x + y), b = load(row + x + d + y), kept = load(k + y),
                          swapped = load(s + y);
                store(row + x + y, a * kept), store(second + x + y, a * swapped);
                store(row + x + d + y, b * swapped), store(second + x + d + y, b * kept);
            }
    }

    static constexpr int64_t parts_of_tile = merge_block / lanes<real>;  // registers of its rows

    // A column's sum is over a row times a tile, and maybe another row. These are places in tables
    // of numbers and in tables of gradients; -1 if there is no other row. The row of an interval
    // goes with a tile of ones.
    struct Term {
        int64_t row, tile, other;
    };
    // The term of a rank, or of the interval that begins with it, or of all other ranks.
    Term term_of(int64_t rank, bool of_others) const {
        const int64_t block = rank / merge_block;
        if (spans(rank))
            return {place_of_long(beginning[block], of_others), 2 * tile_reals(plan), -1};
        return {place_of(of_block, block), rank * merge_block + (of_others ? tile_reals(plan) : 0),
                of_others ? place_of(of_other_blocks, block) : -1};
    }

    // Adds the gradients of the merge's weights to the gradients of the slots, `first.slots`, given
    // the sums of the halves of the columns.
    NSC_NOINLINE void backward(Sums<real> first, Sums<real> second, real *spare) const {
        real *weight_grads = spare + spare_rows(plan) * half(plan);
        real *tile_grads = first.tiles;
        memset(weight_grads, 0, sizeof(real) * weight_reals(plan));
        const int64_t used_tiles = (last ? 2 : 1) * tile_reals(plan);
        if (!has_half(0)) memset(first.tiles, 0, sizeof(real) * used_tiles);
        if (has_half(1)) add_to(first.tiles, second.tiles, used_tiles);
        if (last) {
            tile_grads = weight_grads + weight_reals(plan);
            if (has_half(0)) take_rows_back(0, first, first.tiles);
            if (has_half(1)) take_rows_back(1, second, first.tiles);
            take_parts_back(first.tiles, tile_grads);
        }
        const int64_t in_blocks = block_layers(plan) * half(plan),
                      stride = int64_t(1) << (block_layers(plan) - 1);
        for (int64_t block = 0; block < blocks_of(plan); ++block) {
            const Paths paths(keep + in_blocks + 8 * block, swap + in_blocks + 8 * block,
                              half(plan));
            PathRow grads[merge_block];
            memcpy(grads, tile_grads + block * merge_block * merge_block, sizeof grads);
            PathRow grad;
            paths.back(PathRow{} + 1, grads, grad, weight_grads + in_blocks + 8 * block,
                       half(plan));
        }
        for (int64_t side = 0; side < 2; ++side)
            for (int64_t out = 0; has_half(side) && out < 2; ++out) {
                const real *from = out == side ? keep : swap;
                for (int64_t y = 0; y < half(plan); y += lanes<real>)
                    store(spare + y, load(from + y) * side_unit<real>);
                real *grads = sums_of(side ? second : first, of_block, out * stride);
                back(1, out, spare, grads, weight_grads);
                const real sign = out == side ? side_unit<real> : -side_unit<real>;
                for (int64_t y = 0; y < half(plan); y += lanes<real>)
                    store(weight_grads + y, load(weight_grads + y) + sign * load(grads + y));
            }
        for (int64_t i = 0; i < weight_reals(plan); ++i)
            first.slots[plan.merge_slots[i]] += weight_grads[i];
    }
    // Takes the gradients of all rows of a half to the gradients of its blocks, and of parts of
    // intervals.
    void take_rows_back(int64_t side, Sums<real> sums, real *part_grads) const {
        real *const own = sums_of(sums, of_block, 0), *const of_others =
                                                          sums_of(sums, of_other_blocks, 0);
        const auto of_long = [&](int64_t number, bool is_rest) {
            return sums.rows + place_of_long(number, is_rest);
        };
        for_long_intervals([&](int64_t number, int64_t first, int64_t end) {
            for_parts(first, end, [&](int64_t from, int64_t) {
                const real *paths = row(of_block, side, from / merge_block);
                real *grads = sums_of(sums, of_block, from / merge_block);
                const int64_t tile = from * merge_block;
                add_part(grads, of_long(number, false), parts + tile);
                add_part(grads, of_long(number, true), others + tile);
                add_products(part_grads + tile, of_long(number, false), paths);
                add_products(part_grads + tile_reals(plan) + tile, of_long(number, true), paths);
            });
        });
        // The others of a block, and of a long interval, are all ranks behind it and all in front
        // of it.
        const bool has_long = long_count() > 0;
        add_up<1>(of_others, [&](int64_t block, int64_t at, int64_t w, Row &sum) {
            store(own + at, load(own + at) + sum);
            if (has_long && ending[block] >= 0) sum += load(of_long(ending[block], true) + w);
        });
        add_up<-1>(of_others, [&](int64_t block, int64_t at, int64_t w, Row &sum) {
            store(own + at, load(own + at) + sum);
            if (has_long && beginning[block] >= 0) sum += load(of_long(beginning[block], true) + w);
        });
    }
    // Adds the products of two rows to a tile.
    void add_products(real *tile, const real *a, const real *b) const {
        for (int64_t w = 0; w < half(plan); w += lanes<real>) {
            real *to = tile + w % merge_block;
            store(to, load(to) + load(a + w) * load(b + w));
        }
    }
    // Takes the gradients of parts of intervals, and of all other ranks of their blocks, to tiles.
    void take_parts_back(const real *of_parts, real *tile_grads) const {
        const real *of_others = of_parts + tile_reals(plan);
        for (int64_t begin = 0; begin < plan.wires; begin += merge_block) {
            const Ends ends = ends_of(begin);
            for (int64_t part = 0; part < parts_of_tile; ++part) {
                const int64_t first = begin * merge_block + part * lanes<real>;
                const auto at = [&](int64_t k) { return first + k * merge_block; };
                Row before = {}, behind = {}, own = {};
                for (int64_t k = 0, end = -1, start = 0; k < merge_block; ++k) {
                    if (ends.at[k] >= 0) start = k, end = ends.at[k], own = load(of_parts + at(k));
                    store(tile_grads + at(k), k <= end ? before + own : before);
                    if (k == end) before += load(of_others + at(start));
                }
                for (int64_t k = merge_block - 1; k >= 0; --k) {
                    store(tile_grads + at(k), load(tile_grads + at(k)) + behind);
                    if (ends.at[k] >= 0) behind += load(of_others + at(k));
                }
            }
        }
    }
    // Given a row of paths and the gradients of those behind it, puts its own in place.
    void back(int64_t layer, int64_t prefix, real *row, real *grads, real *weight_grads) const {
        if (layer == block_layers(plan)) return;
        const int64_t d = half(plan) >> layer, stride = int64_t(1)
                                                        << (block_layers(plan) - 1 - layer);
        real *second = grads + stride * half(plan);
        if (layer + 1 < block_layers(plan)) {
            real *behind = row + half(plan), *other = behind + half(plan);
            memcpy(behind, row, sizeof(real) * half(plan));
            split(layer, prefix, behind, other);
            // `other` is where the rows behind `behind` begin: it goes last.
            back(layer + 1, 2 * prefix + 1, other, second, weight_grads);
            back(layer + 1, 2 * prefix, behind, grads, weight_grads);
        }
        const real *k = keep + layer * half(plan) + prefix * d,
                   *s = swap + layer * half(plan) + prefix * d;
        real *to = weight_grads + layer * half(plan) + prefix * d;
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

    // The state of a sample: the halves of the wires that it has tables for, a bit for each, and
    // how many of its intervals are long.
    struct State {
        int32_t halves, long_count;
    };

    const P &plan;
    State *state;
    real *keep, *swap;  // weights by layer, then from wire 0 on
    // 16 for each rank: of the interval that begins with it, or of its part in a block, and of all
    // other ranks of the block. Behind these, of intervals, the ones.
    real *parts, *others;
    real *rows;         // tables, of a half of the wires and then of the other
    int64_t half_rows;  // reals of a half
    real *tiles;        // 16 for each rank: the tiles of parts, if each rank is one
    // For intervals: the last rank of each by its first rank, and by the first in each block. Then
    // the number of the long one that begins, or ends, in each block. -1: none.
    int32_t *last, *beginning, *ending;
};

// Whether a call factors the merge of one of its samples or more.
template <class P, class real>
bool factors_some(const Call<P, real> &call) {
    bool some = false;
    if constexpr (Call<P, real>::may_be_parted)
        for (int64_t b = 0; call.is_parted() && !some && b < call.batch; ++b)
            some = Merge<P, real>::halves_of(call.plan, call.target_from(b, 1)) != 0;
    return some;
}

// Reals of a sample's merge, of its sums and of its backward pass; 0 if a call factors no merge.
struct MergeReals {
    int64_t merge, sums, backward;
};

template <class P, class real>
MergeReals merge_reals(const Call<P, real> &call) {
    if constexpr (Call<P, real>::may_be_parted) {
        using Of = Merge<P, real>;
        const Form form = form_of(call.routing);
        if (call.some_factored)
            return {Of::reals(call.plan, form), Of::sum_reals(call.plan, form),
                    Of::spare_reals(call.plan)};
    }
    return {};
}

// Finds the tables of a sample's merge, given its weights, if the call may factor it.
template <class P, class real>
void find_merge(const Call<P, real> &call, int64_t sample, Weights<real> weights, real *of_merge) {
    if constexpr (Call<P, real>::may_be_parted)
        if (call.some_factored)
            Merge<P, real>(call.plan, form_of(call.routing), of_merge)
                .find(weights.forward.keep, call.target_of(sample));
}

// Calls visit(merge) with a sample's factored merge; returns whether it is factored.
template <class P, class real, class Visit>
NSC_STEP bool with_merge(const Call<P, real> &call, real *of_merge, Visit visit) {
    if constexpr (Call<P, real>::may_be_parted)
        if (call.some_factored) {
            const Merge<P, real> merge(call.plan, form_of(call.routing), of_merge);
            if (merge.is_factored()) visit(merge);
            return merge.is_factored();
        }
    return false;
}

}  // namespace nsc
