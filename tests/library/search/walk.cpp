// Searches: moves, pools and walks. Python's tests compare what they find with proofs and costs.
#include "../expect.h"

#include <nsc/search/walk.h>
#include <vector>

using namespace nsc::search;

// All inputs of a few wires, as rows of a pool, for outputs that carry the rank of their number.
struct Inputs {
    int64_t wires, blocks;
    std::vector<uint8_t> outputs;
    std::vector<Row> rows;

    Inputs(int64_t wires, std::vector<uint8_t> outputs)
        : wires(wires), blocks(((1 << wires) + 511) / 512), outputs(outputs) {
        const int64_t stride = wires + int64_t(outputs.size());
        rows.assign(size_t(blocks * stride), Row{});
        for (int64_t t = 0; t < 512 * blocks; ++t) {
            const int64_t input = t % (1 << wires);
            for (int64_t row = 0; row < stride; ++row) {
                const bool is_one = row < wires ? input >> row & 1
                                                : wires - __builtin_popcountll(uint64_t(input)) <=
                                                      outputs[size_t(row - wires)];
                auto *words = reinterpret_cast<uint64_t *>(&rows[size_t(t / 512 * stride + row)]);
                words[t % 512 / 64] |= uint64_t(is_one) << t % 64;
            }
        }
    }

    Problem problem(Objective objective = Objective::size) const {
        return {wires,
                0,
                objective,
                0,
                0,
                0,
                int64_t(outputs.size()),
                blocks,
                nullptr,
                nullptr,
                outputs.data(),
                reinterpret_cast<const uint64_t *>(rows.data()),
                0};
    }

    Pool pool() {
        return {wires, int64_t(outputs.size()), blocks, outputs.data(), nullptr, 0, rows.data(), 0,
                0};
    }
};

inline Comparators listed(std::initializer_list<Comparator> comparators) {
    Comparators list;
    for (const Comparator c : comparators) list.add(c);
    return list;
}

inline Comparators sorter_of_four() { return listed({{0, 2}, {1, 3}, {0, 1}, {2, 3}, {1, 2}}); }

TEST(changes_leave_comparators_in_standard_form) {
    const Inputs inputs(4, {0, 1, 2, 3});
    const Problem problem = inputs.problem();
    Random random{1};
    Comparators list;
    int64_t shortest = 99, longest = 0;
    for (int64_t step = 0; step < 20000; ++step) {
        const int64_t before = list.count;
        change(problem, random, list);
        EXPECT(list.count - before <= 1 && before - list.count <= 1);
        for (int64_t k = 0; k < list.count; ++k)
            EXPECT(list.at[k].lo < list.at[k].hi && list.at[k].hi < 4);
        if (list.count < shortest) shortest = list.count;
        if (list.count > longest) longest = list.count;
    }
    EXPECT(shortest == 0);
    EXPECT(longest > 20);
}

TEST(a_full_list_does_not_grow) {
    const Inputs inputs(4, {0, 1, 2, 3});
    Random random{2};
    Comparators list;
    while (list.count < most_listed) list.add({0, 1});
    for (int64_t step = 0; step < 5000; ++step) {
        change(inputs.problem(), random, list);
        EXPECT(list.count <= most_listed);
    }
}

TEST(random_comparators_are_all_that_there_are) {
    const Inputs inputs(4, {0, 1, 2, 3});
    Random random{3};
    int64_t seen[4][4] = {};
    for (int64_t k = 0; k < 6000; ++k) {
        const Comparator c = random_comparator(inputs.problem(), random);
        ++seen[c.lo][c.hi];
    }
    for (int64_t lo = 0; lo < 4; ++lo)
        for (int64_t hi = lo + 1; hi < 4; ++hi) EXPECT(seen[lo][hi] > 800 && seen[lo][hi] < 1200);
}

TEST(a_sorter_passes_and_no_part_of_it_does) {
    Inputs inputs(4, {0, 1, 2, 3});
    Pool pool = inputs.pool();
    EXPECT(pool.passes(sorter_of_four()));
    for (int64_t k = 0; k < 5; ++k) {
        Comparators shorter = sorter_of_four();
        shorter.remove(k);
        EXPECT(!pool.passes(shorter));
    }
}

// The sum of all words, which does not change if inputs change places.
static uint64_t bits_of_wire(const Pool &pool, int64_t wire) {
    uint64_t bits = 0;
    for (int64_t block = 0; block < pool.blocks; ++block)
        for (int64_t word = 0; word < 8; ++word)
            bits += uint64_t(__builtin_popcountll(
                reinterpret_cast<const uint64_t *>(pool.block_rows(block) + wire)[word]));
    return bits;
}

TEST(an_input_that_refutes_moves_to_the_front) {
    Inputs inputs(11, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    Pool pool = inputs.pool();
    // Only inputs of the last block have a one on wire 10 and zeros on no wire but 9.
    Comparators all;
    for (int64_t last = 10; last; --last)
        for (uint8_t wire = 0; wire < last; ++wire) all.add({wire, uint8_t(wire + 1)});
    EXPECT(pool.passes(all));
    const uint64_t before = bits_of_wire(pool, 9);
    Row state[11];
    Comparators without = all;
    without.remove(0);
    int64_t first = 0;
    for (int64_t tries = 0; tries < 3; ++tries) EXPECT(!pool.passes(without));
    while (pool.apply(first, without, state), pool.wrong(first, state) < 0) ++first;
    EXPECT(first == 0);
    EXPECT(bits_of_wire(pool, 9) == before);
    EXPECT(pool.passes(all));
}

TEST(it_ends_at_a_gain) {
    const Inputs inputs(4, {0, 1, 2, 3});
    const Problem problem = inputs.problem();
    Standing standing{};
    standing.current.count = -1;
    standing.origin = sorter_of_four();
    standing.origin.add({0, 1});
    standing.best = standing.origin;
    const int64_t tried = nsc_search(&problem, &standing, 1, 100000, 100000, 1);
    EXPECT(tried > 0 && tried < 100000);
    EXPECT(standing.best.count == 5);
}
