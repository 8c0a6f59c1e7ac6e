// best_4_exact: exact sorting of 4 values, for numbers of any type.
//
// Made by: compile_exact(4) of nsc.compiler.exact
// nsc:     0
// Network: 4 wires, 5 comparators, 3 layers, sha256 48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4
// Proof:   sorts every input, by exhaustion: all 2^4 0-1 inputs come out sorted
//
// This is the network. What runs it, and is the same for all, is nsc's library of headers. The kernel is built for the
// type NSC_ELEMENT, one of those of nsc/elements.h.

#include <nsc/exact/kernel.h>

namespace {

// See nsc/exact/network.h.
struct Network {
    static constexpr int64_t wires = 4, comparators = 5, outputs = 4;

    static constexpr uint16_t output_wires[] = {
        0, 1, 2, 3,
    };

    [[maybe_unused]] static constexpr nsc::WirePair pairs[] = {
        {0, 2}, {1, 3}, {0, 1}, {2, 3}, {1, 2}, {},
    };

    template <class Form>
    NSC_NOINLINE static void segment_0(typename Form::Item *r) {
        using Item = typename Form::Item;
        Item w0 = r[0], w2 = r[2]; Form::order(w0, w2); Item w1 = r[1], w3 = r[3]; Form::order(w1, w3);
        Form::order(w0, w1); r[0] = w0; Form::order(w2, w3); r[3] = w3; Form::order(w1, w2); r[2] = w2; r[1] = w1;
    }

    template <class Form>
    static void run(typename Form::Item *r) {
        segment_0<Form>(r);
    }
};

}  // namespace

NSC_EXACT_KERNEL(Network, nsc::NSC_ELEMENT)
