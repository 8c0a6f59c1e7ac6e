// Groups: each sample is sorted once.
#include "../expect.h"
#include "sorter.h"

#include <nsc/exact/groups.h>
#include <nsc/exact/values.h>

using namespace nsc;

// Each sample comes to `sort` once, in one of the parts, the last ones of a slab in memory of their
// own.
template <bool in_rows>
static void test_groups_of() {
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
        EXPECT(status == ok);
    }
    for (int64_t t = 0; t < slabs; ++t)
        for (int64_t s = 0; s < group; ++s)
            for (int64_t o = 0; o < Sorter::outputs; ++o) {
                const int64_t in_slab = in_rows ? s * Sorter::outputs + o : o * samples + s;
                EXPECT(values[t * samples * Sorter::outputs + in_slab] ==
                       1 + x[t * samples * Sorter::wires + o * wire + s * sample]);
            }
}

TEST(each_sample_comes_once_in_rows) { test_groups_of<true>(); }

TEST(each_sample_comes_once_side_by_side) { test_groups_of<false>(); }
