// Spans: where the values of samples lie in memory.
#pragma once

#include <stdint.h>
#include <string.h>

namespace nsc {

// Value w of sample s is at w * wire + s * sample.
template <class Key>
struct Span {
    Key *at;
    int64_t wire, sample;
    int64_t offset(int64_t w, int64_t s) const { return w * wire + s * sample; }
    operator Span<const Key>() const { return {at, wire, sample}; }
};

// So many samples of `values` each without gaps: in rows, a sample each, or in as many rows, a
// value of every sample each.
template <bool in_rows, class Key>
Span<Key> dense(Key *at, int64_t samples, int64_t values) {
    return in_rows ? Span<Key>{at, 1, values} : Span<Key>{at, samples, 1};
}

// Copies so many samples of `values` each. What lies side by side does so in both.
template <bool in_rows, class T>
void copy_samples(Span<const T> from, Span<T> to, int64_t samples, int64_t values) {
    if (in_rows) {
        for (int64_t s = 0; s < samples; ++s)
            memcpy(to.at + s * to.sample, from.at + s * from.sample, sizeof(T) * values);
    } else {
        for (int64_t w = 0; w < values; ++w)
            memcpy(to.at + w * to.wire, from.at + w * from.wire, sizeof(T) * samples);
    }
}

}  // namespace nsc
