"""Foresight: whether the method of reachable sets must end at its budget, known before a pattern is made.

A component of k inputs holds at least k + 1 patterns, one for each number of zeros, whatever its comparators
are. So the wires that a comparator depends on, on either side, say how many patterns the join there has at
least. A comparator whose join has too many stops the method, in whatever order it joins, if nothing else
joins the same two components before. The argument is written out at `forced_join`; what is too many, for
time or for memory, is the rule of `joins`.
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
    """The largest join that is refused of a network which the method of reachable sets cannot get through.

    All numbers are bounds from below; components are joined where the layers join them.

    Attributes:
        patterns: of the product of both components.
        wires, inputs: of both together.
        others: patterns times wires of the joins before it.
    """

    patterns: int
    wires: int
    inputs: int
    others: float


def forced_join(network: Network, runs: tuple[tuple[int, ...], ...], rule: JoinRule) -> ForcedJoin | None:
    """Return the largest join if in every order of joins one is refused; None if none is known to be.

    Let D be the comparators with too large a join, and all that follow one on a wire, and T the others. The
    method does nothing of D before one that is first in D. There the components hold what it depends on, so
    the join is too large, unless the two are one component by then; T does not connect them, else the
    comparator is taken out of D. Too large is what neither patterns nor SAT settle: a part of k wires that
    sorts has at least log2(k!) comparators, and SAT takes no more than some.

    Args:
        network: in standard form.
        runs: wires whose inputs ascend; each begins as one component.
        rule: what is too large.

    Cost: O(size) and some steps a layer; nothing where no join of n wires need be too large.
    """
    n = network.n
    if not rule.refuses(rule.patterns(n) ** 2, n, n):
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
        return None  # parts that never meet are refuted at once, not counted
    return whole.largest


class _Sweep:
    """One pass over the layers.

    Attributes:
        inputs: (n,): of each wire, how many inputs its component has at least.
        part: (n,): a number for each set of wires that are connected so far.
        largest: of the joins that are refused that of most patterns times wires; noted where all are allowed.
        done: patterns times wires of all joins so far.
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
        """Return the comparators with a refused join that follow no other one; None: all are allowed."""
        stopped = np.zeros(self.network.n, dtype=bool)
        first = []
        index = 0
        for layer in self.network.layers():
            here = np.arange(index, index + len(layer))
            index += len(layer)
            going = ~stopped[layer].any(axis=1)
            stopped[layer[~going]] = True
            here, layer = here[going], layer[going]
            inputs = self.inputs[layer]
            # Of layers before alone: what the two ends depend on has no wire in common.
            apart = self.part[layer[:, 0]] != self.part[layer[:, 1]]
            total = np.where(apart, inputs.sum(axis=1), inputs.max(axis=1))
            patterns = self.rule.patterns(inputs).prod(axis=1)
            wires = self.rule.wires(total)
            large = apart & self.rule.refuses(patterns, wires, total)
            if allowed is None:
                self._note(patterns[large], wires[large], total[large])
            else:
                large &= ~allowed[here]
                large[large] = [_beyond_sat(k, self.network.n) for k in total[large].tolist()]
                first.append(here[large])
                stopped[layer[large]] = True
                layer, total, apart = layer[~large], total[~large], apart[~large]
                patterns, wires = patterns[~large], wires[~large]
            self.inputs[layer] = total[:, None]
            for place in np.flatnonzero(apart).tolist():
                if self._connect(*layer[place].tolist()):
                    self.done += float(patterns[place] * wires[place])
        return np.concatenate([np.empty(0, np.int64), *first])

    def _note(self, patterns: Integers, wires: Integers, inputs: Integers) -> None:
        """Keep the largest of some joins that are refused."""
        if len(patterns):
            place = int((patterns * wires).argmax())
            join = ForcedJoin(int(patterns[place]), int(wires[place]), int(inputs[place]), self.done)
            if (
                self.largest is None
                or join.patterns * join.wires > self.largest.patterns * self.largest.wires
            ):
                self.largest = join

    def _connect(self, a: int, b: int) -> bool:
        """Make one part of two, and say whether they were two."""
        small, large = sorted((int(self.part[a]), int(self.part[b])), key=lambda part: len(self.wires[part]))
        if small == large:
            return False
        moved = self.wires.pop(small)
        self.part[moved] = large
        self.wires[large] += moved
        return True


def _beyond_sat(wires: int, n: int) -> bool:
    return wires == n or math.lgamma(wires + 1) / math.log(2) > MOST_COMPARATORS
