// Tiles: transposes of rows in memory, and pairs of registers.
#include "../expect.h"

#include <nsc/exact/tiles.h>

using namespace nsc;

template <class T>
static void test_tiles_of() {
    constexpr int rows = int(lanes<T>), columns = tile_columns<T>, stride = columns + 3;
    T memory[rows * stride], back[rows * stride] = {};
    for (int i = 0; i < rows * stride; ++i) memory[i] = T(i * 7 % 101);
    Vec<T> tile[columns];
    load_tile<T>(memory, stride, tile);
    for (int k = 0; k < columns; ++k)
        for (int row = 0; row < rows; ++row) EXPECT(tile[k][row] == memory[row * stride + k]);
    store_tile<T, columns - 1>(tile, back, stride);
    for (int row = 0; row < rows; ++row)
        for (int k = 0; k < stride; ++k)
            EXPECT(back[row * stride + k] == (k < columns - 1 ? memory[row * stride + k] : T(0)));
    const Vec<T> p = load(memory), q = load(memory + rows);
    const Vec<T> lower = zip_lower<T>(p, q), higher = zip_higher<T>(p, q);
    const Vec<T> firsts = unzip_firsts<T>(lower, higher), seconds = unzip_seconds<T>(lower, higher);
    for (int k = 0; k < rows; ++k) EXPECT(firsts[k] == p[k] && seconds[k] == q[k]);
    int64_t visited = 0;
    for_each_tile<T, 2 * columns + 1>([&](int64_t first, auto width) {
        EXPECT(first == visited);
        visited += decltype(width)::value;
    });
    EXPECT(visited == 2 * columns + 1);
}

TEST(lanes_are_rows_and_come_back) {
    test_tiles_of<uint8_t>();
    test_tiles_of<int16_t>();
    test_tiles_of<int32_t>();
    test_tiles_of<int64_t>();
}
