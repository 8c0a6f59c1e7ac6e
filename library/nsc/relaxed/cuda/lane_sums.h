// Sums over the lanes of a tile, of the products that are the gradients of weights.
#pragma once

#include <nsc/relaxed/cuda/tile.h>

namespace nsc::cuda {

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

}  // namespace nsc::cuda
