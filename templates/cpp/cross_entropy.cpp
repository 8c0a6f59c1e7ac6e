// The mean over columns of -log P[target, column]; its part of the columns in a block.
template <class real>
double cross_entropy_loss(const Vec<real> *block, const int64_t *target, int64_t first, int64_t width) {
    bool large = false;
    for (int64_t k = 0; k < width; ++k) large |= is_large<real>(block[target[first + k]][k]);
    const Vec<real> rests = large ? rests_of_columns<real>(block) : Vec<real>{};
    double sum = 0;
    for (int64_t k = 0; k < width; ++k) sum -= log_of<real>(probability<real>(block[target[first + k]][k], rests[k]));
    return sum / wires;
}

template <class real>
void cross_entropy_gradient(const Vec<real> *block, Vec<real> *grad, const int64_t *target, int64_t first, int64_t width) {
    constexpr real share = real(1) / wires;
    memset(grad, 0, sizeof(Vec<real>) * wires);
    for (int64_t k = 0; k < width; ++k) {
        const int64_t row = target[first + k];
        grad[row][k] = -share * slope_of_log<real>(block[row][k]);
    }
}
