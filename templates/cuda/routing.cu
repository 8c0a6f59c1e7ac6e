// ---------------------------------------------------------------------------------- routing pass

// Some weights that lie at a multiple of 16 bytes, read 16 bytes at a time.
template <class real>
struct alignas(16) Pack {
    real at[16 / sizeof(real)];
};

// The weights of a codelet, which begin at a slot. They are used in order, so a pack is read when
// its first weight is used, and takes registers only until its last weight is used.
template <class real, class Code>
struct MixesOf {
    static constexpr int32_t per_pack = 16 / sizeof(real);
    __device__ MixesOf(Mixes<const real> mixes, int32_t slot)
        : keep(reinterpret_cast<const Pack<real> *>(mixes.keep + slot)),
          swap(reinterpret_cast<const Pack<real> *>(mixes.swap + slot)) {}
    __device__ __forceinline__ Mix<real> operator[](int32_t c) {
        if (c / per_pack != pack) {
            pack = c / per_pack;
            keep_now = keep[pack], swap_now = swap[pack];
        }
        return {keep_now.at[c % per_pack], swap_now.at[c % per_pack]};
    }
    const Pack<real> *keep, *swap;
    Pack<real> keep_now, swap_now;
    int32_t pack = -1;
};

template <class real>
struct MixesOf<real, Tabled> {
    __device__ MixesOf(Mixes<const real> mixes, int32_t slot)
        : keep(mixes.keep + slot), swap(mixes.swap + slot) {}
    __device__ Mix<real> operator[](int32_t c) const { return {keep[c], swap[c]}; }
    const real *keep, *swap;
};

// This lane's part of the memory for the rows that a tile's codelets load. Each codelet has room
// for the widest.
template <class real>
__device__ __forceinline__ Columns<real> *kept_by(Columns<real> *kept, int32_t place) {
    return kept + place * (int32_t(widest_codelet) * tile_lanes);
}

// Runs the listed codelets on a tile with the weights of its first run; `reversed` runs them
// backwards. With `keeps`, stores in `kept` what each of them loads.
template <class real, bool reversed, bool keeps>
__device__ __forceinline__ void run_forward(const Tile<real> &tile, Columns<real> *kept) {
    tile.for_each_codelet(reversed, [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = codelets[number];
        with_code_of(codelet, [&](auto code, auto spread) NSC_INLINE {
            using Rows = InPlace<Columns<real>, tile_lanes, decltype(spread)>;
            const Rows rows = {tile.mine + codelet.base * tile_lanes, spread};
            MixesOf<real, decltype(code)> mixes(tile.first, codelet.slot);
            const auto step = [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half)
                                  NSC_INLINE { mix(a, b, mixes[c], half...); };
            if constexpr (keeps)
                run_code<reversed>(code,
                                   Keeping<Columns<real>, tile_lanes, decltype(spread)>{
                                       rows, kept_by(kept, place)},
                                   step);
            else
                run_code<reversed>(code, rows, step);
        });
    });
}

// The sums over `count` neighbouring threads of `count` numbers, in thread k that of number k:
// threads whose numbers differ in a bit exchange halves.
template <int32_t count, int32_t bit = count / 2, class real>
__device__ __forceinline__ real folded(real (&numbers)[count], int32_t lane, uint32_t mask) {
    if constexpr (bit > 0) {
        NSC_UNROLL
        for (int32_t k = 0; k < bit; ++k) {
            const real mine = lane & bit ? numbers[k + bit] : numbers[k],
                       other = lane & bit ? numbers[k] : numbers[k + bit];
            numbers[k] = mine + __shfl_xor_sync(mask, other, bit);
        }
        return folded<count, bit / 2>(numbers, lane, mask);
    }
    return numbers[0];
}

// Adds the sums over a sample's columns to the gradients of a codelet's weights.
template <class real, class Code>
__device__ __forceinline__ void add_sums(const Tile<real> &tile, Code code,
                                         const Columns<real> (&products)[Code::most()],
                                         real *weight_grad) {
    constexpr int32_t lanes = Tile<real>::full_group / Tile<real>::each, length = Code::most();
    if (tile.group == Tile<real>::each) {
        if (!tile.is_sample) return;
        NSC_UNROLL
        for (int32_t c = 0; c < length; ++c)
            if (c < code.count()) weight_grad[c] += products[c].at[0];
    } else if constexpr (Code::is_straight()) {
        const int32_t place = tile.lane % lanes;
        NSC_UNROLL
        for (int32_t first = 0; first < length; first += lanes) {
            real numbers[lanes];
            NSC_UNROLL
            for (int32_t k = 0; k < lanes; ++k)
                numbers[k] = first + k < length ? products[first + k < length ? first + k : 0].at[0]
                                                : real(0);
            const real sum = folded<lanes>(numbers, place, tile.mask);
            if (tile.is_sample && first + place < length) weight_grad[first + place] += sum;
        }
    } else {
        for (int32_t c = 0; c < code.count(); ++c) {
            real sum = products[c].at[0];
            for (int32_t bit = lanes / 2; bit; bit /= 2)
                sum += __shfl_xor_sync(tile.mask, sum, bit);
            if (tile.is_sample && tile.lane % lanes == c % lanes) weight_grad[c] += sum;
        }
    }
}

// Runs the listed codelets backwards on a tile, with the weights of its second run, and adds the
// gradients of the weights to `weight_grad`. `kept` is what run_forward kept.
template <class real>
__device__ __forceinline__ void run_backward(const Tile<real> &tile, Columns<real> *kept,
                                             real *weight_grad) {
    tile.for_each_codelet(true, [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = codelets[number];
        with_code_of(codelet, [&](auto code, auto spread) NSC_INLINE {
            // For each comparator first the difference of the rows in front of it, as the first
            // run had them. Then its products with the difference of the rows behind it, summed
            // over the columns into the first column.
            Columns<real> products[decltype(code)::most()];
            MixesOf<real, decltype(code)> first(tile.first, codelet.slot);
            run_code<false>(code, Kept<Columns<real>, tile_lanes>{kept_by(kept, place)},
                            [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half)
                                NSC_INLINE {
                products[c] = difference(a, b, half...);
                mix(a, b, first[c], half...);
            });
            // Else the compiler reads ahead for the second half, and the registers are full.
            __syncwarp(tile.mask);
            using Rows = InPlace<Columns<real>, tile_lanes, decltype(spread)>;
            const Rows rows = {tile.mine + codelet.base * tile_lanes, spread};
            MixesOf<real, decltype(code)> second(tile.second, codelet.slot);
            run_code<true>(code, rows,
                           [&](int32_t c, Columns<real> &a, Columns<real> &b, auto... half)
                               NSC_INLINE {
                products[c].at[0] = dot(products[c], difference(a, b, half...));
                mix(a, b, second[c], half...);
            });
            add_sums(tile, code, products, weight_grad + codelet.slot);
        });
    });
}

// Fills the tile with columns of the unit matrix, or with those of ranks. Their ones are
// `unit_entry`.
template <class real>
__device__ __forceinline__ void load_unit_columns(const Tile<real> &tile, real unit_entry) {
    const Call<real> &call = tile.call;
    // The row of each column's one, and the value of its other rows: NaN where the rank is invalid.
    int32_t ones[lane_columns<real>];
    real others[lane_columns<real>];
    for (int32_t k = 0; k < lane_columns<real>; ++k) {
        const bool is_there = k < tile.present;
        const int64_t rank = is_there && has_ranks(call.routing)
                                 ? call.ranks_of(tile.sample)[tile.column + k]
                                 : tile.column + k;
        const bool is_rank = rank >= 0 && rank < wires;
        ones[k] = is_there && is_rank ? int32_t(rank) : -1;
        others[k] = is_there && !is_rank ? not_a_number<real>() : real(0);
    }
    tile.for_each_row([&](int32_t row, Columns<real> &at) {
        for (int32_t k = 0; k < lane_columns<real>; ++k)
            at.at[k] = row == ones[k] ? unit_entry : others[k];
    });
}

// routed: the result, null for a loss. losses: a part for each sample and chunk.
template <class real, bool reversed>
__device__ __forceinline__ void route_forward(const Call<real> &call, real *__restrict__ routed,
                                              double *__restrict__ losses) {
    Tile<real> tile(call);
    const real scale = has_columns(call.routing) ? real(1) : 1 / unit<real>;
    for (int32_t task = Tile<real>::number(); task < tile.tasks; task += Tile<real>::count()) {
        double loss = 0;
        for (int32_t piece = tile.first_piece(task); piece < tile.end_piece(task); ++piece) {
            tile.go_to(task, piece);
            if (has_columns(call.routing))
                read_rows(tile, rows_of(tile, static_cast<const real *>(call.payload),
                                        call.payload_stride));
            else
                load_unit_columns(tile, unit<real>);
            Tile<real>::wait();
            run_forward<real, reversed, false>(tile, nullptr);
            if (is_loss(call.routing)) {
                loss += loss_part(tile);
            } else {
                write_rows(tile, rows_of(tile, routed, wires * call.columns), scale);
            }
            Tile<real>::wait();
        }
        if (is_loss(call.routing)) store_loss(tile, task, loss, losses);
    }
}

// The gradient of a weight is the product of two differences: of the rows in front of its
// comparator that run forwards through the network, and of the rows behind it that run backwards.
// The payload runs forwards and the gradient of the result backwards; in a reversed routing it is
// the other way round. So one function serves both directions.
//
// forwards, backwards: what runs so, where it is a tensor. losses: a part of the loss for each
// sample and chunk, or null. weight_grads: for each sample and chunk, a place for each slot.
// payload_grad: as the payload, or null. kept: for each tile of the grid, memory for the rows that
// its codelets load.
template <class real>
__device__ __forceinline__ void route_backward(
    const Call<real> &call, Tensor<real> forwards, Tensor<real> backwards,
    real *__restrict__ weight_grads, real *__restrict__ payload_grad, double *__restrict__ losses,
    Columns<real> *__restrict__ kept, int32_t kept_rows) {
    Tile<real> tile(call);
    kept += int64_t(Tile<real>::number()) * kept_rows * tile_lanes + tile.lane;
    for (int32_t task = Tile<real>::number(); task < tile.tasks; task += Tile<real>::count()) {
        double loss = 0;
        tile.go_to(task, tile.first_piece(task));
        real *weight_grad =
            weight_grads + (int64_t(tile.sample) * call.chunks + task % call.chunks) * slots;
        const int32_t lanes = tile.group / Tile<real>::each;
        for (int32_t slot = tile.team * lanes + tile.lane % lanes; tile.is_sample && slot < slots;
             slot += Tile<real>::teams * lanes)
            weight_grad[slot] = 0;
        for (int32_t piece = tile.first_piece(task); piece < tile.end_piece(task); ++piece) {
            tile.go_to(task, piece);
            if (routes_identity(call.routing))
                load_unit_columns(tile, is_loss(call.routing) ? unit<real> : real(1));
            else
                read_rows(tile, rows_of(tile, forwards.start, forwards.stride));
            Tile<real>::wait();
            run_forward<real, false, true>(tile, kept);
            if (losses) loss += loss_part(tile);
            if (payload_grad && call.gradient_first)
                write_rows(tile, rows_of(tile, payload_grad, wires * call.columns), real(1));
            if (is_loss(call.routing))
                load_loss_gradient(tile);
            else if (has_ranks(call.routing))
                load_unit_columns(tile, real(1));
            else
                read_rows(tile, rows_of(tile, backwards.start, backwards.stride));
            Tile<real>::wait();
            run_backward(tile, kept, weight_grad);
            if (payload_grad && !call.gradient_first)
                write_rows(tile, rows_of(tile, payload_grad, wires * call.columns), real(1));
            Tile<real>::wait();
        }
        if (losses) store_loss(tile, task, loss, losses);
    }
}
