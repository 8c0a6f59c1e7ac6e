// --------------------------------------------------------------------------- groups of columns

// Between the rows of a group of blocks and rows of `columns` values each. A row's cache lines are taken whole.
template <class real>
void store_group(const Vec<real> *blocks, real *to, int64_t columns, int64_t width, real scale) {
    for (int64_t row = 0; row < wires; ++row, to += columns)
        for (int64_t k = 0, left = width; left > 0; ++k, left -= lanes<real>)
            store(to + k * lanes<real>, blocks[k * wires + row] * scale, left < lanes<real> ? left : lanes<real>);
}

template <class real>
void load_group(Vec<real> *blocks, const real *from, int64_t columns, int64_t width) {
    for (int64_t row = 0; row < wires; ++row, from += columns)
        for (int64_t k = 0, left = width; left > 0; ++k, left -= lanes<real>)
            blocks[k * wires + row] = load(from + k * lanes<real>, left < lanes<real> ? left : lanes<real>);
}
