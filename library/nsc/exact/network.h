// The network of an exact kernel, as its text has it: counts, tables and straight-line code.
#pragma once

#include <nsc/integers.h>

namespace nsc {

// A comparator, which leaves the minimum on wire lo.
struct WirePair {
    uint16_t lo, hi;
};

// A network is a struct of the kernel's text:
//
//     wires, comparators, outputs    its counts;
//     output_wires                   the wire of each output;
//     pairs                          its comparators, of the type above;
//     run<Form>(items)               runs them on the items of a sample, one for each wire.
//
// Straight-line code is cut into segments, functions of some 50 comparators, which compile quickly.
// A segment loads a wire before its first comparator there, and stores it after the last if it is
// needed behind the segment. In a network that is too large for that, comparators that repeat on
// other ranges of wires are segments, and others run from the table.

}  // namespace nsc
