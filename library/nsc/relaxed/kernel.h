// The C functions of a kernel: a network and its relaxation, run by this library.
//
// A relaxed comparator (lo, hi) is a 2x2 mix with the weights keep = f(v) and swap = f(-v) = 1 -
// f(v) of v = steepness * phi(x[hi] - x[lo]), each from its own tail:
//
//     y[lo] = keep x[lo] + swap x[hi]          y[hi] = keep x[hi] + swap x[lo]
//
// so the network is a product P of these mixes and y = P x. There are two passes:
//
// - keys: x to the weights of all comparators and the sorted values y;
// - routing: the same mixes applied to the rows of a payload, P V in the order of the layers, P^T U
//   in the reverse order. P itself is the payload V = I, a block of columns at a time.
//
// The routing runs butterflies: comparators of two layers on four wires. The butterflies of a
// codelet come one behind the other, while their rows are in the cache. A gradient G of the routed
// payload goes back through the same mixes, and the gradient of a weight is the sum over columns of
// (G[lo] - G[hi]) (V[lo] - V[hi]). The backward routing runs forward once more and keeps the
// differences of V. One reverse keys pass then turns gradients of weights and values into gradients
// of x and of the steepness. P of a narrow network, and losses of it, take another way through the
// routing (narrow_pass.h).
//
// Results do not depend on the number of threads: only the shapes decide how sums are cut, and the
// parts are added in a fixed order.
#pragma once

#include <nsc/attributes.h>
#include <nsc/relaxed/parameters.h>
#include <nsc/relaxed/routing_pass.h>

namespace nsc {

template <class P, class real>
Call<P, real> call_of(P &plan, NSC_CALL_PARAMETERS(real)) {
    Call<P, real> call = {plan,           static_cast<Routing>(routing),
                          batch,          x,
                          steepness,      steepness_stride,
                          payload,        payload_stride,
                          payload_columns};
    call.some_factored = factors_some(call);
    return call;
}

}  // namespace nsc

// Defines the functions for an arithmetic type, whose names end in the suffix. `first` is their
// first parameter with a comma, if they need one to find the plan.
#define NSC_FUNCTIONS_OF(plan, first, real, suffix)                                            \
    NSC_API int32_t nsc_forward_##suffix(first NSC_FORWARD_PARAMETERS(real)) {                 \
        auto &run = plan;                                                                      \
        return nsc::forward(run,                                                               \
                            nsc::call_of(run, routing, batch, x, steepness, steepness_stride,  \
                                         payload, payload_stride, payload_columns),            \
                            values, routed, reinterpret_cast<nsc::ParallelFor>(pool));         \
    }                                                                                          \
    NSC_API int32_t nsc_backward_##suffix(first NSC_BACKWARD_PARAMETERS(real)) {               \
        auto &run = plan;                                                                      \
        return nsc::backward(run,                                                              \
                             nsc::call_of(run, routing, batch, x, steepness, steepness_stride, \
                                          payload, payload_stride, payload_columns),           \
                             values_grad, routed_grad, x_grad, steepness_grad, payload_grad,   \
                             losses, reinterpret_cast<nsc::ParallelFor>(pool));                \
    }

// Defines the functions of a plan that is known, and nsc_prepare(), which must be called before any
// of them. From the second time on it does nothing.
#define NSC_KERNEL(plan) \
    NSC_API int32_t nsc_prepare() { return plan.prepare(); }
#define NSC_KERNEL_OF(plan, real, suffix) NSC_FUNCTIONS_OF(plan, , real, suffix)
