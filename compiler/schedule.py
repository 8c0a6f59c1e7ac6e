"""Schedule: a network cut into the pieces that a kernel runs, as data that a template prints."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.runs import Runs, runs_of


@dataclass(frozen=True)
class Schedule:
    """The order in which a kernel runs a network's comparators, a layer at a time.

    The weights α of the comparators are stored in this order, so a run's weights are contiguous.

    Attributes:
        network: what is scheduled.
        layers: each layer's runs, in order.
        segments: layer indices 0 = s_0 < s_1 < … < depth (only 0 when depth is 0). The backward
            pass of the routing keeps the payload at these layers and recomputes what lies between.
    """

    network: Network
    layers: tuple[Runs, ...]
    segments: tuple[int, ...]

    def __post_init__(self) -> None:
        assert sum(int(runs[:, 3].sum()) for runs in self.layers) == self.network.size
        assert len(self.layers) == self.network.depth
        assert self.segments[0] == 0
        assert self.segments[-1] == self.network.depth

    @property
    def widest_segment(self) -> int:
        """Number of comparators in the segment that has most."""
        starts = self.network.layer_starts
        ends = [int(starts[s]) for s in self.segments]
        return max((b - a for a, b in itertools.pairwise(ends)), default=0)


def schedule(network: Network) -> Schedule:
    """Cut a network into layers of runs and segments of layers."""
    return Schedule(network, tuple(runs_of(network)), _segments(network))


def _segments(network: Network) -> tuple[int, ...]:
    """Return layer indices that keep the memory of a backward pass near its minimum.

    With k segments a block of columns keeps k·n rows at the boundaries and one row for each of
    about size/k comparators inside a segment; the sum is least at k = sqrt(size/n).
    """
    count = max(1, round(math.sqrt(network.size / network.n)))
    targets = np.arange(1, count) * (network.size / count)
    inner = np.searchsorted(network.layer_starts, targets)
    return tuple(sorted({0, network.depth, *inner.tolist()}))
