"""Foresight: whether the method of reachable sets must exceed its budget, known in advance.

A component of k inputs holds at least k + 1 patterns, one for each number of zeros, whatever its comparators
are. So the inputs that the two ends of a comparator depend on bound the patterns of its join from below. If
the bound is too large, the comparator stops the method in every order of joins, unless another comparator
joins the same two components first. `forced_join` gives the full argument; `joins` says which joins are too
large, for time or for memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.verify.joins import Integers, JoinRule
from nsc.compiler.verify.sat import MOST_COMPARATORS

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ForcedJoin:
    """The largest refused join of a network that the method of reachable sets cannot finish.

    All numbers are lower bounds, for joins in the order of the layers.

    Attributes:
        patterns: number of patterns in the product of the two components.
        wires, inputs: number of wires and of inputs of both components together.
        others: sum of patterns times wires over the joins before this one.
    """

    patterns: int
    wires: int
    inputs: int
    others: float


def forced_join(network: Network, runs: tuple[tuple[int, ...], ...], rule: JoinRule) -> ForcedJoin | None:
    """Return the largest refused join if every order of joins has a refused one; None if that is not known.

    Let D be the comparators whose join is too large, with all that follow one of them on a wire, and T the
    others. The first comparator of D that the method reaches follows no other one of D. By then its two
    components hold all inputs that it depends on, so its join is too large, unless both are already one
    component. T does not connect them: if it did, the comparator would be taken out of D.

    A join is too large if neither patterns nor SAT can settle it. A part of k wires that sorts has at least
    log2(k!) comparators, and SAT takes at most MOST_COMPARATORS.

    Args:
        network: a network in standard form.
        runs: wires whose inputs ascend; each run begins as one component.
        rule: which joins are refused.

    Cost: O(size), plus some steps for each layer; O(1) if the rule allows a join of all n wires.
    """
    n = network.n
    # Where some numbers of zeros do not matter, joins leave patterns out, and these bounds do not hold.
    if not rule.needs_all or not rule.refuses(rule.patterns(n) ** 2, n, n):
        return None
    allowed = np.zeros(network.size, dtype=bool)
    while True:
        sweep = _Sweep(network, runs, rule)
        first = sweep.run(allowed)
        if not len(first):
            return None
        lo, hi = network.comparators[first].T
        connected = sweep.part[lo] == sweep.part[hi]
        if not connected.any():
            break
        allowed[first[connected]] = True
    whole = _Sweep(network, runs, rule)
    whole.run(None)
    if (whole.part != whole.part[0]).any():
        return None  # separate parts: the search refutes them without a join
    return whole.largest


class _Sweep:
    """One pass over the layers.

    Attributes:
        inputs: (n,): for each wire, the least number of inputs of its component.
        part: (n,): for each wire, the number of its part, a set of wires connected so far.
        largest: the refused join with the most patterns times wires; recorded if all joins are allowed.
        done: sum of patterns times wires over all joins so far.
    """

    def __init__(self, network: Network, runs: tuple[tuple[int, ...], ...], rule: JoinRule) -> None:
        self.network, self.rule = network, rule
        self.inputs = np.ones(network.n, dtype=np.int64)
        self.part = np.arange(network.n)
        self.wires = {wire: [wire] for wire in range(network.n)}
        self.largest: ForcedJoin | None = None
        self.done = 0.0
        for run in runs:
            self.inputs[list(run)] = len(run)
            for wire in run[1:]:
                self._connect(run[0], wire)

    def run(self, allowed: _Flags | None) -> Integers:
        """Return the comparators with a refused join that follow no other such comparator.

        Args:
            allowed: (size,): comparators to pass even if their join is refused; None: all.
        """
        stopped = np.zeros(self.network.n, dtype=bool)
        first = []
        index = 0
        for layer in self.network.layers():
            indices = np.arange(index, index + len(layer))
            index += len(layer)
            reached = ~stopped[layer].any(axis=1)
            stopped[layer[~reached]] = True
            indices, layer = indices[reached], layer[reached]
            inputs = self.inputs[layer]
            # Ends in different parts, by the layers before, depend on disjoint inputs.
            apart = self.part[layer[:, 0]] != self.part[layer[:, 1]]
            total = np.where(apart, inputs.sum(axis=1), inputs.max(axis=1))
            patterns = self.rule.patterns(inputs).prod(axis=1)
            wires = self.rule.wires(total)
            large = apart & self.rule.refuses(patterns, wires, total)
            if allowed is None:
                self._note(patterns[large], wires[large], total[large])
            else:
                large &= ~allowed[indices]
                large[large] = [_beyond_sat(k, self.network.n) for k in total[large].tolist()]
                first.append(indices[large])
                stopped[layer[large]] = True
                layer, total, apart = layer[~large], total[~large], apart[~large]
                patterns, wires = patterns[~large], wires[~large]
            self.inputs[layer] = total[:, None]
            for place in np.flatnonzero(apart).tolist():
                if self._connect(*layer[place].tolist()):
                    self.done += float(patterns[place] * wires[place])
        return np.concatenate([np.empty(0, np.int64), *first])

    def _note(self, patterns: Integers, wires: Integers, inputs: Integers) -> None:
        """Record the largest of some refused joins."""
        if len(patterns):
            place = int((patterns * wires).argmax())
            join = ForcedJoin(int(patterns[place]), int(wires[place]), int(inputs[place]), self.done)
            if (
                self.largest is None
                or join.patterns * join.wires > self.largest.patterns * self.largest.wires
            ):
                self.largest = join

    def _connect(self, a: int, b: int) -> bool:
        """Merge the parts of two wires; return whether they were different."""
        small, large = sorted((int(self.part[a]), int(self.part[b])), key=lambda part: len(self.wires[part]))
        if small == large:
            return False
        moved = self.wires.pop(small)
        self.part[moved] = large
        self.wires[large] += moved
        return True


def _beyond_sat(wires: int, n: int) -> bool:
    return wires == n or math.lgamma(wires + 1) / math.log(2) > MOST_COMPARATORS
