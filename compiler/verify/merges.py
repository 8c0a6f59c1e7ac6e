"""Merges: networks that sort parts and merge them, told from their comparators.

A run is a list of wires whose values ascend. In the beginning each wire is a run. Two runs become one if the
next comparators on their wires are those of a merging network, in an order that every wire keeps.

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

from nsc.compiler.network import Network
from nsc.compiler.verify.answer import Answer, Inside, Merge, Step
from nsc.compiler.verify.question import Question
from nsc.wording import count

Wires = npt.NDArray[np.int64]
# Runs of one length are the rows of an array.
Runs = npt.NDArray[np.int64]


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
            The wires of the minima, those of the maxima, and of which rows these were the next comparators.
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


# A merging network: takes the comparators of two runs of wires, row by row. Returns the wires in the order of
# what comes out, and of which rows all comparators were there.
Merger = Callable[[Following, Runs, Runs], tuple[Runs, npt.NDArray[np.bool_]]]


def _bitonic(following: Following, a: Runs, b: Runs) -> tuple[Runs, npt.NDArray[np.bool_]]:
    """Merge two runs of 2^k wires by half-cleaners.

    One run and the other one backwards are a bitonic sequence. A half-cleaner compares its two halves, entry
    by entry; the minima and the maxima are bitonic, and no minimum is above a maximum. Source: Batcher 1968;
    Knuth 5.3.4, theorem on bitonic sorters and exercise 10.
    """
    length = a.shape[1]
    fits = np.full(len(a), length == b.shape[1] and length & (length - 1) == 0)
    if not fits.any():
        return np.concatenate([a, b], axis=1), fits
    sequences = np.concatenate([a, b[:, ::-1]], axis=1)
    while sequences.shape[1] > 1:
        half = sequences.shape[1] // 2
        low, high, is_next = following.compare(sequences[:, :half], sequences[:, half:])
        fits &= is_next.reshape(len(a), -1).all(axis=1)
        sequences = np.stack([low, high], axis=1).reshape(-1, half)
    return sequences.reshape(len(a), -1), fits


def _odd_even(following: Following, a: Runs, b: Runs) -> tuple[Runs, npt.NDArray[np.bool_]]:
    """Merge two runs of any length by Batcher's odd-even merge.

    The entries at even places of both runs are merged to v, those at odd places to w. Then the result is
    v[0], and for each i the minimum and the maximum of w[i] and v[i + 1]. Source: Batcher 1968; Knuth 5.3.4.
    """
    if not a.shape[1] or not b.shape[1]:
        return np.concatenate([a, b], axis=1), np.ones(len(a), bool)
    if a.shape[1] == b.shape[1] == 1:
        low, high, fits = following.compare(a, b)
        return np.concatenate([low, high], axis=1), fits
    v, fits_even = _odd_even(following, a[:, ::2], b[:, ::2])
    w, fits_odd = _odd_even(following, a[:, 1::2], b[:, 1::2])
    pairs = min(w.shape[1], v.shape[1] - 1)
    low, high, fits = following.compare(w[:, :pairs], v[:, 1 : pairs + 1])
    between = np.stack([low, high], axis=2).reshape(len(a), 2 * pairs)
    rest = (v[:, :1], between, v[:, pairs + 1 :], w[:, pairs:])
    return np.concatenate(rest, axis=1), fits & fits_even & fits_odd


MERGERS: dict[str, Merger] = {"bitonic": _bitonic, "odd-even": _odd_even}


# What fills runs up, in the order in which merges are looked for: nothing, ∞ behind, -∞ in front of them.
_FILLS = (0, 1, -1)


def merges(question: Question) -> Answer | None:
    """Prove a network that merges runs until all wires are in one.

    What it cannot match it does not decide. Comparators behind the last merge do nothing.

    Cost: O(size · log n) operations on arrays, at most for each of MERGERS and each fill.
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
    """Take the comparators of merges of a run with infinite values alone; return whether there were any.

    They compare wires of the run, so they do nothing. They are added to the steps.
    """
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
    """Merge two runs as they are, or filled up to 2^k wires each; return the wires, and of which rows."""
    if not fill:
        return merger(following, a, b)
    length = 1 << (max(a.shape[1], b.shape[1]) - 1).bit_length()
    result, fits = merger(following, *(_filled(run, length, fill, following.n) for run in (a, b)))
    wires = a.shape[1] + b.shape[1]
    return result[:, :wires] if fill > 0 else result[:, 2 * length - wires :], fits


def _filled(run: Runs, length: int, fill: int, n: int) -> Runs:
    """Return runs with infinite values behind them (fill 1) or in front of them (fill -1)."""
    missing = length - run.shape[1]
    at = (0, missing) if fill > 0 else (missing, 0)
    return np.pad(run, ((0, 0), at), constant_values=n if fill > 0 else -1)
