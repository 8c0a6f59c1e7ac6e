"""Merges: networks that sort parts and merge them, and pairwise ones, told from their comparators.

A run is a list of wires whose values ascend. In the beginning each wire is a run. Two runs become one if the
next comparators on their wires form a merging network, in an order that every wire keeps.

A merging network of 2^k wires may lack some wires: those where one run would hold ∞ at its end or -∞ at its
beginning. A run then has a number there that no wire has, the number of wires for ∞ and -1 for -∞, and the
comparators that would meet it are not there.

A network in standard form leaves ascending values as they are. So the wires of a run ascend in number too,
and a comparator of two wires of a run does nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from nsc.compiler.families.classic import Compare, Runs
from nsc.compiler.families.classic import merged as merged_odd_even
from nsc.compiler.network import Network
from nsc.compiler.verify.question import Answer, Inside, Merge, Question, Step
from nsc.wording import count

Wires = npt.NDArray[np.int64]


class Following:
    """The next comparator of each wire of a network in standard form."""

    def __init__(self, network: Network) -> None:
        self.n = network.n
        pairs = network.comparators.astype(np.int64)
        wires = pairs.ravel()
        order = np.argsort(wires, kind="stable")
        counts = np.bincount(wires, minlength=network.n)
        # Behind the last comparator of a wire stands a number that no other wire has.
        starts = np.cumsum(counts + 1) - (counts + 1)
        self._last = starts + counts
        self._comparators = np.empty(2 * len(pairs) + network.n, np.int64)
        self._comparators[self._last] = -1 - np.arange(network.n)
        places = np.arange(2 * len(pairs)) + np.repeat(np.arange(network.n), counts)
        self._comparators[places] = order // 2
        self._partners = pairs
        self.place = starts

    def partners(self, wires: Wires) -> Wires:
        """Return the wire that each wire is compared with next; -1 for none."""
        comparators = self._comparators[self.place[wires]]
        pairs = self._partners[np.maximum(comparators, 0)]
        partners = np.where(pairs[:, 0] == wires, pairs[:, 1], pairs[:, 0])
        return np.where(comparators < 0, -1, partners)

    def ready_partners(self, wires: Wires) -> Wires:
        """Return the wire that each wire is compared with next, if it is the next one of both; else -1."""
        partners = self.partners(wires)
        comparators = self._comparators[self.place]
        return np.where((partners >= 0) & (comparators[partners] == comparators[wires]), partners, -1)

    def taken(self, wires: Wires, before: Wires) -> list[int]:
        """Return the comparators that wires have taken since they were at other places."""
        spans = zip(before, self.place[wires], strict=True)
        return sorted({int(each) for start, end in spans for each in self._comparators[start:end]})

    def compare(self, a: Runs, b: Runs) -> tuple[Runs, Runs, npt.NDArray[np.bool_]]:
        """Take the comparators of wires a and b, entry by entry.

        Returns:
            The wires of the minima, the wires of the maxima, and for each row whether these were the next
            comparators.
        """
        # The network is in standard form: a minimum goes to the wire of the smaller number.
        low, high = np.minimum(a, b), np.maximum(a, b)
        are_wires = (low >= 0) & (high < self.n)
        lows, highs = low[are_wires], high[are_wires]
        is_next = np.ones(a.shape, bool)
        is_next[are_wires] = self._comparators[self.place[lows]] == self._comparators[self.place[highs]]
        for wires in (lows, highs):
            self.place[wires] = np.minimum(self.place[wires] + 1, self._last[wires])
        fits: npt.NDArray[np.bool_] = np.logical_and.reduce(is_next, axis=1)
        return low, high, fits


# A merging network: compares two runs of wires, row by row, and returns the wires in the order of the
# outputs; None if it does not merge runs of these lengths.
Merger = Callable[[Compare, Runs, Runs], "Runs | None"]


def _bitonic(compare: Compare, a: Runs, b: Runs) -> Runs | None:
    """Merge two runs of 2^k wires by half-cleaners.

    One run and the other one backwards are a bitonic sequence. A half-cleaner compares its two halves, entry
    by entry; the minima and the maxima are bitonic, and no minimum is above a maximum. Source: Batcher 1968;
    Knuth 5.3.4, theorem on bitonic sorters and exercise 10.
    """
    length = a.shape[1]
    if length != b.shape[1] or length & (length - 1):
        return None
    sequences = np.concatenate([a, b[:, ::-1]], axis=1)
    while sequences.shape[1] > 1:
        half = sequences.shape[1] // 2
        low, high = compare(sequences[:, :half], sequences[:, half:])
        sequences = np.stack([low, high], axis=1).reshape(-1, half)
    return sequences.reshape(len(a), -1)


MERGERS: dict[str, Merger] = {"bitonic": _bitonic, "odd-even": merged_odd_even}


# Merges are looked for with runs filled up in three ways, in this order: nothing, ∞ behind, -∞ in front.
_FILLS = (0, 1, -1)


def merges(question: Question) -> Answer | None:
    """Prove a network that merges runs until all wires are in one.

    A network that it cannot match it leaves undecided. Comparators behind the last merge do nothing.

    Cost: O(size · log n) operations on arrays, at most for every merger and every fill.
    """
    network = question.network
    ascend = all(list(run) == sorted(run) for run in question.runs)
    if not (question.is_sort and ascend and network.size):
        return None
    following, steps = Following(network), list[Step]()
    in_runs = {wire for run in question.runs for wire in run}
    runs = [*question.runs, *((wire,) for wire in range(network.n) if wire not in in_runs)]
    rows = [np.array(run, np.int64) for run in runs]
    while len(rows) > 1:
        question.budget.check()
        merged = list(_merged(following, rows, steps))
        if len(merged) == len(rows) and not _takes_merges_with_nothing(following, rows, steps):
            return None
        rows = merged
    assert (rows[0] == np.arange(network.n)).all()
    used = Counter(step.network for step in steps if isinstance(step, Merge))
    by = ", ".join(f"{used[name]:,} by {name} merges" for name in MERGERS if used[name])
    return Answer(proved=f"{count(sum(used.values()), 'merge')} of sorted wires: {by}", steps=tuple(steps))


def _merged(following: Following, rows: list[Wires], steps: list[Step]) -> Iterator[Wires]:
    """Merge the pairs of runs that can be merged, each run once; yield all runs, and add the steps."""
    run_of = np.empty(following.n, np.int64)
    for number, row in enumerate(rows):
        run_of[row] = number
    partners = following.partners(np.array([row[0] for row in rows]))
    partner = np.where(partners < 0, -1, run_of[partners])
    pairs = defaultdict(list)
    for number, row in enumerate(rows):
        other = int(partner[number])
        if other < 0 or other == number or partner[other] != number:
            yield row
        elif number < other:
            pairs[len(row), len(rows[other])].append((row, rows[other]))
    for group in pairs.values():
        a, b = (np.array([pair[k] for pair in group]) for k in (0, 1))
        for fill, name in product(_FILLS, MERGERS):
            if not len(a):
                break
            before = following.place.copy()
            result, fits = _merge(following, MERGERS[name], a, b, fill)
            for wires in (a[~fits], b[~fits]):
                following.place[wires] = before[wires]
            heads = zip(a[fits, 0].tolist(), b[fits, 0].tolist(), strict=True)
            steps += (Merge(name, fill, *pair) for pair in heads)
            yield from result[fits]
            a, b = a[~fits], b[~fits]
        yield from a
        yield from b


def _takes_merges_with_nothing(following: Following, rows: list[Wires], steps: list[Step]) -> bool:
    """Take comparators of merges of a run with ∞ or -∞ alone, which do nothing; return if there were any."""
    known = len(steps)
    by_length = defaultdict(list)
    for row in rows:
        by_length[len(row)].append(row)
    for group in by_length.values():
        runs = np.array(group)
        nothing = np.empty((len(runs), 0), np.int64)
        for fill, name in product(_FILLS[1:], MERGERS):
            before = following.place[runs]
            _, fits = _merge(following, MERGERS[name], runs, nothing, fill)
            following.place[runs[~fits]] = before[~fits]
            for number in np.flatnonzero((following.place[runs] != before).any(axis=1)):
                steps += map(Inside, following.taken(runs[number], before[number]))
    return len(steps) > known


def _merge(
    following: Following, merger: Merger, a: Runs, b: Runs, fill: int
) -> tuple[Runs, npt.NDArray[np.bool_]]:
    """Merge runs as they are or filled up; return the wires in order, and whose comparators came next."""
    fits = np.ones(len(a), bool)

    def compare(low: Runs, high: Runs) -> tuple[Runs, Runs]:
        low, high, is_next = following.compare(low, high)
        np.logical_and(fits, is_next.reshape(len(fits), -1).all(axis=1), out=fits)
        return low, high

    wires = a.shape[1] + b.shape[1]
    if fill:
        length = 1 << (max(a.shape[1], b.shape[1]) - 1).bit_length()
        a, b = (_filled(run, length, fill, following.n) for run in (a, b))
    result = merger(compare, a, b)
    if result is None:
        return a, np.zeros(len(a), bool)
    return (result[:, :wires] if fill >= 0 else result[:, -wires:]), fits


def _filled(run: Runs, length: int, fill: int, n: int) -> Runs:
    """Return runs with infinite values behind them (fill 1) or in front of them (fill -1)."""
    missing = length - run.shape[1]
    at = (0, missing) if fill > 0 else (missing, 0)
    return np.pad(run, ((0, 0), at), constant_values=n if fill > 0 else -1)


def pairwise(question: Question) -> Answer | None:
    """Prove a network that sorts as Parberry's pairwise network does.

    A network that it cannot match it leaves undecided. Comparators behind the last merge do nothing.
    Certificates hold no such proofs.

    The wires are one row of an array. They are compared in pairs, and the row is parted in two: a row of the
    minima and a row of the maxima, with ∞ where a wire is in no pair. Both rows are parted again, by the same
    places, until rows have one wire. Then rows are merged, in the opposite order. Each comparator of a row
    has a counterpart in the other one, at the same places. So each value of the one stays no larger than its
    counterpart in the other, and before rows are merged both ascend.

    Cost: O(log² n) operations on arrays.

    Source: Parberry, The pairwise sorting network, Parallel Processing Letters 2, 1992.
    """
    network = question.network
    if question.runs or not question.is_sort or not network.size or question.budget.certify:
        return None
    following = Following(network)
    rows: Runs = np.arange(network.n)[None]
    while rows.shape[1] > 1:
        question.budget.check()
        parted = _parted(following, rows)
        if parted is None:
            return None
        rows = parted
    levels = len(rows).bit_length() - 1
    while len(rows) > 1:
        question.budget.check()
        merged = _merged_alike(following, *np.split(rows, 2))
        if merged is None:
            return None
        rows = merged
    assert (rows[0, : network.n] == np.arange(network.n)).all()
    times = count(levels, "time")
    return Answer(proved=f"wires are compared in pairs {times}, then minima merged with maxima as often")


def _parted(following: Following, rows: Runs) -> Runs | None:
    """Compare the wires of rows in pairs; return the minima and, behind all of them, the maxima.

    The pairs are those that the wires of the first row are compared in next. It has no ∞.
    """
    first = rows[0]
    place = np.full(following.n + 1, -1)
    place[first] = np.arange(len(first))
    partners = following.ready_partners(first)
    other = np.where(partners < 0, -1, place[partners])
    low = np.flatnonzero((other < 0) | (first < partners))
    if len(low) == len(first):
        return None
    # A wire in no pair is compared with ∞.
    infinite = np.full((len(rows), 1), following.n)
    high = np.where(other[low] < 0, len(first), other[low])
    minima, maxima, fits = following.compare(rows[:, low], np.concatenate([rows, infinite], axis=1)[:, high])
    return np.concatenate([minima, maxima]) if fits.all() else None


def _merged_alike(following: Following, a: Runs, b: Runs) -> Runs | None:
    """Merge rows that ascend, where each value of a is no larger than its counterpart in b.

    Their length is a power of two. Let a have d zeros more than b. Comparing b[i] with a[i + h] for all i
    does nothing if d ≤ h. Else it moves d - h zeros from a to b, and 2h - d < h is left. So 0 ≤ d ≤ 2h before
    leads to 0 ≤ d ≤ h behind. The first h is half of the length, and the last is 1. Then a[0], b[0], a[1],
    b[1], … ascend.
    """
    distance = a.shape[1] // 2
    while distance:
        low, high, fits = following.compare(b[:, :-distance], a[:, distance:])
        if not fits.all():
            return None
        b, a = (
            np.concatenate([low, b[:, -distance:]], axis=1),
            np.concatenate([a[:, :distance], high], axis=1),
        )
        distance //= 2
    return np.stack([a, b], axis=2).reshape(len(a), -1)
