// The C functions of a filter: a window, run by this library on pixels of one type.
//
// A lane of a register is a value of a row: a pixel, or one of the channels that it has side by
// side. Values become keys, integers in their order; a comparator is a minimum and a maximum. -0 is
// less than 0, and NaN is more than all numbers.
#pragma once

#include <nsc/attributes.h>
#include <nsc/exact/values.h>
#include <nsc/threads.h>
#include <nsc/windows/rims.h>

namespace nsc {

// The images of a call, which filters number `part` of `parts` equal shares of their tasks.
template <class Key>
struct Images {
    const Key *x;
    int64_t lengths[4];  // images, planes, rows, values of a row
    int64_t strides[3];  // of an image, a plane, a row
    int64_t before[3];   // planes, rows and values of a row that a window begins before its pixel
    Mode mode;
    Key outside;
    int64_t part, parts;
    const Missing *missing;  // null for kernels whose values are all there
};

template <class Key>
Images<Key> images_of(int64_t channels, const void *x, const int64_t *lengths,
                      const int64_t *strides, const int64_t *before, int32_t mode,
                      const void *outside, int64_t part, int64_t parts, const Missing *missing) {
    Images<Key> images = {};
    images.x = static_cast<const Key *>(x);
    memcpy(images.lengths, lengths, sizeof images.lengths);
    memcpy(images.strides, strides, sizeof images.strides);
    memcpy(images.before, before, sizeof images.before);
    images.mode = static_cast<Mode>(mode);
    images.part = part, images.parts = parts;
    images.missing = missing;
    images.lengths[3] *= channels;
    images.before[2] *= channels;
    if (mode == constant) memcpy(&images.outside, outside, sizeof(Key));
    return images;
}

// The area of an image that a task filters: of rows top ... bottom - 1 of a plane, the values first
// ... first + width - 1, whose windows do not reach out of the image to the left and right, and the
// rim, or not.
struct Area {
    int64_t image, plane, top, bottom, first, width;
    bool with_rim;
};

// The keys of the rows that a step reads, and flags of those that are missing. Row r of plane p has
// line r modulo step_rows of its plane; lines for counts of missing values follow those of flags.
template <class Window, class Key>
struct Lines {
    using Sizes = StripSizes<Window, Key>;
    Key *keys;
    uint8_t *flags;
    int64_t pitch;
    const Key *rows[Sizes::image_rows];
    bool is_flagged[Sizes::image_rows];

    static int64_t line_of(int64_t p, int64_t r) {
        return p * Sizes::step_rows + modulo(r, Sizes::step_rows);
    }
    // Tells a step that begins at row `above` of the pixels where they lie.
    template <class Form>
    void show(Strip<Window, Form> &strip, int64_t above) const {
        bool any = false;
        for (int64_t r = 0; r < Sizes::image_rows; ++r) {
            const int64_t line = line_of(r / Sizes::step_rows, above + r % Sizes::step_rows);
            strip.rows[r] = rows[line];
            strip.flags[r] = flags + line * pitch;
            any |= Window::may_miss && is_flagged[line];
        }
        for (int64_t r = 0; r < Window::rows_per_step; ++r)
            strip.lacks[r] = any ? flags + (Sizes::image_rows + r) * pitch : nullptr;
    }
};

template <class Window, class Form>
void filter_area(const Images<typename Form::Key> &images,
                 const Rim<Window, typename Form::Key> &rim, const Area &area,
                 typename Form::Key *values, typename Form::Key *memory) {
    using Key = typename Form::Key;
    using Element = typename Form::Element;
    using Sizes = StripSizes<Window, Key>;
    constexpr int64_t step = Window::rows_per_step, step_rows = Sizes::step_rows,
                      image_rows = Sizes::image_rows, pitch = Sizes::pitch,
                      rim_pitch = Sizes::rim_pitch;
    const int64_t planes = images.lengths[1], rows = images.lengths[2], length = images.lengths[3];
    const Key *image = images.x + area.image * images.strides[0];
    values += (area.image * planes + area.plane) * rows * length;
    Key *lists = memory + image_rows * pitch, *rim_keys = lists + Window::list_rows * pitch,
        *rim_results = rim_keys + image_rows * rim_pitch;
    uint8_t *flags = reinterpret_cast<uint8_t *>(rim_results + step * rim_pitch);
    Lines<Window, Key> lines = {memory, flags, pitch, {}, {}},
                       rim_lines = {
                           rim_keys, flags + (image_rows + step) * pitch, rim_pitch, {}, {}};
    // Row r of plane p of the windows; null outside of the image.
    const auto pixels_of = [&](int64_t p, int64_t r) -> const Key * {
        const int64_t row = index_at(r, rows, images.mode),
                      plane = index_at(area.plane - images.before[0] + p, planes, images.mode);
        return row < 0 || plane < 0 ? nullptr
                                    : image + plane * images.strides[1] + row * images.strides[2];
    };
    Strip<Window, Form> strip = {{}, lists, {}, {}, images.missing, {}, {}}, rim_strip = strip;
    const auto enter = [&](int64_t p, int64_t r) {
        const int64_t line = lines.line_of(p, r), start = area.first - images.before[2],
                      width = area.width + Sizes::around;
        Key *const keys = lines.keys + line * pitch, *const at_rim = rim_keys + line * rim_pitch;
        const Key *const pixels = pixels_of(p, r), *const read = pixels ? pixels + start : nullptr;
        // Values that are keys are read where they lie.
        const bool is_in_place = read && Element::key_is_value && !Window::may_miss;
        lines.rows[line] = is_in_place ? read : keys;
        rim_lines.rows[line] = at_rim;
        if constexpr (Window::may_miss) {
            const Missing &missing = *images.missing;
            const bool is_shrunk = images.mode == shrink;
            const uint8_t *const mask =
                pixels && missing.mask ? missing.mask + (pixels - images.x) : nullptr;
            if (area.with_rim)
                rim_lines.is_flagged[line] = enter_rim_flagged<Element>(
                    rim, missing, pixels, mask, images.outside, is_shrunk, at_rim,
                    rim_lines.flags + line * rim_pitch);
            if (area.width)
                lines.is_flagged[line] = enter_flagged<Element>(
                    missing, read, mask ? mask + start : nullptr, images.outside,
                    !pixels && is_shrunk, width, keys, flags + line * pitch);
        } else {
            if (area.with_rim) enter_rim<Element>(rim, pixels, images.outside, at_rim);
            if (area.width && !is_in_place) enter_row<Element>(read, images.outside, width, keys);
        }
    };
    int64_t entered = area.top - images.before[1];
    for (int64_t top = area.top; top < area.bottom; top += step) {
        const int64_t above = top - images.before[1],
                      made = area.bottom - top < step ? area.bottom - top : step;
        for (; entered < above + step_rows; ++entered)
            for (int64_t p = 0; p < Window::planes; ++p) enter(p, entered);
        if (area.width) {
            lines.show(strip, above);
            for (int64_t r = 0; r < step; ++r)
                strip.results[r] = r < made ? values + (top + r) * length + area.first : nullptr;
            for (int64_t r = 0; r < Window::planes * step; ++r) {
                const Key *const pixels = pixels_of(r / step, entered + r % step);
                strip.next[r] = pixels ? pixels + area.first : memory;
            }
            run_step(strip, area.width);
        }
        if (area.with_rim) {
            rim_lines.show(rim_strip, above);
            for (int64_t r = 0; r < step; ++r) rim_strip.results[r] = rim_results + r * rim_pitch;
            for (const Key *&next : rim_strip.next) next = rim_keys;
            run_step(rim_strip, rim.width());
            for (int64_t r = 0; r < made; ++r)
                for (const auto &edge : rim.edges)
                    memcpy(values + (top + r) * length + edge.in_row,
                           rim_results + r * rim_pitch + edge.in_rim, edge.count * sizeof(Key));
        }
    }
}

constexpr int64_t cut_up(int64_t total, int64_t most) { return (total + most - 1) / most; }

template <class Window, class Form>
Status filter_all(const Images<typename Form::Key> &images, typename Form::Key *values,
                  ParallelFor pool) {
    using Key = typename Form::Key;
    using Sizes = StripSizes<Window, Key>;
    constexpr int64_t most_rows = 128;
    const int64_t planes = images.lengths[1], rows = images.lengths[2], length = images.lengths[3];
    const Rim<Window, Key> rim(length, images.before[2], images.mode);
    // Between the rim's two edges. Bands begin at whole steps, strips at whole registers.
    const int64_t inner = rim.is_all(length) ? 0 : length - Sizes::around;
    const int64_t steps = cut_up(rows, Window::rows_per_step), bands = cut_up(rows, most_rows);
    const int64_t registers = cut_up(inner, lanes<Key>),
                  strips = inner ? cut_up(inner, Sizes::most_width) : 1;
    expect_writes(values, images.lengths[0] * planes * rows * length * int64_t(sizeof(Key)));
    const int64_t tasks = images.lengths[0] * planes * bands * strips;
    const int64_t begin = cut(tasks, images.parts, images.part),
                  end = cut(tasks, images.parts, images.part + 1);
    const int64_t work = Window::operations * (registers / strips + 1) * (rows / bands);
    // Keys of pixels, lists, and of a rim keys and results; then flags and counts of missing
    // values, of which registers reach beyond the last row.
    constexpr int64_t rim_rows = Sizes::image_rows + Window::rows_per_step,
                      values_held = Sizes::all_rows * Sizes::pitch + rim_rows * Sizes::rim_pitch,
                      flags = rim_rows * (Sizes::pitch + Sizes::rim_pitch) + 2 * register_bytes,
                      bytes = values_held * int64_t(sizeof(Key)) + Window::may_miss * flags;
    return parallel(pool, end - begin, grain_of(work), bytes,
                    [&](int64_t number, const Memory &memory) {
        const int64_t task = begin + number;
        const int64_t strip = task % strips, band = task / strips % bands,
                      plane = task / strips / bands;
        const int64_t top = cut(steps, bands, band) * Window::rows_per_step,
                      bottom = cut(steps, bands, band + 1) * Window::rows_per_step;
        const int64_t first = cut(registers, strips, strip) * lanes<Key>,
                      last = cut(registers, strips, strip + 1) * lanes<Key>;
        const bool with_rim = strip == 0 && rim.count > 0;
        const Area area = {plane / planes,
                           plane % planes,
                           top,
                           bottom < rows ? bottom : rows,
                           images.before[2] + first,
                           (last < inner ? last : inner) - first,
                           with_rim};
        filter_area<Window, Form>(images, rim, area, values, memory.get<Key>());
    });
}

}  // namespace nsc

// Defines nsc_filter for pixels of a type. lengths: how many images, their planes, rows and
// columns; strides: from one to the next of the first three, in values; the pixels of a row lie
// side by side, results without gaps. before: how many planes, rows and columns a window begins
// before its pixel. outside: the value of pixels outside, if the mode is constant. part, parts: of
// the work, which part, from 0 on, and of how many; they may run at the same time. missing: for
// kernels whose values may be missing.
#define NSC_FILTER(Window, Element)                                                              \
    NSC_API int32_t nsc_filter(const void *x, const int64_t *lengths, const int64_t *strides,    \
                               const int64_t *before, void *values, int32_t mode,                \
                               const void *outside, void *pool, int64_t part, int64_t parts,     \
                               const nsc::Missing *missing) {                                    \
        const nsc::Images<Element::Key> images = nsc::images_of<Element::Key>(                   \
            Window::channels, x, lengths, strides, before, mode, outside, part, parts, missing); \
        return nsc::filter_all<Window, nsc::Values<Element>>(                                    \
            images, static_cast<Element::Key *>(values),                                         \
            reinterpret_cast<nsc::ParallelFor>(pool));                                           \
    }
