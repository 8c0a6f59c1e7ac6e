// --------------------------------------------------------------------------------------- a call

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

    int64_t columns() const { return routing == none ? 0 : routes_identity(routing) ? wires : payload_columns; }
    int64_t blocks() const { return (columns() + lanes<real> - 1) / lanes<real>; }
    int64_t groups() const { return (blocks() + side - 1) / side; }
    int64_t used_in(int64_t group) const { return blocks() - group * side < side ? blocks() - group * side : side; }
    // Pieces that the columns are cut into, at most one per group; small ones would mostly be sums to add up.
    int64_t chunks() const {
        const int64_t pieces = 1 + comparators * blocks() / chunk_mixes, most = pieces < most_chunks ? pieces : most_chunks;
        return groups() < most ? groups() : most;
    }
    int64_t mixes_per_chunk() const { return chunks() ? comparators * blocks() / chunks() : 0; }
    int64_t width_of(int64_t column) const {
        return columns() - column < lanes<real> ? columns() - column : lanes<real>;
    }
    int64_t width_of_group(int64_t group) const {
        const int64_t left = columns() - group * side * lanes<real>;
        return left < side * lanes<real> ? left : side * lanes<real>;
    }
    real steepness_of(int64_t sample) const { return steepness[sample * steepness_stride]; }
    const int64_t *ranks_of(int64_t sample) const {
        return static_cast<const int64_t *>(payload) + sample * payload_stride;
    }

    Status check() const {
        for (int64_t b = 0; b < batch; ++b)
            if (!(steepness_of(b) > 0 && __builtin_isfinite(steepness_of(b)))) return bad_steepness;
        if (!is_loss(routing) && !has_ranks(routing)) return ok;
        const Memory seen(wires);
        if (!seen.start) return out_of_memory;
        for (int64_t b = 0; b < batch; ++b) {
            memset(seen.get<uint8_t>(), 0, wires);
            for (int64_t c = 0; c < columns(); ++c) {
                const int64_t rank = ranks_of(b)[c];
                if (rank < 0 || rank >= wires) return is_loss(routing) ? no_permutation : no_rank;
                if (is_loss(routing) && seen.get<uint8_t>()[rank]++) return no_permutation;
            }
        }
        return ok;
    }

    // Lists the codelets to run on the `count` blocks from `first` on, in running order. For P these are the codelets
    // that the columns reach, or that reach the rows; for any other payload, all codelets.
    int64_t list_codelets(Listed *list, int64_t sample, int64_t first, int64_t count) const {
        int64_t listed = 0;
        const auto enter = [&](auto word_of) {
            for (int64_t word = 0; word < codelet_words; ++word) {
                uint64_t words[side] = {}, any = 0;
                for (int64_t k = 0; k < count; ++k) any |= words[k] = word_of((first + k) * lanes<real>, word);
                for (; any; any &= any - 1) {
                    const int bit = __builtin_ctzll(any);
                    uint32_t blocks = 0;
                    for (int64_t k = 0; k < side; ++k) blocks |= uint32_t(words[k] >> bit & 1) << k;
                    list[listed++] = {int32_t(64 * word + bit), blocks};
                }
            }
        };
        if (routes_identity(routing)) {
            enter([&](int64_t column, int64_t word) { return reached_from[column / cone_columns][word]; });
        } else if (has_ranks(routing)) {
            const int64_t *ranks = ranks_of(sample);
            enter([&](int64_t column, int64_t word) {
                uint64_t any = 0;
                for (int64_t k = 0; k < width_of(column); ++k) any |= reaching[ranks[column + k] / cone_columns][word];
                return any;
            });
        } else {
            for (; listed < codelet_count; ++listed) list[listed] = {int32_t(listed), (uint32_t(1) << count) - 1};
        }
        if (is_reversed(routing))
            for (int64_t i = 0; i < listed / 2; ++i) exchange(list[i], list[listed - 1 - i]);
        return listed;
    }

    // Fills a block with columns of the payload of a sample, from `column` on. The ones of a unit matrix are `one`.
    void load_payload(Vec<real> *block, int64_t sample, int64_t column, real one) const {
        const int64_t width = width_of(column);
        if (has_columns(routing)) {
            const real *from = static_cast<const real *>(payload) + sample * payload_stride + column;
            for (int64_t row = 0; row < wires; ++row) block[row] = load(from + row * payload_columns, width);
            return;
        }
        memset(block, 0, sizeof(Vec<real>) * wires);
        for (int64_t k = 0; k < width; ++k) block[has_ranks(routing) ? ranks_of(sample)[column + k] : column + k][k] = one;
    }
};
