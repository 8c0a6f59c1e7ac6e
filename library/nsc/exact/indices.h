// Indices of sorted values: how they are stored, and how values are found by them.
#pragma once

#include <nsc/exact/spans.h>
#include <nsc/exact/tiles.h>

namespace nsc {

// The unsigned integer of twice the bytes: GCC widens indices lane by lane unless it does so step
// by step.
template <int bytes>
struct WiderIndex;
template <>
struct WiderIndex<1> {
    using type = uint16_t;
};
template <>
struct WiderIndex<2> {
    using type = uint32_t;
};
template <>
struct WiderIndex<4> {
    using type = uint64_t;
};

// Stores indices as numbers of the type that the caller wants.
template <class Stored, class Index, int count>
NSC_STEP void store_indices(Stored *to, ShortVec<Index, count> indices) {
    if constexpr (sizeof(Stored) == sizeof(Index)) {
        memcpy(to, &indices, sizeof indices);
    } else if constexpr (sizeof(Stored) < sizeof(Index)) {
        const ShortVec<Stored, count> narrow =
            __builtin_convertvector(indices, ShortVec<Stored, count>);
        memcpy(to, &narrow, sizeof narrow);
    } else {
        using Next = typename WiderIndex<sizeof(Index)>::type;
        if constexpr (count > int(lanes<Next>)) {
            constexpr int half = count / 2;
            const typename PlacesTo<half>::list half_places;
            store_indices<Stored, Index, half>(to, half_of<Index, half, 0>(indices, half_places));
            store_indices<Stored, Index, half>(to + half,
                                               half_of<Index, half, half>(indices, half_places));
        } else {
            store_indices<Stored, Next, count>(
                to, __builtin_convertvector(indices, ShortVec<Next, count>));
        }
    }
}

// Stores the indices of a tile of `width` columns in rows, `stride` apart.
template <class Stored, class Index, int width>
NSC_STEP void store_tile_of_indices(Vec<Index> *tile, Stored *rows, int64_t stride) {
    constexpr int columns = tile_columns<Index>;
    transpose_tile<Index>(tile);
    NSC_UNROLL
    for (int k = 0; k < columns; ++k) {
        Index row[lanes<Index>];
        memcpy(row, &tile[k], sizeof row);
        NSC_UNROLL
        for (int p = 0; p < int(lanes<Index>) / columns; ++p) {
            Stored *to = rows + (p * columns + k) * stride;
            ShortVec<Index, columns> section;
            memcpy(&section, row + p * columns, sizeof section);
            if constexpr (width == columns) {
                store_indices<Stored, Index, columns>(to, section);
            } else {
                Stored all_of_section[columns];
                store_indices<Stored, Index, columns>(all_of_section, section);
                memcpy(to, all_of_section, sizeof(Stored) * width);
            }
        }
    }
}

// Sets `outputs` values of so many samples to those at their indices: keys of -0 and 0 are equal,
// and the keys of all NaN, so that their bits are lost.
template <int64_t outputs, class Key, class Stored>
NSC_NOINLINE void fetch_values(Span<const Key> x, Span<Key> values, const Stored *indices,
                               int64_t samples) {
    for (int64_t s = 0; s < samples; ++s) {
        for (int64_t o = 0; o < outputs; ++o) {
            const int64_t to = values.offset(o, s);
            values.at[to] = x.at[x.offset(int64_t(indices[to]), s)];
        }
    }
}

template <class Key>
NSC_STEP bool has_any(Vec<Key> flags) {
    const Vec<uint64_t> words = (Vec<uint64_t>)flags;
    uint64_t any = 0;
    NSC_UNROLL
    for (int64_t k = 0; k < lanes<uint64_t>; ++k) any |= words[k];
    return any != 0;
}

}  // namespace nsc
