// A machine that runs PTX: the instructions of a kernel, the threads of a block, and where they
// wait.
//
// Threads run one after another, each until it waits or leaves, in an order that the caller
// chooses. A wrong launch ends with a message. Blocks run one after another.
//
// Source: NVIDIA, Parallel Thread Execution ISA, version 9.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

constexpr uint32_t warp_size = 32, most_threads = 1024;
constexpr int most_operands = 8;

using Word = uint64_t;

enum Space : int8_t { generic, global, shared, local, parameter };

// An instruction as executed.py encodes it. An operand is a register, or a constant if it is
// negative.
struct Instruction {
    int32_t opcode, line;
    int32_t guard;    // the register of the predicate, or -1
    int32_t negated;  // whether the predicate must be false
    int32_t operands[most_operands];
    int64_t immediate;  // the offset of an address, or the place of a branch's target
    Space space;
    int8_t count, is_constant;  // of a vector; whether it is ld.global.nc
    int8_t padding[5];
};

// Bytes from `start` on that a launch may read, and may write if is_written.
struct Range {
    uint64_t start, bytes;
    int64_t is_written;
};

// A kernel. Registers of a thread begin with tid, ntid, ctaid, nctaid and laneid.
struct Program {
    const Instruction *instructions;
    const Word *constants;
    int64_t instruction_count, register_count, local_bytes;
    int64_t cell_bytes;  // the narrowest store
};

enum SpecialRegister { tid, ntid, ctaid, nctaid, laneid };

// What a thread does behind an instruction.
enum class Then { goes_on, waits, leaves };

// What has been seen of the accesses of other threads. Barriers of the block order accesses of all
// threads, so they begin a new era; barriers of a warp order those of its lanes.
struct Clock {
    uint32_t era;
    uint32_t of_lanes[warp_size];
};

struct Thread {
    Word *registers;
    const Word *constants;
    uint8_t *local_memory;
    uint32_t index, warp, lane;
    int64_t place;  // of its next instruction
    const Instruction *waits_at;
    uint32_t mask;  // of the lanes that it waits for
    bool has_left;
    Clock clock;
};

// Ends a launch.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(const std::string &what, const Instruction &at, uint32_t block,
                              uint32_t thread) {
    throw Failure(what + " (line " + std::to_string(at.line) + ", block " + std::to_string(block) +
                  ", thread " + std::to_string(thread) + ")");
}

// A value of a type in a register: its low bytes. Signed integers are extended.
template <class T>
T value_of(Word word) {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
}

template <class T>
Word word_of(T value) {
    if constexpr (std::is_integral_v<T>) {
        return Word(value);
    } else {
        Word word = 0;
        memcpy(&word, &value, sizeof value);
        return word;
    }
}

inline Word word(const Thread &thread, int32_t operand) {
    return operand >= 0 ? thread.registers[operand] : thread.constants[~operand];
}

template <class T>
T get(const Thread &thread, int32_t operand) {
    if constexpr (std::is_same_v<T, bool>)
        return word(thread, operand) != 0;
    else
        return value_of<T>(word(thread, operand));
}

template <class T>
void set(Thread &thread, int32_t operand, T value) {
    thread.registers[operand] = word_of(value);
}

}  // namespace ptx
