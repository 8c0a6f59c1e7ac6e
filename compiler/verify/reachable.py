"""Exact verification by reachable 0-1 sets per connected component of wires.

For every component, the wires joined so far by comparators, the set of 0-1 patterns that it can
hold is kept; a comparator that joins two components multiplies their sets, some of one set at a time.
Polynomial for networks that merge sorted parts: a sorted component of k wires has k + 1 patterns, so
a bitonic or odd-even merge of n wires peaks at (n/2 + 1)² of them. Networks that join wires before
they are sorted (pairwise, odd-even transposition) grow exponentially and end at the budget.

A component that would have too many patterns is kept unseen: its wires join others, and as soon as its
comparators seem to sort it, SAT is asked whether they do; if so, its patterns are the ascending ones.
Too many are at first more than FEW_STATES, because SAT settles most sorters sooner than larger joins are
made. If that fails, and SAT does not do better, a second search makes every join that memory and time allow.

Where only some wires matter, those that no comparator needs any more are forgotten, and a pattern
carries how many zeros its inputs had. Patterns with more zeros than one above the highest rank that is
asked for are left out: outputs do not fall when inputs rise, so they can be wrong only if others are.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import networkx
import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.bits import Bits
from nsc.compiler.verify.foresight import forced_join
from nsc.compiler.verify.joins import JoinRule
from nsc.compiler.verify.patterns import Component, concatenated, distinct, products
from nsc.compiler.verify.proof import Vector
from nsc.compiler.verify.property import sort
from nsc.compiler.verify.question import Budget, BudgetError, Question, question
from nsc.compiler.verify.sat import is_for, sat

Visit = Callable[[npt.NDArray[np.bool_]], None]

# 0-1 patterns of a join that is made before anything else is tried; those of 64 wires take half a second.
FEW_STATES = 1 << 23
# Pieces of a join are merged once they take this many bytes, so that memory is that of the distinct patterns.
_MERGED_BYTES = 1 << 24
_DONE = -1
# The patterns of one wire, 0 and 1 in turn, and how many zeros they have.
_EITHER = np.array([0b10101010], dtype=np.uint8)
_EITHER_ZEROS = np.array([1, 0] * 4, dtype=np.int32)
# Random inputs that say whether a part seems to sort, before SAT is asked.
_TRIALS = 200


@dataclass(frozen=True)
class Outcome:
    """What the search found.

    Attributes:
        failing: a failing 0-1 input or None.
        peak: the most patterns of a join.
        parts: number of wires of each different part that SAT was asked of and that sorts.
    """

    failing: Vector | None
    peak: int
    parts: tuple[int, ...] = ()


def search(asked: Question, used: npt.NDArray[np.bool_] | None = None, visit: Visit | None = None) -> Outcome:
    """Return whether the wires carry their ranks, with a failing 0-1 input if they do not.

    Args:
        asked: the question.
        used: (size,); if given, true is written for each comparator that exchanges a 1 and a 0.
        visit: if given, called with 0-1 inputs, (count, n), some thousands at a time, that together lead to
            every pattern in front of every comparator that joins two components, and behind it.

    Raises:
        BudgetError: more patterns, memory or time than the budget allows.
    """
    budget = asked.budget
    if budget.states is not None:
        return _with_fewer_zeros(asked, used, visit, budget.states)
    try:
        return _with_fewer_zeros(asked, used, visit, FEW_STATES)
    except BudgetError:
        budget.check()
        if visit is not None or (asked.is_sort and is_for(asked.network)):
            raise  # SAT comes next
    if used is not None:
        used[:] = False
    return _with_fewer_zeros(asked, used, visit, None)


def _with_fewer_zeros(
    asked: Question, used: npt.NDArray[np.bool_] | None, visit: Visit | None, states: int | None
) -> Outcome:
    """Search; where ones are fewer to count than zeros, upside down. states: as of `_Search`."""
    ranks = asked.ranks.values()
    n = asked.network.n
    if len(ranks) < n and n - min(ranks, default=0) < max(ranks, default=0) + 1:
        # Minimum and maximum, 0 and 1 change places.
        network = Network(n, asked.network.comparators[:, ::-1], asked.network.layer_starts)
        turned = {wire: n - 1 - rank for wire, rank in asked.ranks.items()}
        runs = tuple(run[::-1] for run in asked.runs)
        turned_visit = None if visit is None else lambda inputs: visit(~inputs)
        outcome = _search(network, turned, runs, asked.budget, states, used, turned_visit)
        failing = outcome.failing
        return replace(outcome, failing=None if failing is None else tuple(1 - bit for bit in failing))
    return _search(asked.network, asked.ranks, asked.runs, asked.budget, states, used, visit)


def _search(
    network: Network,
    ranks: dict[int, int],
    runs: tuple[tuple[int, ...], ...],
    budget: Budget,
    states: int | None,
    used: npt.NDArray[np.bool_] | None,
    visit: Visit | None,
) -> Outcome:
    rule = JoinRule(budget, states, network.n, ranks)
    forced = forced_join(network, runs, rule)
    if forced is not None:
        why = rule.why(forced.patterns, forced.wires, forced.inputs, forced.others)
        raise BudgetError(f"what lies ahead, {why}")
    made = _Search(network, rule, trace=visit is not None, used=used, visit=visit)
    try:
        made.run(runs)
        return Outcome(None, made.peak, tuple(part.n for part, sorts in made.parts.items() if sorts))
    except _FailingError:
        # Patterns forget the inputs they came from; a second run carries these along, in twice the memory.
        twice = replace(rule, budget=replace(budget, memory=2 * budget.memory))
        try:
            _Search(network, twice, trace=True).run(runs)
        except _FailingError as failing:
            return Outcome(failing.vector, made.peak)
        raise AssertionError("the same search found no failing pattern") from None


class _FailingError(Exception):
    """Carries a failing input, where inputs are traced."""

    def __init__(self, vector: Vector | None) -> None:
        super().__init__()
        self.vector = vector


class _Search:
    """One run over the comparator graph.

    With `trace` wire n + w carries the input of wire w.
    """

    def __init__(
        self,
        network: Network,
        rule: JoinRule,
        trace: bool,
        used: npt.NDArray[np.bool_] | None = None,
        visit: Visit | None = None,
    ) -> None:
        self.visit = visit
        self.network, self.rule, self.ranks, self.budget = network, rule, rule.ranks, rule.budget
        self.trace, self.used = trace, used
        self.runs: tuple[tuple[int, ...], ...] = ()
        n = network.n
        self.pairs: list[tuple[int, int]] = [(lo, hi) for lo, hi in network.comparators.tolist()]
        # Each wire's comparators, the next one last, above a sentinel that is no comparator.
        self.queue: list[list[int]] = [[_DONE] for _ in range(n)]
        for index, pair in reversed(list(enumerate(self.pairs))):
            for wire in pair:
                self.queue[wire].append(index)
        self.done = np.zeros(network.size, dtype=bool)
        self.passed = 0
        self.component: dict[int, Component] = {}
        # What SAT was asked of, and whether it sorts.
        self.parts: dict[Network, bool] = {}
        # Why a join was not made, of the first one.
        self.unmade = ""
        self.joins: list[tuple[int, int]] = []
        self.peak = 0

    def _presorted(self, run: tuple[int, ...]) -> Component:
        """Return the component of a run: its patterns are the ascending ones."""
        size = len(run) + 1
        ones = np.resize(np.arange(size), -(-size // 8) * 8)
        rows = {
            wire: np.packbits(place >= len(run) - ones, bitorder="little") for place, wire in enumerate(run)
        }
        if self.trace:
            rows |= {self.network.n + wire: row.copy() for wire, row in rows.items()}
        return Component(rows, len(ones), (len(run) - ones).astype(np.int32), len(run))

    def run(self, runs: tuple[tuple[int, ...], ...]) -> None:
        """Start with a component a run, and join, cheapest product first.

        A component changes only when it is itself joined.

        Raises:
            _FailingError: some wire does not carry its rank.
        """
        self.runs = runs
        if len(self.ranks) == self.network.n:
            self._check_connected(runs)
        free = sorted(set(range(self.network.n)) - {wire for run in runs for wire in run})
        for run in (*runs, *((wire,) for wire in free if self._head(wire) == _DONE)):
            self._enter(self._advanced(self._presorted(run), self._plan(run)))
        for wire in free:
            if self._head(wire) != _DONE:
                rows = {wire: _EITHER} | ({self.network.n + wire: _EITHER} if self.trace else {})
                self._enter(Component(rows, 8, _EITHER_ZEROS, 1))
        for wire in list(self.component):
            self._note_join(wire)
        while self.joins:
            cost, index = heapq.heappop(self.joins)
            lo, hi = self.pairs[index]
            if self._is_join(index) and cost == self._cost(index):
                self._join(lo, hi)
                self.budget.progress.count("comparators", self.passed, self.network.size)
        if any(component.unseen for component in self.component.values()):
            raise BudgetError(self.unmade)

    def _check_connected(self, runs: tuple[tuple[int, ...], ...]) -> None:
        """Where all wires have ranks, two parts that never meet can hold the wrong share of zeros each."""
        graph = networkx.Graph(set(self.pairs))
        graph.add_nodes_from(range(self.network.n))
        for run in runs:
            networkx.add_path(graph, run)
        part = next(networkx.connected_components(graph))
        if len(part) < self.network.n:
            # With ones in the part alone it must carry the highest ranks; then zeros alone are wrong there.
            highest = all(self.ranks[wire] >= self.network.n - len(part) for wire in part)
            raise _FailingError(tuple(int((wire in part) != highest) for wire in range(self.network.n)))

    def _head(self, wire: int) -> int:
        return self.queue[wire][-1]

    def _ready(self, index: int) -> bool:
        if index == _DONE:
            return False
        lo, hi = self.pairs[index]
        return self.queue[lo][-1] == self.queue[hi][-1] == index

    def _is_join(self, index: int) -> bool:
        if not self._ready(index):
            return False
        lo, hi = self.pairs[index]
        return self.component[lo] is not self.component[hi]

    def _note_join(self, wire: int) -> None:
        index = self._head(wire)
        if self._is_join(index):
            heapq.heappush(self.joins, (self._cost(index), index))

    def _cost(self, index: int) -> int:
        lo, hi = self.pairs[index]
        return self.component[lo].count * self.component[hi].count

    def _plan(self, wires: tuple[int, ...] | list[int]) -> list[int]:
        """Take the comparators that are ready and inside some wires from the queues, in order."""
        inside, plan, stack = set(wires), [], list(wires)
        while stack:
            index = self._head(stack.pop())
            if self._ready(index) and inside.issuperset(self.pairs[index]):
                lo, hi = self.pairs[index]
                plan.append(index)
                self.done[index] = True
                self.queue[lo].pop()
                self.queue[hi].pop()
                stack += (lo, hi)
        self.passed += len(plan)
        return plan

    def _join(self, lo: int, hi: int) -> None:
        """Replace two components by what their product becomes."""
        a, b = self.component[lo], self.component[hi]
        why = self._why_unmade(a, b)
        if why is not None:
            self._join_unseen(a, b, why)
            return
        count = a.count * b.count
        self.peak = max(self.peak, count)
        plan = self._plan([wire for wire in (*a.rows, *b.rows) if wire < self.network.n])
        pieces: list[Component] = []
        merged = held = tried = 0
        for piece in products(a, b):
            self.budget.check()
            if self.visit is not None:
                self.visit(self._inputs_of(piece))
            pieces.append(self._advanced(piece, plan))
            held += pieces[-1].bytes
            tried += piece.count
            if tried < count:
                self.budget.progress.count(f"patterns of a join of {len(piece.rows):,} wires", tried, count)
            if held > max(_MERGED_BYTES, 2 * merged):
                pieces = [self._merged(pieces, held)]
                merged = held = pieces[0].bytes
        self._settle(self._merged(pieces, held))

    def _why_unmade(self, a: Component, b: Component) -> str | None:
        """Return why the product of two components is not worked out, None where it is."""
        if a.unseen or b.unseen:
            return self.unmade
        # Rows that carry inputs do not count, so that a failing input costs no more than a proof.
        wires = sum(wire < self.network.n for wire in (*a.rows, *b.rows))
        join = a.count * b.count, wires, a.inputs + b.inputs
        return self.rule.why(*join) if self.rule.refuses(*join) else None

    def _merged(self, pieces: list[Component], held: int) -> Component:
        """Return the distinct patterns of pieces, which take `held` bytes."""
        if self.rule.is_too_much(held):
            raise BudgetError(self.rule.why_too_much(held))
        return pieces[0] if len(pieces) == 1 else self._distinct(concatenated(pieces))

    def _inputs_of(self, component: Component) -> npt.NDArray[np.bool_]:
        """Return the inputs that the patterns of a component came from; on all other wires they are 1."""
        n = self.network.n
        inputs = np.ones((component.count, n), dtype=bool)
        for wire, row in component.rows.items():
            if wire >= n:
                inputs[:, wire - n] = np.unpackbits(row, bitorder="little")
        return inputs

    def _settle(self, joined: Component) -> None:
        self._enter(joined)
        for wire in joined.rows:
            if wire < self.network.n:
                self._note_join(wire)

    def _join_unseen(self, a: Component, b: Component, why: str) -> None:
        """Replace two components by one of unknown patterns, or of the ascending ones if it is sorted.

        Raises:
            BudgetError: forgotten wires or presorted inputs, or nothing but this component is left.
        """
        wires = sorted(wire for wire in (*a.rows, *b.rows) if wire < self.network.n)
        self.unmade = self.unmade or why
        if not (a.whole and b.whole) or len(wires) == self.network.n or self.runs:
            raise BudgetError(self.unmade)
        for index in self._plan(wires):
            if self.used is not None:
                self.used[index] = True
        order = self._order_of(wires)
        if order is None:
            rows: dict[int, Bits] = dict.fromkeys(wires, np.empty(0, np.uint8))
            unseen = Component(rows, sys.maxsize, np.empty(0, np.int32), len(wires), unseen=True)
            self._settle(unseen)
            return
        part = self._presorted(tuple(order))
        self._settle(self._advanced(part, []))

    def _order_of(self, wires: list[int]) -> list[int] | None:
        """Return the wires of a part in the order in which they always ascend, None if there is none."""
        place = {wire: index for index, wire in enumerate(wires)}
        done = [self.pairs[index] for index in np.flatnonzero(self.done)]
        inside = [(place[lo], place[hi]) for lo, hi in done if lo in place]
        part = Network.from_comparators(len(wires), inside)
        draw = np.random.default_rng(0)
        values = part.apply(draw.permuted(np.tile(np.arange(len(wires)), (_TRIALS, 1)), axis=1))
        if (values != values[0]).any():
            return None
        rank = values[0].tolist()
        named = Network.from_comparators(len(wires), [(rank[lo], rank[hi]) for lo, hi in inside])
        if named not in self.parts:
            answer = sat(question(named, sort(named.n), self.budget))
            self.parts[named] = answer is not None and answer.failing is None
        return [wires[index] for index in np.argsort(values[0])] if self.parts[named] else None

    def _enter(self, component: Component) -> None:
        for wire in component.rows:
            if wire < self.network.n:
                self.component[wire] = component

    def _advanced(self, component: Component, plan: list[int]) -> Component:
        """Return what comparators make of a component, which they use up, without repeats."""
        rows = component.rows
        spare = np.empty_like(next(iter(rows.values())))
        for index in plan:
            lo, hi = self.pairs[index]
            a, b = rows[lo], rows[hi]
            if self.used is not None and not self.used[index]:
                self.used[index] = (a & ~b).any()
            np.bitwise_and(a, b, out=spare)
            np.bitwise_or(a, b, out=b)
            rows[lo], spare = spare, a
        n = self.network.n
        if all(self._head(wire) == _DONE for wire in rows if wire < n):
            self._check(component)
        for wire in [wire for wire in rows if wire < n]:
            if self._head(wire) == _DONE and wire not in self.ranks:
                del rows[wire]
                component.whole = False
        return self._distinct(component)

    def _distinct(self, component: Component) -> Component:
        wires = [wire for wire in component.rows if wire < self.network.n]
        return distinct(component, wires, self.rule.most_zeros)

    def _check(self, component: Component) -> None:
        """Raise _FailingError if a wire of a finished component can carry what its rank forbids."""
        n = self.network.n
        rows = component.rows
        if len(self.ranks) == n and all(wire == rank for wire, rank in self.ranks.items()):
            for wire in range(n - 1):
                failing = rows[wire] & ~rows[wire + 1]
                if failing.any():
                    raise self._failing(component, failing, 0)
            return
        for wire in rows:
            if wire not in self.ranks:
                continue
            rank = self.ranks[wire]
            # Wrong zeros show if all other components hold ones, wrong ones if they hold zeros.
            few = np.packbits(component.zeros <= rank, bitorder="little")
            others = n - component.inputs
            many = np.packbits(component.zeros > rank - others, bitorder="little")
            for failing, fill in ((~rows[wire] & few, 1), (rows[wire] & many, 0)):
                if failing.any():
                    raise self._failing(component, failing, fill)

    def _failing(self, component: Component, failing: Bits, fill: int) -> _FailingError:
        if not self.trace:
            return _FailingError(None)
        pattern = int(np.unpackbits(failing, bitorder="little").argmax())
        n = self.network.n
        vector = [fill] * n
        for wire, row in component.rows.items():
            if wire >= n:
                vector[wire - n] = int(row[pattern >> 3] >> (pattern & 7) & 1)
        return _FailingError(tuple(vector))


def reachable_sets(asked: Question) -> Answer | None:
    """Decide by the 0-1 patterns that can be reached, a component of joined wires at a time."""
    outcome = search(asked)
    if outcome.failing is not None:
        return Answer(failing=outcome.failing, states=outcome.peak)
    what = "sorted" if asked.is_sort else "right"
    parts = f"; parts of {max(outcome.parts)} wires and fewer sort by SAT" if outcome.parts else ""
    return Answer(
        proved=f"every reachable 0-1 pattern is {what}; at most {outcome.peak:,} in a component{parts}",
        states=outcome.peak,
    )
