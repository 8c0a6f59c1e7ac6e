// Relaxed operators of a deployed program: nsc::relax, nsc::relax_backward and nsc::loss, on
// processors.
#pragma once

#include <nsc/deploy/kernels.h>
#include <nsc/relaxed/routings.h>

#pragma GCC visibility push(hidden)
namespace nsc::deploy {

constexpr const char *routing_names[] = {"none",
                                         "permutation",
                                         "route",
                                         "transposed",
                                         "rows",
#define NSC_LOSS(name) #name, #name "_of_intervals", #name "_of_shares",
                                         NSC_LOSSES(NSC_LOSS)
#undef NSC_LOSS
};

// A call of an operator: its kernel and its operands, checked.
struct RelaxedCall {
    const Kernel &kernel;
    const std::string &routing_name;
    Routing routing;
    Tensor x, steepness;
    OptionalTensor payload;

    int64_t batch() const { return x.size(0); }
    int64_t n() const { return kernel.wires; }
    bool has_payload_grad() const { return has_columns(routing) || has_shares(routing); }
    std::string words() const { return kernel.name + ("." + routing_name); }
    Shape routed() const {
        if (is_loss(routing)) return {batch()};
        if (routing == permutation) return {batch(), n(), n()};
        if (routing == none) return {batch(), 0};
        return {batch(), n(), payload->size(payload->dim() - 1)};
    }
};

inline Routing routing_of(const Kernel &kernel, const std::string &name) {
    std::string known;
    int32_t number = 0;
    for (const char *each : routing_names) {
        const Routing routing = Routing(number++);
        // A selector has no P, and no losses of it.
        if (kernel.outputs && (routes_identity(routing) || routing == transposed)) continue;
        if (name == each) return routing;
        known += (known.empty() ? "" : ", ") + std::string(each);
    }
    refuse(std::string(kernel.name) + ": no routing '" + name + "'; known: " + known);
}

// Whether each sample's columns lie without gaps, though samples may share them.
inline bool samples_are_dense(const Tensor &payload) {
    int64_t dense = 1;
    for (int64_t axis = payload.dim() - 1; axis > 0; --axis) {
        if (payload.size(axis) > 1 && payload.stride(axis) != dense) return false;
        dense *= payload.size(axis);
    }
    return true;
}

inline RelaxedCall checked_call(const std::string &spec, const std::string &routing_name,
                                const Tensor &x, const Tensor &steepness,
                                const OptionalTensor &payload) {
    const Kernel &kernel = find_kernel(spec);
    const ScalarType type = x.scalar_type();
    const bool is_float32 = type == ScalarType::Float && kernel.float32.forward,
               is_float64 = type == ScalarType::Double && kernel.float64.forward;
    if (!is_float32 && !is_float64)
        refuse(std::string(kernel.name) + ": no kernel for " + name_of(type) + ", only for " +
               (kernel.float32.forward ? "float32" : "") +
               (kernel.float32.forward && kernel.float64.forward ? ", " : "") +
               (kernel.float64.forward ? "float64" : ""));
    const int64_t batch = x.dim() ? x.size(0) : 0, n = kernel.wires;
    check_tensor(kernel.name, "x", x, {batch, n}, type);
    check_tensor(kernel.name, "steepness", steepness, {batch}, type);
    const Routing routing = routing_of(kernel, routing_name);
    const int64_t columns = payload && payload->dim() > 1 ? payload->size(payload->dim() - 1) : 0;
    OptionalTensor dense;
    if (is_loss(routing)) {
        const Form form = form_of(routing);
        if (form == of_ranks)
            check_tensor(kernel.name, "target", payload, {batch, n}, ScalarType::Long);
        else
            check_tensor(kernel.name, "target", payload, {batch, form == of_shares ? n + 1 : 3, n},
                         type);
        dense = dense_of(payload);
    } else if (has_ranks(routing)) {
        check_tensor(kernel.name, "ranks", payload, {batch, columns}, ScalarType::Long);
    } else if (has_columns(routing)) {
        check_tensor(kernel.name, "payload", payload, {batch, n, columns}, type);
    }
    if (!dense && routing != none && routing != permutation)
        dense = samples_are_dense(*payload) ? payload : dense_of(payload);
    return {kernel, routing_name, routing, dense_of(x), steepness, dense};
}

inline void check_status(int32_t status, const RelaxedCall &call) {
    switch (status) {
        case ok: return;
        case bad_steepness:
            refuse(call.words() + ": steepness must be finite and above 0 in every sample");
        case bad_target:
            refuse(call.words() + ": target must hold each rank 0 ... " +
                   std::to_string(call.n() - 1) + " once in every sample, -100 for an item that " +
                   "does not count; or intervals of ranks, or shares in 0 ... 1, with weights " +
                   "that are finite and not below 0");
        case no_rank:
            refuse(call.words() + ": ranks must be in 0 ... " + std::to_string(call.n() - 1));
        default: refuse(call.words() + ": not enough memory for the weights of one sample");
    }
}

template <class real>
const RelaxedFunctions<real> &functions_of(const Kernel &kernel) {
    if constexpr (sizeof(real) == sizeof(float))
        return kernel.float32;
    else
        return kernel.float64;
}

// Calls visit(real()) with the arithmetic type of a call.
template <class Visit>
void with_real(const RelaxedCall &call, Visit visit) {
    if (call.x.scalar_type() == ScalarType::Float)
        visit(float());
    else
        visit(double());
}

template <class real>
real *reals(const OptionalTensor &tensor) {
    return static_cast<real *>(address(tensor));
}

// Calls a C function with the arguments that forward and backward share, and others.
template <class real, class Function, class... Others>
void run(Function function, const RelaxedCall &call, Others... others) {
    const OptionalTensor &payload = call.payload;
    check_status(
        function(call.routing, call.batch(), reals<real>(call.x), reals<real>(call.steepness),
                 call.steepness.stride(0), address(payload), payload ? payload->stride(0) : 0,
                 payload ? payload->size(payload->dim() - 1) : 0, others..., torch_threads()),
        call);
}

inline std::tuple<Tensor, Tensor> relax(Tensor x, Tensor steepness, OptionalTensor payload,
                                        std::string routing, std::string spec) {
    const RelaxedCall call = checked_call(spec, routing, x, steepness, payload);
    const Tensor values = new_tensor(x, {call.batch(), call.n()}),
                 routed = new_tensor(x, call.routed());
    with_real(call, [&](auto number) {
        using real = decltype(number);
        run<real>(functions_of<real>(call.kernel).forward, call, reals<real>(values),
                  call.routing == none ? nullptr : reals<real>(routed));
    });
    return {values, routed};
}

inline std::tuple<Tensor, Tensor, Tensor, Tensor> loss_of(const RelaxedCall &call) {
    const Tensor losses = new_tensor(call.x, {call.batch()}),
                 x_grad = new_tensor(call.x, shape_of(call.x)),
                 steepness_grad = new_tensor(call.x, {call.batch()}),
                 target_grad = new_tensor(
                     call.x, call.has_payload_grad() ? shape_of(*call.payload) : Shape{0});
    with_real(call, [&](auto number) {
        using real = decltype(number);
        run<real>(functions_of<real>(call.kernel).backward, call, static_cast<real *>(nullptr),
                  static_cast<real *>(nullptr), reals<real>(x_grad), reals<real>(steepness_grad),
                  call.has_payload_grad() ? reals<real>(target_grad) : nullptr,
                  reals<real>(losses));
    });
    return {losses, x_grad, steepness_grad, target_grad};
}

inline std::tuple<Tensor, Tensor, Tensor, Tensor> loss(Tensor x, Tensor steepness, Tensor target,
                                                       std::string routing, std::string spec) {
    const RelaxedCall call = checked_call(spec, routing, x, steepness, target);
    if (!is_loss(call.routing)) refuse(call.words() + ": this routing is no loss");
    return loss_of(call);
}

// Multiplies the numbers of each sample with one number.
template <class real>
void scale_by(const Tensor &numbers, const Tensor &factors) {
    const int64_t batch = factors.numel(), each = batch ? numbers.numel() / batch : 0;
    for (int64_t k = 0; k < batch * each; ++k)
        reals<real>(numbers)[k] *= reals<real>(factors)[k / each];
}

template <class real>
void add_to(const Tensor &to, const Tensor &numbers) {
    for (int64_t k = 0; k < to.numel(); ++k) reals<real>(to)[k] += reals<real>(numbers)[k];
}

inline std::tuple<Tensor, Tensor, Tensor> relax_backward(OptionalTensor values_grad,
                                                         OptionalTensor routed_grad, Tensor x,
                                                         Tensor steepness, OptionalTensor payload,
                                                         std::string routing, std::string spec) {
    const RelaxedCall call = checked_call(spec, routing, x, steepness, payload);
    const ScalarType type = x.scalar_type();
    if (values_grad)
        check_tensor(call.words(), "gradient", values_grad, {call.batch(), call.n()}, type);
    if (routed_grad) check_tensor(call.words(), "gradient", routed_grad, call.routed(), type);
    values_grad = dense_of(values_grad), routed_grad = dense_of(routed_grad);
    if (is_loss(call.routing) && routed_grad) {
        const auto [losses, x_grad, steepness_grad, target_grad] = loss_of(call);
        std::optional<std::tuple<Tensor, Tensor, Tensor>> of_values;
        if (values_grad)
            of_values = relax_backward(values_grad, {}, x, steepness, {}, "none", spec);
        with_real(call, [&, x_grad = x_grad, steepness_grad = steepness_grad,
                         target_grad = target_grad](auto number) {
            using real = decltype(number);
            for (const Tensor &grad : {x_grad, steepness_grad, target_grad})
                scale_by<real>(grad, *routed_grad);
            if (!of_values) return;
            add_to<real>(x_grad, std::get<0>(*of_values));
            add_to<real>(steepness_grad, std::get<1>(*of_values));
        });
        return {x_grad, steepness_grad, target_grad};
    }
    const Tensor x_grad = new_tensor(x, shape_of(x)),
                 steepness_grad = new_tensor(x, {call.batch()});
    const Shape shape = call.has_payload_grad() ? shape_of(*payload) : Shape{0};
    const Tensor payload_grad =
        routed_grad ? new_tensor(x, shape) : torch::stable::new_zeros(x, shape);
    with_real(call, [&](auto number) {
        using real = decltype(number);
        run<real>(functions_of<real>(call.kernel).backward, call, reals<real>(values_grad),
                  reals<real>(routed_grad), reals<real>(x_grad), reals<real>(steepness_grad),
                  call.has_payload_grad() ? reals<real>(payload_grad) : nullptr,
                  static_cast<real *>(nullptr));
    });
    return {x_grad, steepness_grad, payload_grad};
}

}  // namespace nsc::deploy
#pragma GCC visibility pop
