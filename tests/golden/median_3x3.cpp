// median_3x3: the median of 3x3 pixels around each pixel, of numbers of any type.
//
// Made by: nsc compile --window 3x3 --rank 4
// nsc:     0
// Network: 9 wires, 21 comparators, 8 layers, sha256 058e9445a29c23a18fab8a0865796291348d9213cc9b2cf353bc8c955c0acd2b
// Proof:   rank-4 on wires 8 of every input, by exhaustion: untangled to standard form; all 2^9 0-1 inputs come out right
// Work:    23 minima and maxima for a pixel, as neighbouring windows share what they have in common
//
// A lane of a register is a column of the image. Pixels become keys, whole numbers in their order; a comparator is a
// minimum and a maximum. -0 is less than 0, and NaN is more than all numbers.
//
// The library is built for the type NSC_ELEMENT, one of those below.

// C headers only, so that the kernel needs no C++ library.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

// How functions and tables are declared that the kernels of all targets share.
#define NSC_FUNCTION inline
#define NSC_TABLE constexpr
// Always inlined: a step is part of its codelet.
#define NSC_INLINE __attribute__((always_inline))
#define NSC_STEP NSC_INLINE inline
// Never inlined: one piece of code for many callers.
#define NSC_APART __attribute__((noinline))
#define NSC_CODELET NSC_STEP
// Unrolls a loop over the lanes of a register.
#if defined(__clang__)
#define NSC_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NSC_UNROLL _Pragma("GCC unroll 64")
#endif

namespace {

// The window: it begins half its size, rounded down, before its pixel.
constexpr int64_t window_planes = 1, window_rows = 3, window_columns = 3;
// Rows of results that a step makes, rows of a plane that it reads, and rows that the lists of its stages need.
constexpr int64_t step = 2, step_rows = window_rows + step - 1, list_rows = 0;
// Minima and maxima for a pixel.
constexpr int64_t operations = 23;

// What a call answers.
enum Status {
    ok = 0,
    out_of_memory = 1,
    bad_steepness = 2,
    no_permutation = 3,
    no_rank = 4,
};

// What the pixels outside of an image are.
enum Mode {
    reflect = 0,
    nearest = 1,
    mirror = 2,
    constant = 3,
    wrap = 4,
};

// --------------------------------------------------------------------------------------- memory

// A few blocks of memory are kept from call to call. The system maps a fresh block page by page, which takes longer
// than a small call.
struct alignas(64) Block {
    int64_t bytes;
};

constexpr int64_t largest_kept_block = 1 << 22;
Block *kept_blocks[8];

// Keeps the block, and frees the one that has been kept longest if there is no room.
inline void keep_block(Block *block) {
    for (Block *&place : kept_blocks)
        if (block) block = __atomic_exchange_n(&place, block, __ATOMIC_ACQ_REL);
    free(block);
}

inline Block *take_block(int64_t bytes) {
    for (Block *&place : kept_blocks) {
        Block *block = __atomic_exchange_n(&place, nullptr, __ATOMIC_ACQ_REL);
        if (block && block->bytes >= bytes) return block;
        if (block) keep_block(block);
    }
    void *start = nullptr;
    if (posix_memalign(&start, sizeof(Block), sizeof(Block) + size_t(bytes)) != 0) return nullptr;
    Block *block = static_cast<Block *>(start);
    block->bytes = bytes;
    return block;
}

inline void give_block(Block *block) {
    if (block && block->bytes <= largest_kept_block)
        keep_block(block);
    else
        free(block);
}

// Memory until the end of a scope. `start` is null if there is none.
struct Memory {
    explicit Memory(int64_t bytes) : start(take_block(bytes)) {}
    ~Memory() { give_block(start); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    // Begins at a cache line.
    template <class T>
    T *get() const {
        return reinterpret_cast<T *>(start + 1);
    }
    Block *start;
};

// Asks for large pages for memory that is about to be written for the first time. Small pages take longer to map
// than an exact sort takes, large ones a fraction of that.
inline void expect_writes(void *start, int64_t bytes) {
#if defined(__linux__)
    constexpr uintptr_t page = 4096, least = 1 << 22;
    const uintptr_t from = (reinterpret_cast<uintptr_t>(start) + page - 1) & ~(page - 1);
    const uintptr_t to = (reinterpret_cast<uintptr_t>(start) + uintptr_t(bytes)) & ~(page - 1);
    if (to > from && to - from >= least) (void)madvise(reinterpret_cast<void *>(from), to - from, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

// ------------------------------------------------------------------------------------ registers

#if defined(__AVX512F__)
constexpr int64_t register_bytes = 64;
#elif defined(__AVX__)
constexpr int64_t register_bytes = 32;
#else
constexpr int64_t register_bytes = 16;
#endif

template <class T>
struct VecOf {
    typedef T type __attribute__((vector_size(register_bytes)));
};

template <class T>
using Vec = typename VecOf<T>::type;

template <class T>
constexpr int64_t lanes = register_bytes / int64_t(sizeof(T));

// In every lane the same number.
template <class T>
inline Vec<T> all(T value) {
    return value - Vec<T>{};
}

// Between a register and memory, `count` values; a full register is one instruction.
template <class T>
inline Vec<T> load(const T *from, int64_t count = lanes<T>) {
    Vec<T> row;
    if (count == lanes<T>) {
        memcpy(&row, from, sizeof row);
    } else {
        row = Vec<T>{};
        memcpy(&row, from, sizeof(T) * count);
    }
    return row;
}

template <class T>
inline void store(T *to, Vec<T> row, int64_t count = lanes<T>) {
    if (count == lanes<T>)
        memcpy(to, &row, sizeof row);
    else
        memcpy(to, &row, sizeof(T) * count);
}

// The numbers 0 ... count - 1, for shuffles, whose lanes must be known when compiling.
template <int... places>
struct Places {};

template <int count, int... places>
struct PlacesTo : PlacesTo<count - 1, count - 1, places...> {};

template <int... places>
struct PlacesTo<0, places...> {
    using list = Places<places...>;
};

// Fetches memory to the first-level cache: what is read soon, or written.
template <bool writes>
inline void fetch_ahead(const void *start, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char *>(start) + at, writes);
}

// -------------------------------------------------------------------------------------- threads

// Subnormal numbers count as zero on this thread while it lives. They are common in P, whose entries are products
// of many weights, and processors take about 100 times as long for them.
struct TinyIsZero {
#if defined(__SSE__)
    TinyIsZero() : before(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before | 0x8040); }
    ~TinyIsZero() { __builtin_ia32_ldmxcsr(before); }
    uint32_t before;
#elif defined(__aarch64__)
    TinyIsZero() {
        asm volatile("mrs %0, fpcr" : "=r"(before));
        asm volatile("msr fpcr, %0" ::"r"(before | uint64_t(1) << 24));
    }
    ~TinyIsZero() { asm volatile("msr fpcr, %0" ::"r"(before)); }
    uint64_t before;
#else
    TinyIsZero() {}
    ~TinyIsZero() {}
#endif
    TinyIsZero(const TinyIsZero &) = delete;
    TinyIsZero &operator=(const TinyIsZero &) = delete;
};

// torch_parallel_for, or null for one thread.
using Body = void (*)(int64_t begin, int64_t end, void *context);
using ParallelFor = void (*)(int64_t begin, int64_t end, int64_t grain, Body body, void *context);

// Runs work(begin, end, memory) for ranges of tasks, on the threads of a pool. Each thread has `bytes` of memory.
// Returns out_of_memory if a thread gets none, or if its work says so.
template <class Work>
Status parallel_ranges(ParallelFor pool, int64_t count, int64_t grain, int64_t bytes, Work work) {
    struct State {
        Work &work;
        int64_t bytes;
        int32_t status;
    } state = {work, bytes, ok};
    const Body body = [](int64_t begin, int64_t end, void *context) {
        State *state = static_cast<State *>(context);
        const Memory memory(state->bytes);
        if (!memory.start) return __atomic_store_n(&state->status, int32_t(out_of_memory), __ATOMIC_RELAXED);
        const TinyIsZero guard;
        const Status status = state->work(begin, end, memory);
        if (status != ok) __atomic_store_n(&state->status, int32_t(status), __ATOMIC_RELAXED);
    };
    if (pool && count > 1)
        pool(0, count, grain, body, &state);
    else
        body(0, count, &state);
    return static_cast<Status>(state.status);
}

// The same, work(task, memory) for each task.
template <class Work>
Status parallel(ParallelFor pool, int64_t count, int64_t grain, int64_t bytes, Work work) {
    return parallel_ranges(pool, count, grain, bytes, [&](int64_t begin, int64_t end, const Memory &memory) {
        for (int64_t task = begin; task < end; ++task) work(task, memory);
        return ok;
    });
}

// A grain that gives a thread at least some ten microseconds of work, measured in mixes.
inline int64_t grain_of(int64_t work_per_task) { return 1 + 32768 / (work_per_task + 1); }

inline int64_t cut(int64_t total, int64_t pieces, int64_t piece) { return total * piece / pieces; }

// ------------------------------------------------------------------------------------- elements

// Types of values. A value's bits become a key, a whole number in the order of the values, and come back from it.
// `descending` is a register of 0, or of -1 for the other order. For sorting with places, keys are equal where values
// are; `lost` then tells which values cannot come back from their keys, and is_shared() which keys are of several values.

template <class number>
struct Integer {
    using Key = number;
    NSC_STEP static Vec<Key> key(Vec<Key> bits, Vec<Key> descending) { return bits ^ descending; }
    NSC_STEP static Vec<Key> bits(Vec<Key> key, Vec<Key> descending) { return key ^ descending; }
    NSC_STEP static Vec<Key> key_of_place(Vec<Key> bits, Vec<Key> descending, Vec<Key> *) { return bits ^ descending; }
    NSC_STEP static Vec<Key> is_shared(Vec<Key>, Vec<Key>) { return all<Key>(0); }
};

// Numbers of a sign, an exponent and a fraction: -0 is less than 0, and NaN, whose sign is dropped, is most.
template <class whole, whole infinity>
struct Float {
    using Key = whole;
    static constexpr whole lowest = whole(uint64_t(1) << (8 * sizeof(whole) - 1)), most = whole(~lowest);
    NSC_STEP static Vec<Key> ordered(Vec<Key> bits) { return bits ^ ((bits >> (8 * sizeof(whole) - 1)) & most); }
    NSC_STEP static Vec<Key> key(Vec<Key> bits, Vec<Key> descending) {
        const Vec<Key> size = bits & most;
        return (size > infinity ? size : ordered(bits)) ^ descending;
    }
    NSC_STEP static Vec<Key> bits(Vec<Key> key, Vec<Key> descending) { return ordered(key ^ descending); }
    NSC_STEP static Vec<Key> key_of_place(Vec<Key> bits, Vec<Key> descending, Vec<Key> *lost) {
        const Vec<Key> is_nan = (bits & most) > infinity, is_negative_zero = bits == lowest;
        *lost |= is_nan | is_negative_zero;
        const Vec<Key> key = is_nan ? all<Key>(most) : ordered(bits);
        return (is_negative_zero ? all<Key>(0) : key) ^ descending;
    }
    NSC_STEP static Vec<Key> is_shared(Vec<Key> key, Vec<Key> descending) {
        const Vec<Key> plain = key ^ descending;
        return (plain == 0) | (plain == most);
    }
};

using float64 = Float<int64_t, int64_t(0x7ff) << 52>;
using float32 = Float<int32_t, 0x7f800000>;
using bfloat16 = Float<int16_t, 0x7f80>;
using float16 = Float<int16_t, 0x7c00>;
using int64 = Integer<int64_t>;
using int32 = Integer<int32_t>;
using int16 = Integer<int16_t>;
using int8 = Integer<int8_t>;
using uint64 = Integer<uint64_t>;
using uint32 = Integer<uint32_t>;
using uint16 = Integer<uint16_t>;
using uint8 = Integer<uint8_t>;

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

// --------------------------------------------------------------------------------------- stages

// A loop runs its stages at each place of a strip, and as many further on as those behind it read.
// 2 rows of results, by 46 minima and maxima.
template <class Element>
NSC_APART void run_step(const Strip<typename Element::Key> &s, int64_t places, typename Element::Key *const *results) {
    using Key = typename Element::Key;
    using Item = Vec<Key>;
    const auto c = [](Item &lo, Item &hi) NSC_INLINE { order<Key>(lo, hi); };
    for (int64_t x = 0; x < places; x += lanes<Key>) {
        Item w0 = s.pixel(1, x), w1 = s.pixel(2, x); c(w0, w1); Item w2 = s.pixel(1, x + 1), w3 = s.pixel(2, x + 1);
        c(w2, w3); Item w4 = w0, w6 = w2; c(w4, w6); Item w5 = w1, w7 = w3; c(w5, w7); c(w5, w6);
        Item w8 = s.pixel(1, x + 2), w9 = s.pixel(2, x + 2); c(w8, w9); Item w14 = w8, w10 = w4; c(w14, w10);
        Item w15 = w9, w13 = w7; c(w15, w13); Item w12 = w6; c(w10, w12); Item w11 = w5; c(w15, w11); c(w15, w10);
        c(w11, w12); Item w17 = s.pixel(0, x + 1), w16 = s.pixel(0, x); c(w17, w16);
        Item w20 = s.pixel(0, x + 2), w19 = w16; c(w20, w19); Item w18 = w17; c(w20, w18); Item w27 = w19, w21 = w15;
        c(w27, w21); Item w26 = w18, w22 = w10; c(w26, w22); Item w25 = w20, w23 = w11; c(w25, w23); c(w21, w23);
        Item w24 = w12; c(w22, w24); c(w21, w22); give<Element>(results[0], x, places, w21);
        Item w29 = s.pixel(3, x + 1), w28 = s.pixel(3, x); c(w29, w28); Item w32 = s.pixel(3, x + 2), w31 = w28;
        c(w32, w31); Item w30 = w29; c(w32, w30); Item w39 = w31, w33 = w15; c(w39, w33); Item w38 = w30, w34 = w10;
        c(w38, w34); Item w37 = w32, w35 = w11; c(w37, w35); c(w33, w35); Item w36 = w12; c(w34, w36); c(w33, w34);
        give<Element>(results[1], x, places, w33);
    }
}

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

}  // namespace

// ------------------------------------------------------------------------------------ the C ABI

#define NSC_API extern "C" __attribute__((visibility("default")))

// What this kernel is. The runtime compares it with what it asked for.
NSC_API const char *nsc_window_facts() { return "{\"abi\": 1, \"window\": [1, 3, 3], \"rank\": 4, \"network\": \"058e9445a29c23a18fab8a0865796291348d9213cc9b2cf353bc8c955c0acd2b\"}"; }

// Filters images. lengths: how many, their planes, rows and columns; strides: from one to the next of the first three, in
// values; columns lie side by side, results without gaps. outside: the value of pixels outside, if the mode is constant.
// part, parts: of the work, which part, from 0 on, and of how many; they may run at the same time.
NSC_API int32_t nsc_window_filter(const void *x, const int64_t *lengths, const int64_t *strides, void *values, int32_t mode,
                                  const void *outside, void *pool, int64_t part, int64_t parts) {
    using Key = NSC_ELEMENT::Key;
    Images<Key> images = {static_cast<const Key *>(x), {}, {}, static_cast<Mode>(mode), Key{}, part, parts};
    memcpy(images.lengths, lengths, sizeof images.lengths);
    memcpy(images.strides, strides, sizeof images.strides);
    if (mode == constant) memcpy(&images.outside, outside, sizeof(Key));
    return filter_all<NSC_ELEMENT>(images, static_cast<Key *>(values), reinterpret_cast<ParallelFor>(pool));
}
