// Rims: the columns of an image whose windows reach out of it to the left and right.
#pragma once

#include <nsc/windows/missing.h>
#include <nsc/windows/modes.h>
#include <nsc/windows/strips.h>

namespace nsc {

// The values of the rim, and those around them, are written side by side, and filtered as a row.
// The rim of a narrow image is all of it.
template <class Window, class Key>
struct Rim {
    using Sizes = StripSizes<Window, Key>;
    static constexpr int64_t around = Sizes::around;

    // Results at the left edge, or at the right one: the first of them in the rim and in a row, and
    // how many there are.
    struct Edge {
        int64_t in_rim, in_row, count;
    };
    Edge edges[2];
    // The values of a row that the rim reads, -1 outside.
    int64_t values[Sizes::rim_pitch], count;

    // For rows of so many values, and windows that begin `before` values before their pixels.
    Rim(int64_t length, int64_t before, Mode mode) : edges{}, count(0) {
        const int64_t behind = around - before;
        edges[0] = {0, 0, is_all(length) ? length : before};
        if (!is_all(length)) edges[1] = {0, length - behind, behind};
        for (Edge &edge : edges) {
            edge.in_rim = count;
            for (int64_t x = 0; edge.count && x < edge.count + around; ++x)
                values[count++] =
                    value_index_at(edge.in_row - before + x, length, Window::channels, mode);
        }
    }

    static bool is_all(int64_t length) { return length < lanes<Key> + around; }

    // Values that are entered, full registers; what stands behind the last one is not used.
    int64_t read() const { return (count + lanes<Key> - 1) / lanes<Key> * lanes<Key>; }

    // Results of a row, a register or more.
    int64_t width() const { return count - around < lanes<Key> ? lanes<Key> : count - around; }
};

// Writes the keys of `count` values, a register or more, that lie side by side; row: null for one
// outside.
template <class Element, class Key>
NSC_NOINLINE void enter_row(const Key *row, Key outside, int64_t count, Key *keys) {
    for (int64_t at = 0; at < count; at += lanes<Key>) {
        const int64_t x = register_at<Key>(at, count);
        store(keys + x, Element::key(row ? load(row + x) : all<Key>(outside), Vec<Key>{}));
    }
}

// Writes the values of the rim of a row.
template <class Window, class Key>
inline void take_rim(const Rim<Window, Key> &rim, const Key *row, Key outside, Key *keys) {
    for (int64_t x = 0; x < rim.count; ++x)
        keys[x] = row && rim.values[x] >= 0 ? row[rim.values[x]] : outside;
}

// Writes the keys of the rim of a row. What stands behind its values up to the pitch is read, but
// not used.
template <class Element, class Window, class Key>
NSC_NOINLINE void enter_rim(const Rim<Window, Key> &rim, const Key *row, Key outside, Key *keys) {
    take_rim(rim, row, outside, keys);
    if (Element::key_is_value) return;
    for (int64_t x = 0; x < rim.count; x += lanes<Key>)
        store(keys + x, Element::key(load(keys + x), Vec<Key>{}));
}

// The same where values may be missing, with their flags; mask: of the row, or null. Returns
// whether any is missing.
template <class Element, class Window, class Key>
bool enter_rim_flagged(const Rim<Window, Key> &rim, const Missing &missing, const Key *row,
                       const uint8_t *mask, Key outside, bool is_shrunk, Key *keys,
                       uint8_t *flags) {
    take_rim(rim, row, outside, keys);
    memset(flags, 0, StripSizes<Window, Key>::rim_pitch);
    for (int64_t x = 0; x < rim.count; ++x)
        flags[x] = row && rim.values[x] >= 0 ? mask && mask[rim.values[x]] : is_shrunk;
    return enter_flagged<Element>(missing, keys, flags, outside, false, rim.read(), keys, flags);
}

}  // namespace nsc
