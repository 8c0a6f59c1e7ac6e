"""Classic families: sorting networks by formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.arguments import whole
from nsc.compiler.network import MAX_SIZE, Comparators, Network, check_wires
from nsc.compiler.passes import first_wires, relayer
from nsc.errors import NetworkError

Wires = npt.NDArray[np.signedinteger[Any]]
# Lists of wires, each a row, whose values ascend.
Runs = npt.NDArray[np.int64]
# Compares two arrays of wires, entry by entry; returns the wires of the minima and the wires of the maxima.
Compare = Callable[[Runs, Runs], tuple[Runs, Runs]]


def odd_even(n: int) -> Network:
    """Return the odd-even transposition network on n wires.

    Returns:
        n layers of neighbours, size n(n-1)/2 (n = 2: the second layer is empty and dropped).

    Raises:
        NetworkError: n < 1, or more comparators than are supported.

    Source: Habermann 1972; Knuth 5.3.4 exercise 37; the paper, section 3.1.

    >>> odd_even(4).depth, odd_even(4).size
    (4, 6)
    """
    n = _check_quadratic("odd_even", n)
    wires = np.arange(n - 1)
    return Network.from_layers(n, (_pair(wires[layer % 2 :: 2], 1) for layer in range(n)))


def bitonic(n: int) -> Network:
    """Return the bitonic network on n wires, directions as the paper draws them.

    For n that is no power of two: the network of the next power, whose first wires hold -inf, without the
    comparators that -inf reaches. Where a removed comparator would move the other value, wires are renamed.

    Returns:
        A network of depth k(k+1)/2 with k = ceil(log2 n); size n·k(k+1)/4 for n = 2**k.

    Raises:
        NetworkError: n < 1 or above the supported number of wires.

    Source: Batcher 1968; the paper, section 3.2 and figure 2.

    >>> bitonic(4).depth, bitonic(4).size
    (3, 6)
    """
    n = _check("bitonic", n)
    stages = (n - 1).bit_length()
    power = 1 << stages
    wires = np.arange(power)
    # Which value is on a wire, by where it began; -1 for -inf.
    held = np.concatenate([np.full(power - n, -1), np.arange(n)])
    layers = []
    for stage in range(1, stages + 1):
        for distance in (1 << b for b in reversed(range(stage))):
            low = wires[wires & distance == 0]
            descending = low >> stage & 1 == 1
            lo, hi = np.where(descending, low + distance, low), np.where(descending, low, low + distance)
            moves = (held[hi] < 0) & (held[lo] >= 0)
            held[hi[moves]], held[lo[moves]] = held[lo[moves]], -1
            met = (held[lo] >= 0) & (held[hi] >= 0)
            layers.append(np.stack([held[lo[met]], held[hi[met]]], axis=1))
    ends = np.argsort(held[power - n :])
    return Network.from_layers(n, (ends[layer] for layer in layers))


def odd_even_merge(n: int) -> Network:
    """Return Batcher's odd-even merge sorting network on n wires.

    For n that is no power of two: the first n wires of the network of the next power.

    Returns:
        Depth at most k(k+1)/2 with k = ceil(log2 n); size (k² - k + 4)·2^(k-2) - 1 for n = 2**k.

    Raises:
        NetworkError: n < 1 or above the supported number of wires.

    Source: Batcher 1968; Knuth 5.3.4, figure 49.

    >>> odd_even_merge(16).depth, odd_even_merge(16).size
    (10, 63)
    """
    n = _check("odd_even_merge", n)
    recorded = Recorded()
    runs = np.arange(1 << (n - 1).bit_length())[:, None]
    while len(runs) > 1:
        runs = merged(recorded.compare, runs[::2], runs[1::2])
    pairs = recorded.pairs()
    return Network.from_comparators(n, pairs[(pairs < n).all(axis=1)])


class Recorded:
    """Comparators in the order in which they are compared."""

    def __init__(self) -> None:
        self._layers = [np.empty((0, 2), np.int64)]

    def compare(self, low: Runs, high: Runs) -> tuple[Runs, Runs]:
        """Add a comparator for each entry, and return the wires of the minima and of the maxima."""
        self._layers.append(np.stack([low.ravel(), high.ravel()], axis=1))
        return low, high

    def pairs(self) -> Comparators:
        """Return all of them, (count, 2)."""
        return np.concatenate(self._layers)


def merged(compare: Compare, a: Runs, b: Runs) -> Runs:
    """Merge ascending runs of any two lengths, row by row, by Batcher's odd-even merge.

    The entries at even places of both runs are merged to v, those at odd places to w. Then the result is
    v[0], and for each i the minimum and the maximum of w[i] and v[i + 1].

    Args:
        compare: takes two arrays of wires, entry by entry; returns the wires of the minima and the maxima.
        a, b: (rows, length) wires.

    Returns:
        The wires in the order of the outputs, the smallest value first.

    Source: Batcher 1968; Knuth 5.3.4.
    """
    if not a.shape[1] or not b.shape[1]:
        return np.concatenate([a, b], axis=1)
    if a.shape[1] == b.shape[1] == 1:
        return np.concatenate(compare(a, b), axis=1)
    if a.shape[1] % 2 == b.shape[1] % 2 == 0:  # both merges at once, in twice the rows
        rows = (run.reshape(len(run), -1, 2).swapaxes(1, 2).reshape(2 * len(run), -1) for run in (a, b))
        vw = merged(compare, *rows)
        v, w = vw[::2], vw[1::2]
    else:
        v, w = (merged(compare, a[:, place::2], b[:, place::2]) for place in (0, 1))
    pairs = min(w.shape[1], v.shape[1] - 1)
    between = np.stack(compare(w[:, :pairs], v[:, 1 : pairs + 1]), axis=2).reshape(len(a), 2 * pairs)
    return np.concatenate([v[:, :1], between, v[:, pairs + 1 :], w[:, pairs:]], axis=1)


def merge_exchange(n: int) -> Network:
    """Return the network of Batcher's merge exchange, Knuth's Algorithm M, on n wires.

    Returns:
        Depth at most k(k+1)/2 with k = ceil(log2 n); at any n the smallest of the Batcher networks.

    Raises:
        NetworkError: n < 1 or above the supported number of wires.

    Source: Batcher 1968; Knuth 5.2.2, Algorithm M.

    >>> merge_exchange(33).depth, merge_exchange(33).size
    (17, 207)
    """
    n = _check("merge_exchange", n)
    half = (1 << (n - 1).bit_length()) // 2
    wires = np.arange(n)

    def layers() -> Iterator[Comparators]:
        bit = half
        while bit > 0:
            span, kept, distance = half, 0, bit
            while True:
                low = wires[: n - distance]
                yield _pair(low[low & bit == kept], distance)
                if span == bit:
                    break
                distance, span, kept = span - bit, span // 2, bit
            bit //= 2

    return relayer(Network.from_layers(n, layers()))


def pairwise(n: int) -> Network:
    """Return the pairwise sorting network on n wires.

    For n that is no power of two: the first n wires of the network of the next power.

    Returns:
        Depth k(k+1)/2 with k = ceil(log2 n); the size of `odd_even_merge` at n = 2**k.

    Raises:
        NetworkError: n < 1 or above the supported number of wires.

    Source: Parberry, "The pairwise sorting network", Parallel Processing Letters 2, 1992.

    >>> pairwise(16).depth, pairwise(16).size
    (10, 63)
    """
    n = _check("pairwise", n)
    stages = (n - 1).bit_length()
    power = 1 << stages
    wires = np.arange(power)

    def layers() -> Iterator[Comparators]:
        for bit in range(stages):
            yield _pair(wires[wires >> bit & 1 == 0], 1 << bit)
        for bit in reversed(range(stages - 1)):
            reach = (1 << (stages - 1 - bit)) - 1
            while reach > 0:
                high = wires[(wires >> bit & 1 == 0) & (wires >= (reach + 1) << bit)]
                yield _pair(high - (reach << bit), reach << bit)
                reach //= 2

    return first_wires(Network.from_layers(power, layers()), n)


def insertion(n: int) -> Network:
    """Return the parallel insertion (equally, bubble) sorting network on n wires.

    Returns:
        A triangle of neighbours: depth 2n - 3 for n >= 2, size n(n-1)/2.

    Raises:
        NetworkError: n < 1, or more comparators than are supported.

    Source: Knuth 5.3.4, figures 45 and 46.

    >>> insertion(5).depth, insertion(5).size
    (7, 10)
    """
    n = _check_quadratic("insertion", n)
    wires = np.arange(n - 1)
    return Network.from_layers(
        n,
        (_pair(wires[layer % 2 : min(layer, 2 * n - 4 - layer) + 1 : 2], 1) for layer in range(2 * n - 3)),
    )


def _pair(low: Wires, distance: int) -> Comparators:
    return np.stack([low, low + distance], axis=1)


def _check(family: str, n: object) -> int:
    """Return a family's number of wires as an int."""
    wires = whole(n)
    if wires is not None and wires < 1:
        raise NetworkError(f"{family} needs n >= 1, got {wires}")
    return check_wires(n)


def _check_quadratic(family: str, n: object) -> int:
    n = _check(family, n)
    if n * (n - 1) // 2 > MAX_SIZE:
        raise NetworkError(
            f"{family} at n = {n:,} would have {n * (n - 1) // 2:,} comparators; at most "
            f"{MAX_SIZE:,} are supported: use a family of size n·log² n, such as merge_exchange"
        )
    return n
