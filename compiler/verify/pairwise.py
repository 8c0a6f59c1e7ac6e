"""Pairwise networks: networks that sort the minima and the maxima of pairs alike, and then merge them."""

from __future__ import annotations

import numpy as np

from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.merges import Following, Runs
from nsc.compiler.verify.question import Question
from nsc.wording import count


def pairwise(question: Question) -> Answer | None:
    """Prove a network that sorts as Parberry's pairwise network does.

    What it cannot match it does not decide. Comparators behind the last merge do nothing. Certificates hold
    no such proofs.

    The wires are one row of an array. They are compared in pairs, and the row is parted in two: one of the
    minima, one of the maxima, and ∞ where a wire is in no pair. Both rows are parted again, by the same
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
        merged = _merged(following, *np.split(rows, 2))
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


def _merged(following: Following, a: Runs, b: Runs) -> Runs | None:
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
