// Tensors of a deployed program: what operators make of them and ask of them, and errors.
//
// Only torch's stable ABI is used, as torch 2.10 has it: a library runs in later versions as it is.
#pragma once

#define TORCH_TARGET_VERSION (((0ULL + 2) << 56) | ((0ULL + 10) << 48))

#include <string.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

// Other libraries have their own, of another version perhaps.
#pragma GCC visibility push(hidden)
namespace nsc::deploy {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Shape = std::vector<int64_t>;

inline Shape shape_of(const Tensor &x) {
    const auto sizes = x.sizes();
    return {sizes.begin(), sizes.end()};
}

inline Tensor new_tensor(const Tensor &like, const Shape &shape,
                         std::optional<ScalarType> type = std::nullopt) {
    return torch::stable::new_empty(like, shape, type);
}

inline void *address(const Tensor &x) { return x.mutable_data_ptr(); }
inline void *address(const OptionalTensor &x) { return x ? address(*x) : nullptr; }

inline Tensor dense_of(const Tensor &x) {
    return x.is_contiguous() ? x : torch::stable::contiguous(x);
}
inline OptionalTensor dense_of(const OptionalTensor &x) {
    return x ? OptionalTensor(dense_of(*x)) : x;
}

// Dtypes that operators name, as torch and Python do.
inline const char *name_of(ScalarType type) {
    switch (type) {
        case ScalarType::Double: return "float64";
        case ScalarType::Float: return "float32";
        case ScalarType::BFloat16: return "bfloat16";
        case ScalarType::Half: return "float16";
        case ScalarType::Long: return "int64";
        case ScalarType::Int: return "int32";
        default: return "another type";
    }
}

inline std::string text_of(const Shape &shape) {
    std::string text = "(";
    for (size_t axis = 0; axis < shape.size(); ++axis)
        text += (axis ? ", " : "") + std::to_string(shape[axis]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

[[noreturn]] inline void refuse(const std::string &message) { throw std::runtime_error(message); }

// Refuses a tensor that has not the shape and the dtype that it must have.
inline void check_tensor(const std::string &call, const char *name, const OptionalTensor &tensor,
                         const Shape &shape, ScalarType type) {
    if (tensor && shape_of(*tensor) == shape && tensor->scalar_type() == type) return;
    const std::string found =
        tensor ? name_of(tensor->scalar_type()) + (" " + text_of(shape_of(*tensor))) : "none";
    refuse(call + ": " + name + " must be " + name_of(type) + " " + text_of(shape) + ", got " +
           found);
}

// The pool of threads that kernels run on.
inline void *torch_threads() { return reinterpret_cast<void *>(&torch_parallel_for); }

// Calls an operator of torch that takes and gives what a stack has room for.
template <size_t places>
void call_torch(const char *name, const char *overload, std::array<StableIValue, places> &stack) {
    STABLE_TORCH_ERROR_CODE_CHECK(
        torch_call_dispatcher(name, overload, stack.data(), TORCH_ABI_VERSION));
}

// Moves an axis to another place, without a copy.
inline Tensor moved(const Tensor &x, int64_t from, int64_t to) {
    std::array<StableIValue, 3> stack = {torch::stable::detail::from(x),
                                         torch::stable::detail::from(from),
                                         torch::stable::detail::from(to)};
    call_torch("aten::movedim", "int", stack);
    return torch::stable::detail::to<Tensor>(stack[0]);
}

}  // namespace nsc::deploy
#pragma GCC visibility pop
