// Arithmetic on registers that the language lacks.
#pragma once

#include <nsc/attributes.h>
#include <nsc/integers.h>
#include <nsc/registers.h>

namespace nsc {

// The same of a number in memory, which is one instruction. The empty asm hides the number from the
// compiler, which would else compute with one lane and then spread each result by a shuffle.
template <class T>
inline Vec<T> broadcast(const T &value) {
    Vec<T> row = all(value);
#if defined(__x86_64__)
    asm("" : "+v"(row));
#endif
    return row;
}

// a < b ? a : b and a > b ? a : b, which are one instruction. GCC makes two or three of them in the
// widest registers.
#if defined(__AVX512F__) && !defined(__clang__)
#define NSC_ONE_OF_TWO(name, operation)                                      \
    inline Vec<float> name(Vec<float> a, Vec<float> b) {                     \
        Vec<float> result;                                                   \
        asm("v" operation "ps %2, %1, %0" : "=v"(result) : "v"(a), "vm"(b)); \
        return result;                                                       \
    }                                                                        \
    inline Vec<double> name(Vec<double> a, Vec<double> b) {                  \
        Vec<double> result;                                                  \
        asm("v" operation "pd %2, %1, %0" : "=v"(result) : "v"(a), "vm"(b)); \
        return result;                                                       \
    }
NSC_ONE_OF_TWO(lesser, "min")
NSC_ONE_OF_TWO(greater, "max")
#undef NSC_ONE_OF_TWO
#else
template <class Row>
inline Row lesser(Row a, Row b) {
    return a < b ? a : b;
}

template <class Row>
inline Row greater(Row a, Row b) {
    return a > b ? a : b;
}
#endif

// Numbers and their bits, integers as numbers.
template <class real>
inline Vec<Bits<real>> bits_of(Vec<real> v) {
    return (Vec<Bits<real>>)v;
}

template <class real>
inline Vec<real> from_bits(Vec<Bits<real>> bits) {
    return (Vec<real>)bits;
}

template <class real>
inline Vec<real> converted(Vec<Bits<real>> v) {
    return __builtin_convertvector(v, Vec<real>);
}

// Whether any lane of a comparison holds. One instruction finds it, which GCC does not choose.
template <class Mask>
inline bool any(Mask mask) {
#if defined(__AVX512F__)
    uint16_t holds;
    asm("vptestmd %1, %1, %0" : "=k"(holds) : "v"(mask));
    return holds;
#elif defined(__AVX__)
    bool holds;
    asm("vptest %1, %1" : "=@ccnz"(holds) : "x"(mask));
    return holds;
#else
    uint64_t words[sizeof(Mask) / 8], all_words = 0;
    memcpy(words, &mask, sizeof mask);
    for (uint64_t word : words) all_words |= word;
    return all_words != 0;
#endif
}

// Losses take logarithms in double.
template <class real>
using Log = double;

// The registers of doubles that a register's numbers fill, and one of them.
template <class real>
constexpr int64_t double_registers = int64_t(sizeof(double) / sizeof(real));

template <class real>
inline Vec<double> in_doubles(Vec<real> v, int64_t which) {
    typedef real Part __attribute__((vector_size(register_bytes / double_registers<real>)));
    Part part;
    memcpy(&part, reinterpret_cast<const char *>(&v) + which * int64_t(sizeof part), sizeof part);
    return __builtin_convertvector(part, Vec<double>);
}

// Adds the lanes of p whose numbers differ in one bit, and the same lanes of q. Lanes without the
// bit hold the sums of p, lanes with it the sums of q. Half of the summands stay in their lanes and
// need no shuffle.
template <class real, int bit, int... places>
inline Vec<real> fold(Vec<real> p, Vec<real> q, Places<places...>) {
    constexpr int width = lanes<real>;
    return __builtin_shufflevector(p, q, (places & bit ? width + places : places)...) +
           __builtin_shufflevector(p, q, ((places & bit ? width + places : places) ^ bit)...);
}

// The sums of `lanes` rows over their lanes: lane k holds the sum of row k.
template <class real, int count = lanes<real>>
inline Vec<real> row_sums(const Vec<real> *rows) {
    if constexpr (count == 1) {
        return rows[0];
    } else {
        return fold<real, count / 2>(row_sums<real, count / 2>(rows),
                                     row_sums<real, count / 2>(rows + count / 2),
                                     typename PlacesTo<lanes<real>>::list());
    }
}

// Transposes `lanes` rows of `lanes` values: pairs of rows whose numbers differ in one bit exchange
// the quarters of their square, bit by bit.
template <class T, int bit, int... places>
inline void exchange_quarters(Vec<T> &p, Vec<T> &q, Places<places...>) {
    constexpr int width = lanes<T>;
    const Vec<T> a = p, b = q;
    p = __builtin_shufflevector(a, b, (places & bit ? width + (places & ~bit) : places)...);
    q = __builtin_shufflevector(a, b, (places & bit ? width + places : places | bit)...);
}

template <class T, int bit = 1>
inline void transpose_from(Vec<T> *rows) {
    if constexpr (bit < lanes<T>) {
        NSC_UNROLL
        for (int i = 0; i < lanes<T>; ++i)
            if (!(i & bit))
                exchange_quarters<T, bit>(rows[i], rows[i | bit],
                                          typename PlacesTo<lanes<T>>::list());
        transpose_from<T, 2 * bit>(rows);
    }
}

template <class T>
NSC_NOINLINE void transpose(Vec<T> *rows) {
    Vec<T> in_registers[lanes<T>];
    NSC_UNROLL
    for (int i = 0; i < lanes<T>; ++i) in_registers[i] = rows[i];
    transpose_from<T>(in_registers);
    NSC_UNROLL
    for (int i = 0; i < lanes<T>; ++i) rows[i] = in_registers[i];
}

}  // namespace nsc
