// The rows of a tile that a codelet works on: in place, and copies that are kept of them.
#pragma once

#include <nsc/attributes.h>
#include <nsc/integers.h>

namespace nsc::cuda {

// The rows that a codelet works on. Rows are `pitch` apart.
template <class Row, int32_t pitch, class Spread>
struct InPlace {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return first[spread[k] * pitch]; }
    NSC_STEP void store(int32_t k, Row value) const { first[spread[k] * pitch] = value; }
    Row *first;
    Spread spread;
};

// Rows in place. A copy of each loaded row is kept.
template <class Row, int32_t pitch, class Spread>
struct Keeping {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return kept[k * pitch] = in_place.load(k); }
    NSC_STEP void store(int32_t k, Row value) const { in_place.store(k, value); }
    InPlace<Row, pitch, Spread> in_place;
    Row *kept;
};

// The kept copies. Nothing is stored.
template <class Row, int32_t pitch>
struct Kept {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return kept[k * pitch]; }
    NSC_STEP void store(int32_t, Row) const {}
    const Row *kept;
};

}  // namespace nsc::cuda
