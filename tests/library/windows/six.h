// A window of six pixels, for the tests of filters.
#pragma once

#include <nsc/attributes.h>
#include <nsc/windows/window.h>

// The median of 2 rows and 3 columns, rank 2, of pixels of two channels: columns are ordered to
// lists, and three lists read.
struct Window {
    static constexpr int64_t planes = 1, rows = 2, columns = 3, channels = 2;
    static constexpr int64_t rows_per_step = 1, list_rows = 2, operations = 12;
    static constexpr bool may_miss = false;
    struct Columns {
        static constexpr int64_t reach = 2 * channels;
        template <class Strip>
        NSC_STEP static void run(const Strip &s, int64_t x) {
            typename Strip::Item w0 = s.pixel(0, x), w1 = s.pixel(1, x);
            Strip::Form::order(w0, w1);
            s.keep(0, x, w0), s.keep(1, x, w1);
        }
    };
    using Lists = nsc::Lists<Columns>;
    struct Results {
        template <class Strip>
        NSC_STEP static void run(const Strip &s, int64_t x) {
            typename Strip::Item w[6];
            for (int k = 0; k < 6; ++k) w[k] = s.list(k % 2, x + k / 2 * channels);
            for (int i = 0; i < 6; ++i)
                for (int k = 0; k < 5; ++k) Strip::Form::order(w[k], w[k + 1]);
            s.give(0, x, w[2]);
        }
    };
};
