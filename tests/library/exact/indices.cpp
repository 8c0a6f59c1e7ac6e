// Indices: stored in the type of the caller, and read again.
#include "../expect.h"

#include <nsc/exact/indices.h>

using namespace nsc;

template <class Stored, class Index>
static void test_stored() {
    constexpr int count = int(lanes<Index>);
    Index from[count];
    Stored to[count];
    for (int k = 0; k < count; ++k) from[k] = Index(3 * k + 1);
    store_indices<Stored, Index, count>(to, load(from));
    for (int k = 0; k < count; ++k) EXPECT(to[k] == Stored(from[k]));
    constexpr int columns = tile_columns<Index>, stride = columns + 1;
    Vec<Index> tile[columns];
    for (int k = 0; k < columns; ++k)
        for (int row = 0; row < count; ++row) tile[k][row] = Index(row + 5 * k);
    Stored rows[count * stride] = {};
    store_tile_of_indices<Stored, Index, columns - 1>(tile, rows, stride);
    for (int row = 0; row < count; ++row)
        for (int k = 0; k < stride; ++k)
            EXPECT(rows[row * stride + k] == (k < columns - 1 ? Stored(Index(row + 5 * k)) : 0));
}

TEST(indices_are_stored_in_wider_and_narrower_types) {
    test_stored<int32_t, uint8_t>();
    test_stored<int64_t, uint8_t>();
    test_stored<int64_t, uint16_t>();
    test_stored<int32_t, uint32_t>();
    test_stored<int64_t, uint32_t>();
    test_stored<int32_t, uint64_t>();
}

TEST(values_are_fetched_by_their_indices) {
    const int16_t x[] = {10, 11, 12, 20, 21, 22};
    const int32_t indices[] = {2, 0, 1, 1};
    int16_t values[4] = {};
    fetch_values<2>(Span<const int16_t>{x, 1, 3}, Span<int16_t>{values, 1, 2}, indices, 2);
    EXPECT(values[0] == 12 && values[1] == 10 && values[2] == 21 && values[3] == 21);
}

TEST(any_flag_is_found) {
    Vec<int8_t> flags{};
    EXPECT(!has_any<int8_t>(flags));
    flags[lanes<int8_t> - 1] = -1;
    EXPECT(has_any<int8_t>(flags));
}
