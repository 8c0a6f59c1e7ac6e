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

// A tile in shared memory has a column for each of `samples` samples, a power of two; `first` is
// the first of them. `thread` is the thread's place among the `threads` that fill the tile and read
// it. Rows are `pitch` items apart: with one more than the samples, threads reach different banks
// along a column too.
template <class Item>
struct Tile {
    Item *items;
    int64_t first;
    int32_t samples, pitch, thread, threads;
    __device__ Item &at(int32_t wire, int32_t sample) const { return items[wire * pitch + sample]; }
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

template <class Form, class Tile>
NSC_STEP void enter(const Input<typename Form::Key> &input, typename Form::Key descending,
                    Tile tile) {
    tile.visit(input.slabs * input.samples, wires, input.wire == 1,
               [&](int32_t wire, int32_t sample) {
        const auto bits = input.x[input.start_of(tile.first + sample) + wire * input.wire];
        tile.at(wire, sample) = Form::enter(bits, wire, descending);
    });
}

template <class Form, class Tile>
NSC_STEP void leave(const Input<typename Form::Key> &input, typename Form::Key descending,
                    Tile tile, const Results<typename Form::Key> &to) {
    const bool in_rows = input.wire == 1;
    tile.visit(input.slabs * input.samples, outputs, in_rows, [&](int32_t output, int32_t sample) {
        const auto item = tile.at(output_wires[output], sample);
        const int64_t each = tile.first + sample, slab = in_rows ? each : each / input.samples;
        const int64_t at = in_rows
                               ? each * outputs + output
                               : (slab * outputs + output) * input.samples + each % input.samples;
        auto bits = Form::leave(item, descending);
        if constexpr (Form::has_places) {
            // A key that is of several values does not tell which.
            if (Form::is_shared(item, descending))
                bits = input.x[input.start_of(each) + Form::place(item) * input.wire];
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
NSC_STEP void sort_apart(const Input<typename Form::Key> &input, typename Form::Key descending,
                         const Results<typename Form::Key> &to) {
    using Item = typename Form::Item;
    constexpr int32_t pitch = warp_threads + 1;
    const int32_t lane = int32_t(threadIdx.x) % warp_threads;
    Item *items =
        reinterpret_cast<Item *>(shared_memory) + threadIdx.x / warp_threads * wires * pitch;
    const Tile<Item> tile = {items,        int64_t(blockIdx.x) * blockDim.x + threadIdx.x - lane,
                             warp_threads, pitch,
                             lane,         warp_threads};
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
NSC_STEP void sort_together(const Input<typename Form::Key> &input, typename Form::Key descending,
                            int32_t samples, const Results<typename Form::Key> &to) {
    using Item = typename Form::Item;
    Item *items = reinterpret_cast<Item *>(shared_memory);
    const Tile<Item> tile = {items,   int64_t(blockIdx.x) * samples, samples,
                             samples, int32_t(threadIdx.x),          int32_t(blockDim.x)};
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
NSC_STEP void sort_all(const Input<typename Form::Key> &input, int32_t descending, int32_t together,
                       const Results<typename Form::Key> &to) {
    using Key = typename Form::Key;
    const Key order = descending ? Key(-1) : Key(0);
    if constexpr (is_straight)
        sort_apart<Form>(input, order, to);
    else
        sort_together<Form>(input, order, together, to);
}
