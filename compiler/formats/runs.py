"""Runs: a layer's comparators as arithmetic progressions, for short tables and short files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Comparators, Network

# (k, 4) integers lo, hi, step, count: comparators (lo + i·step, hi + i·step) for i in 0 … count - 1.
Runs = npt.NDArray[np.int64]


def runs_of(network: Network) -> Iterator[Runs]:
    """Yield each layer as runs: arithmetic progressions of comparators, found greedily.

    Classic families have few runs a layer, so their tables stay short: odd-even transposition one,
    a layer of bitonic at most n/2.
    """
    for layer in network.layers():
        yield _layer_runs(layer)


def _layer_runs(layer: Comparators) -> Runs:
    pairs = layer.astype(np.int64)
    steps = np.diff(pairs, axis=0)
    even = (steps[:, 0] == steps[:, 1]) & (steps[:, 0] > 0)
    ends = np.append(np.flatnonzero(np.diff(steps[:, 0]) != 0) + 1, len(steps))
    uneven = np.append(np.flatnonzero(~even), len(steps))
    runs = []
    start = 0
    while start < len(pairs):
        last = start
        if start < len(steps) and even[start]:
            change = ends[np.searchsorted(ends, start, side="right")]
            last = int(min(change, uneven[np.searchsorted(uneven, start)]))
        step = int(steps[start, 0]) if last > start else 1
        runs.append((*pairs[start].tolist(), step, last - start + 1))
        start = last + 1
    return np.array(runs, dtype=np.int64).reshape(-1, 4)
