// Kernels of a deployed program: what a library brings, and how operators find it.
#pragma once

#include <nsc/deploy/tensors.h>
#include <nsc/relaxed/parameters.h>
#include <nsc/threads.h>

#pragma GCC visibility push(hidden)
namespace nsc::deploy {

// The C functions of a relaxed kernel for an arithmetic type; null: it is not compiled for it.
template <class real>
struct RelaxedFunctions {
    int32_t (*forward)(NSC_FORWARD_PARAMETERS(real));
    int32_t (*backward)(NSC_BACKWARD_PARAMETERS(real));
};

// Where values lie: value w of sample s of slab t is at t * slab + w * wire + s * sample.
struct Lying {
    int64_t slabs, samples, slab, wire, sample;
};

// Sorts exactly. index_bytes: 8, 4, or 0 for values alone.
using ExactSort = Status (*)(const void *x, const Lying &lying, void *values, void *indices,
                             int32_t index_bytes, bool descending, void *pool);

// A kernel of a package that `nsc compile` wrote.
struct Kernel {
    const char *spec;  // as programs call it
    const char *name;  // of its package, for messages
    int32_t (*prepare)();
    int64_t wires;
    int64_t outputs;        // selected values of a sample; 0: it sorts
    bool descends;          // the order in which a selection counts; a sort's caller says it
    const int64_t *places;  // the places in this order that are selected
    RelaxedFunctions<float> float32;
    RelaxedFunctions<double> float64;
    const ExactSort *exact;  // by the number of an element; where there is none, torch sorts
    const Kernel *next;
};

// Filters images, as nsc_filter.
using FilterFunction = Status (*)(const void *x, const int64_t *lengths, const int64_t *strides,
                                  const int64_t *before, void *values, int32_t mode,
                                  const void *outside, void *pool);

// A filter of a package that `nsc filter` wrote.
struct Filter {
    const char *window;  // its sizes and rank, as names of filters begin
    const char *name;    // of its package, for messages
    int64_t planes, rows, columns;
    const FilterFunction *functions;  // by the number of an element; null: it is not compiled
    const Filter *next;
};

// The kernels and filters that the libraries of a process have brought.
struct Listed {
    const Kernel *kernels;
    const Filter *filters;
};

// Operators belong to the library that is loaded first. They find the kernels of the others,
// which are built apart, in its list; an operator of this name gives the list's address. The
// name changes with the layout of what is listed.
constexpr const char *list_operator = "deployed_kernels_2";
inline Listed *listed = nullptr;

// Returns what is called by a name; `named` gives the name of each.
template <class Each, class Name>
const Each &find(const Each *first, const char *noun, const std::string &name, Name named) {
    std::string loaded;
    for (const Each *each = first; each; each = each->next) {
        if (name == named(*each)) return *each;
        loaded += (loaded.empty() ? "" : ", ") + std::string(named(*each));
    }
    refuse(noun + (" " + name) + " is not known in this process: load the library that is built " +
           "of its deployed source; loaded: " + (loaded.empty() ? "none" : loaded));
}

// Returns the kernel that a program names, ready to be called.
inline const Kernel &find_kernel(const std::string &spec) {
    const Kernel &kernel =
        find(listed->kernels, "kernel", spec, [](const Kernel &each) { return each.spec; });
    if (kernel.prepare() != ok) refuse(spec + ": not enough memory for its tables");
    return kernel;
}

// Returns the filter that a program names: its window, and behind an @ a package.
inline const Filter &find_filter(const std::string &key) {
    return find(listed->filters, "filter", key.substr(0, key.find('@')),
                [](const Filter &each) { return each.window; });
}

}  // namespace nsc::deploy
#pragma GCC visibility pop
