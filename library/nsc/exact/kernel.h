// The C functions of an exact kernel: a network, run by this library on values of one type.
//
// A lane of a register is a sample. Values become keys, integers in their order; a comparator is a
// minimum and a maximum. With indices a key and its index are one item, so that ties keep their
// order. -0 is less than 0 where no indices are wanted, and equal to it where they are; NaN is more
// than all numbers, unless the call says that it comes last in a descending order.
#pragma once

#include <nsc/attributes.h>
#include <nsc/exact/blocks.h>
#include <nsc/exact/groups.h>
#include <nsc/exact/indexed_values.h>
#include <nsc/exact/values.h>

namespace nsc {

// How a call orders values. NaN comes first in a descending order, unless it is said to come last.
enum SortOrder : int32_t { ascending, descending, descending_with_nan_last };

template <class Network, class Form, class Stored>
Status sort_all(const Input<typename Form::Key> &input, int32_t order, typename Form::Key *values,
                Stored *indices, ParallelFor pool) {
    using Key = typename Form::Key;
    const int64_t results = input.slabs * input.samples * Network::outputs;
    const Order<Key> keys(all<Key>(order == ascending ? 0 : Key(-1)),
                          order == descending_with_nan_last);
    expect_writes(values, sizeof(Key) * results);
    if (indices) expect_writes(indices, sizeof(Stored) * results);
    if (input.wire == 1)
        return for_each_group<Network, Form, true, lanes<Key>>(
            input, values, indices, pool,
            [&](auto x, auto to, Stored *to_indices, auto *block, bool more) {
            sort_rows<Network, Form>(x, to, to_indices, keys, block, more);
        });
    constexpr int registers = (Form::item_registers == 1 ? 8 : 4) * 32 / int(register_bytes);
    return for_each_group<Network, Form, false, registers * lanes<Key>>(
        input, values, indices, pool, [&](auto x, auto to, Stored *to_indices, auto *block, bool) {
        sort_columns<Network, Form, registers>(x, to, to_indices, keys, block);
    });
}

// The results of a call of nsc_exact_sort.
template <class Network, class Element>
Status exact_sort(const Input<typename Element::Key> &input, void *values, void *indices,
                  int32_t index_bytes, int32_t order, void *pool) {
    const ParallelFor threads = reinterpret_cast<ParallelFor>(pool);
    typename Element::Key *to = static_cast<typename Element::Key *>(values);
    switch (index_bytes) {
        case 0:
            return sort_all<Network, Values<Element>>(input, order, to,
                                                      static_cast<int64_t *>(nullptr), threads);
        case 4:
            return sort_all<Network, IndexedValues<Element>>(
                input, order, to, static_cast<int32_t *>(indices), threads);
        default:
            return sort_all<Network, IndexedValues<Element>>(
                input, order, to, static_cast<int64_t *>(indices), threads);
    }
}

}  // namespace nsc

// Defines nsc_exact_sort for values of a type. It sorts `samples` in every one of `slabs`, of these
// a part, see Input. index_bytes: 8, 4, or 0 for values alone. order: a SortOrder.
#define NSC_EXACT_KERNEL(Network, Element)                                                       \
    NSC_API int32_t nsc_exact_sort(const void *x, int64_t slabs, int64_t samples, int64_t slab,  \
                                   int64_t wire, int64_t sample, void *values, void *indices,    \
                                   int32_t index_bytes, int32_t order, void *pool, int64_t part, \
                                   int64_t parts) {                                              \
        return nsc::exact_sort<Network, Element>({static_cast<const Element::Key *>(x), slabs,   \
                                                  samples, slab, wire, sample, part, parts},     \
                                                 values, indices, index_bytes, order, pool);     \
    }
