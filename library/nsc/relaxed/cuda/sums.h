// Sums of the gradients of weights over the chunks of a sample's columns.
#pragma once

#include <nsc/relaxed/cuda/final_merge.h>

namespace nsc::cuda {

// Adds the parts of the gradients of weights, `chunks` per sample, in order; the sums take the
// place of the first parts. A thread adds the parts of one slot. With products of a merge, each
// thread behind these adds the products of one of the merge's comparators, which have no parts.
template <class Plan, class real>
__device__ inline void sum_chunks(int32_t batch, int32_t chunks, real *weight_grads,
                                  const real *weights, MergeProducts<real> products) {
    constexpr int32_t at_a_time = 8;  // loads in flight
    constexpr int64_t per_sample = Plan::slots > 0 ? Plan::slots : 1;
    const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x,
                  of_merge = number - batch * Plan::slots;
    if constexpr (Plan::merge_layers > 0) {
        if (products.columns && of_merge >= 0 && of_merge < batch * merge_comparators<Plan>)
            sum_merge<Plan>(of_merge, chunks, weights, products, weight_grads);
        if (products.columns && number % per_sample >= Plan::front_slots) return;
    }
    if (of_merge >= 0) return;
    real *parts = weight_grads + number / per_sample * chunks * Plan::slots + number % per_sample,
         sum = parts[0];
    for (int32_t first = 1; first < chunks; first += at_a_time) {
        real next[at_a_time];
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k)
            next[k] = first + k < chunks ? parts[(first + k) * Plan::slots] : real(0);
        NSC_UNROLL
        for (int32_t k = 0; k < at_a_time; ++k) sum += next[k];
    }
    parts[0] = sum;
}

}  // namespace nsc::cuda
