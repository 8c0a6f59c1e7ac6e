// Numbers on a GPU: a thread computes one where a processor's register would hold many.
#pragma once

#include <nsc/integers.h>
#if !defined(__CUDACC_RTC__)
#include <math.h>
#endif

namespace nsc {

template <class T>
using Vec = T;

template <class T>
__device__ inline T all(T value) {
    return value;
}

// Whether a comparison holds.
__device__ inline bool any(bool mask) { return mask; }

template <class real>
__device__ inline real lesser(real a, real b) {
    return a < b ? a : b;
}

// Numbers and their bits, integers as numbers.
template <class real>
__device__ inline Bits<real> bits_of(real v) {
    if constexpr (sizeof(real) == 4)
        return __float_as_int(v);
    else
        return __double_as_longlong(v);
}

template <class real>
__device__ inline real from_bits(Bits<real> bits) {
    if constexpr (sizeof(real) == 4)
        return __int_as_float(bits);
    else
        return __longlong_as_double(bits);
}

template <class real>
__device__ inline real converted(Bits<real> v) {
    return real(v);
}

template <class real>
__device__ inline real infinity() {
    return from_bits<real>(sizeof(real) == 4 ? Bits<real>(0x7f800000)
                                             : Bits<real>(0x7ff0000000000000));
}

template <class real>
__device__ inline real not_a_number() {
    return infinity<real>() - infinity<real>();
}

// Losses take logarithms in the type of the kernel.
template <class real>
using Log = real;

}  // namespace nsc
