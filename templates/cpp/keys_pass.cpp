// -------------------------------------------------------------------------------- the keys pass

// Samples whose weights are held at a time: as many as fit the aim, at least one.
template <class real>
inline int64_t group_size(int64_t batch, int64_t bytes_per_sample) {
    const int64_t fits = scratch_bytes / (bytes_per_sample + 1);
    const int64_t group = fits < 1 ? 1 : fits < lanes<real> ? fits : fits / lanes<real> * lanes<real>;
    return group < batch ? group : batch;
}

// A group of samples that go through the keys pass together, `lanes` at a time or one by one.
template <class real>
struct KeysTask {
    KeysTask(const Call<real> &call, int64_t group_first, int64_t group_count, int64_t task)
        : at_once(count_at_once(group_count)), place(task * at_once), first(group_first + place),
          count(group_count - place < at_once ? group_count - place : at_once) {
        for (int64_t k = 0; k < lanes<real>; ++k) steepness[k] = call.steepness_of(k < count ? first + k : first);
    }
    static int64_t count_at_once(int64_t group) { return group < lanes<real> ? 1 : lanes<real>; }
    static int64_t count_tasks(int64_t group) { return (group + count_at_once(group) - 1) / count_at_once(group); }
    bool lanes_are_samples() const { return at_once > 1; }
    int64_t at_once, place, first, count;  // place in the group, first sample, samples
    Vec<real> steepness;
};

template <class real>
inline void copy_or_clear(real *to, const real *from, int64_t count) {
    if (from)
        memcpy(to, from, sizeof(real) * count);
    else
        memset(to, 0, sizeof(real) * count);
}

// Fills a block with the gradients of the values of a task's samples, and clears the sums for the steepness.
template <class real>
inline void load_gradient(const real *values_grad, const KeysTask<real> &task, Vec<real> *block, Vec<real> *parts) {
    memset(parts, 0, sizeof(Vec<real>) * slot_alignment);
    if (values_grad)
        load_samples(values_grad + task.first * wires, task.count, block);
    else
        memset(block, 0, sizeof(Vec<real>) * wires);
}

// Runs the keys pass on samples first ... first + count - 1: their values go to `values`, at the place
// of sample `first`, and their weights to `weights`, unless it is null.
template <class real>
Status keys_forward(const Call<real> &call, int64_t first, int64_t count, real *values, real *weights, ParallelFor pool) {
    using Row = Vec<real>;
    const bool by_lane = KeysTask<real>::count_at_once(count) > 1;
    const int64_t bytes = by_lane ? sizeof(Row) * (wires + arrays * longest_codelet) : 0;
    return parallel(pool, KeysTask<real>::count_tasks(count), grain_of(8 * comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const KeysTask<real> task(call, first, count, number);
        const real *x = call.x + task.first * wires;
        real *to = values + task.place * wires, *kept = weights ? weights + task.place * arrays * slots : nullptr;
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * wires);
            compare_levels(to, task.steepness[0], kept ? weights_at(kept, slots) : Weights<real>{});
            return;
        }
        Row *block = memory.get<Row>(), *tile = block + wires;
        load_samples(x, task.count, block);
        for (int64_t c = 0; c < codelet_count; ++c) {
            const Codelet codelet = codelets[c];
            compare_codelet<real>(codelet, block, task.steepness, kept ? weights_at(tile, longest_codelet) : Weights<Row>{});
            for (int64_t a = 0; kept && a < arrays; ++a)
                scatter_slots(kept + a * slots + codelet.slot, arrays * slots, task.count,
                              shapes[codelet.shape].comparators, tile + a * longest_codelet);
        }
        store_samples(to, task.count, block);
    });
}

// Takes gradients of the values, null for zero, and of the weights to gradients of x and the steepness.
// `weights` are those of keys_forward; weight_grads has `stride` reals per sample.
template <class real>
Status keys_backward(const Call<real> &call, int64_t first, int64_t count, const real *values_grad, real *weights,
                     const real *weight_grads, int64_t stride, real *x_grad, real *steepness_grad, ParallelFor pool) {
    using Row = Vec<real>;
    const bool by_lane = KeysTask<real>::count_at_once(count) > 1;
    const int64_t bytes = by_lane ? sizeof(Row) * (wires + slot_alignment + (arrays + 1) * longest_codelet) : 0;
    return parallel(pool, KeysTask<real>::count_tasks(count), grain_of(8 * comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const KeysTask<real> task(call, first, count, number);
        real *to = x_grad + task.first * wires, *kept = weights + task.place * arrays * slots;
        const real *from = weight_grads + task.place * stride;
        if (!task.lanes_are_samples()) {
            copy_or_clear(to, values_grad ? values_grad + task.first * wires : nullptr, wires);
            const real sum = compare_levels_backward(to, from, task.steepness[0], weights_at(kept, slots));
            if (steepness_grad) steepness_grad[task.first] = sum;
            return;
        }
        Row *block = memory.get<Row>(), *parts = block + wires, *into = parts + slot_alignment, *tile = into + longest_codelet;
        load_gradient(values_grad, task, block, parts);
        for (int64_t c = codelet_count - 1; c >= 0; --c) {
            const Codelet codelet = codelets[c];
            const int64_t slot_count = shapes[codelet.shape].comparators;
            gather_slots(from + codelet.slot, stride, task.count, slot_count, into);
            for (int64_t a = 0; a < arrays; ++a)
                gather_slots(kept + a * slots + codelet.slot, arrays * slots, task.count, slot_count, tile + a * longest_codelet);
            compare_codelet_backward<real>(codelet, block, into, task.steepness, weights_at(tile, longest_codelet), parts);
        }
        store_samples(to, task.count, block);
        if (steepness_grad) store(steepness_grad + task.first, sum_of_parts(parts), task.count);
    });
}

// Both at once, for gradients of the values alone.
template <class real>
Status values_backward(const Call<real> &call, const real *values_grad, real *x_grad, real *steepness_grad, ParallelFor pool) {
    using Row = Vec<real>;
    const bool by_lane = KeysTask<real>::count_at_once(call.batch) > 1;
    const int64_t bytes = by_lane ? sizeof(Row) * (wires + slot_alignment + arrays * slots) : sizeof(real) * arrays * slots;
    return parallel(pool, KeysTask<real>::count_tasks(call.batch), grain_of(16 * comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const KeysTask<real> task(call, 0, call.batch, number);
        const real *x = call.x + task.first * wires;
        real *to = x_grad + task.first * wires;
        if (!task.lanes_are_samples()) {
            const Weights<real> w = weights_at(memory.get<real>(), slots);
            memcpy(to, x, sizeof(real) * wires);  // x_grad takes the values, which are not needed
            compare_levels(to, task.steepness[0], w);
            copy_or_clear(to, values_grad ? values_grad + task.first * wires : nullptr, wires);
            const real sum = compare_levels_backward<real>(to, nullptr, task.steepness[0], w);
            if (steepness_grad) steepness_grad[task.first] = sum;
            return;
        }
        Row *block = memory.get<Row>(), *parts = block + wires;
        const Weights<Row> w = weights_at(parts + slot_alignment, slots);
        load_samples(x, task.count, block);
        for (int64_t c = 0; c < codelet_count; ++c)
            compare_codelet<real>(codelets[c], block, task.steepness, w.from(codelets[c].slot));
        load_gradient(values_grad, task, block, parts);
        for (int64_t c = codelet_count - 1; c >= 0; --c)
            compare_codelet_backward<real>(codelets[c], block, nullptr, task.steepness, w.from(codelets[c].slot), parts);
        store_samples(to, task.count, block);
        if (steepness_grad) store(steepness_grad + task.first, sum_of_parts(parts), task.count);
    });
}
