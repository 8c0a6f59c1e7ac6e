// ---------------------------------------------------------------------------------------- calls

// What is sorted: value w of sample s of slab t is x[t * slab + w * wire + s * sample]; of all
// groups of samples one of `parts` equal parts.
template <class Key>
struct Input {
    const Key *x;
    int64_t slabs, samples, slab, wire, sample, part, parts;
};

// The work on a register of samples, as many mixes take about as long.
constexpr int64_t work_of_register = 2 * comparators + 4 * wires;

// Runs sort(x, values, indices, block) for each group of `together` samples. Results are (slabs,
// samples, outputs) in rows, else (slabs, outputs, samples). A slab's last group, if it is not
// full, is sorted in memory of its own.
template <class Form, class Index, bool in_rows, int64_t together, class Sort>
Status for_each_group(const Input<typename Form::Key> &input, typename Form::Key *values,
                      Index *indices, ParallelFor pool, Sort sort) {
    using Key = typename Form::Key;
    using Item = typename Form::Item;
    constexpr int64_t block_bytes =
        together / lanes<Key> * Form::halves * wires * int64_t(sizeof(Item));
    constexpr int64_t from_bytes = (together * wires * int64_t(sizeof(Key)) + 63) / 64 * 64,
                      to_bytes = (together * outputs * int64_t(sizeof(Key)) + 63) / 64 * 64;
    constexpr int64_t index_bytes = together * outputs * int64_t(sizeof(Index));
    const int64_t groups = (input.samples + together - 1) / together;
    const int64_t begin = cut(input.slabs * groups, input.parts, input.part),
                  end = cut(input.slabs * groups, input.parts, input.part + 1);
    return parallel(pool, end - begin, grain_of(work_of_register * (together / lanes<Key>)),
                    block_bytes + from_bytes + to_bytes + index_bytes,
                    [&](int64_t task, const Memory &memory) {
        const int64_t group = begin + task, slab = group / groups,
                      first = group % groups * together;
        const int64_t count = input.samples - first < together ? input.samples - first : together;
        const Span<const Key> x = {input.x + slab * input.slab + first * input.sample, input.wire,
                                   input.sample};
        Span<Key> to = dense<in_rows>(values, input.samples, outputs);
        const int64_t result = slab * outputs * input.samples + to.place(0, first);
        to.at += result;
        Index *places = indices + (indices ? result : 0);
        char *start = memory.get<char>();
        Item *block = reinterpret_cast<Item *>(start);
        if (count == together) return sort(x, to, places, block);
        const auto from =
            dense<in_rows>(reinterpret_cast<Key *>(start + block_bytes), together, wires);
        const auto sorted = dense<in_rows>(from.at + from_bytes / sizeof(Key), together, outputs);
        Index *sorted_places =
            reinterpret_cast<Index *>(start + block_bytes + from_bytes + to_bytes);
        memset(from.at, 0, from_bytes);
        copy_samples<in_rows, Key>(x, from, count, wires);
        sort(Span<const Key>(from), sorted, sorted_places, block);
        copy_samples<in_rows, Key>(sorted, to, count, outputs);
        if (indices)
            copy_samples<in_rows, Index>({sorted_places, sorted.wire, sorted.sample},
                                         {places, to.wire, to.sample}, count, outputs);
    });
}

template <class Form, class Index>
Status sort_all(const Input<typename Form::Key> &input, bool descending, typename Form::Key *values,
                Index *indices, ParallelFor pool) {
    using Key = typename Form::Key;
    const int64_t results = input.slabs * input.samples * outputs;
    const Vec<Key> order = all<Key>(descending ? Key(-1) : Key(0));
    expect_writes(values, sizeof(Key) * results);
    if (indices) expect_writes(indices, sizeof(Index) * results);
    if (input.wire == 1)
        return for_each_group<Form, Index, true, lanes<Key>>(
            input, values, indices, pool, [&](auto x, auto to, Index *places, auto *block) {
            sort_rows<Form>(x, to, places, order, block);
        });
    constexpr int side = (Form::halves == 1 ? 8 : 4) * 32 / int(register_bytes);
    return for_each_group<Form, Index, false, side * lanes<Key>>(
        input, values, indices, pool, [&](auto x, auto to, Index *places, auto *block) {
        sort_columns<Form, Index, side>(x, to, places, order, block);
    });
}
