// Spans: samples in rows, and side by side.
#include "../expect.h"

#include <nsc/exact/spans.h>

using namespace nsc;

TEST(samples_lie_in_rows_or_side_by_side) {
    int32_t rows[] = {1, 2, 3, 4, 5, 6}, copied[6] = {}, turned[6] = {};
    const Span<int32_t> in_rows = dense<true>(rows, 2, 3), in_columns = dense<false>(rows, 2, 3);
    EXPECT(in_rows.offset(2, 1) == 5 && in_columns.offset(2, 1) == 5);
    EXPECT(in_rows.offset(1, 0) == 1 && in_columns.offset(1, 0) == 2);
    copy_samples<true, int32_t>(in_rows, dense<true>(copied, 2, 3), 1, 3);
    EXPECT(copied[0] == 1 && copied[2] == 3 && copied[3] == 0);
    copy_samples<false, int32_t>(in_columns, dense<false>(turned, 2, 3), 1, 3);
    EXPECT(turned[0] == 1 && turned[1] == 0 && turned[4] == 5);
}
