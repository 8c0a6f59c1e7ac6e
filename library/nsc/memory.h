// Memory for the time of a call.
#pragma once

// C headers only, so that a kernel needs no C++ library.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace nsc {

// A few blocks of memory are kept from call to call. The system maps a fresh block page by page,
// which takes longer than a small call.
struct alignas(64) Block {
    int64_t bytes;
};

constexpr int64_t largest_kept_block = 1 << 22;
static Block *kept_blocks[8];

// Keeps the block, and frees the one that has been kept longest if there is no room.
inline void keep_block(Block *block) {
    for (Block *&place : kept_blocks)
        if (block) block = __atomic_exchange_n(&place, block, __ATOMIC_ACQ_REL);
    free(block);
}

inline Block *take_block(int64_t bytes) {
    for (Block *&place : kept_blocks) {
        Block *block = __atomic_exchange_n(&place, nullptr, __ATOMIC_ACQ_REL);
        if (block && block->bytes >= bytes) return block;
        if (block) keep_block(block);
    }
    void *start = nullptr;
    if (posix_memalign(&start, sizeof(Block), sizeof(Block) + size_t(bytes)) != 0) return nullptr;
    Block *block = static_cast<Block *>(start);
    block->bytes = bytes;
    return block;
}

inline void give_block(Block *block) {
    if (block && block->bytes <= largest_kept_block)
        keep_block(block);
    else
        free(block);
}

// Memory until the end of a scope. `start` is null if there is none.
struct Memory {
    explicit Memory(int64_t bytes) : start(take_block(bytes)) {}
    ~Memory() { give_block(start); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    // Begins at a cache line.
    template <class T>
    T *get() const {
        return reinterpret_cast<T *>(start + 1);
    }
    Block *start;
};

// Asks for large pages for memory that is about to be written for the first time. Small pages take
// longer to map than an exact sort takes, large ones a fraction of that.
inline void expect_writes(void *start, int64_t bytes) {
#if defined(__linux__)
    constexpr uintptr_t page = 4096, least = 1 << 22;
    const uintptr_t from = (reinterpret_cast<uintptr_t>(start) + page - 1) & ~(page - 1);
    const uintptr_t to = (reinterpret_cast<uintptr_t>(start) + uintptr_t(bytes)) & ~(page - 1);
    if (to > from && to - from >= least)
        (void)madvise(reinterpret_cast<void *>(from), to - from, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

}  // namespace nsc
