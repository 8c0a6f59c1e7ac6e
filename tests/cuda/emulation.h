// Runs CUDA C++ on a CPU, so that tests can run kernels where there is no GPU. Include it before the kernels.
//
// Each thread of a block is a fiber; blocks run one after another. Fibers switch only at barriers and shuffles,
// in an order that the caller chooses: without a barrier that it needs, a kernel's results depend on the order.
// Shared memory begins as NaN, and memory beyond it is protected. A wrong launch ends with a message instead of
// a crash:
//   - threads that wait at different barriers, or for ever;
//   - lanes of one mask that meet at different shuffles, or a mask that names a lane that has left;
//   - a read or write outside shared memory;
//   - a misaligned access, if the text is compiled so that these trap.
// It does not see races between blocks, and knows no limits of registers and of shared memory.
#pragma once

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

struct uint3 {
    unsigned x, y, z;
};
using dim3 = uint3;

namespace emulation {

// Code without an optimiser holds on to all that it names; pages that nothing touches take no memory.
constexpr size_t stack_bytes = 1 << 20, page = 4096, guard = 64;
constexpr unsigned most_threads = 1024, warp_size = 32;

// ------------------------------------------------------------------------------------------ fibers

#if defined(__x86_64__)
// Saves the registers that a call must keep on the old stack, and returns on the new stack.
extern "C" void emulation_switch(void **old_stack, void *new_stack);
asm(R"(
.text
.hidden emulation_switch
.globl emulation_switch
emulation_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
constexpr int saved_registers = 6;

inline void *new_fiber(char *stack_end, void (*start)()) {
    // A function expects its stack to be 8 bytes off a multiple of 16, where its return address lies.
    void **top = reinterpret_cast<void **>((reinterpret_cast<uintptr_t>(stack_end) & ~uintptr_t(15)) - 8);
    *--top = reinterpret_cast<void *>(start);
    for (int i = 0; i < saved_registers; ++i) *--top = nullptr;
    return top;
}
#elif defined(__aarch64__)
extern "C" void emulation_switch(void **old_stack, void *new_stack);
asm(R"(
.text
.hidden emulation_switch
.globl emulation_switch
emulation_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
)");

inline void *new_fiber(char *stack_end, void (*start)()) {
    constexpr int frame = 160, link_register = 88;
    char *top = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(stack_end) & ~uintptr_t(15)) - frame;
    memset(top, 0, frame);
    memcpy(top + link_register, &start, sizeof start);
    return top;
}
#else
#error "the emulation knows x86-64 and aarch64"
#endif

// ------------------------------------------------------------------------------------------- state

// The threads of a block that wait at one barrier, or the lanes of a warp that wait at one shuffle.
struct Meeting {
    unsigned generation, arrived;
    int line;
};

// The lanes of one mask, which meet at shuffles.
struct Team {
    Meeting meeting;
    uint32_t mask, arrived;
    uint64_t given[2][warp_size];  // by the parity of the generation: late lanes still read the one before
};

struct Warp {
    uint32_t alive;
    Team teams[2 * warp_size];  // enough for the masks of halves of halves; those not met yet have mask 0
};

struct Thread {
    void *stack;
    uint3 index;
    unsigned warp, lane;
    bool left;
};

enum Order { ascending, descending, shuffled };

struct Block {
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<unsigned> order, place;  // running order, and each thread's place in it
    unsigned current, alive;
    Meeting barrier;
    uint64_t fruitless;  // switches of fibers since the last progress
    uint3 index;
    dim3 size, grid;
    unsigned char *shared;
    void *launcher;  // the stack of launch()
    const void *kernel;
    void (*call)(const void *kernel);
    char message[256];
    bool failed;
};

inline Block block;

inline Thread &self() { return block.threads[block.current]; }

// Ends the launch; the first message stays.
[[noreturn]] inline void fail(const char *what, int line) {
    if (!block.failed)
        snprintf(block.message, sizeof block.message, "%s (line %d, block %u, thread %u)", what, line, block.index.x,
                 self().index.x);
    block.failed = true;
    void *forgotten;
    emulation_switch(&forgotten, block.launcher);
    abort();
}

inline void run_next(int line, const char *if_nobody_moves) {
    const unsigned count = unsigned(block.threads.size());
    if (++block.fruitless > 4 * uint64_t(count) + 64) fail(if_nobody_moves, line);
    unsigned place = block.place[block.current];
    do place = (place + 1) % count;
    while (block.threads[block.order[place]].left);
    const unsigned next = block.order[place];
    if (next == block.current) return;
    void **old_stack = &self().stack;
    block.current = next;
    emulation_switch(old_stack, block.threads[next].stack);
}

// ---------------------------------------------------------------------------- barriers and shuffles

inline void release(Meeting &meeting) {
    meeting.arrived = 0;
    ++meeting.generation;
    block.fruitless = 0;
}

inline void barrier(int line) {
    Meeting &meeting = block.barrier;
    if (!meeting.arrived)
        meeting.line = line;
    else if (meeting.line != line)
        fail("threads of a block wait at different barriers", line);
    const unsigned generation = meeting.generation;
    block.fruitless = 0;
    if (++meeting.arrived == block.alive) return release(meeting);
    while (generation == meeting.generation) run_next(line, "threads wait for ever at a barrier");
}

// Gives a value to the other lanes of a mask, waits for theirs, and returns those of all lanes.
inline const uint64_t *exchange(uint32_t mask, uint64_t value, int line) {
    const Thread &thread = self();
    Warp &warp = block.warps[thread.warp];
    if (!(mask >> thread.lane & 1)) fail("a lane is not in its own mask", line);
    if (mask & ~warp.alive) fail("a mask names a lane that has left", line);
    Team *place = warp.teams;
    while (place->mask && place->mask != mask) ++place;
    Team &team = *place;
    if (team.arrived && team.meeting.line != line) fail("lanes of a warp disagree on a shuffle", line);
    team.mask = mask;
    team.meeting.line = line;
    const unsigned generation = team.meeting.generation;
    team.given[generation & 1][thread.lane] = value;
    team.arrived |= 1u << thread.lane;
    block.fruitless = 0;
    if (team.arrived == team.mask) {
        team.arrived = 0;
        release(team.meeting);
    }
    while (generation == team.meeting.generation) run_next(line, "lanes wait for ever at a shuffle");
    return team.given[generation & 1];
}

template <class T>
T from_lane(uint32_t mask, T value, unsigned source, int line) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    const uint64_t *given = exchange(mask, bits, line);
    if (!(mask >> source & 1)) fail("a shuffle reads a lane outside its mask", line);
    memcpy(&value, given + source, sizeof value);
    return value;
}

// ------------------------------------------------------------------------------------------ launch

inline void run_thread() {
    block.call(block.kernel);
    Thread &thread = self();
    Warp &warp = block.warps[thread.warp];
    thread.left = true;
    block.fruitless = 0;
    warp.alive &= ~(1u << thread.lane);
    for (const Team &team : warp.teams)
        if (team.arrived && team.mask >> thread.lane & 1) fail("a lane leaves while others of its warp wait for it", team.meeting.line);
    if (!--block.alive) {
        void *forgotten;
        emulation_switch(&forgotten, block.launcher);
    }
    if (block.barrier.arrived == block.alive) release(block.barrier);
    run_next(0, "nobody can go on");
    abort();
}

// The protected page behind shared memory, and the handlers of signals before the launch.
inline char *forbidden;
inline struct sigaction before, before_trap;

// The signal of a trap.
#if defined(__x86_64__)
constexpr int trap = SIGILL;
#else
constexpr int trap = SIGTRAP;
#endif

// Ends the launch from the handler of a signal, and unblocks the signal.
[[noreturn]] inline void fail_by(int number, const char *what) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    fail(what, 0);
}

inline void on_bad_address(int number, siginfo_t *info, void *) {
    const char *address = static_cast<const char *>(info->si_addr);
    if (address < forbidden || address >= forbidden + page) {
        sigaction(number, &before, nullptr);  // not ours: the access repeats, and the handler before takes it
        return;
    }
    fail_by(number, "a read or write beyond shared memory");
}

inline void on_trap(int number, siginfo_t *, void *) { fail_by(number, "a misaligned access"); }

struct Memory {
    explicit Memory(size_t bytes) : bytes(bytes) {
        start = static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (start == MAP_FAILED) abort();
    }
    ~Memory() { munmap(start, bytes); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    char *start;
    size_t bytes;
};

inline bool guard_is_whole() {
    return std::all_of(block.shared - guard, block.shared, [](unsigned char byte) { return byte == 0xff; });
}

// Runs all blocks, and returns whether they were right; if not, block.message has the reason.
inline bool launch(dim3 grid, dim3 size, size_t shared_bytes, Order order, uint64_t seed, const void *kernel,
                   void (*call)(const void *)) {
    const unsigned count = size.x * size.y * size.z;
    block = Block{};
    block.size = size, block.grid = grid, block.kernel = kernel, block.call = call;
    if (!count || count > most_threads || shared_bytes % 16) {
        snprintf(block.message, sizeof block.message, "no block has %u threads and %zu bytes of shared memory", count, shared_bytes);
        return false;
    }
    const Memory stacks(count * stack_bytes);
    const size_t usable = (shared_bytes + guard + page - 1) / page * page;
    const Memory memory(usable + page);
    forbidden = memory.start + usable;
    mprotect(forbidden, page, PROT_NONE);
    block.shared = reinterpret_cast<unsigned char *>(forbidden - shared_bytes);
    struct sigaction action = {};
    action.sa_sigaction = on_bad_address;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before);
    action.sa_sigaction = on_trap;
    sigaction(trap, &action, &before_trap);
    std::mt19937_64 random(seed);
    block.threads.resize(count), block.order.resize(count), block.place.resize(count);
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x && !block.failed; ++x) {
                block.index = {x, y, z}, block.alive = count, block.barrier = {}, block.fruitless = 0;
                block.warps.assign((count + warp_size - 1) / warp_size, Warp{});
                memset(memory.start, 0xff, usable);  // NaN
                for (unsigned i = 0; i < count; ++i) {
                    block.threads[i] = {new_fiber(stacks.start + (i + 1) * stack_bytes, run_thread),
                                        {i % size.x, i / size.x % size.y, i / size.x / size.y}, i / warp_size, i % warp_size, false};
                    block.warps[i / warp_size].alive |= 1u << i % warp_size;
                    block.order[i] = order == descending ? count - 1 - i : i;
                }
                if (order == shuffled) std::shuffle(block.order.begin(), block.order.end(), random);
                for (unsigned i = 0; i < count; ++i) block.place[block.order[i]] = i;
                block.current = block.order[0];
                emulation_switch(&block.launcher, self().stack);
                if (!block.failed && !guard_is_whole()) {
                    block.failed = true;
                    snprintf(block.message, sizeof block.message, "a write in front of shared memory (block %u)", x);
                }
            }
    sigaction(SIGSEGV, &before, nullptr);
    sigaction(trap, &before_trap, nullptr);
    return !block.failed;
}

// Calls a kernel with its arguments as cuLaunchKernel takes them: an array of pointers to each.
template <auto kernel>
struct Callable;

template <class... Arguments, void (*kernel)(Arguments...)>
struct Callable<kernel> {
    static void call(const void *arguments) {
        apply(static_cast<void *const *>(arguments), std::index_sequence_for<Arguments...>());
    }
    template <size_t... places>
    static void apply(void *const *arguments, std::index_sequence<places...>) {
        kernel(*static_cast<std::remove_reference_t<Arguments> *>(arguments[places])...);
    }
};

}  // namespace emulation

// Exports a kernel as a function that launches it, and returns null or the message of a wrong launch.
#define EMULATED(kernel)                                                                                              \
    extern "C" __attribute__((visibility("default"))) const char *emulated_##kernel(                                 \
        const unsigned *grid, const unsigned *size, size_t shared_bytes, void **arguments, int order, uint64_t seed) { \
        const bool ok = emulation::launch({grid[0], grid[1], grid[2]}, {size[0], size[1], size[2]}, shared_bytes,     \
                                          static_cast<emulation::Order>(order), seed, arguments,                      \
                                          emulation::Callable<kernel>::call);                                         \
        return ok ? nullptr : emulation::block.message;                                                               \
    }

// ------------------------------------------------------------------------------- CUDA's own names

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define shared_memory (emulation::block.shared)
#define threadIdx (emulation::self().index)
#define blockIdx (emulation::block.index)
#define blockDim (emulation::block.size)
#define gridDim (emulation::block.grid)

inline void __syncthreads(int line = __builtin_LINE()) { emulation::barrier(line); }
inline void __syncwarp(uint32_t mask = ~0u, int line = __builtin_LINE()) { emulation::exchange(mask, 0, line); }

template <class T>
T __shfl_sync(uint32_t mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
    const unsigned lane = emulation::self().lane;
    return emulation::from_lane(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), line);
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int bits, int width = 32, int line = __builtin_LINE()) {
    const unsigned lane = emulation::self().lane, source = lane ^ bits;
    return emulation::from_lane(mask, value, source / width == lane / width ? source : lane, line);
}
inline int __any_sync(uint32_t mask, int condition, int line = __builtin_LINE()) {
    const uint64_t *given = emulation::exchange(mask, condition != 0, line);
    int any = 0;
    for (unsigned lane = 0; lane < emulation::warp_size; ++lane) any |= (mask >> lane & 1) && given[lane];
    return any;
}
// Fibers switch at barriers and shuffles alone.
inline int atomicExch(int *place, int value) { return std::exchange(*place, value); }

template <class To, class From>
To emulated_bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline int __float_as_int(float value) { return emulated_bits<int>(value); }
inline float __int_as_float(int bits) { return emulated_bits<float>(bits); }
inline long long __double_as_longlong(double value) { return emulated_bits<long long>(value); }
inline double __longlong_as_double(long long bits) { return emulated_bits<double>(bits); }
