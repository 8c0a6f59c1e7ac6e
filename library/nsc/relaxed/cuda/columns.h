// A lane's columns of a row: numbers that are mixed together.
#pragma once

#include <nsc/relaxed/weights.h>

namespace nsc::cuda {

// Bytes of a row that a lane holds: two neighbouring columns of float32, one of float64.
constexpr int32_t lane_bytes = 8;

template <class real>
constexpr int32_t lane_columns = lane_bytes / int32_t(sizeof(real));

// A lane's columns of a row.
template <class real>
struct alignas(lane_bytes) Columns {
    real at[lane_columns<real>];
};

template <class real>
__device__ __forceinline__ Columns<real> operator-(Columns<real> a, Columns<real> b) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] -= b.at[k];
    return a;
}

template <class real>
__device__ __forceinline__ Columns<real> operator-(Columns<real> a) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] = -a.at[k];
    return a;
}

template <class real>
__device__ __forceinline__ Columns<real> operator*(real factor, Columns<real> a) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] *= factor;
    return a;
}

template <class real>
__device__ __forceinline__ Columns<real> mixed(Mix<real> m, Columns<real> a, Columns<real> b) {
    for (int32_t k = 0; k < lane_columns<real>; ++k) a.at[k] = mixed(m, a.at[k], b.at[k]);
    return a;
}

template <class real>
__device__ __forceinline__ real dot(Columns<real> a, Columns<real> b) {
    real sum = a.at[0] * b.at[0];
    for (int32_t k = 1; k < lane_columns<real>; ++k) sum += a.at[k] * b.at[k];
    return sum;
}

}  // namespace nsc::cuda
