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

// The rim of an image: the columns whose windows reach out of it to the left and right. Its pixels and those around it
// are written side by side. The rim of a narrow image is all of it.
template <class Key>
struct Rim {
    struct Piece {
        int64_t place, column, columns;  // the first one, in the rim and in the image; how many there are
    };
    Piece pieces[2];
    int64_t columns[rim_pitch<Key>], count;  // of the image that the rim reads, -1 outside

    Rim(int64_t length, Mode mode) : pieces{}, count(0) {
        pieces[0] = {0, 0, is_all(length) ? length : columns_before};
        if (!is_all(length)) pieces[1] = {columns_before + window_columns - 1, length - columns_behind, columns_behind};
        for (const Piece &piece : pieces)
            for (int64_t x = 0; piece.columns && x < piece.columns + window_columns - 1; ++x)
                columns[count++] = place_of(piece.column - columns_before + x, length, mode);
    }

    static bool is_all(int64_t length) { return length < lanes<Key> + window_columns - 1; }

    // Places of results, a register or more.
    int64_t places() const { return count - (window_columns - 1) < lanes<Key> ? lanes<Key> : count - (window_columns - 1); }
};

// Writes the keys of `count` pixels, a register or more, that lie side by side; pixels: null for a row outside.
template <class Element>
NSC_APART void enter_row(const typename Element::Key *pixels, typename Element::Key outside, int64_t count, typename Element::Key *keys) {
    using Key = typename Element::Key;
    for (int64_t place = 0; place < count; place += lanes<Key>) {
        const int64_t x = register_at<Key>(place, count);
        store(keys + x, Element::key(pixels ? load(pixels + x) : all<Key>(outside), Vec<Key>{}));
    }
}

// Writes the keys of the rim of a row. What stands behind its columns up to the pitch is read, but not used.
template <class Element>
NSC_APART void enter_rim(const Rim<typename Element::Key> &rim, const typename Element::Key *row, typename Element::Key outside, typename Element::Key *keys) {
    using Key = typename Element::Key;
    for (int64_t x = 0; x < rim.count; ++x) keys[x] = row && rim.columns[x] >= 0 ? row[rim.columns[x]] : outside;
    if (Element::key_is_value) return;
    for (int64_t x = 0; x < rim.count; x += lanes<Key>) store(keys + x, Element::key(load(keys + x), Vec<Key>{}));
}
