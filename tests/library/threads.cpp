// Threads: every part of a call's work is done once, in any pool.
#include "expect.h"

#include <nsc/threads.h>
#include <pthread.h>

using namespace nsc;

// Pools: what torch_parallel_for may do with a range.
static void at_once(int64_t begin, int64_t end, int64_t, Body body, void *context) {
    body(begin, end, context);
}

static void last_first(int64_t begin, int64_t end, int64_t grain, Body body, void *context) {
    for (int64_t at = end; at > begin; at -= grain)
        body(at - grain > begin ? at - grain : begin, at, context);
}

struct Part {
    int64_t begin, end;
    Body body;
    void *context;
};

static void *run_part(void *part) {
    const Part &of = *static_cast<Part *>(part);
    of.body(of.begin, of.end, of.context);
    return nullptr;
}

static void by_threads(int64_t begin, int64_t end, int64_t, Body body, void *context) {
    constexpr int count = 4;
    pthread_t threads[count];
    Part parts[count];
    for (int i = 0; i < count; ++i) {
        const int64_t first = begin + cut(end - begin, count, i),
                      last = begin + cut(end - begin, count, i + 1);
        parts[i] = {first, last, body, context};
        pthread_create(&threads[i], nullptr, run_part, &parts[i]);
    }
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

constexpr ParallelFor pools[] = {nullptr, at_once, last_first, by_threads};

TEST(each_task_is_run_once) {
    for (const ParallelFor pool : pools)
        for (int64_t count = 0; count < 12; ++count) {
            int done[12] = {};
            const Status status =
                parallel(pool, count, 5, 8, [&](int64_t task, const Memory &memory) {
                *memory.get<int64_t>() = task;
                ++done[*memory.get<int64_t>()];
            });
            EXPECT(status == ok);
            for (int64_t task = 0; task < 12; ++task) EXPECT(done[task] == (task < count));
        }
}

TEST(ranges_cover_all_tasks) {
    for (const ParallelFor pool : pools) {
        int done[10] = {};
        const Status status =
            parallel_ranges(pool, 10, 3, 0, [&](int64_t begin, int64_t end, const Memory &) {
            for (int64_t task = begin; task < end; ++task) ++done[task];
            return ok;
        });
        EXPECT(status == ok);
        for (int each : done) EXPECT(each == 1);
    }
}

TEST(one_task_needs_no_pool) {
    const auto never = [](int64_t, int64_t, int64_t, Body, void *) { EXPECT(!"asked"); };
    int done = 0;
    parallel(never, 1, 1, 0, [&](int64_t, const Memory &) { ++done; });
    EXPECT(done == 1);
}

TEST(a_failure_of_any_range_is_that_of_the_call) {
    for (const ParallelFor pool : pools) {
        const Status status = parallel_ranges(
            pool, 8, 1, 0,
            [](int64_t begin, int64_t, const Memory &) { return begin == 0 ? out_of_memory : ok; });
        EXPECT(status == out_of_memory);
    }
}

TEST(work_without_its_memory_is_not_begun) {
    for (const ParallelFor pool : pools) {
        bool begun = false;
        const Status status =
            parallel(pool, 8, 1, int64_t(1) << 62, [&](int64_t, const Memory &) { begun = true; });
        EXPECT(status == out_of_memory && !begun);
    }
}

TEST(once_is_once_and_again_after_a_failure) {
    Once once = {};
    int made = 0;
    EXPECT(once.run([&] { return ++made, out_of_memory; }) == out_of_memory);
    EXPECT(once.run([&] { return ++made, ok; }) == ok);
    EXPECT(once.run([&] { return ++made, out_of_memory; }) == ok);
    EXPECT(made == 2);
}

TEST(threads_that_ask_once_at_the_same_time_make_one) {
    struct Asked {
        Once once;
        int made;
    } asked = {};
    const Body ask = [](int64_t begin, int64_t end, void *context) {
        Asked &of = *static_cast<Asked *>(context);
        for (int64_t i = begin; i < end; ++i) of.once.run([&] { return ++of.made, ok; });
    };
    by_threads(0, 400, 1, ask, &asked);
    EXPECT(asked.made == 1);
}

TEST(statuses_have_the_numbers_of_the_interface) {
    EXPECT(ok == 0 && out_of_memory == 1 && bad_steepness == 2 && bad_target == 3 && no_rank == 4);
}

static double half_of_the_smallest() {
    volatile double smallest = 0x1p-1022;
    return smallest * 0.5;
}

TEST(subnormal_numbers_count_as_zero_while_the_guard_lives) {
    EXPECT(half_of_the_smallest() == 0x1p-1023);
    {
        const TinyIsZero guard;
        EXPECT(half_of_the_smallest() == 0);
    }
    EXPECT(half_of_the_smallest() == 0x1p-1023);
    parallel(nullptr, 1, 1, 0,
             [](int64_t, const Memory &) { EXPECT(half_of_the_smallest() == 0); });
    EXPECT(half_of_the_smallest() == 0x1p-1023);
}

TEST(a_grain_is_the_smaller_the_more_work_a_task_is) {
    EXPECT(grain_of(0) == 32769);
    EXPECT(grain_of(100) > 200 && grain_of(100) < 400);
    EXPECT(grain_of(1 << 20) == 1);
}

TEST(pieces_of_a_cut_meet) {
    for (int64_t total = 0; total < 20; ++total)
        for (int64_t pieces = 1; pieces < 6; ++pieces) {
            EXPECT(cut(total, pieces, 0) == 0 && cut(total, pieces, pieces) == total);
            for (int64_t piece = 0; piece < pieces; ++piece) {
                const int64_t size = cut(total, pieces, piece + 1) - cut(total, pieces, piece);
                EXPECT(size == total / pieces || size == total / pieces + 1);
            }
        }
}
