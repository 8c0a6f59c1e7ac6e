// Tests of the headers of nsc/exact/, one function each.

#include <nsc/exact/blocks.h>
#include <nsc/exact/groups.h>
#include <nsc/exact/indexed_values.h>
#include <nsc/exact/indices.h>
#include <nsc/exact/kernel.h>
#include <nsc/exact/network.h>
#include <nsc/exact/spans.h>
#include <nsc/exact/tiles.h>
#include <nsc/exact/values.h>
#include <stdio.h>

#include <initializer_list>

namespace {

using namespace nsc;

bool failed = false;

#define CHECK(condition) \
    if (!(condition)) failed = true, fprintf(stderr, "line %d: %s\n", __LINE__, #condition)

// Five wires, of which outputs 0 ... 3 are given in another order.
struct Sorter {
    static constexpr int64_t wires = 5, comparators = 9, outputs = 4;
    static constexpr uint16_t output_wires[] = {4, 0, 1, 3};
    static constexpr WirePair pairs[] = {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1},
                                         {2, 4}, {1, 2}, {3, 4}, {2, 3}};
    static constexpr bool is_straight = false;
};

// The same as code; `runs` counts the calls.
int runs = 0;
struct StraightSorter : Sorter {
    static constexpr bool is_straight = true;
    template <class Form>
    static void run(typename Form::Item *r) {
        ++runs;
        for (const WirePair pair : pairs) Form::order(r[pair.lo], r[pair.hi]);
    }
};

// A small generator of numbers, with ties.
struct Numbers {
    uint64_t state = 1;
    uint64_t next() { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 40; }
};

template <class Key>
struct Sample {
    Key values[Sorter::wires];
    int64_t indices[Sorter::wires];
    explicit Sample(const Key *x, int64_t stride) {
        for (int64_t w = 0; w < Sorter::wires; ++w) {
            int64_t at = w;
            for (; at > 0 && x[w * stride] < values[at - 1]; --at)
                values[at] = values[at - 1], indices[at] = indices[at - 1];
            values[at] = x[w * stride], indices[at] = w;
        }
    }
};

template <class T>
void test_tiles_of() {
    constexpr int rows = int(lanes<T>), columns = tile_columns<T>, stride = columns + 3;
    T memory[rows * stride], back[rows * stride] = {};
    for (int i = 0; i < rows * stride; ++i) memory[i] = T(i * 7 % 101);
    Vec<T> tile[columns];
    load_tile<T>(memory, stride, tile);
    for (int k = 0; k < columns; ++k)
        for (int row = 0; row < rows; ++row) CHECK(tile[k][row] == memory[row * stride + k]);
    store_tile<T, columns - 1>(tile, back, stride);
    for (int row = 0; row < rows; ++row)
        for (int k = 0; k < stride; ++k)
            CHECK(back[row * stride + k] == (k < columns - 1 ? memory[row * stride + k] : T(0)));
    const Vec<T> p = load(memory), q = load(memory + rows);
    const Vec<T> lower = zip_lower<T>(p, q), higher = zip_higher<T>(p, q);
    const Vec<T> firsts = unzip_firsts<T>(lower, higher), seconds = unzip_seconds<T>(lower, higher);
    for (int k = 0; k < rows; ++k) CHECK(firsts[k] == p[k] && seconds[k] == q[k]);
    int64_t visited = 0;
    for_each_tile<T, 2 * columns + 1>([&](int64_t first, auto width) {
        CHECK(first == visited);
        visited += decltype(width)::value;
    });
    CHECK(visited == 2 * columns + 1);
}

void test_tiles() {
    test_tiles_of<uint8_t>();
    test_tiles_of<int16_t>();
    test_tiles_of<int32_t>();
    test_tiles_of<int64_t>();
}

void test_values() {
    using Form = Values<float32>;
    const float x[] = {1.5f, -0.0f, 0.0f, -__builtin_inff(), 3e-45f, -__builtin_nanf("")};
    const int order[] = {3, 1, 2, 4, 0, 5};  // NaN is more than all numbers, whatever its sign
    for (const int32_t descending : {0, -1}) {
        Vec<int32_t> items[6];
        for (int k = 0; k < 6; ++k) {
            int32_t bits;
            memcpy(&bits, x + k, sizeof bits);
            Form::enter(all(bits), k, all(descending), items + k, nullptr);
        }
        for (int k = 0; k < 5; ++k) {
            Vec<int32_t> a = items[order[k]], b = items[order[k + 1]];
            const int32_t less = descending ? b[0] : a[0], more = descending ? a[0] : b[0];
            CHECK(less < more);
            Form::order(b, a);
            CHECK(b[0] == less && a[0] == more);
        }
        for (int k = 0; k < 5; ++k) {
            int32_t bits;
            memcpy(&bits, x + k, sizeof bits);
            CHECK(Form::leave(items + k, all(descending), nullptr)[0] == bits);
        }
    }
}

template <class Element>
void test_indexed_values_of() {
    using Form = IndexedValues<Element>;
    using Key = typename Element::Key;
    for (const Key descending : {Key(0), Key(-1)}) {
        Vec<Key> lost{}, bits = all(Key(5));
        typename Form::Item first[Form::item_registers], second[Form::item_registers];
        bits[0] = Key(7);
        Form::enter(bits, 3, all(descending), first, &lost);
        Form::enter(all(Key(5)), 2, all(descending), second, &lost);
        for (int h = 0; h < Form::item_registers; ++h) Form::order(first[h], second[h]);
        Vec<typename Form::Index> of_first, of_second;
        const Vec<Key> least = Form::leave(first, all(descending), &of_first);
        const Vec<Key> most = Form::leave(second, all(descending), &of_second);
        // The lane 0 has 7 at index 3 and 5 at index 2; the others have equal values, which keep their order.
        CHECK(least[0] == (descending ? Key(7) : Key(5)) && of_first[0] == (descending ? 3 : 2));
        CHECK(most[0] == (descending ? Key(5) : Key(7)) && of_second[0] == (descending ? 2 : 3));
        for (int k = 1; k < lanes<Key>; ++k) {
            CHECK(least[k] == Key(5) && most[k] == Key(5));
            CHECK(of_first[k] == 2 && of_second[k] == 3);
        }
        for (int k = 0; k < lanes<Key>; ++k) CHECK(lost[k] == 0);
    }
}

void test_indexed_values() {
    test_indexed_values_of<uint8>();
    test_indexed_values_of<int8>();
    test_indexed_values_of<int16>();
    test_indexed_values_of<bfloat16>();
    test_indexed_values_of<uint32>();
    test_indexed_values_of<float32>();
    test_indexed_values_of<float64>();
    test_indexed_values_of<uint64>();
    using Form = IndexedValues<float32>;
    Vec<int32_t> lost{}, bits = all(int32_t(uint32_t(1) << 31));
    bits[1] = 0;
    Form::Item items[Form::item_registers];
    Form::enter(bits, 0, Vec<int32_t>{}, items, &lost);
    CHECK(lost[0] != 0 && lost[1] == 0);  // -0 has the key of 0
}

template <class Stored, class Index>
void test_stored() {
    constexpr int count = int(lanes<Index>);
    Index from[count];
    Stored to[count];
    for (int k = 0; k < count; ++k) from[k] = Index(3 * k + 1);
    store_indices<Stored, Index, count>(to, load(from));
    for (int k = 0; k < count; ++k) CHECK(to[k] == Stored(from[k]));
    constexpr int columns = tile_columns<Index>, stride = columns + 1;
    Vec<Index> tile[columns];
    for (int k = 0; k < columns; ++k)
        for (int row = 0; row < count; ++row) tile[k][row] = Index(row + 5 * k);
    Stored rows[count * stride] = {};
    store_tile_of_indices<Stored, Index, columns - 1>(tile, rows, stride);
    for (int row = 0; row < count; ++row)
        for (int k = 0; k < stride; ++k)
            CHECK(rows[row * stride + k] == (k < columns - 1 ? Stored(Index(row + 5 * k)) : 0));
}

void test_indices() {
    test_stored<int32_t, uint8_t>();
    test_stored<int64_t, uint8_t>();
    test_stored<int64_t, uint16_t>();
    test_stored<int32_t, uint32_t>();
    test_stored<int64_t, uint32_t>();
    test_stored<int32_t, uint64_t>();
    const int16_t x[] = {10, 11, 12, 20, 21, 22};
    const int32_t indices[] = {2, 0, 1, 1};
    int16_t values[4] = {};
    fetch_values<2>(Span<const int16_t>{x, 1, 3}, Span<int16_t>{values, 1, 2}, indices, 2);
    CHECK(values[0] == 12 && values[1] == 10 && values[2] == 21 && values[3] == 21);
    Vec<int8_t> flags{};
    CHECK(!has_any<int8_t>(flags));
    flags[lanes<int8_t> - 1] = -1;
    CHECK(has_any<int8_t>(flags));
}

void test_spans() {
    int32_t rows[] = {1, 2, 3, 4, 5, 6}, copied[6] = {}, turned[6] = {};
    const Span<int32_t> in_rows = dense<true>(rows, 2, 3), in_columns = dense<false>(rows, 2, 3);
    CHECK(in_rows.offset(2, 1) == 5 && in_columns.offset(2, 1) == 5);
    CHECK(in_rows.offset(1, 0) == 1 && in_columns.offset(1, 0) == 2);
    copy_samples<true, int32_t>(in_rows, dense<true>(copied, 2, 3), 1, 3);
    CHECK(copied[0] == 1 && copied[2] == 3 && copied[3] == 0);
    copy_samples<false, int32_t>(in_columns, dense<false>(turned, 2, 3), 1, 3);
    CHECK(turned[0] == 1 && turned[1] == 0 && turned[4] == 5);
}

template <class Network, class Form, class Stored>
void test_blocks_of() {
    using Key = typename Form::Key;
    constexpr int64_t samples = 2 * lanes<Key>, wires = Network::wires, outputs = Network::outputs;
    alignas(64) typename Form::Item block[2 * Form::item_registers * wires];
    Key x[8 * samples * wires] = {}, values[8 * samples * outputs];
    Stored indices[8 * samples * outputs];
    Numbers numbers;
    for (int64_t i = 0; i < samples * wires; ++i) x[i] = Key(numbers.next() % 7);
    sort_rows<Network, Form>(Span<const Key>{x, 1, wires}, Span<Key>{values, 1, outputs}, indices,
                             Vec<Key>{}, block);
    for (int64_t s = 0; s < lanes<Key>; ++s) {
        const Sample<Key> sorted(x + s * wires, 1);
        for (int64_t o = 0; o < outputs; ++o) {
            const int64_t wire = Network::output_wires[o];
            CHECK(values[s * outputs + o] == sorted.values[wire]);
            if (Form::has_indices) CHECK(indices[s * outputs + o] == sorted.indices[wire]);
        }
    }
    sort_columns<Network, Form, 2>(Span<const Key>{x, samples, 1}, Span<Key>{values, samples, 1},
                                   indices, Vec<Key>{}, block);
    for (int64_t s = 0; s < samples; ++s) {
        const Sample<Key> sorted(x + s, samples);
        for (int64_t o = 0; o < outputs; ++o) {
            const int64_t wire = Network::output_wires[o];
            CHECK(values[o * samples + s] == sorted.values[wire]);
            if (Form::has_indices) CHECK(indices[o * samples + s] == sorted.indices[wire]);
        }
    }
}

void test_blocks() {
    test_blocks_of<Sorter, Values<int32>, int64_t>();
    test_blocks_of<Sorter, IndexedValues<int32>, int64_t>();
    test_blocks_of<Sorter, IndexedValues<uint8>, int32_t>();
    CHECK(runs == 0);
    test_blocks_of<StraightSorter, IndexedValues<int64>, int32_t>();
    CHECK(runs == 3);
}

// Each sample comes to `sort` once, in one of the parts, the last ones of a slab in memory of their own.
template <bool in_rows>
void test_groups_of() {
    using Form = Values<int32>;
    constexpr int64_t group = lanes<int32_t>, samples = group + 1, slabs = 3;
    int32_t x[slabs * samples * Sorter::wires], values[slabs * samples * Sorter::outputs] = {};
    for (int64_t i = 0; i < slabs * samples * Sorter::wires; ++i) x[i] = int32_t(i);
    const int64_t wire = in_rows ? 1 : samples, sample = in_rows ? Sorter::wires : 1;
    const auto copy = [](auto from, auto to, int64_t *, auto *) {
        for (int64_t s = 0; s < group; ++s)
            for (int64_t o = 0; o < Sorter::outputs; ++o)
                to.at[to.offset(o, s)] += 1 + from.at[from.offset(o, s)];
    };
    for (int64_t part = 0; part < 2; ++part) {
        const Input<int32_t> input = {x,    slabs,  samples, samples * Sorter::wires,
                                      wire, sample, part,    2};
        const Status status = for_each_group<Sorter, Form, in_rows, group>(
            input, values, static_cast<int64_t *>(nullptr), nullptr, copy);
        CHECK(status == ok);
    }
    for (int64_t t = 0; t < slabs; ++t)
        for (int64_t s = 0; s < group; ++s)
            for (int64_t o = 0; o < Sorter::outputs; ++o) {
                const int64_t in_slab = in_rows ? s * Sorter::outputs + o : o * samples + s;
                CHECK(values[t * samples * Sorter::outputs + in_slab] ==
                      1 + x[t * samples * Sorter::wires + o * wire + s * sample]);
            }
}

}  // namespace

NSC_EXACT_KERNEL(Sorter, nsc::float32)

namespace {

void test_kernel() {
    constexpr int64_t samples = 77;
    float x[samples * Sorter::wires], values[samples * Sorter::outputs];
    int32_t indices[samples * Sorter::outputs];
    Numbers numbers;
    for (float &each : x) each = float(numbers.next() % 9) - 4;
    for (const int index_bytes : {0, 4}) {
        for (const bool in_rows : {false, true}) {
            const int64_t wire = in_rows ? 1 : samples, sample = in_rows ? Sorter::wires : 1;
            CHECK(nsc_exact_sort(x, 1, samples, 0, wire, sample, values, indices, index_bytes, 0, nullptr,
                                 0, 1) == ok);
            for (int64_t s = 0; s < samples; ++s) {
                const Sample<float> sorted(x + s * sample, wire);
                for (int64_t o = 0; o < Sorter::outputs; ++o) {
                    const int64_t at = in_rows ? s * Sorter::outputs + o : o * samples + s;
                    CHECK(values[at] == sorted.values[Sorter::output_wires[o]]);
                    if (index_bytes) CHECK(indices[at] == sorted.indices[Sorter::output_wires[o]]);
                }
            }
        }
    }
}

}  // namespace

int main() {
    test_tiles();
    test_values();
    test_indexed_values();
    test_indices();
    test_spans();
    test_blocks();
    test_groups_of<true>();
    test_groups_of<false>();
    test_kernel();
    return failed;
}
