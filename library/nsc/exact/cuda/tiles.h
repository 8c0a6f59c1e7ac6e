// Tiles: samples in shared memory, a column each, between the input and the results.
#pragma once

#include <nsc/attributes.h>
#include <nsc/integers.h>

namespace nsc::cuda {

// The values to sort. Value w of sample s of slab t is x[t * slab + w * wire + s * sample]. With
// wire 1 the samples are rows that lie behind each other, slabs too; else they are columns.
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

// A tile has a column per sample, for `samples` samples from sample `first` on; `samples` is a
// power of two. `thread` is the number of the thread among the `threads` that fill the tile and
// read it. Rows are `pitch` items apart. If `pitch` is `samples` + 1, threads reach different banks
// along a column too.
template <class Item>
struct SampleTile {
    Item *items;
    int64_t first;
    int32_t samples, pitch, thread, threads;
    __device__ Item &at(int32_t wire, int32_t sample) const { return items[wire * pitch + sample]; }
    // How many samples of the tile exist, of `all` samples.
    __device__ int32_t there(int64_t all) const {
        return all - first < samples ? all < first ? 0 : int32_t(all - first) : samples;
    }
    // Calls visit(k, sample) for k < count of each sample that is there; neighbouring threads are
    // at neighbouring k in rows, else at neighbouring samples.
    template <class Visit>
    __device__ __forceinline__ void visit(int64_t all, int32_t count, bool in_rows,
                                          Visit visit) const {
        if (in_rows) {
            for (int32_t i = thread; i < there(all) * count; i += threads)
                visit(i % count, i / count);
        } else if (const int32_t sample = thread % samples; sample < there(all)) {
            for (int32_t k = thread / samples; k < count; k += threads / samples) visit(k, sample);
        }
    }
};

// Keys that lie side by side, read at a time.
template <class Key>
struct alignas(16) KeyPack {
    static constexpr int32_t keys = 16 / sizeof(Key);
    Key at[keys];
};

// Calls use(i, fetch(i)) for each i < end of a thread: `thread`, and each `threads` further.
// Several are fetched before the first is used, since each takes the time of a read from memory.
// All threads of a warp call it.
template <int32_t at_a_time, class Fetch, class Use>
NSC_STEP void for_each_fetched(int32_t thread, int32_t threads, int32_t end, Fetch fetch, Use use) {
    NSC_NO_UNROLL
    for (int32_t turn = 0; turn < end; turn += at_a_time * threads) {
        decltype(fetch(0)) fetched[at_a_time];
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k)
            if (const int32_t i = turn + thread + k * threads; i < end) fetched[k] = fetch(i);
        // Else the compiler uses each before it asks for the next.
        __syncwarp();
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k)
            if (const int32_t i = turn + thread + k * threads; i < end) use(i, fetched[k]);
    }
}

template <class Network, class Form>
NSC_STEP void enter(const Input<typename Form::Key> &input, typename Form::Key descending,
                    const SampleTile<typename Form::Item> &tile) {
    using Key = typename Form::Key;
    constexpr int32_t wires = Network::wires, keys = KeyPack<Key>::keys;
    // As many packs as a thread has in a tile of a warp. More packs of short keys would take all
    // registers.
    constexpr int32_t packs_of_thread = (wires + keys - 1) / keys, most = keys > 4 ? 32 / keys : 8;
    constexpr int32_t at_a_time = packs_of_thread < most ? packs_of_thread : most;
    const int32_t there = tile.there(input.slabs * input.samples);
    if (input.wire == 1) {
        const Key *from = input.x + tile.first * wires;
        const auto put = [&](int32_t i, Key bits) {
            tile.at(i % wires, i / wires) = Form::enter(bits, i % wires, descending);
        };
        const bool aligned = reinterpret_cast<uint64_t>(from) % sizeof(KeyPack<Key>) == 0;
        const int32_t count = there * wires, packs = aligned ? count / keys : 0;
        for_each_fetched<at_a_time>(tile.thread, tile.threads, packs, [&](int32_t i) {
            return reinterpret_cast<const KeyPack<Key> *>(from)[i];
        }, [&](int32_t i, const KeyPack<Key> &pack) {
            for (int32_t k = 0; k < keys; ++k) put(i * keys + k, pack.at[k]);
        });
        for_each_fetched<8>(tile.thread, tile.threads, count - packs * keys, [&](int32_t i) {
            return from[packs * keys + i];
        }, [&](int32_t i, Key bits) { put(packs * keys + i, bits); });
    } else {
        const int32_t sample = tile.thread % tile.samples;
        const bool is_there = sample < there;  // else the thread reads the first of all samples
        const Key *from = input.x + (is_there ? input.start_of(tile.first + sample) : 0);
        for_each_fetched<16>(tile.thread / tile.samples, tile.threads / tile.samples, wires,
                             [&](int32_t wire) { return from[wire * input.wire]; },
                             [&](int32_t wire, Key bits) {
            if (is_there) tile.at(wire, sample) = Form::enter(bits, wire, descending);
        });
    }
}

template <class Network, class Form>
NSC_STEP void leave(const Input<typename Form::Key> &input, typename Form::Key descending,
                    const SampleTile<typename Form::Item> &tile,
                    const Results<typename Form::Key> &to) {
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
            // A key that several values share does not tell which value it stands for.
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

}  // namespace nsc::cuda
