"""Exact verification by the reachable 0-1 patterns of each connected component of wires.

A component is a set of wires that comparators have joined so far. The search keeps the set of 0-1 patterns
that each component can hold; a comparator that joins two components multiplies their sets, piece by piece.
The cost is polynomial for networks that merge sorted parts: a sorted component of k wires has k + 1
patterns, so a bitonic or odd-even merge of n wires peaks at (n/2 + 1)² patterns. It is exponential for
networks that join wires before they are sorted (pairwise, odd-even transposition); these end at the budget.

The patterns of a component that has too many are not stored. Later comparators still extend it; when random
inputs come out of it sorted, SAT decides whether all do. If so, its patterns are the ascending ones. The
first search allows FEW_STATES patterns, because SAT settles most sorters sooner than larger joins. If that
search fails, a second one makes every join that memory and time allow, unless SAT can try the whole network
next.

If only some wires have ranks, other wires are forgotten once no comparator needs them, and each pattern
carries the number of zeros among its inputs. Outputs are monotone in the inputs, so a wire of rank r is right
if it is right for the inputs of r zeros and of r + 1. Patterns that cannot be part of such an input, for any
of the ranks, are left out.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.verify.patterns import Component, JoinRule, concatenated, distinct, product_count, products
from nsc.compiler.verify.proof import Vector
from nsc.compiler.verify.property import sort
from nsc.compiler.verify.question import Answer, BudgetError, Join, Question, in_place, question_of
from nsc.compiler.verify.sat import is_for, sat
from nsc.compiler.verify.zero_one import Bits

Visit = Callable[[npt.NDArray[np.bool_]], None]

# The most 0-1 patterns of a join in the first search; half a second for 64 wires.
FEW_STATES = 1 << 23
# Pieces of a join are merged once they take this many bytes, so that memory holds mostly distinct ones.
_MERGED_BYTES = 1 << 24
_DONE = -1
# The patterns of one wire, alternately 0 and 1, and their numbers of zeros.
_EITHER = np.array([0b10101010], dtype=np.uint8)
_EITHER_ZEROS = np.array([1, 0] * 4, dtype=np.int32)
# Random inputs that a part must sort before SAT is tried on it.
_TRIALS = 200


@dataclass(frozen=True)
class Outcome:
    """The outcome of a search.

    Attributes:
        failing: a failing 0-1 input or None.
        peak: number of patterns of the largest join.
        parts: number of wires of each distinct part that SAT proved to sort.
        joins: the joins, in their order.
    """

    failing: Vector | None
    peak: int
    parts: tuple[int, ...] = ()
    joins: tuple[Join, ...] = ()


def search(
    question: Question, used: npt.NDArray[np.bool_] | None = None, visit: Visit | None = None
) -> Outcome:
    """Return whether the wires carry their ranks, with a failing 0-1 input if they do not.

    Args:
        question: the question.
        used: (size,); if given, set to true for each comparator that exchanges a 1 and a 0.
        visit: if given, called with some thousands of 0-1 inputs at a time, (count, n); together they lead to
            every pattern before and after each comparator that joins two components.

    Raises:
        BudgetError: more patterns, memory or time than the budget allows.
    """
    budget = question.budget
    if budget.states is not None:
        return _search(question, used, visit, budget.states)
    try:
        return _search(question, used, visit, FEW_STATES)
    except BudgetError:
        budget.check()
        # SAT comes next, and takes less time. But its certificate takes hundreds of times as many bytes.
        is_left_to_sat = question.is_sort and is_for(question.network) and not budget.certify
        if visit is not None or is_left_to_sat:
            raise
    if used is not None:
        used[:] = False
    return _search(question, used, visit, None)


def _search(
    question: Question, used: npt.NDArray[np.bool_] | None, visit: Visit | None, states: int | None
) -> Outcome:
    """Search. states: as for `JoinRule`."""
    network, budget, runs = question.network, question.budget, question.runs
    rule = JoinRule(budget, states, network.n, question.ranks)
    state = _Search(network, rule, trace=visit is not None, used=used, visit=visit)
    try:
        state.run(runs)
        parts = tuple(part.n for part, sorts in state.parts.items() if sorts)
        return Outcome(None, state.peak, parts, tuple(state.made))
    except _FailingError:
        # Patterns do not hold the inputs that led to them; a second run traces these, in twice the memory.
        twice = replace(rule, budget=replace(budget, memory=2 * budget.memory))
        try:
            _Search(network, twice, trace=True).run(runs)
        except _FailingError as failing:
            return Outcome(failing.vector, state.peak)
        raise AssertionError("the same search found no failing pattern") from None


class _FailingError(Exception):
    """A wire does not carry its rank; holds a failing input if inputs are traced."""

    def __init__(self, vector: Vector | None) -> None:
        super().__init__()
        self.vector = vector


class _Search:
    """One run over the comparator graph; with `trace`, row n + w of a component holds the input of wire w."""

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
        # For each wire, a stack of its comparators with the next one on top, above the sentinel _DONE.
        self.queue: list[list[int]] = [[_DONE] for _ in range(n)]
        for index, pair in reversed(list(enumerate(self.pairs))):
            for wire in pair:
                self.queue[wire].append(index)
        self.done = np.zeros(network.size, dtype=bool)
        self.passed = 0
        self.component: dict[int, Component] = {}
        # Each part that SAT was tried on, and whether it is proved to sort.
        self.parts: dict[Network, bool] = {}
        # The reason of the first refused join.
        self.unmade = ""
        self.joins: list[tuple[int, int]] = []
        self.made: list[Join] = []
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
        """Start with a component for each run and other wire, and join them, the smallest product first."""
        self.runs = runs
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
            if self._is_join(index) and cost == self._cost(index):
                self._join(index)
                self.budget.progress.count("comparators", self.passed, self.network.size)
        if any(component.unseen for component in self.component.values()):
            raise BudgetError(self.unmade)

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
        """Remove from the queues, and return in order, the comparators among some wires that are ready."""
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

    def _join(self, index: int) -> None:
        """Replace two components by their product, after all comparators that are ready inside it."""
        lo, hi = self.pairs[index]
        a, b = self.component[lo], self.component[hi]
        needed = self.rule.needed(a.inputs + b.inputs)
        count = product_count(a, b, needed)
        # Rows of traced inputs do not count, so that a traced run makes the same joins.
        wires = sum(wire < self.network.n for wire in (*a.rows, *b.rows))
        why = self.unmade if a.unseen or b.unseen else self.rule.why_not(count, wires)
        if why is not None:
            self._join_unseen(a, b, why)
            return
        self.peak = max(self.peak, count)
        plan = self._plan([wire for wire in (*a.rows, *b.rows) if wire < self.network.n])
        pieces: list[Component] = []
        merged = held = tried = 0
        for piece in products(a, b, needed):
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
        joined = self._merged(pieces, held)
        self.made.append(Join(index, joined.different))
        self._settle(joined)

    def _merged(self, pieces: list[Component], held: int) -> Component:
        """Return the distinct patterns of pieces, which take `held` bytes."""
        self.rule.check_memory(held)
        return pieces[0] if len(pieces) == 1 else self._distinct(concatenated(pieces))

    def _inputs_of(self, component: Component) -> npt.NDArray[np.bool_]:
        """Return the input that led to each pattern of a component; it is 1 on all other wires."""
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
        """Replace two components by an unseen one, or by ascending patterns if SAT proves that it sorts."""
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
        """Return the wires of a part in the order in which SAT proves them to ascend; None if it does not."""
        place = {wire: index for index, wire in enumerate(wires)}
        done = [self.pairs[index] for index in np.flatnonzero(self.done)]
        inside = [(place[lo], place[hi]) for lo, hi in done if lo in place]
        part = Network.from_comparators(len(wires), inside)
        generator = np.random.default_rng(0)
        values = part.apply(generator.permuted(np.tile(np.arange(len(wires)), (_TRIALS, 1)), axis=1))
        if (values != values[0]).any():
            return None
        rank = values[0].tolist()
        renamed = Network.from_comparators(len(wires), [(rank[lo], rank[hi]) for lo, hi in inside])
        if renamed not in self.parts:
            if self.budget.certify:
                return None
            answer = sat(question_of(renamed, sort(renamed.n), self.budget))
            self.parts[renamed] = answer is not None and answer.failing is None
        return [wires[index] for index in np.argsort(values[0])] if self.parts[renamed] else None

    def _enter(self, component: Component) -> None:
        for wire in component.rows:
            if wire < self.network.n:
                self.component[wire] = component

    def _advanced(self, component: Component, plan: list[int]) -> Component:
        """Apply comparators to a component, which is consumed, and return its distinct patterns."""
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
        return distinct(component, wires, self.rule.needed(component.inputs))

    def _check(self, component: Component) -> None:
        """Raise _FailingError if a wire of a finished component can carry a value that its rank forbids."""
        n = self.network.n
        rows = component.rows
        if len(self.ranks) == component.inputs == n and in_place(self.ranks):
            for wire in range(n - 1):
                failing = rows[wire] & ~rows[wire + 1]
                if failing.any():
                    raise self._failing(component, failing, 0)
            return
        for wire in rows:
            if wire not in self.ranks:
                continue
            span = self.ranks[wire]
            # A wrong 0 shows if all other components hold ones, a wrong 1 if they hold zeros.
            few = np.packbits(component.zeros <= span.start, bitorder="little")
            others = n - component.inputs
            many = np.packbits(component.zeros >= span.stop - others, bitorder="little")
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


def reachable_sets(question: Question) -> Answer | None:
    """Decide by the reachable 0-1 patterns of each component of joined wires."""
    outcome = search(question)
    if outcome.failing is not None:
        return Answer(failing=outcome.failing, states=outcome.peak)
    verdict = "sorted" if question.is_sort else "right"
    parts = f"; parts of {max(outcome.parts)} wires and fewer sort by SAT" if outcome.parts else ""
    return Answer(
        proved=f"every reachable 0-1 pattern is {verdict}; at most {outcome.peak:,} in a component{parts}",
        states=outcome.peak,
        steps=outcome.joins,
    )
