// Targets: what a loss compares the columns of P with, in C++ and in CUDA.
#pragma once

#include <nsc/attributes.h>
#include <nsc/numbers.h>

namespace nsc {

// The forms of a target, in the order of nsc.contract.routings.Form. Numbers per sample:
//
//     of_ranks       wires int64: the rank of each item, or `ignored`. The items that count, count
//                    the same.
//     of_intervals   3 x wires reals: of each item its first rank, its last, and what it counts.
//     of_shares      (wires + 1) x wires reals: of each rank and item, what the item has of the
//                    rank; then what each item counts.
enum Form { of_ranks, of_intervals, of_shares };

// The rank of an item that does not count.
constexpr int64_t ignored = -100;

NSC_FUNCTION int64_t numbers_of(Form form, int64_t wires) {
    return form == of_ranks ? wires : form == of_intervals ? 3 * wires : (wires + 1) * wires;
}

// The truth of a column: its item has one of the ranks first ... last, each as likely as the
// others. `weight` is what the item counts in the loss of its sample.
template <class real>
struct Truth {
    int32_t first, last;
    Log<real> weight;
    NSC_FUNCTION bool is_in(int64_t row) const { return first <= row && row <= last; }
    // The item's share of its own ranks, and of any rank.
    NSC_FUNCTION Log<real> part() const { return 1 / Log<real>(last - first + 1); }
    NSC_FUNCTION Log<real> share(int64_t row) const { return is_in(row) ? part() : 0; }
};

// Whether a number is one of a target of shares, or which of a register are.
template <class Number>
NSC_FUNCTION auto is_share(Number number) {
    return (0 <= number) & (number <= 1);
}

// The target of a sample. of_ranks: `weight` is 1 / the number of items that count.
template <class real>
struct Target {
    Form form;
    const void *start;
    int64_t wires;
    Log<real> weight;

    NSC_FUNCTION const int64_t *ranks() const { return static_cast<const int64_t *>(start); }
    NSC_FUNCTION const real *reals() const { return static_cast<const real *>(start); }
    // A number of a target of reals; of shares, what the item of a column has of the rank `row`.
    NSC_FUNCTION real share(int64_t row, int64_t column) const {
        return reals()[row * wires + column];
    }
    // The truth of a column; of shares, its weight alone.
    NSC_FUNCTION Truth<real> truth(int64_t column) const {
        if (form == of_shares) return {0, 0, Log<real>(share(wires, column))};
        if (form == of_ranks) {
            const int64_t rank = ranks()[column];
            if (rank == ignored) return {0, 0, 0};
            return {int32_t(rank), int32_t(rank), weight};
        }
        return {int32_t(share(0, column)), int32_t(share(1, column)), Log<real>(share(2, column))};
    }
    // Whether a column counts, and whether one of some does.
    NSC_FUNCTION bool counts(int64_t column) const {
        return form == of_ranks ? ranks()[column] != ignored
                                : share(form == of_shares ? wires : 2, column) != 0;
    }
    NSC_FUNCTION bool counts(int64_t first, int64_t end) const {
        bool any = false;
        for (int64_t c = first; c < end; ++c) any |= counts(c);
        return any;
    }
    // Whether a column may have its truth. Ranks may still come twice, and numbers be no shares.
    NSC_FUNCTION bool is_valid(int64_t column) const {
        if (form == of_ranks) {
            const int64_t rank = ranks()[column];
            return rank == ignored || (0 <= rank && rank < wires);
        }
        const real counted = share(form == of_shares ? wires : 2, column);
        const bool is_weight = 0 <= counted && counted - counted == 0;  // finite
        if (form == of_shares) return is_weight;
        const real first = share(0, column), last = share(1, column);
        return is_weight && 0 <= first && first <= last && last < real(wires) &&
               first == real(int32_t(first)) && last == real(int32_t(last));
    }
};

}  // namespace nsc
