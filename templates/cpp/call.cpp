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

    // Finds the blocks that each butterfly is run on, a bit for each of the `used` blocks of a group from block `first` on.
    // For P these are the blocks that the butterfly is reached by, or that it reaches; for any other payload, all.
    void find_blocks(uint8_t *on, int64_t sample, int64_t first, int64_t used) const {
        const uint32_t every = (uint32_t(1) << used) - 1;
        if (routes_identity(routing)) {
            const int64_t cone = first * lanes<real> / cone_columns;
            for (int64_t i = 0; i < butterfly_count; ++i) on[i] = uint8_t(every & blocks_in(reached_by[i][cone / 64] >> cone % 64));
        } else if (has_ranks(routing)) {
            uint64_t wanted[side][cone_words] = {};
            for (int64_t k = 0; k < used; ++k)
                for (int64_t column = (first + k) * lanes<real>, end = column + width_of(column); column < end; ++column) {
                    const int64_t cone = ranks_of(sample)[column] / cone_columns;
                    wanted[k][cone / 64] |= uint64_t(1) << cone % 64;
                }
            for (int64_t i = 0; i < butterfly_count; ++i) {
                uint32_t blocks = 0;
                for (int64_t k = 0; k < used; ++k) {
                    uint64_t any = 0;
                    for (int64_t word = 0; word < cone_words; ++word) any |= reaches[i][word] & wanted[k][word];
                    blocks |= uint32_t(any != 0) << k;
                }
                on[i] = uint8_t(blocks);
            }
        } else {
            memset(on, int(every), butterfly_count);
        }
    }
    // The blocks of a group in its cones: a block has as many columns as a cone, or half as many.
    static uint32_t blocks_in(uint64_t cones_of_group) {
        if (lanes<real> == cone_columns) return uint32_t(cones_of_group);
        uint32_t blocks = 0;
        NSC_UNROLL
        for (int64_t k = 0; k < side; ++k) blocks |= uint32_t(cones_of_group >> k * lanes<real> / cone_columns & 1) << k;
        return blocks;
    }
};
