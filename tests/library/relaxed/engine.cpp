// The engine: any network from tables.
#include "calls.h"

#include <nsc/relaxed/engine.h>

NSC_ENGINE(Logistic, double, f64)

using namespace nsc;

template <class Network>
static void expect_results(Routing routing) {
    const AnyNetwork network = as_variables(Network());
    void *handle = nsc_open(&network);
    EXPECT(handle != nullptr);
    constexpr int wires = Network::wires;
    Operands<Network, double> of(routing, 3);
    const bool loss = is_loss(routing);
    const Memory memory(nsc_kept_f64(handle, routing, 3) * int64_t(sizeof(double)));
    double *const kept = network.narrow_count ? memory.get<double>() : nullptr;
    EXPECT((nsc_kept_f64(handle, routing, 3) > 0) == (kept != nullptr));
    double values[3 * wires], found[3 * wires * wires], x_grad[3 * wires], steepness_grad[3],
        losses[3];
    EXPECT(nsc_forward_f64(handle, routing, 3, of.x, of.steepness, 1, of.ranks, wires, wires,
                           values, found, kept, nullptr) == ok);
    of.expect_forward(values, found);
    EXPECT(nsc_backward_f64(handle, routing, 3, of.x, of.steepness, 1, of.ranks, wires, wires,
                            of.values_grad, loss ? nullptr : of.routed_grad, x_grad, steepness_grad,
                            nullptr, loss ? losses : nullptr, kept, nullptr) == ok);
    of.expect_backward(x_grad, steepness_grad, nullptr, loss ? losses : nullptr);
}

TEST(a_network_from_tables_gives_what_its_definition_says) {
    for (Routing routing : {permutation, binary_cross_entropy_routing}) {
        expect_results<Bitonic>(routing);
        expect_results<Wide<Bitonic>>(routing);
        expect_results<Braid>(routing);
    }
}

TEST(plans_of_one_engine_are_apart) {
    const AnyNetwork first = as_variables(Bitonic()), second = as_variables(Braid());
    void *a = nsc_open(&first), *b = nsc_open(&second), *again = nsc_open(&first);
    EXPECT(a != b && a != again);
    using P = Plan<AnyNetwork, Logistic>;
    EXPECT(static_cast<P *>(a)->wires == 4 && static_cast<P *>(b)->wires == 5);
    EXPECT(static_cast<P *>(a)->in_layers != static_cast<P *>(again)->in_layers);
}

TEST(a_network_without_memory_for_its_plan_is_refused) {
    AnyNetwork network = as_variables(Bitonic());
    network.comparators = int64_t(1) << 58;
    EXPECT(nsc_open(&network) == nullptr);
}
