// The rows that a codelet works on. Rows are `pitch` apart.
template <class Row, int32_t pitch, class Spread>
struct InPlace {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return first[spread[k] * pitch]; }
    NSC_STEP void store(int32_t k, Row value) const { first[spread[k] * pitch] = value; }
    Row *first;
    Spread spread;
};
