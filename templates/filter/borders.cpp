// -------------------------------------------------------------------------------------- borders

inline int64_t modulo(int64_t place, int64_t length) { return (place % length + length) % length; }

// The place in an image, along an axis, of the pixel that stands at any place; -1 for the constant.
inline int64_t place_of(int64_t place, int64_t length, Mode mode) {
    if (place >= 0 && place < length) return place;
    switch (mode) {
        case reflect: {
            const int64_t at = modulo(place, 2 * length);
            return at < length ? at : 2 * length - 1 - at;
        }
        case mirror: {
            const int64_t at = length > 1 ? modulo(place, 2 * length - 2) : 0;
            return at < length ? at : 2 * length - 2 - at;
        }
        case nearest: return place < 0 ? 0 : length - 1;
        case wrap: return modulo(place, length);
        default: return -1;
    }
}

// The same for the values of a row, as many of each pixel as it has channels.
inline int64_t value_of(int64_t place, int64_t length, Mode mode) {
    const int64_t channel = modulo(place, channels),
                  column = place_of((place - channel) / channels, length / channels, mode);
    return column < 0 ? -1 : column * channels + channel;
}

// The rim of an image: the columns whose windows reach out of it to the left and right. Their
// values and those around them are written side by side. The rim of a narrow image is all of it.
template <class Key>
struct Rim {
    struct Piece {
        int64_t place, value, values;  // the first one, in the rim and in a row; how many there are
    };
    Piece pieces[2];
    int64_t values[rim_pitch<Key>], count;  // of a row that the rim reads, -1 outside

    // Of rows of so many values, and windows that begin `before` values before their pixels.
    Rim(int64_t length, int64_t before, Mode mode) : pieces{}, count(0) {
        const int64_t behind = around - before;
        pieces[0] = {0, 0, is_all(length) ? length : before};
        if (!is_all(length)) pieces[1] = {0, length - behind, behind};
        for (Piece &piece : pieces) {
            piece.place = count;
            for (int64_t x = 0; piece.values && x < piece.values + around; ++x)
                values[count++] = value_of(piece.value - before + x, length, mode);
        }
    }

    static bool is_all(int64_t length) { return length < lanes<Key> + around; }

    // Places of results, a register or more.
    int64_t places() const { return count - around < lanes<Key> ? lanes<Key> : count - around; }
};

// Writes the keys of `count` values, a register or more, that lie side by side; row: null for one
// outside.
template <class Element>
NSC_APART void enter_row(const typename Element::Key *row, typename Element::Key outside,
                         int64_t count, typename Element::Key *keys) {
    using Key = typename Element::Key;
    for (int64_t place = 0; place < count; place += lanes<Key>) {
        const int64_t x = register_at<Key>(place, count);
        store(keys + x, Element::key(row ? load(row + x) : all<Key>(outside), Vec<Key>{}));
    }
}

// Writes the keys of the rim of a row. What stands behind its values up to the pitch is read, but
// not used.
template <class Element>
NSC_APART void enter_rim(const Rim<typename Element::Key> &rim, const typename Element::Key *row,
                         typename Element::Key outside, typename Element::Key *keys) {
    using Key = typename Element::Key;
    for (int64_t x = 0; x < rim.count; ++x)
        keys[x] = row && rim.values[x] >= 0 ? row[rim.values[x]] : outside;
    if (Element::key_is_value) return;
    for (int64_t x = 0; x < rim.count; x += lanes<Key>)
        store(keys + x, Element::key(load(keys + x), Vec<Key>{}));
}
