"""The networks that are measured: nsc's families, and an irregular one."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import nsc
from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.selection import Selection
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter

Pairs = list[tuple[int, int]]


def random_merge(n: int) -> Network:
    """Return a merge sort of n wires in random order, cut between a third and two thirds at random.

    Neither its wires nor its comparator graph has a pattern that repeats, as in networks that a search
    found. It is up to an eighth larger than merge exchange. The same n gives the same network.

    Source: Batcher's odd-even merge of any two lengths, Knuth 5.3.4.

    >>> random_merge(33).size
    223
    """
    draw = random.Random(n)
    wires = list(range(n))
    draw.shuffle(wires)
    pairs, order = _sorted(wires, draw)
    place = {wire: rank for rank, wire in enumerate(order)}
    return Network.from_comparators(n, [(place[lo], place[hi]) for lo, hi in pairs])


def _sorted(wires: list[int], draw: random.Random) -> tuple[Pairs, list[int]]:
    """Return comparators that sort the wires, and the wires in the order of their sorted values."""
    if len(wires) < 2:
        return [], wires
    cut = draw.randint(-(-len(wires) // 3), max(1, 2 * len(wires) // 3))
    left, a = _sorted(wires[:cut], draw)
    right, b = _sorted(wires[cut:], draw)
    merge, order = _merged(a, b)
    return left + right + merge, order


def _merged(a: list[int], b: list[int]) -> tuple[Pairs, list[int]]:
    if not a or not b:
        return [], a + b
    if len(a) == len(b) == 1:
        return [(a[0], b[0])], a + b
    first, evens = _merged(a[::2], b[::2])
    second, odds = _merged(a[1::2], b[1::2])
    order = evens[:1]
    last: Pairs = []
    for odd, even in zip(odds, evens[1:], strict=False):
        last.append((odd, even))
        order += [odd, even]
    return first + second + last, order + odds[len(last) :] + evens[len(last) + 1 :]


NETWORKS: dict[str, Callable[[int], Network]] = {**FAMILIES, "random_merge": random_merge}


@cache
def network(name: str, n: int) -> Network:
    """Return the named network on n wires."""
    return NETWORKS[name](n)


@cache
def selector(name: str, n: int, select: Selection) -> Selector:
    """Return the operator of some ranks of a family's network."""
    return nsc.compile(name, n, select=select, unproved=True, build=True)


@cache
def operator(name: str, n: int) -> Sorter:
    """Return the operator of the named network; one too large for a proof stays unproved."""
    return nsc.compile(network(name, n), name=f"{name}_{n}", unproved=True, build=True)
