// The weights of a codelet, read as they are used.
#pragma once

#include <nsc/relaxed/cuda/codes.h>

namespace nsc::cuda {

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

}  // namespace nsc::cuda
