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

#include <nsc/elements.h>
#include <nsc/threads.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "keys and places are joined in the order of bytes that little-endian processors have"
#endif

namespace {

using namespace nsc;

constexpr int64_t wires = 4, comparators = 5, outputs = 4;

// The wire of each output.
constexpr uint16_t output_wires[] = {
    0, 1, 2, 3,
};

constexpr int64_t output_wire(int64_t output) { return output_wires[output]; }

[exact/tiles.cpp]

[exact/forms.cpp]

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

[exact/groups.cpp]

[exact/call.cpp]

}  // namespace

// ------------------------------------------------------------------------------------ the C ABI

#define NSC_API extern "C" __attribute__((visibility("default")))

// What this kernel is. The runtime compares it with what it asked for.
NSC_API const char *nsc_facts() { return "{\"n\": 4, \"outputs\": null, \"network\": \"48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4\"}"; }

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
