// Tests of the headers of nsc/windows/, one function each.

#include <nsc/exact/values.h>
#include <nsc/windows/kernel.h>
#include <nsc/windows/modes.h>
#include <nsc/windows/rims.h>
#include <nsc/windows/strips.h>
#include <nsc/windows/window.h>
#include <stdio.h>

#include <initializer_list>

namespace {

using namespace nsc;

bool failed = false;

#define CHECK(condition) \
    if (!(condition)) failed = true, fprintf(stderr, "line %d: %s\n", __LINE__, #condition)

// The median of 2 rows and 3 columns, rank 2, of pixels of two channels: columns are ordered to
// lists, and three lists read.
struct Window {
    static constexpr int64_t planes = 1, rows = 2, columns = 3, channels = 2;
    static constexpr int64_t rows_per_step = 1, list_rows = 2, operations = 12;
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

void test_modes() {
    // Around the four pixels 0 1 2 3, from position -5 on; the constant is -1.
    const struct {
        Mode mode;
        int64_t indices[14];
    } rows[] = {
        {reflect, {3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0}},
        {mirror, {1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2}},
        {nearest, {0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3}},
        {wrap, {3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0}},
        {constant, {-1, -1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1, -1}},
    };
    for (const auto &row : rows) {
        for (int64_t k = 0; k < 14; ++k) {
            CHECK(index_at(k - 5, 4, row.mode) == row.indices[k]);
            for (int64_t channel = 0; channel < 3; ++channel)
                CHECK(value_index_at(3 * (k - 5) + channel, 12, 3, row.mode) ==
                      (row.indices[k] < 0 ? -1 : 3 * row.indices[k] + channel));
        }
        CHECK(index_at(7, 1, row.mode) == (row.mode == constant ? -1 : 0));
    }
    CHECK(modulo(-1, 5) == 4 && modulo(5, 5) == 0);
}

// A stage that says where it ran.
struct Ran {
    static constexpr int64_t reach = 3;
    template <class Strip>
    static void run(const Strip &s, int64_t x) {
        for (int64_t k = 0; k < lanes<typename Strip::Key>; ++k) ++s.times[x + k];
    }
};

struct Times {
    using Key = int16_t;
    int *times;
};

void test_window() {
    constexpr int64_t width = 3 * lanes<int16_t> + 1;
    int times[width + Ran::reach + 1] = {};
    Lists<Ran, Ran>::make(Times{times}, width);
    for (int64_t x = 0; x < width + Ran::reach; ++x) CHECK(times[x] == 2 || times[x] == 4);
    CHECK(times[0] == 2 && times[width + Ran::reach] == 0);
    CHECK(register_at<int16_t>(-3, width) == 0);
    CHECK(register_at<int16_t>(1, width) == 1);
    CHECK(register_at<int16_t>(width - 1, width) == width - lanes<int16_t>);
}

template <class Element>
void test_strips_of() {
    using Key = typename Element::Key;
    using Sizes = StripSizes<Window, Key>;
    CHECK(Sizes::step_rows == 2 && Sizes::all_rows == 4 && Sizes::around == 4);
    CHECK(Sizes::pitch * int64_t(sizeof(Key)) % 128 == 64);
    CHECK(Sizes::all_rows * Sizes::pitch * int64_t(sizeof(Key)) <= 48 << 10);
    CHECK(Sizes::most_width % lanes<Key> == 0 && Sizes::most_width + Sizes::around <= Sizes::pitch);
    constexpr int64_t width = lanes<Key> + 3;
    Key rows[2][width + Sizes::around], results[width] = {};
    static Key lists[2 * Sizes::pitch];
    for (int64_t x = 0; x < width + Sizes::around; ++x)
        rows[0][x] = Key(x * 5 % 11), rows[1][x] = Key(x * 7 % 13);
    const Strip<Window, Values<Element>> strip = {{rows[0], rows[1]}, lists, {results}, {rows[0]}};
    run_step(strip, width);
    for (int64_t x = 0; x < width; ++x) {
        int less = 0, equal = 0;
        for (int k = 0; k < 6; ++k) {
            const Key value = rows[k % 2][x + k / 2 * Window::channels];
            less += value < results[x], equal += value == results[x];
        }
        CHECK(less <= 2 && less + equal > 2);
    }
}

void test_strips() {
    test_strips_of<uint8>();
    test_strips_of<int32>();
    test_strips_of<uint64>();
}

void test_rims() {
    using Key = int32_t;
    using Element = float32;
    constexpr int64_t around = 4, before = 2, length = lanes<Key> + around + 6;
    const Rim<Window, Key> rim(length, before, nearest);
    CHECK(!rim.is_all(length) && rim.is_all(lanes<Key> + around - 1));
    CHECK(rim.edges[0].in_row == 0 && rim.edges[0].in_rim == 0 && rim.edges[0].count == before);
    CHECK(rim.edges[1].in_row == length - 2 && rim.edges[1].count == 2);
    CHECK(rim.edges[1].in_rim == before + around && rim.count == 2 * (2 + around));
    CHECK(rim.width() >= lanes<Key> && rim.width() >= rim.count - around);
    const int64_t left[] = {0, 1, 0, 1, 2, 3}, right[] = {-4, -3, -2, -1, -2, -1};
    for (int k = 0; k < 6; ++k) {
        CHECK(rim.values[k] == left[k]);
        CHECK(rim.values[6 + k] == length + right[k]);
    }
    Key row[length], keys[length + 2 * lanes<Key>];
    for (int64_t x = 0; x < length; ++x) row[x] = Key(0x80000000 | x);  // minus something
    enter_row<Element>(static_cast<const Key *>(row), Key(0), length, keys);
    for (int64_t x = 0; x < length; ++x) CHECK(keys[x] == Element::key(all(row[x]), Vec<Key>{})[0]);
    enter_rim<Element>(rim, static_cast<const Key *>(row), Key(0), keys);
    for (int64_t x = 0; x < rim.count; ++x)
        CHECK(keys[x] == Element::key(all(row[rim.values[x]]), Vec<Key>{})[0]);
    enter_row<Element>(static_cast<const Key *>(nullptr), Key(3), length, keys);
    CHECK(keys[0] == 3 && keys[length - 1] == 3);
}

}  // namespace

NSC_FILTER(Window, nsc::int16)

namespace {

// Images of some sizes, each pixel against its window's own rank, of all the work and of parts.
void test_kernel() {
    for (const int64_t columns : {int64_t(1), int64_t(7), 3 * lanes<int16_t>}) {
        for (const Mode mode : {reflect, nearest, mirror, constant, wrap}) {
            constexpr int64_t images = 2, rows = 5;
            const int64_t length = columns * Window::channels, count = images * rows * length;
            static int16_t x[images * rows * 6 * lanes<int16_t> + 14 * rows], results[sizeof x / 2];
            for (int64_t i = 0; i < count; ++i) x[i] = int16_t(i * 37 % 101 - 50), results[i] = 999;
            const int64_t lengths[] = {images, 1, rows, columns},
                          strides[] = {rows * length, rows * length, length}, before[] = {0, 1, 1};
            const int16_t outside = 17;
            for (int64_t part = 0; part < 3; ++part)
                CHECK(nsc_filter(x, lengths, strides, before, results, mode, &outside, nullptr, part, 3) ==
                      ok);
            for (int64_t i = 0; i < count; ++i) {
                const int64_t image = i / (rows * length), row = i / length % rows, at = i % length;
                int less = 0, equal = 0;
                for (int k = 0; k < 6; ++k) {
                    const int64_t r = index_at(row - 1 + k / 3, rows, mode);
                    const int64_t v = value_index_at(at + (k % 3 - 1) * Window::channels, length,
                                                     Window::channels, mode);
                    const int16_t value =
                        r < 0 || v < 0 ? outside : x[(image * rows + r) * length + v];
                    less += value < results[i], equal += value == results[i];
                }
                CHECK(less <= 2 && less + equal > 2);
            }
        }
    }
}

}  // namespace

int main() {
    test_modes();
    test_window();
    test_strips();
    test_rims();
    test_kernel();
    return failed;
}
