// Tiles in CUDA: each value comes to its column, and each result to its place.
#define __CUDACC__
#include "../../../cuda/emulation.h"
#include "../../expect.h"

#include <nsc/exact/cuda/forms.h>
#include <nsc/exact/cuda/tiles.h>

using namespace nsc;

struct Network {
    static constexpr int32_t wires = 3, outputs = 2;
    static int32_t output_wire(int32_t output) { return output ? 0 : 2; }
};

TEST(each_value_comes_to_its_column_and_back) {
    // Two slabs of five samples, tiles of four, two of three wires.
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
                const int64_t slab = each / samples, s = each % samples,
                              w = Network::output_wire(o);
                const int64_t at = in_rows ? each * Network::outputs + o
                                           : (slab * Network::outputs + o) * samples + s;
                EXPECT(indices[at] == w);
                EXPECT(values[at] == x[slab * samples * Network::wires + w * wire + s * sample]);
            }
    }
}
