// ----------------------------------------------------------------------------- losses of columns

// The true rank of a column of this lane; -1 for one that is none.
template <class real>
__device__ __forceinline__ int32_t target_of(const Tile<real> &tile, int32_t k) {
    const int64_t rank = k < tile.present ? tile.call.ranks_of(tile.sample)[tile.column + k] : -1;
    return rank >= 0 && rank < wires ? int32_t(rank) : -1;
}

// The sum of the other entries of a column of this lane. Rarely run: it is not worth as much code as there are wires.
template <class real>
__device__ __forceinline__ real rest_of_column(const Tile<real> &tile, int32_t k, int32_t row) {
    real sum = 0;
    _Pragma("unroll 4")
    for (int32_t other = 0; other < wires; ++other)
        if (other != row) sum += tile.mine[other * tile_lanes].at[k];
    return sum;
}

template <class real>
__device__ __forceinline__ Probability<real> probability_at(const Tile<real> &tile, int32_t k, int32_t row) {
    const real p = tile.mine[row * tile_lanes].at[k];
    return {p, is_large(p) ? rest_of_column(tile, k, row) : unit<real> - p};
}

// This thread's part of the loss of one of its columns, which are columns of P.
template <class real>
__device__ __forceinline__ double loss_of_column(const Tile<real> &tile, int32_t k) {
    const int32_t target = target_of(tile, k);
    if (target < 0) return not_a_number<double>();
    if (tile.call.routing == cross_entropy) {
        if (tile.team) return 0;
        return -double(log_of<real>(probability_at(tile, k, target))) / wires;
    }
    double sum = 0;
    tile.for_each_row([&](int32_t row, Columns<real> &) {
        const Probability<real> p = probability_at(tile, k, row);
        sum -= double(log_of<real>(target == row ? p : complement(p)));
    });
    return sum / wires / wires;
}

template <class real>
__device__ __forceinline__ double loss_part(const Tile<real> &tile) {
    double sum = 0;
    for (int32_t k = 0; k < tile.present; ++k) sum += loss_of_column(tile, k);
    return sum;
}

// Puts the gradient of that loss in place of the tile.
template <class real>
__device__ __forceinline__ void load_loss_gradient(const Tile<real> &tile) {
    constexpr real share = real(1) / wires;
    int32_t target[lane_columns<real>];
    for (int32_t k = 0; k < lane_columns<real>; ++k) target[k] = target_of(tile, k);
    if (tile.call.routing == cross_entropy) {
        real slope[lane_columns<real>];
        for (int32_t k = 0; k < lane_columns<real>; ++k) {
            const real p = target[k] < 0 ? not_a_number<real>() : tile.mine[target[k] * tile_lanes].at[k];
            slope[k] = -share * slope_of_log(p);
        }
        Tile<real>::wait();
        tile.for_each_row([&](int32_t row, Columns<real> &at) {
            for (int32_t k = 0; k < lane_columns<real>; ++k) at.at[k] = row == target[k] && k < tile.present ? slope[k] : real(0);
        });
        return;
    }
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

// Stores the loss of a task, the sum over the threads of each of its samples; uses the tile.
template <class real>
__device__ __forceinline__ void store_loss(const Tile<real> &tile, int32_t task, double loss, double *losses) {
    const int32_t lanes = tile.group / Tile<real>::each;
    for (int32_t bit = lanes / 2; bit; bit /= 2) loss += __shfl_xor_sync(tile.mask, loss, bit);
    const int64_t place = int64_t(tile.sample) * tile.call.chunks + task % tile.call.chunks;
    if constexpr (Tile<real>::teams == 1) {
        if (tile.is_sample && tile.lane % lanes == 0) losses[place] = loss;
    } else {
        double *parts = reinterpret_cast<double *>(tile.tile);
        Tile<real>::wait();
        if (tile.lane == 0) parts[tile.team] = loss;
        Tile<real>::wait();
        if (tile.team == 0 && tile.lane == 0) {
            double sum = 0;
            for (int32_t team = 0; team < Tile<real>::teams; ++team) sum += parts[team];
            losses[place] = sum;
        }
        Tile<real>::wait();
    }
}
