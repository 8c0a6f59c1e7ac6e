"""Progressions: a layer's comparators as arithmetic progressions, for short files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Comparators, Network

# (k, 4) integers lo, hi, step, count: comparators (lo + i·step, hi + i·step) for i in 0 … count - 1.
Progressions = npt.NDArray[np.int64]


def progressions_of(network: Network) -> Iterator[Progressions]:
    """Yield each layer as arithmetic progressions of comparators, found greedily.

    Classic families have few progressions a layer: odd-even transposition one, bitonic at most n/2.
    """
    for layer in network.layers():
        yield _layer_progressions(layer)


def _layer_progressions(layer: Comparators) -> Progressions:
    pairs = layer.astype(np.int64)
    steps = np.diff(pairs, axis=0)
    even = (steps[:, 0] == steps[:, 1]) & (steps[:, 0] > 0)
    ends = np.append(np.flatnonzero(np.diff(steps[:, 0]) != 0) + 1, len(steps))
    uneven = np.append(np.flatnonzero(~even), len(steps))
    progressions = []
    start = 0
    while start < len(pairs):
        last = start
        if start < len(steps) and even[start]:
            change = ends[np.searchsorted(ends, start, side="right")]
            last = int(min(change, uneven[np.searchsorted(uneven, start)]))
        step = int(steps[start, 0]) if last > start else 1
        progressions.append((*pairs[start].tolist(), step, last - start + 1))
        start = last + 1
    return np.array(progressions, dtype=np.int64).reshape(-1, 4)
