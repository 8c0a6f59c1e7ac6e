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
                route_forward<real>(block, list, call.list_codelets(list, sample, column, width), keep, is_reversed(call.routing), nullptr);
                if (is_loss(call.routing))
                    loss += block_loss<real>(block, call.routing, call.ranks_of(sample), column, width);
                else
                    store_block<real>(block, routed + sample * wires * columns + column, columns, width, has_columns(call.routing) ? real(1) : 1 / unit<real>);
            }
            losses[task] = loss;
        });
        if (status != ok) return status;
        for (int64_t b = 0; is_loss(call.routing) && b < count; ++b) routed[first + b] = sum_of_chunks<real>(losses + b * chunks, chunks);
    }
    return ok;
}

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
                call.load_payload(block, sample, column, width, is_loss(call.routing) ? unit<real> : real(1));
                const int64_t listed = call.list_codelets(list, sample, column, width);
                Row *end = route_forward<real>(block, list, listed, w.forward.keep, is_reversed(call.routing), kept);
                if (losses) loss += block_loss<real>(block, call.routing, call.ranks_of(sample), column, width);
                if (is_loss(call.routing))
                    block_loss_gradient<real>(block, grad, call.routing, call.ranks_of(sample), column, width);
                else
                    load_block<real>(grad, routed_grad + place, columns, width);
                route_backward<real>(grad, list, listed, end, w, is_reversed(call.routing), weight_grad);
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
