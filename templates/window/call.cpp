// ---------------------------------------------------------------------------------------- calls

// What is filtered: of the parts of all images, a task each, one of `parts` equal shares.
template <class Key>
struct Images {
    const Key *x;
    int64_t lengths[4];  // images, planes, rows, columns
    int64_t strides[3];  // of an image, a plane, a row
    Mode mode;
    Key outside;
    int64_t part, parts;
};

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

template <class Element>
typename Element::Key key_of(typename Element::Key value) {
    using Key = typename Element::Key;
    return Element::key(all<Key>(value), Vec<Key>{})[0];
}

// Writes the keys of a row's columns first ... first + count - 1; row: null for one outside of the image. What stands
// behind them up to the pitch is read, but not used.
template <class Element>
NSC_APART void enter_row(const Images<typename Element::Key> &images, const typename Element::Key *row, int64_t first, int64_t count,
                         typename Element::Key *keys) {
    using Key = typename Element::Key;
    const int64_t columns = images.lengths[3];
    const Key outside = key_of<Element>(images.outside);
    const int64_t begin = first < 0 ? (-first < count ? -first : count) : 0;
    const int64_t end = !row ? begin : first + count > columns ? (columns - first > begin ? columns - first : begin) : count;
    const auto edge = [&](int64_t x) {
        const int64_t place = row ? place_of(first + x, columns, images.mode) : -1;
        keys[x] = place < 0 ? outside : key_of<Element>(row[place]);
    };
    for (int64_t x = 0; x < begin; ++x) edge(x);
    int64_t x = begin;
    for (; x + lanes<Key> <= end; x += lanes<Key>) store(keys + x, Element::key(load(row + first + x), Vec<Key>{}));
    if (x < end) store(keys + x, Element::key(load(row + first + x, end - x), Vec<Key>{}), end - x);
    for (x = end; x < count; ++x) edge(x);
}

// The part of an image that a task filters: columns first ... first + places - 1 of rows top ... bottom - 1 of a plane.
struct Part {
    int64_t image, plane, top, bottom, first, places;
};

template <class Element>
void filter_part(const Images<typename Element::Key> &images, const Part &part, typename Element::Key *values, typename Element::Key *memory) {
    using Key = typename Element::Key;
    constexpr int64_t before = window_rows / 2;
    const int64_t rows = images.lengths[2], columns = images.lengths[3];
    const int64_t first = part.first - window_columns / 2, count = part.places + window_columns - 1;
    const Key *image = images.x + part.image * images.strides[0];
    Strip<Key> strip;
    strip.lists = memory + image_rows * pitch<Key>;
    // Row r of the image has its keys in line r modulo step_rows of its plane.
    const auto keys_of = [&](int64_t plane, int64_t row) { return memory + (plane * step_rows + modulo(row, step_rows)) * pitch<Key>; };
    int64_t entered = part.top - before;
    for (int64_t top = part.top; top < part.bottom; top += step) {
        const int64_t end = top - before + step_rows;
        for (; entered < end; ++entered) {
            const int64_t row = place_of(entered, rows, images.mode);
            for (int64_t p = 0; p < window_planes; ++p) {
                const int64_t plane = place_of(part.plane - window_planes / 2 + p, images.lengths[1], images.mode);
                const Key *from = row < 0 || plane < 0 ? nullptr : image + plane * images.strides[1] + row * images.strides[2];
                enter_row<Element>(images, from, first, count, keys_of(p, entered));
                if (from && row + step < rows) fetch_ahead<false>(from + step * images.strides[2] + part.first, part.places * int64_t(sizeof(Key)));
            }
        }
        for (int64_t p = 0; p < window_planes; ++p)
            for (int64_t r = 0; r < step_rows; ++r) strip.rows[p * step_rows + r] = keys_of(p, top - before + r);
        Key *results[step];
        for (int64_t r = 0; r < step; ++r)
            results[r] = top + r < part.bottom
                             ? values + ((part.image * images.lengths[1] + part.plane) * rows + top + r) * columns + part.first
                             : nullptr;
        run_step<Element>(strip, part.places, results);
    }
}

constexpr int64_t cut_up(int64_t total, int64_t most) { return (total + most - 1) / most; }

template <class Element>
Status filter_all(const Images<typename Element::Key> &images, typename Element::Key *values, ParallelFor pool) {
    using Key = typename Element::Key;
    constexpr int64_t most_rows = 128;
    const int64_t planes = images.lengths[1], rows = images.lengths[2], columns = images.lengths[3];
    const int64_t strips = cut_up(columns, most_places<Key>), bands = cut_up(rows, most_rows);
    const int64_t registers = cut_up(columns, lanes<Key>);
    const int64_t bytes = all_rows * pitch<Key> * int64_t(sizeof(Key));
    expect_writes(values, images.lengths[0] * planes * rows * columns * int64_t(sizeof(Key)));
    const int64_t tasks = images.lengths[0] * planes * bands * strips;
    const int64_t begin = cut(tasks, images.parts, images.part), end = cut(tasks, images.parts, images.part + 1);
    return parallel(pool, end - begin, grain_of(operations * (registers / strips) * (rows / bands)), bytes,
                    [&](int64_t number, const Memory &memory) {
        const int64_t task = begin + number;
        const int64_t strip = task % strips, band = task / strips % bands, plane = task / strips / bands;
        // Strips begin at whole registers.
        const int64_t first = cut(registers, strips, strip) * lanes<Key>, last = cut(registers, strips, strip + 1) * lanes<Key>;
        const Part part = {plane / planes, plane % planes, cut(rows, bands, band), cut(rows, bands, band + 1), first, (last < columns ? last : columns) - first};
        Key *keys = memory.get<Key>();
        filter_part<Element>(images, part, values, keys);
    });
}
