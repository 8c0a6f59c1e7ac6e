// median_3x3: the median of 3x3 pixels around each pixel, of numbers of any type.
//
// Made by: nsc compile --window 3x3 --rank 4
// nsc:     0
// Network: 9 wires, 21 comparators, 9 layers, sha256 863e584651a0480c38eaf396902b599edb79ab2546958d511582ae189c1dd62f
// Proof:   rank-4 on wires 8 of every input, by exhaustion: untangled to standard form; all 2^9 0-1 inputs come out right
// Work:    18.5 minima and maxima for a pixel, as neighbouring windows share what they have in common
//
// A lane of a register is a value of a row: a pixel, or one of the channels that it has side by side. Values become keys, whole numbers in their order; a comparator is a
// minimum and a maximum. -0 is less than 0, and NaN is more than all numbers.
//
// The library is built for the type NSC_ELEMENT, one of those below, and for NSC_CHANNELS values of a pixel.

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

#if !defined(NSC_CHANNELS)
#define NSC_CHANNELS 1
#endif

namespace {

// The window, and the values of a pixel, which are filtered each for itself.
constexpr int64_t window_planes = 1, window_rows = 3, window_columns = 3;
constexpr int64_t channels = NSC_CHANNELS;
// Rows of results that a step makes, rows of a plane that it reads, and rows that the lists of its stages need.
constexpr int64_t step = 8, step_rows = window_rows + step - 1, list_rows = 0;
// Minima and maxima for a pixel.
constexpr int64_t operations = 18;

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
    static constexpr bool key_is_value = true;  // in ascending order
    NSC_STEP static Vec<Key> key(Vec<Key> bits, Vec<Key> descending) { return bits ^ descending; }
    NSC_STEP static Vec<Key> bits(Vec<Key> key, Vec<Key> descending) { return key ^ descending; }
    NSC_STEP static Vec<Key> key_of_place(Vec<Key> bits, Vec<Key> descending, Vec<Key> *) { return bits ^ descending; }
    NSC_STEP static Vec<Key> is_shared(Vec<Key>, Vec<Key>) { return all<Key>(0); }
};

// Numbers of a sign, an exponent and a fraction: -0 is less than 0, and NaN, whose sign is dropped, is most.
template <class whole, whole infinity>
struct Float {
    using Key = whole;
    static constexpr bool key_is_value = false;
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

// Changes keys so that those without a sign have their order as numbers with one, or back.
template <class Key>
NSC_STEP Vec<Key> as_signed(Vec<Key> key) {
    return Key(-1) < Key(0) ? key : key ^ Key(uint64_t(1) << (8 * sizeof(Key) - 1));
}

// --------------------------------------------------------------------------------------- strips

template <class Key>
NSC_STEP void order(Vec<Key> &lo, Vec<Key> &hi) {
    const Vec<Key> x = lo, y = hi;
    lo = x < y ? x : y, hi = x < y ? y : x;
}

// Loops run whole registers. The first and the last one of `places`, a register or more, begin where they fit, and so do
// again what their neighbours do.
template <class Key>
NSC_STEP int64_t register_at(int64_t place, int64_t places) {
    return place < 0 ? 0 : place + lanes<Key> <= places ? place : places - lanes<Key>;
}

// An image is filtered in strips of neighbouring values of its rows, so that what a step reads and writes stays in a cache: lists,
// which are written and read again, in the first level, pixels in the second. Whole rows are read fastest.
constexpr int64_t strip_bytes = list_rows ? 32 << 10 : 256 << 10;
constexpr int64_t image_rows = window_planes * step_rows, all_rows = image_rows + list_rows;
// A row of an image is its values, and neighbouring columns are as many values apart as a pixel has channels. So many
// values of a row a window reads beside its first column.
constexpr int64_t around = (window_columns - 1) * channels;

// Values from a row of a rim to the next, whole registers: a rim reads 3 * around + lanes<Key> at most.
template <class Key>
constexpr int64_t rim_pitch = (3 * around / lanes<Key> + 2) * lanes<Key>;

// Values from a row of a strip to the next: an odd number of cache lines, so that rows do not share a set of the cache.
template <class Key>
constexpr int64_t line = 64 / int64_t(sizeof(Key));
template <class Key>
constexpr int64_t least_pitch = 4 * lanes<Key> + rim_pitch<Key>;
template <class Key>
constexpr int64_t fitting_pitch = strip_bytes / (all_rows * int64_t(sizeof(Key)));
template <class Key>
constexpr int64_t pitch = ((fitting_pitch<Key> > least_pitch<Key> ? fitting_pitch<Key> : least_pitch<Key>) / (2 * line<Key>) * 2 + 1) * line<Key>;
// Most results of a row of a strip.
template <class Key>
constexpr int64_t most_places = (pitch<Key> - around) / lanes<Key> * lanes<Key>;

// What a step reads and writes: the keys of its pixels, row by row, the lists of its stages, and the rows of results, null
// for one that is left out; and the rows of pixels that the next step reads first.
template <class Key>
struct Strip {
    const Key *rows[image_rows];
    Key *lists, *results[step];
    const Key *next[window_planes * step];
    // Volatile: compilers load twice what a minimum and a maximum take, and loads are what takes longest.
    NSC_STEP Vec<Key> pixel(int64_t row, int64_t x) const {
        typedef Vec<Key> Unaligned __attribute__((aligned(1), may_alias));
        return *reinterpret_cast<const volatile Unaligned *>(rows[row] + x);
    }
    NSC_STEP Vec<Key> list(int64_t row, int64_t x) const { return load(lists + row * pitch<Key> + x); }
    NSC_STEP void keep(int64_t row, int64_t x, Vec<Key> item) const { store(lists + row * pitch<Key> + x, item); }
    // Where results begin: some places early, so that registers are whole cache lines, unless lists are then read at odd places.
    NSC_STEP int64_t first_place() const {
        return list_rows ? 0 : -int64_t(reinterpret_cast<uintptr_t>(results[0]) / sizeof(Key) % lanes<Key>);
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
    const int64_t channel = modulo(place, channels), column = place_of((place - channel) / channels, length / channels, mode);
    return column < 0 ? -1 : column * channels + channel;
}

// The rim of an image: the columns whose windows reach out of it to the left and right. Their values and those around
// them are written side by side. The rim of a narrow image is all of it.
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

// Writes the keys of `count` values, a register or more, that lie side by side; row: null for one outside.
template <class Element>
NSC_APART void enter_row(const typename Element::Key *row, typename Element::Key outside, int64_t count, typename Element::Key *keys) {
    using Key = typename Element::Key;
    for (int64_t place = 0; place < count; place += lanes<Key>) {
        const int64_t x = register_at<Key>(place, count);
        store(keys + x, Element::key(row ? load(row + x) : all<Key>(outside), Vec<Key>{}));
    }
}

// Writes the keys of the rim of a row. What stands behind its values up to the pitch is read, but not used.
template <class Element>
NSC_APART void enter_rim(const Rim<typename Element::Key> &rim, const typename Element::Key *row, typename Element::Key outside, typename Element::Key *keys) {
    using Key = typename Element::Key;
    for (int64_t x = 0; x < rim.count; ++x) keys[x] = row && rim.values[x] >= 0 ? row[rim.values[x]] : outside;
    if (Element::key_is_value) return;
    for (int64_t x = 0; x < rim.count; x += lanes<Key>) store(keys + x, Element::key(load(keys + x), Vec<Key>{}));
}

// --------------------------------------------------------------------------------------- stages

// A loop runs its stages at each place of a strip, and as many further on as those behind it read.
// 8 rows of results, by 148 minima and maxima.
template <class Element>
NSC_APART void run_step(const Strip<typename Element::Key> &s, int64_t places) {
    using Key = typename Element::Key;
    using Item = Vec<Key>;
    const auto c = [](Item &lo, Item &hi) NSC_INLINE { order<Key>(lo, hi); };
    for (int64_t place = s.first_place(); place < places; place += lanes<Key>) {
        const int64_t x = register_at<Key>(place, places);
        s.fetch_next(x);
        Item w0 = s.pixel(1, x), w2 = s.pixel(1, x + 2 * channels); c(w0, w2); Item w1 = s.pixel(1, x + 1 * channels);
        c(w0, w1); c(w1, w2); Item w3 = s.pixel(2, x), w5 = s.pixel(2, x + 2 * channels); c(w3, w5);
        Item w4 = s.pixel(2, x + 1 * channels); c(w3, w4); c(w4, w5); Item w9 = w3, w6 = w0; c(w9, w6);
        Item w10 = w4, w7 = w1; c(w10, w7); Item w11 = w5, w8 = w2; c(w11, w8); c(w11, w6); c(w6, w7); c(w11, w10);
        Item w12 = s.pixel(0, x), w14 = s.pixel(0, x + 2 * channels); c(w12, w14);
        Item w13 = s.pixel(0, x + 1 * channels); c(w12, w13); c(w13, w14); Item w21 = w14, w15 = w11; c(w21, w15);
        Item w20 = w13, w16 = w10; c(w20, w16); Item w19 = w12, w17 = w6; c(w19, w17); c(w15, w17); Item w18 = w7;
        c(w16, w18); c(w15, w16); s.template give<Element>(0, x, w15);
        Item w22 = s.pixel(3, x), w24 = s.pixel(3, x + 2 * channels); c(w22, w24);
        Item w23 = s.pixel(3, x + 1 * channels); c(w22, w23); c(w23, w24); Item w31 = w24, w25 = w11; c(w31, w25);
        Item w30 = w23, w26 = w10; c(w30, w26); Item w29 = w22, w27 = w6; c(w29, w27); c(w25, w27); Item w28 = w7;
        c(w26, w28); c(w25, w26); s.template give<Element>(1, x, w25);
        Item w32 = s.pixel(4, x), w34 = s.pixel(4, x + 2 * channels); c(w32, w34);
        Item w33 = s.pixel(4, x + 1 * channels); c(w32, w33); c(w33, w34); Item w38 = w32, w35 = w22; c(w38, w35);
        Item w39 = w33, w36 = w23; c(w39, w36); Item w40 = w34, w37 = w24; c(w40, w37); c(w40, w35); c(w35, w36);
        c(w40, w39); Item w47 = w5, w41 = w40; c(w47, w41); Item w46 = w4, w42 = w39; c(w46, w42);
        Item w45 = w3, w43 = w35; c(w45, w43); c(w41, w43); Item w44 = w36; c(w42, w44); c(w41, w42);
        s.template give<Element>(2, x, w41); Item w48 = s.pixel(5, x), w50 = s.pixel(5, x + 2 * channels); c(w48, w50);
        Item w49 = s.pixel(5, x + 1 * channels); c(w48, w49); c(w49, w50); Item w57 = w50, w51 = w40; c(w57, w51);
        Item w56 = w49, w52 = w39; c(w56, w52); Item w55 = w48, w53 = w35; c(w55, w53); c(w51, w53); Item w54 = w36;
        c(w52, w54); c(w51, w52); s.template give<Element>(3, x, w51);
        Item w58 = s.pixel(6, x), w60 = s.pixel(6, x + 2 * channels); c(w58, w60);
        Item w59 = s.pixel(6, x + 1 * channels); c(w58, w59); c(w59, w60); Item w64 = w58, w61 = w48; c(w64, w61);
        Item w65 = w59, w62 = w49; c(w65, w62); Item w66 = w60, w63 = w50; c(w66, w63); c(w66, w61); c(w61, w62);
        c(w66, w65); Item w73 = w34, w67 = w66; c(w73, w67); Item w72 = w33, w68 = w65; c(w72, w68);
        Item w71 = w32, w69 = w61; c(w71, w69); c(w67, w69); Item w70 = w62; c(w68, w70); c(w67, w68);
        s.template give<Element>(4, x, w67); Item w74 = s.pixel(7, x), w76 = s.pixel(7, x + 2 * channels); c(w74, w76);
        Item w75 = s.pixel(7, x + 1 * channels); c(w74, w75); c(w75, w76); Item w83 = w76, w77 = w66; c(w83, w77);
        Item w82 = w75, w78 = w65; c(w82, w78); Item w81 = w74, w79 = w61; c(w81, w79); c(w77, w79); Item w80 = w62;
        c(w78, w80); c(w77, w78); s.template give<Element>(5, x, w77);
        Item w84 = s.pixel(8, x), w86 = s.pixel(8, x + 2 * channels); c(w84, w86);
        Item w85 = s.pixel(8, x + 1 * channels); c(w84, w85); c(w85, w86); Item w90 = w84, w87 = w74; c(w90, w87);
        Item w91 = w85, w88 = w75; c(w91, w88); Item w92 = w86, w89 = w76; c(w92, w89); c(w92, w87); c(w87, w88);
        c(w92, w91); Item w99 = w60, w93 = w92; c(w99, w93); Item w98 = w59, w94 = w91; c(w98, w94);
        Item w97 = w58, w95 = w87; c(w97, w95); c(w93, w95); Item w96 = w88; c(w94, w96); c(w93, w94);
        s.template give<Element>(6, x, w93); Item w100 = s.pixel(9, x), w102 = s.pixel(9, x + 2 * channels);
        c(w100, w102); Item w101 = s.pixel(9, x + 1 * channels); c(w100, w101); c(w101, w102);
        Item w109 = w102, w103 = w92; c(w109, w103); Item w108 = w101, w104 = w91; c(w108, w104);
        Item w107 = w100, w105 = w87; c(w107, w105); c(w103, w105); Item w106 = w88; c(w104, w106); c(w103, w104);
        s.template give<Element>(7, x, w103);
    }
}

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

// The part of an image that a task filters: of rows top ... bottom - 1 of a plane, the values first ... first + places - 1,
// whose windows do not reach out of the image to the left and right, and the rim, or not.
struct Part {
    int64_t image, plane, top, bottom, first, places;
    bool with_rim;
};

// What a task works with: the keys of pixels, lists, and of a rim keys and results.
template <class Key>
constexpr int64_t part_memory = all_rows * pitch<Key> + (image_rows + step) * rim_pitch<Key>;

template <class Element>
void filter_part(const Images<typename Element::Key> &images, const Rim<typename Element::Key> &rim, const Part &part,
                 typename Element::Key *values, typename Element::Key *memory) {
    using Key = typename Element::Key;
    const int64_t planes = images.lengths[1], rows = images.lengths[2], length = images.lengths[3];
    const Key *image = images.x + part.image * images.strides[0];
    values += (part.image * planes + part.plane) * rows * length;
    Key *keys = memory, *lists = keys + image_rows * pitch<Key>;
    Key *rim_keys = lists + list_rows * pitch<Key>, *rim_results = rim_keys + image_rows * rim_pitch<Key>;
    // Row r of plane p of the windows; null outside of the image.
    const auto pixels_of = [&](int64_t p, int64_t r) -> const Key * {
        const int64_t row = place_of(r, rows, images.mode), plane = place_of(part.plane - images.before[0] + p, planes, images.mode);
        return row < 0 || plane < 0 ? nullptr : image + plane * images.strides[1] + row * images.strides[2];
    };
    // It has the line r modulo step_rows of its plane.
    const auto line_of = [](int64_t p, int64_t r) { return p * step_rows + modulo(r, step_rows); };
    Strip<Key> strip = {{}, lists, {}, {}}, rim_strip = strip;
    const Key *lines[image_rows];
    const auto enter = [&](int64_t p, int64_t r) {
        const int64_t number = line_of(p, r);
        const Key *const pixels = pixels_of(p, r);
        if (part.with_rim) enter_rim<Element>(rim, pixels, images.outside, rim_keys + number * rim_pitch<Key>);
        if (!part.places) return;
        const Key *const read = pixels ? pixels + part.first - images.before[2] : nullptr;
        // Values that are keys are read where they lie.
        lines[number] = read && Element::key_is_value ? read : keys + number * pitch<Key>;
        if (lines[number] != read) enter_row<Element>(read, images.outside, part.places + around, keys + number * pitch<Key>);
    };
    int64_t entered = part.top - images.before[1];
    for (int64_t top = part.top; top < part.bottom; top += step) {
        const int64_t above = top - images.before[1], made = part.bottom - top < step ? part.bottom - top : step;
        for (; entered < above + step_rows; ++entered)
            for (int64_t p = 0; p < window_planes; ++p) enter(p, entered);
        if (part.places) {
            for (int64_t r = 0; r < image_rows; ++r) strip.rows[r] = lines[line_of(r / step_rows, above + r % step_rows)];
            for (int64_t r = 0; r < step; ++r) strip.results[r] = r < made ? values + (top + r) * length + part.first : nullptr;
            for (int64_t r = 0; r < window_planes * step; ++r) {
                const Key *const pixels = pixels_of(r / step, entered + r % step);
                strip.next[r] = pixels ? pixels + part.first : keys;
            }
            run_step<Element>(strip, part.places);
        }
        if (part.with_rim) {
            for (int64_t r = 0; r < image_rows; ++r) rim_strip.rows[r] = rim_keys + line_of(r / step_rows, above + r % step_rows) * rim_pitch<Key>;
            for (int64_t r = 0; r < step; ++r) rim_strip.results[r] = rim_results + r * rim_pitch<Key>;
            for (const Key *&next : rim_strip.next) next = rim_keys;
            run_step<Element>(rim_strip, rim.places());
            for (int64_t r = 0; r < made; ++r)
                for (const auto &piece : rim.pieces)
                    memcpy(values + (top + r) * length + piece.value, rim_results + r * rim_pitch<Key> + piece.place, piece.values * sizeof(Key));
        }
    }
}

constexpr int64_t cut_up(int64_t total, int64_t most) { return (total + most - 1) / most; }

template <class Element>
Status filter_all(const Images<typename Element::Key> &images, typename Element::Key *values, ParallelFor pool) {
    using Key = typename Element::Key;
    constexpr int64_t most_rows = 128;
    const int64_t planes = images.lengths[1], rows = images.lengths[2], length = images.lengths[3];
    const Rim<Key> rim(length, images.before[2], images.mode);
    // Between the rim's two pieces. Bands begin at whole steps, strips at whole registers.
    const int64_t inner = rim.is_all(length) ? 0 : length - around;
    const int64_t steps = cut_up(rows, step), bands = cut_up(rows, most_rows);
    const int64_t registers = cut_up(inner, lanes<Key>), strips = inner ? cut_up(inner, most_places<Key>) : 1;
    expect_writes(values, images.lengths[0] * planes * rows * length * int64_t(sizeof(Key)));
    const int64_t tasks = images.lengths[0] * planes * bands * strips;
    const int64_t begin = cut(tasks, images.parts, images.part), end = cut(tasks, images.parts, images.part + 1);
    const int64_t work = operations * (registers / strips + 1) * (rows / bands), bytes = part_memory<Key> * int64_t(sizeof(Key));
    return parallel(pool, end - begin, grain_of(work), bytes, [&](int64_t number, const Memory &memory) {
        const int64_t task = begin + number;
        const int64_t strip = task % strips, band = task / strips % bands, plane = task / strips / bands;
        const int64_t top = cut(steps, bands, band) * step, bottom = cut(steps, bands, band + 1) * step;
        const int64_t first = cut(registers, strips, strip) * lanes<Key>, last = cut(registers, strips, strip + 1) * lanes<Key>;
        const bool with_rim = strip == 0 && rim.count > 0;
        const Part part = {plane / planes, plane % planes, top, bottom < rows ? bottom : rows, images.before[2] + first, (last < inner ? last : inner) - first, with_rim};
        filter_part<Element>(images, rim, part, values, memory.get<Key>());
    });
}

}  // namespace

// ------------------------------------------------------------------------------------ the C ABI

#define NSC_API extern "C" __attribute__((visibility("default")))

// What this kernel is. The runtime compares it with what it asked for.
NSC_API const char *nsc_window_facts() { return "{\"abi\": 2, \"name\": \"median_3x3\", \"window\": [1, 3, 3], \"rank\": 4, \"output\": 8, \"network\": \"863e584651a0480c38eaf396902b599edb79ab2546958d511582ae189c1dd62f\", \"network.json\": \"6d0084096531fc7d7229f46ddd3a97296dd347bcb524f14e27746ec62a16c0cb\", \"proof.json\": \"aef2edca031249c3a41f19fbd5886b0d3f96a15f1b635a581c39ed5a6de63332\"}"; }

// Filters images. lengths: how many, their planes, rows and columns; strides: from one to the next of the first three, in
// values; the pixels of a row lie side by side, results without gaps. before: how many planes, rows and columns a window
// begins before its pixel. outside: the value of pixels outside, if the mode is constant. part, parts: of the work, which
// part, from 0 on, and of how many; they may run at the same time.
NSC_API int32_t nsc_window_filter(const void *x, const int64_t *lengths, const int64_t *strides, const int64_t *before,
                                  void *values, int32_t mode, const void *outside, void *pool, int64_t part, int64_t parts) {
    using Key = NSC_ELEMENT::Key;
    Images<Key> images = {static_cast<const Key *>(x), {}, {}, {}, static_cast<Mode>(mode), Key{}, part, parts};
    memcpy(images.lengths, lengths, sizeof images.lengths);
    memcpy(images.strides, strides, sizeof images.strides);
    memcpy(images.before, before, sizeof images.before);
    images.lengths[3] *= channels;
    images.before[2] *= channels;
    if (mode == constant) memcpy(&images.outside, outside, sizeof(Key));
    return filter_all<NSC_ELEMENT>(images, static_cast<Key *>(values), reinterpret_cast<ParallelFor>(pool));
}
