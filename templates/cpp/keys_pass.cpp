// -------------------------------------------------------------------------------- the keys pass

// Samples whose weights are held at a time: as many as fit the aim, at least one.
template <class real>
inline int64_t group_size(int64_t batch, int64_t bytes_per_sample) {
    const int64_t fits = scratch_bytes / (bytes_per_sample + 1);
    const int64_t group = fits < 1 ? 1 : fits < lanes<real> ? fits : fits / lanes<real> * lanes<real>;
    return group < batch ? group : batch;
}

// Blocks of `lanes` samples that go through the keys pass together where the values alone are wanted: two, unless
// what is kept of them for gradients exceeds a cache of this many bytes.
constexpr int64_t cache_bytes = 1 << 19;
template <class real>
constexpr int64_t value_blocks = 2 * slots * int64_t(sizeof(Vec<real>)) <= cache_bytes ? 2 : 1;

// A group of samples that go through the keys pass together, blocks of `lanes` at a time or one by one.
template <class real, int64_t most_blocks = 1>
struct KeysTask {
    KeysTask(const Call<real> &call, int64_t group_first, int64_t group_count, int64_t task)
        : at_once(count_at_once(group_count)), place(task * at_once), first(group_first + place),
          count(group_count - place < at_once ? group_count - place : at_once), blocks((count + lanes<real> - 1) / lanes<real>) {
        for (int64_t k = 0; k < most_blocks * lanes<real>; ++k)
            steepness[k / lanes<real>][k % lanes<real>] = call.steepness_of(k < count ? first + k : first);
    }
    // A lane for each of a few samples takes less time than their comparators one sample after another; but half of
    // a register's samples are enough for several threads, unless one thread takes them all.
    static int64_t count_at_once(int64_t group) {
        return group < (comparators < 512 ? 2 : lanes<real> / 2) ? 1 : most_blocks * lanes<real>;
    }
    static int64_t count_tasks(int64_t group) { return (group + count_at_once(group) - 1) / count_at_once(group); }
    bool lanes_are_samples() const { return at_once > 1; }
    // Samples before a block, and in it.
    int64_t before(int64_t block) const { return block * lanes<real>; }
    int64_t in_block(int64_t block) const { return count - before(block) < lanes<real> ? count - before(block) : lanes<real>; }
    int64_t at_once, place, first, count, blocks;  // place in the group, first sample, samples
    Vec<real> steepness[most_blocks];
};

template <class real>
inline void copy_or_clear(real *to, const real *from, int64_t count) {
    if (from)
        memcpy(to, from, sizeof(real) * count);
    else
        memset(to, 0, sizeof(real) * count);
}

// Runs all comparators on a task's blocks, one behind the other, in place. What it keeps of each, it keeps by slot.
template <class real, int64_t most_blocks, class Kept>
inline void compare_blocks(const KeysTask<real, most_blocks> &task, Vec<real> *blocks, Kept kept) {
    bool strange = false;
    for (int64_t block = 0; block < task.blocks; ++block)
        strange |= are_strange<real>(blocks + block * wires, wires, task.steepness[block]);
    if (task.blocks == most_blocks && !strange) {
        for (int32_t p = 0; p < piece_count; ++p)
            compare<real, false, most_blocks>(pieces[p].count, in_pieces + pieces[p].first, blocks, task.steepness, kept);
        return;
    }
    for (int64_t block = 0; block < task.blocks; ++block) {
        const auto of_block = kept.from(block * slots);
        for (int32_t p = 0; p < piece_count; ++p) {
            const Comparator *at = in_pieces + pieces[p].first;
            if (strange)
                compare<real, true, 1>(pieces[p].count, at, blocks + block * wires, &task.steepness[block], of_block);
            else
                compare<real, false, 1>(pieces[p].count, at, blocks + block * wires, &task.steepness[block], of_block);
        }
    }
}

// Fills a block with the gradients of the values of `count` samples, and clears the sums for the steepness.
template <class real>
inline void load_gradient(const real *values_grad, int64_t count, Vec<real> *block, Vec<real> *parts) {
    memset(parts, 0, sizeof(Vec<real>) * slot_alignment);
    if (values_grad)
        load_samples(values_grad, count, block);
    else
        memset(block, 0, sizeof(Vec<real>) * wires);
}

// Runs the keys pass on samples first ... first + count - 1: their values go to `values`, at the place
// of sample `first`.
template <class real>
Status values_forward(const Call<real> &call, int64_t first, int64_t count, real *values, ParallelFor pool) {
    using Task = KeysTask<real, value_blocks<real>>;
    const int64_t bytes = Task::count_at_once(count) > 1 ? sizeof(Vec<real>) * wires * value_blocks<real> : 0;
    return parallel(pool, Task::count_tasks(count), grain_of(8 * comparators), bytes, [&](int64_t number, const Memory &memory) {
        const Task task(call, first, count, number);
        const real *x = call.x + task.first * wires;
        real *to = values + task.place * wires;
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * wires);
            compare_levels(to, task.steepness[0][0], Nothing());
            return;
        }
        Vec<real> *blocks = memory.get<Vec<real>>();
        for (int64_t b = 0; b < task.blocks; ++b) load_samples(x + task.before(b) * wires, task.in_block(b), blocks + b * wires);
        compare_blocks<real>(task, blocks, Nothing());
        for (int64_t b = 0; b < task.blocks; ++b) store_samples(to + task.before(b) * wires, task.in_block(b), blocks + b * wires);
    });
}

// The same, and their weights go to `weights`, unless it is null.
template <class real>
Status keys_forward(const Call<real> &call, int64_t first, int64_t count, real *values, real *weights, ParallelFor pool) {
    if (!weights) return values_forward<real>(call, first, count, values, pool);
    using Row = Vec<real>;
    const bool by_lane = KeysTask<real>::count_at_once(count) > 1;
    const int64_t bytes = by_lane ? sizeof(Row) * (wires + arrays * longest_codelet) : 0;
    return parallel(pool, KeysTask<real>::count_tasks(count), grain_of(8 * comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const KeysTask<real> task(call, first, count, number);
        const real *x = call.x + task.first * wires;
        real *to = values + task.place * wires, *kept = weights + task.place * arrays * slots;
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * wires);
            compare_levels_to_slots(to, task.steepness[0][0], weights_at(kept, slots));
            return;
        }
        Row *block = memory.get<Row>(), *tile = block + wires;
        load_samples(x, task.count, block);
        const bool strange = are_strange<real>(block, wires, task.steepness[0]);
        for (int64_t c = 0; c < codelet_count; ++c) {
            const Codelet codelet = codelets[c];
            const Weights<Row> w = weights_at(tile, longest_codelet);
            if (strange)
                compare_codelet<real, true>(c, block, task.steepness[0], w);
            else
                compare_codelet<real, false>(c, block, task.steepness[0], w);
            for (int64_t a = 0; a < arrays; ++a)
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
            const real sum = compare_levels_backward(to, from, task.steepness[0][0], weights_at(kept, slots));
            if (steepness_grad) steepness_grad[task.first] = sum;
            return;
        }
        Row *block = memory.get<Row>(), *parts = block + wires, *into = parts + slot_alignment, *tile = into + longest_codelet;
        load_gradient(values_grad ? values_grad + task.first * wires : nullptr, task.count, block, parts);
        for (int64_t c = codelet_count - 1; c >= 0; --c) {
            const Codelet codelet = codelets[c];
            const int64_t slot_count = shapes[codelet.shape].comparators;
            gather_slots(from + codelet.slot, stride, task.count, slot_count, into);
            for (int64_t a = 0; a < arrays; ++a)
                gather_slots(kept + a * slots + codelet.slot, arrays * slots, task.count, slot_count, tile + a * longest_codelet);
            compare_codelet_backward<real>(c, block, into, task.steepness[0], weights_at(tile, longest_codelet), steepness_grad ? parts : nullptr);
        }
        store_samples(to, task.count, block);
        if (steepness_grad) store(steepness_grad + task.first, sum_of_parts(parts), task.count);
    });
}

// Both at once, for gradients of the values alone.
template <class real>
Status values_backward(const Call<real> &call, const real *values_grad, real *x_grad, real *steepness_grad, ParallelFor pool) {
    using Row = Vec<real>;
    using Task = KeysTask<real, value_blocks<real>>;
    const bool by_lane = Task::count_at_once(call.batch) > 1;
    const int64_t rows = by_lane ? value_blocks<real> * slots : level_rows<real>, kept_rows = (steepness_grad ? 2 : 1) * rows;
    const int64_t others = by_lane ? sizeof(Row) * (value_blocks<real> * wires + slot_alignment) : steepness_grad ? sizeof(real) * slots : 0;
    return parallel(pool, Task::count_tasks(call.batch), grain_of(16 * comparators), sizeof(Row) * kept_rows + others,
                    [&](int64_t number, const Memory &memory) {
        const Task task(call, 0, call.batch, number);
        const real *x = call.x + task.first * wires, *from = values_grad ? values_grad + task.first * wires : nullptr;
        real *to = x_grad + task.first * wires;
        Row *held = memory.get<Row>(), *parts = held + kept_rows, *blocks = parts + slot_alignment;
        const Derivatives<Row> kept = {held, steepness_grad ? held + rows : nullptr};
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * wires);  // x_grad takes the values, which are not needed
            compare_levels(to, task.steepness[0][0], kept);
            copy_or_clear(to, from, wires);
            const real sum = derive_levels_backward<real>(to, kept, steepness_grad ? singly<real>(parts) : nullptr);
            if (steepness_grad) steepness_grad[task.first] = sum;
            return;
        }
        for (int64_t b = 0; b < task.blocks; ++b) load_samples(x + task.before(b) * wires, task.in_block(b), blocks + b * wires);
        compare_blocks<real>(task, blocks, kept);
        for (int64_t b = 0; b < task.blocks; ++b) {
            const int64_t before = task.before(b), count = task.in_block(b);
            load_gradient(from ? from + before * wires : nullptr, count, blocks, parts);
            derive_backward<real>(blocks, kept.from(b * slots), steepness_grad ? parts : nullptr);
            store_samples(to + before * wires, count, blocks);
            if (steepness_grad) store(steepness_grad + task.first + before, sum_of_parts(parts), count);
        }
    });
}
