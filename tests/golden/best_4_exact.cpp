// best_4_exact: exact sorting of 4 values, for numbers of any type.
//
// nsc:     0
// Network: 4 wires, 5 comparators, 3 layers, sha256 48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4
// Proof:   sorts every input, by exhaustion: all 2^4 0-1 inputs come out sorted
//
// A lane of a register is a sample. Values become keys, whole numbers in their order; a comparator is a minimum and a
// maximum. With indices a key and its place are one number, so that ties keep their order. -0 is less than 0 where no
// indices are wanted, and equal to it where they are; NaN is more than all numbers.
//
// The library is built for the type NSC_ELEMENT, one of those below.

// C headers only, so that the kernel needs no C++ library.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "keys and places are joined in the order of bytes that little-endian processors have"
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

constexpr int64_t wires = 4, comparators = 5, outputs = 4;

// The wire of each output.
constexpr uint16_t output_wires[] = {
    0, 1, 2, 3,
};

constexpr int64_t output_wire(int64_t output) { return output_wires[output]; }

// What a call answers.
enum Status {
    ok = 0,
    out_of_memory = 1,
    bad_steepness = 2,
    no_permutation = 3,
    no_rank = 4,
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

// ---------------------------------------------------------------------------------------- tiles

// A register is pieces of 16 bytes, each of piece<T> values. A tile is piece<T> columns of as many rows as a register
// has values: lane p * piece<T> + k is row p * piece<T> + k. So a transpose moves values inside their pieces only.
template <class T>
constexpr int piece = 16 / int(sizeof(T));

// Interleaves the lower halves, or the higher, of the pieces of p and q.
template <class T, bool higher, int... places>
NSC_STEP Vec<T> zip(Vec<T> p, Vec<T> q, Places<places...>) {
    constexpr int half = piece<T> / 2;
    return __builtin_shufflevector(p, q, (places / piece<T> * piece<T> + higher * half + places % piece<T> / 2 + places % 2 * int(lanes<T>))...);
}

template <class T>
NSC_STEP Vec<T> zip_lower(Vec<T> p, Vec<T> q) {
    return zip<T, false>(p, q, typename PlacesTo<lanes<T>>::list());
}

template <class T>
NSC_STEP Vec<T> zip_higher(Vec<T> p, Vec<T> q) {
    return zip<T, true>(p, q, typename PlacesTo<lanes<T>>::list());
}

// The first, or the second, of each pair that zip_lower and zip_higher made.
template <class T, bool second, int... places>
NSC_STEP Vec<T> unzip(Vec<T> lower, Vec<T> higher, Places<places...>) {
    constexpr int half = piece<T> / 2;
    return __builtin_shufflevector(lower, higher, (places / piece<T> * piece<T> + 2 * (places % half) + second + (places % piece<T> < half ? 0 : int(lanes<T>)))...);
}

template <class T>
NSC_STEP Vec<T> unzip_firsts(Vec<T> lower, Vec<T> higher) {
    return unzip<T, false>(lower, higher, typename PlacesTo<lanes<T>>::list());
}

template <class T>
NSC_STEP Vec<T> unzip_seconds(Vec<T> lower, Vec<T> higher) {
    return unzip<T, true>(lower, higher, typename PlacesTo<lanes<T>>::list());
}

// Transposes the pieces of piece<T> registers.
template <class T, int stage = piece<T>>
NSC_STEP void transpose_pieces(Vec<T> *rows) {
    if constexpr (stage > 1) {
        constexpr int half = piece<T> / 2;
        Vec<T> next[piece<T>];
        NSC_UNROLL
        for (int i = 0; i < half; ++i) next[2 * i] = zip_lower<T>(rows[i], rows[i + half]), next[2 * i + 1] = zip_higher<T>(rows[i], rows[i + half]);
        NSC_UNROLL
        for (int i = 0; i < piece<T>; ++i) rows[i] = next[i];
        transpose_pieces<T, stage / 2>(rows);
    }
}

template <class T, int bytes>
struct PartOf {
    typedef T type __attribute__((vector_size(bytes)));
};

// Part of a register, of `bytes`.
template <class T, int bytes>
using Part = typename PartOf<T, bytes>::type;

template <class T, int bytes, int... places>
NSC_STEP Part<T, 2 * bytes> joined(Part<T, bytes> first, Part<T, bytes> second, Places<places...>) {
    return __builtin_shufflevector(first, second, places...);
}

template <class T, int bytes, int from, int... places>
NSC_STEP Part<T, bytes> half_of(Part<T, 2 * bytes> whole, Places<places...>) {
    return __builtin_shufflevector(whole, whole, (from + places)...);
}

// Between the first `width` values of rows, `stride` apart, and the pieces of a register.
template <class T, int width, int bytes = int(register_bytes)>
NSC_STEP Part<T, bytes> load_pieces(const T *rows, int64_t stride) {
    constexpr int half = bytes / 2;
    if constexpr (bytes == 16) {
        Part<T, bytes> row{};
        memcpy(&row, rows, sizeof(T) * width);
        return row;
    } else {
        return joined<T, half>(load_pieces<T, width, half>(rows, stride), load_pieces<T, width, half>(rows + half / 16 * piece<T> * stride, stride),
                               typename PlacesTo<bytes / int(sizeof(T))>::list());
    }
}

template <class T, int width, int bytes = int(register_bytes)>
NSC_STEP void store_pieces(Part<T, bytes> pieces, T *rows, int64_t stride) {
    constexpr int half = bytes / 2, count = half / int(sizeof(T));
    if constexpr (bytes == 16) {
        memcpy(rows, &pieces, sizeof(T) * width);
    } else {
        store_pieces<T, width, half>(half_of<T, half, 0>(pieces, typename PlacesTo<count>::list()), rows, stride);
        store_pieces<T, width, half>(half_of<T, half, count>(pieces, typename PlacesTo<count>::list()), rows + half / 16 * piece<T> * stride, stride);
    }
}

// Between rows in memory, `stride` values apart, and a tile of their first `width` columns.
template <class T, int width = piece<T>>
NSC_STEP void load_tile(const T *rows, int64_t stride, Vec<T> *tile) {
    NSC_UNROLL
    for (int k = 0; k < piece<T>; ++k) tile[k] = load_pieces<T, width>(rows + k * stride, stride);
    transpose_pieces<T>(tile);
}

template <class T, int width = piece<T>>
NSC_STEP void store_tile(Vec<T> *tile, T *rows, int64_t stride) {
    transpose_pieces<T>(tile);
    NSC_UNROLL
    for (int k = 0; k < piece<T>; ++k) store_pieces<T, width>(tile[k], rows + k * stride, stride);
}

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

// --------------------------------------------------------------------------------------- forms

// A form says what is sorted: items, of which a register of values makes `halves`. enter() makes the items of a wire,
// leave() turns them to bits of values again, and to places; order() is a comparator. Networks of more than
// `most_straight` comparators run from a table.

// Values alone.
template <class Element>
struct Values {
    using Key = typename Element::Key;
    using Place = Key;
    using Item = Vec<Key>;
    static constexpr int halves = 1;
    static constexpr bool has_places = false;
    static constexpr int64_t most_straight = INT64_MAX;
    NSC_STEP static void enter(Vec<Key> bits, int64_t, Vec<Key> descending, Item *items, Vec<Key> *) {
        items[0] = Element::key(bits, descending);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Vec<Key> descending, Vec<Place> *) { return Element::bits(items[0], descending); }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        a = x < y ? x : y, b = x < y ? y : x;
    }
};

// Whole numbers of `bytes` without a sign, and twice as wide with one.
template <int bytes>
struct Wholes;
template <>
struct Wholes<1> {
    using Place = uint8_t;
    using Word = int16_t;
};
template <>
struct Wholes<2> {
    using Place = uint16_t;
    using Word = int32_t;
};
template <>
struct Wholes<4> {
    using Place = uint32_t;
    using Word = int64_t;
};
template <>
struct Wholes<8> {
    using Place = uint64_t;
};

// A word has the key in its higher half and the place in its lower one: equal keys are ordered by their places.
template <class Element, int bytes = int(sizeof(typename Element::Key))>
struct Pairs {
    using Key = typename Element::Key;
    using Place = typename Wholes<bytes>::Place;
    using Item = Vec<typename Wholes<bytes>::Word>;
    static constexpr int halves = 2;
    static constexpr bool has_places = true;
    static constexpr int64_t most_straight = INT64_MAX;
    NSC_STEP static void enter(Vec<Key> bits, int64_t place, Vec<Key> descending, Item *items, Vec<Key> *lost) {
        const Vec<Key> key = as_signed<Key>(Element::key_of_place(bits, descending, lost)), places = all<Key>(Key(place));
        items[0] = (Item)zip_lower<Key>(places, key), items[1] = (Item)zip_higher<Key>(places, key);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Vec<Key> descending, Vec<Place> *places) {
        const Vec<Key> first = (Vec<Key>)items[0], second = (Vec<Key>)items[1];
        *places = (Vec<Place>)unzip_firsts<Key>(first, second);
        return Element::bits(as_signed<Key>(unzip_seconds<Key>(first, second)), descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        a = x < y ? x : y, b = x < y ? y : x;
    }
};

#if !defined(__AVX512F__)
// Without a minimum of 64-bit numbers a word is a double in [1, 2): the key in the higher bits of its fraction, the
// place below.
template <class Element>
struct Pairs<Element, 4> {
    using Key = typename Element::Key;
    using Place = uint32_t;
    using Item = Vec<double>;
    using Bits = Vec<uint64_t>;
    static constexpr int halves = 2;
    static constexpr bool has_places = true;
    static constexpr int64_t most_straight = INT64_MAX;
    static constexpr int fraction = 52, place_bits = fraction - 32;
    static_assert(wires <= 1 << place_bits, "too many places");
    NSC_STEP static void enter(Vec<Key> bits, int64_t place, Vec<Key> descending, Item *items, Vec<Key> *lost) {
        const Vec<Key> key = as_signed<Key>(Element::key_of_place(bits, descending, lost)) ^ Key(uint32_t(1) << 31);
        const Bits rest = all<uint64_t>(uint64_t(0x3ff) << fraction | uint64_t(place));
        items[0] = (Item)((Bits)zip_lower<Key>(Vec<Key>{}, key) >> (64 - fraction) | rest);
        items[1] = (Item)((Bits)zip_higher<Key>(Vec<Key>{}, key) >> (64 - fraction) | rest);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Vec<Key> descending, Vec<Place> *places) {
        const Bits first = (Bits)items[0], second = (Bits)items[1];
        *places = unzip_firsts<Place>((Vec<Place>)first, (Vec<Place>)second) & Place((1 << place_bits) - 1);
        const Vec<Key> key = unzip_seconds<Key>((Vec<Key>)(first << (64 - fraction)), (Vec<Key>)(second << (64 - fraction)));
        return Element::bits(as_signed<Key>(key ^ Key(uint32_t(1) << 31)), descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
#if defined(__AVX__) && !defined(__clang__)
        a = __builtin_ia32_minpd256(x, y), b = __builtin_ia32_maxpd256(x, y);  // GCC finds them itself, but slowly
#else
        a = x < y ? x : y, b = x > y ? x : y;
#endif
    }
};
#endif

// Key and place in a register each.
template <class Element>
struct Pairs<Element, 8> {
    using Key = typename Element::Key;
    using Place = uint64_t;
    struct Item {
        Vec<Key> key;
        Vec<Place> place;
    };
    static constexpr int halves = 1;
    static constexpr bool has_places = true;
    static constexpr int64_t most_straight = 100;  // beyond, GCC's code is slower, and takes it long
    NSC_STEP static void enter(Vec<Key> bits, int64_t place, Vec<Key> descending, Item *items, Vec<Key> *lost) {
        items[0] = {Element::key_of_place(bits, descending, lost), all<Place>(Place(place))};
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Vec<Key> descending, Vec<Place> *places) {
        *places = items[0].place;
        return Element::bits(items[0].key, descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        const Vec<int64_t> swap = (y.key < x.key) | ((y.key == x.key) & (Vec<int64_t>)(y.place < x.place));
        a = {swap ? y.key : x.key, swap ? y.place : x.place};
        b = {swap ? x.key : y.key, swap ? x.place : y.place};
    }
};

// -------------------------------------------------------------------------------------- network

// The comparators (lo, hi).
struct Pair {
    uint16_t lo, hi;
};

constexpr Pair pairs[] = {
    {0, 2}, {1, 3}, {0, 1}, {2, 3}, {1, 2}, {},
};

// Runs them on one lane's items.
template <class Form>
NSC_APART void run_table(typename Form::Item *r) {
    for (int64_t k = 0; k < comparators; ++k) Form::order(r[pairs[k].lo], r[pairs[k].hi]);
}

// The same as code, in pieces that compile quickly. A piece loads a wire before its first comparator there, and stores
// it after the last if it is needed behind the piece.
template <class Form>
NSC_APART void run_piece_0(typename Form::Item *r) {
    using Item = typename Form::Item;
    const auto c = [](Item &lo, Item &hi) NSC_INLINE { Form::order(lo, hi); };
    Item w0 = r[0], w2 = r[2]; c(w0, w2); Item w1 = r[1], w3 = r[3]; c(w1, w3); c(w0, w1); r[0] = w0; c(w2, w3);
    r[3] = w3; c(w1, w2); r[1] = w1; r[2] = w2;
}

template <class Form>
NSC_STEP void sort_block(typename Form::Item *r) {
    if constexpr (comparators > Form::most_straight) return run_table<Form>(r);
    run_piece_0<Form>(r);
}

// -------------------------------------------------------------------------------------- groups

// A group has a sample in each lane of a register of keys. Its items lie in a block, those of a half side by side.

// Stores places as indices, step by step to twice the width: GCC makes wider steps lane by lane.
template <int bytes>
struct Wider;
template <>
struct Wider<1> {
    using type = uint16_t;
};
template <>
struct Wider<2> {
    using type = uint32_t;
};
template <>
struct Wider<4> {
    using type = uint64_t;
};

template <class Index, class Place, int count>
NSC_STEP void store_indices(Index *to, Part<Place, count * int(sizeof(Place))> places) {
    if constexpr (sizeof(Index) == sizeof(Place)) {
        memcpy(to, &places, sizeof places);
    } else if constexpr (sizeof(Index) < sizeof(Place)) {
        const auto narrow = __builtin_convertvector(places, Part<Index, count * int(sizeof(Index))>);
        memcpy(to, &narrow, sizeof narrow);
    } else {
        using Next = typename Wider<sizeof(Place)>::type;
        constexpr int most = int(register_bytes) / int(sizeof(Next));
        if constexpr (count > most) {
            const typename PlacesTo<count / 2>::list half;
            store_indices<Index, Place, count / 2>(to, half_of<Place, count / 2 * int(sizeof(Place)), 0>(places, half));
            store_indices<Index, Place, count / 2>(to + count / 2, half_of<Place, count / 2 * int(sizeof(Place)), count / 2>(places, half));
        } else {
            store_indices<Index, Next, count>(to, __builtin_convertvector(places, Part<Next, count * int(sizeof(Next))>));
        }
    }
}

// Where samples are: value w of sample s at w * wire + s * sample.
template <class Key>
struct Span {
    Key *at;
    int64_t wire, sample;
    int64_t place(int64_t w, int64_t s) const { return w * wire + s * sample; }
    operator Span<const Key>() const { return {at, wire, sample}; }
};

// So many samples of `values` each without gaps: in rows, or as many rows of a value of each.
template <bool in_rows, class Key>
Span<Key> dense(Key *at, int64_t samples, int64_t values) {
    return in_rows ? Span<Key>{at, 1, values} : Span<Key>{at, samples, 1};
}

// Copies so many samples of `values` each. What lies side by side does so in both.
template <bool in_rows, class T>
void copy_samples(Span<const T> from, Span<T> to, int64_t samples, int64_t values) {
    if (in_rows) {
        for (int64_t s = 0; s < samples; ++s) memcpy(to.at + s * to.sample, from.at + s * from.sample, sizeof(T) * values);
    } else {
        for (int64_t w = 0; w < values; ++w) memcpy(to.at + w * to.wire, from.at + w * from.wire, sizeof(T) * samples);
    }
}

// Values and indices of those that lost their bits in keys: equal keys of -0 and 0, and of all NaN.
template <class Form, class Index>
NSC_APART void fetch_values(Span<const typename Form::Key> x, Span<typename Form::Key> values, const Index *indices, int64_t count) {
    for (int64_t s = 0; s < count; ++s) {
        for (int64_t o = 0; o < outputs; ++o) {
            const int64_t to = values.place(o, s);
            values.at[to] = x.at[x.place(int64_t(indices[to]), s)];
        }
    }
}

template <class Key>
NSC_STEP bool has_any(Vec<Key> flags) {
    const Vec<uint64_t> words = (Vec<uint64_t>)flags;
    uint64_t any = 0;
    NSC_UNROLL
    for (int64_t k = 0; k < lanes<uint64_t>; ++k) any |= words[k];
    return any != 0;
}

template <int width>
struct Width {
    static constexpr int value = width;
};

// Calls visit(first, width) for each tile of a row of `length` values: whole ones, then what is left.
template <class Key, int64_t length, class Visit>
NSC_STEP void for_each_tile(Visit visit) {
    constexpr int left = int(length % piece<Key>);
    for (int64_t first = 0; first + piece<Key> <= length; first += piece<Key>) visit(first, Width<piece<Key>>());
    if constexpr (left > 0) visit(length - left, Width<left>());
}

// Sorts a register's samples, whose values lie side by side.
template <class Form, class Index>
NSC_APART void sort_rows(Span<const typename Form::Key> x, Span<typename Form::Key> values, Index *indices, Vec<typename Form::Key> descending,
                         typename Form::Item *block) {
    using Key = typename Form::Key;
    using Place = typename Form::Place;
    // What the next samples read and write is fetched a tile at a time: a processor has few fetches under way.
    Vec<Key> lost{};
    for_each_tile<Key, wires>([&](int64_t first, auto width) NSC_INLINE {
        constexpr int columns = decltype(width)::value;
        Vec<Key> tile[piece<Key>];
        fetch_ahead<false>(x.at + lanes<Key> * (x.sample + first), lanes<Key> * columns * int64_t(sizeof(Key)));
        load_tile<Key, columns>(x.at + first, x.sample, tile);
        NSC_UNROLL
        for (int k = 0; k < columns; ++k) {
            typename Form::Item items[Form::halves];
            Form::enter(tile[k], first + k, descending, items, &lost);
            for (int h = 0; h < Form::halves; ++h) block[h * wires + first + k] = items[h];
        }
    });
    for (int h = 0; h < Form::halves; ++h) sort_block<Form>(block + h * wires);
    for_each_tile<Key, outputs>([&](int64_t first, auto width) NSC_INLINE {
        constexpr int columns = decltype(width)::value;
        Vec<Key> tile[piece<Key>];
        Vec<Place> places[piece<Key>];
        const int64_t next = lanes<Key> * (outputs + first);
        fetch_ahead<true>(values.at + next, lanes<Key> * columns * int64_t(sizeof(Key)));
        if (Form::has_places) fetch_ahead<true>(indices + next, lanes<Key> * columns * int64_t(sizeof(Index)));
        NSC_UNROLL
        for (int k = 0; k < piece<Key>; ++k) {
            const int64_t wire = output_wire(first + (k < columns ? k : 0));
            typename Form::Item items[Form::halves];
            for (int h = 0; h < Form::halves; ++h) items[h] = block[h * wires + wire];
            tile[k] = Form::leave(items, descending, &places[k]);
        }
        store_tile<Key, columns>(tile, values.at + first, values.sample);
        if constexpr (Form::has_places) {
            transpose_pieces<Place>(places);
            NSC_UNROLL
            for (int k = 0; k < piece<Key>; ++k) {
                Place row[lanes<Place>];
                memcpy(row, &places[k], sizeof row);
                NSC_UNROLL
                for (int p = 0; p < int(lanes<Place>) / piece<Key>; ++p) {
                    Index *to = indices + (p * piece<Key> + k) * values.sample + first;
                    Part<Place, 16> of_row;
                    memcpy(&of_row, row + p * piece<Key>, sizeof of_row);
                    if constexpr (columns == piece<Key>) {
                        store_indices<Index, Place, piece<Key>>(to, of_row);
                    } else {
                        Index all_of[piece<Key>];
                        store_indices<Index, Place, piece<Key>>(all_of, of_row);
                        memcpy(to, all_of, sizeof(Index) * columns);
                    }
                }
            }
        }
    });
    if constexpr (Form::has_places)
        if (__builtin_expect(has_any<Key>(lost), 0)) fetch_values<Form>(x, values, indices, lanes<Key>);
}

// Sorts `side` registers of samples that are neighbours in memory.
template <class Form, class Index, int side>
NSC_APART void sort_columns(Span<const typename Form::Key> x, Span<typename Form::Key> values, Index *indices, Vec<typename Form::Key> descending,
                            typename Form::Item *block) {
    using Key = typename Form::Key;
    using Place = typename Form::Place;
    constexpr int64_t ahead = 2 * side * lanes<Key>;  // where the samples are that come after the next
    Vec<Key> lost{};
    for (int64_t w = 0; w < wires; ++w) {
        const Key *row = x.at + w * x.wire;
        NSC_UNROLL
        for (int c = 0; c < side; ++c) {
            typename Form::Item items[Form::halves];
            Form::enter(load(row + c * lanes<Key>), w, descending, items, &lost);
            for (int h = 0; h < Form::halves; ++h) block[(c * Form::halves + h) * wires + w] = items[h];
        }
        fetch_ahead<false>(row + ahead, side * register_bytes);
    }
    for (int k = 0; k < side * Form::halves; ++k) sort_block<Form>(block + k * wires);
    for (int64_t o = 0; o < outputs; ++o) {
        const int64_t wire = output_wire(o);
        NSC_UNROLL
        for (int c = 0; c < side; ++c) {
            typename Form::Item items[Form::halves];
            Vec<Place> places{};
            for (int h = 0; h < Form::halves; ++h) items[h] = block[(c * Form::halves + h) * wires + wire];
            const int64_t to = o * values.wire + c * lanes<Key>;
            store(values.at + to, Form::leave(items, descending, &places));
            if constexpr (Form::has_places) store_indices<Index, Place, lanes<Place>>(indices + to, places);
        }
        fetch_ahead<true>(values.at + o * values.wire + ahead, side * register_bytes);
        if (Form::has_places) fetch_ahead<true>(indices + o * values.wire + ahead, side * lanes<Key> * int64_t(sizeof(Index)));
    }
    if constexpr (Form::has_places)
        if (__builtin_expect(has_any<Key>(lost), 0)) fetch_values<Form>(x, values, indices, side * lanes<Key>);
}

// ---------------------------------------------------------------------------------------- calls

// What is sorted: value w of sample s of slab t is x[t * slab + w * wire + s * sample]; of all groups of samples one of
// `parts` equal parts.
template <class Key>
struct Input {
    const Key *x;
    int64_t slabs, samples, slab, wire, sample, part, parts;
};

// The work on a register of samples, as many mixes take about as long.
constexpr int64_t work_of_register = 2 * comparators + 4 * wires;

// Runs sort(x, values, indices, block) for each group of `together` samples. Results are (slabs, samples, outputs) in
// rows, else (slabs, outputs, samples). A slab's last group, if it is not full, is sorted in memory of its own.
template <class Form, class Index, bool in_rows, int64_t together, class Sort>
Status for_each_group(const Input<typename Form::Key> &input, typename Form::Key *values, Index *indices, ParallelFor pool, Sort sort) {
    using Key = typename Form::Key;
    using Item = typename Form::Item;
    constexpr int64_t block_bytes = together / lanes<Key> * Form::halves * wires * int64_t(sizeof(Item));
    constexpr int64_t from_bytes = (together * wires * int64_t(sizeof(Key)) + 63) / 64 * 64, to_bytes = (together * outputs * int64_t(sizeof(Key)) + 63) / 64 * 64;
    constexpr int64_t index_bytes = together * outputs * int64_t(sizeof(Index));
    const int64_t groups = (input.samples + together - 1) / together;
    const int64_t begin = cut(input.slabs * groups, input.parts, input.part), end = cut(input.slabs * groups, input.parts, input.part + 1);
    return parallel(pool, end - begin, grain_of(work_of_register * (together / lanes<Key>)), block_bytes + from_bytes + to_bytes + index_bytes,
                    [&](int64_t task, const Memory &memory) {
        const int64_t group = begin + task, slab = group / groups, first = group % groups * together;
        const int64_t count = input.samples - first < together ? input.samples - first : together;
        const Span<const Key> x = {input.x + slab * input.slab + first * input.sample, input.wire, input.sample};
        Span<Key> to = dense<in_rows>(values, input.samples, outputs);
        const int64_t result = slab * outputs * input.samples + to.place(0, first);
        to.at += result;
        Index *places = indices + (indices ? result : 0);
        char *start = memory.get<char>();
        Item *block = reinterpret_cast<Item *>(start);
        if (count == together) return sort(x, to, places, block);
        const auto from = dense<in_rows>(reinterpret_cast<Key *>(start + block_bytes), together, wires);
        const auto sorted = dense<in_rows>(from.at + from_bytes / sizeof(Key), together, outputs);
        Index *sorted_places = reinterpret_cast<Index *>(start + block_bytes + from_bytes + to_bytes);
        memset(from.at, 0, from_bytes);
        copy_samples<in_rows, Key>(x, from, count, wires);
        sort(Span<const Key>(from), sorted, sorted_places, block);
        copy_samples<in_rows, Key>(sorted, to, count, outputs);
        if (indices) copy_samples<in_rows, Index>({sorted_places, sorted.wire, sorted.sample}, {places, to.wire, to.sample}, count, outputs);
    });
}

template <class Form, class Index>
Status sort_all(const Input<typename Form::Key> &input, bool descending, typename Form::Key *values, Index *indices, ParallelFor pool) {
    using Key = typename Form::Key;
    const int64_t results = input.slabs * input.samples * outputs;
    const Vec<Key> order = all<Key>(descending ? Key(-1) : Key(0));
    expect_writes(values, sizeof(Key) * results);
    if (indices) expect_writes(indices, sizeof(Index) * results);
    if (input.wire == 1)
        return for_each_group<Form, Index, true, lanes<Key>>(input, values, indices, pool, [&](auto x, auto to, Index *places, auto *block) {
            sort_rows<Form>(x, to, places, order, block);
        });
    constexpr int side = (Form::halves == 1 ? 8 : 4) * 32 / int(register_bytes);
    return for_each_group<Form, Index, false, side * lanes<Key>>(input, values, indices, pool, [&](auto x, auto to, Index *places, auto *block) {
        sort_columns<Form, Index, side>(x, to, places, order, block);
    });
}

}  // namespace

// ------------------------------------------------------------------------------------ the C ABI

#define NSC_API extern "C" __attribute__((visibility("default")))

// What this kernel is. The runtime compares it with what it asked for.
NSC_API const char *nsc_exact_facts() { return "{\"n\": 4, \"outputs\": null, \"network\": \"48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4\"}"; }

// Sorts `samples` of each of `slabs`, of these a part, see Input. index_bytes: 8, 4, or 0 for values alone. descending: 0
// or 1.
NSC_API int32_t nsc_exact_sort(const void *x, int64_t slabs, int64_t samples, int64_t slab, int64_t wire, int64_t sample, void *values,
                               void *indices, int32_t index_bytes, int32_t descending, void *pool, int64_t part, int64_t parts) {
    using Key = NSC_ELEMENT::Key;
    const Input<Key> input = {static_cast<const Key *>(x), slabs, samples, slab, wire, sample, part, parts};
    const ParallelFor threads = reinterpret_cast<ParallelFor>(pool);
    Key *to = static_cast<Key *>(values);
    switch (index_bytes) {
        case 0: return sort_all<Values<NSC_ELEMENT>, int64_t>(input, descending, to, nullptr, threads);
        case 4: return sort_all<Pairs<NSC_ELEMENT>>(input, descending, to, static_cast<int32_t *>(indices), threads);
        default: return sort_all<Pairs<NSC_ELEMENT>>(input, descending, to, static_cast<int64_t *>(indices), threads);
    }
}
