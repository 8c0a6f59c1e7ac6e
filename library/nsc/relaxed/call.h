// A call: its operands, and how its columns are cut.
//
// The shapes of a call alone decide how its columns are cut: at most 16 chunks a sample, 8 with a
// factored merge. Sums over a row are trees, losses add up in float64, and chunks are added in
// order. So bits depend neither on threads nor on the batch. From eight samples on, a thread takes
// whole samples through all passes; threads share out the columns of fewer samples.
#pragma once

#include <nsc/relaxed/butterflies.h>
#include <nsc/relaxed/routings.h>
#include <nsc/threads.h>

namespace nsc {

// Chunks that a sample's columns are cut into, at most. Comparators times blocks of a chunk, about:
// a few microseconds, far more than its sums take.
constexpr int64_t most_chunks = 16, chunk_mixes = 4096;

// From so many samples on, a thread takes whole samples through all passes. The columns of fewer
// samples are shared out in chunks, and the passes follow one another, as few samples may be too
// few for the threads.
constexpr int64_t many_samples = 8;

// The fewest wires of a network that is taken in two parts: tables of fewer cost more than they
// save, the more so the narrower the registers are that they are worked out in.
constexpr int64_t fewest_parted_wires = 4096 / register_bytes;

// Whether all numbers are ones of a target of shares.
template <class real>
bool are_shares(const real *numbers, int64_t count) {
    Vec<Bits<real>> wrong = {};
    for (int64_t i = 0; i < count; i += lanes<real>)
        wrong |= ~is_share(load(numbers + i, lanes<real> < count - i ? lanes<real> : count - i));
    return !any(wrong);
}

// A byte for each word of a register.
typedef uint8_t Bytes __attribute__((vector_size(register_bytes / sizeof(uint64_t))));

template <class P, class real>
struct Call {
    const P &plan;
    Routing routing;
    int64_t batch;
    const real *x;
    const real *steepness;
    int64_t steepness_stride;
    const void *payload;
    int64_t payload_stride;  // 0: one payload for all samples
    int64_t payload_columns;
    bool some_factored = false;  // whether it factors the merge of a sample, see `factors_some`

    // Whether the call may take a sample in two parts: what is in front of the network's last
    // merge, and the merge. The error-free form has other weights backward, whose products are
    // other ones.
    static constexpr bool may_be_parted = P::may_end_in_merge && !P::Relaxation::error_free;
    bool is_parted() const {
        if constexpr (may_be_parted) {
            bool asks_for_one = false;
            with_loss(routing, [&](auto loss) { asks_for_one = decltype(loss)::of_truth; });
            return asks_for_one && form_of(routing) != of_shares && plan.merge_layers > 0 &&
                   plan.wires >= fewest_parted_wires;
        }
        return false;
    }
    int64_t columns() const {
        return routing == none ? 0 : routes_identity(routing) ? plan.wires : payload_columns;
    }
    int64_t blocks() const { return (columns() + lanes<real> - 1) / lanes<real>; }
    int64_t groups() const { return (blocks() + group_blocks - 1) / group_blocks; }
    int64_t used_in(int64_t group) const {
        return blocks() - group * group_blocks < group_blocks ? blocks() - group * group_blocks
                                                              : group_blocks;
    }
    // Chunks that the columns are cut into, at most one per group; small ones would mostly be sums
    // to add up.
    int64_t chunks() const {
        if (is_parted()) return parted_chunks();
        const int64_t parts = 1 + plan.comparators * blocks() / chunk_mixes,
                      most = parts < most_chunks ? parts : most_chunks;
        return groups() < most ? groups() : most;
    }
    // A network with a factored merge has half of the comparators left, and larger sums.
    // Each half of the columns has its chunks.
    int64_t parted_chunks() const {
        const int64_t parts = plan.comparators * blocks() / (4 * chunk_mixes);
        int64_t count = most_chunks / 2;
        while (count > 2 && (count > parts || count > groups())) count /= 2;
        return count;
    }
    int64_t mixes_per_chunk() const {
        return chunks() ? plan.comparators * blocks() / chunks() : 0;
    }
    int64_t width_of(int64_t column) const {
        return columns() - column < lanes<real> ? columns() - column : lanes<real>;
    }
    int64_t width_of_group(int64_t group) const {
        const int64_t left = columns() - group * group_blocks * lanes<real>;
        return left < group_blocks * lanes<real> ? left : group_blocks * lanes<real>;
    }
    real steepness_of(int64_t sample) const { return steepness[sample * steepness_stride]; }
    const int64_t *ranks_of(int64_t sample) const {
        return static_cast<const int64_t *>(payload) + sample * payload_stride;
    }
    // The target of a sample, if the routing is a loss.
    Target<real> target_of(int64_t sample) const {
        if (!is_loss(routing)) return {};
        int64_t count = 0;
        for (int64_t c = 0; form_of(routing) == of_ranks && c < plan.wires; ++c)
            count += ranks_of(sample)[c] != ignored;
        return target_from(sample, count ? 1 / double(count) : 0);
    }
    // The target of a sample, in which items of ranks have a weight.
    Target<real> target_from(int64_t sample, double weight) const {
        const Form form = form_of(routing);
        if (form == of_ranks) return {form, ranks_of(sample), plan.wires, weight};
        return {form, static_cast<const real *>(payload) + sample * payload_stride, plan.wires, 0};
    }
    // Whether an item of a group counts in the loss of its sample.
    bool counts(int64_t sample, int64_t group) const {
        if (!is_loss(routing)) return true;
        const int64_t first = group * group_blocks * lanes<real>;
        return target_from(sample, 1).counts(first, first + width_of_group(group));
    }

    Status check() const {
        for (int64_t b = 0; b < batch; ++b)
            if (!(steepness_of(b) > 0 && __builtin_isfinite(steepness_of(b)))) return bad_steepness;
        if (is_loss(routing)) return check_targets();
        for (int64_t b = 0; has_ranks(routing) && b < batch; ++b)
            for (int64_t c = 0; c < columns(); ++c)
                if (ranks_of(b)[c] < 0 || ranks_of(b)[c] >= plan.wires) return no_rank;
        return ok;
    }
    Status check_targets() const {
        const Memory seen(plan.wires);
        if (!seen.start) return out_of_memory;
        for (int64_t b = 0; b < batch; ++b) {
            const Target<real> target = target_of(b);
            if (target.form == of_shares && !are_shares(target.reals(), plan.wires * plan.wires))
                return bad_target;
            memset(seen.get<uint8_t>(), 0, plan.wires);
            for (int64_t c = 0; c < plan.wires; ++c) {
                if (!target.is_valid(c)) return bad_target;
                if (target.form != of_ranks || target.ranks()[c] == ignored) continue;
                if (seen.get<uint8_t>()[target.ranks()[c]]++) return bad_target;
            }
        }
        return ok;
    }

    const Butterfly *butterflies() const {
        return is_reversed(routing) ? plan.mirrored_butterflies : plan.butterflies;
    }
    // Finds the blocks that each butterfly is run on, a bit for every one of the `used` blocks of a
    // group from block `first` on. For P these are the blocks that the butterfly is reached by, or
    // that it reaches; for any other payload, all, and for rows of P of a long network. `cones` are
    // the cones of the group's word.
    void find_blocks(uint8_t *on, const uint64_t *cones, int64_t sample, int64_t first,
                     int64_t used) const {
        // Copies, as a byte that is written might be part of the plan to the compiler.
        const int64_t words = plan.cone_words(), count = plan.butterfly_count;
        const uint64_t *reaches = plan.reaches;
        const uint32_t every = (uint32_t(1) << used) - 1;
        if (routes_identity(routing)) {
            find_cone_blocks(on, cones, count, first, used);
        } else if (has_ranks(routing) && reaches) {
            memset(on, 0, count);
            for (int64_t word = 0; word < words; ++word) {
                uint64_t wanted[group_blocks] = {};
                for (int64_t k = 0; k < used; ++k)
                    for (int64_t column = (first + k) * lanes<real>,
                                 end = column + width_of(column);
                         column < end; ++column) {
                        const int64_t cone = ranks_of(sample)[column] / cone_columns;
                        if (cone / 64 == word) wanted[k] |= uint64_t(1) << cone % 64;
                    }
                for (int64_t i = 0; i < count; ++i)
                    for (int64_t k = 0; k < used; ++k)
                        on[i] |= uint8_t((reaches[word * count + i] & wanted[k]) != 0) << k;
            }
        } else {
            memset(on, int(every), count);
        }
    }
    // The butterflies that a group of a sample's columns takes, with a factored merge or without.
    Steps steps_of(int64_t sample, int64_t group, uint8_t *on, const uint64_t *cones,
                   bool is_factored) const {
        const int64_t first = group * group_blocks, used = used_in(group);
        if (is_factored) {
            find_cone_blocks(on, cones, plan.front_count, first, used);
            return {plan.front_butterflies, on, 0, plan.front_count};
        }
        find_blocks(on, cones, sample, first, used);
        return {butterflies(), on, 0, plan.butterfly_count};
    }
    // The word of light cones that the columns of a group are in.
    static int64_t word_of(int64_t group) {
        return group * group_blocks * lanes<real> / cone_columns / 64;
    }
    // A word of the light cones of the butterflies, with a factored merge or without. Cones of a
    // long network are found in `memory`, where there is room for them and for a word of each wire.
    const uint64_t *cones_of(int64_t word, bool is_factored, uint64_t *memory) const {
        const int64_t count = is_factored ? plan.front_count : plan.butterfly_count;
        if constexpr (P::is_long) {
            const Butterfly *each = is_factored ? plan.front_butterflies : plan.butterflies;
            follow_cones(plan.wires, each, count, word, memory + count, memory);
            return memory;
        }
        return (is_factored ? plan.front_reached_by : plan.reached_by) + word * count;
    }
    // The steps of butterflies that are reached by cones.
    void find_cone_blocks(uint8_t *on, const uint64_t *cones, int64_t count, int64_t first,
                          int64_t used) const {
        const uint32_t every = (uint32_t(1) << used) - 1;
        const int64_t cone = first * lanes<real> / cone_columns;
        for (int64_t i = 0; i < count; i += lanes<uint64_t>) {
            const int64_t left = count - i < lanes<uint64_t> ? count - i : lanes<uint64_t>;
            const Bytes blocks = __builtin_convertvector(
                blocks_in(load(cones + i, left) >> uint64_t(cone % 64)) & uint64_t(every), Bytes);
            memcpy(on + i, &blocks, left);
        }
    }
    // The blocks of a group in its cones: a block has as many columns as a cone, or half as many.
    static Vec<uint64_t> blocks_in(Vec<uint64_t> cones_of_group) {
        if (lanes<real> == cone_columns) return cones_of_group;
        Vec<uint64_t> blocks = {};
        NSC_UNROLL
        for (uint64_t k = 0; k < group_blocks; ++k)
            blocks |= (cones_of_group >> k * lanes<real> / cone_columns & uint64_t(1)) << k;
        return blocks;
    }
};

}  // namespace nsc
