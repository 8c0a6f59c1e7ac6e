"""Exact sorting and selection of arrays: the cases, and what users would call in nsc's place.

NumPy's functions are compared with `nsc.numpy`, torch's with nsc's operators, on the same numbers. Results
are new in each call, for all. A new work is an entry of WORKS, with its cases.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import nsc
import nsc.numpy
from benchmarks.bandwidth import reading_and_writing
from benchmarks.measure import Rounds, take_turns
from benchmarks.networks import operator, selector
from benchmarks.peers import Call, importable

K = 8  # how many of the largest values
# A case ends after this time, but not before measure.LEAST_ROUNDS rounds.
CASE_SECONDS = 2.0

ARRAYS, TENSORS = "nsc.numpy", "nsc"  # what is compared with NumPy's functions, and what with torch's
MEMORY = "memory"

VALUES, INDICES, MEDIAN, LARGEST = "sort", "argsort", "median", f"top {K} with indices"
FILTER, COLOURS = "median filter", "median filter of colours"
PLANES = "nsc.numpy on a plane a colour"
NUMBERS, LEVEL = "median of numbers", "quantile 0.3 of numbers"
WEIGHTED, TRIMMED = "weighted median", "trimmed mean"
ROLLING, ROLLING_NUMBERS = "rolling median", "rolling median of numbers"
_SCIPYS_SHARE = 1 / 8
# The share of values that are NaN, in works on numbers.
_HOLES = {NUMBERS: 0.1, LEVEL: 0.1, ROLLING_NUMBERS: 0.01}


@dataclass(frozen=True)
class Target:
    """How many times as fast as a peer nsc must be, and should be, on one thread; None: no such number."""

    peer: str
    least: float | None = None
    aim: float | None = None


@dataclass(frozen=True)
class ExactCase:
    """A work on one array.

    Attributes:
        work: a key of WORKS.
        dtype: name of a type of NumPy and of torch.
        shape: of the array.
        axis: along which is sorted.
        targets: the peers, with what is asked of nsc.
        window: of a filter, rows and columns alike, or of a series; 0 for sorting. Behind them an image may
            have channels.
    """

    work: str
    dtype: str
    shape: tuple[int, ...]
    axis: int
    targets: tuple[Target, ...]
    window: int = 0

    @property
    def n(self) -> int:
        """Values of a sample, or rows and columns of a window."""
        return self.window or self.shape[self.axis]

    @property
    def sizes(self) -> tuple[int, ...]:
        """A filter's sizes along the axes."""
        return (self.window, self.window) + (1,) * (len(self.shape) - 2)

    @property
    def samples(self) -> int:
        """How many samples are sorted, or values filtered."""
        return math.prod(self.shape) // (1 if self.window else self.n)

    @property
    def kind(self) -> str:
        """What it has in common with cases of other sizes."""
        if self.window:
            return f"{self.work}, {self.dtype}"
        return f"{self.work}, {self.dtype}, {'rows' if self.axis == len(self.shape) - 1 else 'axis 0'}"

    @property
    def name(self) -> str:
        """The name of the case, in tables and for --only."""
        size = " × ".join([str(self.window)] * min(2, len(self.shape))) + " of " if self.window else ""
        return f"exact {self.kind}, {size}{' × '.join(map(str, self.shape))}"


@dataclass(frozen=True)
class Arrays:
    """The numbers of a case, and their memory as a tensor."""

    case: ExactCase
    x: npt.NDArray[Any]
    tensor: Tensor


@dataclass(frozen=True)
class Peer:
    """A function that users would call.

    Attributes:
        start: takes the numbers, returns the call.
        against: what of nsc it is compared with, ARRAYS or TENSORS.
        threads: whether it runs on torch's threads.
        module: the module that it needs, if that may be missing.
        share: how much of the samples it is given; less than 1 where a call would take seconds.
    """

    start: Callable[[Arrays], Call]
    against: str
    threads: bool = False
    module: str | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Work:
    """A computation that peers are timed on.

    Attributes:
        arrays: nsc.numpy's call on a number of threads.
        tensors: the call of nsc's operator; None: it has none.
        peers: others, by name.
    """

    arrays: Callable[[Arrays, int], Call]
    tensors: Callable[[Arrays], Call] | None
    peers: dict[str, Peer]


@dataclass(frozen=True)
class ExactTime:
    """The measured time of one peer on one case, on a number of threads."""

    case: ExactCase
    peer: str
    threads: int
    rounds: Rounds

    @property
    def nanoseconds(self) -> float:
        """The median per sample."""
        return self.per_sample(self.rounds.seconds)

    def per_sample(self, seconds: float) -> float:
        """Return nanoseconds per sample for seconds of a call."""
        peer = WORKS[self.case.work].peers.get(self.peer)
        return seconds / (self.case.samples * (peer.share if peer else 1)) * 1e9


def arrays_of(case: ExactCase) -> Arrays:
    """Draw the numbers of a case: normal ones, some of them NaN, or whole numbers all over the type."""
    random = np.random.default_rng(0)
    if case.dtype.startswith("float"):
        x = random.standard_normal(case.shape).astype(case.dtype)
        if case.work in _HOLES:
            x[random.random(case.shape) < _HOLES[case.work]] = np.nan
    else:
        ends = np.iinfo(case.dtype)
        x = random.integers(ends.min, ends.max, case.shape, dtype=case.dtype, endpoint=True)
    return Arrays(case, x, torch.from_numpy(x))


def calls(arrays: Arrays, threads: Sequence[int]) -> dict[tuple[str, int], Call]:
    """Return a call of nsc and of each peer of a case that can be imported, by name and number of threads."""
    work, case = WORKS[arrays.case.work], arrays.case
    peers = {target.peer: work.peers[target.peer] for target in case.targets}
    present = {name: peer for name, peer in peers.items() if not peer.module or importable(peer.module)}
    against = {peer.against for peer in present.values()}
    found: dict[tuple[str, int], Call] = {}
    if ARRAYS in against:
        found |= {(ARRAYS, count): work.arrays(arrays, count) for count in threads}
    if TENSORS in against and work.tensors:
        found |= {(TENSORS, count): work.tensors(arrays) for count in threads}
    for name, peer in present.items():
        found |= {(name, count): peer.start(arrays) for count in (threads if peer.threads else threads[:1])}
    return found


def measure_exact(case: ExactCase, threads: Sequence[int]) -> list[ExactTime]:
    """Return the times of nsc and its peers on a case, all in turns; those of one thread alone only on that.

    Kernels serve all calls of nsc. `benchmarks.calls` measures what users meet who build none.

    Args:
        case: the case.
        threads: numbers of threads, 1 first.
    """
    timed = calls(arrays_of(case), threads)
    with nsc.numpy.prepare():
        results = take_turns([(call, count) for (_, count), call in timed.items()], CASE_SECONDS)
    return [ExactTime(case, *key, rounds) for key, rounds in zip(timed, results, strict=True)]


def left_out() -> list[str]:
    """Return the modules of peers that cannot be imported here."""
    modules = {peer.module for work in WORKS.values() for peer in work.peers.values() if peer.module}
    return sorted(module for module in modules if not importable(module))


def _hard_select(arrays: Arrays, select: nsc.Selection, values_only: bool) -> Call:
    op, x, axis = selector("best", arrays.case.n, select), arrays.tensor, arrays.case.axis
    return lambda: op.hard_select(x, axis, values_only=values_only)  # type: ignore[call-overload]


def _hard_sort(arrays: Arrays, values_only: bool) -> Call:
    op, x, axis = operator("best", arrays.case.n), arrays.tensor, arrays.case.axis
    return lambda: op.hard_sort(x, axis, values_only=values_only)  # type: ignore[call-overload]


def _argpartition(arrays: Arrays) -> Call:
    x, axis = arrays.x, arrays.case.axis
    last = range(-K, 0)

    def largest() -> object:
        indices = np.argpartition(x, arrays.case.n - K, axis).take(last, axis)
        return np.take_along_axis(x, indices, axis), indices

    return largest


def _bottleneck_median(arrays: Arrays) -> Call:
    median = importlib.import_module("bottleneck").median
    return lambda: median(arrays.x, axis=arrays.case.axis)


def _scipy_filter(arrays: Arrays) -> Call:
    median_filter = importlib.import_module("scipy.ndimage").median_filter
    x = arrays.x[: int(len(arrays.x) * _SCIPYS_SHARE)]
    return lambda: median_filter(x, arrays.case.sizes, mode="nearest")


def _opencv_filter(arrays: Arrays) -> Call:
    """OpenCV filters windows beyond 5 × 5 of uint8 alone: of other types it gets 256 steps."""
    cv2 = importlib.import_module("cv2")
    cv2.setNumThreads(1)
    x = arrays.x
    if arrays.case.window > 5 and x.dtype != np.uint8:
        x = np.interp(x, (x.min(), x.max()), (0, 255)).astype(np.uint8)
    return lambda: cv2.medianBlur(x, arrays.case.window)


def _filter_of_planes(arrays: Arrays) -> Call:
    x = np.ascontiguousarray(np.moveaxis(arrays.x, -1, 0))
    sizes = (1, arrays.case.window, arrays.case.window)
    return lambda: nsc.numpy.median_filter(x, sizes, "nearest", workers=1)


def _torch_filter(arrays: Arrays) -> Call:
    median = nsc.compile_filter(arrays.case.sizes)
    return lambda: median(arrays.tensor, "nearest")


def _filter(arrays: Arrays, workers: int) -> Call:
    return lambda: nsc.numpy.median_filter(arrays.x, arrays.case.sizes, "nearest", workers=workers)


def _some(arrays: Arrays, share: float) -> npt.NDArray[Any]:
    """Return a part of the samples, or of a series."""
    x = np.moveaxis(arrays.x, arrays.case.axis, 0) if not arrays.case.window else arrays.x[None]
    part = x[:, : max(1, int(x.shape[1] * share))]
    return np.moveaxis(part, 0, arrays.case.axis) if not arrays.case.window else part[0]


def _along(module: str, name: str, share: float = 1.0) -> Peer:
    """Return a function of a module that takes an array and its axis."""

    def start(arrays: Arrays) -> Call:
        function = getattr(importlib.import_module(module), name)
        x = _some(arrays, share)
        return lambda: function(x, axis=arrays.case.axis)

    return Peer(start, ARRAYS, module=module, share=share)


def _numpy_level(arrays: Arrays) -> Call:
    x = _some(arrays, _FEW)
    return lambda: np.nanquantile(x, 0.3, arrays.case.axis)


def _numbagg(name: str, *levels: float) -> Peer:
    """Return a function of numbagg, on torch's number of threads. It computes in float64."""

    def start(arrays: Arrays) -> Call:
        numba, function = importlib.import_module("numba"), getattr(importlib.import_module("numbagg"), name)
        x = _some(arrays, _SCIPYS_SHARE)

        def call() -> object:
            numba.set_num_threads(torch.get_num_threads())
            return function(x, *levels, axis=arrays.case.axis)

        return call

    return Peer(start, ARRAYS, threads=True, module="numbagg", share=_SCIPYS_SHARE)


def _weights(arrays: Arrays) -> npt.NDArray[Any]:
    return np.random.default_rng(1).random(arrays.case.n)


def _numpy_weighted(arrays: Arrays) -> Call:
    """NumPy has the lower weighted median alone."""
    x, weights = _some(arrays, _FEW), _weights(arrays)
    return lambda: np.quantile(x, 0.5, arrays.case.axis, weights=weights, method="inverted_cdf")


def _weighted(arrays: Arrays, workers: int) -> Call:
    weights = _weights(arrays)
    return lambda: nsc.numpy.median(arrays.x, arrays.case.axis, weights=weights, workers=workers)


def _scipy_trimmed(arrays: Arrays) -> Call:
    trim_mean = importlib.import_module("scipy.stats").trim_mean
    x = _some(arrays, _SCIPYS_SHARE)
    return lambda: trim_mean(x, 0.2, axis=arrays.case.axis)


def _rolling(arrays: Arrays, workers: int) -> Call:
    least = None if arrays.case.work == ROLLING else 1
    return lambda: nsc.numpy.rolling(
        arrays.x, arrays.case.window, min_periods=least, workers=workers
    ).median()


def _bottleneck_rolling(arrays: Arrays) -> Call:
    move_median = importlib.import_module("bottleneck").move_median
    least = None if arrays.case.work == ROLLING else 1
    return lambda: move_median(arrays.x, arrays.case.window, least)


def _pandas_rolling(arrays: Arrays) -> Call:
    series = importlib.import_module("pandas").Series(_some(arrays, _SCIPYS_SHARE))
    least = None if arrays.case.work == ROLLING else 1
    return lambda: series.rolling(arrays.case.window, min_periods=least).median().to_numpy()


# What NumPy computes in Python, sample by sample, gets few samples.
_FEW = 1 / 500

_ROLLINGS = {
    "bottleneck.move_median": Peer(_bottleneck_rolling, ARRAYS, module="bottleneck"),
    "pandas.Series.rolling": Peer(_pandas_rolling, ARRAYS, module="pandas", share=_SCIPYS_SHARE),
}

_FILTERS = {
    "scipy.ndimage.median_filter": Peer(_scipy_filter, ARRAYS, module="scipy", share=_SCIPYS_SHARE),
    "cv2.medianBlur": Peer(_opencv_filter, ARRAYS, module="cv2"),
}

WORKS: dict[str, Work] = {
    VALUES: Work(
        lambda a, workers: lambda: nsc.numpy.sort(a.x, a.case.axis, workers=workers),
        lambda a: _hard_sort(a, values_only=True),
        {
            "np.sort": Peer(lambda a: lambda: np.sort(a.x, a.case.axis), ARRAYS),
            "torch.sort": Peer(lambda a: lambda: torch.sort(a.tensor, a.case.axis), TENSORS, threads=True),
        },
    ),
    INDICES: Work(
        lambda a, workers: lambda: nsc.numpy.argsort(a.x, a.case.axis, workers=workers),
        lambda a: _hard_sort(a, values_only=False),
        {
            "np.argsort": Peer(lambda a: lambda: np.argsort(a.x, a.case.axis, kind="stable"), ARRAYS),
            "torch.sort": Peer(
                lambda a: lambda: torch.sort(a.tensor, dim=a.case.axis, stable=True), TENSORS, threads=True
            ),
        },
    ),
    MEDIAN: Work(
        lambda a, workers: lambda: nsc.numpy.median(a.x, a.case.axis, workers=workers),
        lambda a: _hard_select(a, nsc.median(), values_only=True),
        {
            "bottleneck.median": Peer(_bottleneck_median, ARRAYS, module="bottleneck"),
            "torch.median": Peer(
                lambda a: lambda: torch.median(a.tensor, a.case.axis), TENSORS, threads=True
            ),
            MEMORY: Peer(lambda a: reading_and_writing(a.x, a.case.axis), ARRAYS),
        },
    ),
    LARGEST: Work(
        lambda a, workers: lambda: nsc.numpy.topk(a.x, K, a.case.axis, workers=workers),
        lambda a: _hard_select(a, nsc.top_k(K), values_only=False),
        {
            "np.argpartition": Peer(_argpartition, ARRAYS),
            "torch.topk": Peer(lambda a: lambda: torch.topk(a.tensor, K, a.case.axis), TENSORS, threads=True),
        },
    ),
    NUMBERS: Work(
        lambda a, workers: lambda: nsc.numpy.nanmedian(a.x, a.case.axis, workers=workers),
        None,
        {
            "bottleneck.nanmedian": _along("bottleneck", "nanmedian"),
            "np.nanmedian": _along("numpy", "nanmedian", _SCIPYS_SHARE),
            "numbagg.nanmedian": _numbagg("nanmedian"),
        },
    ),
    LEVEL: Work(
        lambda a, workers: lambda: nsc.numpy.nanquantile(a.x, 0.3, a.case.axis, workers=workers),
        None,
        {
            "np.nanquantile": Peer(_numpy_level, ARRAYS, share=_FEW),
            "numbagg.nanquantile": _numbagg("nanquantile", 0.3),
        },
    ),
    WEIGHTED: Work(_weighted, None, {"np.quantile": Peer(_numpy_weighted, ARRAYS, share=_FEW)}),
    TRIMMED: Work(
        lambda a, workers: lambda: nsc.numpy.trimmed_mean(a.x, 0.2, a.case.axis, workers=workers),
        None,
        {"scipy.stats.trim_mean": Peer(_scipy_trimmed, ARRAYS, module="scipy", share=_SCIPYS_SHARE)},
    ),
    ROLLING: Work(_rolling, None, _ROLLINGS),
    ROLLING_NUMBERS: Work(_rolling, None, _ROLLINGS),
    FILTER: Work(_filter, _torch_filter, _FILTERS),
    COLOURS: Work(_filter, _torch_filter, {**_FILTERS, PLANES: Peer(_filter_of_planes, ARRAYS)}),
}

_SIZES, _BATCH = (16, 32, 64), 65536
CASES = (
    *(ExactCase(VALUES, "float32", (_BATCH, n), 1, (Target("np.sort", 1.5, 3),)) for n in _SIZES),
    *(
        ExactCase(
            VALUES, "float32", (n, _BATCH), 0, (Target("np.sort", 10, 20), Target("torch.sort", 20, 40))
        )
        for n in _SIZES
    ),
    *(
        ExactCase(
            INDICES, "float32", (_BATCH, n), 1, (Target("np.argsort", 4, 8), Target("torch.sort", 8, 15))
        )
        for n in _SIZES
    ),
    *(
        ExactCase(VALUES, dtype, (_BATCH, n), 1, (Target("np.sort", 3, 8),))
        for dtype in ("uint8", "int16")
        for n in _SIZES
    ),
    ExactCase(
        MEDIAN,
        "float32",
        (11, 1000, 4000),
        0,
        (Target("bottleneck.median", 10), Target("torch.median", 100), Target(MEMORY, aim=0.5)),
    ),
    *(
        ExactCase(MEDIAN, "float32", (_BATCH, n), 1, (Target("bottleneck.median"), Target("torch.median")))
        for n in (9, 25, 49)
    ),
    *(
        ExactCase(LARGEST, "float32", (batch, n), 1, (Target("np.argpartition"), Target("torch.topk", 5, 10)))
        for n, batch in ((64, _BATCH), (144, 16384), (256, 16384))
    ),
    ExactCase(LARGEST, "float32", (1024, 1024), 1, (Target("np.argpartition"), Target("torch.topk"))),
    *(
        ExactCase(
            FILTER,
            dtype,
            (2048, 2048),
            1,
            (Target("scipy.ndimage.median_filter", *scipy), Target("cv2.medianBlur", *opencv)),
            window,
        )
        for dtype in ("uint8", "float32")
        for window, scipy, opencv in (
            (3, (50, 100), (0.8, 1.5)),
            (5, (50, 100), (0.8, 1.5)),
            (7, (30, None), (None, 1)),
        )
    ),
    *(
        ExactCase(
            FILTER,
            "float32",
            (1024, 1024),
            1,
            (Target("scipy.ndimage.median_filter"), Target("cv2.medianBlur")),
            window,
        )
        for window in (9, 11, 15)
    ),
    *(
        ExactCase(
            COLOURS, dtype, (1080, 1920, 3), 1, (Target("cv2.medianBlur"), Target(PLANES, 1 / 1.5)), window
        )
        for dtype in ("uint8", "float32")
        for window in (3, 5, 7)
    ),
    *(
        ExactCase(
            work,
            dtype,
            shape,
            0,
            tuple(Target(peer, 3 if peer.startswith("numbagg") else None) for peer in WORKS[work].peers),
        )
        for work in (NUMBERS, LEVEL)
        for dtype, first in (("float32", (11, 1000, 4000)), ("float64", (16, _BATCH)))
        for shape in (first, (32, _BATCH), (64, _BATCH))
    ),
    *(
        ExactCase(work, "float32", (11, 1000, 4000), 0, tuple(map(Target, WORKS[work].peers)))
        for work in (WEIGHTED, TRIMMED)
    ),
    *(
        ExactCase(work, "float32", (1 << 20,), 0, tuple(map(Target, WORKS[work].peers)), window)
        for work in (ROLLING, ROLLING_NUMBERS)
        for window in (5, 25, 101)
    ),
)
