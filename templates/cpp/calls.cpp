// ------------------------------------------------------------------------------------- the calls

// torch_parallel_for, or null for one thread.
using Body = void (*)(int64_t begin, int64_t end, void *context);
using ParallelFor = void (*)(int64_t begin, int64_t end, int64_t grain, Body body, void *context);

// Runs work(task, memory, state) for each task, on threads of their own. Each thread has `bytes` of
// memory; where there is none the status says so.
template <class Work>
Status parallel(ParallelFor pool, int64_t count, int64_t grain, int64_t bytes, Work work) {
    struct State {
        Work &work;
        int64_t bytes;
        int32_t status;
    } state = {work, bytes, ok};
    const Body body = [](int64_t begin, int64_t end, void *context) {
        State *state = static_cast<State *>(context);
        const Memory memory(state->bytes);
        if (!memory.start) return __atomic_store_n(&state->status, int32_t(out_of_memory), __ATOMIC_RELAXED);
        const TinyIsZero guard;
        for (int64_t task = begin; task < end; ++task) state->work(task, memory);
    };
    if (pool && count > 1)
        pool(0, count, grain, body, &state);
    else
        body(0, count, &state);
    return static_cast<Status>(state.status);
}

inline int64_t cut(int64_t total, int64_t pieces, int64_t piece) { return total * piece / pieces; }

template <class real>
struct Call {
    Routing routing;
    int64_t batch;
    const real *x;
    const real *steepness;
    int64_t steepness_stride;
    const void *payload;
    int64_t payload_stride;  // 0: one payload for all samples
    int64_t payload_columns;

    bool is_loss() const { return routing == cross_entropy || routing == binary_cross_entropy; }
    bool is_permutation() const { return routing == permutation || is_loss(); }  // the payload is P, or read off it
    bool has_payload() const { return routing == route || routing == transposed; }
    bool reversed() const { return routing == transposed || routing == rows; }
    int64_t columns() const { return routing == none ? 0 : is_permutation() ? wires : payload_columns; }
    int64_t blocks() const { return (columns() + lanes<real> - 1) / lanes<real>; }
    // Pieces that the columns are cut into, at most one per block; small ones would mostly be sums to add up.
    int64_t chunks() const {
        const int64_t pieces = 1 + comparators * blocks() / chunk_mixes, most = pieces < most_chunks ? pieces : most_chunks;
        return blocks() < most ? blocks() : most;
    }
    int64_t mixes_per_chunk() const { return chunks() ? comparators * blocks() / chunks() : 0; }
    int64_t width_of(int64_t column) const {
        return columns() - column < lanes<real> ? columns() - column : lanes<real>;
    }
    real steepness_of(int64_t sample) const { return steepness[sample * steepness_stride]; }
    const int64_t *ranks_of(int64_t sample) const {
        return static_cast<const int64_t *>(payload) + sample * payload_stride;
    }

    Status check() const {
        for (int64_t b = 0; b < batch; ++b)
            if (!(steepness_of(b) > 0 && __builtin_isfinite(steepness_of(b)))) return bad_steepness;
        if (!is_loss() && routing != rows) return ok;
        const Memory seen(wires);
        if (!seen.start) return out_of_memory;
        for (int64_t b = 0; b < batch; ++b) {
            memset(seen.get<uint8_t>(), 0, wires);
            for (int64_t c = 0; c < columns(); ++c) {
                const int64_t rank = ranks_of(b)[c];
                if (rank < 0 || rank >= wires) return is_loss() ? no_permutation : no_rank;
                if (is_loss() && seen.get<uint8_t>()[rank]++) return no_permutation;
            }
        }
        return ok;
    }

    // Lists the codelets to run on a block of columns, in running order: of P those that its columns
    // reach or that reach its rows, of any other payload all.
    int64_t list_codelets(int32_t *list, int64_t sample, int64_t column, int64_t width) const {
        int64_t count = 0;
        const auto listed = [&](auto word_at) {
            for (int64_t word = 0; word < codelet_words; ++word)
                for (uint64_t bits = word_at(word); bits; bits &= bits - 1)
                    list[count++] = int32_t(64 * word + __builtin_ctzll(bits));
        };
        if (is_permutation()) {
            const uint64_t *reached = reached_from[column / cone_columns];
            listed([&](int64_t word) { return reached[word]; });
        } else if (routing == rows) {
            const int64_t *ranks = ranks_of(sample) + column;
            listed([&](int64_t word) {
                uint64_t any = 0;
                for (int64_t k = 0; k < width; ++k) any |= reaching[ranks[k] / cone_columns][word];
                return any;
            });
        } else {
            for (; count < codelet_count; ++count) list[count] = int32_t(count);
        }
        if (reversed())
            for (int64_t i = 0; i < count / 2; ++i) exchange(list[i], list[count - 1 - i]);
        return count;
    }

    // Fills a block with `width` columns of the payload of a sample, from `column` on; where that is the unit
    // matrix or columns of it, its ones are `one`.
    void load_payload(Vec<real> *block, int64_t sample, int64_t column, int64_t width, real one) const {
        if (has_payload()) {
            const real *from = static_cast<const real *>(payload) + sample * payload_stride + column;
            for (int64_t row = 0; row < wires; ++row) block[row] = load(from + row * payload_columns, width);
            return;
        }
        memset(block, 0, sizeof(Vec<real>) * wires);
        for (int64_t k = 0; k < width; ++k) block[routing == rows ? ranks_of(sample)[column + k] : column + k][k] = one;
    }
};

// Between rows of a block and rows of `columns` values each.
template <class real>
void store_block(const Vec<real> *block, real *to, int64_t columns, int64_t width, real scale) {
    for (int64_t row = 0; row < wires; ++row) store(to + row * columns, block[row] * scale, width);
}

template <class real>
void load_block(Vec<real> *block, const real *from, int64_t columns, int64_t width) {
    for (int64_t row = 0; row < wires; ++row) block[row] = load(from + row * columns, width);
}

// Samples whose weights are held at a time: as many as fit the aim, at least one.
template <class real>
inline int64_t group_size(int64_t batch, int64_t bytes_per_sample) {
    const int64_t fits = scratch_bytes / (bytes_per_sample + 1);
    const int64_t group = fits < 1 ? 1 : fits < lanes<real> ? fits : fits / lanes<real> * lanes<real>;
    return group < batch ? group : batch;
}

// A grain that gives a thread at least some ten microseconds of work, measured in mixes.
inline int64_t grain_of(int64_t work_per_task) { return 1 + 32768 / (work_per_task + 1); }

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

template <class real>
inline real sum_of_chunks(const double *losses, int64_t chunks) {
    double sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += losses[chunk];
    return real(sum);
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
// of sample `first`, and their weights, if wanted, to `weights`.
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

// values: (batch, wires). routed: (batch, wires, columns), or (batch) losses, or null.
template <class real>
Status forward(const Call<real> &call, real *values, real *routed, ParallelFor pool) {
    using Row = Vec<real>;
    const Status checked = call.check();
    if (checked != ok) return checked;
    if (call.routing == none) return keys_forward<real>(call, 0, call.batch, values, nullptr, pool);
    if (!call.is_loss()) expect_writes(routed, sizeof(real) * call.batch * wires * call.columns());
    const int64_t per_sample = arrays * slots, chunks = call.chunks(), columns = call.columns();
    const int64_t group = group_size<real>(call.batch, per_sample * sizeof(real));
    const Memory weight_memory(group * per_sample * sizeof(real)), loss_memory(group * chunks * sizeof(double));
    if (!weight_memory.start || !loss_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>();
    double *losses = loss_memory.get<double>();
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        Status status = keys_forward(call, first, count, values + first * wires, weights, pool);
        if (status != ok) return status;
        status = parallel(pool, count * chunks, grain_of(call.mixes_per_chunk()), sizeof(Row) * wires + sizeof(int32_t) * codelet_count,
                          [&](int64_t task, const Memory &memory) {
            Row *block = memory.get<Row>();
            auto *list = reinterpret_cast<int32_t *>(block + wires);
            const int64_t b = task / chunks, sample = first + b, chunk = task % chunks;
            const real *keep = weights_at(weights + b * per_sample, slots).forward.keep;
            double loss = 0;
            for (int64_t at = cut(call.blocks(), chunks, chunk); at < cut(call.blocks(), chunks, chunk + 1); ++at) {
                const int64_t column = at * lanes<real>, width = call.width_of(column);
                call.load_payload(block, sample, column, width, unit<real>);
                route_forward<real>(block, list, call.list_codelets(list, sample, column, width), keep, call.reversed(), nullptr);
                if (call.is_loss())
                    loss += block_loss<real>(block, call.routing, call.ranks_of(sample), column, width);
                else
                    store_block<real>(block, routed + sample * wires * columns + column, columns, width, call.has_payload() ? real(1) : 1 / unit<real>);
            }
            losses[task] = loss;
        });
        if (status != ok) return status;
        for (int64_t b = 0; call.is_loss() && b < count; ++b) routed[first + b] = sum_of_chunks<real>(losses + b * chunks, chunks);
    }
    return ok;
}

// values_grad, routed_grad: as the outputs of forward, or null for zero. x_grad: (batch, wires).
// steepness_grad: (batch), or null. payload_grad: as the payload, or null.
// A loss has no routed_grad: the gradients are those of each sample's loss, which goes to `losses`, (batch).
template <class real>
Status backward(const Call<real> &call, const real *values_grad, const real *routed_grad, real *x_grad,
                real *steepness_grad, real *payload_grad, real *losses, ParallelFor pool) {
    using Row = Vec<real>;
    const Status checked = call.check();
    if (checked != ok) return checked;
    if (!routed_grad && !losses) return values_backward(call, values_grad, x_grad, steepness_grad, pool);
    const int64_t per_sample = arrays * slots, chunks = call.chunks(), columns = call.columns();
    const int64_t sums = (chunks > 0 ? chunks : 1) * slots;
    const int64_t group = group_size<real>(call.batch, (per_sample + sums) * sizeof(real));
    const Memory weight_memory(group * per_sample * sizeof(real)), sum_memory(group * sums * sizeof(real));
    const Memory loss_memory(group * chunks * sizeof(double));
    if (!weight_memory.start || !sum_memory.start || !loss_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>(), *weight_grads = sum_memory.get<real>();
    double *chunk_losses = loss_memory.get<double>();
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        // x_grad takes the values, which are not needed
        Status status = keys_forward(call, first, count, x_grad + first * wires, weights, pool);
        if (status != ok) return status;
        const int64_t bytes = sizeof(Row) * (2 * wires + loads) + sizeof(int32_t) * codelet_count;
        status = parallel(pool, count * chunks, grain_of(4 * call.mixes_per_chunk()), bytes, [&](int64_t task, const Memory &memory) {
            Row *block = memory.get<Row>(), *grad = block + wires, *kept = grad + wires;
            auto *list = reinterpret_cast<int32_t *>(kept + loads);
            const int64_t b = task / chunks, sample = first + b, chunk = task % chunks;
            const Weights<real> w = weights_at(weights + b * per_sample, slots);
            real *weight_grad = weight_grads + task * slots;
            double loss = 0;
            memset(weight_grad, 0, sizeof(real) * slots);
            for (int64_t at = cut(call.blocks(), chunks, chunk); at < cut(call.blocks(), chunks, chunk + 1); ++at) {
                const int64_t column = at * lanes<real>, width = call.width_of(column);
                const int64_t place = sample * wires * columns + column;
                call.load_payload(block, sample, column, width, call.is_loss() ? unit<real> : real(1));
                const int64_t listed = call.list_codelets(list, sample, column, width);
                Row *end = route_forward<real>(block, list, listed, w.forward.keep, call.reversed(), kept);
                if (losses) loss += block_loss<real>(block, call.routing, call.ranks_of(sample), column, width);
                if (call.is_loss())
                    block_loss_gradient<real>(block, grad, call.routing, call.ranks_of(sample), column, width);
                else
                    load_block<real>(grad, routed_grad + place, columns, width);
                route_backward<real>(grad, list, listed, end, w, call.reversed(), weight_grad);
                if (payload_grad) store_block<real>(grad, payload_grad + place, columns, width, 1);
            }
            chunk_losses[task] = loss;
        });
        if (status != ok) return status;
        for (int64_t b = 0; losses && b < count; ++b) losses[first + b] = sum_of_chunks<real>(chunk_losses + b * chunks, chunks);
        status = parallel(pool, count, grain_of(chunks * comparators), 0, [&](int64_t b, const Memory &) {
            real *total = weight_grads + b * sums;
            if (!chunks) memset(total, 0, sizeof(real) * slots);
            for (int64_t chunk = 1; chunk < chunks; ++chunk)
                for (int64_t c = 0; c < slots; ++c) total[c] += total[chunk * slots + c];
        });
        if (status == ok)
            status = keys_backward<real>(call, first, count, values_grad, weights, weight_grads, sums, x_grad, steepness_grad, pool);
        if (status != ok) return status;
    }
    return ok;
}

// Values in ascending order and where they come from, ties by position and NaN last, as torch's stable
// sort: (batch, outputs).
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
