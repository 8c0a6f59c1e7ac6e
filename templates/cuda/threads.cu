// --------------------------------------------------------------------------------------- threads

// A thread computes one number where a processor's register would hold many.
template <class T>
using Vec = T;

// Whole numbers as wide as a real.
template <class real>
struct WholeOf {
    using type = int64_t;
};
template <>
struct WholeOf<float> {
    using type = int32_t;
};
template <class real>
using Whole = typename WholeOf<real>::type;

template <class T>
__device__ inline T all(T value) {
    return value;
}

// Numbers and their bits, whole numbers as numbers.
template <class real>
__device__ inline Whole<real> bits_of(real v) {
    if constexpr (sizeof(real) == 4)
        return __float_as_int(v);
    else
        return __double_as_longlong(v);
}

template <class real>
__device__ inline real from_bits(Whole<real> bits) {
    if constexpr (sizeof(real) == 4)
        return __int_as_float(bits);
    else
        return __longlong_as_double(bits);
}

template <class real>
__device__ inline real converted(Whole<real> v) {
    return real(v);
}

template <class real>
__device__ inline real infinity() {
    return from_bits<real>(sizeof(real) == 4 ? Whole<real>(0x7f800000) : Whole<real>(0x7ff0000000000000));
}

template <class real>
__device__ inline real not_a_number() {
    return infinity<real>() - infinity<real>();
}
