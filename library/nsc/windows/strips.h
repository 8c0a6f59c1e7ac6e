// Strips: neighbouring values of an image's rows, filtered so that what a step uses stays in a
// cache.
#pragma once

#include <nsc/registers.h>
#include <nsc/windows/missing.h>
#include <nsc/windows/window.h>

namespace nsc {

// How much memory a strip takes, in values: what a step reads and writes stays in a cache, lists,
// which are written and read again, in the first level, pixels in the second. Full rows are read
// fastest.
template <class Window, class Key>
struct StripSizes {
    static constexpr int64_t cache_bytes = Window::list_rows ? 32 << 10 : 256 << 10;
    // Rows of a plane, and of all planes, that a step reads.
    static constexpr int64_t step_rows = Window::rows + Window::rows_per_step - 1,
                             image_rows = Window::planes * step_rows,
                             all_rows = image_rows + Window::list_rows;
    // So many values of a row a window reads beside its first column: neighbouring columns are as
    // many values apart as a pixel has channels.
    static constexpr int64_t around = (Window::columns - 1) * Window::channels;

    // Values from a row of a rim to the next, full registers: a rim reads 3 * around + lanes<Key>
    // at most.
    static constexpr int64_t rim_pitch = (3 * around / lanes<Key> + 2) * lanes<Key>;

    // Values from a row of a strip to the next: an odd number of cache lines, so that rows do not
    // share a set of the cache.
    static constexpr int64_t line = 64 / int64_t(sizeof(Key)),
                             least_pitch = 4 * lanes<Key> + rim_pitch,
                             fitting_pitch = cache_bytes / (all_rows * int64_t(sizeof(Key))),
                             wanted_pitch =
                                 fitting_pitch > least_pitch ? fitting_pitch : least_pitch,
                             pitch = (wanted_pitch / (2 * line) * 2 + 1) * line;
    // Most results of a row of a strip.
    static constexpr int64_t most_width = (pitch - around) / lanes<Key> * lanes<Key>;
};

// The data of a step: the keys of its pixels, row by row, the lists of its stages, and the rows of
// results, null for one that is left out; and the rows of pixels that the next step reads first.
template <class Window, class FormOf>
struct Strip {
    using Form = FormOf;
    using Key = typename Form::Key;
    using Item = typename Form::Item;
    using Sizes = StripSizes<Window, Key>;

    const Key *rows[Sizes::image_rows];
    Key *lists, *results[Window::rows_per_step];
    const Key *next[Window::planes * Window::rows_per_step];
    // Where values may be missing: what is said of them, flags of the pixels, and for each row of
    // results how many values its windows lack; null if no pixel is missing.
    const Missing *missing;
    const uint8_t *flags[Sizes::image_rows];
    uint8_t *lacks[Window::rows_per_step];

    // Volatile: compilers load twice what a minimum and a maximum take, and loads are what takes
    // longest.
    NSC_STEP Item pixel(int64_t row, int64_t x) const {
        typedef Item Unaligned __attribute__((aligned(1), may_alias));
        return *reinterpret_cast<const volatile Unaligned *>(rows[row] + x);
    }
    NSC_STEP Item list(int64_t row, int64_t x) const {
        return load(lists + row * Sizes::pitch + x);
    }
    NSC_STEP void keep(int64_t row, int64_t x, Item item) const {
        store(lists + row * Sizes::pitch + x, item);
    }
    template <class... Items>
    NSC_STEP void give(int64_t row, int64_t x, Item item, Items... others) const {
        if (!results[row]) return;
        if constexpr (Window::may_miss) {
            typename FlagsOf<Key>::type lacking{};
            if (lacks[row]) memcpy(&lacking, lacks[row] + x, sizeof lacking);
            if (missing->high[0] != Window::ranks[0] || is_any(lacking)) {
                const Item selected[] = {item, others...};
                store(results[row] + x, joined<Window, Form>(*missing, rows + row, Sizes::step_rows,
                                                             x, selected, lacking));
                return;
            }
        }
        store(results[row] + x, Form::Element::bits(item, Vec<Key>{}));
    }
    // Where results begin: some values early, so that registers are full cache lines, unless lists
    // are then read at odd places.
    NSC_STEP int64_t first_result() const {
        return Window::list_rows
                   ? 0
                   : -int64_t(reinterpret_cast<uintptr_t>(results[0]) / sizeof(Key) % lanes<Key>);
    }
    // The pixels come to the second-level cache while this step still works, evenly spread.
    NSC_STEP void fetch_next(int64_t x) const {
        NSC_UNROLL
        for (const Key *row : next) __builtin_prefetch(row + x, 0, 2);
    }
};

// Makes `width` results of each row of a step.
template <class Window, class Form>
NSC_NOINLINE void run_step(const Strip<Window, Form> &strip, int64_t width) {
    using Key = typename Form::Key;
    Window::Lists::make(strip, width);
    if constexpr (Window::may_miss)
        for (int64_t row = 0; row < Window::rows_per_step; ++row)
            if (strip.results[row] && strip.lacks[row])
                count_missing<Window>(strip.flags + row, StripSizes<Window, Key>::step_rows, width,
                                      strip.lacks[row]);
    for (int64_t at = strip.first_result(); at < width; at += lanes<Key>) {
        const int64_t x = register_at<Key>(at, width);
        strip.fetch_next(x);
        Window::Results::run(strip, x);
    }
}

}  // namespace nsc
