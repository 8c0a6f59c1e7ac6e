"""The smallest and the shallowest sorting networks that nsc knows or can construct."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from nsc.compiler.families.classic import Recorded, Runs, merged
from nsc.compiler.families.lists import known
from nsc.compiler.network import Comparators, Network, check_wires
from nsc.compiler.passes import untangle

# (lo, hi): the wire that takes the minimum, and the one that takes the maximum.
Comparator = tuple[int, int]
# Where larger networks are cut in two, the lower part is a multiple of one of these.
CUTS = (1, 2, 4, 8, 16, 32, 64)


def best(n: int) -> Network:
    """Return the smallest sorting network on n wires that nsc knows or can construct.

    Up to 64 wires the smallest that is known; beyond, two of these merged by Batcher's odd-even
    merge, cut where the sum is least of the cuts near the middle.

    Raises:
        NetworkError: n < 1 or above the supported number of wires.

    Source: `known("sort")`; Batcher 1968.

    >>> best(16).size, best(16).depth
    (60, 10)
    """
    n = check_wires(n)
    return _network(n, _sorter(n, is_shallow=False))


def shallowest(n: int) -> Network:
    """Return the sorting network of fewest layers on n wires that nsc knows or can construct.

    Up to 64 wires the shallowest that is known, of these the smallest; beyond, the two halves merged.

    Raises:
        NetworkError: n < 1 or above the supported number of wires.

    Source: as `best`.

    >>> shallowest(16).size, shallowest(16).depth
    (61, 9)
    """
    n = check_wires(n)
    return _network(n, _sorter(n, is_shallow=True))


def merge(a: Sequence[int], b: Sequence[int]) -> tuple[list[Comparator], list[int]]:
    """Return comparators that merge two ascending lists of wires, and the wires in ascending order then.

    Source: Batcher's odd-even merge for any two lengths, Knuth 5.3.4.

    >>> merge([0, 1], [2, 3])
    ([(0, 2), (1, 3), (1, 2)], [0, 1, 2, 3])
    """
    wires, (pairs, order) = np.array([*a, *b], np.int64), _merge(len(a), len(b))
    return [(lo, hi) for lo, hi in wires[pairs].tolist()], wires[order].tolist()


@lru_cache
def _merge(p: int, q: int) -> tuple[Comparators, Runs]:
    """Return what `merge` does to wires 0 … p - 1 and p … p + q - 1, as arrays."""
    recorded = Recorded()
    wires = np.arange(p + q)[None]
    (order,) = merged(recorded.compare, wires[:, :p], wires[:, p:])
    return recorded.pairs(), order


@cache
def merge_size(p: int, q: int) -> int:
    """Return the number of comparators of `merge` for p and q wires."""
    if p > q:
        return merge_size(q, p)
    if p == 0:
        return 0
    if q == 1:
        return 1
    return merge_size(-(-p // 2), -(-q // 2)) + merge_size(p // 2, q // 2) + (p + q - 1) // 2


@cache
def _sorter(n: int, is_shallow: bool) -> Comparators:
    """Return the comparators of the smallest or the shallowest sorter; wire k carries rank k."""
    if n in known("sort"):
        return known("sort")[n][-1 if is_shallow else 0].comparators
    if n == 1:
        return np.empty((0, 2), np.int64)
    cut = n // 2 if is_shallow else _cut(n)
    pairs, order = _merge(cut, n - cut)
    parts = _sorter(cut, is_shallow), _sorter(n - cut, is_shallow) + cut
    ranked: Comparators = np.argsort(order)[np.concatenate([*parts, pairs])]
    return ranked


@cache
def _size(n: int) -> int:
    if n in known("sort"):
        return known("sort")[n][0].size
    return _cut_size(n, _cut(n)) if n > 1 else 0


@cache
def _cut(n: int) -> int:
    cuts = {n // 2 // unit * unit for unit in CUTS} - {0}
    return min(cuts, key=lambda cut: (_cut_size(n, cut), n - cut))


def _cut_size(n: int, cut: int) -> int:
    return _size(cut) + _size(n - cut) + merge_size(cut, n - cut)


def _network(n: int, pairs: Comparators) -> Network:
    """Return the network in standard form, which a network that sorts has without moving its outputs."""
    standard, outputs = untangle(Network.from_comparators(n, pairs))
    assert (outputs == np.arange(n)).all()
    return standard
