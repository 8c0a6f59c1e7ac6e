// Tests of the headers of nsc/exact/cuda/ that need no device, one function each.

#include "../cuda/emulation.h"

#include <nsc/exact/cuda/forms.h>
#include <nsc/exact/cuda/tiles.h>
#include <stdio.h>

#include <initializer_list>

namespace {

using namespace nsc;

bool failed = false;

#define CHECK(condition) \
    if (!(condition)) failed = true, fprintf(stderr, "line %d: %s\n", __LINE__, #condition)

template <class Element>
void test_forms_of() {
    using Key = typename Element::Key;
    for (const Key descending : {Key(0), Key(-1)}) {
        typename Values<Element>::Item a = Values<Element>::enter(Key(7), 0, descending),
                                       b = Values<Element>::enter(Key(5), 1, descending);
        Values<Element>::order(a, b);
        CHECK(Values<Element>::leave(a, descending) == (descending ? Key(7) : Key(5)));
        CHECK(Values<Element>::leave(b, descending) == (descending ? Key(5) : Key(7)));
        using Form = IndexedValues<Element>;
        typename Form::Item first = Form::enter(Key(5), 2, descending), second = first;
        first = Form::enter(Key(5), 3, descending);
        Form::order(first, second);
        CHECK(Form::index(first) == 2 && Form::index(second) == 3);
        CHECK(Form::leave(first, descending) == Key(5) && !Form::is_shared(first, descending));
        second = Form::enter(Key(7), 1, descending);
        Form::order(first, second);
        CHECK(Form::index(first) == (descending ? 1 : 2));
    }
}

void test_forms() {
    test_forms_of<uint8>();
    test_forms_of<int16>();
    test_forms_of<float32>();
    test_forms_of<uint32>();
    test_forms_of<int64>();
    test_forms_of<uint64>();
    const int32_t negative_zero = int32_t(uint32_t(1) << 31);
    const auto item = IndexedValues<float32>::enter(negative_zero, 9, 0);
    CHECK(IndexedValues<float32>::is_shared(item, 0) && IndexedValues<float32>::index(item) == 9);
}

struct Network {
    static constexpr int32_t wires = 3, outputs = 2;
    static int32_t output_wire(int32_t output) { return output ? 0 : 2; }
};

// Two slabs of five samples come to the tiles of four samples, and two of their wires to the results.
void test_tiles() {
    using Form = IndexedValues<int32>;
    constexpr int64_t slabs = 2, samples = 5;
    int32_t x[slabs * samples * Network::wires], values[slabs * samples * Network::outputs];
    int64_t indices[slabs * samples * Network::outputs];
    for (int32_t i = 0; i < slabs * samples * Network::wires; ++i) x[i] = 100 + i;
    for (const bool in_rows : {false, true}) {
        const int64_t wire = in_rows ? 1 : samples, sample = in_rows ? Network::wires : 1;
        const Input<int32_t> input = {x, slabs, samples, samples * Network::wires, wire, sample};
        for (int32_t first = 0; first < slabs * samples; first += 4) {
            Form::Item items[Network::wires * 5];
            Tile<Form::Item> tile = {items, first, 4, 5, 0, 8};
            for (tile.thread = 0; tile.thread < 8; ++tile.thread)
                enter<Network, Form>(input, 0, tile);
            for (tile.thread = 0; tile.thread < 8; ++tile.thread)
                leave<Network, Form>(input, 0, tile, {values, indices, 8});
        }
        for (int64_t each = 0; each < slabs * samples; ++each)
            for (int32_t o = 0; o < Network::outputs; ++o) {
                const int64_t slab = each / samples, s = each % samples, w = Network::output_wire(o);
                const int64_t at = in_rows ? each * Network::outputs + o
                                           : (slab * Network::outputs + o) * samples + s;
                CHECK(indices[at] == w);
                CHECK(values[at] == x[slab * samples * Network::wires + w * wire + s * sample]);
            }
    }
}

}  // namespace

int main() {
    test_forms();
    test_tiles();
    return failed;
}
