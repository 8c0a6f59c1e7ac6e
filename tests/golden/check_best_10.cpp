// Whether wires of a network carry their ranks for all 2^10 0-1 inputs, 512 at a time.
//
// Input t has bit w of t on wire w. A row holds one wire's values for 512 inputs in a row: wires below 9
// have the same row in every block of inputs, the others are all 0 or all 1 in it. Fewer than 9 wires have
// their inputs several times in the one block.

#include <stdint.h>

namespace {

typedef uint64_t Row __attribute__((vector_size(64)));

constexpr int32_t wires = 10, inside = wires < 9 ? wires : 9;

inline Row all(bool bit) { return Row{} - uint64_t(bit); }

// Row of a wire below 9.
Row counting(int32_t wire) {
    Row row{};
    for (int32_t t = 0; t < 512; ++t) row[t / 64] |= uint64_t(t >> wire & 1) << t % 64;
    return row;
}

// Inputs of a block with at least `ones` ones among their lowest 9 wires, or all where there are fewer.
Row at_least(int32_t ones) {
    Row row{};
    for (int32_t t = 0; t < 512; ++t) row[t / 64] |= uint64_t(__builtin_popcount(t & ((1 << inside) - 1)) >= ones) << t % 64;
    return row;
}

inline void compare(Row &lo, Row &hi) {
    const Row a = lo, b = hi;
    lo = a & b, hi = a | b;
}

}  // namespace

// Tries the blocks first ... first + count - 1; returns the first input that comes out wrong, or -1.
extern "C" __attribute__((visibility("default"))) int64_t nsc_check(int64_t first, int64_t count) {
    Row low[inside], enough[inside + 2];
    for (int32_t wire = 0; wire < inside; ++wire) low[wire] = counting(wire);
    for (int32_t ones = 0; ones < inside + 2; ++ones) enough[ones] = at_least(ones);
    for (int64_t block = first; block < first + count; ++block) {
        Row w0 = low[0];
        Row w1 = low[1];
        Row w2 = low[2];
        Row w3 = low[3];
        Row w4 = low[4];
        Row w5 = low[5];
        Row w6 = low[6];
        Row w7 = low[7];
        Row w8 = low[8];
        Row w9 = all(block >> 0 & 1);
        compare(w0, w8);
        compare(w1, w9);
        compare(w2, w7);
        compare(w3, w5);
        compare(w4, w6);
        compare(w0, w2);
        compare(w1, w4);
        compare(w5, w8);
        compare(w7, w9);
        compare(w0, w3);
        compare(w2, w4);
        compare(w5, w7);
        compare(w6, w9);
        compare(w3, w6);
        compare(w8, w9);
        compare(w4, w8);
        compare(w6, w7);
        compare(w7, w8);
        // A wire of rank r is 1 where at least n - r inputs are; the high wires have some of these.
        const int32_t ones = __builtin_popcountll(uint64_t(block));
        const auto wanted = [&](int32_t rank) {
            const int32_t missing = wires - rank - ones;
            return enough[missing < 0 ? 0 : missing > inside + 1 ? inside + 1 : missing];
        };
        Row wrong{};
        wrong |= w8 ^ wanted(8);
        wrong |= w9 ^ wanted(9);
        for (int32_t word = 0; word < 8; ++word)
            if (wrong[word]) return 512 * block + 64 * word + __builtin_ctzll(wrong[word]);
    }
    return -1;
}
