// A depth-first search for a 0-1 input that comes out of a network wrong.
#pragma once

#include <nsc/attributes.h>
#include <stdint.h>

namespace nsc {

struct Comparator {
    int32_t lo, hi;
};

// A wire and the rank that it must carry, 0 the smallest.
struct RankedWire {
    int32_t wire, rank;
};

struct Question {
    int64_t wires, size, ranked;
    const Comparator *comparators;
    const RankedWire *ranks;
};

enum class Found : int32_t { nothing_yet, nothing, wrong_input };

// The wires that hold 0 and those that hold 1, as bits. Each other wire is open: it holds 0 or 1,
// whatever the others hold.
struct Wires {
    uint64_t zeros, ones;

    bool are_open(uint64_t some) const { return !((zeros | ones) & some); }
    bool operator==(Wires other) const { return zeros == other.zeros && ones == other.ones; }
};

inline uint64_t bit(int32_t wire) { return uint64_t(1) << wire; }

inline bool are_open(Wires wires, Comparator ends) {
    return wires.are_open(bit(ends.lo) | bit(ends.hi));
}

// Behind a comparator of which at most one wire is open.
inline Wires compared(Wires wires, Comparator ends) {
    const uint64_t others = ~(bit(ends.lo) | bit(ends.hi));
    const uint64_t zero_lo = wires.zeros >> ends.lo & 1, zero_hi = wires.zeros >> ends.hi & 1;
    const uint64_t one_lo = wires.ones >> ends.lo & 1, one_hi = wires.ones >> ends.hi & 1;
    return {
        (wires.zeros & others) | (zero_lo | zero_hi) << ends.lo | (zero_lo & zero_hi) << ends.hi,
        (wires.ones & others) | (one_lo & one_hi) << ends.lo | (one_lo | one_hi) << ends.hi};
}

// The two cases of a comparator of open wires: the minimum is 0 and the maximum open, or both
// are 1.
inline Wires in_case(Wires wires, Comparator ends, bool are_ones) {
    return are_ones ? Wires{wires.zeros, wires.ones | bit(ends.lo) | bit(ends.hi)}
                    : Wires{wires.zeros | bit(ends.lo), wires.ones};
}

// Runs a network on open inputs, case by case. A case decides one wire or two, so n wires have at
// most Fibonacci(n + 2) cases. Source: Kuroda, A proposal of Gap Decrease Sorting Network,
// Transactions of the Information Processing Society of Japan 38 (1997), section 3.2.
//
// Different cases often lead to the same wires in front of the same comparator. A table remembers
// those that are finished; a new one takes the place of an old one.
//
// All zeros before `begin`.
struct DepthFirst {
    static constexpr int32_t most_wires = 64;

    void begin(const Question &asked) {
        question = asked;
        // Outputs are monotone in the inputs. So a wire of rank r is right for all inputs if it is
        // right for those of r zeros and of r + 1.
        most_zeros = 0, most_ones = 0;
        for (int64_t k = 0; k < asked.ranked; ++k) {
            const int32_t rank = asked.ranks[k].rank, ones = int32_t(asked.wires) - rank;
            most_zeros = most_zeros > rank + 1 ? most_zeros : rank + 1;
            most_ones = most_ones > ones ? most_ones : ones;
        }
    }

    // Looks at so many more cases.
    Found look(int64_t cases) {
        for (; cases > 0; --cases) {
            run();
            if (at < question.size && is_needed() && !is_finished())
                choices[depth++] = {at, now, false};
            else if (at == question.size && wrong_rank())
                return Found::wrong_input;
            else if (!leave())
                return Found::nothing;
            const Choice &last = choices[depth - 1];
            now = in_case(last.before, question.comparators[last.at], last.are_ones);
            at = last.at + 1;
        }
        return Found::nothing_yet;
    }

    // The input that `look` found, wire w as bit w.
    uint64_t wrong_input() const {
        // The input whose value an open wire holds.
        int32_t source[most_wires];
        for (int32_t wire = 0; wire < question.wires; ++wire) source[wire] = wire;
        uint64_t input = 0;
        Wires wires{0, 0};
        const Choice *choice = choices;
        for (int64_t k = 0; k < question.size; ++k) {
            const Comparator ends = question.comparators[k];
            if (are_open(wires, ends)) {
                if (choice->are_ones) input |= bit(source[ends.lo]) | bit(source[ends.hi]);
                wires = in_case(wires, ends, choice++->are_ones);
                continue;
            }
            const Wires next = compared(wires, ends);
            if (wires.are_open(bit(ends.lo)) != next.are_open(bit(ends.lo))) {
                const int32_t moved = source[ends.lo];
                source[ends.lo] = source[ends.hi], source[ends.hi] = moved;
            }
            wires = next;
        }
        // The wrong wire shows it with as many ones as there can be, or with as many zeros; an open
        // one differs from all other open wires.
        const RankedWire wrong = *wrong_rank();
        const uint64_t wire = bit(wrong.wire);
        const bool with_ones =
            (now.zeros & wire) || (wires.are_open(wire) && fewest_zeros() < wrong.rank);
        for (int32_t other = 0; other < question.wires; ++other)
            if (wires.are_open(bit(other)) && with_ones != (other == wrong.wire))
                input |= bit(source[other]);
        return input;
    }

private:
    // A comparator of open wires, and the case that is looked at.
    struct Choice {
        int64_t at;
        Wires before;
        bool are_ones;
    };

    // Wires in front of a comparator from where no input comes out wrong. The comparator counts
    // from 1.
    struct Finished {
        Wires wires;
        int64_t at;
    };

    static constexpr int32_t log_places = 20;

    int32_t fewest_zeros() const { return __builtin_popcountll(now.zeros); }
    int32_t fewest_ones() const { return __builtin_popcountll(now.ones); }
    bool is_needed() const { return fewest_zeros() <= most_zeros && fewest_ones() <= most_ones; }

    // Runs to the next comparator of open wires, or to the end.
    void run() {
        for (; at < question.size && !nsc::are_open(now, question.comparators[at]); ++at)
            now = compared(now, question.comparators[at]);
    }

    Finished &place() {
        uint64_t key = now.zeros * 0x9E3779B97F4A7C15;
        key ^= (now.ones + uint64_t(at) * 0xD6E8FEB86659FD93) * 0xC2B2AE3D27D4EB4F;
        key = (key ^ key >> 29) * 0xBF58476D1CE4E5B9;
        return finished[key >> (64 - log_places)];
    }

    bool is_finished() {
        const Finished &kept = place();
        return kept.at == at + 1 && kept.wires == now;
    }

    // Goes back to the last choice with another case, and takes that; returns whether there is one.
    bool leave() {
        for (; depth > 0; --depth) {
            Choice &last = choices[depth - 1];
            if (!last.are_ones) return last.are_ones = true;
            at = last.at, now = last.before;
            place() = {now, at + 1};
        }
        return false;
    }

    // The first wire that does not carry its rank for some values of the open wires; none if all
    // do.
    const RankedWire *wrong_rank() const {
        const int32_t fewest = fewest_zeros(), most = int32_t(question.wires) - fewest_ones();
        for (int64_t k = 0; k < question.ranked; ++k) {
            const RankedWire &wanted = question.ranks[k];
            const uint64_t wire = bit(wanted.wire);
            // An open wire can be right only if no other wire is open.
            const bool is_right = now.zeros & wire ? fewest > wanted.rank
                                  : now.ones & wire
                                      ? most <= wanted.rank
                                      : fewest == wanted.rank && most == wanted.rank + 1;
            if (!is_right) return &wanted;
        }
        return nullptr;
    }

    Question question;
    int32_t most_zeros, most_ones;
    // The wires in front of comparator `at`, and the choices that led there.
    int64_t at;
    Wires now;
    int32_t depth;
    Choice choices[most_wires];
    Finished finished[int64_t(1) << log_places];
};

}  // namespace nsc

// The memory that a search takes; zeros before `nsc_begin`.
NSC_API int64_t nsc_bytes() { return sizeof(nsc::DepthFirst); }

// What the question points to must outlive the search.
NSC_API void nsc_begin(nsc::DepthFirst *search, const nsc::Question *question) {
    search->begin(*question);
}

NSC_API nsc::Found nsc_look(nsc::DepthFirst *search, int64_t cases) { return search->look(cases); }

NSC_API uint64_t nsc_wrong_input(const nsc::DepthFirst *search) { return search->wrong_input(); }
