// ---------------------------------------------------------------------- exact sorting, the call

// Values in ascending order and their indices, (batch, outputs), as torch's stable sort: ties by position, NaN last.
template <class real>
Status hard_sort(int64_t batch, const real *x, real *values, int64_t *indices, ParallelFor pool) {
    constexpr int64_t at_once = lanes<int64_t>;
    expect_writes(values, sizeof(real) * batch * outputs);
    expect_writes(indices, sizeof(int64_t) * batch * outputs);
    return parallel(pool, (batch + at_once - 1) / at_once, grain_of(comparators), sizeof(Entry<real>) * wires,
                    [&](int64_t task, const Memory &memory) {
        const int64_t first = task * at_once, count = batch - first < at_once ? batch - first : at_once;
        sort_samples<real>(x + first * wires, count, values + first * outputs, indices + first * outputs, memory.get<Entry<real>>());
    });
}
