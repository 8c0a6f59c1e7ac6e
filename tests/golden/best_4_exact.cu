// best_4_exact: exact sorting of 4 values, for numbers of any type, on a GPU.
//
// nsc:     0
// Network: 4 wires, 5 comparators, 3 layers, sha256 48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4
// Proof:   sorts every input, by exhaustion: all 2^4 0-1 inputs come out sorted
//
// A tile in shared memory has a column for each of some samples. Values become keys, whole numbers in their order; a
// comparator is a minimum and a maximum. With indices a key and its place are one item, so that ties keep their order. -0
// is less than 0 where no indices are wanted, and equal to it where they are; NaN is more than all numbers.
//
// The kernels are built for the type NSC_ELEMENT, one of those below.

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <math.h>
#include <stdint.h>
#endif

#define NSC_STEP __device__ __forceinline__

// The block's memory, as much as the launch asks for.
extern __shared__ __align__(16) unsigned char shared_memory[];

namespace {

constexpr int32_t wires = 4, layers = 3, outputs = 4;

// The wire of each output.
__device__ const uint16_t output_wires[] = {
    0, 1, 2, 3,
};

// --------------------------------------------------------------------------------------- lanes

// A thread computes one number where a processor's register would hold many.
template <class T>
using Vec = T;

template <class T>
__device__ inline T all(T value) {
    return value;
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

// --------------------------------------------------------------------------------------- items

// A form says what is sorted. enter() makes an item of a value's bits and its place; leave() turns it to the bits again,
// and place() to the place; order() is a comparator.

// Items of less than 32 bits would be made wider for each comparison.
template <class Key, bool is_narrow = (sizeof(Key) < 4)>
struct WideOf {
    using type = Key;
};
template <class Key>
struct WideOf<Key, true> {
    using type = int32_t;
};

template <class Item>
NSC_STEP void order_items(Item &a, Item &b) {
    const bool is_wrong = b < a;
    const Item first = is_wrong ? b : a, second = is_wrong ? a : b;
    a = first, b = second;
}

// Values alone.
template <class Element>
struct Values {
    using Key = typename Element::Key;
    using Item = typename WideOf<Key>::type;
    static constexpr bool has_places = false;
    NSC_STEP static Item enter(Key bits, int32_t, Key descending) { return Element::key(bits, descending); }
    NSC_STEP static Key leave(Item item, Key descending) { return Element::bits(Key(item), descending); }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};

// Whole numbers of `bytes` with a sign, and those that hold them and a place.
template <int bytes>
struct Wholes;
template <>
struct Wholes<1> {
    using Signed = int8_t;
    using Word = int32_t;
};
template <>
struct Wholes<2> {
    using Signed = int16_t;
    using Word = int32_t;
};
template <>
struct Wholes<4> {
    using Signed = int32_t;
    using Word = int64_t;
};

// A word has the key in its higher half and the place in its lower one: equal keys are ordered by their places.
template <class Element, int bytes = int(sizeof(typename Element::Key))>
struct Pairs {
    using Key = typename Element::Key;
    using Signed = typename Wholes<bytes>::Signed;
    using Item = typename Wholes<bytes>::Word;
    static constexpr bool has_places = true;
    static constexpr Item places = Item(1) << (4 * sizeof(Item));
    NSC_STEP static Item enter(Key bits, int32_t place, Key descending) {
        Key lost = 0;
        return Item(Signed(as_signed<Key>(Element::key_of_place(bits, descending, &lost)))) * places + place;
    }
    NSC_STEP static int32_t place(Item item) { return int32_t(item & (places - 1)); }
    NSC_STEP static Key key(Item item) { return as_signed<Key>(Key(item >> (4 * sizeof(Item)))); }
    NSC_STEP static Key leave(Item item, Key descending) { return Element::bits(key(item), descending); }
    NSC_STEP static bool is_shared(Item item, Key descending) { return Element::is_shared(key(item), descending); }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};

template <class Element>
struct Pairs<Element, 8> {
    using Key = typename Element::Key;
    struct alignas(16) Item {
        __device__ bool operator<(const Item &other) const { return (key < other.key) | ((key == other.key) & (place < other.place)); }
        Key key;
        int32_t place;
    };
    static constexpr bool has_places = true;
    NSC_STEP static Item enter(Key bits, int32_t place, Key descending) {
        Key lost = 0;
        return {Element::key_of_place(bits, descending, &lost), place};
    }
    NSC_STEP static int32_t place(Item item) { return item.place; }
    NSC_STEP static Key leave(Item item, Key descending) { return Element::bits(item.key, descending); }
    NSC_STEP static bool is_shared(Item item, Key descending) { return Element::is_shared(item.key, descending); }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};

// -------------------------------------------------------------------------------------- network

// The comparators (lo, hi), and the end of each layer.
struct Pair {
    uint16_t lo, hi;
};

__device__ const Pair pairs[] = {
    {0, 2}, {1, 3}, {0, 1}, {2, 3}, {1, 2}, {},
};

__device__ const int32_t layer_ends[] = {
    2, 4, 5, 0,
};

// The same as code, in pieces. A piece loads a wire before its first comparator there, and stores it after the last if it
// is needed behind the piece.
template <class Form, class Column>
NSC_STEP void run_piece_0(Column r) {
    using Item = typename Form::Item;
    const auto c = [](Item &lo, Item &hi) { Form::order(lo, hi); };
    Item w0 = r[0], w2 = r[2]; c(w0, w2); Item w1 = r[1], w3 = r[3]; c(w1, w3); c(w0, w1); r[0] = w0; c(w2, w3);
    r[3] = w3; c(w1, w2); r[1] = w1; r[2] = w2;
}

// Runs them on a thread's own column. NSC_STRAIGHT_VALUES and NSC_STRAIGHT_PAIRS tell where that is done.
template <class Form, class Column>
NSC_STEP void sort_column(Column r) {
    run_piece_0<Form>(r);
}

// --------------------------------------------------------------------------------------- tiles

constexpr int32_t warp_threads = 32, most_threads = 256;

// What is sorted: value w of sample s of slab t is x[t * slab + w * wire + s * sample].
template <class Key>
struct Input {
    const Key *x;
    int64_t slabs, samples, slab, wire, sample;
    __device__ int64_t start_of(int64_t each) const {
        return slabs == 1 ? each * sample : each / samples * slab + each % samples * sample;
    }
};

// Results are (slabs, samples, outputs) in rows, else (slabs, outputs, samples).
template <class Key>
struct Results {
    Key *values;
    void *indices;
    int32_t index_bytes;
};

// A tile in shared memory has a column for each of `samples` samples, a power of two; `first` is the first of them.
// `thread` is the thread's place among the `threads` that fill the tile and read it. Rows are `pitch` items apart: with
// one more than the samples, threads reach different banks along a column too.
template <class Item>
struct Tile {
    Item *items;
    int64_t first;
    int32_t samples, pitch, thread, threads;
    __device__ Item &at(int32_t wire, int32_t sample) const { return items[wire * pitch + sample]; }
    // Calls visit(k, sample) for k < count of each sample that is there; neighbouring threads are at neighbouring k
    // in rows, else at neighbouring samples.
    template <class Visit>
    __device__ __forceinline__ void visit(int64_t all, int32_t count, bool in_rows, Visit visit) const {
        const int32_t there = all - first < samples ? all < first ? 0 : int32_t(all - first) : samples;
        if (in_rows) {
            for (int32_t i = thread; i < there * count; i += threads) visit(i % count, i / count);
        } else if (const int32_t sample = thread % samples; sample < there) {
            for (int32_t k = thread / samples; k < count; k += threads / samples) visit(k, sample);
        }
    }
};

template <class Form, class Tile>
NSC_STEP void enter(const Input<typename Form::Key> &input, typename Form::Key descending, Tile tile) {
    tile.visit(input.slabs * input.samples, wires, input.wire == 1, [&](int32_t wire, int32_t sample) {
        const auto bits = input.x[input.start_of(tile.first + sample) + wire * input.wire];
        tile.at(wire, sample) = Form::enter(bits, wire, descending);
    });
}

template <class Form, class Tile>
NSC_STEP void leave(const Input<typename Form::Key> &input, typename Form::Key descending, Tile tile, const Results<typename Form::Key> &to) {
    const bool in_rows = input.wire == 1;
    tile.visit(input.slabs * input.samples, outputs, in_rows, [&](int32_t output, int32_t sample) {
        const auto item = tile.at(output_wires[output], sample);
        const int64_t each = tile.first + sample, slab = in_rows ? each : each / input.samples;
        const int64_t at = in_rows ? each * outputs + output : (slab * outputs + output) * input.samples + each % input.samples;
        auto bits = Form::leave(item, descending);
        if constexpr (Form::has_places) {
            // A key that is of several values does not tell which.
            if (Form::is_shared(item, descending)) bits = input.x[input.start_of(each) + Form::place(item) * input.wire];
            if (to.index_bytes == 8)
                static_cast<int64_t *>(to.indices)[at] = Form::place(item);
            else
                static_cast<int32_t *>(to.indices)[at] = Form::place(item);
        }
        to.values[at] = bits;
    });
}

// A thread sorts a sample of its own; a warp has a tile.
template <class Form>
NSC_STEP void sort_apart(const Input<typename Form::Key> &input, typename Form::Key descending, const Results<typename Form::Key> &to) {
    using Item = typename Form::Item;
    constexpr int32_t pitch = warp_threads + 1;
    const int32_t lane = int32_t(threadIdx.x) % warp_threads;
    Item *items = reinterpret_cast<Item *>(shared_memory) + threadIdx.x / warp_threads * wires * pitch;
    const Tile<Item> tile = {items, int64_t(blockIdx.x) * blockDim.x + threadIdx.x - lane, warp_threads, pitch, lane, warp_threads};
    enter<Form>(input, descending, tile);
    __syncwarp();
    struct Column {
        Item *at;
        __device__ Item &operator[](int32_t wire) const { return at[wire * pitch]; }
    };
    sort_column<Form>(Column{items + lane});
    __syncwarp();
    leave<Form>(input, descending, tile, to);
}

// The threads of a block share some samples, and wait for each other after each layer.
template <class Form>
NSC_STEP void sort_together(const Input<typename Form::Key> &input, typename Form::Key descending, int32_t samples, const Results<typename Form::Key> &to) {
    using Item = typename Form::Item;
    Item *items = reinterpret_cast<Item *>(shared_memory);
    const Tile<Item> tile = {items, int64_t(blockIdx.x) * samples, samples, samples, int32_t(threadIdx.x), int32_t(blockDim.x)};
    enter<Form>(input, descending, tile);
    const int32_t sample = tile.thread % samples;
    int32_t begin = 0;
    for (int32_t layer = 0; layer < layers; ++layer) {
        __syncthreads();
        const int32_t end = layer_ends[layer];
        for (int32_t k = begin + tile.thread / samples; k < end; k += tile.threads / samples)
            Form::order(tile.at(pairs[k].lo, sample), tile.at(pairs[k].hi, sample));
        begin = end;
    }
    __syncthreads();
    leave<Form>(input, descending, tile, to);
}

template <class Form, bool is_straight>
NSC_STEP void sort_all(const Input<typename Form::Key> &input, int32_t descending, int32_t together, const Results<typename Form::Key> &to) {
    using Key = typename Form::Key;
    const Key order = descending ? Key(-1) : Key(0);
    if constexpr (is_straight)
        sort_apart<Form>(input, order, to);
    else
        sort_together<Form>(input, order, together, to);
}

}  // namespace

// ----------------------------------------------------------------------------------- the kernels

// What these kernels are. The runtime compares it with what it asked for.
extern "C" __device__ const char nsc_exact_facts[] = "{\"n\": 4, \"outputs\": null, \"network\": \"48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4\"}";

// Sort each of `samples` of each of `slabs`, see Input. descending: 0 or 1. together: samples that a block's threads
// share, a power of two that divides their number. index_bytes: 8 or 4.
extern "C" __global__ void __launch_bounds__(most_threads) nsc_exact_values(
    const NSC_ELEMENT::Key *__restrict__ x, int64_t slabs, int64_t samples, int64_t slab, int64_t wire, int64_t sample,
    int32_t descending, int32_t together, NSC_ELEMENT::Key *__restrict__ values) {
    sort_all<Values<NSC_ELEMENT>, NSC_STRAIGHT_VALUES>({x, slabs, samples, slab, wire, sample}, descending, together, {values, nullptr, 0});
}

extern "C" __global__ void __launch_bounds__(most_threads) nsc_exact_pairs(
    const NSC_ELEMENT::Key *__restrict__ x, int64_t slabs, int64_t samples, int64_t slab, int64_t wire, int64_t sample,
    int32_t descending, int32_t together, NSC_ELEMENT::Key *__restrict__ values, void *__restrict__ indices, int32_t index_bytes) {
    sort_all<Pairs<NSC_ELEMENT>, NSC_STRAIGHT_PAIRS>({x, slabs, samples, slab, wire, sample}, descending, together, {values, indices, index_bytes});
}
