// Groups: samples shared out to threads, as many at a time as fill some registers.
#pragma once

#include <nsc/exact/spans.h>
#include <nsc/registers.h>
#include <nsc/threads.h>

namespace nsc {

// What is sorted: value w of sample s of slab t is x[t * slab + w * wire + s * sample]; of all
// groups of samples one of `parts` equal parts.
template <class Key>
struct Input {
    const Key *x;
    int64_t slabs, samples, slab, wire, sample, part, parts;
};

// Runs sort(x, values, indices, block, more) for each group of samples. `more` says whether the
// same thread sorts as many samples of the slab next. Results are (slabs, samples, outputs) in
// rows, else (slabs, outputs, samples). A slab's last group, if it is not full, is sorted in memory
// of its own.
template <class Network, class Form, bool in_rows, int64_t samples_per_group, class Stored,
          class Sort>
Status for_each_group(const Input<typename Form::Key> &input, typename Form::Key *values,
                      Stored *indices, ParallelFor pool, Sort sort) {
    using Key = typename Form::Key;
    using Item = typename Form::Item;
    constexpr int64_t wires = Network::wires, outputs = Network::outputs;
    constexpr int64_t registers = samples_per_group / lanes<Key>;
    constexpr int64_t block_bytes =
        registers * Form::item_registers * wires * int64_t(sizeof(Item));
    constexpr int64_t from_bytes =
                          (samples_per_group * wires * int64_t(sizeof(Key)) + 63) / 64 * 64,
                      to_bytes =
                          (samples_per_group * outputs * int64_t(sizeof(Key)) + 63) / 64 * 64;
    constexpr int64_t index_bytes = samples_per_group * outputs * int64_t(sizeof(Stored));
    // The work on a register of samples, as many mixes take about as long.
    constexpr int64_t work_of_register = 2 * Network::comparators + 4 * wires;
    const int64_t groups = (input.samples + samples_per_group - 1) / samples_per_group;
    const int64_t begin = cut(input.slabs * groups, input.parts, input.part),
                  end = cut(input.slabs * groups, input.parts, input.part + 1);
    const auto sort_group = [&](int64_t group, bool is_last, const Memory &memory) {
        const int64_t slab = group / groups, first = group % groups * samples_per_group;
        const int64_t left = input.samples - first,
                      count = left < samples_per_group ? left : samples_per_group;
        const Span<const Key> x = {input.x + slab * input.slab + first * input.sample, input.wire,
                                   input.sample};
        Span<Key> to = dense<in_rows>(values, input.samples, outputs);
        const int64_t result = slab * outputs * input.samples + to.offset(0, first);
        to.at += result;
        Stored *to_indices = indices + (indices ? result : 0);
        char *start = memory.get<char>();
        Item *block = reinterpret_cast<Item *>(start);
        const bool more = !is_last && left >= 2 * samples_per_group;
        if (count == samples_per_group) return sort(x, to, to_indices, block, more);
        const auto from =
            dense<in_rows>(reinterpret_cast<Key *>(start + block_bytes), samples_per_group, wires);
        const auto sorted =
            dense<in_rows>(from.at + from_bytes / sizeof(Key), samples_per_group, outputs);
        Stored *sorted_indices =
            reinterpret_cast<Stored *>(start + block_bytes + from_bytes + to_bytes);
        memset(from.at, 0, from_bytes);
        copy_samples<in_rows, Key>(x, from, count, wires);
        sort(Span<const Key>(from), sorted, sorted_indices, block, false);
        copy_samples<in_rows, Key>(sorted, to, count, outputs);
        if (indices)
            copy_samples<in_rows, Stored>({sorted_indices, sorted.wire, sorted.sample},
                                          {to_indices, to.wire, to.sample}, count, outputs);
    };
    return parallel_ranges(pool, end - begin, grain_of(work_of_register * registers),
                           block_bytes + from_bytes + to_bytes + index_bytes,
                           [&](int64_t first, int64_t last, const Memory &memory) {
        for (int64_t task = first; task < last; ++task)
            sort_group(begin + task, task + 1 == last, memory);
        return ok;
    });
}

}  // namespace nsc
