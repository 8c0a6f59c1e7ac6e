// Groups of columns, between memory and registers.
#pragma once

#include <nsc/relaxed/call.h>

namespace nsc {

// A row's part in a group is a small part of a long row, too short for the processor to foresee the
// next row's.
constexpr int64_t rows_ahead = 24;

template <bool writes, class P, class real>
NSC_STEP void expect_row(const P &plan, const real *from, int64_t row, int64_t columns,
                         int64_t width) {
    if (row + rows_ahead >= plan.wires) return;
    for (int64_t k = 0; k < width; k += 64 / int64_t(sizeof(real)))
        __builtin_prefetch(from + (row + rows_ahead) * columns + k, writes);
}

// Calls visit(width) for the columns of a group, as a constant if they fill it.
template <class real, class Visit>
NSC_STEP void with_width(int64_t width, Visit visit) {
    if (width == group_blocks * lanes<real>)
        visit(group_blocks * lanes<real>);
    else
        visit(width);
}

// Calls visit(k, count) for each register k of a row, of which `count` values are of `width`
// columns.
template <class real, class Visit>
NSC_STEP void for_registers(int64_t width, Visit visit) {
    NSC_UNROLL
    for (int64_t k = 0; k < group_blocks; ++k) {
        const int64_t left = width - k * lanes<real>;
        if (left > 0) visit(k, left < lanes<real> ? left : lanes<real>);
    }
}

// Between the rows of a group, of `width` columns, and rows of `columns` values each.
template <class real, class P>
void store_group(const P &plan, const Vec<real> *group, real *to, int64_t columns,
                 int64_t columns_of_group, real scale) {
    with_width<real>(columns_of_group, [=, &plan](int64_t width) NSC_INLINE {
        for (int64_t row = 0; row < plan.wires; ++row) {
            expect_row<true>(plan, to, row, columns, width);
            for_registers<real>(width, [=](int64_t k, int64_t count) NSC_INLINE {
                store(to + row * columns + k * lanes<real>, group[row * group_blocks + k] * scale,
                      count);
            });
        }
    });
}

template <class real, class P>
void load_group(const P &plan, Vec<real> *group, const real *from, int64_t columns,
                int64_t columns_of_group) {
    with_width<real>(columns_of_group, [=, &plan](int64_t width) NSC_INLINE {
        for (int64_t row = 0; row < plan.wires; ++row) {
            expect_row<false>(plan, from, row, columns, width);
            for_registers<real>(width, [=](int64_t k, int64_t count) NSC_INLINE {
                group[row * group_blocks + k] = load(from + row * columns + k * lanes<real>, count);
            });
        }
    });
}

// Fills a group with columns of the payload of a sample, from block `first` on. The ones of a unit
// matrix are `one`.
template <class P, class real>
void load_payload(const Call<P, real> &call, Vec<real> *group, int64_t sample, int64_t first,
                  int64_t width, real one) {
    const int64_t column = first * lanes<real>;
    if (has_columns(call.routing)) {
        const real *payload =
            static_cast<const real *>(call.payload) + sample * call.payload_stride;
        return load_group<real>(call.plan, group, payload + column, call.payload_columns, width);
    }
    memset(group, 0, sizeof(Vec<real>) * group_blocks * call.plan.wires);
    for (int64_t k = 0; k < width; ++k) {
        const int64_t row =
            has_ranks(call.routing) ? call.ranks_of(sample)[column + k] : column + k;
        group[row * group_blocks + k / lanes<real>][k % lanes<real>] = one;
    }
}

}  // namespace nsc
