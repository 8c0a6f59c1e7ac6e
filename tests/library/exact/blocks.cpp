// Blocks: the network on registers of samples, from the table and by code.
#include "../expect.h"
#include "sorter.h"

#include <nsc/exact/blocks.h>
#include <nsc/exact/indexed_values.h>
#include <nsc/exact/network.h>
#include <nsc/exact/values.h>

using namespace nsc;

// A form whose networks run from the table.
struct OfTable : IndexedValues<int64> {
    static constexpr int64_t most_straight = Sorter::comparators - 1;
};

template <class Form, class Stored>
static void test_blocks_of() {
    using Key = typename Form::Key;
    constexpr int64_t samples = 2 * lanes<Key>, wires = Sorter::wires, outputs = Sorter::outputs;
    alignas(64) typename Form::Item block[2 * Form::item_registers * wires];
    Key x[8 * samples * wires] = {}, values[8 * samples * outputs];
    Stored indices[8 * samples * outputs];
    Numbers numbers;
    for (int64_t i = 0; i < samples * wires; ++i) x[i] = Key(numbers.next() % 7);
    sort_rows<Sorter, Form>(Span<const Key>{x, 1, wires}, Span<Key>{values, 1, outputs}, indices,
                            Vec<Key>{}, block, true);
    for (int64_t s = 0; s < lanes<Key>; ++s) {
        const Sample<Key> sorted(x + s * wires, 1);
        for (int64_t o = 0; o < outputs; ++o) {
            const int64_t wire = Sorter::output_wires[o];
            EXPECT(values[s * outputs + o] == sorted.values[wire]);
            if (Form::has_indices) EXPECT(indices[s * outputs + o] == sorted.indices[wire]);
        }
    }
    sort_columns<Sorter, Form, 2>(Span<const Key>{x, samples, 1}, Span<Key>{values, samples, 1},
                                  indices, Vec<Key>{}, block);
    for (int64_t s = 0; s < samples; ++s) {
        const Sample<Key> sorted(x + s, samples);
        for (int64_t o = 0; o < outputs; ++o) {
            const int64_t wire = Sorter::output_wires[o];
            EXPECT(values[o * samples + s] == sorted.values[wire]);
            if (Form::has_indices) EXPECT(indices[o * samples + s] == sorted.indices[wire]);
        }
    }
}

TEST(blocks_are_sorted_as_by_insertion) {
    test_blocks_of<OfTable, int64_t>();
    EXPECT(Sorter::runs == 0);
    test_blocks_of<IndexedValues<int64>, int32_t>();
    EXPECT(Sorter::runs == 3);
    test_blocks_of<Values<int32>, int64_t>();
    test_blocks_of<IndexedValues<int32>, int64_t>();
    test_blocks_of<IndexedValues<uint8>, int32_t>();
}
