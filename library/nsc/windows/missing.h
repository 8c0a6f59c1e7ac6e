// Missing values: windows of which some values do not count, such as NaN, masked pixels, and places
// beyond the border.
//
// A missing value gets the greatest key, or the least one. So the ranks of the numbers of a window
// depend on how many values it lacks. A kernel selects a few ranks, which serve windows that lack
// none or few; other windows are sorted.
#pragma once

#include <nsc/elements.h>
#include <nsc/registers.h>

#include <type_traits>

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

// The floating-point type in which values are joined; other types select alone.
template <class Element>
struct JoinOf {
    using type = void;
};

template <>
struct JoinOf<float32> {
    using type = float;
};

template <>
struct JoinOf<float64> {
    using type = double;
};

template <class Element>
constexpr bool joins = !std::is_void_v<typename JoinOf<Element>::type>;

// A byte for each lane of a register.
template <class Key>
struct FlagsOf {
    typedef uint8_t type __attribute__((vector_size(lanes<Key>)));
};

template <int64_t bytes>
struct WordsOf {
    typedef uint64_t type __attribute__((vector_size(bytes)));
};

// Whether any bit is set.
template <class V>
NSC_STEP bool is_any(const V &value) {
    uint64_t words[2] = {};
    if constexpr (sizeof(V) > 16) {
        typename WordsOf<16>::type parts[sizeof(V) / 16];
        memcpy(parts, &value, sizeof value);
        for (uint64_t part = 1; part < sizeof(V) / 16; ++part) parts[0] |= parts[part];
        memcpy(words, parts, sizeof words);
    } else {
        memcpy(words, &value, sizeof value);
    }
    return (words[0] | words[1]) != 0;
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

// The keys of all values of windows in order, those that begin at a register of a row.
template <class Window, class Form>
struct SortedWindows {
    using Key = typename Form::Key;
    static constexpr int64_t values = sizeof Window::places / sizeof *Window::places;

    Vec<Key> keys[values];

    // Batcher's merge exchange: Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2M.
    SortedWindows(const Key *const *rows, int64_t step_rows, int64_t x) {
        for (int64_t value = 0; value < values; ++value) {
            const Place &place = Window::places[value];
            keys[value] = load(rows[place.plane * step_rows + place.row] + x +
                               place.column * Window::channels);
        }
        int64_t top = 1;
        while (2 * top < values) top *= 2;
        for (int64_t p = top; p > 0; p /= 2)
            for (int64_t q = top, r = 0, d = p; d > 0; d = q > p ? q - p : 0, q /= 2, r = p)
                for (int64_t i = 0; i < values - d; ++i)
                    if ((i & p) == r) Form::order(keys[i], keys[i + d]);
    }

    // For each lane the key of the rank in a table, by how many values its window lacks.
    Vec<Key> at(const uint8_t *ranks, const uint8_t *lacks) const {
        Key found[lanes<Key>];
        for (int64_t lane = 0; lane < lanes<Key>; ++lane) {
            const int64_t rank = ranks[lacks[lane]];
            found[lane] = keys[rank < values ? rank : 0][lane];
        }
        return load(found);
    }
};

// A call of its own, so that no sum takes the product before it is rounded.
template <class Number>
NSC_NOINLINE Vec<Number> product(Vec<Number> a, Vec<Number> b) {
    return a * b;
}

// Numbers between two, counted from the nearer one, so that they rise with the share.
template <class Number>
NSC_STEP Vec<Number> nearer(Vec<Number> a, Vec<Number> b, Vec<Number> share, Vec<Number> rest) {
    return share < Number(0.5) ? a + product<Number>(b - a, share)
                               : b - product<Number>(b - a, rest);
}

// Bits of results between two values, given by their bits: the middle, or a share of the way. An
// infinite one of the two is the result, NaN between both infinities.
template <class Element, class Key = typename Element::Key,
          class Number = typename JoinOf<Element>::type>
NSC_STEP Vec<Key> between(Vec<Key> low, Vec<Key> high, Vec<Number> share, Vec<Number> rest,
                          bool is_mean) {
    const Vec<Number> a = Vec<Number>(low), b = Vec<Number>(high);
    Vec<Number> result = (a + b) / 2;
    if (!is_mean) result = nearer<Number>(a, b, share, rest);
    const auto is_finite = result - result == 0;
    if (is_any(~is_finite)) {  // a sum or a distance may be too large for the type
        const Vec<Number> half = nearer<Number>(a / 2, b / 2, share, rest), ends = a + b;
        const auto are_finite = (a - a == 0) & (b - b == 0);
        const Vec<Number> other = are_finite ? (is_mean ? a / 2 + b / 2 : half * 2) : ends;
        result = is_finite ? result : other;
    }
    result = rest == 0 ? b : result;
    return Vec<Key>(share == 0 ? a : result);
}

// The place of a rank among those that a kernel selects; -1: it is not selected.
template <class Window>
NSC_STEP int64_t selected_at(int64_t rank) {
    int64_t at = -1, place = 0;
    for (int64_t selected : Window::ranks) at = selected == rank ? place : at, ++place;
    return at;
}

template <class Key>
NSC_STEP Key none_of(const Missing &missing) {
    Key none;
    memcpy(&none, missing.none, sizeof none);
    return none;
}

// Results of windows of which some lack more values than the kernel's ranks serve.
template <class Window, class Form, class Key = typename Form::Key>
NSC_NOINLINE Vec<Key> found_by_sorting(const Missing &missing, const Key *const *rows,
                                       int64_t step_rows, int64_t x, const uint8_t *lacks) {
    using Element = typename Form::Element;
    const SortedWindows<Window, Form> windows(rows, step_rows, x);
    Vec<Key> result = Element::bits(windows.at(missing.low, lacks), Vec<Key>{});
    if constexpr (joins<Element>) {
        typename JoinOf<Element>::type share[lanes<Key>], rest[lanes<Key>];
        for (int64_t lane = 0; lane < lanes<Key>; ++lane) {
            share[lane] = missing.share[lacks[lane]];
            rest[lane] = missing.rest[lacks[lane]];
        }
        const Vec<Key> high = Element::bits(windows.at(missing.high, lacks), Vec<Key>{});
        result = between<Element>(result, high, load(share), load(rest), missing.is_mean);
    }
    for (int64_t lane = 0; lane < lanes<Key>; ++lane)
        if (missing.low[lacks[lane]] == no_result) result[lane] = none_of<Key>(missing);
    return result;
}

// Results of windows: `selected` has the keys of the ranks that the kernel selects; lacks: how many
// values each window lacks, or null for none.
template <class Window, class Form, class Key = typename Form::Key>
NSC_NOINLINE Vec<Key> joined(const Missing &missing, const Key *const *rows, int64_t step_rows,
                             int64_t x, const Vec<Key> *selected, const uint8_t *lacks) {
    using Element = typename Form::Element;
    typename FlagsOf<Key>::type counts{};
    if (lacks) memcpy(&counts, lacks, sizeof counts);
    const Vec<Key> lacking = __builtin_convertvector(counts, Vec<Key>);
    Vec<Key> result = all<Key>(none_of<Key>(missing));
    auto left = lacking == lacking;
    for (int64_t count = 0; is_any(left); ++count) {
        const auto is_count = lacking == all<Key>(Key(count));
        if (!is_any(is_count)) continue;
        left &= ~is_count;
        if (missing.low[count] == no_result) continue;
        const int64_t low = selected_at<Window>(missing.low[count]),
                      high = selected_at<Window>(missing.high[count]);
        if (low < 0 || high < 0)
            return found_by_sorting<Window, Form>(missing, rows, step_rows, x, lacks);
        Vec<Key> bits = Element::bits(selected[low], Vec<Key>{});
        if constexpr (joins<Element>) {
            using Number = typename JoinOf<Element>::type;
            if (low != high)
                bits = between<Element>(bits, Element::bits(selected[high], Vec<Key>{}),
                                        all(Number(missing.share[count])),
                                        all(Number(missing.rest[count])), missing.is_mean);
        }
        result = is_count ? bits : result;
    }
    return result;
}

}  // namespace nsc
