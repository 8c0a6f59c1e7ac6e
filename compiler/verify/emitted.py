"""Emitted: whether a built kernel does on 0-1 inputs what its network was proved to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.verify import zero_one
from nsc.compiler.verify.ladder import RANDOM_INPUTS
from nsc.compiler.verify.proof import Vector
from nsc.compiler.verify.property import Property
from nsc.compiler.verify.question import Budget, BudgetError, question
from nsc.compiler.verify.reachable import search

Inputs = npt.NDArray[np.bool_]
# Runs a kernel on (count, n) values and returns what it selects, (count, k), and where that comes from.
Run = Callable[[npt.NDArray[np.float64]], tuple[npt.NDArray[np.floating], npt.NDArray[np.int64]]]

# Up to this many wires a kernel is run on all 0-1 inputs.
MOST_WIRES = 20


@dataclass(frozen=True)
class Emitted:
    """What running a kernel showed.

    Attributes:
        inputs: number of 0-1 inputs it was run on.
        complete: whether these settle it, given that the kernel compares and exchanges alone.
        what: which inputs these were, in words.
        failing: the first that comes out wrong, or None.
    """

    inputs: int
    complete: bool
    what: str
    failing: Vector | None


class _WrongError(Exception):
    """Ends a run at the first input that comes out wrong."""


def check_emitted(
    network: Network, property_: Property, ranks: list[int], run: Run, budget: Budget
) -> Emitted:
    """Run a kernel on the 0-1 inputs that tell whether it does what its network does.

    All of them up to MOST_WIRES wires; beyond, inputs that lead to every pattern of the reachable sets;
    where these do not end within the budget, a sample. Values and indices must be those of a stable sort.

    Args:
        network: what the kernel was made from.
        property_: what it was proved to do.
        ranks: the rank of each value that the kernel gives out.
        run: the kernel.
        budget: what the method of reachable sets may take.

    Source: Knuth 5.3.4, theorem Z: a network that sorts these permutations, which a stable sort makes of
    0-1 inputs, sorts all 0-1 inputs.
    """
    tried = 0
    failing: Vector | None = None

    def visit(inputs: Inputs) -> None:
        nonlocal tried, failing
        values, indices = run(inputs.astype(np.float64))
        order = np.argsort(inputs, axis=1, kind="stable")[:, ranks]
        wrong = (indices != order) | (values != np.take_along_axis(inputs, order, axis=1))
        found = np.flatnonzero(wrong.any(axis=1))
        if len(found):
            failing = tuple(inputs[found[0]].astype(int).tolist())
            raise _WrongError
        tried += len(inputs)

    n = network.n
    what, complete = "sampled", False
    try:
        if n <= MOST_WIRES and not property_.presorted:
            for start in range(0, 1 << n, 1 << 14):
                index = np.arange(start, min(start + (1 << 14), 1 << n))
                visit((index[:, None] >> np.arange(n) & 1).astype(bool))
            return Emitted(tried, True, f"all 2^{n}", None)
        asked = question(network, property_, budget)
        try:
            outcome = search(asked, visit=visit)
            what, complete = "of the reachable sets", not outcome.parts
        except BudgetError:
            pass
        if not complete:
            for inputs in zero_one.sample_inputs(n, RANDOM_INPUTS, list(asked.ranks.values()), asked.runs):
                visit(inputs)
    except _WrongError:
        pass
    return Emitted(tried, complete, what, failing)
