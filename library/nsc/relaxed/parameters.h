// The parameters of the C functions of kernels; nsc/contract/interface.py declares them in Python.
#pragma once

#include <stdint.h>

// The call: a routing of samples x with a steepness each, and what is routed.
#define NSC_CALL_PARAMETERS(real)                                              \
    int32_t routing, int64_t batch, const real *x, const real *steepness,      \
        int64_t steepness_stride, const void *payload, int64_t payload_stride, \
        int64_t payload_columns

#define NSC_FORWARD_PARAMETERS(real) \
    NSC_CALL_PARAMETERS(real), real *values, real *routed, void *pool

#define NSC_BACKWARD_PARAMETERS(real)                                                          \
    NSC_CALL_PARAMETERS(real), const real *values_grad, const real *routed_grad, real *x_grad, \
        real *steepness_grad, real *payload_grad, real *losses, void *pool
