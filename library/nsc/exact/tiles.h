// Tiles: rows in memory to registers whose lanes are the rows, by a transpose of few shuffles.
//
// A tile has 16 bytes of each row. Values that are sorted along the first axis need no tile: their
// lanes lie side by side.
#pragma once

#include <nsc/registers.h>

namespace nsc {

// A processor shuffles sections of 16 bytes fastest, each by itself. A tile is as many columns as a
// section has values, and as many rows as a register has: lane p * tile_columns + k is row
// p * tile_columns + k. So a transpose moves values inside their sections only.
template <class T>
constexpr int tile_columns = 16 / int(sizeof(T));

// Interleaves the lower halves, or the higher, of the sections of p and q.
template <class T, bool higher, int... places>
NSC_STEP Vec<T> zip(Vec<T> p, Vec<T> q, Places<places...>) {
    constexpr int section = tile_columns<T>, half = section / 2;
    return __builtin_shufflevector(p, q,
                                   (places / section * section + higher * half +
                                    places % section / 2 + places % 2 * int(lanes<T>))...);
}

template <class T>
NSC_STEP Vec<T> zip_lower(Vec<T> p, Vec<T> q) {
    return zip<T, false>(p, q, typename PlacesTo<lanes<T>>::list());
}

template <class T>
NSC_STEP Vec<T> zip_higher(Vec<T> p, Vec<T> q) {
    return zip<T, true>(p, q, typename PlacesTo<lanes<T>>::list());
}

// The first, or the second, of each pair that zip_lower and zip_higher made.
template <class T, bool second, int... places>
NSC_STEP Vec<T> unzip(Vec<T> lower, Vec<T> higher, Places<places...>) {
    constexpr int section = tile_columns<T>, half = section / 2;
    return __builtin_shufflevector(lower, higher,
                                   (places / section * section + 2 * (places % half) + second +
                                    (places % section < half ? 0 : int(lanes<T>)))...);
}

template <class T>
NSC_STEP Vec<T> unzip_firsts(Vec<T> lower, Vec<T> higher) {
    return unzip<T, false>(lower, higher, typename PlacesTo<lanes<T>>::list());
}

template <class T>
NSC_STEP Vec<T> unzip_seconds(Vec<T> lower, Vec<T> higher) {
    return unzip<T, true>(lower, higher, typename PlacesTo<lanes<T>>::list());
}

// Transposes the sections of tile_columns<T> registers.
template <class T, int stage = tile_columns<T>>
NSC_STEP void transpose_tile(Vec<T> *rows) {
    if constexpr (stage > 1) {
        constexpr int half = tile_columns<T> / 2;
        Vec<T> next[tile_columns<T>];
        NSC_UNROLL
        for (int i = 0; i < half; ++i)
            next[2 * i] = zip_lower<T>(rows[i], rows[i + half]),
                     next[2 * i + 1] = zip_higher<T>(rows[i], rows[i + half]);
        NSC_UNROLL
        for (int i = 0; i < tile_columns<T>; ++i) rows[i] = next[i];
        transpose_tile<T, stage / 2>(rows);
    }
}

template <class T, int count>
struct ShortVecOf {
    typedef T type __attribute__((vector_size(sizeof(T) * count)));
};

// `count` numbers: a part of a register.
template <class T, int count>
using ShortVec = typename ShortVecOf<T, count>::type;

template <class T, int count, int... places>
NSC_STEP ShortVec<T, 2 * count> joined(ShortVec<T, count> first, ShortVec<T, count> second,
                                       Places<places...>) {
    return __builtin_shufflevector(first, second, places...);
}

template <class T, int count, int from, int... places>
NSC_STEP ShortVec<T, count> half_of(ShortVec<T, 2 * count> both, Places<places...>) {
    return __builtin_shufflevector(both, both, (from + places)...);
}

// The first `width` values of rows, `stride` apart, as the sections of `count` numbers.
template <class T, int width, int count = int(lanes<T>)>
NSC_STEP ShortVec<T, count> load_sections(const T *rows, int64_t stride) {
    constexpr int half = count / 2;
    if constexpr (count == tile_columns<T>) {
        ShortVec<T, count> row{};
        memcpy(&row, rows, sizeof(T) * width);
        return row;
    } else {
        return joined<T, half>(load_sections<T, width, half>(rows, stride),
                               load_sections<T, width, half>(rows + half * stride, stride),
                               typename PlacesTo<count>::list());
    }
}

// The inverse. Sections are copied out of the register's bytes, which takes no shuffles.
template <class T, int width>
NSC_STEP void store_sections(Vec<T> sections, T *rows, int64_t stride) {
    NSC_UNROLL
    for (int p = 0; p < int(lanes<T>) / tile_columns<T>; ++p)
        memcpy(rows + p * tile_columns<T> * stride,
               reinterpret_cast<const char *>(&sections) + 16 * p, sizeof(T) * width);
}

// Between rows in memory, `stride` values apart, and a tile of their first `width` columns.
template <class T, int width = tile_columns<T>>
NSC_STEP void load_tile(const T *rows, int64_t stride, Vec<T> *tile) {
    NSC_UNROLL
    for (int k = 0; k < tile_columns<T>; ++k)
        tile[k] = load_sections<T, width>(rows + k * stride, stride);
    transpose_tile<T>(tile);
}

template <class T, int width = tile_columns<T>>
NSC_STEP void store_tile(Vec<T> *tile, T *rows, int64_t stride) {
    transpose_tile<T>(tile);
    NSC_UNROLL
    for (int k = 0; k < tile_columns<T>; ++k)
        store_sections<T, width>(tile[k], rows + k * stride, stride);
}

template <int width>
struct Width {
    static constexpr int value = width;
};

// Calls visit(first, width) for each tile of a row of `length` values: full ones, then what is
// left.
template <class T, int64_t length, class Visit>
NSC_STEP void for_each_tile(Visit visit) {
    constexpr int columns = tile_columns<T>, left = int(length % columns);
    // A compiler takes a loop of no turns for one that reads behind a table.
    if constexpr (columns <= length)
        for (int64_t first = 0; first + columns <= length; first += columns)
            visit(first, Width<columns>());
    if constexpr (left > 0) visit(length - left, Width<left>());
}

}  // namespace nsc
