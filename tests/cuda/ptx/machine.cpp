// The C interface of the machine: opcodes by name, and launches.

#include "machine.h"

#include "opcodes.h"

namespace ptx {
namespace {

Then waits(Memory &, Thread &, const Instruction &) { return Then::waits; }

// Opcodes that wait for other threads: the block, or the lanes of a mask, which may exchange
// values.
enum class Meeting { none, block, warp, shuffle };

struct Opcode {
    std::string name;
    Handler handler;
    Meeting meeting = Meeting::none;
};

// The lane that a lane of a shuffle reads from, which is itself outside of its segment.
// Source: PTX ISA, shfl.sync.bfly.
uint32_t source_of(uint32_t lane, uint32_t bits, uint32_t c) {
    const uint32_t segment = c >> 8 & 31, clamp = c & 31;
    const uint32_t last = (lane & segment) | (clamp & ~segment), from = lane ^ bits;
    return from <= last ? from : lane;
}

const std::vector<Opcode> &all_opcodes() {
    static const std::vector<Opcode> all = [] {
        std::vector<Opcode> found;
        for (const auto &[name, handler] : opcodes()) found.push_back({name, handler});
        found.push_back({"bar.sync", waits, Meeting::block});
        found.push_back({"bar.warp.sync", waits, Meeting::warp});
        found.push_back({"shfl.sync.bfly.b32", waits, Meeting::shuffle});
        return found;
    }();
    return all;
}

class Block {
public:
    Block(const Program &program, Memory &memory, uint32_t threads, uint32_t blocks,
          std::vector<uint32_t> order)
        : program_(program), memory_(memory), order_(std::move(order)), threads_(threads) {
        registers_.resize(size_t(threads) * size_t(program.register_count));
        local_memory_.resize(size_t(threads) * size_t(program.local_bytes) / sizeof(Word));
        for (uint32_t i = 0; i < threads; ++i) {
            Thread &thread = threads_[i];
            thread.registers = registers_.data() + i * size_t(program.register_count);
            thread.constants = program.constants;
            thread.local_memory =
                reinterpret_cast<uint8_t *>(local_memory_.data()) + i * program.local_bytes;
            thread.index = i, thread.warp = i / warp_size, thread.lane = i % warp_size;
            thread.registers[ntid] = threads, thread.registers[nctaid] = blocks;
        }
    }

    void run(uint32_t index) {
        index_ = index;
        memory_.begin_block(index);
        // What nobody sets is NaN in numbers and no address.
        std::fill(local_memory_.begin(), local_memory_.end(), ~Word(0));
        for (Thread &thread : threads_) {
            thread.registers[tid] = thread.index, thread.registers[laneid] = thread.lane;
            thread.registers[ctaid] = index;
            thread.place = 0, thread.waits_at = nullptr, thread.has_left = false;
            begin_era(thread, 0);
        }
        for (bool has_moved = true; has_moved;) {
            has_moved = false;
            for (const uint32_t i : order_)
                if (!threads_[i].has_left && !threads_[i].waits_at)
                    go_on(threads_[i]), has_moved = true;
            if (!has_moved) has_moved = release_block();
        }
        for (const Thread &thread : threads_)
            if (!thread.has_left)
                fail(why_it_waits(thread), *thread.waits_at, index_, thread.index);
    }

private:
    void go_on(Thread &thread) {
        for (;;) {
            if (thread.place >= program_.instruction_count)
                throw Failure("a kernel without an end");
            const Instruction &at = program_.instructions[thread.place++];
            if (at.guard >= 0 && get<bool>(thread, at.guard) == bool(at.negated)) continue;
            const Then then = opcodes_[at.opcode].handler(memory_, thread, at);
            if (then == Then::goes_on) continue;
            if (then == Then::leaves) return leave(thread);
            thread.waits_at = &at;
            if (meeting_of(at) == Meeting::block || !meet_lanes(thread, at)) return;
        }
    }

    Meeting meeting_of(const Instruction &at) const { return opcodes_[at.opcode].meeting; }

    void leave(Thread &thread) {
        thread.has_left = true;
        for_lanes(thread.warp, ~0u, [&](Thread &other) {
            if (other.waits_at && meeting_of(*other.waits_at) != Meeting::block &&
                other.mask >> thread.lane & 1)
                fail("a lane leaves while others of its warp wait for it", *other.waits_at, index_,
                     thread.index);
        });
    }

    template <class Visit>
    void for_lanes(uint32_t warp, uint32_t mask, Visit visit) {
        const uint32_t first = warp * warp_size, count = uint32_t(threads_.size());
        for (uint32_t lane = 0; lane < warp_size && first + lane < count; ++lane)
            if (mask >> lane & 1) visit(threads_[first + lane]);
    }

    // Where the mask stands among an instruction's operands.
    uint32_t mask_of(const Thread &thread, const Instruction &at) const {
        const Meeting meeting = meeting_of(at);
        return get<uint32_t>(thread, at.operands[meeting == Meeting::warp ? 0 : 5]);
    }

    // Returns whether all lanes of the mask have come; then each has its result and goes on.
    bool meet_lanes(Thread &thread, const Instruction &at) {
        const uint32_t mask = thread.mask = mask_of(thread, at);
        if (!(mask >> thread.lane & 1))
            fail("a lane is not in its own mask", at, index_, thread.index);
        const uint32_t lanes =
            std::min(uint32_t(threads_.size()) - thread.warp * warp_size, warp_size);
        if (lanes < warp_size && mask >> lanes)
            fail("a mask names a lane that has left", at, index_, thread.index);
        bool are_all = true;
        for_lanes(thread.warp, mask, [&](Thread &other) {
            if (other.has_left) fail("a mask names a lane that has left", at, index_, thread.index);
            // Lanes of another mask come later: they are a part of this one's.
            const bool has_come = other.waits_at && meeting_of(*other.waits_at) != Meeting::block &&
                                  other.mask == mask;
            are_all &= has_come;
            if (has_come && other.waits_at->opcode != at.opcode)
                fail("lanes of a warp disagree on a shuffle", at, index_, thread.index);
        });
        if (!are_all) return false;
        release_lanes(thread.warp, mask, at);
        return true;
    }

    void release_lanes(uint32_t warp, uint32_t mask, const Instruction &at) {
        const Opcode &opcode = opcodes_[at.opcode];
        if (opcode.meeting == Meeting::warp) order_lanes(warp, mask);
        if (opcode.meeting == Meeting::shuffle) shuffle(warp, mask);
        for_lanes(warp, mask, [](Thread &thread) { thread.waits_at = nullptr; });
    }

    // What each lane did is before what all of them do next.
    void order_lanes(uint32_t warp, uint32_t mask) {
        Clock joined = {};
        for_lanes(warp, mask, [&](const Thread &thread) {
            for (uint32_t i = 0; i < warp_size; ++i)
                joined.of_lanes[i] = std::max(joined.of_lanes[i], thread.clock.of_lanes[i]);
        });
        for_lanes(warp, mask, [&](Thread &thread) {
            std::copy(joined.of_lanes, joined.of_lanes + warp_size, thread.clock.of_lanes);
            ++thread.clock.of_lanes[thread.lane];
        });
    }

    void shuffle(uint32_t warp, uint32_t mask) {
        uint32_t given[warp_size] = {};
        for_lanes(warp, mask,
                  [&](Thread &t) { given[t.lane] = get<uint32_t>(t, t.waits_at->operands[2]); });
        for_lanes(warp, mask, [&](Thread &thread) {
            const Instruction &at = *thread.waits_at;
            const uint32_t bits = get<uint32_t>(thread, at.operands[3]) & 31;
            const uint32_t source =
                source_of(thread.lane, bits, get<uint32_t>(thread, at.operands[4]));
            if (!(mask >> source & 1))
                fail("a shuffle reads a lane outside its mask", at, index_, thread.index);
            set(thread, at.operands[0], given[source]);
            set(thread, at.operands[1], source == (thread.lane ^ bits));
        });
    }

    // Lets all threads go on if all that have not left wait at the block's barrier.
    bool release_block() {
        const Instruction *place = nullptr;
        for (const Thread &thread : threads_) {
            if (thread.has_left) continue;
            if (meeting_of(*thread.waits_at) != Meeting::block) return false;
            if (place && place != thread.waits_at)
                fail("threads of a block wait at different barriers", *thread.waits_at, index_,
                     thread.index);
            place = thread.waits_at;
        }
        if (!place) return false;
        for (Thread &thread : threads_) {
            thread.waits_at = nullptr;
            begin_era(thread, thread.clock.era + 1);
        }
        return true;
    }

    static void begin_era(Thread &thread, uint32_t era) {
        thread.clock = {era, {}};
        thread.clock.of_lanes[thread.lane] = 1;
    }

    std::string why_it_waits(const Thread &thread) const {
        return meeting_of(*thread.waits_at) == Meeting::block ? "threads wait for ever at a barrier"
                                                              : "lanes wait for ever at a shuffle";
    }

    const Program &program_;
    const Opcode *const opcodes_ = all_opcodes().data();
    Memory &memory_;
    std::vector<uint32_t> order_;
    std::vector<Thread> threads_;
    std::vector<Word> registers_, local_memory_;
    uint32_t index_ = 0;
};

enum Order { ascending, descending, shuffled };

std::vector<uint32_t> order_of(uint32_t threads, int order) {
    std::vector<uint32_t> places(threads);
    for (uint32_t i = 0; i < threads; ++i) places[i] = order == descending ? threads - 1 - i : i;
    if (order == shuffled) std::shuffle(places.begin(), places.end(), std::mt19937_64());
    return places;
}

std::string message;

}  // namespace
}  // namespace ptx

#define PTX_API extern "C" __attribute__((visibility("default")))

// The number of an opcode, or -1 if the machine does not know it.
PTX_API int32_t ptx_opcode(const char *name) {
    const auto &all = ptx::all_opcodes();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto &opcode) { return opcode.name == name; });
    return found == all.end() ? -1 : int32_t(found - all.begin());
}

// Runs blocks of a kernel, and returns null or the message of a wrong launch.
PTX_API const char *ptx_launch(const ptx::Program *program, uint32_t blocks, uint32_t threads,
                               int64_t shared_bytes, const ptx::Word *parameters,
                               const ptx::Range *ranges, int64_t range_count, int order) try {
    if (!threads || threads > ptx::most_threads || shared_bytes % 16)
        throw ptx::Failure("no block has " + std::to_string(threads) + " threads and " +
                           std::to_string(shared_bytes) + " bytes of shared memory");
    ptx::Memory memory(*program, parameters, ranges, range_count, size_t(shared_bytes));
    ptx::Block block(*program, memory, threads, blocks, ptx::order_of(threads, order));
    for (uint32_t index = 0; index < blocks; ++index) block.run(index);
    return nullptr;
} catch (const std::exception &failure) {
    ptx::message = failure.what();
    return ptx::message.c_str();
}
