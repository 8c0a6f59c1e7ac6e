"""Merging: the cheapest network for some ranks of two ascending lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from nsc.compiler.families import MERGES, Comparator, best
from nsc.compiler.network import Network
from nsc.compiler.passes import half_operations, restrict


@dataclass(frozen=True)
class Merge:
    """Comparators for some ranks of two lists, the first on wires 0 … p - 1, the second on p … p + q - 1.

    Attributes:
        network: the comparators that the ranks depend on.
        outputs: the wire of each rank.
        used: the wires whose values the ranks depend on, ascending.
        half_operations: minima and maxima that the ranks depend on.
    """

    network: Network
    outputs: tuple[int, ...]
    used: tuple[int, ...]
    half_operations: int


@cache
def merged(p: int, q: int, ranks: tuple[int, ...]) -> Merge:
    """Return the cheapest of the merges that nsc can construct for some ranks, ascending, of two lists.

    Values that are too small or too large for any of the ranks are left out. The others are merged by
    odd-even or bitonic merges of the largest or the smallest values; for a single rank the best is one
    minimum or maximum for each value, and a tree.

    Source: Batcher 1968; for one rank Knuth 5.3.4, the first step of a bitonic merge.

    >>> merged(5, 5, tuple(range(10))).network.size, merged(42, 7, (24,)).half_operations
    (13, 14)
    """
    lowest, highest = ranks[0], ranks[-1]
    first = range(max(0, lowest - q), min(p, highest + 1))
    second = range(p + max(0, lowest - p), p + min(q, highest + 1))
    below = first.start + second.start - p
    wanted = [rank - below for rank in ranks]
    built = [_built(p + q, pairs, outputs) for pairs, outputs in _candidates([*first], [*second], wanted)]
    return min(built, key=lambda merge: (merge.half_operations, merge.network.size, merge.network.depth))


@cache
def selected(n: int, ranks: tuple[int, ...]) -> Merge:
    """Return the network for some ranks of values in any order: the best sorting network, restricted."""
    network = restrict(best(n), ranks)
    return Merge(network, ranks, tuple(range(n)), half_operations(network, ranks))


def _built(n: int, pairs: Sequence[Comparator], outputs: Sequence[int]) -> Merge:
    network = restrict(Network.from_comparators(n, pairs), outputs)
    used = sorted({*outputs, *(int(wire) for wire in network.comparators.flat)})
    return Merge(network, tuple(outputs), tuple(used), half_operations(network, outputs))


def _candidates(
    a: Sequence[int], b: Sequence[int], wanted: Sequence[int]
) -> Iterator[tuple[list[Comparator], list[int]]]:
    """Yield comparators for some ranks of two ascending lists of wires, and the wires of the ranks."""
    if not a or not b:
        row = [*a, *b]
        yield [], [row[rank] for rank in wanted]
        return
    count = len(a) + len(b)
    yield from _largest(a, b, wanted)
    upside_down = [count - 1 - rank for rank in reversed(wanted)]
    for pairs, outputs in _largest(a[::-1], b[::-1], upside_down):
        yield [(hi, lo) for lo, hi in pairs], outputs[::-1]


def _largest(
    a: Sequence[int], b: Sequence[int], wanted: Sequence[int]
) -> Iterator[tuple[list[Comparator], list[int]]]:
    count = len(a) + len(b)
    for kept in {count, count - wanted[0]}:
        for merge in MERGES.values():
            pairs, row = merge(a[-kept:], b[-kept:], kept)
            yield list(pairs), [row[rank - count] for rank in wanted]
    if len(wanted) == 1:
        yield _one_rank(a, b, wanted[0])


def _one_rank(a: Sequence[int], b: Sequence[int], rank: int) -> tuple[list[Comparator], list[int]]:
    """Return comparators for one rank: it is the largest of the minima of values whose ranks sum to it.

    Every value among the rank + 1 smallest is one of these minima, or has no partner.
    """
    pairs, row = [], []
    for i in range(max(0, rank - len(b) + 1), min(rank, len(a) - 1) + 1):
        pairs.append((a[i], b[rank - i]))
        row.append(a[i])
    row += [a[rank - len(b)]] if rank >= len(b) else []
    row += [b[rank - len(a)]] if rank >= len(a) else []
    while len(row) > 1:
        pairs += list(zip(row[1::2], row[::2], strict=False))
        row = row[::2]
    return pairs, row
