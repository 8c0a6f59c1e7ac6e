// The window of a filter, as its text has it: sizes, and the stages that make lists and results.
//
// The windows of neighbouring pixels have most values in common, so stages share them. By columns:
// columns of pixels are sorted, then merged to lists; a list that several windows need is made
// once and read at a shift, as in separable sorting networks (Adams, SIGGRAPH 2021). By rows: the
// pixels of a window's row are sorted, then rows are merged; what windows below each other share
// then lies at one place, so a step makes eight rows of results in registers and writes no list.
#pragma once

#include <nsc/attributes.h>
#include <nsc/registers.h>

namespace nsc {

// A window is a struct of the kernel's text:
//
//     planes, rows, columns    of the window;
//     channels                 the values of a pixel, which are filtered each for itself;
//     rows_per_step            rows of results that a step makes;
//     list_rows                rows that the lists of its stages need;
//     places, ranks            its values, and which of them are selected, first the one of
//                              windows that lack none;
//     may_miss                 whether values may be missing (missing.h);
//     operations               minima and maxima for a pixel;
//     Lists                    Lists<...> of the stages that write lists, in order;
//     Results                  the stage that writes results.
//
// A stage makes a register of values by run(strip, x), at the values from x on of a row. It is run
// along a row, and `reach` values further on as later stages read its list.

// Loops run full registers. The first and the last one of a row of `width` values, a register or
// more, begin where they fit, and so have values of their neighbours again.
template <class Key>
NSC_STEP int64_t register_at(int64_t x, int64_t width) {
    return x < 0 ? 0 : x + lanes<Key> <= width ? x : width - lanes<Key>;
}

template <class Stage, class Strip>
NSC_NOINLINE void make_list(const Strip &strip, int64_t width) {
    using Key = typename Strip::Key;
    const int64_t reached = width + Stage::reach;
    for (int64_t x = 0; x < reached; x += lanes<Key>)
        Stage::run(strip, register_at<Key>(x, reached));
}

// Stages that write lists.
template <class... Stages>
struct Lists {
    // Makes the lists that `width` results of each row need.
    template <class Strip>
    NSC_STEP static void make([[maybe_unused]] const Strip &strip, [[maybe_unused]] int64_t width) {
        (make_list<Stages>(strip, width), ...);
    }
};

}  // namespace nsc
