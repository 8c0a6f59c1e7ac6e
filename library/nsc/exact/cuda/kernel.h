// The functions of an exact kernel in CUDA: a network, run by this library on values of one type.
//
// Values become keys, integers in their order; a comparator is a minimum and a maximum. With
// indices a key and its index are one item, so that ties keep their order. -0 is less than 0 where
// no indices are wanted, and equal to it where they are; NaN is more than all numbers.
#pragma once

#include <nsc/cuda/shared_memory.h>
#include <nsc/exact/cuda/forms.h>
#include <nsc/exact/cuda/tiles.h>
#include <nsc/exact/network.h>

namespace nsc::cuda {

constexpr int32_t warp_threads = 32, most_threads = 256;

// A thread sorts a sample of its own; a warp has a tile.
template <class Network, class Form>
NSC_STEP void sort_by_threads(const Input<typename Form::Key> &input, typename Form::Key descending,
                              const Results<typename Form::Key> &to) {
    using Item = typename Form::Item;
    constexpr int32_t pitch = warp_threads + 1;
    const int32_t lane = int32_t(threadIdx.x) % warp_threads;
    Item *items = reinterpret_cast<Item *>(shared_memory) +
                  threadIdx.x / warp_threads * Network::wires * pitch;
    const SampleTile<Item> tile = {
        items,        int64_t(blockIdx.x) * blockDim.x + threadIdx.x - lane,
        warp_threads, pitch,
        lane,         warp_threads};
    enter<Network, Form>(input, descending, tile);
    __syncwarp();
    struct Column {
        Item *at;
        __device__ Item &operator[](int32_t wire) const { return at[wire * pitch]; }
        __device__ Column operator+(int32_t wires) const { return {at + wires * pitch}; }
    };
    if (lane < tile.there(input.slabs * input.samples))
        Network::template run<Form>(Column{items + lane});
    __syncwarp();
    leave<Network, Form>(input, descending, tile, to);
}

// The threads of a block share some samples, and wait for each other after each layer.
template <class Network, class Form>
NSC_STEP void sort_by_blocks(const Input<typename Form::Key> &input, typename Form::Key descending,
                             int32_t samples, const Results<typename Form::Key> &to) {
    using Item = typename Form::Item;
    Item *items = reinterpret_cast<Item *>(shared_memory);
    const SampleTile<Item> tile = {items,   int64_t(blockIdx.x) * samples, samples,
                                   samples, int32_t(threadIdx.x),          int32_t(blockDim.x)};
    enter<Network, Form>(input, descending, tile);
    const int32_t sample = tile.thread % samples;
    const bool is_there = sample < tile.there(input.slabs * input.samples);
    int32_t begin = 0;
    for (int32_t layer = 0; layer < Network::layers; ++layer) {
        __syncthreads();
        const int32_t end = Network::layer_end(layer);
        for (int32_t k = begin + tile.thread / samples; is_there && k < end;
             k += tile.threads / samples)
            Form::order(tile.at(Network::pair(k).lo, sample), tile.at(Network::pair(k).hi, sample));
        begin = end;
    }
    __syncthreads();
    leave<Network, Form>(input, descending, tile, to);
}

template <class Network, class Form, bool is_straight>
NSC_STEP void sort_all(const Input<typename Form::Key> &input, int32_t descending,
                       int32_t samples_per_block, const Results<typename Form::Key> &to) {
    using Key = typename Form::Key;
    const Key order = descending ? Key(-1) : Key(0);
    static_assert(!is_straight || Network::is_straight, "the network has no straight-line code");
    if constexpr (is_straight)
        sort_by_threads<Network, Form>(input, order, to);
    else
        sort_by_blocks<Network, Form>(input, order, samples_per_block, to);
}

}  // namespace nsc::cuda

// Defines the functions for values of a type. They sort `samples` samples in every one of `slabs`
// slabs, see Input.
//
//     descending         0 or 1;
//     samples_per_block  samples that a block's threads share, a power of two that divides the
//                        number of threads;
//     index_bytes        8 or 4.
//
// NSC_STRAIGHT_VALUES and NSC_STRAIGHT_PAIRS say whether a function runs straight-line code.
#define NSC_EXACT_KERNEL(Network, Element)                                                    \
    extern "C" __global__ void __launch_bounds__(nsc::cuda::most_threads)                     \
        nsc_exact_values(const Element::Key *__restrict__ x, int64_t slabs, int64_t samples,  \
                         int64_t slab, int64_t wire, int64_t sample, int32_t descending,      \
                         int32_t samples_per_block, Element::Key *__restrict__ values) {      \
        nsc::cuda::sort_all<Network, nsc::cuda::Values<Element>, NSC_STRAIGHT_VALUES>(        \
            {x, slabs, samples, slab, wire, sample}, descending, samples_per_block,           \
            {values, nullptr, 0});                                                            \
    }                                                                                         \
    extern "C" __global__ void __launch_bounds__(nsc::cuda::most_threads) nsc_exact_pairs(    \
        const Element::Key *__restrict__ x, int64_t slabs, int64_t samples, int64_t slab,     \
        int64_t wire, int64_t sample, int32_t descending, int32_t samples_per_block,          \
        Element::Key *__restrict__ values, void *__restrict__ indices, int32_t index_bytes) { \
        nsc::cuda::sort_all<Network, nsc::cuda::IndexedValues<Element>, NSC_STRAIGHT_PAIRS>(  \
            {x, slabs, samples, slab, wire, sample}, descending, samples_per_block,           \
            {values, indices, index_bytes});                                                  \
    }
