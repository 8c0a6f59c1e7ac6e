// Operators of a deployed program: their registration with torch, once in a process.
//
// Operators are defined once in a process. The library that is loaded first defines them, and with
// them one operator that gives the address of its list of kernels. In other libraries this
// definition fails, so they call that operator and join the list. No symbol is shared: libraries
// may be opened with RTLD_LOCAL, and the functions of kernels are static. Where Python has defined
// the operators, libraries leave them to it.
//
// Arguments pass through torch's stable ABI as 64-bit words, some of them handles. A Scalar is
// none of them, so nsc::filter takes a float and a whole number. By processor time a sort of one
// sample of 16 values takes 5.8 us by ctypes and 7.5 us by this operator, with its gradient 52 us
// by either; operators that Python registers take 22 us (torch 2.13, AVX-512, one thread).
#pragma once

#include <nsc/deploy/exact.h>
#include <nsc/deploy/filters.h>
#include <nsc/deploy/relaxed.h>

#pragma GCC visibility push(hidden)
namespace nsc::deploy {

// nsc.runtime.dispatch and nsc.operators have the same schemas.
struct Operator {
    const char *name, *schema;
    void (*run)(StableIValue *, uint64_t, uint64_t);
};
constexpr Operator operators[] = {
    {"relax",
     "(Tensor x, Tensor steepness, Tensor? payload, str routing, str kernel)"
     " -> (Tensor values, Tensor routed)",
     TORCH_BOX(&relax)},
    {"relax_backward",
     "(Tensor? values_grad, Tensor? routed_grad, Tensor x, Tensor steepness,"
     " Tensor? payload, str routing, str kernel) -> (Tensor, Tensor, Tensor)",
     TORCH_BOX(&relax_backward)},
    {"loss",
     "(Tensor x, Tensor steepness, Tensor target, str routing, str kernel)"
     " -> (Tensor losses, Tensor x_grad, Tensor steepness_grad, Tensor target_grad)",
     TORCH_BOX(&loss)},
    {"exact_sort",
     "(Tensor x, int dim, bool descending, bool is_short, str kernel) -> (Tensor, Tensor)",
     TORCH_BOX(&exact_sort)},
    {"exact_values", "(Tensor x, int dim, bool descending, str kernel) -> Tensor",
     TORCH_BOX(&exact_values)},
    {"filter",
     "(Tensor x, str kernel, str mode, float cval, int whole_cval, int[] origin) -> Tensor",
     TORCH_BOX(&filter)},
};

inline int64_t address_of_list() { return reinterpret_cast<int64_t>(listed); }

// Defines an operator; false: something else has defined it.
template <class Run>
bool define(const char *name, const std::string &schema, const char *key, Run run) {
    TorchLibraryHandle definitions, implementations;
    return aoti_torch_library_init_fragment("nsc", __FILE__, __LINE__, &definitions) == ok &&
           aoti_torch_library_def(definitions, (name + schema).c_str()) == ok &&
           aoti_torch_library_init_impl("nsc", key, __FILE__, __LINE__, &implementations) == ok &&
           torch_library_impl(implementations, name, run, TORCH_ABI_VERSION) == ok;
}

// Finds the list of the process, and begins it if there is none. Where Python has imported nsc,
// its operators serve, and find the kernels of packages that Python loads.
inline Listed *find_list() {
    static Listed own = {};
    listed = &own;
    if (define(list_operator, "() -> int", "CompositeExplicitAutograd",
               TORCH_BOX(&address_of_list))) {
        for (const Operator &each : operators)
            if (!define(each.name, each.schema, "CPU", each.run)) break;
        return listed;
    }
    std::array<StableIValue, 1> stack = {};
    call_torch((std::string("nsc::") + list_operator).c_str(), "", stack);
    return reinterpret_cast<Listed *>(torch::stable::detail::to<int64_t>(stack[0]));
}

// Lists a kernel or a filter when its library is loaded, which stays: nothing is taken back.
struct Deployed {
    explicit Deployed(Kernel &kernel) { put(kernel, list().kernels); }
    explicit Deployed(Filter &filter) { put(filter, list().filters); }

private:
    static Listed &list() {
        if (!listed) listed = find_list();
        return *listed;
    }
    template <class Each>
    static void put(Each &each, const Each *&first) {
        each.next = first;
        first = &each;
    }
};

}  // namespace nsc::deploy
#pragma GCC visibility pop
