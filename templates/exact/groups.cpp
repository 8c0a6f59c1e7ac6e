// -------------------------------------------------------------------------------------- groups

// A group has a sample in each lane of a register of keys. Its items lie in a block, those of a
// half side by side.

// Stores places as indices, step by step to twice the width: GCC makes wider steps lane by lane.
template <int bytes>
struct Wider;
template <>
struct Wider<1> {
    using type = uint16_t;
};
template <>
struct Wider<2> {
    using type = uint32_t;
};
template <>
struct Wider<4> {
    using type = uint64_t;
};

template <class Index, class Place, int count>
NSC_STEP void store_indices(Index *to, Part<Place, count *int(sizeof(Place))> places) {
    if constexpr (sizeof(Index) == sizeof(Place)) {
        memcpy(to, &places, sizeof places);
    } else if constexpr (sizeof(Index) < sizeof(Place)) {
        const auto narrow = __builtin_convertvector(places, Part<Index, count *int(sizeof(Index))>);
        memcpy(to, &narrow, sizeof narrow);
    } else {
        using Next = typename Wider<sizeof(Place)>::type;
        constexpr int most = int(register_bytes) / int(sizeof(Next));
        if constexpr (count > most) {
            const typename PlacesTo<count / 2>::list half;
            store_indices<Index, Place, count / 2>(
                to, half_of<Place, count / 2 * int(sizeof(Place)), 0>(places, half));
            store_indices<Index, Place, count / 2>(
                to + count / 2,
                half_of<Place, count / 2 * int(sizeof(Place)), count / 2>(places, half));
        } else {
            store_indices<Index, Next, count>(
                to, __builtin_convertvector(places, Part<Next, count *int(sizeof(Next))>));
        }
    }
}

// Where samples are: value w of sample s at w * wire + s * sample.
template <class Key>
struct Span {
    Key *at;
    int64_t wire, sample;
    int64_t place(int64_t w, int64_t s) const { return w * wire + s * sample; }
    operator Span<const Key>() const { return {at, wire, sample}; }
};

// So many samples of `values` each without gaps: in rows, or as many rows of a value of each.
template <bool in_rows, class Key>
Span<Key> dense(Key *at, int64_t samples, int64_t values) {
    return in_rows ? Span<Key>{at, 1, values} : Span<Key>{at, samples, 1};
}

// Copies so many samples of `values` each. What lies side by side does so in both.
template <bool in_rows, class T>
void copy_samples(Span<const T> from, Span<T> to, int64_t samples, int64_t values) {
    if (in_rows) {
        for (int64_t s = 0; s < samples; ++s)
            memcpy(to.at + s * to.sample, from.at + s * from.sample, sizeof(T) * values);
    } else {
        for (int64_t w = 0; w < values; ++w)
            memcpy(to.at + w * to.wire, from.at + w * from.wire, sizeof(T) * samples);
    }
}

// Values and indices of those that lost their bits in keys: equal keys of -0 and 0, and of all NaN.
template <class Form, class Index>
NSC_APART void fetch_values(Span<const typename Form::Key> x, Span<typename Form::Key> values,
                            const Index *indices, int64_t count) {
    for (int64_t s = 0; s < count; ++s) {
        for (int64_t o = 0; o < outputs; ++o) {
            const int64_t to = values.place(o, s);
            values.at[to] = x.at[x.place(int64_t(indices[to]), s)];
        }
    }
}

template <class Key>
NSC_STEP bool has_any(Vec<Key> flags) {
    const Vec<uint64_t> words = (Vec<uint64_t>)flags;
    uint64_t any = 0;
    NSC_UNROLL
    for (int64_t k = 0; k < lanes<uint64_t>; ++k) any |= words[k];
    return any != 0;
}

template <int width>
struct Width {
    static constexpr int value = width;
};

// Calls visit(first, width) for each tile of a row of `length` values: whole ones, then what is
// left.
template <class Key, int64_t length, class Visit>
NSC_STEP void for_each_tile(Visit visit) {
    constexpr int left = int(length % piece<Key>);
    for (int64_t first = 0; first + piece<Key> <= length; first += piece<Key>)
        visit(first, Width<piece<Key>>());
    if constexpr (left > 0) visit(length - left, Width<left>());
}

// Sorts a register's samples, whose values lie side by side.
template <class Form, class Index>
NSC_APART void sort_rows(Span<const typename Form::Key> x, Span<typename Form::Key> values,
                         Index *indices, Vec<typename Form::Key> descending,
                         typename Form::Item *block) {
    using Key = typename Form::Key;
    using Place = typename Form::Place;
    // What the next samples read and write is fetched a tile at a time: a processor has few fetches
    // under way.
    Vec<Key> lost{};
    for_each_tile<Key, wires>([&](int64_t first, auto width) NSC_INLINE {
        constexpr int columns = decltype(width)::value;
        Vec<Key> tile[piece<Key>];
        fetch_ahead<false>(x.at + lanes<Key> * (x.sample + first),
                           lanes<Key> * columns * int64_t(sizeof(Key)));
        load_tile<Key, columns>(x.at + first, x.sample, tile);
        NSC_UNROLL
        for (int k = 0; k < columns; ++k) {
            typename Form::Item items[Form::halves];
            Form::enter(tile[k], first + k, descending, items, &lost);
            for (int h = 0; h < Form::halves; ++h) block[h * wires + first + k] = items[h];
        }
    });
    for (int h = 0; h < Form::halves; ++h) sort_block<Form>(block + h * wires);
    for_each_tile<Key, outputs>([&](int64_t first, auto width) NSC_INLINE {
        constexpr int columns = decltype(width)::value;
        Vec<Key> tile[piece<Key>];
        Vec<Place> places[piece<Key>];
        const int64_t next = lanes<Key> * (outputs + first);
        fetch_ahead<true>(values.at + next, lanes<Key> * columns * int64_t(sizeof(Key)));
        if (Form::has_places)
            fetch_ahead<true>(indices + next, lanes<Key> * columns * int64_t(sizeof(Index)));
        NSC_UNROLL
        for (int k = 0; k < piece<Key>; ++k) {
            const int64_t wire = output_wire(first + (k < columns ? k : 0));
            typename Form::Item items[Form::halves];
            for (int h = 0; h < Form::halves; ++h) items[h] = block[h * wires + wire];
            tile[k] = Form::leave(items, descending, &places[k]);
        }
        store_tile<Key, columns>(tile, values.at + first, values.sample);
        if constexpr (Form::has_places) {
            transpose_pieces<Place>(places);
            NSC_UNROLL
            for (int k = 0; k < piece<Key>; ++k) {
                Place row[lanes<Place>];
                memcpy(row, &places[k], sizeof row);
                NSC_UNROLL
                for (int p = 0; p < int(lanes<Place>) / piece<Key>; ++p) {
                    Index *to = indices + (p * piece<Key> + k) * values.sample + first;
                    Part<Place, 16> of_row;
                    memcpy(&of_row, row + p * piece<Key>, sizeof of_row);
                    if constexpr (columns == piece<Key>) {
                        store_indices<Index, Place, piece<Key>>(to, of_row);
                    } else {
                        Index all_of[piece<Key>];
                        store_indices<Index, Place, piece<Key>>(all_of, of_row);
                        memcpy(to, all_of, sizeof(Index) * columns);
                    }
                }
            }
        }
    });
    if constexpr (Form::has_places)
        if (__builtin_expect(has_any<Key>(lost), 0))
            fetch_values<Form>(x, values, indices, lanes<Key>);
}

// Sorts `side` registers of samples that are neighbours in memory.
template <class Form, class Index, int side>
NSC_APART void sort_columns(Span<const typename Form::Key> x, Span<typename Form::Key> values,
                            Index *indices, Vec<typename Form::Key> descending,
                            typename Form::Item *block) {
    using Key = typename Form::Key;
    using Place = typename Form::Place;
    constexpr int64_t ahead =
        2 * side * lanes<Key>;  // where the samples are that come after the next
    Vec<Key> lost{};
    for (int64_t w = 0; w < wires; ++w) {
        const Key *row = x.at + w * x.wire;
        NSC_UNROLL
        for (int c = 0; c < side; ++c) {
            typename Form::Item items[Form::halves];
            Form::enter(load(row + c * lanes<Key>), w, descending, items, &lost);
            for (int h = 0; h < Form::halves; ++h)
                block[(c * Form::halves + h) * wires + w] = items[h];
        }
        fetch_ahead<false>(row + ahead, side * register_bytes);
    }
    for (int k = 0; k < side * Form::halves; ++k) sort_block<Form>(block + k * wires);
    for (int64_t o = 0; o < outputs; ++o) {
        const int64_t wire = output_wire(o);
        NSC_UNROLL
        for (int c = 0; c < side; ++c) {
            typename Form::Item items[Form::halves];
            Vec<Place> places{};
            for (int h = 0; h < Form::halves; ++h)
                items[h] = block[(c * Form::halves + h) * wires + wire];
            const int64_t to = o * values.wire + c * lanes<Key>;
            store(values.at + to, Form::leave(items, descending, &places));
            if constexpr (Form::has_places)
                store_indices<Index, Place, lanes<Place>>(indices + to, places);
        }
        fetch_ahead<true>(values.at + o * values.wire + ahead, side * register_bytes);
        if (Form::has_places)
            fetch_ahead<true>(indices + o * values.wire + ahead,
                              side * lanes<Key> * int64_t(sizeof(Index)));
    }
    if constexpr (Form::has_places)
        if (__builtin_expect(has_any<Key>(lost), 0))
            fetch_values<Form>(x, values, indices, side * lanes<Key>);
}
