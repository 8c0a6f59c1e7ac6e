// Missing values: windows of which some values do not count, such as NaN, masked pixels, and places
// beyond the border.
//
// A missing value gets the greatest key, or the least one. So the ranks of the numbers of a window
// depend on how many values it lacks. A kernel selects a few ranks, which serve windows that lack
// none or few; other windows are sorted.
#pragma once

#include <nsc/elements.h>
#include <nsc/registers.h>

namespace nsc {

// A value of a window: its place in the box around the window.
struct Place {
    int64_t plane, row, column;
};

// What results are made of, as nsc.runtime.exact.windows has it. Tables have an entry for each
// number of values that a window may lack, from none to all.
struct Missing {
    const uint8_t *mask;         // a byte for each pixel, not 0 for a missing one; or null
    const uint8_t *low, *high;   // the ranks whose values are joined; no_result: no result
    const double *share, *rest;  // how far the result lies from the one at low, and 1 - share
    const void *none;            // the value of a window without a result
    int32_t nan_is_missing, is_least, is_mean;
};

constexpr uint8_t no_result = 255;

// The floating-point type in which values are joined; other values are selected alone.
template <class Element>
struct Joined {
    static constexpr bool exists = false;
    using Number = void;
};
template <>
struct Joined<float32> {
    static constexpr bool exists = true;
    using Number = float;
};
template <>
struct Joined<float64> {
    static constexpr bool exists = true;
    using Number = double;
};

// A byte for each lane of a register.
template <class Key>
struct FlagsOf {
    typedef uint8_t type __attribute__((vector_size(lanes<Key>)));
};

// Whether any bit is set.
template <class V>
NSC_STEP bool is_any(const V &value) {
    uint64_t words[(sizeof value + 7) / 8] = {}, any = 0;
    memcpy(words, &value, sizeof value);
    for (uint64_t word : words) any |= word;
    return any != 0;
}

// Writes the keys of `count` values, a register or more, and a flag for each: whether it is
// missing. mask: of the same values, or null. Returns whether any is.
template <class Element, class Key>
NSC_NOINLINE bool enter_flagged(const Missing &missing, const Key *row, const uint8_t *mask,
                                Key outside, bool is_outside, int64_t count, Key *keys,
                                uint8_t *flags) {
    using Flags = typename FlagsOf<Key>::type;
    using Signed = decltype(Vec<Key>{} < Vec<Key>{});
    constexpr Key top = Key(uint64_t(1) << (8 * sizeof(Key) - 1));
    const Key least = Key(-1) < Key(0) ? top : Key(0),
              absent = missing.is_least ? least : Key(~least);
    Signed any{};
    for (int64_t at = 0; at < count; at += lanes<Key>) {
        const int64_t x = at + lanes<Key> <= count ? at : count - lanes<Key>;
        const Vec<Key> bits = row ? load(row + x) : all<Key>(outside);
        Signed gone = is_outside ? ~Signed{} : Signed{};
        if (missing.nan_is_missing) gone |= Signed(Element::is_nan(bits));
        if (mask) {
            Flags masked;
            memcpy(&masked, mask + x, sizeof masked);
            gone |= __builtin_convertvector(masked, Signed) != 0;
        }
        store(keys + x, gone ? all<Key>(absent) : Element::key(bits, Vec<Key>{}));
        const Flags flagged = __builtin_convertvector(gone & 1, Flags);
        memcpy(flags + x, &flagged, sizeof flagged);
        any |= gone;
    }
    return is_any(any);
}

// Writes how many values the windows of `width` results of a row lack.
template <class Window>
NSC_NOINLINE void count_missing(const uint8_t *const *flags, int64_t step_rows, int64_t width,
                                uint8_t *counts) {
    for (int64_t x = 0; x < width; x += register_bytes) {
        Vec<uint8_t> sum{};
        for (const Place &place : Window::places)
            sum += load(flags[place.plane * step_rows + place.row] + x +
                        place.column * Window::channels);
        store(counts + x, sum);
    }
}

// Writes the keys of all values of windows in order, for windows that begin at a register of a row.
//
// Batcher's merge exchange: Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2M.
template <class Window, class Form, class Key>
NSC_NOINLINE void sort_windows(const Key *const *rows, int64_t step_rows, int64_t x,
                               Vec<Key> *keys) {
    int64_t values = 0, top = 1;
    for (const Place &place : Window::places)
        keys[values++] =
            load(rows[place.plane * step_rows + place.row] + x + place.column * Window::channels);
    while (2 * top < values) top *= 2;
    for (int64_t p = top; p > 0; p /= 2)
        for (int64_t q = top, r = 0, d = p; d > 0; d = q > p ? q - p : 0, q /= 2, r = p)
            for (int64_t i = 0; i < values - d; ++i)
                if ((i & p) == r) Form::order(keys[i], keys[i + d]);
}

// A call of its own, so that no sum takes the product before it is rounded.
template <class Number>
NSC_NOINLINE Vec<Number> product(Vec<Number> a, Number b) {
    return a * b;
}

// Numbers between two: the middle, or a share of the way, counted from the nearer one, so that they
// rise with the share. An infinite one of the two is the result, NaN between both infinities.
template <class Number>
NSC_STEP Vec<Number> between(Vec<Number> a, Vec<Number> b, Number share, Number rest,
                             bool is_mean) {
    if (share == 0) return a;
    if (rest == 0) return b;
    const auto join = [&](Vec<Number> from, Vec<Number> to) {
        if (is_mean) return Vec<Number>((from + to) / 2);
        return share < Number(0.5) ? from + product<Number>(to - from, share)
                                   : to - product<Number>(to - from, rest);
    };
    const Vec<Number> result = join(a, b);
    const auto is_finite = result - result == 0;
    if (!is_any(__builtin_convertvector(~is_finite, typename FlagsOf<Number>::type))) return result;
    // A sum or a distance may be too large for the type.
    const auto are_finite = (a - a == 0) & (b - b == 0);
    return is_finite ? result : are_finite ? join(a / 2, b / 2) * 2 : a + b;
}

// Results of windows: `selected` has the keys of the ranks that the kernel selects; lacking: how
// many values each window lacks. Windows are sorted for other ranks.
template <class Window, class Form, class Key>
NSC_NOINLINE Vec<Key> joined(const Missing &missing, const Key *const *rows, int64_t step_rows,
                             int64_t x, const Vec<Key> *selected,
                             typename FlagsOf<Key>::type lacking) {
    using Element = typename Form::Element;
    using Number = typename Joined<Element>::Number;
    using Signed = decltype(Vec<Key>{} < Vec<Key>{});
    Vec<Key> sorted[sizeof Window::places / sizeof(Place)];
    bool is_sorted = false;
    const auto bits_of = [&](int64_t rank) {
        int64_t place = 0;
        for (int64_t each : Window::ranks) {
            if (each == rank) return Element::bits(selected[place], Vec<Key>{});
            ++place;
        }
        if (!is_sorted) sort_windows<Window, Form>(rows, step_rows, x, sorted);
        is_sorted = true;
        return Element::bits(sorted[rank], Vec<Key>{});
    };
    Key none;
    memcpy(&none, missing.none, sizeof none);
    Vec<Key> result = all<Key>(none);
    auto left = lacking == lacking;
    for (int64_t count = 0; is_any(left); ++count) {
        const auto is_count = lacking == uint8_t(count);
        const int64_t low = missing.low[count], high = missing.high[count];
        left &= ~is_count;
        if (low == no_result || !is_any(is_count)) continue;
        Vec<Key> bits = bits_of(low);
        if constexpr (Joined<Element>::exists)
            if (low != high)
                bits = Vec<Key>(between<Number>(Vec<Number>(bits), Vec<Number>(bits_of(high)),
                                                Number(missing.share[count]),
                                                Number(missing.rest[count]), missing.is_mean));
        result = __builtin_convertvector(is_count, Signed) ? bits : result;
    }
    return result;
}

}  // namespace nsc
