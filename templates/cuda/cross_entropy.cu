// The mean over columns of -log P[target, column]; this thread's part of one of its columns.
template <class real>
__device__ __forceinline__ double cross_entropy_loss(const Tile<real> &tile, int32_t k, int32_t target) {
    if (tile.team) return 0;
    return -double(log_of<real>(probability_at(tile, k, target))) / wires;
}

template <class real>
__device__ __forceinline__ void cross_entropy_gradient(const Tile<real> &tile, const int32_t (&target)[lane_columns<real>]) {
    constexpr real share = real(1) / wires;
    real slope[lane_columns<real>];
    for (int32_t k = 0; k < lane_columns<real>; ++k) {
        const real p = target[k] < 0 ? not_a_number<real>() : tile.mine[target[k] * tile_lanes].at[k];
        slope[k] = -share * slope_of_log(p);
    }
    Tile<real>::wait();
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k) at.at[k] = row == target[k] && k < tile.present ? slope[k] : real(0);
    });
}
