// ----------------------------------------------------------------------------- the routing pass

template <class real>
inline real sum_of_chunks(const double *losses, int64_t chunks) {
    double sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += losses[chunk];
    return real(sum);
}

// values: (batch, wires). routed: (batch, wires, columns), or (batch) losses, or null.
template <class real>
Status forward(const Call<real> &call, real *values, real *routed, ParallelFor pool) {
    using Row = Vec<real>;
    const Status checked = call.check();
    if (checked != ok) return checked;
    if (call.routing == none) return keys_forward<real>(call, 0, call.batch, values, nullptr, pool);
    if (!is_loss(call.routing)) expect_writes(routed, sizeof(real) * call.batch * wires * call.columns());
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
        status = parallel(pool, count * chunks, grain_of(call.mixes_per_chunk()), sizeof(Row) * side * wires + sizeof(Listed) * codelet_count,
                          [&](int64_t task, const Memory &memory) {
            Row *blocks = memory.get<Row>();
            auto *list = reinterpret_cast<Listed *>(blocks + side * wires);
            const int64_t b = task / chunks, sample = first + b, chunk = task % chunks;
            const real *keep = weights_at(weights + b * per_sample, slots).forward.keep;
            double loss = 0;
            for (int64_t group = cut(call.groups(), chunks, chunk); group < cut(call.groups(), chunks, chunk + 1); ++group) {
                const int64_t at = group * side, used = call.used_in(group);
                for (int64_t k = 0; k < used; ++k) call.load_payload(blocks + k * wires, sample, (at + k) * lanes<real>, unit<real>);
                route_forward<real>(blocks, list, call.list_codelets(list, sample, at, used), keep, is_reversed(call.routing));
                if (!is_loss(call.routing)) {
                    real *to = routed + sample * wires * columns + at * lanes<real>;
                    store_group<real>(blocks, to, columns, call.width_of_group(group), has_columns(call.routing) ? real(1) : 1 / unit<real>);
                    continue;
                }
                for (int64_t k = 0; k < used; ++k) {
                    const int64_t column = (at + k) * lanes<real>;
                    loss += block_loss<real>(blocks + k * wires, call.routing, call.ranks_of(sample), column, call.width_of(column));
                }
            }
            losses[task] = loss;
        });
        if (status != ok) return status;
        for (int64_t b = 0; is_loss(call.routing) && b < count; ++b) routed[first + b] = sum_of_chunks<real>(losses + b * chunks, chunks);
    }
    return ok;
}

// The gradients of a sample's weights are sums over its pieces of columns, added in order. A thread that begins with a
// sample's first piece adds the following ones to it. A thread that begins inside a sample leaves its pieces apart, to be
// added when all threads have ended.
template <class real>
struct PieceSums {
    // Where the sums of a piece begin at zero. `spare` is the thread's own memory.
    real *begin(int64_t task, int64_t first_task, real *spare) const {
        const bool is_apart = task - task % chunks < first_task;
        apart[task] = is_apart;
        real *sums = is_apart || task % chunks == 0 ? of(task) : spare;
        memset(sums, 0, sizeof(real) * slots);
        return sums;
    }
    void end(int64_t task, const real *sums) const {
        if (sums != of(task)) add(task, sums);
    }
    // Adds the pieces of a sample that lie apart.
    void finish(int64_t sample) const {
        for (int64_t task = sample * chunks + 1; task < (sample + 1) * chunks; ++task)
            if (apart[task]) add(task, of(task));
    }
    void add(int64_t task, const real *sums) const {
        real *total = of(task - task % chunks);
        for (int64_t c = 0; c < slots; ++c) total[c] += sums[c];
    }
    real *of(int64_t task) const { return weight_grads + task * slots; }
    real *weight_grads;
    bool *apart;
    int64_t chunks;
};

// values_grad, routed_grad: as the outputs of forward, or null for zero. x_grad: (batch, wires).
// steepness_grad: (batch), or null. payload_grad: as the payload, or null.
// A loss has no routed_grad. Each sample's loss goes to `losses`, (batch), and the gradients are its gradients.
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
    const Memory loss_memory(group * chunks * (sizeof(double) + sizeof(bool)));
    if (!weight_memory.start || !sum_memory.start || !loss_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>(), *weight_grads = sum_memory.get<real>();
    double *chunk_losses = loss_memory.get<double>();
    const PieceSums<real> pieces = {weight_grads, reinterpret_cast<bool *>(chunk_losses + group * chunks), chunks};
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        // x_grad takes the values, which are not needed
        Status status = keys_forward(call, first, count, x_grad + first * wires, weights, pool);
        if (status != ok) return status;
        const int64_t bytes = sizeof(Row) * (2 * side * wires + kept_rows) + sizeof(real) * slots + sizeof(Listed) * codelet_count;
        status = parallel_ranges(pool, count * chunks, grain_of(4 * call.mixes_per_chunk()), bytes, [&](int64_t first_task, int64_t end_task, const Memory &memory) {
            Row *blocks = memory.get<Row>(), *grads = blocks + side * wires, *kept = grads + side * wires;
            real *spare = reinterpret_cast<real *>(kept + kept_rows);
            auto *list = reinterpret_cast<Listed *>(spare + slots);
            for (int64_t task = first_task; task < end_task; ++task) {
                const int64_t b = task / chunks, sample = first + b, chunk = task % chunks;
                const Weights<real> w = weights_at(weights + b * per_sample, slots);
                real *weight_grad = pieces.begin(task, first_task, spare);
                double loss = 0;
                for (int64_t group = cut(call.groups(), chunks, chunk); group < cut(call.groups(), chunks, chunk + 1); ++group) {
                    const int64_t at = group * side, used = call.used_in(group);
                    for (int64_t k = 0; k < used; ++k)
                        call.load_payload(blocks + k * wires, sample, (at + k) * lanes<real>, is_loss(call.routing) ? unit<real> : real(1));
                    const int64_t listed = call.list_codelets(list, sample, at, used);
                    Row *end = route_forward_keeping<real>(blocks, list, listed, w.forward.keep, is_reversed(call.routing), kept);
                    for (int64_t k = 0; is_loss(call.routing) && k < used; ++k) {
                        const int64_t column = (at + k) * lanes<real>, width = call.width_of(column);
                        const Row *block = blocks + k * wires;
                        if (losses) loss += block_loss<real>(block, call.routing, call.ranks_of(sample), column, width);
                        block_loss_gradient<real>(block, grads + k * wires, call.routing, call.ranks_of(sample), column, width);
                    }
                    const int64_t place = sample * wires * columns + at * lanes<real>;
                    if (!is_loss(call.routing)) load_group<real>(grads, routed_grad + place, columns, call.width_of_group(group));
                    route_backward<real>(grads, list, listed, end, w, is_reversed(call.routing), weight_grad);
                    if (payload_grad) store_group<real>(grads, payload_grad + place, columns, call.width_of_group(group), 1);
                }
                pieces.end(task, weight_grad);
                chunk_losses[task] = loss;
            }
        });
        if (status != ok) return status;
        for (int64_t b = 0; losses && b < count; ++b) losses[first + b] = sum_of_chunks<real>(chunk_losses + b * chunks, chunks);
        status = parallel(pool, count, grain_of(chunks * comparators), 0, [&](int64_t b, const Memory &) {
            if (!chunks) memset(weight_grads + b * sums, 0, sizeof(real) * slots);
            pieces.finish(b);
        });
        if (status == ok)
            status = keys_backward<real>(call, first, count, values_grad, weights, weight_grads, sums, x_grad, steepness_grad, pool);
        if (status != ok) return status;
    }
    return ok;
}
