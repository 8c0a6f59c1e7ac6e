// median_3x3: the median of 3x3 pixels around each pixel, of numbers of any type.
//
// Made by: nsc filter 3x3 --rank 4
// nsc:     0
// Network: 9 wires, 21 comparators, 9 layers, sha256 863e584651a0480c38eaf396902b599edb79ab2546958d511582ae189c1dd62f
// Proof:   rank-4 on wires 8 of every input, by exhaustion: untangled to standard form; all 2^9 0-1 inputs come out right
// Work:    18.5 minima and maxima for a pixel, as neighbouring windows share what they have in common
//
// A lane of a register is a value of a row: a pixel, or one of the channels that it has side by side. Values become keys, whole numbers in their order; a comparator is a
// minimum and a maximum. -0 is less than 0, and NaN is more than all numbers.
//
// The library is built for the type NSC_ELEMENT, one of those below, and for NSC_CHANNELS values of a pixel.

#include <nsc/elements.h>
#include <nsc/threads.h>

#if !defined(NSC_CHANNELS)
#define NSC_CHANNELS 1
#endif

namespace {

using namespace nsc;

// The window, and the values of a pixel, which are filtered each for itself.
constexpr int64_t window_planes = 1, window_rows = 3, window_columns = 3;
constexpr int64_t channels = NSC_CHANNELS;
// Rows of results that a step makes, rows of a plane that it reads, and rows that the lists of its stages need.
constexpr int64_t step = 8, step_rows = window_rows + step - 1, list_rows = 0;
// Minima and maxima for a pixel.
constexpr int64_t operations = 18;

// What the pixels outside of an image are.
enum Mode {
    reflect = 0,
    nearest = 1,
    mirror = 2,
    constant = 3,
    wrap = 4,
};

[filter/strips.cpp]

[filter/borders.cpp]

// --------------------------------------------------------------------------------------- stages

// A loop runs its stages at each place of a strip, and as many further on as those behind it read.
// 8 rows of results, by 148 minima and maxima.
template <class Element>
NSC_APART void run_step(const Strip<typename Element::Key> &s, int64_t places) {
    using Key = typename Element::Key;
    using Item = Vec<Key>;
    const auto c = [](Item &lo, Item &hi) NSC_INLINE { order<Key>(lo, hi); };
    for (int64_t place = s.first_place(); place < places; place += lanes<Key>) {
        const int64_t x = register_at<Key>(place, places);
        s.fetch_next(x);
        Item w0 = s.pixel(1, x), w2 = s.pixel(1, x + 2 * channels); c(w0, w2); Item w1 = s.pixel(1, x + 1 * channels);
        c(w0, w1); c(w1, w2); Item w3 = s.pixel(2, x), w5 = s.pixel(2, x + 2 * channels); c(w3, w5);
        Item w4 = s.pixel(2, x + 1 * channels); c(w3, w4); c(w4, w5); Item w9 = w3, w6 = w0; c(w9, w6);
        Item w10 = w4, w7 = w1; c(w10, w7); Item w11 = w5, w8 = w2; c(w11, w8); c(w11, w6); c(w6, w7); c(w11, w10);
        Item w12 = s.pixel(0, x), w14 = s.pixel(0, x + 2 * channels); c(w12, w14);
        Item w13 = s.pixel(0, x + 1 * channels); c(w12, w13); c(w13, w14); Item w21 = w14, w15 = w11; c(w21, w15);
        Item w20 = w13, w16 = w10; c(w20, w16); Item w19 = w12, w17 = w6; c(w19, w17); c(w15, w17); Item w18 = w7;
        c(w16, w18); c(w15, w16); s.template give<Element>(0, x, w15);
        Item w22 = s.pixel(3, x), w24 = s.pixel(3, x + 2 * channels); c(w22, w24);
        Item w23 = s.pixel(3, x + 1 * channels); c(w22, w23); c(w23, w24); Item w31 = w24, w25 = w11; c(w31, w25);
        Item w30 = w23, w26 = w10; c(w30, w26); Item w29 = w22, w27 = w6; c(w29, w27); c(w25, w27); Item w28 = w7;
        c(w26, w28); c(w25, w26); s.template give<Element>(1, x, w25);
        Item w32 = s.pixel(4, x), w34 = s.pixel(4, x + 2 * channels); c(w32, w34);
        Item w33 = s.pixel(4, x + 1 * channels); c(w32, w33); c(w33, w34); Item w38 = w32, w35 = w22; c(w38, w35);
        Item w39 = w33, w36 = w23; c(w39, w36); Item w40 = w34, w37 = w24; c(w40, w37); c(w40, w35); c(w35, w36);
        c(w40, w39); Item w47 = w5, w41 = w40; c(w47, w41); Item w46 = w4, w42 = w39; c(w46, w42);
        Item w45 = w3, w43 = w35; c(w45, w43); c(w41, w43); Item w44 = w36; c(w42, w44); c(w41, w42);
        s.template give<Element>(2, x, w41); Item w48 = s.pixel(5, x), w50 = s.pixel(5, x + 2 * channels); c(w48, w50);
        Item w49 = s.pixel(5, x + 1 * channels); c(w48, w49); c(w49, w50); Item w57 = w50, w51 = w40; c(w57, w51);
        Item w56 = w49, w52 = w39; c(w56, w52); Item w55 = w48, w53 = w35; c(w55, w53); c(w51, w53); Item w54 = w36;
        c(w52, w54); c(w51, w52); s.template give<Element>(3, x, w51);
        Item w58 = s.pixel(6, x), w60 = s.pixel(6, x + 2 * channels); c(w58, w60);
        Item w59 = s.pixel(6, x + 1 * channels); c(w58, w59); c(w59, w60); Item w64 = w58, w61 = w48; c(w64, w61);
        Item w65 = w59, w62 = w49; c(w65, w62); Item w66 = w60, w63 = w50; c(w66, w63); c(w66, w61); c(w61, w62);
        c(w66, w65); Item w73 = w34, w67 = w66; c(w73, w67); Item w72 = w33, w68 = w65; c(w72, w68);
        Item w71 = w32, w69 = w61; c(w71, w69); c(w67, w69); Item w70 = w62; c(w68, w70); c(w67, w68);
        s.template give<Element>(4, x, w67); Item w74 = s.pixel(7, x), w76 = s.pixel(7, x + 2 * channels); c(w74, w76);
        Item w75 = s.pixel(7, x + 1 * channels); c(w74, w75); c(w75, w76); Item w83 = w76, w77 = w66; c(w83, w77);
        Item w82 = w75, w78 = w65; c(w82, w78); Item w81 = w74, w79 = w61; c(w81, w79); c(w77, w79); Item w80 = w62;
        c(w78, w80); c(w77, w78); s.template give<Element>(5, x, w77);
        Item w84 = s.pixel(8, x), w86 = s.pixel(8, x + 2 * channels); c(w84, w86);
        Item w85 = s.pixel(8, x + 1 * channels); c(w84, w85); c(w85, w86); Item w90 = w84, w87 = w74; c(w90, w87);
        Item w91 = w85, w88 = w75; c(w91, w88); Item w92 = w86, w89 = w76; c(w92, w89); c(w92, w87); c(w87, w88);
        c(w92, w91); Item w99 = w60, w93 = w92; c(w99, w93); Item w98 = w59, w94 = w91; c(w98, w94);
        Item w97 = w58, w95 = w87; c(w97, w95); c(w93, w95); Item w96 = w88; c(w94, w96); c(w93, w94);
        s.template give<Element>(6, x, w93); Item w100 = s.pixel(9, x), w102 = s.pixel(9, x + 2 * channels);
        c(w100, w102); Item w101 = s.pixel(9, x + 1 * channels); c(w100, w101); c(w101, w102);
        Item w109 = w102, w103 = w92; c(w109, w103); Item w108 = w101, w104 = w91; c(w108, w104);
        Item w107 = w100, w105 = w87; c(w107, w105); c(w103, w105); Item w106 = w88; c(w104, w106); c(w103, w104);
        s.template give<Element>(7, x, w103);
    }
}

[filter/call.cpp]

}  // namespace

// ------------------------------------------------------------------------------------ the C ABI

#define NSC_API extern "C" __attribute__((visibility("default")))

// What this kernel is. The runtime compares it with what it asked for.
NSC_API const char *nsc_facts() { return "{\"abi\": 9, \"kind\": \"filter\", \"name\": \"median_3x3\", \"library\": \"[library]\", \"network\": \"863e584651a0480c38eaf396902b599edb79ab2546958d511582ae189c1dd62f\", \"proof\": \"proved\", \"window\": [1, 3, 3], \"rank\": 4, \"output\": 8, \"network.json\": \"6d0084096531fc7d7229f46ddd3a97296dd347bcb524f14e27746ec62a16c0cb\", \"proof.json\": \"aef2edca031249c3a41f19fbd5886b0d3f96a15f1b635a581c39ed5a6de63332\"}"; }

// Filters images. lengths: how many, their planes, rows and columns; strides: from one to the next of the first three, in
// values; the pixels of a row lie side by side, results without gaps. before: how many planes, rows and columns a window
// begins before its pixel. outside: the value of pixels outside, if the mode is constant. part, parts: of the work, which
// part, from 0 on, and of how many; they may run at the same time.
NSC_API int32_t nsc_filter(const void *x, const int64_t *lengths, const int64_t *strides, const int64_t *before,
                                  void *values, int32_t mode, const void *outside, void *pool, int64_t part, int64_t parts) {
    using Key = NSC_ELEMENT::Key;
    Images<Key> images = {static_cast<const Key *>(x), {}, {}, {}, static_cast<Mode>(mode), Key{}, part, parts};
    memcpy(images.lengths, lengths, sizeof images.lengths);
    memcpy(images.strides, strides, sizeof images.strides);
    memcpy(images.before, before, sizeof images.before);
    images.lengths[3] *= channels;
    images.before[2] *= channels;
    if (mode == constant) memcpy(&images.outside, outside, sizeof(Key));
    return filter_all<NSC_ELEMENT>(images, static_cast<Key *>(values), reinterpret_cast<ParallelFor>(pool));
}
