// Threads: work shared out on a pool that the caller has.
#pragma once

#include <nsc/memory.h>
#include <stdint.h>

namespace nsc {

// The status of a call, numbered as in nsc.contract.interface.
enum Status {
    ok = 0,
    out_of_memory = 1,
    bad_steepness = 2,
    bad_target = 3,
    no_rank = 4,
};

// Calls make() until it is ok, and never again. Several threads may ask at the same time.
struct Once {
    template <class Make>
    Status run(Make make) {
        while (__atomic_test_and_set(&running, __ATOMIC_ACQUIRE)) {}
        const Status status = done ? ok : make();
        done = status == ok;
        __atomic_clear(&running, __ATOMIC_RELEASE);
        return status;
    }
    bool running, done;
};

// Subnormal numbers count as zero on this thread while it lives. They are common in P, whose
// entries are products of many weights, and processors take about 100 times as long for them.
struct TinyIsZero {
#if defined(__SSE__)
    TinyIsZero() : before(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before | 0x8040); }
    ~TinyIsZero() { __builtin_ia32_ldmxcsr(before); }
    uint32_t before;
#elif defined(__aarch64__)
    TinyIsZero() {
        asm volatile("mrs %0, fpcr" : "=r"(before));
        asm volatile("msr fpcr, %0" ::"r"(before | uint64_t(1) << 24));
    }
    ~TinyIsZero() { asm volatile("msr fpcr, %0" ::"r"(before)); }
    uint64_t before;
#else
    TinyIsZero() {}
    ~TinyIsZero() {}
#endif
    TinyIsZero(const TinyIsZero &) = delete;
    TinyIsZero &operator=(const TinyIsZero &) = delete;
};

// torch_parallel_for, or null for one thread.
using Body = void (*)(int64_t begin, int64_t end, void *context);
using ParallelFor = void (*)(int64_t begin, int64_t end, int64_t grain, Body body, void *context);

// Runs work(begin, end, memory) for ranges of tasks, on the threads of a pool. Each thread has
// `bytes` of memory. Returns out_of_memory if a thread gets none, or if its work says so.
template <class Work>
Status parallel_ranges(ParallelFor pool, int64_t count, int64_t grain, int64_t bytes, Work work) {
    struct State {
        Work &work;
        int64_t bytes;
        int32_t status;
    } state = {work, bytes, ok};
    const Body body = [](int64_t begin, int64_t end, void *context) {
        State *state = static_cast<State *>(context);
        const Memory memory(state->bytes);
        if (!memory.start)
            return __atomic_store_n(&state->status, int32_t(out_of_memory), __ATOMIC_RELAXED);
        const TinyIsZero guard;
        const Status status = state->work(begin, end, memory);
        if (status != ok) __atomic_store_n(&state->status, int32_t(status), __ATOMIC_RELAXED);
    };
    if (pool && count > 1)
        pool(0, count, grain, body, &state);
    else
        body(0, count, &state);
    return static_cast<Status>(state.status);
}

// The same, but without a pool in the caller's own memory.
template <class Work>
Status parallel_ranges(const Memory &own_memory, ParallelFor pool, int64_t count, int64_t grain,
                       int64_t bytes, Work work) {
    if (pool) return parallel_ranges(pool, count, grain, bytes, work);
    const TinyIsZero guard;
    return work(0, count, own_memory);
}

// The same as parallel_ranges, work(task, memory) for each task.
template <class Work>
Status parallel(ParallelFor pool, int64_t count, int64_t grain, int64_t bytes, Work work) {
    return parallel_ranges(pool, count, grain, bytes,
                           [&](int64_t begin, int64_t end, const Memory &memory) {
        for (int64_t task = begin; task < end; ++task) work(task, memory);
        return ok;
    });
}

// A grain that gives a thread at least some ten microseconds of work, measured in mixes.
inline int64_t grain_of(int64_t work_per_task) { return 1 + 32768 / (work_per_task + 1); }

inline int64_t cut(int64_t total, int64_t parts, int64_t part) { return total * part / parts; }

}  // namespace nsc
