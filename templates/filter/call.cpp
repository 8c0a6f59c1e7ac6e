// ---------------------------------------------------------------------------------------- calls

// What is filtered: of the parts of all images, a task each, one of `parts` equal shares.
template <class Key>
struct Images {
    const Key *x;
    int64_t lengths[4];  // images, planes, rows, values of a row
    int64_t strides[3];  // of an image, a plane, a row
    int64_t before[3];   // planes, rows and values of a row that a window begins before its pixel
    Mode mode;
    Key outside;
    int64_t part, parts;
};

// The part of an image that a task filters: of rows top ... bottom - 1 of a plane, the values first
// ... first + places - 1, whose windows do not reach out of the image to the left and right, and
// the rim, or not.
struct Part {
    int64_t image, plane, top, bottom, first, places;
    bool with_rim;
};

// What a task works with: the keys of pixels, lists, and of a rim keys and results.
template <class Key>
constexpr int64_t part_memory = all_rows * pitch<Key> + (image_rows + step) * rim_pitch<Key>;

template <class Element>
void filter_part(const Images<typename Element::Key> &images, const Rim<typename Element::Key> &rim,
                 const Part &part, typename Element::Key *values, typename Element::Key *memory) {
    using Key = typename Element::Key;
    const int64_t planes = images.lengths[1], rows = images.lengths[2], length = images.lengths[3];
    const Key *image = images.x + part.image * images.strides[0];
    values += (part.image * planes + part.plane) * rows * length;
    Key *keys = memory, *lists = keys + image_rows * pitch<Key>;
    Key *rim_keys = lists + list_rows * pitch<Key>,
        *rim_results = rim_keys + image_rows * rim_pitch<Key>;
    // Row r of plane p of the windows; null outside of the image.
    const auto pixels_of = [&](int64_t p, int64_t r) -> const Key * {
        const int64_t row = place_of(r, rows, images.mode),
                      plane = place_of(part.plane - images.before[0] + p, planes, images.mode);
        return row < 0 || plane < 0 ? nullptr
                                    : image + plane * images.strides[1] + row * images.strides[2];
    };
    // It has the line r modulo step_rows of its plane.
    const auto line_of = [](int64_t p, int64_t r) { return p * step_rows + modulo(r, step_rows); };
    Strip<Key> strip = {{}, lists, {}, {}}, rim_strip = strip;
    const Key *lines[image_rows];
    const auto enter = [&](int64_t p, int64_t r) {
        const int64_t number = line_of(p, r);
        const Key *const pixels = pixels_of(p, r);
        if (part.with_rim)
            enter_rim<Element>(rim, pixels, images.outside, rim_keys + number * rim_pitch<Key>);
        if (!part.places) return;
        const Key *const read = pixels ? pixels + part.first - images.before[2] : nullptr;
        // Values that are keys are read where they lie.
        lines[number] = read && Element::key_is_value ? read : keys + number * pitch<Key>;
        if (lines[number] != read)
            enter_row<Element>(read, images.outside, part.places + around,
                               keys + number * pitch<Key>);
    };
    int64_t entered = part.top - images.before[1];
    for (int64_t top = part.top; top < part.bottom; top += step) {
        const int64_t above = top - images.before[1],
                      made = part.bottom - top < step ? part.bottom - top : step;
        for (; entered < above + step_rows; ++entered)
            for (int64_t p = 0; p < window_planes; ++p) enter(p, entered);
        if (part.places) {
            for (int64_t r = 0; r < image_rows; ++r)
                strip.rows[r] = lines[line_of(r / step_rows, above + r % step_rows)];
            for (int64_t r = 0; r < step; ++r)
                strip.results[r] = r < made ? values + (top + r) * length + part.first : nullptr;
            for (int64_t r = 0; r < window_planes * step; ++r) {
                const Key *const pixels = pixels_of(r / step, entered + r % step);
                strip.next[r] = pixels ? pixels + part.first : keys;
            }
            run_step<Element>(strip, part.places);
        }
        if (part.with_rim) {
            for (int64_t r = 0; r < image_rows; ++r)
                rim_strip.rows[r] =
                    rim_keys + line_of(r / step_rows, above + r % step_rows) * rim_pitch<Key>;
            for (int64_t r = 0; r < step; ++r)
                rim_strip.results[r] = rim_results + r * rim_pitch<Key>;
            for (const Key *&next : rim_strip.next) next = rim_keys;
            run_step<Element>(rim_strip, rim.places());
            for (int64_t r = 0; r < made; ++r)
                for (const auto &piece : rim.pieces)
                    memcpy(values + (top + r) * length + piece.value,
                           rim_results + r * rim_pitch<Key> + piece.place,
                           piece.values * sizeof(Key));
        }
    }
}

constexpr int64_t cut_up(int64_t total, int64_t most) { return (total + most - 1) / most; }

template <class Element>
Status filter_all(const Images<typename Element::Key> &images, typename Element::Key *values,
                  ParallelFor pool) {
    using Key = typename Element::Key;
    constexpr int64_t most_rows = 128;
    const int64_t planes = images.lengths[1], rows = images.lengths[2], length = images.lengths[3];
    const Rim<Key> rim(length, images.before[2], images.mode);
    // Between the rim's two pieces. Bands begin at whole steps, strips at whole registers.
    const int64_t inner = rim.is_all(length) ? 0 : length - around;
    const int64_t steps = cut_up(rows, step), bands = cut_up(rows, most_rows);
    const int64_t registers = cut_up(inner, lanes<Key>),
                  strips = inner ? cut_up(inner, most_places<Key>) : 1;
    expect_writes(values, images.lengths[0] * planes * rows * length * int64_t(sizeof(Key)));
    const int64_t tasks = images.lengths[0] * planes * bands * strips;
    const int64_t begin = cut(tasks, images.parts, images.part),
                  end = cut(tasks, images.parts, images.part + 1);
    const int64_t work = operations * (registers / strips + 1) * (rows / bands),
                  bytes = part_memory<Key> * int64_t(sizeof(Key));
    return parallel(pool, end - begin, grain_of(work), bytes,
                    [&](int64_t number, const Memory &memory) {
        const int64_t task = begin + number;
        const int64_t strip = task % strips, band = task / strips % bands,
                      plane = task / strips / bands;
        const int64_t top = cut(steps, bands, band) * step,
                      bottom = cut(steps, bands, band + 1) * step;
        const int64_t first = cut(registers, strips, strip) * lanes<Key>,
                      last = cut(registers, strips, strip + 1) * lanes<Key>;
        const bool with_rim = strip == 0 && rim.count > 0;
        const Part part = {plane / planes,
                           plane % planes,
                           top,
                           bottom < rows ? bottom : rows,
                           images.before[2] + first,
                           (last < inner ? last : inner) - first,
                           with_rim};
        filter_part<Element>(images, rim, part, values, memory.get<Key>());
    });
}
