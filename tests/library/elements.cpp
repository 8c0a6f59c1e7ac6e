// Elements: keys are whole numbers in the order of the values, and values come back from them.
#include "expect.h"

#include <nsc/elements.h>

using namespace nsc;

template <class Element>
using KeyOf = typename Element::Key;

template <class Element>
static Vec<KeyOf<Element>> direction(bool descending) {
    return all(descending ? KeyOf<Element>(-1) : KeyOf<Element>(0));
}

template <class Element>
static KeyOf<Element> key_of(KeyOf<Element> bits, bool descending) {
    return Element::key(all(bits), direction<Element>(descending))[0];
}

template <class Element>
static KeyOf<Element> bits_of_key(KeyOf<Element> key, bool descending) {
    return Element::bits(all(key), direction<Element>(descending))[0];
}

template <class Element>
static KeyOf<Element> key_with_index(KeyOf<Element> bits, bool descending, bool *is_lost) {
    Vec<KeyOf<Element>> lost = {};
    const KeyOf<Element> key =
        Element::key_with_index(all(bits), direction<Element>(descending), &lost)[0];
    *is_lost = lost[0] != 0;
    return key;
}

template <class Element>
static bool is_shared(KeyOf<Element> key, bool descending) {
    return Element::is_shared(all(key), direction<Element>(descending))[0] != 0;
}

// Bits of values in ascending order have keys in this order, or in the other one, and come back.
template <class Element, int count>
static void expect_order(const KeyOf<Element> (&bits)[count]) {
    for (bool descending : {false, true})
        for (int i = 0; i < count; ++i) {
            const KeyOf<Element> key = key_of<Element>(bits[i], descending);
            EXPECT(bits_of_key<Element>(key, descending) == bits[i]);
            if (i == 0) continue;
            const KeyOf<Element> before = key_of<Element>(bits[i - 1], descending);
            EXPECT(descending ? key < before : before < key);
        }
}

TEST(keys_of_integers_are_in_their_order) {
    expect_order<int8>({-128, -1, 0, 1, 127});
    expect_order<int16>({-32768, -1, 0, 1, 32767});
    expect_order<int32>({INT32_MIN, -1, 0, 1, INT32_MAX});
    expect_order<int64>({INT64_MIN, -1, 0, 1, INT64_MAX});
    expect_order<uint8>({0, 1, 127, 128, 255});
    expect_order<uint16>({0, 1, 32767, 32768, 65535});
    expect_order<uint32>({0, 1, INT32_MAX, uint32_t(1) << 31, UINT32_MAX});
    expect_order<uint64>({0, 1, INT64_MAX, uint64_t(1) << 63, UINT64_MAX});
    EXPECT(int32::key_is_value && key_of<int32>(-5, false) == -5);
}

TEST(places_of_integers_have_the_same_keys_and_lose_nothing) {
    for (bool descending : {false, true})
        for (int value : {-7, 0, 9}) {
            bool is_lost = true;
            const int32_t key = key_with_index<int32>(value, descending, &is_lost);
            EXPECT(key == key_of<int32>(value, descending) && !is_lost);
            EXPECT(!is_shared<int32>(key, descending));
        }
}

// The special values of a type, by the bits of infinity: those of 0 and of NaN follow.
template <class Element>
static void expect_total_order(KeyOf<Element> infinity, KeyOf<Element> one) {
    using Key = KeyOf<Element>;
    const Key sign = Key(Key(1) << (8 * sizeof(Key) - 1)), tiny = 1, nan = Key(infinity + 3);
    expect_order<Element>({Key(infinity | sign), Key((infinity - 1) | sign), Key(one | sign),
                           Key(tiny | sign), sign, 0, tiny, one, Key(infinity - 1), infinity, nan});
    EXPECT(!Element::key_is_value);
    for (bool descending : {false, true}) {
        // NaN of both signs are one value.
        EXPECT(key_of<Element>(Key(nan | sign), descending) == key_of<Element>(nan, descending));
        // Keys for sorting with places are equal where values are, and say which bits they lose.
        bool lost_minus, lost_zero, lost_nan, lost_other, lost_one;
        const Key minus = key_with_index<Element>(sign, descending, &lost_minus),
                  zero = key_with_index<Element>(0, descending, &lost_zero),
                  of_nan = key_with_index<Element>(nan, descending, &lost_nan),
                  other = key_with_index<Element>(Key((nan + 1) | sign), descending, &lost_other),
                  of_one = key_with_index<Element>(one, descending, &lost_one);
        EXPECT(minus == zero && lost_minus && !lost_zero);
        EXPECT(of_nan == other && lost_nan && lost_other);
        EXPECT(of_one == key_of<Element>(one, descending) && !lost_one);
        EXPECT(is_shared<Element>(zero, descending) && is_shared<Element>(of_nan, descending));
        EXPECT(!is_shared<Element>(of_one, descending));
        const Key largest = key_of<Element>(infinity, descending);
        EXPECT(descending ? of_nan < largest : largest < of_nan);
    }
    // Where NaN comes last in a descending order, all else is as where it comes first.
    const Order<Key> nan_last(all(Key(-1)), true);
    Vec<Key> lost = {};
    const Vec<Key> of_nan = Element::key_with_index(all(Key(nan | sign)), nan_last, &lost);
    const Key least = key_of<Element>(Key(infinity | sign), true);
    EXPECT(of_nan[0] > least && Element::key(all(nan), nan_last)[0] > least);
    EXPECT(lost[0] && Element::is_shared(of_nan, nan_last)[0]);
    EXPECT(least == Element::key(all(Key(infinity | sign)), nan_last)[0]);
    EXPECT(Element::key_with_index(all(sign), nan_last, &lost)[0] == key_of<Element>(0, true));
}

TEST(keys_of_floats_are_in_total_order) {
    expect_total_order<float64>(0x7ff0000000000000, 0x3ff0000000000000);
    expect_total_order<float32>(0x7f800000, 0x3f800000);
    expect_total_order<bfloat16>(0x7f80, 0x3f80);
    expect_total_order<float16>(0x7c00, 0x3c00);
}

TEST(keys_of_floats_follow_their_values) {
    const float values[] = {-3.5f, -1e-40f, 2, 1e30f};
    for (int i = 1; i < 4; ++i) {
        int32_t before, here;
        memcpy(&before, &values[i - 1], 4), memcpy(&here, &values[i], 4);
        EXPECT(key_of<float32>(before, false) < key_of<float32>(here, false));
    }
}

TEST(keys_without_a_sign_are_ordered_as_signed_ones) {
    const uint16_t values[] = {0, 1, 32767, 32768, 65535};
    int16_t before = INT16_MIN;
    for (uint16_t value : values) {
        const Vec<uint16_t> changed = as_signed<uint16_t>(all(value));
        const int16_t here = int16_t(changed[0]);
        EXPECT(value == 0 ? here == INT16_MIN : before < here);
        EXPECT(as_signed<uint16_t>(changed)[0] == value);
        before = here;
    }
    EXPECT(as_signed<int16_t>(all(int16_t(-3)))[0] == -3);
}
