// Memory: where it begins, what is refused, what is kept from call to call.
#include "expect.h"

#include <nsc/memory.h>

using namespace nsc;

TEST(memory_begins_at_a_cache_line) {
    for (int64_t bytes = 0; bytes < 200; bytes += 7) {
        const Memory memory(bytes);
        EXPECT(memory.start != nullptr);
        EXPECT(is_aligned(memory.get<char>(), 64));
        EXPECT(memory.start->bytes >= bytes);
        memset(memory.get<char>(), 1, bytes);
        EXPECT(memory.start->bytes >= bytes);  // what is written lies behind the block's own size
    }
}

TEST(more_than_there_can_be_is_refused) {
    const Memory memory(int64_t(1) << 62);
    EXPECT(memory.start == nullptr);
}

TEST(memory_that_overlaps_in_time_does_not_in_place) {
    const Memory a(1000), b(1000);
    memset(a.get<char>(), 1, 1000);
    memset(b.get<char>(), 2, 1000);
    for (int64_t i = 0; i < 1000; ++i) EXPECT(a.get<char>()[i] == 1 && b.get<char>()[i] == 2);
}

static bool is_kept(const Block *block) {
    for (const Block *kept : kept_blocks)
        if (kept == block) return true;
    return false;
}

static Block *block_of(int64_t bytes) {
    const Memory memory(bytes);
    return memory.start;
}

static void forget() {
    for (Block *&place : kept_blocks) free(place), place = nullptr;
}

TEST(a_block_is_kept_and_taken_again) {
    forget();
    Block *const first = block_of(5000);
    EXPECT(is_kept(first));
    EXPECT(block_of(4000) == first);
    EXPECT(block_of(5000) == first);
    EXPECT(first->bytes == 5000);
}

TEST(a_kept_block_that_is_too_small_is_not_taken) {
    forget();
    Block *const small = block_of(100);
    const Memory large(200000);
    EXPECT(large.start != small);
    EXPECT(large.start->bytes >= 200000);
    EXPECT(is_kept(small));
}

TEST(large_blocks_are_not_kept) {
    forget();
    block_of(largest_kept_block + 1);
    for (const Block *kept : kept_blocks) EXPECT(kept == nullptr);
    block_of(largest_kept_block);
    EXPECT(kept_blocks[0] && kept_blocks[0]->bytes == largest_kept_block);
}

TEST(the_block_that_has_been_kept_longest_makes_room) {
    forget();
    constexpr int count = sizeof kept_blocks / sizeof *kept_blocks + 1;
    Block *blocks[count];
    for (Block *&each : blocks) each = take_block(64);
    for (Block *each : blocks) give_block(each);
    EXPECT(!is_kept(blocks[0]));
    for (int i = 1; i < count; ++i) EXPECT(is_kept(blocks[i]));
    forget();
}

TEST(expected_writes_change_nothing) {
    const Memory memory(9 << 20);
    char *const start = memory.get<char>();
    memset(start, 3, 9 << 20);
    expect_writes(start, 9 << 20);
    expect_writes(start + 1, 10);
    expect_writes(nullptr, 0);
    EXPECT(start[0] == 3 && start[5 << 20] == 3 && start[(9 << 20) - 1] == 3);
}
