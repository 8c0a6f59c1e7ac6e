"""Exact kernels on demand: compiled when first asked for, then kept for the process."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import cache, partial
from typing import TYPE_CHECKING

from nsc.contract.exact import MOST, ExactSource
from nsc.errors import NscError, PackageError, UnprovedError
from nsc.runtime.build import kept
from nsc.runtime.choosing import Kind
from nsc.runtime.exact.kernel import ExactFunction, ExactKernel, function_of
from nsc.version import VERSION

if TYPE_CHECKING:
    from nsc.compiler.selection import Selection
    from nsc.runtime.relaxed.kernel import Kernel


@cache
def exact_kind(
    n: int, ranks: tuple[int, ...] | None, dtype: str, has_indices: bool, peer: str = "NumPy"
) -> Kind[ExactFunction]:
    """Return the calls of the exact kernel for a task.

    Args:
        n: values of a sample, 1 … MOST.
        ranks: the results, in this order; None: all values, sorted.
        dtype: a key of ELEMENTS.
        has_indices: whether calls ask for places too, which take a time of their own.
        peer: whose time is compared: NumPy, torch or bottleneck.
    """
    task = f"exact {n} {ranks} {dtype}"
    built = partial(_built, task, n, ranks, dtype)
    # About what kernels gain with AVX2 or AVX-512.
    factor = (12 - 1.2 * math.log2(n)) / (4 if peer == "bottleneck" else 1)
    return Kind(partial(_kept, task), built, build_seconds=2 + n / 50, factor=max(1.0, factor))


def _kept(task: str) -> ExactFunction | None:
    found = kept.find(task)
    try:
        return None if found is None else function_of(ExactSource(texts={}, **found[1]), found[0])
    except (NscError, TypeError):
        return None


def _built(task: str, n: int, ranks: tuple[int, ...] | None, dtype: str) -> ExactFunction:
    from nsc.compiler import selection

    is_top = ranks is not None and ranks == tuple(range(n - 1, n - 1 - len(ranks), -1))
    select = None if ranks is None else selection.top_k(len(ranks)) if is_top else selection.ranks(*ranks)
    kernel = exact_kernel(n, select)
    function = kernel.function(dtype)
    said = asdict(kernel.source)
    del said["texts"]
    kept.keep(task, kernel.build(dtype), said)
    return function


@cache
def exact_kernel(n: int, select: Selection | None = None) -> ExactKernel:
    """Return the exact kernel for n values.

    Args:
        n: values of a sample, at least 1.
        select: what is selected; None: all values, sorted.

    Raises:
        NetworkError, PropertyError, UnprovedError: as `compile_exact`.
    """
    # Imported late: most calls find their kernel without the compiler of networks.
    from nsc.compiler.exact.compiling import compile_exact
    from nsc.join.budget import budget_of

    return ExactKernel(compile_exact(n, select, VERSION, budget_of(keeps=True)))


def selection_of(kernel: Kernel) -> Selection | None:
    """Return what a package selects; None: it sorts."""
    from nsc.compiler.selection import SELECTIONS

    form = kernel.manifest.selection
    if form is None or kernel.outputs is None:
        return None
    if form not in SELECTIONS:
        raise PackageError(f"{kernel.name} has the selection {form!r}, not one of {', '.join(SELECTIONS)}")
    return SELECTIONS[form](kernel.outputs.ranks)


def exact_kernel_of(kernel: Kernel) -> ExactKernel | None:
    """Return the exact kernel for a package's task; None: more than MOST values, or no proof."""
    if kernel.n > MOST:
        return None
    try:
        return exact_kernel(kernel.n, selection_of(kernel))
    except UnprovedError:
        return None
