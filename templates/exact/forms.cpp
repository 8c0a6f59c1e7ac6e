// --------------------------------------------------------------------------------------- forms

// A form says what is sorted: items, of which a register of values makes `halves`. enter() makes
// the items of a wire, leave() turns them to bits of values again, and to places; order() is a
// comparator. Networks of more than `most_straight` comparators run from a table.

// Values alone.
template <class Element>
struct Values {
    using Key = typename Element::Key;
    using Place = Key;
    using Item = Vec<Key>;
    static constexpr int halves = 1;
    static constexpr bool has_places = false;
    static constexpr int64_t most_straight = INT64_MAX;
    NSC_STEP static void enter(Vec<Key> bits, int64_t, Vec<Key> descending, Item *items,
                               Vec<Key> *) {
        items[0] = Element::key(bits, descending);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Vec<Key> descending, Vec<Place> *) {
        return Element::bits(items[0], descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        a = x < y ? x : y, b = x < y ? y : x;
    }
};

// Whole numbers of `bytes` without a sign, and twice as wide with one.
template <int bytes>
struct Wholes;
template <>
struct Wholes<1> {
    using Place = uint8_t;
    using Word = int16_t;
};
template <>
struct Wholes<2> {
    using Place = uint16_t;
    using Word = int32_t;
};
template <>
struct Wholes<4> {
    using Place = uint32_t;
    using Word = int64_t;
};
template <>
struct Wholes<8> {
    using Place = uint64_t;
};

// A word has the key in its higher half and the place in its lower one: equal keys are ordered by
// their places.
template <class Element, int bytes = int(sizeof(typename Element::Key))>
struct Pairs {
    using Key = typename Element::Key;
    using Place = typename Wholes<bytes>::Place;
    using Item = Vec<typename Wholes<bytes>::Word>;
    static constexpr int halves = 2;
    static constexpr bool has_places = true;
    static constexpr int64_t most_straight = INT64_MAX;
    NSC_STEP static void enter(Vec<Key> bits, int64_t place, Vec<Key> descending, Item *items,
                               Vec<Key> *lost) {
        const Vec<Key> key = as_signed<Key>(Element::key_of_place(bits, descending, lost)),
                       places = all<Key>(Key(place));
        items[0] = (Item)zip_lower<Key>(places, key), items[1] = (Item)zip_higher<Key>(places, key);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Vec<Key> descending, Vec<Place> *places) {
        const Vec<Key> first = (Vec<Key>)items[0], second = (Vec<Key>)items[1];
        *places = (Vec<Place>)unzip_firsts<Key>(first, second);
        return Element::bits(as_signed<Key>(unzip_seconds<Key>(first, second)), descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        a = x < y ? x : y, b = x < y ? y : x;
    }
};

#if !defined(__AVX512F__)
// Without a minimum of 64-bit numbers a word is a double in [1, 2): the key in the higher bits of
// its fraction, the place below.
template <class Element>
struct Pairs<Element, 4> {
    using Key = typename Element::Key;
    using Place = uint32_t;
    using Item = Vec<double>;
    using Bits = Vec<uint64_t>;
    static constexpr int halves = 2;
    static constexpr bool has_places = true;
    static constexpr int64_t most_straight = INT64_MAX;
    static constexpr int fraction = 52, place_bits = fraction - 32;
    static_assert(wires <= 1 << place_bits, "too many places");
    NSC_STEP static void enter(Vec<Key> bits, int64_t place, Vec<Key> descending, Item *items,
                               Vec<Key> *lost) {
        const Vec<Key> key =
            as_signed<Key>(Element::key_of_place(bits, descending, lost)) ^ Key(uint32_t(1) << 31);
        const Bits rest = all<uint64_t>(uint64_t(0x3ff) << fraction | uint64_t(place));
        items[0] = (Item)((Bits)zip_lower<Key>(Vec<Key>{}, key) >> (64 - fraction) | rest);
        items[1] = (Item)((Bits)zip_higher<Key>(Vec<Key>{}, key) >> (64 - fraction) | rest);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Vec<Key> descending, Vec<Place> *places) {
        const Bits first = (Bits)items[0], second = (Bits)items[1];
        *places = unzip_firsts<Place>((Vec<Place>)first, (Vec<Place>)second) &
                  Place((1 << place_bits) - 1);
        const Vec<Key> key = unzip_seconds<Key>((Vec<Key>)(first << (64 - fraction)),
                                                (Vec<Key>)(second << (64 - fraction)));
        return Element::bits(as_signed<Key>(key ^ Key(uint32_t(1) << 31)), descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
#if defined(__AVX__) && !defined(__clang__)
        a = __builtin_ia32_minpd256(x, y),
        b = __builtin_ia32_maxpd256(x, y);  // GCC finds them itself, but slowly
#else
        a = x < y ? x : y, b = x > y ? x : y;
#endif
    }
};
#endif

// Key and place in a register each.
template <class Element>
struct Pairs<Element, 8> {
    using Key = typename Element::Key;
    using Place = uint64_t;
    struct Item {
        Vec<Key> key;
        Vec<Place> place;
    };
    static constexpr int halves = 1;
    static constexpr bool has_places = true;
    static constexpr int64_t most_straight =
        100;  // beyond, GCC's code is slower, and takes it long
    NSC_STEP static void enter(Vec<Key> bits, int64_t place, Vec<Key> descending, Item *items,
                               Vec<Key> *lost) {
        items[0] = {Element::key_of_place(bits, descending, lost), all<Place>(Place(place))};
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Vec<Key> descending, Vec<Place> *places) {
        *places = items[0].place;
        return Element::bits(items[0].key, descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        const Vec<int64_t> swap =
            (y.key < x.key) | ((y.key == x.key) & (Vec<int64_t>)(y.place < x.place));
        a = {swap ? y.key : x.key, swap ? y.place : x.place};
        b = {swap ? x.key : y.key, swap ? x.place : y.place};
    }
};
