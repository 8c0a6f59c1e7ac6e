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
