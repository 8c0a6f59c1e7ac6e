"""Progressions: a layer's comparators as arithmetic progressions, for short files."""

from __future__ import annotations

from collections.abc import Iterator

from nsc.compiler.network import Network

# lo, hi, step, count: comparators (lo + i·step, hi + i·step) for i in 0 … count - 1.
Progression = tuple[int, int, int, int]


def progressions_of(network: Network) -> Iterator[list[Progression]]:
    """Yield each layer as arithmetic progressions of comparators, found greedily.

    Classic families have few progressions a layer: odd-even transposition one, bitonic at most n/2.
    """
    for layer in network.layers():
        yield list(_layer_progressions(layer.tolist()))


def _layer_progressions(pairs: list[list[int]]) -> Iterator[Progression]:
    start = 0
    while start < len(pairs):
        (lo, hi), end = pairs[start], start + 1
        step = pairs[end][0] - lo if end < len(pairs) else 0
        reach = 0
        while step > 0 and end < len(pairs):
            reach += step
            if pairs[end] != [lo + reach, hi + reach]:
                break
            end += 1
        yield lo, hi, step if end > start + 1 else 1, end - start
        start = end
