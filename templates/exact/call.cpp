// ---------------------------------------------------------------------------------------- calls

// What is sorted: value w of sample s of slab t is x[t * slab + w * wire + s * sample]. Results are
// (slabs, samples, outputs) where a sample's values lie side by side, else (slabs, outputs, samples).
template <class Key>
struct Input {
    const Key *x;
    int64_t slabs, samples, slab, wire, sample;
    bool lies_in_rows() const { return wire == 1; }
};

// The work on a register of samples, as many mixes take about as long.
constexpr int64_t work_of_register = 2 * comparators + 4 * wires;

// Runs sort(x, values, indices, block) for each group of `together` samples. The last group of a slab, if it is not
// full, is sorted in memory of its own.
template <class Form, class Index, int64_t together, class Sort>
Status for_each_group(const Input<typename Form::Key> &input, typename Form::Key *values, Index *indices, ParallelFor pool, Sort sort) {
    using Key = typename Form::Key;
    constexpr int64_t blocks = together / lanes<Key> * Form::halves * wires;
    constexpr int64_t block_bytes = blocks * int64_t(sizeof(typename Form::Item)), from_bytes = (together * wires * int64_t(sizeof(Key)) + 63) / 64 * 64;
    constexpr int64_t to_bytes = (together * outputs * int64_t(sizeof(Key)) + 63) / 64 * 64, index_bytes = together * outputs * int64_t(sizeof(Index));
    const bool in_rows = input.lies_in_rows();
    const int64_t groups = (input.samples + together - 1) / together;
    return parallel(pool, input.slabs * groups, grain_of(work_of_register * (together / lanes<Key>)), block_bytes + from_bytes + to_bytes + index_bytes,
                    [&](int64_t task, const Memory &memory) {
        const int64_t slab = task / groups, first = task % groups * together;
        const int64_t count = input.samples - first < together ? input.samples - first : together;
        const int64_t wire = in_rows ? 1 : input.samples, sample = in_rows ? outputs : 1, result = slab * outputs * input.samples + first * sample;
        char *start = memory.get<char>();
        auto *block = reinterpret_cast<typename Form::Item *>(start);
        const Span<const Key> x = {input.x + slab * input.slab + first * input.sample, input.wire, input.sample};
        const Span<Key> to = {values + result, wire, sample};
        if (count == together) return sort(x, to, indices + (indices ? result : 0), block);
        Key *from = reinterpret_cast<Key *>(start + block_bytes), *sorted = from + from_bytes / sizeof(Key);
        Index *places = reinterpret_cast<Index *>(start + block_bytes + from_bytes + to_bytes);
        const Span<Key> copy = {from, in_rows ? 1 : together, in_rows ? wires : 1}, results = {sorted, in_rows ? 1 : together, sample};
        for (int64_t s = 0; s < together; ++s)
            for (int64_t w = 0; w < wires; ++w) copy.at[w * copy.wire + s * copy.sample] = s < count ? x.at[w * x.wire + s * x.sample] : Key{};
        sort(Span<const Key>{copy.at, copy.wire, copy.sample}, results, places, block);
        for (int64_t s = 0; s < count; ++s) {
            for (int64_t o = 0; o < outputs; ++o) {
                to.at[o * to.wire + s * to.sample] = sorted[o * results.wire + s * results.sample];
                if (indices) indices[result + o * to.wire + s * to.sample] = places[o * results.wire + s * results.sample];
            }
        }
    });
}

template <class Form, class Index>
Status sort_all(const Input<typename Form::Key> &input, bool descending, typename Form::Key *values, Index *indices, ParallelFor pool) {
    using Key = typename Form::Key;
    const int64_t results = input.slabs * input.samples * outputs;
    const Vec<Key> order = all<Key>(descending ? Key(-1) : Key(0));
    expect_writes(values, sizeof(Key) * results);
    if (indices) expect_writes(indices, sizeof(Index) * results);
    if (input.lies_in_rows())
        return for_each_group<Form, Index, lanes<Key>>(input, values, indices, pool, [&](auto x, auto to, Index *places, auto *block) {
            sort_rows<Form>(x, to, places, order, block);
        });
    constexpr int side = (Form::halves == 1 ? 8 : 4) * 32 / int(register_bytes);
    return for_each_group<Form, Index, side * lanes<Key>>(input, values, indices, pool, [&](auto x, auto to, Index *places, auto *block) {
        sort_columns<Form, Index, side>(x, to, places, order, block);
    });
}
