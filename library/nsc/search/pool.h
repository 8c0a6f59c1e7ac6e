// A pool of 0-1 inputs, and whether comparators leave the right values on the outputs for each.
//
// A search keeps the first layers as they are. These leave few 0-1 patterns: 168 of 65,536 after
// four layers on 16 wires, 26,081 of 2^40 after seven layers of the smallest known sorter of 40
// wires. A selection needs only patterns with as many zeros as its ranks, or one more. So the pool
// is mostly complete, and to pass it is a proof.
#pragma once

#include <nsc/registers.h>
#include <nsc/search/comparators.h>

namespace nsc::search {

constexpr int64_t row_inputs = 512;
constexpr int64_t row_registers = row_inputs / 8 / register_bytes;

// The values of a wire for 512 inputs.
struct alignas(64) Row {
    Vec<uint64_t> part[row_registers];
};

NSC_STEP void compare(Row &lo, Row &hi) {
    for (int64_t k = 0; k < row_registers; ++k) {
        const Vec<uint64_t> a = lo.part[k], b = hi.part[k];
        lo.part[k] = a & b, hi.part[k] = a | b;
    }
}

// Marks the inputs whose value is neither bound.
NSC_STEP void mark_outside(Row &marks, const Row &value, const Row &least, const Row &most) {
    for (int64_t k = 0; k < row_registers; ++k)
        marks.part[k] |= (value.part[k] ^ least.part[k]) & (value.part[k] ^ most.part[k]);
}

// The first input that a row marks; -1 for none.
NSC_STEP int64_t first_of(const Row &row) {
    uint64_t words[row_inputs / 64];
    memcpy(words, &row, sizeof row);
    for (int64_t word = 0; word < row_inputs / 64; ++word)
        if (words[word]) return 64 * word + __builtin_ctzll(words[word]);
    return -1;
}

// Inputs in blocks of 512: a row for each wire, then a row for each output with its right values.
// Where a rank may be off, these are the least right values, and `has_most` says that a row for
// each output with its most right values follows.
struct Pool {
    int64_t wires, outputs, blocks;
    const uint8_t *output_wires;
    // Comparators that act behind those that are tried.
    const Comparator *behind;
    int64_t behind_count;
    Row *rows;
    int64_t turn, has_most;

    int64_t rows_of_block() const { return wires + outputs * (1 + has_most); }
    Row *block_rows(int64_t block) const { return rows + block * rows_of_block(); }

    // The values of a block behind the comparators.
    NSC_STEP void apply(int64_t block, const Comparators &list, Row *state) const {
        memcpy(state, block_rows(block), sizeof(Row) * size_t(wires));
        for (int64_t k = 0; k < list.count; ++k)
            compare(state[list.at[k].lo], state[list.at[k].hi]);
    }

    // The first input of a block that comes out wrong, by values that `apply` left; -1 for none.
    NSC_STEP int64_t wrong(int64_t block, Row *state) const {
        for (int64_t k = 0; k < behind_count; ++k)
            compare(state[behind[k].lo], state[behind[k].hi]);
        const Row *least = block_rows(block) + wires, *most = least + outputs * has_most;
        Row marks{};
        for (int64_t k = 0; k < outputs; ++k)
            mark_outside(marks, state[output_wires[k]], least[k], most[k]);
        return first_of(marks);
    }

    // Whether all inputs come out right. One that does not changes places with one further in
    // front, where it refutes the next candidates sooner.
    NSC_NOINLINE bool passes(const Comparators &list) {
        Row state[most_wires];
        for (int64_t block = 0; block < blocks; ++block) {
            apply(block, list, state);
            const int64_t input = wrong(block, state);
            if (input < 0) continue;
            if (block) exchange(block, input, block / 2, turn++ % row_inputs);
            return false;
        }
        return true;
    }

    void exchange(int64_t block, int64_t input, int64_t other_block, int64_t other_input) {
        for (int64_t k = 0; k < rows_of_block(); ++k) {
            uint64_t *a = reinterpret_cast<uint64_t *>(block_rows(block) + k) + input / 64;
            uint64_t *b =
                reinterpret_cast<uint64_t *>(block_rows(other_block) + k) + other_input / 64;
            const uint64_t differ = (*a >> input % 64 ^ *b >> other_input % 64) & 1;
            *a ^= differ << input % 64;
            *b ^= differ << other_input % 64;
        }
    }
};

}  // namespace nsc::search
