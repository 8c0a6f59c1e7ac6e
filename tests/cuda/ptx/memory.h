// The memory of a launch: bounds, alignment, and races.
//
// A race is found whatever the order of the threads: two threads access a cell, one of them writes,
// and no barrier between them orders the accesses. Shuffles order none (CUDA C++ Programming Guide,
// Warp Shuffle Functions). A cell has the bytes of the narrowest store, so that neighbours are no
// race.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "machine.h"

namespace ptx {

enum class Kind : int8_t { reads, writes, exchanges };

struct Access {
    int64_t block = -1;  // -1: none
    uint32_t thread, era, clock;
    int32_t line;
    Kind kind;
};

// The last write, and what came since then: reads and exchanges, but for those that a barrier
// orders before a later one of their kind. Most cells have one.
struct Cell {
    Access write, last;
    std::vector<Access> others;
    bool is_read_by_many_blocks = false, is_read_as_constant = false;
};

// Cells by address; those of a page are made when one of them is touched.
class Cells {
public:
    explicit Cells(uint64_t cell_bytes = 1) : cell_bytes_(cell_bytes) {}

    Cell &at(uint64_t address) {
        const uint64_t cell = address / cell_bytes_, page = cell / page_cells;
        if (page != last_ || !last_page_) {
            std::unique_ptr<Page> &place = pages_[page];
            if (!place) place = std::make_unique<Page>();
            last_ = page, last_page_ = place.get();
        }
        return (*last_page_)[cell % page_cells];
    }

private:
    static constexpr uint64_t page_cells = 256;
    using Page = std::array<Cell, page_cells>;
    uint64_t cell_bytes_, last_ = 0;
    Page *last_page_ = nullptr;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
};

class Memory {
public:
    Memory(const Program &program, const Word *parameters, const Range *ranges, int64_t range_count,
           size_t shared_bytes)
        : program_(program),
          parameters_(parameters),
          ranges_(ranges, ranges + range_count),
          shared_bytes_(shared_bytes),
          global_cells_(program.cell_bytes),
          // Words are aligned as the widest access wants it.
          shared_memory_(shared_bytes / sizeof(Quad) + 1) {}

    // Shared memory begins as NaN in every block, and without a write.
    void begin_block(int64_t block) {
        block_ = block;
        std::fill(shared_memory_.begin(), shared_memory_.end(), Quad{~0ull, ~0ull});
        shared_cells_ = Cells(program_.cell_bytes);
    }

    // Read or write `count` values of a type, from an operand's address on.
    template <class T>
    void load(Thread &thread, const Instruction &at) {
        const uint64_t address =
            get<uint64_t>(thread, at.operands[at.count]) + uint64_t(at.immediate);
        const uint8_t *from = place<T>(thread, at, address, Kind::reads);
        for (int i = 0; i < at.count; ++i) {
            T value;
            memcpy(&value, from + i * sizeof value, sizeof value);
            set(thread, at.operands[i], value);
        }
    }

    template <class T>
    void store(Thread &thread, const Instruction &at) {
        const uint64_t address = get<uint64_t>(thread, at.operands[0]) + uint64_t(at.immediate);
        uint8_t *to = place<T>(thread, at, address, Kind::writes);
        for (int i = 0; i < at.count; ++i) {
            const T value = get<T>(thread, at.operands[1 + i]);
            memcpy(to + i * sizeof value, &value, sizeof value);
        }
    }

    // Atomic: no race with another exchange.
    template <class T>
    void exchange(Thread &thread, const Instruction &at) {
        const uint64_t address = get<uint64_t>(thread, at.operands[1]) + uint64_t(at.immediate);
        uint8_t *where = place<T>(thread, at, address, Kind::exchanges);
        const T value = get<T>(thread, at.operands[2]);
        T before;
        memcpy(&before, where, sizeof before);
        memcpy(where, &value, sizeof value);
        set(thread, at.operands[0], before);
    }

private:
    struct Quad {
        uint64_t low, high;
    };

    template <class T>
    uint8_t *place(Thread &thread, const Instruction &at, uint64_t address, Kind kind) {
        const uint64_t bytes = sizeof(T) * uint64_t(at.count);
        if (address % bytes) fail("a misaligned access", at, uint32_t(block_), thread.index);
        switch (at.space) {
            case parameter:
                return reinterpret_cast<uint8_t *>(const_cast<Word *>(parameters_)) + address;
            case local: return in_local(thread, at, address, bytes);
            case shared: return in_shared(thread, at, uint32_t(address), bytes, kind);
            default: return in_global(thread, at, address, bytes, kind);  // global or generic
        }
    }

    uint8_t *in_local(Thread &thread, const Instruction &at, uint64_t offset, uint64_t bytes) {
        if (offset + bytes > uint64_t(program_.local_bytes))
            fail("a read or write beyond local memory", at, uint32_t(block_), thread.index);
        return thread.local_memory + offset;
    }

    uint8_t *in_shared(Thread &thread, const Instruction &at, uint64_t offset, uint64_t bytes,
                       Kind kind) {
        if (offset + bytes > shared_bytes_)
            fail("a read or write beyond shared memory", at, uint32_t(block_), thread.index);
        for (uint64_t byte = 0; byte < bytes; byte += uint64_t(program_.cell_bytes)) {
            Cell &cell = shared_cells_.at(offset + byte);
            if (kind == Kind::reads && cell.write.block < 0 && cell.last.block < 0)
                fail("a read of shared memory that nobody wrote", at, uint32_t(block_),
                     thread.index);
            note(thread, at, cell, kind);
        }
        return reinterpret_cast<uint8_t *>(shared_memory_.data()) + offset;
    }

    uint8_t *in_global(Thread &thread, const Instruction &at, uint64_t address, uint64_t bytes,
                       Kind kind) {
        const bool writes = kind != Kind::reads;
        const Range &range = range_of(thread, at, address, bytes);
        if (!range.is_written) {
            if (writes) fail("a write to a constant table", at, uint32_t(block_), thread.index);
            return reinterpret_cast<uint8_t *>(address);
        }
        for (uint64_t byte = 0; byte < bytes; byte += uint64_t(program_.cell_bytes)) {
            Cell &cell = global_cells_.at(address + byte);
            const auto is_foreign = [&](const Access &before) {
                return before.block >= 0 && before.block != block_;
            };
            if (is_foreign(cell.write))
                fail_by(writes ? "two blocks write" : "a block reads what another one writes",
                        cell.write, thread, at);
            if (writes && (is_foreign(cell.last) || cell.is_read_by_many_blocks))
                fail_by("a block writes what another one reads", cell.last, thread, at);
            if (at.is_constant && cell.write.block >= 0)
                fail_by("ld.global.nc reads what this launch writes", cell.write, thread, at);
            if (writes && cell.is_read_as_constant)
                fail_by("a write to what ld.global.nc reads in this launch", cell.last, thread, at);
            cell.is_read_by_many_blocks |= is_foreign(cell.last);
            cell.is_read_as_constant |= at.is_constant != 0;
            note(thread, at, cell, kind);
        }
        return reinterpret_cast<uint8_t *>(address);
    }

    const Range &range_of(const Thread &thread, const Instruction &at, uint64_t address,
                          uint64_t bytes) {
        const auto has = [&](const Range &range) {
            return address - range.start < range.bytes &&
                   address - range.start + bytes <= range.bytes;
        };
        if (last_range_ < ranges_.size() && has(ranges_[last_range_])) return ranges_[last_range_];
        for (last_range_ = 0; last_range_ < ranges_.size(); ++last_range_)
            if (has(ranges_[last_range_])) return ranges_[last_range_];
        fail("a read or write outside of all arguments", at, uint32_t(block_), thread.index);
    }

    bool is_before(const Access &access, const Thread &thread) const {
        if (access.thread == thread.index || access.era < thread.clock.era) return true;
        return access.thread / warp_size == thread.warp &&
               access.clock <= thread.clock.of_lanes[access.thread % warp_size];
    }

    // Compares an access with those of the cell before, and keeps it.
    void note(const Thread &thread, const Instruction &at, Cell &cell, Kind kind) {
        const Access now = {block_,           thread.index,
                            thread.clock.era, thread.clock.of_lanes[thread.lane],
                            at.line,          kind};
        const auto is_race = [&](const Access &before) {
            const bool may_meet = kind == before.kind && kind != Kind::writes;
            return before.block == block_ && !may_meet && !is_before(before, thread);
        };
        if (is_race(cell.write)) fail_by(name_of(Kind::writes, kind), cell.write, thread, at);
        if (is_race(cell.last)) fail_by(name_of(cell.last.kind, kind), cell.last, thread, at);
        for (const Access &other : cell.others)
            if (is_race(other)) fail_by(name_of(other.kind, kind), other, thread, at);
        if (kind == Kind::writes) {
            cell.write = now, cell.last = Access{};
            return cell.others.clear();
        }
        const auto is_past = [&](const Access &before) {
            return before.block != block_ || (before.kind == kind && is_before(before, thread));
        };
        if (is_past(cell.last)) {
            cell.last = now;
        } else {
            cell.others.erase(std::remove_if(cell.others.begin(), cell.others.end(), is_past),
                              cell.others.end());
            cell.others.push_back(now);
        }
    }

    static const char *name_of(Kind before, Kind now) {
        if (now == Kind::reads) return "read after write";
        return before == Kind::reads ? "write after read" : "write after write";
    }

    [[noreturn]] void fail_by(const char *what, const Access &other, const Thread &thread,
                              const Instruction &at) {
        fail(std::string("a race: ") + what + ", by thread " + std::to_string(other.thread) +
                 " of block " + std::to_string(other.block) + " at line " +
                 std::to_string(other.line),
             at, uint32_t(block_), thread.index);
    }

    const Program &program_;
    const Word *parameters_;
    std::vector<Range> ranges_;
    size_t last_range_ = 0;
    uint64_t shared_bytes_;
    int64_t block_ = 0;
    Cells global_cells_, shared_cells_;
    std::vector<Quad> shared_memory_;
};

}  // namespace ptx
