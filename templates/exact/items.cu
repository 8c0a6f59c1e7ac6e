// --------------------------------------------------------------------------------------- items

// A form says what is sorted. enter() makes an item of a value's bits and its place; leave() turns
// it to the bits again, and place() to the place; order() is a comparator.

// Items of less than 32 bits would be made wider for each comparison.
template <class Key, bool is_narrow = (sizeof(Key) < 4)>
struct WideOf {
    using type = Key;
};
template <class Key>
struct WideOf<Key, true> {
    using type = int32_t;
};

template <class Item>
NSC_STEP void order_items(Item &a, Item &b) {
    const bool is_wrong = b < a;
    const Item first = is_wrong ? b : a, second = is_wrong ? a : b;
    a = first, b = second;
}

// Values alone.
template <class Element>
struct Values {
    using Key = typename Element::Key;
    using Item = typename WideOf<Key>::type;
    static constexpr bool has_places = false;
    NSC_STEP static Item enter(Key bits, int32_t, Key descending) {
        return Element::key(bits, descending);
    }
    NSC_STEP static Key leave(Item item, Key descending) {
        return Element::bits(Key(item), descending);
    }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};

// Whole numbers of `bytes` with a sign, and those that hold them and a place.
template <int bytes>
struct Wholes;
template <>
struct Wholes<1> {
    using Signed = int8_t;
    using Word = int32_t;
};
template <>
struct Wholes<2> {
    using Signed = int16_t;
    using Word = int32_t;
};
template <>
struct Wholes<4> {
    using Signed = int32_t;
    using Word = int64_t;
};

// A word has the key in its higher half and the place in its lower one: equal keys are ordered by
// their places.
template <class Element, int bytes = int(sizeof(typename Element::Key))>
struct Pairs {
    using Key = typename Element::Key;
    using Signed = typename Wholes<bytes>::Signed;
    using Item = typename Wholes<bytes>::Word;
    static constexpr bool has_places = true;
    static constexpr Item places = Item(1) << (4 * sizeof(Item));
    NSC_STEP static Item enter(Key bits, int32_t place, Key descending) {
        Key lost = 0;
        return Item(Signed(as_signed<Key>(Element::key_of_place(bits, descending, &lost)))) *
                   places +
               place;
    }
    NSC_STEP static int32_t place(Item item) { return int32_t(item & (places - 1)); }
    NSC_STEP static Key key(Item item) { return as_signed<Key>(Key(item >> (4 * sizeof(Item)))); }
    NSC_STEP static Key leave(Item item, Key descending) {
        return Element::bits(key(item), descending);
    }
    NSC_STEP static bool is_shared(Item item, Key descending) {
        return Element::is_shared(key(item), descending);
    }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};

template <class Element>
struct Pairs<Element, 8> {
    using Key = typename Element::Key;
    struct alignas(16) Item {
        __device__ bool operator<(const Item &other) const {
            return (key < other.key) | ((key == other.key) & (place < other.place));
        }
        Key key;
        int32_t place;
    };
    static constexpr bool has_places = true;
    NSC_STEP static Item enter(Key bits, int32_t place, Key descending) {
        Key lost = 0;
        return {Element::key_of_place(bits, descending, &lost), place};
    }
    NSC_STEP static int32_t place(Item item) { return item.place; }
    NSC_STEP static Key leave(Item item, Key descending) {
        return Element::bits(item.key, descending);
    }
    NSC_STEP static bool is_shared(Item item, Key descending) {
        return Element::is_shared(item.key, descending);
    }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};
