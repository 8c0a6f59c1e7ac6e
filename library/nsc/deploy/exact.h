// Exact sorting of a deployed program: nsc::exact_sort and nsc::exact_values, on processors.
#pragma once

#include <nsc/deploy/kernels.h>
#include <nsc/exact/kernel.h>

#pragma GCC visibility push(hidden)
namespace nsc::deploy {

// Types of values, in the order of a kernel's functions. A bool is sorted as a uint8.
#define NSC_ELEMENTS(each)                                                                   \
    each(Double, float64) each(Float, float32) each(BFloat16, bfloat16) each(Half, float16)  \
        each(Long, int64) each(Int, int32) each(Short, int16) each(Char, int8)               \
            each(UInt64, uint64) each(UInt32, uint32) each(UInt16, uint16) each(Byte, uint8) \
                each(Bool, uint8)

template <class Network, class Element>
Status exact_sort_as(const void *x, const Lying &lying, void *values, void *indices,
                     int32_t index_bytes, bool descending, void *pool) {
    return nsc::exact_sort<Network, Element>(
        {static_cast<const typename Element::Key *>(x), lying.slabs, lying.samples, lying.slab,
         lying.wire, lying.sample, 0, 1},
        values, indices, index_bytes, descending, pool);
}

// The function of a network for an element, if it is one of the compiled ones.
template <class Network, class Element, class... Compiled>
constexpr ExactSort exact_sort_for() {
    if constexpr ((std::is_same_v<Element, Compiled> || ...))
        return exact_sort_as<Network, Element>;
    return nullptr;
}

template <class Network, class... Compiled>
constexpr ExactSort exact_sorts[] = {
#define NSC_SORT(type, element) exact_sort_for<Network, element, Compiled...>(),
    NSC_ELEMENTS(NSC_SORT)
#undef NSC_SORT
};

// The number of a type of values, as exact_sorts has it.
inline int32_t element_of(const std::string &call, ScalarType type) {
    int32_t number = 0;
#define NSC_IS(name, element)                    \
    if (type == ScalarType::name) return number; \
    ++number;
    NSC_ELEMENTS(NSC_IS)
#undef NSC_IS
    refuse(call + ": x must be of floats of 16, 32 or 64 bits, of integers or of bool");
}

// Values, and the place that each had along its axis.
struct ExactResults {
    Tensor values;
    OptionalTensor indices;
};

// How an exact sort is asked for.
struct ExactCall {
    const Kernel &kernel;
    int64_t axis;
    bool descending;
    std::optional<ScalarType> index_type;  // none: values alone
    int64_t outputs() const { return kernel.outputs ? kernel.outputs : kernel.wires; }
};

inline int64_t product(const Shape &shape, int64_t first, int64_t end) {
    int64_t result = 1;
    for (int64_t axis = first; axis < end; ++axis) result *= shape[axis];
    return result;
}

// Takes the places of a selection from what is sorted along an axis.
inline Tensor selected(const ExactCall &call, const Tensor &sorted) {
    if (!call.kernel.outputs) return sorted;
    const Tensor from = dense_of(sorted);
    Shape shape = shape_of(from);
    const int64_t n = shape[call.axis], outer = product(shape, 0, call.axis),
                  bytes = product(shape, call.axis + 1, shape.size()) * from.element_size();
    shape[call.axis] = call.kernel.outputs;
    const Tensor to = new_tensor(from, shape);
    char *at = static_cast<char *>(address(to));
    for (int64_t t = 0; t < outer; ++t)
        for (int64_t k = 0; k < call.kernel.outputs; ++k, at += bytes)
            memcpy(at, static_cast<char *>(address(from)) + (t * n + call.kernel.places[k]) * bytes,
                   bytes);
    return to;
}

inline ExactResults sorted_by_torch(const ExactCall &call, const Tensor &x) {
    using torch::stable::detail::from;
    using torch::stable::detail::to;
    std::array<StableIValue, 4> stack = {from(x), from(std::optional<bool>(true)), from(call.axis),
                                         from(call.descending)};
    call_torch("aten::sort", "stable", stack);
    const Tensor values = to<Tensor>(stack[0]), indices = to<Tensor>(stack[1]);
    if (!call.index_type) return {dense_of(selected(call, values)), {}};
    return {dense_of(selected(call, values)),
            torch::stable::to(dense_of(selected(call, indices)), call.index_type)};
}

// Least samples side by side that are sorted where they lie; fewer are copied to rows first.
constexpr int64_t least_columns = 16;

inline ExactResults sorted_by_kernel(const ExactCall &call, ExactSort sort, const Tensor &given) {
    const int64_t last = given.dim() - 1;
    Shape shape = shape_of(given);
    const int64_t n = shape[call.axis], outer = product(shape, 0, call.axis),
                  inner = product(shape, call.axis + 1, shape.size());
    if (inner > 1 && inner < least_columns) {
        ExactCall rows = call;
        rows.axis = last;
        const ExactResults there = sorted_by_kernel(rows, sort, moved(given, call.axis, last));
        const auto back = [&](const Tensor &each) {
            return dense_of(moved(each, last, call.axis));
        };
        return {back(there.values),
                there.indices ? OptionalTensor(back(*there.indices)) : OptionalTensor()};
    }
    const Tensor x = dense_of(given);
    shape[call.axis] = call.outputs();
    const Tensor values = new_tensor(x, shape);
    const OptionalTensor indices =
        call.index_type ? OptionalTensor(new_tensor(x, shape, call.index_type)) : OptionalTensor();
    const Lying lying =
        inner == 1 ? Lying{1, outer, 0, 1, n} : Lying{outer, inner, n * inner, inner, 1};
    const int32_t index_bytes = indices ? int32_t(indices->element_size()) : 0;
    if (values.numel() && sort(address(x), lying, address(values), address(indices), index_bytes,
                               call.descending, torch_threads()) != ok)
        refuse(std::string(call.kernel.name) + ": not enough memory for a group of samples");
    return {values, indices};
}

// Sorts by the kernel, if it is compiled for the dtype. More than 256 places take more than a
// byte.
inline ExactResults sorted_tensor(const ExactCall &call, const Tensor &x) {
    const ScalarType type = x.scalar_type();
    const int32_t element = element_of(call.kernel.name, type);
    const ExactSort sort = call.kernel.exact ? call.kernel.exact[element] : nullptr;
    if (!sort) return sorted_by_torch(call, x);
    if (call.index_type && x.element_size() == 1 && call.kernel.wires > 256) {
        const Tensor wide = torch::stable::to(x, ScalarType::Short);
        const ExactResults there = sorted_tensor(call, wide);
        return {torch::stable::to(there.values, type), there.indices};
    }
    return sorted_by_kernel(call, sort, x);
}

inline ExactResults sorted(const Tensor &x, int64_t dim, bool descending,
                           std::optional<ScalarType> index_type, const std::string &spec,
                           const char *operator_name) {
    const Kernel &kernel = find_kernel(spec);
    const std::string words = kernel.name + std::string(".") + operator_name;
    element_of(words, x.scalar_type());
    const int64_t axes = x.dim() ? x.dim() : 1;
    if (dim < -axes || dim >= axes)
        refuse(words + ": dim must be in " + std::to_string(-axes) + " ... " +
               std::to_string(axes - 1) + ", got " + std::to_string(dim));
    const ExactCall call = {kernel, dim < 0 ? dim + axes : dim,
                            kernel.outputs ? kernel.descends : descending, index_type};
    const Tensor given = x.dim() ? x : torch::stable::reshape(x, Shape{1});
    if (given.size(call.axis) != kernel.wires)
        refuse(words + ": x must have " + std::to_string(kernel.wires) + " values along dim " +
               std::to_string(dim) + ", got shape " + text_of(shape_of(x)));
    const ExactResults results = sorted_tensor(call, given);
    if (x.dim()) return results;
    const auto scalar = [](const Tensor &each) { return torch::stable::reshape(each, Shape{}); };
    return {scalar(results.values),
            results.indices ? OptionalTensor(scalar(*results.indices)) : OptionalTensor()};
}

inline std::tuple<Tensor, Tensor> exact_sort(Tensor x, int64_t dim, bool descending, bool is_short,
                                             std::string spec) {
    const ExactResults results = sorted(
        x, dim, descending, is_short ? ScalarType::Int : ScalarType::Long, spec, "exact_sort");
    return {results.values, *results.indices};
}

inline Tensor exact_values(Tensor x, int64_t dim, bool descending, std::string spec) {
    return sorted(x, dim, descending, {}, spec, "exact_values").values;
}

}  // namespace nsc::deploy
#pragma GCC visibility pop
