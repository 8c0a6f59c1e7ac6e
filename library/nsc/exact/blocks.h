// Blocks: samples of some registers as items, a lane a sample, through the network and back to
// memory.
#pragma once

#include <nsc/elements.h>
#include <nsc/exact/indices.h>
#include <nsc/exact/network.h>
#include <nsc/exact/spans.h>
#include <nsc/exact/tiles.h>
#include <nsc/registers.h>

namespace nsc {

// Runs comparators of a table.
template <class Form>
NSC_NOINLINE void run_pairs(typename Form::Item *items, const WirePair *pairs, int64_t count) {
    for (int64_t k = 0; k < count; ++k) Form::order(items[pairs[k].lo], items[pairs[k].hi]);
}

// Runs the comparators on the items of a register of samples.
template <class Network, class Form>
NSC_STEP void run_network(typename Form::Item *items) {
    if constexpr (Network::comparators <= Form::most_straight)
        Network::template run<Form>(items);
    else
        run_pairs<Form>(items, Network::pairs, Network::comparators);
}

// Sorts a register's samples, whose values lie side by side. `more` says whether the thread sorts
// as many samples behind them next; their memory is fetched a tile at a time.
template <class Network, class Form, class Stored>
NSC_NOINLINE void sort_rows(Span<const typename Form::Key> x, Span<typename Form::Key> values,
                            Stored *indices, Order<typename Form::Key> order,
                            typename Form::Item *block, bool more) {
    using Key = typename Form::Key;
    using Index = typename Form::Index;
    using Item = typename Form::Item;
    constexpr int64_t wires = Network::wires, outputs = Network::outputs;
    constexpr int item_registers = Form::item_registers;
    Vec<Key> lost{};
    for_each_tile<Key, wires>([&](int64_t first, auto width) NSC_INLINE {
        constexpr int columns = decltype(width)::value;
        Vec<Key> tile[tile_columns<Key>];
        if (more && x.sample == wires)
            touch_ahead(x.at + lanes<Key> * (wires + first),
                        lanes<Key> * columns * int64_t(sizeof(Key)));
        load_tile<Key, columns>(x.at + first, x.sample, tile);
        NSC_UNROLL
        for (int k = 0; k < columns; ++k) {
            Item items[item_registers];
            Form::enter(tile[k], first + k, order, items, &lost);
            for (int h = 0; h < item_registers; ++h) block[h * wires + first + k] = items[h];
        }
    });
    for (int h = 0; h < item_registers; ++h) run_network<Network, Form>(block + h * wires);
    for_each_tile<Key, outputs>([&](int64_t first, auto width) NSC_INLINE {
        constexpr int columns = decltype(width)::value;
        Vec<Key> tile[tile_columns<Key>];
        Vec<Index> tile_of_indices[tile_columns<Key>];
        const int64_t next = lanes<Key> * (outputs + first);
        if (more) {
            touch_ahead(values.at + next, lanes<Key> * columns * int64_t(sizeof(Key)));
            if (Form::has_indices)
                touch_ahead(indices + next, lanes<Key> * columns * int64_t(sizeof(Stored)));
        }
        NSC_UNROLL
        for (int k = 0; k < tile_columns<Key>; ++k) {
            const int64_t wire = Network::output_wires[first + (k < columns ? k : 0)];
            Item items[item_registers];
            for (int h = 0; h < item_registers; ++h) items[h] = block[h * wires + wire];
            tile[k] = Form::leave(items, order, &tile_of_indices[k]);
        }
        store_tile<Key, columns>(tile, values.at + first, outputs);
        if constexpr (Form::has_indices)
            store_tile_of_indices<Stored, Index, columns>(tile_of_indices, indices + first,
                                                          outputs);
    });
    if constexpr (Form::has_indices)
        if (__builtin_expect(has_any<Key>(lost), 0))
            fetch_values<outputs>(x, values, indices, lanes<Key>);
}

// Sorts so many registers of samples that are neighbours in memory.
template <class Network, class Form, int registers, class Stored>
NSC_NOINLINE void sort_columns(Span<const typename Form::Key> x, Span<typename Form::Key> values,
                               Stored *indices, Order<typename Form::Key> order,
                               typename Form::Item *block) {
    using Key = typename Form::Key;
    using Index = typename Form::Index;
    using Item = typename Form::Item;
    constexpr int64_t wires = Network::wires, outputs = Network::outputs;
    constexpr int item_registers = Form::item_registers;
    // Where the samples are that come after the next.
    constexpr int64_t ahead = 2 * registers * lanes<Key>;
    Vec<Key> lost{};
    for (int64_t w = 0; w < wires; ++w) {
        const Key *row = x.at + w * x.wire;
        NSC_UNROLL
        for (int c = 0; c < registers; ++c) {
            Item items[item_registers];
            Form::enter(load(row + c * lanes<Key>), w, order, items, &lost);
            for (int h = 0; h < item_registers; ++h)
                block[(c * item_registers + h) * wires + w] = items[h];
        }
        fetch_ahead<false>(row + ahead, registers * register_bytes);
    }
    for (int k = 0; k < registers * item_registers; ++k)
        run_network<Network, Form>(block + k * wires);
    for (int64_t o = 0; o < outputs; ++o) {
        const int64_t wire = Network::output_wires[o];
        NSC_UNROLL
        for (int c = 0; c < registers; ++c) {
            Item items[item_registers];
            Vec<Index> of_register{};
            for (int h = 0; h < item_registers; ++h)
                items[h] = block[(c * item_registers + h) * wires + wire];
            const int64_t to = o * values.wire + c * lanes<Key>;
            store(values.at + to, Form::leave(items, order, &of_register));
            if constexpr (Form::has_indices)
                store_indices<Stored, Index, int(lanes<Index>)>(indices + to, of_register);
        }
        fetch_ahead<true>(values.at + o * values.wire + ahead, registers * register_bytes);
        if (Form::has_indices)
            fetch_ahead<true>(indices + o * values.wire + ahead,
                              registers * lanes<Key> * int64_t(sizeof(Stored)));
    }
    if constexpr (Form::has_indices)
        if (__builtin_expect(has_any<Key>(lost), 0))
            fetch_values<outputs>(x, values, indices, registers * lanes<Key>);
}

}  // namespace nsc
