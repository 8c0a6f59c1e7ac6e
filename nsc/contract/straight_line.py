"""Straight-line code: the largest networks whose comparators kernels have as code.

Code is the fastest way through a network, about twice as fast as a table of its comparators. A compiler takes
long for it, and longer for each line of a longer function: of larger networks some comparators run from the
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Limits:
    """The most of a network that is straight-line code.

    Attributes:
        exact_operations: minima and maxima of an exact kernel in C++: sorting networks up to 128 wires, the
            16 largest of 256. A larger network has code for its most frequent codelets, up to so many. Of a
            comparator only what is needed counts, as it alone is compiled. The build takes at most some three
            seconds for each type.
        segment_comparators: comparators of a function of an exact kernel.
        exact_cuda_comparators: comparators of an exact kernel in CUDA, by the bytes of an item: the build
            takes up to four seconds, and what a thread holds stays in its registers.
        header_comparators: comparators of a C header: 64 wires have at most 672 in the networks that nsc
            constructs.
        codelet_comparators: comparators of a relaxed kernel in CUDA, in the most frequent shapes: the build
            of a large network takes a few seconds.
    """

    exact_operations: int = 3100
    segment_comparators: int = 50
    exact_cuda_comparators: Mapping[int, int] = field(
        default_factory=lambda: MappingProxyType({4: 1600, 8: 600, 16: 200})
    )
    header_comparators: int = 700
    codelet_comparators: int = 600


LIMITS = Limits()
