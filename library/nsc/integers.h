// Integers of known width. NVRTC has no headers of its own.
#pragma once

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <stdint.h>
#endif

namespace nsc {

// The integer as wide as a real, for its bits.
template <class real>
struct BitsOf {
    using type = int64_t;
};
template <>
struct BitsOf<float> {
    using type = int32_t;
};
template <class real>
using Bits = typename BitsOf<real>::type;

}  // namespace nsc
