"""Exact sorting and selection of NumPy arrays along short axes, by proved networks; needs no torch::

    import nsc.numpy
    values = nsc.numpy.sort(image, axis=0)
    values, indices = nsc.numpy.topk(scores, 8)
    middle = nsc.numpy.nanmedian(stack, axis=0)

NumPy does the work until a kernel has paid for its build: docs/exact.md has the rule, and `prepare` builds at
once. Kernels are proved, and kept on disk. They sort axes of up to MOST values. NumPy and kernels give the
same results, but zeros may lose their signs.

Types are NumPy's integers, bool, float16, float32 and float64; sorts, selections and medians take datetime64
and timedelta64 too. NaN and NaT come last in every order, as in NumPy 2.5. Where indices are asked for, the
lower index of equal values comes first, in every order. (Operators for tensors put NaN first where the order
descends, as torch does.)

Masked arrays, matrices and other subclasses are refused: the result would lose their masks or other meaning.
Memory maps are taken. Arrays in the other byte order are converted.

A call uses the cores that this process may use, or as many threads as `set_num_threads` or the call's own
`workers` says. The number of threads changes no bit of a result. One thread sorts a small array.
"""

from __future__ import annotations

from nsc.contract.exact import MOST
from nsc.join.choosing import prepare
from nsc.numpy.calls import Sorted, get_num_threads, set_num_threads
from nsc.numpy.filters import (
    maximum_filter,
    median_filter,
    minimum_filter,
    percentile_filter,
    rank_filter,
)
from nsc.numpy.moving import Rolling, rolling
from nsc.numpy.sorting import argpartition, argsort, partition, select, sort, top_k, topk
from nsc.numpy.statistics import (
    median,
    nanmedian,
    nanpercentile,
    nanquantile,
    percentile,
    quantile,
    trimmed_mean,
)

__all__ = [
    "MOST",
    "Rolling",
    "Sorted",
    "argpartition",
    "argsort",
    "get_num_threads",
    "maximum_filter",
    "median",
    "median_filter",
    "minimum_filter",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "partition",
    "percentile",
    "percentile_filter",
    "prepare",
    "quantile",
    "rank_filter",
    "rolling",
    "select",
    "set_num_threads",
    "sort",
    "top_k",
    "topk",
    "trimmed_mean",
]
