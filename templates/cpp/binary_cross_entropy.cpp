// The mean over entries of -log p where the target is the entry's row, and of -log(1 - p) elsewhere; a column's part
// of it.
template <class real>
void binary_cross_entropy_loss(Columns<real> block, const int64_t *rank, int64_t width, double *losses) {
    const Vec<real> rests = rests_of_columns<real>(block);
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            losses[k] -= log_of<real>(rank[k] == row ? p : complement(p)) / wires / wires;
        }
}

template <class real>
void binary_cross_entropy_gradient(Columns<real> block, Columns<real> grad, const int64_t *rank, int64_t width) {
    constexpr real share = real(1) / wires;
    const Vec<real> rests = rests_of_columns<real>(block);
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            grad[row][k] = share * share * (rank[k] == row ? -slope_of_log(p.p) : slope_of_log(p.rest));
        }
}
