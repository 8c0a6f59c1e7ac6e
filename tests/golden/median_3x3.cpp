// median_3x3: the median of 3x3 pixels around each pixel, of numbers of any type.
//
// Made by: nsc filter 3x3 --rank 4
// nsc:     0
// Network: 9 wires, 21 comparators, 9 layers, sha256 863e584651a0480c38eaf396902b599edb79ab2546958d511582ae189c1dd62f
// Proof:   rank-4 on wires 8 of every input, by exhaustion: untangled to standard form; all 2^9 0-1 inputs come out right
// Work:    18.5 minima and maxima for a pixel, as neighbouring windows share what they have in common
//
// This is the window. What runs it, and is the same for all, is nsc's library of headers. The filter is built for the
// type NSC_ELEMENT, one of those of nsc/elements.h, and for NSC_CHANNELS values of a pixel. With NSC_MISSING values may
// be missing.

#include <nsc/windows/kernel.h>

#if !defined(NSC_CHANNELS)
#define NSC_CHANNELS 1
#endif
#if !defined(NSC_MISSING)
#define NSC_MISSING 0
#endif

namespace {

// See nsc/windows/window.h.
struct Window {
    static constexpr int64_t planes = 1, rows = 3, columns = 3, channels = NSC_CHANNELS;
    static constexpr int64_t rows_per_step = 8, list_rows = 0, operations = 18;
    static constexpr bool may_miss = NSC_MISSING;
    [[maybe_unused]] static constexpr int64_t ranks[] = {4};
    [[maybe_unused]] static constexpr nsc::Place places[] = {
        {0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {0, 2, 0}, {0, 2, 1},
        {0, 2, 2},
    };

    using Lists = nsc::Lists<>;

    // 8 rows of results, by 148 minima and maxima.
    struct Results {
        template <class Strip>
        NSC_STEP static void run(const Strip &s, int64_t x) {
            using Form = typename Strip::Form;
            using Item = typename Form::Item;
            Item w0 = s.pixel(1, x), w2 = s.pixel(1, x + 2 * channels); Form::order(w0, w2);
            Item w1 = s.pixel(1, x + 1 * channels); Form::order(w0, w1); Form::order(w1, w2);
            Item w3 = s.pixel(2, x), w5 = s.pixel(2, x + 2 * channels); Form::order(w3, w5);
            Item w4 = s.pixel(2, x + 1 * channels); Form::order(w3, w4); Form::order(w4, w5); Item w9 = w3, w6 = w0;
            Form::order(w9, w6); Item w10 = w4, w7 = w1; Form::order(w10, w7); Item w11 = w5, w8 = w2;
            Form::order(w11, w8); Form::order(w11, w6); Form::order(w6, w7); Form::order(w11, w10);
            Item w12 = s.pixel(0, x), w14 = s.pixel(0, x + 2 * channels); Form::order(w12, w14);
            Item w13 = s.pixel(0, x + 1 * channels); Form::order(w12, w13); Form::order(w13, w14);
            Item w21 = w14, w15 = w11; Form::order(w21, w15); Item w20 = w13, w16 = w10; Form::order(w20, w16);
            Item w19 = w12, w17 = w6; Form::order(w19, w17); Form::order(w15, w17); Item w18 = w7; Form::order(w16, w18);
            Form::order(w15, w16); s.give(0, x, w15); Item w22 = s.pixel(3, x), w24 = s.pixel(3, x + 2 * channels);
            Form::order(w22, w24); Item w23 = s.pixel(3, x + 1 * channels); Form::order(w22, w23); Form::order(w23, w24);
            Item w31 = w24, w25 = w11; Form::order(w31, w25); Item w30 = w23, w26 = w10; Form::order(w30, w26);
            Item w29 = w22, w27 = w6; Form::order(w29, w27); Form::order(w25, w27); Item w28 = w7; Form::order(w26, w28);
            Form::order(w25, w26); s.give(1, x, w25); Item w32 = s.pixel(4, x), w34 = s.pixel(4, x + 2 * channels);
            Form::order(w32, w34); Item w33 = s.pixel(4, x + 1 * channels); Form::order(w32, w33); Form::order(w33, w34);
            Item w38 = w32, w35 = w22; Form::order(w38, w35); Item w39 = w33, w36 = w23; Form::order(w39, w36);
            Item w40 = w34, w37 = w24; Form::order(w40, w37); Form::order(w40, w35); Form::order(w35, w36);
            Form::order(w40, w39); Item w47 = w5, w41 = w40; Form::order(w47, w41); Item w46 = w4, w42 = w39;
            Form::order(w46, w42); Item w45 = w3, w43 = w35; Form::order(w45, w43); Form::order(w41, w43); Item w44 = w36;
            Form::order(w42, w44); Form::order(w41, w42); s.give(2, x, w41);
            Item w48 = s.pixel(5, x), w50 = s.pixel(5, x + 2 * channels); Form::order(w48, w50);
            Item w49 = s.pixel(5, x + 1 * channels); Form::order(w48, w49); Form::order(w49, w50);
            Item w57 = w50, w51 = w40; Form::order(w57, w51); Item w56 = w49, w52 = w39; Form::order(w56, w52);
            Item w55 = w48, w53 = w35; Form::order(w55, w53); Form::order(w51, w53); Item w54 = w36; Form::order(w52, w54);
            Form::order(w51, w52); s.give(3, x, w51); Item w58 = s.pixel(6, x), w60 = s.pixel(6, x + 2 * channels);
            Form::order(w58, w60); Item w59 = s.pixel(6, x + 1 * channels); Form::order(w58, w59); Form::order(w59, w60);
            Item w64 = w58, w61 = w48; Form::order(w64, w61); Item w65 = w59, w62 = w49; Form::order(w65, w62);
            Item w66 = w60, w63 = w50; Form::order(w66, w63); Form::order(w66, w61); Form::order(w61, w62);
            Form::order(w66, w65); Item w73 = w34, w67 = w66; Form::order(w73, w67); Item w72 = w33, w68 = w65;
            Form::order(w72, w68); Item w71 = w32, w69 = w61; Form::order(w71, w69); Form::order(w67, w69); Item w70 = w62;
            Form::order(w68, w70); Form::order(w67, w68); s.give(4, x, w67);
            Item w74 = s.pixel(7, x), w76 = s.pixel(7, x + 2 * channels); Form::order(w74, w76);
            Item w75 = s.pixel(7, x + 1 * channels); Form::order(w74, w75); Form::order(w75, w76);
            Item w83 = w76, w77 = w66; Form::order(w83, w77); Item w82 = w75, w78 = w65; Form::order(w82, w78);
            Item w81 = w74, w79 = w61; Form::order(w81, w79); Form::order(w77, w79); Item w80 = w62; Form::order(w78, w80);
            Form::order(w77, w78); s.give(5, x, w77); Item w84 = s.pixel(8, x), w86 = s.pixel(8, x + 2 * channels);
            Form::order(w84, w86); Item w85 = s.pixel(8, x + 1 * channels); Form::order(w84, w85); Form::order(w85, w86);
            Item w90 = w84, w87 = w74; Form::order(w90, w87); Item w91 = w85, w88 = w75; Form::order(w91, w88);
            Item w92 = w86, w89 = w76; Form::order(w92, w89); Form::order(w92, w87); Form::order(w87, w88);
            Form::order(w92, w91); Item w99 = w60, w93 = w92; Form::order(w99, w93); Item w98 = w59, w94 = w91;
            Form::order(w98, w94); Item w97 = w58, w95 = w87; Form::order(w97, w95); Form::order(w93, w95); Item w96 = w88;
            Form::order(w94, w96); Form::order(w93, w94); s.give(6, x, w93);
            Item w100 = s.pixel(9, x), w102 = s.pixel(9, x + 2 * channels); Form::order(w100, w102);
            Item w101 = s.pixel(9, x + 1 * channels); Form::order(w100, w101); Form::order(w101, w102);
            Item w109 = w102, w103 = w92; Form::order(w109, w103); Item w108 = w101, w104 = w91; Form::order(w108, w104);
            Item w107 = w100, w105 = w87; Form::order(w107, w105); Form::order(w103, w105); Item w106 = w88;
            Form::order(w104, w106); Form::order(w103, w104); s.give(7, x, w103);
        }
    };
};

}  // namespace

// What this kernel is. The runtime compares it with the manifest.
NSC_API const char *nsc_facts() { return "{\"abi\": 11, \"kind\": \"filter\", \"name\": \"median_3x3\", \"library\": \"[library]\", \"network\": \"863e584651a0480c38eaf396902b599edb79ab2546958d511582ae189c1dd62f\", \"proof\": \"proved\", \"targets\": [\"cpu\"], \"window\": \"1x3x3:4\", \"outputs\": [8], \"network.json\": \"6d0084096531fc7d7229f46ddd3a97296dd347bcb524f14e27746ec62a16c0cb\", \"proof.json\": \"f679c554f87608d40adc9850fce50aab24ef1730a372694cdc74955752a4ebfd\"}"; }

NSC_FILTER(Window, nsc::NSC_ELEMENT)
