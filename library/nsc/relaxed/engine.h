// The engine: a relaxation that runs any network, from tables that it is handed.
#pragma once

#include <nsc/relaxed/kernel.h>

namespace nsc {

// Returns a plan of a network, whose tables must stay where they are; null if there is no memory
// for it.
template <class Relaxation>
void *open_plan(const AnyNetwork *network) {
    using P = Plan<AnyNetwork, Relaxation>;
    P *plan = static_cast<P *>(calloc(1, sizeof(P)));
    if (!plan) return nullptr;
    static_cast<AnyNetwork &>(*plan) = *network;
    if (plan->prepare() == ok) return plan;
    free(plan);
    return nullptr;
}

}  // namespace nsc

// Defines the functions of a relaxation for an arithmetic type, whose names end in the suffix. They
// are a kernel's functions with a plan in front.
#define NSC_ENGINE(Relaxation, real, suffix)                                                       \
    NSC_API void *nsc_open(const nsc::AnyNetwork *network) {                                       \
        return nsc::open_plan<Relaxation>(network);                                                \
    }                                                                                              \
    NSC_FUNCTIONS_OF((*static_cast<nsc::Plan<nsc::AnyNetwork, Relaxation> *>(handle)), NSC_HANDLE, \
                     real, suffix)
#define NSC_HANDLE void *handle,
