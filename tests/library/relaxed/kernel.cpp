// Kernels: the C functions of a network.
#include "calls.h"

#include <nsc/relaxed/kernel.h>
#include <nsc/relaxed/parameters.h>

static nsc::Plan<Bitonic, Logistic> plan;

NSC_KERNEL(plan)
NSC_KERNEL_OF(plan, double, f64)

using namespace nsc;

TEST(operands_come_in_their_order) {
    const double x[] = {1, 2}, steepness[] = {2};
    const auto call = call_of(plan, 2, 3, x, steepness, 4, x + 1, 5, 6);
    EXPECT(&call.plan == &plan && call.routing == route && call.batch == 3 && call.x == x);
    EXPECT(call.steepness == steepness && call.steepness_stride == 4 && call.payload == x + 1);
    EXPECT(call.payload_stride == 5 && call.payload_columns == 6);
}

TEST(functions_take_their_parameters) {
    int32_t (*forward)(NSC_FORWARD_PARAMETERS(double)) = nsc_forward_f64;
    int32_t (*backward)(NSC_BACKWARD_PARAMETERS(double)) = nsc_backward_f64;
    EXPECT(forward && backward);
}

TEST(functions_give_values_results_and_gradients) {
    EXPECT(nsc_prepare() == ok);
    Operands<Bitonic, double> of(route, 3, 40);
    double values[12], routed[480], x_grad[12], steepness_grad[3], payload_grad[480];
    void *pool = reinterpret_cast<void *>(last_first);
    EXPECT(nsc_forward_f64(route, 3, of.x, of.steepness, 1, of.payload, 160, 40, values, routed,
                           nullptr, pool) == ok);
    of.expect_forward(values, routed);
    EXPECT(nsc_backward_f64(route, 3, of.x, of.steepness, 1, of.payload, 160, 40, of.values_grad,
                            of.routed_grad, x_grad, steepness_grad, payload_grad, nullptr, nullptr,
                            pool) == ok);
    of.expect_backward(x_grad, steepness_grad, payload_grad, nullptr);
}

TEST(a_loss_keeps_weights_from_forward_to_backward) {
    EXPECT(nsc_prepare() == ok && nsc_prepare() == ok);
    Operands<Bitonic, double> of(cross_entropy_routing, 5);
    const Memory kept(nsc_kept_f64(of.routing, 5) * int64_t(sizeof(double)));
    EXPECT(nsc_kept_f64(of.routing, 5) == narrow_kept<double>(plan, 5));
    EXPECT(nsc_kept_f64(route, 5) == 0);
    double values[20], found[5], x_grad[20], steepness_grad[5], losses[5];
    EXPECT(nsc_forward_f64(of.routing, 5, of.x, of.steepness, 1, of.ranks, 4, 4, values, found,
                           kept.get<double>(), nullptr) == ok);
    of.expect_forward(values, found);
    EXPECT(nsc_backward_f64(of.routing, 5, of.x, of.steepness, 1, of.ranks, 4, 4, of.values_grad,
                            nullptr, x_grad, steepness_grad, nullptr, losses, kept.get<double>(),
                            nullptr) == ok);
    of.expect_backward(x_grad, steepness_grad, nullptr, losses);
}

TEST(a_status_says_what_is_wrong) {
    Operands<Bitonic, double> of(rows, 1, 4);
    double values[4], found[16];
    of.row_ranks[0] = 4;
    EXPECT(nsc_forward_f64(rows, 1, of.x, of.steepness, 1, of.row_ranks, 4, 4, values, found,
                           nullptr, nullptr) == no_rank);
}
