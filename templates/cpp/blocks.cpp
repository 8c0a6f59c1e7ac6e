// ---------------------------------------------------------------------------- blocks of columns

// Between rows of a block and rows of `columns` values each.
template <class real>
void store_block(const Vec<real> *block, real *to, int64_t columns, int64_t width, real scale) {
    for (int64_t row = 0; row < wires; ++row) store(to + row * columns, block[row] * scale, width);
}

template <class real>
void load_block(Vec<real> *block, const real *from, int64_t columns, int64_t width) {
    for (int64_t row = 0; row < wires; ++row) block[row] = load(from + row * columns, width);
}
