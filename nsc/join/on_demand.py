"""Kernels on demand: compiled when first asked for, then kept for the process, and found by the next ones.

A new compilation of a kernel's source, only to see that its library is in the cache, would take up to a
second. So a task (an exact kernel or a filter for one type) is kept in the cache, with the name of its
library and all else that a call needs. A task is found without the compiler of networks. Another state of
nsc, another processor or another compiler in the environment does not find it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nsc.contract.exact import MOST, ExactSource
from nsc.contract.manifest import NETWORK
from nsc.contract.windows import Window
from nsc.errors import NscError, PackageError, UnprovedError
from nsc.join.choosing import Kind
from nsc.runtime.build import folder
from nsc.runtime.build.cache import Artifact, binary_of, digest
from nsc.runtime.build.system import processor
from nsc.runtime.exact.kernel import ExactFunction, ExactKernel, function_of
from nsc.runtime.exact.windows import FilterFunction, FilterKernel
from nsc.version import VERSION

if TYPE_CHECKING:
    from nsc.compiler.selection import Selection
    from nsc.compiler.windows.compiling import CompiledFilter
    from nsc.runtime.relaxed.kernel import Kernel

Function = TypeVar("Function", ExactFunction, FilterFunction)

_ROOT = Path(__file__).parents[1]
# Folders whose files libraries are made from.
_ROOMS = ("compiler", "contract", "library", "templates")


@dataclass(frozen=True)
class _Task(Generic[Function]):
    """A kernel for a type of values: all that it depends on, and how it is loaded or built."""

    asked: tuple[object, ...]
    load: Callable[[Path, dict[str, Any]], Function]
    # The facts to keep come last.
    build: Callable[[], tuple[Function, Artifact, Mapping[str, Any]]]

    def kept(self) -> Function | None:
        """Return the kernel if its library is kept and may be used, else None."""
        text = folder.read(self._name)
        try:
            said = json.loads(text or "null")
            library = binary_of(Path(said.pop("library")).name)
            return None if library is None else self.load(library, said)
        except (NscError, ValueError, KeyError, AttributeError, TypeError):
            return None

    def built(self) -> Function:
        """Return the kernel, built unless the cache has its library, and keep the task."""
        function, artifact, said = self.build()
        folder.write(self._name, json.dumps({"library": artifact.binary.name, **said}))
        return function

    @property
    def _name(self) -> str:
        environment = tuple(os.environ.get(name) for name in ("NSC_CXX", "CXX", "NSC_CXXFLAGS"))
        return f"task-{digest(repr((self.asked, _sources(), processor(), environment)))}"


@cache
def exact_kind(
    n: int, places: tuple[int, ...] | None, dtype: str, has_indices: bool, peer: str
) -> Kind[ExactFunction]:
    """Return the calls of the exact kernel for n values, some places of their order (None: all) and a type.

    Calls with and without indices are timed separately, and calls of each peer, a library or its function.
    """

    def load(library: Path, said: dict[str, Any]) -> ExactFunction:
        return function_of(ExactSource(texts={}, **said), library)

    def build() -> tuple[ExactFunction, Artifact, Mapping[str, Any]]:
        kernel = exact_kernel(n, places)
        said = {key: value for key, value in asdict(kernel.source).items() if key != "texts"}
        return kernel.function(dtype), kernel.build(dtype), said

    task = _Task(("exact", n, places, dtype), load, build)
    # About how much faster kernels are with AVX2 or AVX-512.
    factor = (12 - 1.2 * math.log2(n)) / (4 if peer == "bottleneck" else 1)
    return Kind(task.kept, task.built, build_seconds=2 + n / 50, factor=max(1.0, factor))


@cache
def exact_kernel(n: int, places: tuple[int, ...] | None = None) -> ExactKernel:
    """Return the exact kernel for some places of n values in order, or for all; errors as `compile_exact`.

    A call says whether the order ascends or descends.
    """
    # Imported late: most calls find their kernel without the compiler of networks.
    from nsc.compiler import selection
    from nsc.compiler.exact.compiling import compile_exact
    from nsc.join.budget import budget_of

    select = None if places is None else selection.ranks(*places)
    return ExactKernel(compile_exact(n, select, VERSION, budget_of(keeps=True)))


def exact_kernel_of(kernel: Kernel) -> ExactKernel | None:
    """Return the exact kernel for a package's task; None: more than MOST values, or no proof."""
    if kernel.n > MOST:
        return None
    try:
        return exact_kernel(kernel.n, None if kernel.outputs is None else kernel.outputs.places)
    except UnprovedError:
        return None


def selection_of(kernel: Kernel) -> Selection | None:
    """Return what a package selects; None: it sorts."""
    from nsc.compiler.selection import SELECTIONS

    form = kernel.manifest.selection
    if form is None or kernel.outputs is None:
        return None
    if form not in SELECTIONS:
        raise PackageError(f"{kernel.name} has the selection {form!r}, not one of {', '.join(SELECTIONS)}")
    return SELECTIONS[form](kernel.outputs.ranks)


@cache
def filter_kind(
    window: Window, dtype: str, channels: int, may_miss: bool, peer: str = "NumPy"
) -> Kind[FilterFunction]:
    """Return the calls of the filter of a window, for a type of values and a number of channels.

    may_miss says whether values may be missing. The peer is NumPy or bottleneck.
    """

    def load(library: Path, said: dict[str, Any]) -> FilterFunction:
        return FilterFunction.of_library(library=library, **said)

    def build() -> tuple[FilterFunction, Artifact, Mapping[str, Any]]:
        kernel = filter_kernel(window)
        said = {"name": kernel.source.name}
        return kernel.function(dtype, channels, may_miss), kernel.build(dtype, channels, may_miss), said

    task = _Task(("filter", window.key, dtype, channels, may_miss), load, build)
    factor = 3.0 if peer == "bottleneck" else 10.0
    return Kind(task.kept, task.built, build_seconds=1 + window.values / 25, factor=factor)


@cache
def filter_kernel(window: Window) -> FilterKernel:
    """Return the kernel of a window's filter; errors as in `compiled_filter`."""
    return FilterKernel(compiled_filter(window).source)


@cache
def compiled_filter(window: Window) -> CompiledFilter:
    """Return the filter of a window, proved; errors as `compile_filter`."""
    # Imported late: most calls find their filter without the compiler of networks.
    from nsc.compiler.windows.compiling import compile_filter
    from nsc.join.budget import budget_of

    return compile_filter(window, version=VERSION, budget=budget_of(keeps=True))


@cache
def kernel_of_first_wires(spec: str, count: int) -> Kernel:
    """Return the kernel of the first wires of a registered kernel that sorts, which the engine runs."""
    from nsc.compiler.driver import compile_again, prove
    from nsc.compiler.formats import parse_network
    from nsc.compiler.passes import first_wires
    from nsc.compiler.relaxations import Relaxation
    from nsc.compiler.request import Request
    from nsc.join.budget import budget_of
    from nsc.runtime.relaxed.kernel import find_kernel, register_kernel

    kernel = find_kernel(spec)
    network = first_wires(parse_network(kernel.files[NETWORK], format="nsc"), count)
    request = Request(
        network,
        relaxation=Relaxation(kernel.sigmoid, kernel.manifest.art_lambda, kernel.error_free),
        dtypes=tuple(sorted(kernel.reals)),
        targets=tuple(kernel.sources),
        name=f"{kernel.name}_first_{count}",
        unproved=True,
    )
    # The part sorts because the whole network does. It gets a proof of its own where that is quick.
    proof = prove(network, unproved=True, budget=budget_of(time_limit=0, keeps=True))
    return register_kernel(compile_again(network, proof, request).files)


@cache
def _sources() -> str:
    """Return a digest of the sizes and times of the files that libraries are made from."""
    state = hashlib.sha256()
    for room in _ROOMS:
        for above, folders, files in os.walk(_ROOT / room):
            folders[:] = sorted({*folders} - {"__pycache__"})
            for file in sorted(files):
                status = os.stat(path := os.path.join(above, file))
                state.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return state.hexdigest()
