"""Emitted: whether a built kernel has its network's proved property, tested on 0-1 inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.verify import zero_one
from nsc.compiler.verify.ladder import RANDOM_INPUTS
from nsc.compiler.verify.proof import Vector
from nsc.compiler.verify.property import Property
from nsc.compiler.verify.question import Budget, BudgetError, question_of
from nsc.compiler.verify.reachable import search

Inputs = npt.NDArray[np.bool_]
# Runs a kernel on (count, n) values; returns the selected values and their indices, both (count, k), or None
# for the indices of a kernel that has none.
Run = Callable[[npt.NDArray[np.float64]], tuple[npt.NDArray[Any], "npt.NDArray[np.int64] | None"]]

# Up to this many wires a kernel is run on all 0-1 inputs.
MOST_WIRES = 20


@dataclass(frozen=True)
class Emitted:
    """The outcome of running a kernel on 0-1 inputs.

    Attributes:
        inputs: number of 0-1 inputs that came out right.
        complete: whether these inputs suffice to prove a kernel that only compares and exchanges.
        what: the kind of inputs, in words.
        failing: the first input that comes out wrong, or None.
    """

    inputs: int
    complete: bool
    what: str
    failing: Vector | None


def stable_order(inputs: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the order in which a stable sort puts 0-1 inputs (count, n), in linear time."""
    ones = inputs.astype(bool)
    zeros = np.cumsum(~ones, axis=1)
    rank = np.where(ones, zeros[:, -1:] + np.cumsum(ones, axis=1), zeros) - 1
    order = np.empty_like(rank)
    np.put_along_axis(order, rank, np.arange(inputs.shape[1])[None], axis=1)
    return order


class _WrongError(Exception):
    """Ends a run at the first input that comes out wrong."""


def check_emitted(
    network: Network, property_: Property, ranks: list[int], run: Run, budget: Budget
) -> Emitted:
    """Run a kernel on 0-1 inputs that show whether it does the same as its network.

    Up to MOST_WIRES wires these are all 0-1 inputs; beyond, inputs that lead to every pattern of the
    reachable sets, or a sample if those sets exceed the budget. Values and indices, if it gives them, must be
    those of a stable sort.

    Args:
        network: the kernel's network.
        property_: the network's proved property.
        ranks: the rank of each value that the kernel returns.
        run: the kernel.
        budget: the limits of the method of reachable sets.

    Source: Knuth 5.3.4, theorem Z. With ties broken by index, each 0-1 input stands for a permutation; a
    network that sorts these permutations sorts all 0-1 inputs.
    """
    tried = 0
    failing: Vector | None = None

    def visit(inputs: Inputs) -> None:
        nonlocal tried, failing
        values, indices = run(inputs.astype(np.float64))
        order = stable_order(inputs)[:, ranks]
        wrong = values != np.take_along_axis(inputs, order, axis=1)
        if indices is not None:
            wrong |= indices != order
        failures = np.flatnonzero(wrong.any(axis=1))
        if len(failures):
            failing = tuple(inputs[failures[0]].astype(int).tolist())
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
        question = question_of(network, property_, budget)
        try:
            outcome = search(question, visit=visit)
            what, complete = "of the reachable sets", not outcome.parts
        except BudgetError:
            pass
        if not complete:
            wire_ranks = list(question.ranks.values())
            for inputs in zero_one.sample_inputs(n, RANDOM_INPUTS, wire_ranks, question.runs):
                visit(inputs)
    except _WrongError:
        pass
    return Emitted(tried, complete, what, failing)
