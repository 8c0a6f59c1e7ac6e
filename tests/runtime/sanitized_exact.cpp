// Calls an exact kernel, built with sanitizers, on memory of exact size: rows without gaps and with, and slabs of columns.
// NUMBER is the type of values, WIRES how many a sample has; the kernel sorts all of them.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" int32_t nsc_exact_sort(const void *, int64_t, int64_t, int64_t, int64_t, int64_t, void *, void *, int32_t, int32_t, void *, int64_t, int64_t);

namespace {

constexpr int64_t wires = WIRES;
uint32_t state = 1;

uint32_t draw() { return state = state * 1664525 + 1013904223; }

void require(bool holds, const char *what) {
    if (holds) return;
    std::printf("%s\n", what);
    std::exit(1);
}

template <class Index>
void check(int64_t slabs, int64_t samples, bool in_rows, bool descending) {
    const int64_t gap = slabs == 1 ? 0 : 3, wire = in_rows ? 1 : samples + gap, sample = in_rows ? wires + gap : 1;
    const int64_t slab = in_rows ? samples * sample : wires * wire;
    // Its last value is the last of its memory.
    std::vector<NUMBER> x((slabs - 1) * slab + (wires - 1) * wire + (samples - 1) * sample + 1);
    for (NUMBER &value : x) value = NUMBER(draw() >> 28);
    std::vector<NUMBER> values(slabs * samples * wires), alone(values.size());
    std::vector<Index> indices(values.size());
    const int64_t parts = 3;
    for (int64_t part = 0; part < parts; ++part) {
        require(!nsc_exact_sort(x.data(), slabs, samples, slab, wire, sample, values.data(), indices.data(), sizeof(Index), descending, nullptr, part, parts), "status");
    }
    require(!nsc_exact_sort(x.data(), slabs, samples, slab, wire, sample, alone.data(), nullptr, 0, descending, nullptr, 0, 1), "status");
    require(values == alone, "values alone differ");
    for (int64_t t = 0; t < slabs; ++t) {
        for (int64_t s = 0; s < samples; ++s) {
            for (int64_t w = 0; w < wires; ++w) {
                const int64_t at = t * samples * wires + (in_rows ? s * wires + w : w * samples + s), next = at + (in_rows ? 1 : samples);
                require(values[at] == x[t * slab + int64_t(indices[at]) * wire + s * sample], "an index is wrong");
                if (w + 1 == wires) continue;
                const bool in_order = descending ? values[at] > values[next] : values[at] < values[next];
                require(in_order || (values[at] == values[next] && indices[at] < indices[next]), "out of order");
            }
        }
    }
}

}  // namespace

int main() {
    for (const bool in_rows : {true, false})
        for (const bool descending : {true, false})
            for (const int64_t samples : {1, 5, 64, 300}) {
                check<int64_t>(2, samples, in_rows, descending);
                check<int32_t>(1, samples, in_rows, descending);
            }
    std::puts("sorted");
}
