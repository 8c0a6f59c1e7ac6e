// Depth-first search: finds a wrong input exactly where one of all inputs is wrong.
#include "expect.h"

#include <nsc/verify/depth_first.h>
#include <stdlib.h>

using namespace nsc;

static constexpr int32_t wires = 6;

// Whether an input leaves each ranked wire with its rank.
static bool is_right(const Question &question, uint64_t input) {
    const int32_t zeros = wires - __builtin_popcountll(input);
    for (int64_t k = 0; k < question.size; ++k) {
        const Comparator ends = question.comparators[k];
        const uint64_t low = input >> ends.lo & 1, high = input >> ends.hi & 1;
        input &= ~(bit(ends.lo) | bit(ends.hi));
        input |= (low & high) << ends.lo | (low | high) << ends.hi;
    }
    for (int64_t k = 0; k < question.ranked; ++k)
        if ((input >> question.ranks[k].wire & 1) != (zeros <= question.ranks[k].rank))
            return false;
    return true;
}

static bool is_right(const Question &question) {
    for (uint64_t input = 0; input < uint64_t(1) << wires; ++input)
        if (!is_right(question, input)) return false;
    return true;
}

static DepthFirst *search_of(const Question &question) {
    DepthFirst *search = static_cast<DepthFirst *>(calloc(1, sizeof(DepthFirst)));
    search->begin(question);
    return search;
}

static uint32_t state = 1;
static int32_t drawn(int32_t below) {
    state = state * 1664525u + 1013904223u;
    return int32_t((state >> 8) % uint32_t(below));
}

TEST(a_wrong_input_is_found_where_there_is_one) {
    int32_t right = 0, wrong = 0;
    for (int32_t round = 0; round < 300; ++round) {
        // Odd-even transposition, of which some comparators are left out.
        Comparator comparators[wires * wires];
        int64_t size = 0;
        const int32_t left_out = drawn(4);
        for (int32_t layer = 0; layer < wires; ++layer)
            for (int32_t lo = layer % 2; lo + 1 < wires; lo += 2)
                if (drawn(40) >= left_out) comparators[size++] = {lo, lo + 1};
        RankedWire ranks[wires];
        int64_t ranked = 0;
        for (int32_t wire = 0; wire < wires; ++wire)
            if (drawn(2)) ranks[ranked++] = {wire, wire};
        const Question question{wires, size, ranked, comparators, ranks};
        DepthFirst *search = search_of(question);
        const Found found = search->look(1 << 20);
        EXPECT(found == (is_right(question) ? Found::nothing : Found::wrong_input));
        if (found == Found::wrong_input) EXPECT(!is_right(question, search->wrong_input()));
        (found == Found::nothing ? right : wrong) += 1;
        free(search);
    }
    EXPECT(right > 50 && wrong > 50);
}

TEST(a_search_goes_on_where_it_stopped) {
    const Comparator comparators[] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2}};
    const RankedWire ranks[] = {{0, 0}, {1, 1}, {2, 2}, {3, 3}};
    DepthFirst *search = search_of({4, 5, 4, comparators, ranks});
    int32_t steps = 0;
    while (search->look(1) == Found::nothing_yet) ++steps;
    EXPECT(steps > 3);
    EXPECT(search->look(1) == Found::nothing);
    free(search);
}

TEST(the_functions_of_a_library) {
    const Comparator comparators[] = {{0, 1}};
    const RankedWire ranks[] = {{0, 0}, {1, 1}, {2, 2}};
    const Question question{3, 1, 3, comparators, ranks};
    EXPECT(nsc_bytes() == sizeof(DepthFirst));
    DepthFirst *search = static_cast<DepthFirst *>(calloc(1, size_t(nsc_bytes())));
    nsc_begin(search, &question);
    EXPECT(nsc_look(search, 100) == Found::wrong_input);
    const uint64_t wrong = nsc_wrong_input(search);
    EXPECT(__builtin_popcountll(wrong) < 3 && !(wrong >> 2));
    free(search);
}
