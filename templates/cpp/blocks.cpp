// --------------------------------------------------------------------------- groups of columns

constexpr int64_t blocks_of_line = 64 / register_bytes;  // whose rows fill a cache line

// Calls visit(row, k, place, count) for each row of each block k of a group, of `width` columns: `count` values of the
// row, from `place` on. The blocks of a cache line come one after another, so that the line is taken whole.
template <class real, class Visit>
NSC_STEP void for_rows(int64_t width, Visit visit) {
    for (int64_t first = 0; first * lanes<real> < width; first += blocks_of_line)
        for (int64_t row = 0; row < wires; ++row)
            for (int64_t k = first; k < first + blocks_of_line && k * lanes<real> < width; ++k) {
                const int64_t place = k * lanes<real>, left = width - place;
                visit(row, k, place, left < lanes<real> ? left : lanes<real>);
            }
}

// Between the rows of a group of blocks and rows of `columns` values each.
template <class real>
void store_group(const Vec<real> *blocks, real *to, int64_t columns, int64_t width, real scale) {
    for_rows<real>(width, [=](int64_t row, int64_t k, int64_t place, int64_t count) NSC_INLINE {
        store(to + row * columns + place, blocks[k * wires + row] * scale, count);
    });
}

template <class real>
void load_group(Vec<real> *blocks, const real *from, int64_t columns, int64_t width) {
    for_rows<real>(width, [=](int64_t row, int64_t k, int64_t place, int64_t count) NSC_INLINE {
        blocks[k * wires + row] = load(from + row * columns + place, count);
    });
}
