// The mean over columns of -log P[target, column]; a column's part of it.
template <class real>
void cross_entropy_loss(Columns<real> block, const int64_t *rank, int64_t width, double *losses) {
    bool large = false;
    for (int64_t k = 0; k < width; ++k) large |= is_large<real>(block[rank[k]][k]);
    const Vec<real> rests = large ? rests_of_columns<real>(block) : Vec<real>{};
    for (int64_t k = 0; k < width; ++k) losses[k] -= log_of<real>(probability<real>(block[rank[k]][k], rests[k])) / wires;
}

template <class real>
void cross_entropy_gradient(Columns<real> block, Columns<real> grad, const int64_t *rank, int64_t width) {
    constexpr real share = real(1) / wires;
    for (int64_t k = 0; k < width; ++k) grad[rank[k]][k] = -share * slope_of_log<real>(block[rank[k]][k]);
}
