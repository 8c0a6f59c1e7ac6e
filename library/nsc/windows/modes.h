// Modes: what stands outside of an image, along an axis.
#pragma once

#include <stdint.h>

namespace nsc {

// For a row a b c d: reflect d c b a | a b c d | d c b a, mirror d c b | a b c d | c b a, nearest a
// a a | a b c d | d d d, wrap a b c d | a b c d | a b c d, constant one value everywhere, shrink
// nothing. The numbers are as in nsc.contract.
enum Mode : int32_t {
    reflect = 0,
    nearest = 1,
    mirror = 2,
    constant = 3,
    wrap = 4,
    shrink = 5,
};

inline int64_t modulo(int64_t position, int64_t length) {
    return (position % length + length) % length;
}

// The index of the pixel that stands at a position, inside of an image or outside; -1 for the
// constant, or for nothing.
inline int64_t index_at(int64_t position, int64_t length, Mode mode) {
    if (position >= 0 && position < length) return position;
    switch (mode) {
        case reflect: {
            const int64_t at = modulo(position, 2 * length);
            return at < length ? at : 2 * length - 1 - at;
        }
        case mirror: {
            const int64_t at = length > 1 ? modulo(position, 2 * length - 2) : 0;
            return at < length ? at : 2 * length - 2 - at;
        }
        case nearest: return position < 0 ? 0 : length - 1;
        case wrap: return modulo(position, length);
        default: return -1;
    }
}

// The same for the values of a row, as many of each pixel as it has channels.
inline int64_t value_index_at(int64_t position, int64_t length, int64_t channels, Mode mode) {
    const int64_t channel = modulo(position, channels),
                  column = index_at((position - channel) / channels, length / channels, mode);
    return column < 0 ? -1 : column * channels + channel;
}

}  // namespace nsc
