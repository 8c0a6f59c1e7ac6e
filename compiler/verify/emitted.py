"""Emitted: whether a built kernel has its network's proved property, tested on 0-1 inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
# From so many wires on a kernel is run on random inputs alone, of so many numbers: the structured inputs of a
# sample have n² numbers.
MANY_WIRES, _NUMBERS_OF_MANY = 1 << 13, 1 << 22
# A slow kernel is run on inputs of so many numbers, and then on one of so many inputs.
_NUMBERS, _STEP = 1 << 25, 16


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
    in_front = np.arange(inputs.shape[1]) < inputs.shape[1] - ones.sum(axis=1, keepdims=True)
    order = np.empty(inputs.shape, np.int64)
    # Row by row, the places of the zeros stand before the places of the ones.
    order[in_front], order[~in_front] = np.nonzero(~ones)[1], np.nonzero(ones)[1]
    return order


@dataclass
class _Trial:
    """How far a kernel was tried; a slow one may leave inputs out."""

    run: Run
    is_slow: bool
    tried: int = 0
    left_out: bool = False
    failing: Vector | None = None

    def on(self, inputs: Inputs, values: npt.NDArray[np.float64], order: npt.NDArray[np.int64]) -> None:
        """Run the kernel on 0-1 inputs; `values` are the same as numbers, `order` is their stable order."""
        if self.failing is not None:
            return
        if self.is_slow and self.tried * inputs.shape[1] >= _NUMBERS:
            inputs, values, order = inputs[::_STEP], values[::_STEP], order[::_STEP]
            self.left_out = True
        found, indices = self.run(values)
        wrong = found != np.take_along_axis(inputs, order, axis=1)
        if indices is not None:
            wrong |= indices != order
        failures = np.flatnonzero(wrong.any(axis=1))
        if len(failures):
            self.failing = tuple(inputs[failures[0]].astype(int).tolist())
        else:
            self.tried += len(inputs)


class _WrongError(Exception):
    """Ends a run once every kernel has failed."""


def check_emitted(
    network: Network,
    property_: Property,
    ranks: list[int],
    runs: Mapping[str, Run],
    budget: Budget,
    slow: Collection[str] = (),
) -> dict[str, Emitted]:
    """Run kernels on 0-1 inputs that show whether they do the same as their network.

    Up to MOST_WIRES wires these are all 0-1 inputs; beyond, inputs that lead to every pattern of the
    reachable sets, or a sample if those sets exceed the budget, and from 8,192 wires on some random ones.
    Values and indices, if it gives them, must be as a stable sort gives them.

    Args:
        network: the kernels' network.
        property_: the network's proved property.
        ranks: the rank of each value that a kernel returns.
        runs: the kernels, by name.
        budget: the limits of the method of reachable sets.
        slow: names of kernels that are run on a sample where the inputs have more than 2^25 numbers.

    Returns:
        The outcome for each kernel, by name.

    Source: Knuth 5.3.4, theorem Z. With ties broken by index, each 0-1 input stands for a permutation; a
    network that sorts these permutations sorts all 0-1 inputs.
    """
    trials = {name: _Trial(run, name in slow) for name, run in runs.items()}

    def visit(inputs: Inputs) -> None:
        order, values = stable_order(inputs)[:, ranks], inputs.astype(np.float64)
        for trial in trials.values():
            trial.on(inputs, values, order)
        if all(trial.failing is not None for trial in trials.values()):
            raise _WrongError

    n = network.n
    what, complete = "sampled", False
    try:
        if n <= MOST_WIRES and not property_.presorted:
            what, complete = f"all 2^{n}", True
            for start in range(0, 1 << n, 1 << 14):
                index = np.arange(start, min(start + (1 << 14), 1 << n))
                visit((index[:, None] >> np.arange(n) & 1).astype(bool))
        elif n >= MANY_WIRES:
            what = "random"
            for inputs in zero_one.random_inputs(n, _NUMBERS_OF_MANY // n):
                visit(inputs)
        else:
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
    return {
        name: Emitted(
            trial.tried,
            complete and not trial.left_out,
            f"a sample of {what.removeprefix('of ')}" if trial.left_out and complete else what,
            trial.failing,
        )
        for name, trial in trials.items()
    }
