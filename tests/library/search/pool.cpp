// Pools: what passes, what does not, and which inputs come first then.
#include "../expect.h"
#include "inputs.h"

#include <nsc/search/pool.h>

using namespace nsc::search;

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

TEST(comparators_behind_count_too) {
    Inputs inputs(4, {0, 1, 2, 3});
    Pool pool = inputs.pool();
    Comparators shorter = sorter_of_four();
    shorter.remove(4);
    const Comparator last{1, 2};
    pool.behind = &last, pool.behind_count = 1;
    EXPECT(pool.passes(shorter));
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
