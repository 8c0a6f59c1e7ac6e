template <class Row, class T>
NSC_STEP void mix(Row &to, Row &other, Mix<T> m, First) {
    to = mixed(m, to, other);
}

template <class Row, class T>
NSC_STEP void mix(Row &other, Row &to, Mix<T> m, Second) {
    mix(to, other, m, First());
}

template <class Row, class T>
NSC_STEP void mix(Row &from, Row &other, Mix<T> m, FromFirst) {
    other = m.swap * from;
    from = m.keep * from;
}

template <class Row, class T>
NSC_STEP void mix(Row &other, Row &from, Mix<T> m, FromSecond) {
    mix(from, other, m, FromFirst());
}

template <class Row>
NSC_STEP Row difference(const Row &a, const Row &b, First) {
    return a - b;
}

template <class Row>
NSC_STEP Row difference(const Row &a, const Row &b, Second) {
    return a - b;
}

// A wire that gives nothing counts as zero.
template <class Row>
NSC_STEP Row difference(const Row &a, const Row &, FromFirst) {
    return a;
}

template <class Row>
NSC_STEP Row difference(const Row &, const Row &b, FromSecond) {
    return -b;
}
