// Half comparators, which give only one result, forwards and backwards.
#pragma once

#include <nsc/relaxed/weights.h>

namespace nsc::cuda {

// Tells a step which wire of a half comparator is needed behind it. Run forwards, a half comparator
// takes from both wires and gives to the needed one. Run backwards, it takes from the needed one
// and gives to both.
template <bool backwards, int32_t needed>
struct Half {};
using First = Half<false, 1>;
using Second = Half<false, 2>;
using FromFirst = Half<true, 1>;
using FromSecond = Half<true, 2>;

// The difference of two rows. A comparator's weight is multiplied with it.
template <class Row>
NSC_STEP Row difference(const Row &a, const Row &b) {
    return a - b;
}

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

}  // namespace nsc::cuda
