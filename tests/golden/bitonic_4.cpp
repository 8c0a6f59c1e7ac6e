// bitonic_4: differentiable sorting of 4 values.
//
// Made by:    nsc compile bitonic --n 4
// nsc:        0
// Network:    4 wires, 6 comparators, 3 layers, sha256 8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a
// Proof:      sorts every input, by exhaustion: untangled to standard form; all 2^4 0-1 inputs come out sorted
// Relaxation: logistic, ART λ = 0.25
//
// A relaxed comparator (lo, hi) is a 2x2 mix with the weights keep = f(v) and swap = f(-v) = 1 - f(v) of
// v = steepness * phi(x[hi] - x[lo]), each from its own tail:
//
//     y[lo] = keep x[lo] + swap x[hi]          y[hi] = keep x[hi] + swap x[lo]
//
// so the network is a product P of these mixes and y = P x. There are two passes:
//
//   keys     x -> the weights of all comparators and the sorted values y;
//   routing  the same mixes applied to the rows of a payload: P V in the order of the layers,
//            P^T U in the reverse order. P itself is the payload V = I, a block of columns at a time.
//
// The routing runs butterflies: comparators of two layers on four wires. Those of a codelet, at most 16 wires, come
// one behind the other, while their rows are in the cache. A gradient G of the routed payload goes back through the
// same mixes, and the gradient of a weight is the sum over columns of (G[lo] - G[hi]) (V[lo] - V[hi]). The backward
// routing runs forward once more and keeps the differences of V. One reverse keys pass then turns gradients of weights
// and values into gradients of x and of the steepness.
//
// P of this narrow network, and losses of it, take another way through the routing: a lane is a sample, nothing is
// recomputed, and the forward pass can keep the weights for the backward pass.
//
// Results do not depend on the number of threads: only the shapes decide how sums are cut into pieces, and the
// pieces are added in a fixed order.

// C headers only, so that the kernel needs no C++ library.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

// How functions and tables are declared that the kernels of all targets share.
#define NSC_FUNCTION inline
#define NSC_TABLE constexpr
// Always inlined: a step is part of its codelet.
#define NSC_INLINE __attribute__((always_inline))
#define NSC_STEP NSC_INLINE inline
// Never inlined: one piece of code for many callers.
#define NSC_APART __attribute__((noinline))
#define NSC_CODELET NSC_STEP
// Unrolls a loop over the lanes of a register.
#if defined(__clang__)
#define NSC_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NSC_UNROLL _Pragma("GCC unroll 64")
#endif

namespace {

constexpr int64_t most_chunks = 16;  // pieces that a sample's columns are cut into
constexpr int64_t chunk_mixes = 4096;  // comparators times blocks in a piece, about
constexpr int64_t scratch_bytes = 33554432;  // aim for the weights held at a time

constexpr int64_t wires = 4;
constexpr int64_t comparators = 6;
constexpr int64_t levels = 3;  // at most
constexpr int64_t codelet_count = 1;
constexpr int64_t slots = 16, slot_alignment = 16;  // places for weights
constexpr int64_t widest_codelet = 16, longest_codelet = 16;  // most wires, most slots

// The comparators, cut into codelets that are run on the wires they load: base + spreads[spread + k] for
// each k. A codelet's weights begin at slot `slot`.
struct alignas(16) Codelet {
    int32_t shape, spread, base, slot;
    int32_t turns;
};

NSC_TABLE Codelet codelets[] = {
    {0, 0, 0, 0, 0}, {},
};

NSC_TABLE uint16_t spreads[] = {
    0, 1, 2, 3, 0,
};

// What codelets of one shape do: comparators between places in their spreads of wires.
struct Shape {
    int32_t wires, first_pair, comparators;
};

struct Pair {
    uint8_t a, b;
};

NSC_TABLE Shape shapes[] = {
    {4, 0, 6}, {0, 0, 0},
};

NSC_TABLE Pair shape_pairs[] = {
    {0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}, {2, 3}, {0, 0},
};

// Whether a codelet's comparator leaves the minimum on its second wire.
NSC_TABLE uint64_t turns[][2] = {
    {0x2, 0x0},
};

NSC_FUNCTION bool is_turned(Codelet codelet, int32_t comparator) {
    return turns[codelet.turns][comparator / 64] >> comparator % 64 & 1;
}

// What a call answers.
enum Status {
    ok = 0,
    out_of_memory = 1,
    bad_steepness = 2,
    no_permutation = 3,
    no_rank = 4,
};

// What the routing pass does.
enum Routing {
    none = 0,
    permutation = 1,
    route = 2,
    transposed = 3,
    rows = 4,
    cross_entropy = 5,
    binary_cross_entropy = 6,
};

// Whether a routing gives a loss for each sample.
NSC_FUNCTION bool is_loss(Routing routing) {
    switch (routing) {
        case cross_entropy:
        case binary_cross_entropy:
            return true;
        default:
            return false;
    }
}

// Whether a routing's payload is the unit matrix: what is routed is P, or a loss is read off it.
NSC_FUNCTION bool routes_identity(Routing routing) {
    switch (routing) {
        case permutation:
        case cross_entropy:
        case binary_cross_entropy:
            return true;
        default:
            return false;
    }
}

// Whether a routing takes columns of a payload.
NSC_FUNCTION bool has_columns(Routing routing) {
    switch (routing) {
        case route:
        case transposed:
            return true;
        default:
            return false;
    }
}

// Whether a routing takes ranks, whose rows of P are wanted.
NSC_FUNCTION bool has_ranks(Routing routing) {
    switch (routing) {
        case rows:
            return true;
        default:
            return false;
    }
}

// Whether a routing runs the comparators from the last to the first.
NSC_FUNCTION bool is_reversed(Routing routing) {
    switch (routing) {
        case transposed:
        case rows:
            return true;
        default:
            return false;
    }
}

// --------------------------------------------------------------------------------------- memory

// A few blocks of memory are kept from call to call. The system maps a fresh block page by page, which takes longer
// than a small call.
struct alignas(64) Block {
    int64_t bytes;
};

constexpr int64_t largest_kept_block = 1 << 22;
Block *kept_blocks[8];

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

// Asks for large pages for memory that is about to be written for the first time. Small pages take longer to map
// than an exact sort takes, large ones a fraction of that.
inline void expect_writes(void *start, int64_t bytes) {
#if defined(__linux__)
    constexpr uintptr_t page = 4096, least = 1 << 22;
    const uintptr_t from = (reinterpret_cast<uintptr_t>(start) + page - 1) & ~(page - 1);
    const uintptr_t to = (reinterpret_cast<uintptr_t>(start) + uintptr_t(bytes)) & ~(page - 1);
    if (to > from && to - from >= least) (void)madvise(reinterpret_cast<void *>(from), to - from, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

// Whole numbers as wide as a real.
template <class real>
struct WholeOf {
    using type = int64_t;
};
template <>
struct WholeOf<float> {
    using type = int32_t;
};
template <class real>
using Whole = typename WholeOf<real>::type;

// ------------------------------------------------------------------------------------ registers

#if defined(__AVX512F__)
constexpr int64_t register_bytes = 64;
#elif defined(__AVX__)
constexpr int64_t register_bytes = 32;
#else
constexpr int64_t register_bytes = 16;
#endif

template <class T>
struct VecOf {
    typedef T type __attribute__((vector_size(register_bytes)));
};

template <class T>
using Vec = typename VecOf<T>::type;

template <class T>
constexpr int64_t lanes = register_bytes / int64_t(sizeof(T));

// In every lane the same number.
template <class T>
inline Vec<T> all(T value) {
    return value - Vec<T>{};
}

// Between a register and memory, `count` values; a full register is one instruction.
template <class T>
inline Vec<T> load(const T *from, int64_t count = lanes<T>) {
    Vec<T> row;
    if (count == lanes<T>) {
        memcpy(&row, from, sizeof row);
    } else {
        row = Vec<T>{};
        memcpy(&row, from, sizeof(T) * count);
    }
    return row;
}

template <class T>
inline void store(T *to, Vec<T> row, int64_t count = lanes<T>) {
    if (count == lanes<T>)
        memcpy(to, &row, sizeof row);
    else
        memcpy(to, &row, sizeof(T) * count);
}

// The numbers 0 ... count - 1, for shuffles, whose lanes must be known when compiling.
template <int... places>
struct Places {};

template <int count, int... places>
struct PlacesTo : PlacesTo<count - 1, count - 1, places...> {};

template <int... places>
struct PlacesTo<0, places...> {
    using list = Places<places...>;
};

// Fetches memory to the first-level cache: what is read soon, or written.
template <bool writes>
inline void fetch_ahead(const void *start, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char *>(start) + at, writes);
}

// -------------------------------------------------------------------------------------- vectors

// The same of a number in memory, which is one instruction. The empty asm hides the number from the compiler, which
// would else compute with one lane and then spread each result by a shuffle.
template <class T>
inline Vec<T> broadcast(const T &value) {
    Vec<T> row = all(value);
#if defined(__x86_64__)
    asm("" : "+v"(row));
#endif
    return row;
}

// a < b ? a : b and a > b ? a : b, which are one instruction. GCC makes two or three of them in the widest registers.
#if defined(__AVX512F__) && !defined(__clang__)
#define NSC_ONE_OF_TWO(name, operation)                                                                     \
    inline Vec<float> name(Vec<float> a, Vec<float> b) {                                                    \
        Vec<float> result;                                                                                  \
        asm("v" operation "ps %2, %1, %0" : "=v"(result) : "v"(a), "vm"(b));                                \
        return result;                                                                                      \
    }                                                                                                       \
    inline Vec<double> name(Vec<double> a, Vec<double> b) {                                                 \
        Vec<double> result;                                                                                 \
        asm("v" operation "pd %2, %1, %0" : "=v"(result) : "v"(a), "vm"(b));                                \
        return result;                                                                                      \
    }
NSC_ONE_OF_TWO(lesser, "min")
NSC_ONE_OF_TWO(greater, "max")
#undef NSC_ONE_OF_TWO
#else
template <class Row>
inline Row lesser(Row a, Row b) {
    return a < b ? a : b;
}

template <class Row>
inline Row greater(Row a, Row b) {
    return a > b ? a : b;
}
#endif

// Numbers and their bits, whole numbers as numbers.
template <class real>
inline Vec<Whole<real>> bits_of(Vec<real> v) {
    return (Vec<Whole<real>>)v;
}

template <class real>
inline Vec<real> from_bits(Vec<Whole<real>> bits) {
    return (Vec<real>)bits;
}

template <class real>
inline Vec<real> converted(Vec<Whole<real>> v) {
    return __builtin_convertvector(v, Vec<real>);
}

// Losses take logarithms in double.
template <class real>
using Log = double;

inline double logarithm(double x) { return __builtin_log(x); }
inline double logarithm_1p(double x) { return __builtin_log1p(x); }

// Adds the lanes of p whose numbers differ in one bit, and those of q. Lanes without the bit hold the sums of p,
// lanes with it those of q. Half of the summands stay in their lanes and need no shuffle.
template <class real, int bit, int... places>
inline Vec<real> fold(Vec<real> p, Vec<real> q, Places<places...>) {
    constexpr int width = lanes<real>;
    return __builtin_shufflevector(p, q, (places & bit ? width + places : places)...) +
           __builtin_shufflevector(p, q, ((places & bit ? width + places : places) ^ bit)...);
}

// The sums of `lanes` rows over their lanes: lane k holds the sum of row k.
template <class real, int count = lanes<real>>
inline Vec<real> row_sums(const Vec<real> *rows) {
    if constexpr (count == 1) {
        return rows[0];
    } else {
        return fold<real, count / 2>(row_sums<real, count / 2>(rows), row_sums<real, count / 2>(rows + count / 2),
                                     typename PlacesTo<lanes<real>>::list());
    }
}

// Transposes `lanes` rows of `lanes` values: pairs of rows whose numbers differ in one bit exchange the
// quarters of their square, bit by bit.
template <class T, int bit, int... places>
inline void exchange_quarters(Vec<T> &p, Vec<T> &q, Places<places...>) {
    constexpr int width = lanes<T>;
    const Vec<T> a = p, b = q;
    p = __builtin_shufflevector(a, b, (places & bit ? width + (places & ~bit) : places)...);
    q = __builtin_shufflevector(a, b, (places & bit ? width + places : places | bit)...);
}

template <class T, int bit = 1>
inline void transpose_from(Vec<T> *rows) {
    if constexpr (bit < lanes<T>) {
        NSC_UNROLL
        for (int i = 0; i < lanes<T>; ++i)
            if (!(i & bit)) exchange_quarters<T, bit>(rows[i], rows[i | bit], typename PlacesTo<lanes<T>>::list());
        transpose_from<T, 2 * bit>(rows);
    }
}

template <class T>
NSC_APART void transpose(Vec<T> *rows) {
    Vec<T> in_registers[lanes<T>];
    NSC_UNROLL
    for (int i = 0; i < lanes<T>; ++i) in_registers[i] = rows[i];
    transpose_from<T>(in_registers);
    NSC_UNROLL
    for (int i = 0; i < lanes<T>; ++i) rows[i] = in_registers[i];
}

// ----------------------------------------------------- levels, pieces, butterflies, light cones

template <class T>
inline void exchange(T &a, T &b) {
    const T was = a;
    a = b, b = was;
}

// The comparators by level: those of a level have their inputs from levels before it.
struct Comparator {
    uint16_t lo, hi;
    int32_t slot;
};

Comparator in_levels[comparators + 1];
int32_t level_end[levels + 1];

// Pieces: comparators that do not depend on each other. The keys pass takes a piece through each of its stages, short
// chains of instructions, before the next: one comparator's whole chain is longer than a processor can look ahead.
struct Piece {
    int32_t first, count;
};

constexpr int32_t at_a_time = 16 / 2;
// The comparators of codelets with their slots in their codelet, and the pieces of each codelet.
Comparator in_codelets[comparators + 1];
Piece codelet_pieces[comparators + 1];
int32_t first_piece[codelet_count + 1];
// The comparators of all codelets in fuller pieces, each made of the next `ahead` comparators that are left.
constexpr int32_t ahead = 32;
Comparator in_pieces[comparators + 1];
Piece pieces[comparators + 1];
int32_t piece_count;

// How the comparators of a butterfly, which are run together, join its rows: one between rows 0 and 1; or two and then
// one, 0 and 1, 2 and 3, then 1 and 2; or one and then two, 1 and 2, then 0 and 1, 2 and 3; or two and then two, 0 and
// 1, 2 and 3, then 0 and 2, 1 and 3.
enum Pattern : uint8_t { single, funnel, fan, cross };

constexpr int32_t count_of(Pattern pattern) { return pattern == cross ? 4 : pattern == single ? 1 : 3; }
constexpr int32_t rows_of(Pattern pattern) { return pattern == single ? 2 : 4; }

// Its slots begin at `slot`, in running order.
struct Butterfly {
    uint16_t rows[4];
    int32_t slot;
    Pattern pattern;
};

constexpr int64_t butterfly_count = 3;
Butterfly butterflies[butterfly_count + 1];

// The butterflies of each shape, one shape behind the other, between places in the shape's spread of wires.
struct Joined {
    Pattern pattern;
    uint8_t places[4];
};

constexpr Joined joined[] = {
    {cross, {0, 1, 2, 3}}, {single, {0, 1}}, {single, {2, 3}}, {},
};

// Light cones: for each butterfly a bit for each cone_columns columns of P, whether they reach it, and a bit for each
// cone_columns rows, whether it reaches them. All other columns or rows are zero there.
constexpr int64_t cone_columns = lanes<float>, cones = (wires + cone_columns - 1) / cone_columns;
constexpr int64_t cone_words = (cones + 63) / 64;
uint64_t reached_by[butterfly_count + 1][cone_words], reaches[butterfly_count + 1][cone_words];

// Calls visit(lo, hi, slot) for each comparator, in an order that respects the graph.
template <class Visit>
void for_each_comparator(Visit visit) {
    for (int64_t c = 0; c < codelet_count; ++c) {
        const Codelet codelet = codelets[c];
        const Shape shape = shapes[codelet.shape];
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const Pair pair = shape_pairs[shape.first_pair + i];
            int32_t lo = codelet.base + spreads[codelet.spread + pair.a];
            int32_t hi = codelet.base + spreads[codelet.spread + pair.b];
            if (is_turned(codelet, i)) exchange(lo, hi);
            visit(lo, hi, codelet.slot + i);
        }
    }
}

Status find_levels() {
    const Memory memory(sizeof(int32_t) * (wires + levels + 1));
    if (!memory.start) return out_of_memory;
    int32_t *level_of = memory.get<int32_t>(), *next = level_of + wires;
    const auto enter = [&](int32_t lo, int32_t hi) {
        const int32_t level = level_of[lo] > level_of[hi] ? level_of[lo] : level_of[hi];
        level_of[lo] = level_of[hi] = level + 1;
        return level;
    };
    memset(level_of, 0, sizeof(int32_t) * wires);
    memset(level_end, 0, sizeof level_end);
    for_each_comparator([&](int32_t lo, int32_t hi, int32_t) { ++level_end[enter(lo, hi)]; });
    for (int64_t level = 0, before = 0; level < levels; ++level) {
        next[level] = int32_t(before);
        before = level_end[level] += int32_t(before);
    }
    memset(level_of, 0, sizeof(int32_t) * wires);
    for_each_comparator([&](int32_t lo, int32_t hi, int32_t slot) {
        in_levels[next[enter(lo, hi)]++] = {uint16_t(lo), uint16_t(hi), slot};
    });
    return ok;
}

Status find_pieces() {
    const Memory memory(sizeof(int32_t) * wires);
    if (!memory.start) return out_of_memory;
    int32_t *piece_of = memory.get<int32_t>(), count = 0, at = 0, codelet = 0;
    memset(piece_of, 0, sizeof(int32_t) * wires);
    for_each_comparator([&](int32_t lo, int32_t hi, int32_t slot) {
        const bool begins = codelet < codelet_count && slot == codelets[codelet].slot;
        if (begins) first_piece[codelet++] = count;
        if (begins || piece_of[lo] == count || piece_of[hi] == count || codelet_pieces[count - 1].count == at_a_time)
            codelet_pieces[count++] = {at, 0};
        piece_of[lo] = piece_of[hi] = count;
        ++codelet_pieces[count - 1].count;
        in_codelets[at++] = {uint16_t(lo), uint16_t(hi), slot - codelets[codelet - 1].slot};
    });
    first_piece[codelet_count] = count;
    return ok;
}

Status find_fuller_pieces() {
    const Memory memory(sizeof(int32_t) * wires);
    if (!memory.start) return out_of_memory;
    int32_t *piece_of = memory.get<int32_t>(), waiting = 0, done = 0;
    Comparator left[ahead];
    memset(piece_of, 0, sizeof(int32_t) * wires);
    piece_count = 0;
    const auto take_piece = [&] {
        Piece &piece = pieces[piece_count++];
        piece = {done, 0};
        const int32_t number = piece_count, waited = waiting;
        waiting = 0;
        for (int32_t i = 0; i < waited; ++i) {
            const Comparator c = left[i];
            const bool is_free = piece_of[c.lo] != number && piece_of[c.hi] != number && piece.count < at_a_time;
            piece_of[c.lo] = piece_of[c.hi] = number;  // those behind it wait for it, taken or not
            if (is_free)
                in_pieces[done++] = c, ++piece.count;
            else
                left[waiting++] = c;
        }
    };
    for_each_comparator([&](int32_t lo, int32_t hi, int32_t slot) {
        if (waiting == ahead) take_piece();
        left[waiting++] = {uint16_t(lo), uint16_t(hi), slot};
    });
    while (waiting) take_piece();
    return ok;
}

Status find_butterflies() {
    constexpr int64_t shape_count = sizeof shapes / sizeof shapes[0];
    const Memory memory(sizeof(int32_t) * shape_count);
    if (!memory.start) return out_of_memory;
    int32_t *first = memory.get<int32_t>(), at = 0;
    for (int64_t shape = 0; shape < shape_count; ++shape) {
        first[shape] = at;
        for (int32_t left = shapes[shape].comparators; left > 0; ++at) left -= count_of(joined[at].pattern);
    }
    Butterfly *next = butterflies;
    for (int64_t c = 0; c < codelet_count; ++c) {
        const Codelet codelet = codelets[c];
        const Joined *each = joined + first[codelet.shape];
        for (int32_t done = 0; done < shapes[codelet.shape].comparators; done += count_of(each++->pattern)) {
            for (int32_t k = 0; k < 4; ++k) next->rows[k] = uint16_t(codelet.base + spreads[codelet.spread + each->places[k]]);
            next->slot = codelet.slot + done, next->pattern = each->pattern;
            ++next;
        }
    }
    return ok;
}

// Finds the light cones. A column that reaches one of a butterfly's wires reaches all of them behind it. Rows do the
// same backwards.
Status find_cones() {
    using Cones = uint64_t[cone_words];
    const Memory memory(sizeof(Cones) * wires);
    if (!memory.start) return out_of_memory;
    Cones *on = memory.get<Cones>();
    const auto spread_out = [&](bool backwards, Cones *of_butterflies) {
        memset(on, 0, sizeof(Cones) * wires);
        for (int64_t w = 0; w < wires; ++w) on[w][w / cone_columns / 64] |= uint64_t(1) << w / cone_columns % 64;
        for (int64_t k = 0; k < butterfly_count; ++k) {
            const int64_t i = backwards ? butterfly_count - 1 - k : k;
            const Butterfly &each = butterflies[i];
            const int32_t rows = rows_of(each.pattern);
            for (int64_t word = 0; word < cone_words; ++word) {
                uint64_t any = 0;
                for (int32_t row = 0; row < rows; ++row) any |= on[each.rows[row]][word];
                for (int32_t row = 0; row < rows; ++row) on[each.rows[row]][word] = any;
                of_butterflies[i][word] = any;
            }
        }
    };
    spread_out(false, reached_by);
    spread_out(true, reaches);
    return ok;
}

// Light cones of the narrow pass: for each few columns of P that are routed together, the comparators that they reach.
constexpr int64_t together = 4;

// Butterflies that join comparators of different codelets.
struct NarrowButterfly {
    Pattern pattern;
    uint8_t rows[4];
    int32_t slots[4];
};

constexpr NarrowButterfly narrow_butterflies[] = {
    {cross, {0, 1, 2, 3}, {0, 1, 2, 3}}, {single, {0, 1}, {4}}, {single, {2, 3}, {5}},
};

// A butterfly in a cone, and the rows that it takes. The row `wires` is zero; it stands for a wire that no column of
// the cone has reached.
struct ConeStep {
    NarrowButterfly butterfly;
    uint8_t from[4];
};

struct NarrowCone {
    int32_t count;
    bool reaches[wires], reaches_all;  // behind the cone
    ConeStep steps[sizeof narrow_butterflies / sizeof narrow_butterflies[0]];
};

NarrowCone narrow_cones[(wires + together - 1) / together];

void find_narrow_cones() {
    int64_t column = 0;
    for (NarrowCone &cone : narrow_cones) {
        for (int64_t wire = 0; wire < wires; ++wire) cone.reaches[wire] = column <= wire && wire < column + together;
        for (const NarrowButterfly &butterfly : narrow_butterflies) {
            const int32_t rows = rows_of(butterfly.pattern);
            bool reached = false;
            for (int32_t k = 0; k < rows; ++k) reached |= cone.reaches[butterfly.rows[k]];
            if (!reached) continue;
            ConeStep &step = cone.steps[cone.count++];
            step.butterfly = butterfly;
            for (int32_t k = 0; k < rows; ++k) {
                bool &reaches = cone.reaches[butterfly.rows[k]];
                step.from[k] = uint8_t(reaches ? butterfly.rows[k] : wires);
                reaches = true;
            }
        }
        cone.reaches_all = true;
        for (bool reaches : cone.reaches) cone.reaches_all &= reaches;
        column += together;
    }
}

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

// Writes the tables that calls with several samples need besides.
Status prepare_pieces() {
    static Once once;
    return once.run([] {
        const Status status = find_pieces();
        return status == ok ? find_fuller_pieces() : status;
    });
}

// Writes the tables that all calls need.
Status prepare() {
    static Once once;
    return once.run([] {
        Status status = find_levels();
        if (status == ok) status = find_butterflies();
        if (status == ok) status = find_cones();
        if (status == ok) status = prepare_pieces();
        if (status == ok) find_narrow_cones();
        return status;
    });
}

// ------------------------------------------------------------------------------------- functions

template <class real>
NSC_FUNCTION Vec<real> magnitude(Vec<real> v) {
    constexpr Whole<real> sign = Whole<real>(1) << (8 * sizeof(real) - 1);
    return from_bits<real>(bits_of<real>(v) & ~sign);
}

// The coefficients of a polynomial, from the constant on.
template <class real, int count>
struct Table {
    real at[count];
};

// What differs between the arithmetic types.
template <class real>
struct Constants;
template <>
struct Constants<float> {
    static constexpr int mantissa_bits = 23, exponent_bias = 127;
    // Added to a number, it leaves no places behind the point, and the last bits are those of an exponent.
    static constexpr float rounding = 12583039;
    static constexpr float log2_high = 0.693145751953125, log2_low = 1.42860677e-6;
    static constexpr int32_t root_guess = 0x4f581840;
    static constexpr int newton_steps = 0;
    static NSC_FUNCTION constexpr Table<float, 5> exp() {
        return { { 0.5, 0.166665769, 0.0416665545, 0.00836319488, 0.00139262034 } };
    }
    static NSC_FUNCTION constexpr Table<float, 5> root() {
        return { { 0.2500000239, 0.1562427445, 0.117174033, 0.09674244691, 0.08267930173 } };
    }
};
// Sums coefficients.at[k] x^k.
template <class real, int count>
NSC_FUNCTION Vec<real> polynomial(Table<real, count> coefficients, Vec<real> x) {
    Vec<real> sum = all(coefficients.at[count - 1]);
    NSC_UNROLL
    for (int k = count - 2; k >= 0; --k) sum = sum * x + coefficients.at[k];
    return sum;
}
// exp(r) - 1 for |r| <= log(2) / 2, and 2^k for a whole k that was rounded by adding `rounding`.
template <class real>
NSC_FUNCTION Vec<real> small_exp_less_1(Vec<real> r) {
    return r + r * r * polynomial(Constants<real>::exp(), r);
}

template <class real>
NSC_FUNCTION Vec<real> small_exp(Vec<real> r) {
    return (polynomial(Constants<real>::exp(), r) * r + 1) * r + 1;
}

template <class real>
NSC_FUNCTION Vec<real> power_of_two(Vec<real> shifted) {
    return from_bits<real>(bits_of<real>(shifted) << Constants<real>::mantissa_bits);
}
// The lesser of t >= 0 and the least t whose 2^k is zero for exp(-t); NaN stays NaN.
template <class real>
NSC_FUNCTION Vec<real> within_exp(Vec<real> t) {
    return lesser(all(real(Constants<real>::exponent_bias * 0.69314718055994531)), t);
}
// The exponential is zero where it is below the smallest normal number.
template <class real>
NSC_FUNCTION Vec<real> logistic_tail(Vec<real> t) {
    using C = Constants<real>;
    // -t = k log(2) + r; log(2) in two parts, the first so short that its products with k are exact.
    const Vec<real> inside = within_exp<real>(t);
    const Vec<real> shifted = C::rounding - inside * real(1.4426950408889634), k = shifted - C::rounding;
    const Vec<real> r = (-inside - k * C::log2_high) - k * C::log2_low;
    const Vec<real> odds = small_exp<real>(r) * power_of_two<real>(shifted);
    return odds / (1 + odds);
}
// x^(-1/4) of a finite x > 0: a guess from the exponent, a polynomial correction, then Newton steps.
template <class real>
NSC_FUNCTION Vec<real> inverse_power(Vec<real> x) {
    using C = Constants<real>;
    const auto lacks = [&](Vec<real> power) NSC_INLINE { return 1 - x * (power * power) * (power * power); };
    Vec<real> y = from_bits<real>(C::root_guess - (bits_of<real>(x) >> 2));
    const Vec<real> d = lacks(y);
    y = y + y * (d * polynomial(C::root(), d));
    for (int step = 0; step < C::newton_steps; ++step) y = y + y * lacks(y) / 4;
    return y;
}

// ------------------------------------------------------------------------------------ relaxation

// f(-t) for t >= 0, the smaller weight of a comparator. f is logistic, Petersen et al., ICML 2021.
template <class real>
NSC_FUNCTION Vec<real> tail_of(Vec<real> t) {
    return logistic_tail<real>(t);
}

// The two weights of a comparator: keep = f(v) and swap = f(-v) = 1 - f(v).
template <class real>
struct Sigmoid {
    Vec<real> keep, swap;
};

// The smaller weight is computed, so that both have full precision: 1 - keep has none where keep rounds to 1.
template <class real>
NSC_FUNCTION Sigmoid<real> sigmoid(Vec<real> v) {
    const Vec<real> tail = tail_of<real>(magnitude<real>(v)), rest = 1 - tail;
    return {v < 0 ? tail : rest, v < 0 ? rest : tail};
}

// f'(v), given both weights.
template <class real>
NSC_FUNCTION Vec<real> sigmoid_slope(Vec<real> v, Vec<real> keep, Vec<real> swap) {
    const Vec<real> t = magnitude<real>(v);
    (void)t, (void)keep, (void)swap;
    return keep * swap;
}

// The activation replacement is phi(d) = d times a stretch, which depends on the size |d|. The elasticity of phi,
// d phi'(d) / phi(d), is given the stretch as well.
// phi(d) = d / (|d| + 1e-10)^lambda, lambda = 0.25.
template <class real>
NSC_FUNCTION Vec<real> stretch_of(Vec<real> size) {
    return inverse_power<real>(size + real(1e-10));
}

template <class real>
NSC_FUNCTION Vec<real> elasticity(Vec<real> size, Vec<real> power) {
    (void)size, (void)power;
    return real(0x1.8000000000000p-1) + real(0x1.0000000000000p-2) * real(1e-10) * ((power * power) * (power * power));
}

template <class real>
NSC_FUNCTION Vec<real> phi(Vec<real> d) {
    return d * stretch_of<real>(magnitude<real>(d));
}

template <class real>
NSC_FUNCTION Vec<real> phi_slope(Vec<real> d) {
    const Vec<real> size = magnitude<real>(d), power = stretch_of<real>(size);
    return power * elasticity<real>(size, power);
}

// --------------------------------------------------------------------------------------- weights

// The weights of mixes, by slot.
template <class T>
struct Mixes {
    T *keep, *swap;
    NSC_FUNCTION Mixes from(int64_t slot) const { return {keep + slot, swap + slot}; }
};

// What the keys pass leaves for the routing and for the backward pass, by slot.
template <class T>
struct Weights {
    Mixes<T> forward, backward;  // the same arrays
    T *gap;  // x[hi] - x[lo]; infinite where the weights are constant
    NSC_FUNCTION Weights from(int64_t slot) const { return {forward.from(slot), backward.from(slot), gap + slot}; }
};

constexpr int64_t arrays = 3;  // of weights, per sample

// Weights in arrays that are `stride` apart.
template <class T>
NSC_FUNCTION Weights<T> weights_at(T *start, int64_t stride) {
    const Mixes<T> mixes = {start, start + stride};
    return {mixes, mixes, start + 2 * stride};
}

// A comparator's weights.
template <class T>
struct Mix {
    T keep, swap;
};

// Both results of a comparator are mixed in this order of terms: a compiler that fuses a product with the sum
// then fuses the same one in both, and renaming the wires changes no bit.
template <class T>
NSC_STEP T mixed(Mix<T> m, T a, T b) {
    return m.keep * a + m.swap * b;
}

// -------------------------------------------------------------------------------------- codelets
//
// Codelets of one shape share its code, which loads a codelet's rows, takes a step on pairs of them, and stores
// them. The most frequent shapes have straight-line code in registers; the others run from their table.

// The code of a shape, of `count()` comparators, `most()` at most.
template <int32_t shape>
struct Straight;

// 4 wires, 6 comparators.
template <>
struct Straight<0> {
    static NSC_FUNCTION constexpr bool is_straight() { return true; }
    static NSC_FUNCTION constexpr int32_t most() { return 6; }
    static NSC_FUNCTION constexpr int32_t count() { return 6; }
    static NSC_FUNCTION constexpr int32_t loads() { return 4; }
    template <class Rows, class Step>
    static NSC_CODELET void run(Rows rows, Step step) {
        auto w0 = rows.load(0);
        auto w1 = rows.load(1);
        auto w2 = rows.load(2);
        auto w3 = rows.load(3);
        step(0, w0, w1);
        step(1, w2, w3);
        step(2, w0, w2);
        step(3, w1, w3);
        step(4, w0, w1);
        step(5, w2, w3);
        rows.store(0, w0);
        rows.store(1, w1);
        rows.store(2, w2);
        rows.store(3, w3);
    }
    template <class Rows, class Step>
    static NSC_CODELET void run_backwards(Rows rows, Step step) {
        auto w0 = rows.load(0);
        auto w1 = rows.load(1);
        auto w2 = rows.load(2);
        auto w3 = rows.load(3);
        step(5, w2, w3);
        step(4, w0, w1);
        step(3, w1, w3);
        step(2, w0, w2);
        step(1, w2, w3);
        step(0, w0, w1);
        rows.store(0, w0);
        rows.store(1, w1);
        rows.store(2, w2);
        rows.store(3, w3);
    }
};

struct Tabled {
    static NSC_FUNCTION constexpr bool is_straight() { return false; }
    static NSC_FUNCTION constexpr int32_t most() { return longest_codelet; }
    NSC_FUNCTION int32_t count() const { return shape.comparators; }
    NSC_FUNCTION int32_t loads() const { return shape.wires; }
    template <bool backwards, class Rows, class Step>
    NSC_CODELET void run_in(Rows rows, Step step) const {
        typename Rows::row held[widest_codelet];
        for (int32_t k = 0; k < shape.wires; ++k) held[k] = rows.load(k);
        for (int32_t i = 0; i < shape.comparators; ++i) {
            const int32_t c = backwards ? shape.comparators - 1 - i : i;
            const Pair pair = shape_pairs[shape.first_pair + c];
            typename Rows::row &a = held[pair.a], &b = held[pair.b];
            step(c, a, b);
        }
        for (int32_t k = 0; k < shape.wires; ++k) rows.store(k, held[k]);
    }
    template <class Rows, class Step>
    NSC_STEP void run(Rows rows, Step step) const {
        run_in<false>(rows, step);
    }
    template <class Rows, class Step>
    NSC_STEP void run_backwards(Rows rows, Step step) const {
        run_in<true>(rows, step);
    }
    Shape shape;
};

template <bool backwards, class Code, class Rows, class Step>
NSC_STEP void run_code(Code code, Rows rows, Step step) {
    if constexpr (backwards)
        code.run_backwards(rows, step);
    else
        code.run(rows, step);
}

// The rows that a codelet works on. Rows are `pitch` apart.
template <class Row, int32_t pitch, class Spread>
struct InPlace {
    using row = Row;
    NSC_STEP Row load(int32_t k) const { return first[spread[k] * pitch]; }
    NSC_STEP void store(int32_t k, Row value) const { first[spread[k] * pitch] = value; }
    Row *first;
    Spread spread;
};

// A block has one row per wire.
template <class Row>
inline InPlace<Row, 1, const uint16_t *> rows_of(Codelet codelet, Row *block) {
    return {block + codelet.base, spreads + codelet.spread};
}

// Calls work(code) with the code of a shape.
template <class Work>
inline void with_code(int32_t index, Work work) {
    switch (index) {
        case 0: return work(Straight<0>());
    }
    work(Tabled{shapes[index]});
}

// Takes the steps of a shape from the last to the first.
template <class Rows, class Step>
inline void run_shape_backwards(int32_t index, Rows rows, Step step) {
    with_code(index, [&](auto code) { code.run_backwards(rows, step); });
}

// ------------------------------------------------------------------------------------ keys pass
//
// `lanes` comparators at a time. When there are enough samples, a lane is a sample: the wires of a
// group of samples are transposed and run piece by piece. Else the lanes are comparators of one
// level, gathered from the wires of one sample. Both call the same functions, so that a
// sample's results do not depend on the rest of its batch.

// Whether any lane of a comparison holds.
template <class Mask>
inline bool any(Mask mask) {
    uint64_t words[sizeof(Mask) / 8], all_words = 0;
    memcpy(words, &mask, sizeof mask);
    for (uint64_t word : words) all_words |= word;
    return all_words != 0;
}

// Whether comparators of these values may meet an infinity or NaN: whether one of the values is infinite, NaN, or so
// large that a difference, or the argument of the sigmoid, may overflow. Mixed values are no larger than these.
template <class real>
inline bool are_strange(const Vec<real> *values, int64_t count, Vec<real> steepness) {
    // The bits of sizes are ordered as these are, with infinity and then NaN behind.
    Vec<Whole<real>> largest{};
    for (int64_t i = 0; i < count; ++i) {
        const Vec<Whole<real>> size = bits_of<real>(magnitude<real>(values[i]));
        largest = size > largest ? size : largest;
    }
    const Vec<real> factor = 4 * stretch_of<real>(Vec<real>{});  // no stretch is larger than that of 0
    const auto finite = from_bits<real>(largest) * (factor + factor * steepness) < real(__builtin_inf());
    return any(~finite);
}

// What comparators do to gradients of the values, by slot. The gradients of the two wires move towards each other by `share` of
// their difference. Where the last bit of a share is set, the larger value is on the first wire, and the gradients
// change places before. The gradient of the steepness is the difference hi - lo times `steepness`, if that is wanted.
template <class T>
struct Derivatives {
    T *share, *steepness;
    Derivatives from(int64_t slot) const { return {share + slot, steepness ? steepness + slot : nullptr}; }
};

template <class real>
inline void move_gradients(Vec<real> &lo, Vec<real> &hi, Vec<real> share) {
    const auto turned = (bits_of<real>(share) & 1) != 0;
    const Vec<real> a = turned ? hi : lo, b = turned ? lo : hi, gap = b - a;
    lo = a + share * gap;
    hi = b - share * gap;
}

// What is kept where the values alone are wanted.
struct Nothing {
    Nothing from(int64_t) const { return {}; }
};

template <class A, class B>
constexpr bool are_same = false;
template <class A>
constexpr bool are_same<A, A> = true;

// From values to mixed values, in place. Keeps nothing, the weights, or the derivatives. The two values move towards
// each other by the smaller weight of their difference, so nothing depends on which wire has the larger one.
// `careful`: some values are strange. Several blocks lie one behind the other, and so does what is kept of them: with
// more comparators at a time that do not depend on each other, a processor waits less.
template <class real, bool careful, int32_t blocks, class Kept>
NSC_APART void compare(int32_t count, const Comparator *at, Vec<real> *first_block, const Vec<real> *steepnesses, Kept kept) {
    using Row = Vec<real>;
    constexpr bool keeps_weights = are_same<Kept, Weights<Row>>, keeps_derivatives = are_same<Kept, Derivatives<Row>>;
    constexpr real infinity = real(__builtin_inf());
    constexpr int32_t most = at_a_time * blocks;
    Row lows[most], highs[most], gaps[most], activation[most], elastic[most];
    for (int32_t i = 0; i < count; ++i) NSC_UNROLL for (int32_t which = 0; which < blocks; ++which) {
        const Row *block = first_block + which * wires;
        const int32_t k = i * blocks + which;
        const Row a = block[at[i].lo], b = block[at[i].hi];
        const Row low = lesser(b, a), high = greater(a, b), gap = high - low, stretch = stretch_of<real>(gap);
        lows[k] = low, highs[k] = high, gaps[k] = gap;
        activation[k] = gap * stretch;
        if constexpr (keeps_derivatives) elastic[k] = elasticity<real>(gap, stretch);
    }
    for (int32_t i = 0; i < count; ++i) NSC_UNROLL for (int32_t which = 0; which < blocks; ++which) {
        Row *block = first_block + which * wires;
        const int32_t k = i * blocks + which;
        const int64_t place = at[i].slot + which * slots;
        const Row a = block[at[i].lo], b = block[at[i].hi], v = steepnesses[which] * activation[k];
        Row low = lows[k], high = highs[k], gap = gaps[k], tail = tail_of<real>(v);
        const auto turned = b < a;
        auto infinite = turned & ~turned;
        if constexpr (careful) {
            const auto tie = a == b;
            infinite = (gap == infinity) | (tie & (magnitude<real>(a) == infinity));
            gap = tie ? Row{} : gap;
            tail = infinite ? (tie ? all(real(0.5)) : Row{}) : gap == gap ? tail : gap;  // infinite values sort exactly
        }
        if constexpr (keeps_weights) {
            const Row rest = 1 - tail, difference = turned ? -gap : gap;
            kept.backward.keep[place] = turned ? tail : rest, kept.backward.swap[place] = turned ? rest : tail;
            kept.gap[place] = infinite ? all(infinity) : difference;
        }
        if constexpr (keeps_derivatives) {
            Row slope = sigmoid_slope<real>(v, 1 - tail, tail), change = v * elastic[k], effect = activation[k];
            if constexpr (careful) {  // infinite values are constant, and so are weights of 0
                const auto constant = infinite | (tail == 0);
                slope = constant ? Row{} : slope, change = constant ? Row{} : change, effect = constant ? Row{} : effect;
            }
            const Vec<Whole<real>> share = bits_of<real>(tail - change * slope) & ~Whole<real>(1);
            kept.share[place] = from_bits<real>(turned ? share | 1 : share);
            if (kept.steepness) kept.steepness[place] = slope * (careful ? (infinite ? Row{} : gap) : gap) * effect;
        }
        if constexpr (careful) gap = tail == 0 ? Row{} : gap;  // 0 times infinity counts as 0
        block[at[i].lo] = low + tail * gap, block[at[i].hi] = high - tail * gap;
    }
}

// From gradients of the mixed values, in place, and of the weights to those of the values; `steepness_grad`, unless
// it is null, takes each comparator's part of the gradient of the steepness.
template <class real>
NSC_APART void compare_backward(int32_t count, const Comparator *at, Vec<real> *block, const Vec<real> *weight_grad,
                                Vec<real> steepness, Weights<Vec<real>> w, Vec<real> *steepness_grad) {
    using Row = Vec<real>;
    constexpr real infinity = real(__builtin_inf());
    Row activation[at_a_time], slopes[at_a_time];
    for (int32_t i = 0; i < count; ++i) {
        const Row gap = w.gap[at[i].slot] == infinity ? Row{} : w.gap[at[i].slot], size = magnitude<real>(gap), stretch = stretch_of<real>(size);
        activation[i] = gap * stretch;
        slopes[i] = steepness * (stretch * elasticity<real>(size, stretch));
    }
    for (int32_t i = 0; i < count; ++i) {
        const Row a = block[at[i].lo], b = block[at[i].hi], gap = w.gap[at[i].slot];
        const Mix<Row> m = {w.backward.keep[at[i].slot], w.backward.swap[at[i].slot]};
        const Row slope = sigmoid_slope<real>(steepness * activation[i], m.keep, m.swap);
        // A weight of 0 is constant, and a gradient that reaches it may be infinite.
        const auto constant = (gap == infinity) | (m.keep == 0) | (m.swap == 0);
        const Row through = constant ? Row{} : (weight_grad[at[i].slot] - (a - b) * gap) * slope, shift = through * slopes[i];
        block[at[i].lo] = mixed(m, a, b) - shift;
        block[at[i].hi] = mixed(m, b, a) + shift;
        if (steepness_grad) steepness_grad[i] = through * activation[i];
    }
}

// The sum over slots of their parts of the gradient of the steepness. The order is the same for both
// layouts: the slots that are equal modulo slot_alignment, last first, then those sums.
template <class T>
inline T sum_of_parts(const T *parts) {
    T sum{};
    for (int64_t k = 0; k < slot_alignment; ++k) sum += parts[k];
    return sum;
}

// --------------------------------------------------------------------------- a lane is a sample

// Between `count` samples of `wires` values each and rows of one value of each.
template <class real>
void load_samples(const real *from, int64_t count, Vec<real> *block) {
    for (int64_t wire = 0; wire < wires; wire += lanes<real>) {
        const int64_t width = wires - wire < lanes<real> ? wires - wire : lanes<real>;
        Vec<real> tile[lanes<real>];
        for (int64_t k = 0; k < lanes<real>; ++k) tile[k] = k < count ? load(from + k * wires + wire, width) : Vec<real>{};
        transpose<real>(tile);
        for (int64_t k = 0; k < width; ++k) block[wire + k] = tile[k];
    }
}

template <class real>
void store_samples(real *to, int64_t count, const Vec<real> *block) {
    for (int64_t wire = 0; wire < wires; wire += lanes<real>) {
        const int64_t width = wires - wire < lanes<real> ? wires - wire : lanes<real>;
        Vec<real> tile[lanes<real>];
        for (int64_t k = 0; k < lanes<real>; ++k) tile[k] = k < width ? block[wire + k] : Vec<real>{};
        transpose<real>(tile);
        for (int64_t k = 0; k < count; ++k) store(to + k * wires + wire, tile[k], width);
    }
}

// Runs a codelet on a block in place. What it keeps begins at its first slot.
template <class real, bool careful, class Kept>
inline void compare_codelet(int64_t codelet, Vec<real> *block, Vec<real> steepness, Kept kept) {
    for (int32_t p = first_piece[codelet]; p < first_piece[codelet + 1]; ++p) {
        const Piece piece = codelet_pieces[p];
        compare<real, careful, 1>(piece.count, in_codelets + piece.first, block, &steepness, kept);
    }
}

// The same backwards on gradients, given those of its weights.
template <class real>
inline void compare_codelet_backward(int64_t codelet, Vec<real> *grad, const Vec<real> *weight_grad, Vec<real> steepness,
                                     Weights<Vec<real>> w, Vec<real> *steepness_parts) {
    for (int32_t p = first_piece[codelet + 1] - 1; p >= first_piece[codelet]; --p) {
        const Piece piece = codelet_pieces[p];
        const Comparator *at = in_codelets + piece.first;
        Vec<real> steepness_grad[at_a_time];
        compare_backward<real>(piece.count, at, grad, weight_grad, steepness, w, steepness_parts ? steepness_grad : nullptr);
        for (int32_t i = piece.count - 1; steepness_parts && i >= 0; --i) steepness_parts[at[i].slot % slot_alignment] += steepness_grad[i];
    }
}

// The same for gradients of the values alone, given the derivatives.
template <class real>
inline void derive_backward(Vec<real> *grad, Derivatives<Vec<real>> d, Vec<real> *steepness_parts) {
    for (int64_t c = codelet_count - 1; c >= 0; --c) {
        const Codelet codelet = codelets[c];
        const Vec<real> *shares = d.share + codelet.slot;
        if (!steepness_parts) {
            run_shape_backwards(codelet.shape, rows_of(codelet, grad), [shares](int32_t k, Vec<real> &a, Vec<real> &b, auto...) NSC_INLINE {
                move_gradients<real>(a, b, shares[k]);
            });
            continue;
        }
        for (int32_t k = shapes[codelet.shape].comparators - 1; k >= 0; --k) {
            const Comparator at = in_codelets[codelet_pieces[first_piece[c]].first + k];
            steepness_parts[k % slot_alignment] += (grad[at.hi] - grad[at.lo]) * d.steepness[codelet.slot + k];
            move_gradients<real>(grad[at.lo], grad[at.hi], shares[k]);
        }
    }
}

// Between the slots of `count` samples, `stride` apart, and rows of one slot of each. Weights begin at
// multiples of slot_alignment, which is a multiple of lanes.
template <class real>
inline void gather_slots(const real *from, int64_t stride, int64_t count, int64_t slot_count, Vec<real> *rows) {
    for (int64_t s = 0; s < slot_count; s += lanes<real>) {
        Vec<real> *tile = rows + s;
        for (int64_t k = 0; k < lanes<real>; ++k) tile[k] = k < count ? load(from + k * stride + s) : Vec<real>{};
        transpose<real>(tile);
    }
}

template <class real>
inline void scatter_slots(real *to, int64_t stride, int64_t count, int64_t slot_count, Vec<real> *rows) {
    for (int64_t s = 0; s < slot_count; s += lanes<real>) {
        Vec<real> *tile = rows + s;
        transpose<real>(tile);
        for (int64_t k = 0; k < count; ++k) store(to + k * stride + s, tile[k]);
    }
}

// ---------------------------------------------------------- a lane is a comparator of one level

// Comparators of one level, gathered: their first wires, then their second ones.
template <class real>
struct Gathered {
    Vec<real> rows[2 * at_a_time] = {};
    real *lo() { return reinterpret_cast<real *>(rows); }
    real *hi() { return reinterpret_cast<real *>(rows + at_a_time); }
};

struct GatheredComparators {
    constexpr GatheredComparators() : at() {
        for (int32_t i = 0; i < at_a_time; ++i) at[i] = {uint16_t(i), uint16_t(at_a_time + i), i};
    }
    Comparator at[at_a_time];
};

constexpr GatheredComparators gathered;

// A register's reals one by one.
template <class real>
inline real *singly(Vec<real> *rows) {
    return reinterpret_cast<real *>(rows);
}

template <class real>
inline Mixes<real> singly(Mixes<Vec<real>> mixes) {
    return {singly<real>(mixes.keep), singly<real>(mixes.swap)};
}

template <class real>
inline Weights<real> singly(Weights<Vec<real>> w) {
    return {singly<real>(w.forward), singly<real>(w.backward), singly<real>(w.gap)};
}

// Places for what is kept of comparators in the order of levels, each of whose pieces begins with a register.
template <class real>
constexpr int64_t level_rows = comparators / lanes<real> + levels;

// Calls run(comparators, count, row) for pieces of each level in turn; `row` counts the registers before.
template <class real, class Run>
inline void in_level_pieces(bool backwards, Run run) {
    constexpr int64_t most = at_a_time * lanes<real>;
    const auto rows_of_level = [](int64_t count) { return (count + lanes<real> - 1) / lanes<real>; };
    int64_t row = 0;
    for (int64_t level = 0; backwards && level < levels; ++level)
        row += rows_of_level(level_end[level] - (level ? level_end[level - 1] : 0));
    for (int64_t l = 0; l < levels; ++l) {
        const int64_t level = backwards ? levels - 1 - l : l, begin = level ? level_end[level - 1] : 0, end = level_end[level];
        if (backwards) row -= rows_of_level(end - begin);
        for (int64_t i = begin; i < end; i += most) run(in_levels + i, end - i < most ? end - i : most, row + (i - begin) / lanes<real>);
        if (!backwards) row += rows_of_level(end - begin);
    }
}

template <class real>
inline bool are_strange(const real *y, real steepness) {
    bool strange = false;
    for (int64_t wire = 0; wire < wires; wire += lanes<real>) {
        const Vec<real> row = load(y + wire, wires - wire < lanes<real> ? wires - wire : lanes<real>);
        strange |= are_strange<real>(&row, 1, all(steepness));
    }
    return strange;
}

// Runs all comparators on y in place. What is kept of a piece begins at its first register; behind it `keep` is called.
template <bool careful, class real, class Kept, class Keep>
void compare_levels(real *y, real steepness, Kept kept, Keep keep) {
    Gathered<real> both;
    real *lo = both.lo(), *hi = both.hi();
    const Vec<real> steepnesses = all(steepness);
    in_level_pieces<real>(false, [&](const Comparator *at, int64_t count, int64_t row) {
        for (int64_t k = 0; k < count; ++k) lo[k] = y[at[k].lo], hi[k] = y[at[k].hi];
        const int32_t rows = int32_t((count + lanes<real> - 1) / lanes<real>);
        compare<real, careful, 1>(rows, gathered.at, both.rows, &steepnesses, kept.from(row));
        for (int64_t k = 0; k < count; ++k) y[at[k].lo] = lo[k], y[at[k].hi] = hi[k];
        keep(at, count);
    });
}

// Runs all comparators on y in place. Keeps nothing, or derivatives in the order of levels.
template <class real, class Kept>
void compare_levels(real *y, real steepness, Kept kept) {
    const auto nothing = [](const Comparator *, int64_t) {};
    if (are_strange<real>(y, steepness))
        compare_levels<true>(y, steepness, kept, nothing);
    else
        compare_levels<false>(y, steepness, kept, nothing);
}

// Runs all comparators on y in place. The weights go to their slots.
template <class real>
void compare_levels_to_slots(real *y, real steepness, Weights<real> w) {
    struct Held {
        Weights<Vec<real>> from(int64_t) const { return weights_at(rows, at_a_time); }
        Vec<real> *rows;
    };
    Vec<real> rows[arrays * at_a_time];
    const Held kept = {rows};
    const Weights<real> held = singly<real>(kept.from(0));
    const auto keep = [&](const Comparator *at, int64_t count) {
        for (int64_t k = 0; k < count; ++k) {
            const int32_t slot = at[k].slot;
            w.forward.keep[slot] = held.forward.keep[k], w.forward.swap[slot] = held.forward.swap[k];
            w.gap[slot] = held.gap[k];
        }
    };
    if (are_strange<real>(y, steepness))
        compare_levels<true>(y, steepness, kept, keep);
    else
        compare_levels<false>(y, steepness, kept, keep);
}

// The sum over slots of what `parts` has for them, in the order of `sum_of_parts`.
template <class real>
real sum_of_slots(const real *by_slot) {
    real parts[slot_alignment] = {};
    for (int64_t c = codelet_count - 1; c >= 0; --c)
        for (int32_t k = shapes[codelets[c].shape].comparators - 1; k >= 0; --k) parts[k % slot_alignment] += by_slot[codelets[c].slot + k];
    return sum_of_parts(parts);
}

// Turns the gradient of the values, in place in `grad`, and of the weights into the gradient of x;
// returns the gradient of the steepness. Overwrites the gaps.
template <class real>
real compare_levels_backward(real *grad, const real *weight_grad, real steepness, Weights<real> w) {
    Gathered<real> both;
    Vec<real> rows[arrays * at_a_time] = {}, into_rows[at_a_time] = {}, part_rows[at_a_time];
    const Weights<Vec<real>> kept = weights_at(rows, at_a_time);
    const Weights<real> held = singly<real>(kept);
    real *lo = both.lo(), *hi = both.hi(), *into = singly<real>(into_rows), *part = singly<real>(part_rows);
    in_level_pieces<real>(true, [&](const Comparator *at, int64_t count, int64_t) {
        for (int64_t k = 0; k < count; ++k) {
            lo[k] = grad[at[k].lo], hi[k] = grad[at[k].hi];
            const int32_t slot = at[k].slot;
            held.backward.keep[k] = w.backward.keep[slot], held.backward.swap[k] = w.backward.swap[slot];
            held.gap[k] = w.gap[slot];
            into[k] = weight_grad[slot];
        }
        const int32_t count_rows = int32_t((count + lanes<real> - 1) / lanes<real>);
        compare_backward<real>(count_rows, gathered.at, both.rows, into_rows, all(steepness), kept, part_rows);
        for (int64_t k = 0; k < count; ++k) {
            grad[at[k].lo] = lo[k], grad[at[k].hi] = hi[k];
            w.gap[at[k].slot] = part[k];
        }
    });
    return sum_of_slots(w.gap);
}

// The same for gradients of the values alone, given the derivatives in the order of levels. `by_slot` has a place
// for each slot where the gradient of the steepness is wanted.
template <class real>
real derive_levels_backward(real *grad, Derivatives<Vec<real>> kept, real *by_slot) {
    Gathered<real> both;
    real *lo = both.lo(), *hi = both.hi();
    in_level_pieces<real>(true, [&](const Comparator *at, int64_t count, int64_t row) {
        for (int64_t k = 0; k < count; ++k) lo[k] = grad[at[k].lo], hi[k] = grad[at[k].hi];
        for (int64_t k = 0; by_slot && k < count; ++k) by_slot[at[k].slot] = (hi[k] - lo[k]) * singly<real>(kept.steepness + row)[k];
        for (int64_t r = 0; r * lanes<real> < count; ++r) move_gradients<real>(both.rows[r], both.rows[at_a_time + r], kept.share[row + r]);
        for (int64_t k = 0; k < count; ++k) grad[at[k].lo] = lo[k], grad[at[k].hi] = hi[k];
    });
    return by_slot ? sum_of_slots(by_slot) : 0;
}

// ------------------------------------------------------------------------------ mixes of two rows

template <class Row, class T>
NSC_STEP void mix(Row &lo, Row &hi, Mix<T> m) {
    const Row a = lo, b = hi;
    lo = mixed(m, a, b);
    hi = mixed(m, b, a);
}

// -------------------------------------------------------------------------- routing a group of blocks
//
// Blocks of columns run through the butterflies together: a row has the registers of all of them side by side. What a
// butterfly needs stays in registers for the whole group: its weights, and the sums over columns that are the
// gradients of its weights.

constexpr int64_t side = 128 / register_bytes;  // blocks of a group
// The differences of a group are kept for a segment of its steps at a time: of all, if there is room.
constexpr int64_t least_kept = 716800, eighth_of_floats = wires * wires / 2;
constexpr int64_t kept_room = (least_kept > eighth_of_floats ? least_kept : eighth_of_floats) / register_bytes;
constexpr int64_t kept_rows = side * comparators < kept_room ? side * comparators : kept_room;
constexpr int64_t most_segments = 1 + side * comparators / (kept_room - 4 * side);

// Calls visit(c, a, b) for each comparator c of a butterfly on its rows r, in running order or backwards.
template <Pattern pattern, bool backwards, class Row, class Visit>
NSC_STEP void run_butterfly(Row *r, Visit visit) {
    if constexpr (pattern == single) {
        visit(0, r[0], r[1]);
    } else if constexpr (pattern == cross) {
        if (backwards) visit(2, r[0], r[2]), visit(3, r[1], r[3]);
        visit(0, r[0], r[1]), visit(1, r[2], r[3]);
        if (!backwards) visit(2, r[0], r[2]), visit(3, r[1], r[3]);
    } else {
        constexpr bool middle_first = (pattern == fan) != backwards;
        constexpr int32_t middle = pattern == fan ? 0 : 2, outer = pattern == fan ? 1 : 0;
        if (middle_first) visit(middle, r[1], r[2]);
        visit(outer, r[0], r[1]), visit(outer + 1, r[2], r[3]);
        if (!middle_first) visit(middle, r[1], r[2]);
    }
}

// Calls run(Kind<p>()) for a butterfly's pattern p.
template <Pattern pattern>
struct Kind {
    static constexpr Pattern value = pattern;
};

template <class Run>
NSC_STEP void with_pattern(Pattern pattern, Run run) {
    switch (pattern) {
        case cross: return run(Kind<cross>());
        case funnel: return run(Kind<funnel>());
        case fan: return run(Kind<fan>());
        case single: return run(Kind<single>());
    }
}

// Calls visit(c, m, a, b) for each comparator c, whose weights are m, on each of `blocks`, and ended() behind each.
template <Pattern pattern, bool backwards, class real, class Visit, class Ended>
NSC_STEP void mix_butterfly(const Butterfly &butterfly, uint32_t blocks, Vec<real> *group, const real *keep, Visit visit, Ended ended) {
    constexpr int32_t count = count_of(pattern), held = rows_of(pattern);
    Mix<Vec<real>> m[count];
    NSC_UNROLL
    for (int32_t c = 0; c < count; ++c) m[c] = {broadcast(keep[butterfly.slot + c]), broadcast(keep[butterfly.slot + c + slots])};
    Vec<real> *rows[held];
    NSC_UNROLL
    for (int32_t k = 0; k < held; ++k) rows[k] = group + butterfly.rows[k] * side;
    const auto run = [&](int64_t block) NSC_INLINE {
        Vec<real> r[held];
        NSC_UNROLL
        for (int32_t k = 0; k < held; ++k) r[k] = rows[k][block];
        run_butterfly<pattern, backwards>(r, [&](int32_t c, Vec<real> &a, Vec<real> &b) NSC_INLINE { visit(c, m[c], a, b); });
        NSC_UNROLL
        for (int32_t k = 0; k < held; ++k) rows[k][block] = r[k];
        ended();
    };
    if (blocks == (1 << side) - 1) {
        NSC_UNROLL
        for (int64_t block = 0; block < side; ++block) run(block);
    } else {
        for (; blocks; blocks &= blocks - 1) run(__builtin_ctz(blocks));
    }
}

// Steps first ... end - 1 of a routing: butterflies, each on the blocks of `on`.
struct Steps {
    int64_t first, end;
    const uint8_t *on;
};

// Returns where a segment begins whose differences are kept, given its end.
template <bool backwards>
int64_t first_of_segment(const uint8_t *on, int64_t end) {
    for (int64_t kept = 0; end > 0; --end) {
        const int64_t i = backwards ? butterfly_count - end : end - 1;
        kept += count_of(butterflies[i].pattern) * __builtin_popcount(on[i]);
        if (kept > kept_rows) break;
    }
    return end;
}

// Takes a group through steps, in running order or backwards. With `keeping`, the differences in front of each
// comparator go to `kept`, whose end is returned.
template <bool backwards, bool keeping, class real>
NSC_APART Vec<real> *route_group(Vec<real> *group, Steps steps, const real *keep, Vec<real> *kept) {
    const uint8_t *on = steps.on;
    for (int64_t k = steps.first; k < steps.end; ++k) {
        const int64_t i = backwards ? butterfly_count - 1 - k : k;
        if (!on[i]) continue;
        with_pattern(butterflies[i].pattern, [&](auto kind) NSC_INLINE {
            constexpr Pattern pattern = decltype(kind)::value;
            constexpr int32_t count = count_of(pattern);
            mix_butterfly<pattern, backwards, real>(butterflies[i], on[i], group, keep, [&](int32_t c, Mix<Vec<real>> m, Vec<real> &a, Vec<real> &b) NSC_INLINE {
                if (keeping) kept[c] = a - b;
                mix(a, b, m);
            }, [&]() NSC_INLINE { kept += keeping ? count : 0; });
        });
    }
    return kept;
}

// Adds the sums of `count` rows over their lanes to as many numbers.
template <int32_t count, class real>
NSC_STEP void add_sums(const Vec<real> *rows, real *to) {
    constexpr typename PlacesTo<lanes<real>>::list places;
    Vec<real> sums[(count + 1) / 2];  // of pairs of rows, in every second lane
    NSC_UNROLL
    for (int32_t k = 0; k < count; k += 2) sums[k / 2] = fold<real, 1>(rows[k], k + 1 < count ? rows[k + 1] : Vec<real>{}, places);
    if constexpr (lanes<real> == 2) {
        NSC_UNROLL
        for (int32_t c = 0; c < count; ++c) to[c] += sums[c / 2][c % 2];
    } else {
        Vec<real> sum = fold<real, 2>(sums[0], count > 2 ? sums[(count - 1) / 2] : Vec<real>{}, places);
        if constexpr (lanes<real> > 4) sum = fold<real, 4>(sum, sum, places);
        if constexpr (lanes<real> > 8) sum = fold<real, 8>(sum, sum, places);
        typedef real Four __attribute__((vector_size(4 * sizeof(real))));
        Four four;
        memcpy(&four, &sum, sizeof four);
        if constexpr (count == 4) {
            Four all_four;
            memcpy(&all_four, to, sizeof four);
            all_four += four;
            memcpy(to, &all_four, sizeof four);
        } else {
            NSC_UNROLL
            for (int32_t c = 0; c < count; ++c) to[c] += four[c];
        }
    }
}

// Takes gradients back through the steps of `route_group`, in place, and adds the gradients of the weights to
// `weight_grad`. `kept` is the end that it returned.
template <bool backwards, class real>
NSC_APART void route_group_back(Vec<real> *grads, Steps steps, const real *keep, const Vec<real> *kept, real *weight_grad) {
    const uint8_t *on = steps.on;
    for (int64_t k = steps.end - 1; k >= steps.first; --k) {
        const int64_t i = backwards ? butterfly_count - 1 - k : k;
        if (!on[i]) continue;
        with_pattern(butterflies[i].pattern, [&](auto kind) NSC_INLINE {
            constexpr Pattern pattern = decltype(kind)::value;
            constexpr int32_t count = count_of(pattern);
            const Vec<real> *differences = kept -= count * __builtin_popcount(on[i]);
            Vec<real> products[count] = {};
            mix_butterfly<pattern, !backwards, real>(butterflies[i], on[i], grads, keep, [&](int32_t c, Mix<Vec<real>> m, Vec<real> &a, Vec<real> &b) NSC_INLINE {
                products[c] += differences[c] * (a - b);
                mix(a, b, m);
            }, [&]() NSC_INLINE { differences += count; });
            add_sums<count, real>(products, weight_grad + butterflies[i].slot);
        });
    }
}

// ---------------------------------------------------------------------------------------- losses

// `unit` stands for 1 while P is computed. It is a power of two: tiny products stay normal numbers, and so do
// the reciprocals that the gradients of losses begin with.
template <class real>
constexpr real unit = real(0x1.0000000000000p+72);

// Losses cut logarithms here, where float32 still has gradients. The least probability is in units.
constexpr double lowest_log = -80;
template <class real>
constexpr real least_probability = real(0x1.7fd974d372e45p-116) * unit<real>;

// A probability p and 1 - p, in units; neither is a difference of nearly equal numbers.
template <class real>
struct Probability {
    real p, rest;
};

template <class real>
NSC_FUNCTION Probability<real> complement(Probability<real> of) {
    return {of.rest, of.p};
}

// Whether 1 - p would lose digits. Then the sum of the column's other entries takes its place. Columns sum to
// 1, so at most one entry is so large.
template <class real>
NSC_FUNCTION bool is_large(real p) {
    return p > real(0.75) * unit<real>;
}

// The logarithm of a probability. NaN stays NaN.
template <class real>
NSC_FUNCTION Log<real> log_of(Probability<real> of) {
    if (is_large(of.p)) return logarithm_1p(-Log<real>(of.rest / unit<real>));
    return of.p <= least_probability<real> ? Log<real>(lowest_log) : logarithm(Log<real>(of.p / unit<real>));
}

// The derivative of that logarithm: 1 / p, and 0 where it is cut.
template <class real>
NSC_FUNCTION real slope_of_log(real p) {
    return p <= least_probability<real> ? real(0) : 1 / p;
}

// A column of P in each lane, of one sample or of several. Rows are `pitch` apart.
template <class real>
struct Columns {
    Vec<real> &operator[](int64_t row) const { return first[row * pitch]; }
    void clear() const {
        for (int64_t row = 0; row < wires; ++row) (*this)[row] = Vec<real>{};
    }
    Vec<real> *first;
    int64_t pitch;
};

// The rest of each column's large entry: the sum of those that are not large, in a fixed order.
template <class real>
Vec<real> rests_of_columns(Columns<real> block) {
    Vec<real> sums[4] = {};
    for (int64_t row = 0; row < wires; ++row) sums[row % 4] += block[row] > real(0.75) * unit<real> ? Vec<real>{} : block[row];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class real>
inline Probability<real> probability(real p, real rest_of_column) {
    return {p, is_large(p) ? rest_of_column : unit<real> - p};
}

// The mean over columns of -log P[target, column]; a column's part of it.
template <class real>
void cross_entropy_loss(Columns<real> block, const int64_t *rank, int64_t width, double *losses) {
    bool large = false;
    for (int64_t k = 0; k < width; ++k) large |= is_large<real>(block[rank[k]][k]);
    const Vec<real> rests = large ? rests_of_columns<real>(block) : Vec<real>{};
    for (int64_t k = 0; k < width; ++k) losses[k] -= log_of<real>(probability<real>(block[rank[k]][k], rests[k])) / wires;
}

template <class real>
void cross_entropy_gradient(Columns<real> block, Columns<real> grad, const int64_t *rank, int64_t width) {
    constexpr real share = real(1) / wires;
    for (int64_t k = 0; k < width; ++k) grad[rank[k]][k] = -share * slope_of_log<real>(block[rank[k]][k]);
}
// The mean over entries of -log p where the target is the entry's row, and of -log(1 - p) elsewhere; a column's part
// of it.
template <class real>
void binary_cross_entropy_loss(Columns<real> block, const int64_t *rank, int64_t width, double *losses) {
    const Vec<real> rests = rests_of_columns<real>(block);
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            losses[k] -= log_of<real>(rank[k] == row ? p : complement(p)) / wires / wires;
        }
}

template <class real>
void binary_cross_entropy_gradient(Columns<real> block, Columns<real> grad, const int64_t *rank, int64_t width) {
    constexpr real share = real(1) / wires;
    const Vec<real> rests = rests_of_columns<real>(block);
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            grad[row][k] = share * share * (rank[k] == row ? -slope_of_log(p.p) : slope_of_log(p.rest));
        }
}
// Adds the losses of `width` columns, one of each lane; rank[k] is the true rank of the column in lane k.
template <class real>
void block_loss(Columns<real> block, Routing loss, const int64_t *rank, int64_t width, double *losses) {
    switch (loss) {
        case cross_entropy: return cross_entropy_loss<real>(block, rank, width, losses);
        case binary_cross_entropy: return binary_cross_entropy_loss<real>(block, rank, width, losses);
        default: return;
    }
}

// The gradient of these losses.
template <class real>
void block_loss_gradient(Columns<real> block, Columns<real> grad, Routing loss, const int64_t *rank, int64_t width) {
    grad.clear();
    switch (loss) {
        case cross_entropy: return cross_entropy_gradient<real>(block, grad, rank, width);
        case binary_cross_entropy: return binary_cross_entropy_gradient<real>(block, grad, rank, width);
        default: return;
    }
}

// -------------------------------------------------------------------------------------- threads

// Subnormal numbers count as zero on this thread while it lives. They are common in P, whose entries are products
// of many weights, and processors take about 100 times as long for them.
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

// Runs work(begin, end, memory) for ranges of tasks, on the threads of a pool. Each thread has `bytes` of memory.
// Returns out_of_memory if a thread gets none, or if its work says so.
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
        if (!memory.start) return __atomic_store_n(&state->status, int32_t(out_of_memory), __ATOMIC_RELAXED);
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

// The same, work(task, memory) for each task.
template <class Work>
Status parallel(ParallelFor pool, int64_t count, int64_t grain, int64_t bytes, Work work) {
    return parallel_ranges(pool, count, grain, bytes, [&](int64_t begin, int64_t end, const Memory &memory) {
        for (int64_t task = begin; task < end; ++task) work(task, memory);
        return ok;
    });
}

// A grain that gives a thread at least some ten microseconds of work, measured in mixes.
inline int64_t grain_of(int64_t work_per_task) { return 1 + 32768 / (work_per_task + 1); }

inline int64_t cut(int64_t total, int64_t pieces, int64_t piece) { return total * piece / pieces; }

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

// --------------------------------------------------------------------------- groups of columns

// A row's part in a group is a small piece of a long row, too short for the processor to foresee the next row's.
constexpr int64_t rows_ahead = 24;

template <bool writes, class real>
NSC_STEP void expect_row(const real *from, int64_t row, int64_t columns, int64_t width) {
    if (row + rows_ahead >= wires) return;
    for (int64_t k = 0; k < width; k += 64 / int64_t(sizeof(real))) __builtin_prefetch(from + (row + rows_ahead) * columns + k, writes);
}

// Calls visit(width) for the columns of a group, as a constant if they fill it.
template <class real, class Visit>
NSC_STEP void with_width(int64_t width, Visit visit) {
    if (width == side * lanes<real>)
        visit(side * lanes<real>);
    else
        visit(width);
}

// Calls visit(k, count) for each register k of a row, of which `count` values are of `width` columns.
template <class real, class Visit>
NSC_STEP void for_registers(int64_t width, Visit visit) {
    NSC_UNROLL
    for (int64_t k = 0; k < side; ++k) {
        const int64_t left = width - k * lanes<real>;
        if (left > 0) visit(k, left < lanes<real> ? left : lanes<real>);
    }
}

// Between the rows of a group, of `width` columns, and rows of `columns` values each.
template <class real>
void store_group(const Vec<real> *group, real *to, int64_t columns, int64_t columns_of_group, real scale) {
    with_width<real>(columns_of_group, [=](int64_t width) NSC_INLINE {
        for (int64_t row = 0; row < wires; ++row) {
            expect_row<true>(to, row, columns, width);
            for_registers<real>(width, [=](int64_t k, int64_t count) NSC_INLINE {
                store(to + row * columns + k * lanes<real>, group[row * side + k] * scale, count);
            });
        }
    });
}

template <class real>
void load_group(Vec<real> *group, const real *from, int64_t columns, int64_t columns_of_group) {
    with_width<real>(columns_of_group, [=](int64_t width) NSC_INLINE {
        for (int64_t row = 0; row < wires; ++row) {
            expect_row<false>(from, row, columns, width);
            for_registers<real>(width, [=](int64_t k, int64_t count) NSC_INLINE {
                group[row * side + k] = load(from + row * columns + k * lanes<real>, count);
            });
        }
    });
}

// Fills a group with columns of the payload of a sample, from block `first` on. The ones of a unit matrix are `one`.
template <class real>
void load_payload(const Call<real> &call, Vec<real> *group, int64_t sample, int64_t first, int64_t width, real one) {
    const int64_t column = first * lanes<real>;
    if (has_columns(call.routing)) {
        const real *payload = static_cast<const real *>(call.payload) + sample * call.payload_stride;
        return load_group(group, payload + column, call.payload_columns, width);
    }
    memset(group, 0, sizeof(Vec<real>) * side * wires);
    for (int64_t k = 0; k < width; ++k) {
        const int64_t row = has_ranks(call.routing) ? call.ranks_of(sample)[column + k] : column + k;
        group[row * side + k / lanes<real>][k % lanes<real>] = one;
    }
}

// -------------------------------------------------------------------------------- the keys pass

// Samples whose weights are held at a time: as many as fit the aim, at least one.
template <class real>
inline int64_t group_size(int64_t batch, int64_t bytes_per_sample) {
    const int64_t fits = scratch_bytes / (bytes_per_sample + 1);
    const int64_t group = fits < 1 ? 1 : fits < lanes<real> ? fits : fits / lanes<real> * lanes<real>;
    return group < batch ? group : batch;
}

// Blocks of `lanes` samples that go through the keys pass together where the values alone are wanted: two, unless
// what is kept of them for gradients exceeds a cache of this many bytes.
constexpr int64_t cache_bytes = 1 << 19;
template <class real>
constexpr int64_t value_blocks = 2 * slots * int64_t(sizeof(Vec<real>)) <= cache_bytes ? 2 : 1;

// A group of samples that go through the keys pass together, blocks of `lanes` at a time or one by one.
template <class real, int64_t most_blocks = 1>
struct KeysTask {
    KeysTask(const Call<real> &call, int64_t group_first, int64_t group_count, int64_t task)
        : at_once(count_at_once(group_count)), place(task * at_once), first(group_first + place),
          count(group_count - place < at_once ? group_count - place : at_once), blocks((count + lanes<real> - 1) / lanes<real>) {
        for (int64_t k = 0; k < most_blocks * lanes<real>; ++k)
            steepness[k / lanes<real>][k % lanes<real>] = call.steepness_of(k < count ? first + k : first);
    }
    // A lane for each of a few samples takes less time than their comparators one sample after another; but half of
    // a register's samples are enough for several threads, unless one thread takes them all.
    static int64_t count_at_once(int64_t group) {
        return group < (comparators < 512 ? 2 : lanes<real> / 2) ? 1 : most_blocks * lanes<real>;
    }
    static int64_t count_tasks(int64_t group) { return (group + count_at_once(group) - 1) / count_at_once(group); }
    bool lanes_are_samples() const { return at_once > 1; }
    // Samples before a block, and in it.
    int64_t before(int64_t block) const { return block * lanes<real>; }
    int64_t in_block(int64_t block) const { return count - before(block) < lanes<real> ? count - before(block) : lanes<real>; }
    int64_t at_once, place, first, count, blocks;  // place in the group, first sample, samples
    Vec<real> steepness[most_blocks];
};

template <class real>
inline void copy_or_clear(real *to, const real *from, int64_t count) {
    if (from)
        memcpy(to, from, sizeof(real) * count);
    else
        memset(to, 0, sizeof(real) * count);
}

// Runs all comparators on a task's blocks, one behind the other, in place. What it keeps of each, it keeps by slot.
template <class real, int64_t most_blocks, class Kept>
inline void compare_blocks(const KeysTask<real, most_blocks> &task, Vec<real> *blocks, Kept kept) {
    bool strange = false;
    for (int64_t block = 0; block < task.blocks; ++block)
        strange |= are_strange<real>(blocks + block * wires, wires, task.steepness[block]);
    if (task.blocks == most_blocks && !strange) {
        for (int32_t p = 0; p < piece_count; ++p)
            compare<real, false, most_blocks>(pieces[p].count, in_pieces + pieces[p].first, blocks, task.steepness, kept);
        return;
    }
    for (int64_t block = 0; block < task.blocks; ++block) {
        const auto of_block = kept.from(block * slots);
        for (int32_t p = 0; p < piece_count; ++p) {
            const Comparator *at = in_pieces + pieces[p].first;
            if (strange)
                compare<real, true, 1>(pieces[p].count, at, blocks + block * wires, &task.steepness[block], of_block);
            else
                compare<real, false, 1>(pieces[p].count, at, blocks + block * wires, &task.steepness[block], of_block);
        }
    }
}

// Fills a block with the gradients of the values of `count` samples, and clears the sums for the steepness.
template <class real>
inline void load_gradient(const real *values_grad, int64_t count, Vec<real> *block, Vec<real> *parts) {
    memset(parts, 0, sizeof(Vec<real>) * slot_alignment);
    if (values_grad)
        load_samples(values_grad, count, block);
    else
        memset(block, 0, sizeof(Vec<real>) * wires);
}

// Runs the keys pass on samples first ... first + count - 1: their values go to `values`, at the place
// of sample `first`.
template <class real>
Status values_forward(const Call<real> &call, int64_t first, int64_t count, real *values, ParallelFor pool) {
    using Task = KeysTask<real, value_blocks<real>>;
    const int64_t bytes = Task::count_at_once(count) > 1 ? sizeof(Vec<real>) * wires * value_blocks<real> : 0;
    return parallel(pool, Task::count_tasks(count), grain_of(8 * comparators), bytes, [&](int64_t number, const Memory &memory) {
        const Task task(call, first, count, number);
        const real *x = call.x + task.first * wires;
        real *to = values + task.place * wires;
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * wires);
            compare_levels(to, task.steepness[0][0], Nothing());
            return;
        }
        Vec<real> *blocks = memory.get<Vec<real>>();
        for (int64_t b = 0; b < task.blocks; ++b) load_samples(x + task.before(b) * wires, task.in_block(b), blocks + b * wires);
        compare_blocks<real>(task, blocks, Nothing());
        for (int64_t b = 0; b < task.blocks; ++b) store_samples(to + task.before(b) * wires, task.in_block(b), blocks + b * wires);
    });
}

// The same, and their weights go to `weights`, unless it is null.
template <class real>
Status keys_forward(const Call<real> &call, int64_t first, int64_t count, real *values, real *weights, ParallelFor pool) {
    if (!weights) return values_forward<real>(call, first, count, values, pool);
    using Row = Vec<real>;
    const bool by_lane = KeysTask<real>::count_at_once(count) > 1;
    const int64_t bytes = by_lane ? sizeof(Row) * (wires + arrays * longest_codelet) : 0;
    return parallel(pool, KeysTask<real>::count_tasks(count), grain_of(8 * comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const KeysTask<real> task(call, first, count, number);
        const real *x = call.x + task.first * wires;
        real *to = values + task.place * wires, *kept = weights + task.place * arrays * slots;
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * wires);
            compare_levels_to_slots(to, task.steepness[0][0], weights_at(kept, slots));
            return;
        }
        Row *block = memory.get<Row>(), *tile = block + wires;
        load_samples(x, task.count, block);
        const bool strange = are_strange<real>(block, wires, task.steepness[0]);
        for (int64_t c = 0; c < codelet_count; ++c) {
            const Codelet codelet = codelets[c];
            const Weights<Row> w = weights_at(tile, longest_codelet);
            if (strange)
                compare_codelet<real, true>(c, block, task.steepness[0], w);
            else
                compare_codelet<real, false>(c, block, task.steepness[0], w);
            for (int64_t a = 0; a < arrays; ++a)
                scatter_slots(kept + a * slots + codelet.slot, arrays * slots, task.count,
                              shapes[codelet.shape].comparators, tile + a * longest_codelet);
        }
        store_samples(to, task.count, block);
    });
}

// Takes gradients of the values, null for zero, and of the weights to gradients of x and the steepness.
// `weights` are those of keys_forward; weight_grads has `stride` reals per sample.
template <class real>
Status keys_backward(const Call<real> &call, int64_t first, int64_t count, const real *values_grad, real *weights,
                     const real *weight_grads, int64_t stride, real *x_grad, real *steepness_grad, ParallelFor pool) {
    using Row = Vec<real>;
    const bool by_lane = KeysTask<real>::count_at_once(count) > 1;
    const int64_t bytes = by_lane ? sizeof(Row) * (wires + slot_alignment + (arrays + 1) * longest_codelet) : 0;
    return parallel(pool, KeysTask<real>::count_tasks(count), grain_of(8 * comparators), bytes,
                    [&](int64_t number, const Memory &memory) {
        const KeysTask<real> task(call, first, count, number);
        real *to = x_grad + task.first * wires, *kept = weights + task.place * arrays * slots;
        const real *from = weight_grads + task.place * stride;
        if (!task.lanes_are_samples()) {
            copy_or_clear(to, values_grad ? values_grad + task.first * wires : nullptr, wires);
            const real sum = compare_levels_backward(to, from, task.steepness[0][0], weights_at(kept, slots));
            if (steepness_grad) steepness_grad[task.first] = sum;
            return;
        }
        Row *block = memory.get<Row>(), *parts = block + wires, *into = parts + slot_alignment, *tile = into + longest_codelet;
        load_gradient(values_grad ? values_grad + task.first * wires : nullptr, task.count, block, parts);
        for (int64_t c = codelet_count - 1; c >= 0; --c) {
            const Codelet codelet = codelets[c];
            const int64_t slot_count = shapes[codelet.shape].comparators;
            gather_slots(from + codelet.slot, stride, task.count, slot_count, into);
            for (int64_t a = 0; a < arrays; ++a)
                gather_slots(kept + a * slots + codelet.slot, arrays * slots, task.count, slot_count, tile + a * longest_codelet);
            compare_codelet_backward<real>(c, block, into, task.steepness[0], weights_at(tile, longest_codelet), steepness_grad ? parts : nullptr);
        }
        store_samples(to, task.count, block);
        if (steepness_grad) store(steepness_grad + task.first, sum_of_parts(parts), task.count);
    });
}

// Both at once, for gradients of the values alone.
template <class real>
Status values_backward(const Call<real> &call, const real *values_grad, real *x_grad, real *steepness_grad, ParallelFor pool) {
    using Row = Vec<real>;
    using Task = KeysTask<real, value_blocks<real>>;
    const bool by_lane = Task::count_at_once(call.batch) > 1;
    const int64_t rows = by_lane ? value_blocks<real> * slots : level_rows<real>, kept_rows = (steepness_grad ? 2 : 1) * rows;
    const int64_t others = by_lane ? sizeof(Row) * (value_blocks<real> * wires + slot_alignment) : steepness_grad ? sizeof(real) * slots : 0;
    return parallel(pool, Task::count_tasks(call.batch), grain_of(16 * comparators), sizeof(Row) * kept_rows + others,
                    [&](int64_t number, const Memory &memory) {
        const Task task(call, 0, call.batch, number);
        const real *x = call.x + task.first * wires, *from = values_grad ? values_grad + task.first * wires : nullptr;
        real *to = x_grad + task.first * wires;
        Row *held = memory.get<Row>(), *parts = held + kept_rows, *blocks = parts + slot_alignment;
        const Derivatives<Row> kept = {held, steepness_grad ? held + rows : nullptr};
        if (!task.lanes_are_samples()) {
            memcpy(to, x, sizeof(real) * wires);  // x_grad takes the values, which are not needed
            compare_levels(to, task.steepness[0][0], kept);
            copy_or_clear(to, from, wires);
            const real sum = derive_levels_backward<real>(to, kept, steepness_grad ? singly<real>(parts) : nullptr);
            if (steepness_grad) steepness_grad[task.first] = sum;
            return;
        }
        for (int64_t b = 0; b < task.blocks; ++b) load_samples(x + task.before(b) * wires, task.in_block(b), blocks + b * wires);
        compare_blocks<real>(task, blocks, kept);
        for (int64_t b = 0; b < task.blocks; ++b) {
            const int64_t before = task.before(b), count = task.in_block(b);
            load_gradient(from ? from + before * wires : nullptr, count, blocks, parts);
            derive_backward<real>(blocks, kept.from(b * slots), steepness_grad ? parts : nullptr);
            store_samples(to + before * wires, count, blocks);
            if (steepness_grad) store(steepness_grad + task.first + before, sum_of_parts(parts), count);
        }
    });
}

// ----------------------------------------------------- P of few wires: a lane is a sample in every pass
//
// A task takes `lanes` samples through all passes. Weights of a comparator fill a register, no sum runs over lanes,
// and each column of P meets only the comparators in its own light cone. Lanes without a sample compute on zeros, so
// that a sample's results do not depend on the rest of its batch.

// Columns that are held at a time, and the places from a row to the next. A power of two would send many rows to
// the same few sets of the cache.
constexpr int64_t held_columns = wires < 16 ? (wires + together - 1) / together * together : 16;
constexpr int64_t pitch = wires > 16 ? held_columns + together : held_columns;

// Fills rows with unit columns, which the cone turns into columns of P.
template <int64_t row_pitch, class real>
void begin_columns(Vec<real> *rows, int64_t column, const NarrowCone &cone, real one) {
    for (int64_t wire = column; wire < column + together && wire < wires; ++wire)
        for (int64_t k = 0; k < together; ++k) rows[wire * row_pitch + k] = wire == column + k ? all(one) : Vec<real>{};
    for (int64_t wire = 0; wire < wires && !cone.reaches_all; ++wire)
        if (!cone.reaches[wire])
            for (int64_t k = 0; k < together; ++k) rows[wire * row_pitch + k] = Vec<real>{};
}

// Calls visit(column, c, m, a, b) for each column and comparator c of a step, whose weights are m.
template <Pattern pattern, bool backwards, int64_t row_pitch, class real, class Visit>
NSC_STEP void run_step(Vec<real> *rows, const ConeStep &step, Mixes<Vec<real>> w, Visit visit) {
    using Row = Vec<real>;
    constexpr int32_t count = count_of(pattern), held = rows_of(pattern);
    Mix<Row> m[count];
    NSC_UNROLL
    for (int32_t c = 0; c < count; ++c) m[c] = {w.keep[step.butterfly.slots[c]], w.swap[step.butterfly.slots[c]]};
    const Row *from[held];
    Row *to[held];
    NSC_UNROLL
    for (int32_t k = 0; k < held; ++k) {
        to[k] = rows + step.butterfly.rows[k] * row_pitch;
        from[k] = backwards ? to[k] : rows + step.from[k] * row_pitch;
    }
    NSC_UNROLL
    for (int64_t column = 0; column < together; ++column) {
        Row r[held];
        NSC_UNROLL
        for (int32_t k = 0; k < held; ++k) r[k] = from[k][column];
        run_butterfly<pattern, backwards>(r, [&](int32_t c, Row &a, Row &b) NSC_INLINE { visit(column, c, m[c], a, b); });
        NSC_UNROLL
        for (int32_t k = 0; k < held; ++k) to[k][column] = r[k];
    }
}

// Takes columns through their cone. With `keeping`, the differences in front of each comparator go to `differences`, whose
// end is returned.
template <int64_t row_pitch, bool keeping, class real>
Vec<real> *route_columns(Vec<real> *rows, const NarrowCone &cone, Mixes<Vec<real>> w, Vec<real> *differences) {
    using Row = Vec<real>;
    for (int32_t i = 0; i < cone.count; ++i)
        with_pattern(cone.steps[i].butterfly.pattern, [&](auto kind) NSC_INLINE {
            constexpr Pattern pattern = decltype(kind)::value;
            constexpr int32_t count = count_of(pattern);
            run_step<pattern, false, row_pitch, real>(rows, cone.steps[i], w, [differences](int64_t column, int32_t c, Mix<Row> m, Row &a, Row &b) NSC_INLINE {
                if (keeping) differences[column * count + c] = a - b;
                mix(a, b, m);
            });
            differences += keeping ? together * count : 0;
        });
    return differences;
}

// Takes the gradient of columns back through their cone, in place, and adds the gradients of the weights. `differences` is
// the end that route_columns returned.
template <int64_t row_pitch, class real>
void route_columns_back(Vec<real> *grad, const NarrowCone &cone, Mixes<Vec<real>> w, const Vec<real> *differences, Vec<real> *weight_grad) {
    using Row = Vec<real>;
    for (int32_t i = cone.count - 1; i >= 0; --i)
        with_pattern(cone.steps[i].butterfly.pattern, [&](auto kind) NSC_INLINE {
            constexpr Pattern pattern = decltype(kind)::value;
            constexpr int32_t count = count_of(pattern);
            const ConeStep &step = cone.steps[i];
            differences -= together * count;
            Row sums[count];
            NSC_UNROLL
            for (int32_t c = 0; c < count; ++c) sums[c] = weight_grad[step.butterfly.slots[c]];
            run_step<pattern, true, row_pitch, real>(grad, step, w, [differences, &sums](int64_t column, int32_t c, Mix<Row> m, Row &a, Row &b) NSC_INLINE {
                sums[c] += differences[column * count + c] * (a - b);
                mix(a, b, m);
            });
            NSC_UNROLL
            for (int32_t c = 0; c < count; ++c) weight_grad[step.butterfly.slots[c]] = sums[c];
        });
}

// Calls visit(first, length, place) for runs of `length` numbers from number `first` of each sample's matrix on: place(i)
// is the row that holds the i-th of them. Held columns of a wider matrix have a run for each of its rows.
template <class Visit>
inline void for_each_run(int64_t column, int64_t width, Visit visit) {
    if (width == wires) return visit(0, wires * wires, [](int64_t i) { return i / wires * pitch + i % wires; });
    for (int64_t row = 0; row < wires; ++row) visit(row * wires + column, width, [row](int64_t i) { return row * pitch + i; });
}

// A square of a matrix and rows: `run` numbers side by side of each of `count` samples, `stride` apart. All of both if
// `whole`.
template <bool whole, class real, class Place>
NSC_STEP void store_square(const Vec<real> *rows, Place place, real *to, int64_t stride, int64_t run, int64_t count, real scale) {
    Vec<real> square[lanes<real>];
    NSC_UNROLL
    for (int64_t k = 0; k < lanes<real>; ++k) square[k] = whole || k < run ? rows[place(k)] * scale : Vec<real>{};
    transpose_from<real>(square);
    NSC_UNROLL
    for (int64_t k = 0; k < lanes<real>; ++k)
        if (whole || k < count) store(to + k * stride, square[k], whole ? lanes<real> : run);
}

template <bool whole, class real, class Place>
NSC_STEP void load_square(Vec<real> *rows, Place place, const real *from, int64_t stride, int64_t run, int64_t count) {
    Vec<real> square[lanes<real>];
    NSC_UNROLL
    for (int64_t k = 0; k < lanes<real>; ++k)
        square[k] = whole || k < count ? load(from + k * stride, whole ? lanes<real> : run) : Vec<real>{};
    transpose_from<real>(square);
    NSC_UNROLL
    for (int64_t k = 0; k < lanes<real>; ++k)
        if (whole || k < run) rows[place(k)] = square[k];
}

// Calls visit(first, run, place) for each square of such runs: place(k) is the row of its k-th number.
template <class real, class Visit>
inline void for_each_square(int64_t column, int64_t width, Visit visit) {
    for_each_run(column, width, [&](int64_t first, int64_t length, auto place) {
        for (int64_t i = 0; i < length; i += lanes<real>)
            visit(first + i, length - i < lanes<real> ? length - i : lanes<real>, [place, i](int64_t k) { return place(i + k); });
    });
}

// Between matrices of `count` samples and rows of their columns column ... column + width - 1.
template <class real>
void store_columns(const Vec<real> *rows, int64_t column, int64_t width, real *to, int64_t count, real scale) {
    for_each_square<real>(column, width, [&](int64_t first, int64_t run, auto place) {
        if (run == lanes<real> && count == lanes<real>)
            store_square<true>(rows, place, to + first, wires * wires, run, count, scale);
        else
            store_square<false>(rows, place, to + first, wires * wires, run, count, scale);
    });
}

template <class real>
void load_columns(Vec<real> *rows, int64_t column, int64_t width, const real *from, int64_t count) {
    for_each_square<real>(column, width, [&](int64_t first, int64_t run, auto place) {
        if (run == lanes<real> && count == lanes<real>)
            load_square<true>(rows, place, from + first, wires * wires, run, count);
        else
            load_square<false>(rows, place, from + first, wires * wires, run, count);
    });
    for (int64_t none = width; none % together; ++none) Columns<real>{rows + none, pitch}.clear();
}

// The samples of a task.
template <class real>
struct Samples {
    Samples(const Call<real> &call, int64_t task)
        : call(call), first(task * lanes<real>), count(call.batch - first < lanes<real> ? call.batch - first : lanes<real>) {
        for (int64_t k = 0; k < lanes<real>; ++k) steepness[k] = call.steepness_of(k < count ? first + k : first);
    }
    static int64_t count_tasks(int64_t batch) { return (batch + lanes<real> - 1) / lanes<real>; }
    // Runs the keys pass: the values go to `block`, the weights to w.
    void compare(Vec<real> *block, Weights<Vec<real>> w) const {
        load_samples(call.x + first * wires, count, block);
        const bool strange = are_strange<real>(block, wires, steepness);
        for (int32_t p = 0; p < piece_count; ++p) {
            const Comparator *at = in_pieces + pieces[p].first;
            if (strange)
                ::compare<real, true, 1>(pieces[p].count, at, block, &steepness, w);
            else
                ::compare<real, false, 1>(pieces[p].count, at, block, &steepness, w);
        }
    }
    // The same backwards on gradients, given those of the weights.
    void compare_backward(Vec<real> *grad, const Vec<real> *weight_grad, Weights<Vec<real>> w, Vec<real> *parts) const {
        for (int32_t p = piece_count - 1; p >= 0; --p) {
            const Comparator *at = in_pieces + pieces[p].first;
            Vec<real> steepness_grad[at_a_time];
            ::compare_backward<real>(pieces[p].count, at, grad, weight_grad, steepness, w, parts ? steepness_grad : nullptr);
            for (int32_t i = pieces[p].count - 1; parts && i >= 0; --i) parts[at[i].slot % slot_alignment] += steepness_grad[i];
        }
    }
    void load_gradient(const real *values_grad, Vec<real> *block) const {
        if (values_grad)
            load_samples(values_grad + first * wires, count, block);
        else
            memset(block, 0, sizeof(Vec<real>) * wires);
    }
    // The rank of each sample's item `column`.
    void ranks(int64_t column, int64_t *rank) const {
        for (int64_t k = 0; k < count; ++k) rank[k] = call.ranks_of(first + k)[column];
    }
    const Call<real> &call;
    int64_t first, count;
    Vec<real> steepness;
};

// Reals that forward keeps for backward: the weights of all samples, and what it takes to begin at a register.
template <class real>
int64_t narrow_kept(int64_t batch) {
    return (Samples<real>::count_tasks(batch) * arrays * slots + 1) * lanes<real>;
}

// The weights of a task's samples in what forward keeps.
template <class real>
Vec<real> *kept_weights(real *kept, int64_t task) {
    const uintptr_t start = (reinterpret_cast<uintptr_t>(kept) + register_bytes - 1) & ~uintptr_t(register_bytes - 1);
    return reinterpret_cast<Vec<real> *>(start) + task * arrays * slots;
}

template <class real>
Status narrow_forward(const Call<real> &call, real *values, real *routed, real *kept, ParallelFor pool) {
    using Row = Vec<real>;
    constexpr int64_t places = wires + arrays * slots + (wires + 1) * pitch;
    return parallel(pool, Samples<real>::count_tasks(call.batch), grain_of(4 * comparators * (wires + 16)), sizeof(Row) * places,
                    [&](int64_t task, const Memory &memory) {
        const Samples<real> samples(call, task);
        Row *block = memory.get<Row>(), *rows = block + wires + arrays * slots;
        const Weights<Row> w = weights_at(kept ? kept_weights(kept, task) : block + wires, slots);
        samples.compare(block, w);
        store_samples(values + samples.first * wires, samples.count, block);
        memset(rows + wires * pitch, 0, sizeof(Row) * pitch);
        double losses[lanes<real>] = {};
        for (int64_t column = 0; column < wires; column += held_columns) {
            const int64_t width = wires - column < held_columns ? wires - column : held_columns;
            for (int64_t at = 0; at < width; at += together) {
                const NarrowCone &cone = narrow_cones[(column + at) / together];
                begin_columns<pitch, real>(rows + at, column + at, cone, unit<real>);
                route_columns<pitch, false, real>(rows + at, cone, w.forward, nullptr);
            }
            if (!is_loss(call.routing)) {
                store_columns<real>(rows, column, width, routed + samples.first * wires * wires, samples.count, 1 / unit<real>);
                continue;
            }
            for (int64_t at = 0; at < width; ++at) {
                int64_t rank[lanes<real>];
                samples.ranks(column + at, rank);
                block_loss<real>({rows + at, pitch}, call.routing, rank, samples.count, losses);
            }
        }
        for (int64_t k = 0; is_loss(call.routing) && k < samples.count; ++k) routed[samples.first + k] = real(losses[k]);
    });
}

template <class real>
Status narrow_backward(const Call<real> &call, const real *values_grad, const real *routed_grad, real *x_grad,
                       real *steepness_grad, real *loss_of_samples, real *kept, ParallelFor pool) {
    using Row = Vec<real>;
    constexpr int64_t side = together, columns_of_grad = (wires + 1) * pitch, columns_of_payload = (wires + 1) * side;
    constexpr int64_t places = wires + slot_alignment + (arrays + 1) * slots + columns_of_grad + columns_of_payload + comparators * side;
    return parallel(pool, Samples<real>::count_tasks(call.batch), grain_of(6 * comparators * (wires + 16)), sizeof(Row) * places,
                    [&](int64_t task, const Memory &memory) {
        const Samples<real> samples(call, task);
        Row *block = memory.get<Row>(), *parts = block + wires, *weight_grad = parts + slot_alignment;
        const Weights<Row> w = weights_at(kept ? kept_weights(kept, task) : weight_grad + slots, slots);
        Row *grad = weight_grad + (arrays + 1) * slots, *rows = grad + columns_of_grad, *differences = rows + columns_of_payload;
        if (!kept) samples.compare(block, w);
        memset(weight_grad, 0, sizeof(Row) * slots);
        memset(rows + wires * side, 0, sizeof(Row) * side);
        double losses[lanes<real>] = {};
        for (int64_t column = 0; column < wires; column += held_columns) {
            const int64_t width = wires - column < held_columns ? wires - column : held_columns;
            if (!is_loss(call.routing)) load_columns<real>(grad, column, width, routed_grad + samples.first * wires * wires, samples.count);
            for (int64_t at = 0; at < width; at += side) {
                const NarrowCone &cone = narrow_cones[(column + at) / side];
                begin_columns<together, real>(rows, column + at, cone, is_loss(call.routing) ? unit<real> : real(1));
                const Row *end = route_columns<together, true, real>(rows, cone, w.forward, differences);
                for (int64_t k = 0; k < side && is_loss(call.routing); ++k) {
                    int64_t rank[lanes<real>];
                    const bool is_column = at + k < width;
                    if (is_column) samples.ranks(column + at + k, rank);
                    if (is_column && loss_of_samples) block_loss<real>({rows + k, side}, call.routing, rank, samples.count, losses);
                    block_loss_gradient<real>({rows + k, side}, {grad + at + k, pitch}, call.routing, rank, is_column ? samples.count : 0);
                }
                route_columns_back<pitch, real>(grad + at, cone, w.backward, end, weight_grad);
            }
        }
        for (int64_t k = 0; loss_of_samples && k < samples.count; ++k) loss_of_samples[samples.first + k] = real(losses[k]);
        samples.load_gradient(values_grad, block);
        memset(parts, 0, sizeof(Row) * slot_alignment);
        samples.compare_backward(block, weight_grad, w, steepness_grad ? parts : nullptr);
        store_samples(x_grad + samples.first * wires, samples.count, block);
        if (steepness_grad) store(steepness_grad + samples.first, sum_of_parts(parts), samples.count);
    });
}

// ----------------------------------------------------------------------------- the routing pass

template <class result>
inline result sum_of(const double *parts, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += parts[i];
    return result(sum);
}

// How many reals a call of forward can keep for one of backward, which then need not work them out anew.
template <class real>
int64_t count_kept(Routing routing, int64_t batch) {
    if (routes_identity(routing)) return narrow_kept<real>(batch);
    (void)routing, (void)batch;
    return 0;
}

// From so many samples on, a thread takes whole samples through all passes. The columns of fewer samples are shared out
// in pieces, and the passes follow one another, as few samples may be too few for the threads.
constexpr int64_t many_samples = 8;

// What a thread routes in: a group and its gradients, differences, copies of the group where segments begin (the first
// begins with the payload, the last needs none), the sums of a piece, and the blocks of each butterfly.
template <class real>
struct RoutingMemory {
    using Row = Vec<real>;
    static constexpr int64_t rows_forward = side * wires, most_copies = most_segments > 2 ? most_segments - 2 : 0;
    static constexpr int64_t rows_backward = (2 + most_copies) * side * wires + kept_rows;
    static constexpr int64_t bytes_forward = sizeof(Row) * rows_forward + butterfly_count;
    static constexpr int64_t bytes_backward = sizeof(Row) * rows_backward + sizeof(real) * slots + butterfly_count;
    static RoutingMemory forward(void *start) {
        Row *rows = static_cast<Row *>(start);
        return {rows, nullptr, nullptr, nullptr, nullptr, reinterpret_cast<uint8_t *>(rows + rows_forward)};
    }
    static RoutingMemory backward(void *start) {
        Row *rows = static_cast<Row *>(start), *grads = rows + side * wires, *copies = grads + side * wires;
        real *sums = reinterpret_cast<real *>(rows + rows_backward);
        return {rows, grads, copies, copies + most_copies * side * wires, sums, reinterpret_cast<uint8_t *>(sums + slots)};
    }
    Row *rows, *grads, *copies, *kept;
    real *sums;
    uint8_t *on;
};

// Calls visit(group) for the groups of a piece of the columns.
template <class real, class Visit>
inline void for_groups(const Call<real> &call, int64_t piece, Visit visit) {
    const int64_t pieces = call.chunks();
    for (int64_t group = cut(call.groups(), pieces, piece); group < cut(call.groups(), pieces, piece + 1); ++group) visit(group);
}

// Routes a piece of a sample's columns to `routed`. A loss is returned instead.
template <class real>
double route_piece(const Call<real> &call, int64_t sample, int64_t piece, const real *keep, real *routed, RoutingMemory<real> memory) {
    double loss_of_lanes[lanes<real>] = {};
    for_groups(call, piece, [&](int64_t group) {
        const int64_t at = group * side, used = call.used_in(group), width = call.width_of_group(group);
        load_payload(call, memory.rows, sample, at, width, unit<real>);
        call.find_blocks(memory.on, sample, at, used);
        const Steps steps = {0, butterfly_count, memory.on};
        if (is_reversed(call.routing))
            route_group<true, false, real>(memory.rows, steps, keep, nullptr);
        else
            route_group<false, false, real>(memory.rows, steps, keep, nullptr);
        if (!is_loss(call.routing)) {
            real *to = routed + sample * wires * call.columns() + at * lanes<real>;
            return store_group<real>(memory.rows, to, call.columns(), width, has_columns(call.routing) ? real(1) : 1 / unit<real>);
        }
        for (int64_t k = 0; k < used; ++k) {
            const int64_t column = (at + k) * lanes<real>;
            block_loss<real>({memory.rows + k, side}, call.routing, call.ranks_of(sample) + column, call.width_of(column), loss_of_lanes);
        }
    });
    return sum_of<double>(loss_of_lanes, lanes<real>);
}

// Takes a group of columns of a payload through all steps and the gradient behind them back, in place in memory.grads,
// and adds the gradients of the weights to `weight_grad`. load() fills the group with the payload; ended() is called when
// the group is routed and fills memory.grads.
template <bool backwards, class real, class Load, class Ended>
void route_group_both_ways(Weights<real> w, real *weight_grad, RoutingMemory<real> memory, Load load, Ended ended) {
    constexpr int64_t size = side * wires;
    const auto copy_of = [&](int64_t segment) { return memory.copies + (segment - 1) * size; };
    // Where the segments begin, the last first.
    int64_t first[most_segments], last = 0;
    first[0] = first_of_segment<backwards>(memory.on, butterfly_count);
    while (first[last] > 0) first[last + 1] = first_of_segment<backwards>(memory.on, first[last]), ++last;
    load();
    for (int64_t segment = last; segment > 0; --segment) {
        route_group<backwards, false, real>(memory.rows, {first[segment], first[segment - 1], memory.on}, w.forward.keep, nullptr);
        if (segment > 1) memcpy(copy_of(segment - 1), memory.rows, sizeof(Vec<real>) * size);
    }
    for (int64_t segment = 0; segment <= last; ++segment) {
        if (segment > 0 && segment < last) memcpy(memory.rows, copy_of(segment), sizeof(Vec<real>) * size);
        if (segment > 0 && segment == last) load();
        const Steps steps = {first[segment], segment ? first[segment - 1] : butterfly_count, memory.on};
        const Vec<real> *end = route_group<backwards, true, real>(memory.rows, steps, w.forward.keep, memory.kept);
        if (segment == 0) ended();
        route_group_back<backwards, real>(memory.grads, steps, w.backward.keep, end, weight_grad);
    }
}

// Takes the gradient of a piece of a sample's routed columns back to the payload, and adds the gradients of the weights to
// `weight_grad`. The gradient of a loss is worked out on the way, and the loss returned if it is wanted.
template <class real>
double route_piece_back(const Call<real> &call, int64_t sample, int64_t piece, Weights<real> w, const real *routed_grad, real *payload_grad,
                        bool wants_loss, real *weight_grad, RoutingMemory<real> memory) {
    double loss_of_lanes[lanes<real>] = {};
    for_groups(call, piece, [&](int64_t group) {
        const int64_t at = group * side, used = call.used_in(group), width = call.width_of_group(group);
        const int64_t place = sample * wires * call.columns() + at * lanes<real>;
        const auto load = [&] { load_payload(call, memory.rows, sample, at, width, is_loss(call.routing) ? unit<real> : real(1)); };
        const auto ended = [&] {
            if (!is_loss(call.routing)) return load_group<real>(memory.grads, routed_grad + place, call.columns(), width);
            for (int64_t k = 0; k < used; ++k) {
                const int64_t column = (at + k) * lanes<real>;
                const int64_t *ranks = call.ranks_of(sample) + column;
                if (wants_loss) block_loss<real>({memory.rows + k, side}, call.routing, ranks, call.width_of(column), loss_of_lanes);
                block_loss_gradient<real>({memory.rows + k, side}, {memory.grads + k, side}, call.routing, ranks, call.width_of(column));
            }
        };
        call.find_blocks(memory.on, sample, at, used);
        if (is_reversed(call.routing))
            route_group_both_ways<true>(w, weight_grad, memory, load, ended);
        else
            route_group_both_ways<false>(w, weight_grad, memory, load, ended);
        if (payload_grad) store_group<real>(memory.grads, payload_grad + place, call.columns(), width, 1);
    });
    return sum_of<double>(loss_of_lanes, lanes<real>);
}

// Calls work(first, count, memory) for all samples, at most `lanes` at a time, on the threads of a pool. Each thread has
// `bytes` of memory, and `bytes_per_sample` more for each of those samples.
template <class real, class Work>
Status parallel_samples(const Call<real> &call, int64_t work_per_sample, int64_t bytes, int64_t bytes_per_sample, ParallelFor pool, Work work) {
    const int64_t most = group_size<real>(lanes<real>, bytes_per_sample);
    return parallel_ranges(pool, call.batch, grain_of(work_per_sample), bytes + most * bytes_per_sample, [&](int64_t begin, int64_t end, const Memory &memory) {
        Status status = ok;
        for (int64_t first = begin; status == ok && first < end; first += most) status = work(first, end - first < most ? end - first : most, memory);
        return status;
    });
}

template <class real>
Status forward_samples(const Call<real> &call, real *values, real *routed, ParallelFor pool) {
    using Scratch = RoutingMemory<real>;
    constexpr int64_t per_sample = arrays * slots;
    const int64_t work = call.chunks() * call.mixes_per_chunk();
    return parallel_samples<real>(call, work, Scratch::bytes_forward, sizeof(real) * per_sample, pool, [&](int64_t first, int64_t count, const Memory &memory) {
        real *weights = memory.get<real>();
        const auto routing = Scratch::forward(weights + count * per_sample);
        const Status status = keys_forward(call, first, count, values + first * wires, weights, nullptr);
        for (int64_t b = 0; status == ok && b < count; ++b) {
            const real *keep = weights_at(weights + b * per_sample, slots).forward.keep;
            double loss = 0;
            for (int64_t piece = 0; piece < call.chunks(); ++piece) loss += route_piece(call, first + b, piece, keep, routed, routing);
            if (is_loss(call.routing)) routed[first + b] = real(loss);
        }
        return status;
    });
}

template <class real>
Status forward_pieces(const Call<real> &call, real *values, real *routed, ParallelFor pool) {
    using Scratch = RoutingMemory<real>;
    const int64_t per_sample = arrays * slots, chunks = call.chunks();
    const int64_t group = group_size<real>(call.batch, per_sample * sizeof(real));
    const Memory weight_memory(group * per_sample * sizeof(real)), loss_memory(group * chunks * sizeof(double));
    if (!weight_memory.start || !loss_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>();
    double *losses = loss_memory.get<double>();
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        Status status = keys_forward(call, first, count, values + first * wires, weights, pool);
        if (status != ok) return status;
        status = parallel(pool, count * chunks, grain_of(call.mixes_per_chunk()), Scratch::bytes_forward, [&](int64_t task, const Memory &memory) {
            const int64_t b = task / chunks;
            const real *keep = weights_at(weights + b * per_sample, slots).forward.keep;
            losses[task] = route_piece(call, first + b, task % chunks, keep, routed, Scratch::forward(memory.get<Vec<real>>()));
        });
        if (status != ok) return status;
        for (int64_t b = 0; is_loss(call.routing) && b < count; ++b) routed[first + b] = sum_of<real>(losses + b * chunks, chunks);
    }
    return ok;
}

// Checks a call, and writes the tables that its keys pass needs.
template <class real>
Status make_ready(const Call<real> &call) {
    const Status checked = call.check();
    return checked == ok && call.batch > 1 ? prepare_pieces() : checked;
}

// values: (batch, wires). routed: (batch, wires, columns), or (batch) losses, or null. kept: count_kept reals, or null.
template <class real>
Status forward(const Call<real> &call, real *values, real *routed, real *kept, ParallelFor pool) {
    const Status ready = make_ready(call);
    if (ready != ok) return ready;
    if (call.routing == none) return keys_forward<real>(call, 0, call.batch, values, nullptr, pool);
    if (!is_loss(call.routing)) expect_writes(routed, sizeof(real) * call.batch * wires * call.columns());
    if (routes_identity(call.routing)) return narrow_forward(call, values, routed, kept, pool);
    (void)kept;
    if (call.batch >= many_samples) return forward_samples(call, values, routed, pool);
    return forward_pieces(call, values, routed, pool);
}

template <class real>
void add_weights(real *to, const real *from) {
    for (int64_t c = 0; c < slots; ++c) to[c] += from[c];
}

// The gradients of a sample's weights are sums over its pieces of columns, added in order. A thread that begins with a
// sample's first piece adds the following ones to it. A thread that begins inside a sample leaves its pieces apart, to be
// added when all threads have ended.
template <class real>
struct PieceSums {
    // Where the sums of a piece begin at zero. `spare` is the thread's own memory.
    real *begin(int64_t task, int64_t first_task, real *spare) const {
        const bool is_apart = task - task % chunks < first_task;
        apart[task] = is_apart;
        real *sums = is_apart || task % chunks == 0 ? of(task) : spare;
        memset(sums, 0, sizeof(real) * slots);
        return sums;
    }
    void end(int64_t task, const real *sums) const {
        if (sums != of(task)) add(task, sums);
    }
    // Adds the pieces of a sample that lie apart.
    void finish(int64_t sample) const {
        for (int64_t task = sample * chunks + 1; task < (sample + 1) * chunks; ++task)
            if (apart[task]) add(task, of(task));
    }
    void add(int64_t task, const real *sums) const {
        add_weights(of(task - task % chunks), sums);
    }
    real *of(int64_t task) const { return weight_grads + task * slots; }
    real *weight_grads;
    bool *apart;
    int64_t chunks;
};

template <class real>
Status backward_samples(const Call<real> &call, const real *values_grad, const real *routed_grad, real *x_grad, real *steepness_grad,
                        real *payload_grad, real *losses, ParallelFor pool) {
    using Scratch = RoutingMemory<real>;
    constexpr int64_t per_sample = (arrays + 1) * slots;
    const int64_t work = 4 * call.chunks() * call.mixes_per_chunk();
    return parallel_samples<real>(call, work, Scratch::bytes_backward, sizeof(real) * per_sample, pool, [&](int64_t first, int64_t count, const Memory &memory) {
        real *weights = memory.get<real>(), *weight_grads = weights + count * arrays * slots;
        const auto routing = Scratch::backward(weights + count * per_sample);
        // x_grad takes the values, which are not needed
        const Status status = keys_forward(call, first, count, x_grad + first * wires, weights, nullptr);
        if (status != ok) return status;
        memset(weight_grads, 0, sizeof(real) * count * slots);
        for (int64_t b = 0; b < count; ++b) {
            const Weights<real> w = weights_at(weights + b * arrays * slots, slots);
            real *total = weight_grads + b * slots;
            double loss = 0;
            for (int64_t piece = 0; piece < call.chunks(); ++piece) {
                real *sums = piece ? routing.sums : total;
                if (piece) memset(sums, 0, sizeof(real) * slots);
                loss += route_piece_back(call, first + b, piece, w, routed_grad, payload_grad, losses, sums, routing);
                if (piece) add_weights(total, sums);
            }
            if (losses) losses[first + b] = real(loss);
        }
        return keys_backward<real>(call, first, count, values_grad, weights, weight_grads, slots, x_grad, steepness_grad, nullptr);
    });
}

template <class real>
Status backward_pieces(const Call<real> &call, const real *values_grad, const real *routed_grad, real *x_grad, real *steepness_grad,
                       real *payload_grad, real *losses, ParallelFor pool) {
    using Scratch = RoutingMemory<real>;
    const int64_t per_sample = arrays * slots, chunks = call.chunks();
    const int64_t sums = (chunks > 0 ? chunks : 1) * slots;
    const int64_t group = group_size<real>(call.batch, (per_sample + sums) * sizeof(real));
    const Memory weight_memory(group * per_sample * sizeof(real)), sum_memory(group * sums * sizeof(real));
    const Memory loss_memory(group * chunks * (sizeof(double) + sizeof(bool)));
    if (!weight_memory.start || !sum_memory.start || !loss_memory.start) return out_of_memory;
    real *weights = weight_memory.get<real>(), *weight_grads = sum_memory.get<real>();
    double *piece_losses = loss_memory.get<double>();
    const PieceSums<real> pieces = {weight_grads, reinterpret_cast<bool *>(piece_losses + group * chunks), chunks};
    for (int64_t first = 0; first < call.batch; first += group) {
        const int64_t count = call.batch - first < group ? call.batch - first : group;
        // x_grad takes the values, which are not needed
        Status status = keys_forward(call, first, count, x_grad + first * wires, weights, pool);
        if (status != ok) return status;
        status = parallel_ranges(pool, count * chunks, grain_of(4 * call.mixes_per_chunk()), Scratch::bytes_backward, [&](int64_t first_task, int64_t end_task, const Memory &memory) {
            const auto routing = Scratch::backward(memory.get<Vec<real>>());
            for (int64_t task = first_task; task < end_task; ++task) {
                const int64_t b = task / chunks;
                const Weights<real> w = weights_at(weights + b * per_sample, slots);
                real *weight_grad = pieces.begin(task, first_task, routing.sums);
                piece_losses[task] = route_piece_back(call, first + b, task % chunks, w, routed_grad, payload_grad, losses, weight_grad, routing);
                pieces.end(task, weight_grad);
            }
            return ok;
        });
        if (status != ok) return status;
        for (int64_t b = 0; losses && b < count; ++b) losses[first + b] = sum_of<real>(piece_losses + b * chunks, chunks);
        status = parallel(pool, count, grain_of(chunks * comparators), 0, [&](int64_t b, const Memory &) {
            if (!chunks) memset(weight_grads + b * sums, 0, sizeof(real) * slots);
            pieces.finish(b);
        });
        if (status == ok)
            status = keys_backward<real>(call, first, count, values_grad, weights, weight_grads, sums, x_grad, steepness_grad, pool);
        if (status != ok) return status;
    }
    return ok;
}

// values_grad, routed_grad: as the outputs of forward, or null for zero. x_grad: (batch, wires).
// steepness_grad: (batch), or null. payload_grad: as the payload, or null.
// A loss has no routed_grad. Each sample's loss goes to `losses`, (batch), and the gradients are its gradients.
// kept: what forward kept in a call with the same arguments, or null.
template <class real>
Status backward(const Call<real> &call, const real *values_grad, const real *routed_grad, real *x_grad,
                real *steepness_grad, real *payload_grad, real *losses, real *kept, ParallelFor pool) {
    const Status ready = make_ready(call);
    if (ready != ok) return ready;
    if (!routed_grad && !losses) return values_backward(call, values_grad, x_grad, steepness_grad, pool);
    if (routes_identity(call.routing)) return narrow_backward(call, values_grad, routed_grad, x_grad, steepness_grad, losses, kept, pool);
    (void)kept;
    if (call.batch >= many_samples) return backward_samples(call, values_grad, routed_grad, x_grad, steepness_grad, payload_grad, losses, pool);
    return backward_pieces(call, values_grad, routed_grad, x_grad, steepness_grad, payload_grad, losses, pool);
}

}  // namespace

// ------------------------------------------------------------------------------------ the C ABI

#define NSC_API extern "C" __attribute__((visibility("default")))

// What this kernel is. The runtime compares it with the manifest, so that a changed manifest cannot make a call
// misread its memory.
NSC_API const char *nsc_facts() { return "{\"abi\": 9, \"kind\": \"relaxed\", \"name\": \"bitonic_4\", \"network\": \"8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a\", \"proof\": \"proved\", \"n\": 4, \"size\": 6, \"depth\": 3, \"selection\": null, \"outputs\": null, \"sigmoid\": \"logistic\", \"art_lambda\": 0.25, \"error_free\": false, \"reals\": {\"float32\": [\"float32\", \"bfloat16\", \"float16\"]}, \"network.json\": \"e36af305ca221a49831e525e84b2d0b946b7d99fe6e21128b5a0195e5e503e65\", \"proof.json\": \"f7d0e33dcfeeabdf085697252fcd479f178e69c215cd07dad070d75701da6e21\"}"; }

// Must be called before anything below; does nothing from the second time on.
NSC_API int32_t nsc_prepare() { return prepare(); }

// float32
NSC_API int64_t nsc_kept_f32(int32_t routing, int64_t batch) {
    return count_kept<float>(static_cast<Routing>(routing), batch);
}

NSC_API int32_t nsc_forward_f32(
    int32_t routing, int64_t batch, const float *x, const float *steepness, int64_t steepness_stride,
    const void *payload, int64_t payload_stride, int64_t payload_columns, float *values, float *routed,
    float *kept, void *pool) {
    return forward<float>({static_cast<Routing>(routing), batch, x, steepness, steepness_stride, payload,
                           payload_stride, payload_columns},
                          values, routed, kept, reinterpret_cast<ParallelFor>(pool));
}

NSC_API int32_t nsc_backward_f32(
    int32_t routing, int64_t batch, const float *x, const float *steepness, int64_t steepness_stride,
    const void *payload, int64_t payload_stride, int64_t payload_columns, const float *values_grad,
    const float *routed_grad, float *x_grad, float *steepness_grad, float *payload_grad,
    float *losses, float *kept, void *pool) {
    return backward<float>({static_cast<Routing>(routing), batch, x, steepness, steepness_stride, payload,
                            payload_stride, payload_columns},
                           values_grad, routed_grad, x_grad, steepness_grad, payload_grad, losses, kept,
                           reinterpret_cast<ParallelFor>(pool));
}
