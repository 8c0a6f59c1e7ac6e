// Runs codelets on tiles, forwards and back: their code, the weights and the rows that it takes,
// and the sums over lanes that it gives.
#pragma once

#include <nsc/relaxed/cuda/tile.h>

namespace nsc::cuda {

// The code of a shape loads a codelet's rows, takes a step on pairs of them, and stores them. It
// has `count()` comparators, `most()` at most. Straight-line code stands in the kernel's text.

// The code of any shape, run from its table.
template <class Plan>
struct Tabled {
    static NSC_FUNCTION constexpr bool is_straight() { return false; }
    static NSC_FUNCTION constexpr int32_t most() { return Plan::longest_codelet; }
    NSC_FUNCTION int32_t count() const { return shape.comparators; }
    template <bool backwards, class Rows, class Step>
    NSC_STEP void run_in(Rows rows, Step step) const {
        typename Rows::row held[Plan::widest_codelet];
        for (int32_t k = 0; k < shape.wires; ++k) held[k] = rows.load(k);
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const int32_t c = backwards ? shape.comparators - 1 - i : i;
            const Pair pair = Plan::pair(shape.first_pair + c);
            step(c, held[pair.a], held[pair.b]);
        }
        for (int32_t k = 0; k < shape.wires; ++k) rows.store(k, held[k]);
    }
    template <class Rows, class Step>
    NSC_STEP void run(Rows rows, Step step) const {
        run_in<false>(rows, step);
    }
    template <class Rows, class Step>
    NSC_STEP void run_backwards(Rows rows, Step step) const {
        run_in<true>(rows, step);
    }
    Shape shape;
};

template <bool backwards, class Code, class Rows, class Step>
NSC_STEP void run_code(Code code, Rows rows, Step step) {
    if constexpr (backwards)
        code.run_backwards(rows, step);
    else
        code.run(rows, step);
}

// Some weights that lie at a multiple of 16 bytes, read 16 bytes at a time.
template <class real>
struct alignas(16) WeightPack {
    real at[16 / sizeof(real)];
};

// The weights of a codelet, which begin at a slot. They are used in order, so a pack is read when
// its first weight is used, and takes registers only until its last weight is used.
template <class real, class Code>
struct MixesOf {
    static constexpr int32_t per_pack = 16 / sizeof(real);
    __device__ MixesOf(Mixes<const real> mixes, int32_t slot)
        : keep(reinterpret_cast<const WeightPack<real> *>(mixes.keep + slot)),
          swap(reinterpret_cast<const WeightPack<real> *>(mixes.swap + slot)) {}
    __device__ __forceinline__ Mix<real> operator[](int32_t c) {
        if (c / per_pack != pack) {
            pack = c / per_pack;
            keep_now = keep[pack], swap_now = swap[pack];
        }
        return {keep_now.at[c % per_pack], swap_now.at[c % per_pack]};
    }
    const WeightPack<real> *keep, *swap;
    WeightPack<real> keep_now, swap_now;
    int32_t pack = -1;
};

template <class real, class Plan>
struct MixesOf<real, Tabled<Plan>> {
    __device__ MixesOf(Mixes<const real> mixes, int32_t slot)
        : keep(mixes.keep + slot), swap(mixes.swap + slot) {}
    __device__ Mix<real> operator[](int32_t c) const { return {keep[c], swap[c]}; }
    const real *keep, *swap;
};

// The rows that a codelet works on, which are the rows of its spread.
template <class Plan, class Row>
struct InPlace {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return at(k); }
    NSC_STEP void store(int32_t k, Row value) const { at(k) = value; }
    NSC_STEP Row &at(int32_t k) const { return first[Plan::spread(spread + k) * Plan::tile_lanes]; }
    Row *first;
    int32_t spread;
};

// Rows in place. A copy of each loaded row is kept.
template <class Plan, class Row>
struct Keeping {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return kept[k * Plan::tile_lanes] = in_place.load(k); }
    NSC_STEP void store(int32_t k, Row value) const { in_place.store(k, value); }
    InPlace<Plan, Row> in_place;
    Row *kept;
};

// The kept copies. Nothing is stored.
template <class Plan, class Row>
struct Kept {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return kept[k * Plan::tile_lanes]; }
    NSC_STEP void store(int32_t, Row) const {}
    const Row *kept;
};

// The sums over `count` neighbouring threads of `count` numbers; thread k gets the sum of number k.
// Threads whose numbers differ in a bit exchange halves.
template <int32_t count, int32_t bit = count / 2, class real>
__device__ __forceinline__ real folded(real (&numbers)[count], int32_t lane, uint32_t mask) {
    if constexpr (bit > 0) {
        NSC_UNROLL
        for (int32_t k = 0; k < bit; ++k) {
            const real own = lane & bit ? numbers[k + bit] : numbers[k],
                       other = lane & bit ? numbers[k] : numbers[k + bit];
            numbers[k] = own + __shfl_xor_sync(mask, other, bit);
        }
        return folded<count, bit / 2>(numbers, lane, mask);
    }
    return numbers[0];
}

// Adds the sums over a sample's columns to the gradients of a codelet's weights.
template <class Plan, class real, class Code>
__device__ __forceinline__ void add_sums(const Tile<Plan, real> &tile, Code code,
                                         const Columns<real> (&products)[Code::most()],
                                         real *weight_grad) {
    constexpr int32_t lanes = Tile<Plan, real>::full_group / Tile<Plan, real>::each,
                      length = Code::most();
    if (tile.group == Tile<Plan, real>::each) {
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

// This lane's part of the memory for the rows that a tile's codelets load: behind the block's tiles
// if they are few, else in the memory that the call has for each tile of the grid.
template <class Plan, class real>
__device__ __forceinline__ Columns<real> *kept_rows_of(const Tile<Plan, real> &tile,
                                                       Columns<real> *kept, int32_t kept_rows) {
    if constexpr (Plan::kept_rows_in_block > 0) {
        constexpr int32_t rows = Tile<Plan, real>::tiles_per_block * int32_t(Plan::wires);
        const int32_t of_tile = int32_t(threadIdx.x) / Tile<Plan, real>::threads;
        return reinterpret_cast<Columns<real> *>(shared_memory) +
               (rows + of_tile * Plan::kept_rows_in_block) * Plan::tile_lanes + tile.lane;
    }
    return kept + int64_t(Tile<Plan, real>::number()) * kept_rows * Plan::tile_lanes + tile.lane;
}

// The part of that memory for a codelet. It has room for the widest codelet.
template <class Plan, class real>
__device__ __forceinline__ Columns<real> *kept_by(Columns<real> *kept, int32_t place) {
    return kept + place * (int32_t(Plan::widest_codelet) * Plan::tile_lanes);
}

template <class Plan, class real>
__device__ __forceinline__ InPlace<Plan, Columns<real>> rows_of_codelet(
    const Tile<Plan, real> &tile, Codelet codelet) {
    return {tile.lane_rows + codelet.base * Plan::tile_lanes, codelet.spread};
}

// Runs the listed codelets of the first `levels` levels on a tile, with the weights of its first
// run; `reversed` runs them backwards. With `keeps`, stores in `kept` the rows that codelets load.
template <bool reversed, bool keeps, class Plan, class real>
__device__ __forceinline__ void run_forward(const Tile<Plan, real> &tile, int32_t levels,
                                            Columns<real> *kept) {
    tile.for_each_codelet(reversed, 0, levels, [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = Plan::codelet(number);
        Plan::template with_code_of<Plan>(codelet, [&](auto code) NSC_INLINE {
            const auto rows = rows_of_codelet(tile, codelet);
            MixesOf<real, decltype(code)> mixes(tile.first, codelet.slot);
            const auto step = [&](int32_t c, Columns<real> &a, Columns<real> &b)
                                  NSC_INLINE { mix(a, b, mixes[c]); };
            if constexpr (keeps)
                run_code<reversed>(
                    code, Keeping<Plan, Columns<real>>{rows, kept_by<Plan>(kept, place)}, step);
            else
                run_code<reversed>(code, rows, step);
        });
    });
}

// Stores in `kept` the rows that codelets of the last level load, and does not run the codelets.
template <class Plan, class real>
__device__ __forceinline__ void keep_last(const Tile<Plan, real> &tile, Columns<real> *kept) {
    tile.for_each_codelet(false, tile.levels - 1, tile.levels,
                          [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = Plan::codelet(number);
        const int32_t wires = Plan::shape(codelet.shape).wires;
        const auto rows = rows_of_codelet(tile, codelet);
        for (int32_t k = 0; k < wires; ++k)
            kept_by<Plan>(kept, place)[k * Plan::tile_lanes] = rows.load(k);
    });
}

// Runs the listed codelets backwards on a tile, with the weights of its second run, and adds the
// gradients of the weights to `weight_grad`. `kept` has the rows that run_forward kept.
template <class Plan, class real>
__device__ __forceinline__ void run_backward(const Tile<Plan, real> &tile, Columns<real> *kept,
                                             real *weight_grad) {
    tile.for_each_codelet(true, [&](int32_t number, int32_t place) NSC_INLINE {
        const Codelet codelet = Plan::codelet(number);
        Plan::template with_code_of<Plan>(codelet, [&](auto code) NSC_INLINE {
            // For each comparator first the difference of the rows in front of it, as the first
            // run had them. Then its products with the difference of the rows behind it, summed
            // over the columns into the first column.
            Columns<real> products[decltype(code)::most()];
            MixesOf<real, decltype(code)> first(tile.first, codelet.slot);
            run_code<false>(code, Kept<Plan, Columns<real>>{kept_by<Plan>(kept, place)},
                            [&](int32_t c, Columns<real> &a, Columns<real> &b) NSC_INLINE {
                products[c] = a - b;
                mix(a, b, first[c]);
            });
            // Else the compiler reads ahead for the second half, and the registers are full.
            __syncwarp(tile.mask);
            const auto rows = rows_of_codelet(tile, codelet);
            MixesOf<real, decltype(code)> second(tile.second, codelet.slot);
            run_code<true>(code, rows,
                           [&](int32_t c, Columns<real> &a, Columns<real> &b) NSC_INLINE {
                products[c].at[0] = dot(products[c], a - b);
                mix(a, b, second[c]);
            });
            add_sums(tile, code, products, weight_grad + codelet.slot);
        });
    });
}

}  // namespace nsc::cuda
