"""Deploying: kernels and filters of packages as one C++ source for programs of torch that have no Python."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nsc import library
from nsc.compiler.text import wrapped
from nsc.contract.exact import ELEMENTS
from nsc.contract.interface import REALS, function_name
from nsc.contract.manifest import RelaxedManifest
from nsc.errors import LoweringError
from nsc.join.on_demand import exact_kernel_of
from nsc.runtime.exact.windows import FilterKernel
from nsc.runtime.relaxed.kernel import Kernel
from nsc.templates import fill
from nsc.version import VERSION
from nsc.wording import argument


def deployed_source(name: str, command: str, kernels: Mapping[Kernel | FilterKernel, Collection[str]]) -> str:
    """Return a source that needs no other file of nsc; the same arguments, the same text.

    Args:
        name: of the file, without its suffix.
        command: the command that makes it, for its first lines.
        kernels: maps a kernel to the types of values that it is built for, keys of ELEMENTS. For a relaxed
            kernel these are the types of the exact kernel beside it; torch sorts others.

    Raises:
        LoweringError: a package without kernels for processors, or with its library in its source.
    """
    relaxed = [(each, dtypes) for each, dtypes in kernels.items() if isinstance(each, Kernel)]
    filters = [(each, dtypes) for each, dtypes in kernels.items() if isinstance(each, FilterKernel)]
    text = fill(
        "deploy/source.cpp.j2",
        name=name,
        command=command,
        version=VERSION,
        kernels=[_relaxed(number, *each) for number, each in enumerate(relaxed)],
        filters=[_filter(number, *each) for number, each in enumerate(filters)],
    )
    return library.expanded(text)


def served_dtypes(kernel: Kernel) -> tuple[str, ...]:
    """Return the types of values whose relaxed operators a kernel serves."""
    return tuple(dtype for real in kernel.manifest.reals for dtype in REALS[real].serves)


def _relaxed(number: int, kernel: Kernel, dtypes: Collection[str]) -> dict[str, object]:
    """Return what the template prints of a kernel; an exact one is beside it, or none."""
    if "cpu" not in kernel.sources:
        raise LoweringError(
            f"{kernel.name} has no kernels for processors, which alone are deployed: compile it with "
            f"{argument('targets', ('cpu', 'cuda'))}"
        )
    manifest, outputs = kernel.manifest, kernel.outputs
    places = () if outputs is None else outputs.places
    exact = exact_kernel_of(kernel) if dtypes else None
    return {
        "number": number,
        "spec": kernel.spec,
        "manifest": manifest,
        "text": _body(manifest.name, kernel.sources["cpu"]),
        "outputs": len(places),
        "descends": "true" if outputs is not None and outputs.descends else "false",
        "place_lines": wrapped([*places, 0]),
        "float32": _functions(manifest, "float32"),
        "float64": _functions(manifest, "float64"),
        "exact_text": _body(manifest.name, exact.source.texts["cpu"]) if exact else "",
        "sorts": _by_element("exact_sorts", "exact::Network", dtypes) if exact else "nullptr",
    }


def _filter(number: int, kernel: FilterKernel, dtypes: Collection[str]) -> dict[str, object]:
    source = kernel.source
    planes, rows, columns = source.window.shape
    return {
        "number": number,
        "window": source.window.key,
        "name": source.name,
        "text": _body(source.name, source.text),
        "planes": planes,
        "rows": rows,
        "columns": columns,
        "functions": _by_element("filters", "Window", dtypes),
    }


def _functions(manifest: RelaxedManifest, real: str) -> str:
    """Return the C functions of a kernel for an arithmetic type; none, if it is not compiled for it."""
    if real not in manifest.reals:
        return ""
    return ", ".join(f"relaxed::{function_name(name, real)}" for name in ("forward", "backward"))


def _by_element(table: str, kernel: str, dtypes: Collection[str]) -> str:
    """Return a table of a kernel's functions for some types of values."""
    elements = dict.fromkeys(f"nsc::{ELEMENTS[dtype]}" for dtype in dtypes)
    return f"nsc::deploy::{table}<{', '.join((kernel, *elements))}>"


def _body(name: str, text: str) -> str:
    """Return the source of a package's kernel without what it includes."""
    body = library.without_headers(text)
    if body == text:
        raise LoweringError(
            f"{name} has nsc's library in its source, as a deployed source has too: compile it without "
            f"{argument('single_file', True)}"
        )
    return body
