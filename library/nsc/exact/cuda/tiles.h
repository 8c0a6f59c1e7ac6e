// Tiles: samples in shared memory, a column each, between the input and the results.
#pragma once

#include <nsc/attributes.h>
#include <nsc/integers.h>

namespace nsc {

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

// A tile has a column for each of `samples` samples, a power of two; `first` is
// the first of them. `thread` is the number of the thread among the `threads` that fill the tile
// and read it. Rows are `pitch` items apart: with one more than the samples, threads reach
// different banks along a column too.
template <class Item>
struct Tile {
    Item *items;
    int64_t first;
    int32_t samples, pitch, thread, threads;
    __device__ Item &at(int32_t wire, int32_t sample) const { return items[wire * pitch + sample]; }
    // Whether a sample of the tile is one of all.
    __device__ bool has(int64_t all, int32_t sample) const { return first + sample < all; }
    // Calls visit(k, sample) for k < count of each sample that is there; neighbouring threads are
    // at neighbouring k in rows, else at neighbouring samples.
    template <class Visit>
    __device__ __forceinline__ void visit(int64_t all, int32_t count, bool in_rows,
                                          Visit visit) const {
        const int32_t there =
            all - first < samples ? all < first ? 0 : int32_t(all - first) : samples;
        if (in_rows) {
            for (int32_t i = thread; i < there * count; i += threads) visit(i % count, i / count);
        } else if (const int32_t sample = thread % samples; sample < there) {
            for (int32_t k = thread / samples; k < count; k += threads / samples) visit(k, sample);
        }
    }
};

template <class Network, class Form>
NSC_STEP void enter(const Input<typename Form::Key> &input, typename Form::Key descending,
                    const Tile<typename Form::Item> &tile) {
    tile.visit(input.slabs * input.samples, Network::wires, input.wire == 1,
               [&](int32_t wire, int32_t sample) {
        const auto bits = input.x[input.start_of(tile.first + sample) + wire * input.wire];
        tile.at(wire, sample) = Form::enter(bits, wire, descending);
    });
}

template <class Network, class Form>
NSC_STEP void leave(const Input<typename Form::Key> &input, typename Form::Key descending,
                    const Tile<typename Form::Item> &tile, const Results<typename Form::Key> &to) {
    constexpr int32_t outputs = Network::outputs;
    const bool in_rows = input.wire == 1;
    tile.visit(input.slabs * input.samples, outputs, in_rows, [&](int32_t output, int32_t sample) {
        const auto item = tile.at(Network::output_wire(output), sample);
        const int64_t each = tile.first + sample, slab = in_rows ? each : each / input.samples;
        const int64_t at = in_rows
                               ? each * outputs + output
                               : (slab * outputs + output) * input.samples + each % input.samples;
        auto bits = Form::leave(item, descending);
        if constexpr (Form::has_indices) {
            // A key that is of several values does not tell which.
            if (Form::is_shared(item, descending))
                bits = input.x[input.start_of(each) + Form::index(item) * input.wire];
            if (to.index_bytes == 8)
                static_cast<int64_t *>(to.indices)[at] = Form::index(item);
            else
                static_cast<int32_t *>(to.indices)[at] = Form::index(item);
        }
        to.values[at] = bits;
    });
}

}  // namespace nsc
