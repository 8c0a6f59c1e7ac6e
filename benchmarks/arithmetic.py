"""The arithmetic limit: the time of the arithmetic that a relaxed comparator cannot do without.

It has, for each comparator and each register of columns of P:
- forward: both weights times both rows, 4 operations;
- backward: the differences of the payload's rows and of the gradient's rows, their product added to the sum
  that is the weight's gradient, and the transposed mix: 7 operations.
A mix also has a form of three operations and a selection that is as accurate; the quicker of both counts. The
weights and the payload's rows come from the first-level cache, the rows that are mixed and the sums stay in
registers. So many comparators are in flight that none waits for another: the limit is one of throughput.

It does not have: the keys pass, which works out weights and reads their gradients; the payload's rows worked
out again for the backward pass; loads and stores of the rows between codelets, of P and of its gradient; sums
over lanes; the exponents and logarithms of a loss, and the products with a merge that its cross entropy takes
apart; the call.

A comparator counts on a column of P only if the column reaches it, see `growth.work_of`. One that a column
reaches on one of its wires alone counts in full, although two products would do.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import registers
from benchmarks.library import library
from nsc.compiler.schedule import CONE_COLUMNS

# The functions take turns, each for so long in a round.
ROUNDS = 20
ROUND_SECONDS = 0.002


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic limit of this machine for one set of registers, one thread.

    Attributes:
        registers: the name of the set.
        lanes: float32 values in a register.
        gigahertz: cycles of the processor in a nanosecond.
        forward_four, forward_three: nanoseconds of a comparator on CONE_COLUMNS columns, forward, by four
            operations, and by three and a selection.
        backward_four, backward_three: the same of the backward pass.
    """

    registers: str
    lanes: int
    gigahertz: float
    forward_four: float
    forward_three: float
    backward_four: float
    backward_three: float

    @property
    def forward(self) -> float:
        """Nanoseconds of a comparator on CONE_COLUMNS columns by the quicker form, forward."""
        return min(self.forward_four, self.forward_three)

    @property
    def backward(self) -> float:
        """The same of the backward pass."""
        return min(self.backward_four, self.backward_three)

    def cycles(self, nanoseconds: float) -> float:
        """Return the cycles on one register that are so many nanoseconds on CONE_COLUMNS columns."""
        return nanoseconds * self.gigahertz * self.lanes / CONE_COLUMNS

    def seconds(self, comparators: float) -> float:
        """Return the seconds of that many comparators on CONE_COLUMNS columns, forward and backward."""
        return comparators * (self.forward + self.backward) * 1e-9

    def or_better(self, other: Arithmetic) -> Arithmetic:
        """Return the quicker figures of two measurements."""
        return Arithmetic(
            self.registers,
            self.lanes,
            max(self.gigahertz, other.gigahertz),
            min(self.forward_four, other.forward_four),
            min(self.forward_three, other.forward_three),
            min(self.backward_four, other.backward_four),
            min(self.backward_three, other.backward_three),
        )


def measure_arithmetic() -> Arithmetic:
    """Return the times of the quickest rounds of arithmetic.cpp, built as kernels are built.

    It takes a second. What else runs on a processor may slow its registers for longer: `or_better` joins
    measurements from several times.
    """
    built = library("arithmetic.cpp")
    built.prepare()
    lanes = ctypes.c_int32.in_dll(built, "lane_count").value
    comparators = ctypes.c_int32.in_dll(built, "comparator_count").value
    share = lanes / CONE_COLUMNS  # of the columns, in one register
    seconds = _quickest_in_turns({name: built[name] for name in ("cycles", *_FORMS)})
    nanoseconds = {name: seconds[name] / comparators / share * 1e9 for name in _FORMS}
    return Arithmetic(registers.present(), lanes, 1e-9 / seconds["cycles"], **nanoseconds)


# Functions of arithmetic.cpp, and attributes of `Arithmetic`.
_FORMS = ("forward_four", "forward_three", "backward_four", "backward_three")


def _quickest_in_turns(functions: Mapping[str, Callable[[ctypes.c_int64], object]]) -> dict[str, float]:
    """Return the seconds of one repeat of each function in its quickest round."""

    def seconds(name: str, repeats: int) -> float:
        start = time.perf_counter()
        functions[name](ctypes.c_int64(repeats))
        return (time.perf_counter() - start) / repeats

    repeats = {name: max(1000, int(ROUND_SECONDS / seconds(name, 1000))) for name in functions}
    rounds = [{name: seconds(name, repeats[name]) for name in functions} for _ in range(ROUNDS)]
    return {name: min(each[name] for each in rounds) for name in functions}
