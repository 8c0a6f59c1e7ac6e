// --------------------------------------------------------------------------------------- strips

template <class Key>
NSC_STEP void order(Vec<Key> &lo, Vec<Key> &hi) {
    const Vec<Key> x = lo, y = hi;
    lo = x < y ? x : y, hi = x < y ? y : x;
}

// An image is filtered in strips of neighbouring columns, so that what a step reads and writes stays in a cache.
constexpr int64_t strip_bytes = 32 << 10;
constexpr int64_t image_rows = window_planes * step_rows, all_rows = image_rows + list_rows;

// Columns from a row of a strip to the next: a register more than are read, so that all stages run whole registers, and
// an odd number of cache lines, so that rows do not share a set of the cache.
template <class Key>
constexpr int64_t line = 64 / int64_t(sizeof(Key));
template <class Key>
constexpr int64_t least_pitch = 4 * lanes<Key> + window_columns - 1 + lanes<Key>;
template <class Key>
constexpr int64_t fitting_pitch = strip_bytes / (all_rows * int64_t(sizeof(Key)));
template <class Key>
constexpr int64_t pitch = ((fitting_pitch<Key> > least_pitch<Key> ? fitting_pitch<Key> : least_pitch<Key>) / (2 * line<Key>) * 2 + 1) * line<Key>;
// Most columns of results of a strip.
template <class Key>
constexpr int64_t most_places = (pitch<Key> - (window_columns - 1) - lanes<Key>) / lanes<Key> * lanes<Key>;

// The keys of a step's pixels, row by row, and the lists that its stages write.
template <class Key>
struct Strip {
    const Key *rows[image_rows];
    Key *lists;
    NSC_STEP Vec<Key> pixel(int64_t row, int64_t x) const { return load(rows[row] + x); }
    NSC_STEP Vec<Key> list(int64_t row, int64_t x) const { return load(lists + row * pitch<Key> + x); }
    NSC_STEP void keep(int64_t row, int64_t x, Vec<Key> item) const { store(lists + row * pitch<Key> + x, item); }
};

// Writes results at place x of a row of `places`; to: null for a row that is left out.
template <class Element>
NSC_STEP void give(typename Element::Key *to, int64_t x, int64_t places, Vec<typename Element::Key> item) {
    using Key = typename Element::Key;
    if (to) store(to + x, Element::bits(item, Vec<Key>{}), places - x < lanes<Key> ? places - x : lanes<Key>);
}
