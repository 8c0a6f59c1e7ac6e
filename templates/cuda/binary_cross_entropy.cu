// The mean over entries of -log p where the target is the entry's row, and of -log(1 - p) elsewhere; this thread's
// part of one of its columns.
template <class real>
__device__ __forceinline__ double binary_cross_entropy_loss(const Tile<real> &tile, int32_t k, int32_t target) {
    double sum = 0;
    tile.for_each_row([&](int32_t row, Columns<real> &) {
        const Probability<real> p = probability_at(tile, k, row);
        sum -= double(log_of<real>(target == row ? p : complement(p)));
    });
    return sum / wires / wires;
}

template <class real>
__device__ __forceinline__ void binary_cross_entropy_gradient(const Tile<real> &tile, const int32_t (&target)[lane_columns<real>]) {
    constexpr real share = real(1) / wires;
    // At most one entry of a column is large. The sum of the others is taken before any is overwritten.
    real rest[lane_columns<real>] = {};
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k)
            if (is_large(at.at[k])) rest[k] = rest_of_column(tile, k, row);
    });
    Tile<real>::wait();
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k) {
            const real p = at.at[k], slope = target[k] == row ? -slope_of_log(p) : slope_of_log(is_large(p) ? rest[k] : unit<real> - p);
            at.at[k] = k < tile.present ? share * share * slope : real(0);
        }
    });
}
