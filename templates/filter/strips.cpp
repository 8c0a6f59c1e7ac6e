// --------------------------------------------------------------------------------------- strips

template <class Key>
NSC_STEP void order(Vec<Key> &lo, Vec<Key> &hi) {
    const Vec<Key> x = lo, y = hi;
    lo = x < y ? x : y, hi = x < y ? y : x;
}

// Loops run whole registers. The first and the last one of `places`, a register or more, begin
// where they fit, and so do again what their neighbours do.
template <class Key>
NSC_STEP int64_t register_at(int64_t place, int64_t places) {
    return place < 0 ? 0 : place + lanes<Key> <= places ? place : places - lanes<Key>;
}

// An image is filtered in strips of neighbouring values of its rows, so that what a step reads and
// writes stays in a cache: lists, which are written and read again, in the first level, pixels in
// the second. Whole rows are read fastest.
constexpr int64_t strip_bytes = list_rows ? 32 << 10 : 256 << 10;
constexpr int64_t image_rows = window_planes * step_rows, all_rows = image_rows + list_rows;
// A row of an image is its values, and neighbouring columns are as many values apart as a pixel has
// channels. So many values of a row a window reads beside its first column.
constexpr int64_t around = (window_columns - 1) * channels;

// Values from a row of a rim to the next, whole registers: a rim reads 3 * around + lanes<Key> at
// most.
template <class Key>
constexpr int64_t rim_pitch = (3 * around / lanes<Key> + 2) * lanes<Key>;

// Values from a row of a strip to the next: an odd number of cache lines, so that rows do not share
// a set of the cache.
template <class Key>
constexpr int64_t line = 64 / int64_t(sizeof(Key));
template <class Key>
constexpr int64_t least_pitch = 4 * lanes<Key> + rim_pitch<Key>;
template <class Key>
constexpr int64_t fitting_pitch = strip_bytes / (all_rows * int64_t(sizeof(Key)));
template <class Key>
constexpr int64_t pitch =
    ((fitting_pitch<Key> > least_pitch<Key> ? fitting_pitch<Key> : least_pitch<Key>) /
         (2 * line<Key>)*2 +
     1) *
    line<Key>;
// Most results of a row of a strip.
template <class Key>
constexpr int64_t most_places = (pitch<Key> - around) / lanes<Key> * lanes<Key>;

// What a step reads and writes: the keys of its pixels, row by row, the lists of its stages, and
// the rows of results, null for one that is left out; and the rows of pixels that the next step
// reads first.
template <class Key>
struct Strip {
    const Key *rows[image_rows];
    Key *lists, *results[step];
    const Key *next[window_planes * step];
    // Volatile: compilers load twice what a minimum and a maximum take, and loads are what takes
    // longest.
    NSC_STEP Vec<Key> pixel(int64_t row, int64_t x) const {
        typedef Vec<Key> Unaligned __attribute__((aligned(1), may_alias));
        return *reinterpret_cast<const volatile Unaligned *>(rows[row] + x);
    }
    NSC_STEP Vec<Key> list(int64_t row, int64_t x) const {
        return load(lists + row * pitch<Key> + x);
    }
    NSC_STEP void keep(int64_t row, int64_t x, Vec<Key> item) const {
        store(lists + row * pitch<Key> + x, item);
    }
    // Where results begin: some places early, so that registers are whole cache lines, unless lists
    // are then read at odd places.
    NSC_STEP int64_t first_place() const {
        return list_rows
                   ? 0
                   : -int64_t(reinterpret_cast<uintptr_t>(results[0]) / sizeof(Key) % lanes<Key>);
    }
    template <class Element>
    NSC_STEP void give(int64_t row, int64_t x, Vec<Key> item) const {
        if (results[row]) store(results[row] + x, Element::bits(item, Vec<Key>{}));
    }
    // The pixels come to the second-level cache while this step still works, evenly spread.
    NSC_STEP void fetch_next(int64_t x) const {
        NSC_UNROLL
        for (const Key *row : next) __builtin_prefetch(row + x, 0, 2);
    }
};
