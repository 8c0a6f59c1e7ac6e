// ------------------------------------------------------------------------------ mixes of two rows

template <class Row, class T>
NSC_STEP void mix(Row &lo, Row &hi, Mix<T> m) {
    const Row a = lo, b = hi;
    lo = mixed(m, a, b);
    hi = mixed(m, b, a);
}
