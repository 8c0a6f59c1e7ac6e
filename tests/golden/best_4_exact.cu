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

#include <nsc/elements.h>

// The block's memory, as much as the launch asks for.
extern __shared__ __align__(16) unsigned char shared_memory[];

namespace {

using namespace nsc;

constexpr int32_t wires = 4, layers = 3, outputs = 4;

// The wire of each output.
__device__ const uint16_t output_wires[] = {
    0, 1, 2, 3,
};

[exact/items.cu]

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

[exact/tiles.cu]

}  // namespace

// ----------------------------------------------------------------------------------- the kernels

// What these kernels are. The runtime compares it with what it asked for.
extern "C" __device__ const char nsc_facts[] = "{\"n\": 4, \"outputs\": null, \"network\": \"48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4\"}";

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
