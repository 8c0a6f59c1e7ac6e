// Paths through the last four layers of a merge.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/block_paths.h>

using namespace nsc;

// Weights of a block, by layer and comparator; layers are 8 apart.
template <class real>
struct Block {
    Block() {
        for (int64_t i = 0; i < 32; ++i) keep[i] = real(number(i) + 1) / 2, swap[i] = 1 - keep[i];
    }
    // The weight of the paths from a wire to a rank, and of those through one comparator.
    double path(int64_t rank, int64_t wire, int64_t through = -1) const {
        double weight = 1;
        bool is_through = through < 0;
        int64_t at = wire;
        for (int64_t layer = 0; layer < 4; ++layer) {
            const int64_t d = 8 >> layer, to = (at & ~d) | (rank & d);
            const int64_t comparator = 8 * layer + at / (2 * d) * d + at % d;
            const double sign = through == comparator && to != at ? -1 : 1;
            if (through == comparator)
                is_through = true, weight *= sign;
            else
                weight *= to == at ? keep[comparator] : swap[comparator];
            at = to;
        }
        return is_through ? weight : 0;
    }
    real keep[32], swap[32];
};

template <class real>
static void test_paths() {
    using Paths = BlockPaths<real>;
    const Block<real> block;
    const Paths paths(block.keep, block.swap, 8);
    typename Paths::Row rows[16], grads[16], grad;
    paths.each_rank(typename Paths::Row{} + 1,
                    [&](int sub, const typename Paths::Row &row) { rows[sub] = row; });
    for (int rank = 0; rank < 16; ++rank)
        for (int wire = 0; wire < 16; ++wire) {
            EXPECT_NEAR(rows[rank][wire], block.path(rank, wire), 1e-6);
            grads[rank][wire] = real(number(16 * rank + wire));
        }
    real weight_grads[32];
    paths.back(typename Paths::Row{} + 1, grads, grad, weight_grads, 8);
    // The derivative by a weight that keeps, as the one that swaps is what it lacks to 1.
    for (int64_t comparator = 0; comparator < 32; ++comparator) {
        double expected = 0;
        for (int rank = 0; rank < 16; ++rank)
            for (int wire = 0; wire < 16; ++wire)
                expected += grads[rank][wire] * block.path(rank, wire, comparator);
        EXPECT_NEAR(weight_grads[comparator], expected, 1e-5);
    }
    for (int wire = 0; wire < 16; ++wire) {
        double expected = 0;
        for (int rank = 0; rank < 16; ++rank)
            expected += grads[rank][wire] * block.path(rank, wire);
        EXPECT_NEAR(grad[wire], expected, 1e-5);
    }
}

TEST(rows_are_the_weights_of_paths_and_gradients_their_derivatives) {
    test_paths<float>();
    test_paths<double>();
}
