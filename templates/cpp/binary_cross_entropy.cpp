// The mean over entries of -log p where the target is the entry's row, and of -log(1 - p) elsewhere; its part of
// the columns in a block.
template <class real>
double binary_cross_entropy_loss(const Vec<real> *block, const int64_t *target, int64_t first, int64_t width) {
    const Vec<real> rests = rests_of_columns<real>(block);
    double sum = 0;
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            sum -= log_of<real>(target[first + k] == row ? p : complement(p));
        }
    return sum / wires / wires;
}

template <class real>
void binary_cross_entropy_gradient(const Vec<real> *block, Vec<real> *grad, const int64_t *target, int64_t first,
                                   int64_t width) {
    constexpr real share = real(1) / wires;
    memset(grad, 0, sizeof(Vec<real>) * wires);
    const Vec<real> rests = rests_of_columns<real>(block);
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            grad[row][k] = share * share * (target[first + k] == row ? -slope_of_log(p.p) : slope_of_log(p.rest));
        }
}
