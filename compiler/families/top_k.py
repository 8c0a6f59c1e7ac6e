"""Constructions for the k largest values: sorted parts, and merges that keep the k largest of two.

A construction does not move the values it keeps to certain wires: beside its comparators it returns the
wires that carry them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from nsc.compiler.families.best import Comparator, best
from nsc.compiler.families.best import merge as odd_even
from nsc.compiler.families.lists import known
from nsc.compiler.network import Network
from nsc.compiler.passes import half_operations, restrict

# Comparators in order, and the wires that carry the values it keeps, ascending.
Construction = tuple[list[Comparator], list[int]]
# Two ascending lists of wires and k to the comparators that merge them, keeping the k largest.
MergeFunction = Callable[[Sequence[int], Sequence[int], int], Construction]

# For more of the largest values than these hardly any known sorter is wide enough to gain by a cut.
MOST_CUT = 32
# Wider parts would save up to 6 % more, but have too many 0-1 patterns to be proved within seconds.
MOST_PART = 40
_NONE = 1 << 40


def _tree(merge: MergeFunction, n: int, k: int) -> Construction:
    """Sort blocks of k wires and merge two at a time.

    Source: the half-cleaner of two sorted lists, Batcher 1968.
    """
    blocks = _blocks(n, k)
    pairs = [pair for block in blocks for pair in _sorted(block)]
    while len(blocks) > 1:
        merged = []
        for a, b in zip(blocks[::2], blocks[1::2], strict=False):
            more, out = merge(a, b, k)
            pairs += more
            merged.append(out)
        blocks = merged + ([blocks[-1]] if len(blocks) % 2 else [])
    return pairs, blocks[0]


def _left_fold(merge: MergeFunction, n: int, k: int) -> Construction:
    """Sort blocks of k wires one by one, and merge each into the k largest so far: 2k live wires."""
    kept, *blocks = _blocks(n, k)
    pairs = _sorted(kept)
    for block in blocks:
        more, kept = merge(kept, block, k)
        pairs += [*_sorted(block), *more]
    return pairs, kept


def _blocks(n: int, k: int) -> list[list[int]]:
    return [list(range(start, min(start + k, n))) for start in range(0, n, k)]


def _sorted(block: Sequence[int]) -> list[Comparator]:
    return [(block[lo], block[hi]) for lo, hi in best(len(block)).comparators.tolist()]


def _bitonic_merge(a: Sequence[int], b: Sequence[int], k: int) -> Construction:
    """Keep the larger value of each wire and its mirror in the other list, then sort this bitonic sequence.

    Both lists are filled up with -inf below, the bitonic list with +inf above; neither is compared.
    """
    if len(a) + len(b) < k:
        return _odd_even_merge(a, b, k)
    missing = [-1]
    first, second = missing * (k - len(a)) + list(a), missing * (k - len(b)) + list(b)
    pairs, valley = [], []
    for x, y in zip(first, reversed(second), strict=True):
        if x >= 0 and y >= 0:
            pairs.append((y, x))
        valley.append(x if x >= 0 else y)
    power = 1 << (k - 1).bit_length()
    row = valley + missing * (power - k)
    distance = power // 2
    while distance:
        for low in range(power):
            if low & distance == 0 and row[low + distance] >= 0:
                pairs.append((row[low], row[low + distance]))
        distance //= 2
    return pairs, row[:k]


def _odd_even_merge(a: Sequence[int], b: Sequence[int], k: int) -> Construction:
    """Merge by Batcher's odd-even merge upside down, where the largest values come first."""
    pairs, descending = odd_even(b[::-1], a[::-1])
    return [(lo, hi) for hi, lo in pairs], descending[::-1][-k:]


MERGES: dict[str, MergeFunction] = {"bitonic": _bitonic_merge, "odd-even": _odd_even_merge}


def cut_and_merged(n: int, k: int, kinds: tuple[str, ...]) -> Construction:
    """Return comparators for the k largest of n values, at most MOST_CUT, and the wires that carry them.

    The wires are cut in two, and the parts are cut again, until each part is a known network of at most
    MOST_PART wires, pruned to its k largest values. Every cut is the one that leads to the fewest half
    operations; among equal cuts, the most even one, which is the shallowest. Cost: O(n²) for the cuts.

    Args:
        n, k: the numbers of values.
        kinds: of the known networks: sort, and those that select the k largest.

    >>> len(cut_and_merged(1024, 8, ("sort",))[0]) < 4972  # merged blocks of 8 take 4972
    True
    """
    return _cut(range(n), k, kinds, _cuts(n, k, kinds))


def _cut(wires: Sequence[int], k: int, kinds: tuple[str, ...], cuts: list[int]) -> Construction:
    n = len(wires)
    if cuts[n] == 0:
        pairs = _part(n, k, kinds).comparators.tolist() if n > 1 else []
        return [(wires[lo], wires[hi]) for lo, hi in pairs], list(wires[-k:])
    first, a = _cut(wires[: cuts[n]], k, kinds, cuts)
    second, b = _cut(wires[cuts[n] :], k, kinds, cuts)
    merge = MERGES[_merge_cost(len(a), len(b), k)[1]]
    pairs, kept = merge(a, b, k)
    return [*first, *second, *pairs], kept


@cache
def _cuts(n: int, k: int, kinds: tuple[str, ...]) -> list[int]:
    """Return for every number of wires up to n where they are cut; 0: not at all."""
    cost, cuts = np.zeros(n + 1, dtype=np.int64), [0] * (n + 1)
    for whole in range(2, n + 1):
        least, cut = _NONE, 0
        if whole in known("sort") and (whole <= MOST_PART or whole == n):
            least = half_operations(_part(whole, k, kinds), range(max(0, whole - k), whole))
        for part in range(1, min(k, whole - k + 1)):
            sum_ = int(cost[part] + cost[whole - part]) + _merge_cost(part, k, k)[0]
            if sum_ < least:
                least, cut = sum_, part
        parts = np.arange(k, whole // 2 + 1)
        if len(parts):
            sums = cost[parts] + cost[whole - parts] + _merge_cost(k, k, k)[0]
            part = int(parts[sums == sums.min()][-1])
            if sums.min() < least or (sums.min() == least and cut):
                least, cut = int(sums.min()), part
        cost[whole], cuts[whole] = least, cut
    return cuts


@cache
def _part(n: int, k: int, kinds: tuple[str, ...]) -> Network:
    """Return a known network of n wires or more, pruned to the k largest of n, of fewest half operations.

    The lowest wires of a wider one carry -inf, which stays there: their comparators do nothing.
    """
    outputs = range(max(0, n - k), n)
    pruned = [restrict(network, outputs) for kind in kinds for network in known(kind).get(n, [])]
    if n + 1 in known("sort"):
        wider = _part(n + 1, k, kinds).comparators
        higher = Network.from_comparators(n, wider[wider.min(axis=1) > 0] - 1)
        pruned.append(restrict(higher, outputs))
    return min(pruned, key=lambda network: (half_operations(network, outputs), network.depth))


@cache
def _merge_cost(p: int, q: int, k: int) -> tuple[int, str]:
    """Return the half operations of the cheaper merge of p and q wires that keeps k, and its name."""

    def cost(name: str) -> int:
        pairs, kept = MERGES[name](range(p), range(p, p + q), k)
        return half_operations(Network.from_comparators(p + q, pairs), kept)

    return min((cost(name), name) for name in MERGES)


# Construction to the function of n and k.
BLOCK_MERGES: dict[str, Callable[[int, int], Construction]] = {
    f"{how} of {what} merges": partial(combine, merge)
    for how, combine in {"tree": _tree, "left fold": _left_fold}.items()
    for what, merge in MERGES.items()
}
