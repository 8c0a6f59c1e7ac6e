// Registers: a Vec holds as many numbers as the processor computes at a time.
//
// The compiler's vector extensions make registers of 64, 32 or 16 bytes from one text. Subnormal
// numbers are common in P, and about 100 times slower, so relaxed kernels flush them to zero on
// their own threads. Exact kernels do not: they sort whole numbers.
#pragma once

#include <nsc/attributes.h>
#include <stdint.h>
#include <string.h>

namespace nsc {

#if defined(__AVX512F__)
constexpr int64_t register_bytes = 64;
#elif defined(__AVX__)
constexpr int64_t register_bytes = 32;
#else
constexpr int64_t register_bytes = 16;
#endif

template <class T>
struct VecOf {
    typedef T type __attribute__((vector_size(register_bytes)));
};

template <class T>
using Vec = typename VecOf<T>::type;

template <class T>
constexpr int64_t lanes = register_bytes / int64_t(sizeof(T));

// In every lane the same number.
template <class T>
inline Vec<T> all(T value) {
    return value - Vec<T>{};
}

// Between a register and memory, `count` values; a full register is one instruction.
template <class T>
inline Vec<T> load(const T *from, int64_t count = lanes<T>) {
    Vec<T> row;
    if (count == lanes<T>) {
        memcpy(&row, from, sizeof row);
    } else {
        row = Vec<T>{};
        memcpy(&row, from, sizeof(T) * count);
    }
    return row;
}

template <class T>
inline void store(T *to, Vec<T> row, int64_t count = lanes<T>) {
    if (count == lanes<T>)
        memcpy(to, &row, sizeof row);
    else
        memcpy(to, &row, sizeof(T) * count);
}

// The numbers 0 ... count - 1, for shuffles, whose lanes must be known when compiling.
template <int... places>
struct Places {};

template <int count, int... places>
struct PlacesTo : PlacesTo<count - 1, count - 1, places...> {};

template <int... places>
struct PlacesTo<0, places...> {
    using list = Places<places...>;
};

// Fetches memory to the first-level cache: what is read soon, or written.
template <bool writes>
inline void fetch_ahead(const void *start, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(static_cast<const char *>(start) + at, writes);
}

// The same by reading memory, which must be the caller's. A processor that reads one line after
// another fetches the next lines itself, many at a time; single fetches are few under way.
inline void touch_ahead(const void *start, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 64)
        (void)*(static_cast<const volatile char *>(start) + at);
}

}  // namespace nsc
