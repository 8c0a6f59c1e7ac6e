"""Deploy: kernels and filters of packages as one C++ source for programs of torch that have no Python."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nsc import library
from nsc.compiler.text import wrapped
from nsc.contract.exact import ELEMENTS, ExactSource
from nsc.contract.interface import function_name
from nsc.contract.manifest import RelaxedManifest
from nsc.contract.windows import FilterSource, window_name
from nsc.errors import LoweringError
from nsc.templates import fill
from nsc.wording import argument


@dataclass(frozen=True)
class Deployed:
    """A package's kernel, to be deployed.

    Attributes:
        spec: its name in models.
        manifest: of its package.
        text: its C++ source.
        exact: the exact kernel for its task; None: torch sorts.
        dtypes: the types of values that the exact kernel is built for, keys of ELEMENTS; torch sorts others.
    """

    spec: str
    manifest: RelaxedManifest
    text: str
    exact: ExactSource | None
    dtypes: Collection[str]


def render(
    name: str,
    command: str,
    version: str,
    kernels: Sequence[Deployed],
    filters: Sequence[tuple[FilterSource, Collection[str]]],
) -> str:
    """Return a source that needs no other file of nsc; the same arguments, the same text.

    Args:
        name: of the file, without its suffix.
        command: what makes it, for its first lines.
        version: of nsc.
        kernels: in their order, each once.
        filters: likewise, each with the types of pixels that it is built for, keys of ELEMENTS.

    Raises:
        LoweringError: a package that was compiled with its library in its source.
    """
    text = fill(
        "deploy/source.cpp.j2",
        name=name,
        command=command,
        version=version,
        kernels=[_kernel(number, kernel) for number, kernel in enumerate(kernels)],
        filters=[_filter(number, *each) for number, each in enumerate(filters)],
    )
    return library.expanded(text)


def _kernel(number: int, kernel: Deployed) -> dict[str, object]:
    """Return what the template prints of a kernel; an exact one is beside it, or none."""
    manifest = kernel.manifest
    ranks = [] if manifest.outputs is None else [rank for _, rank in manifest.outputs]
    exact = kernel.exact if kernel.dtypes else None
    return {
        "number": number,
        "spec": kernel.spec,
        "manifest": manifest,
        "text": _body(manifest.name, kernel.text),
        "outputs": len(ranks),
        "rank_lines": wrapped([*ranks, 0]),
        "float32": _functions(manifest, "float32"),
        "float64": _functions(manifest, "float64"),
        "exact_text": _body(manifest.name, exact.texts["cpu"]) if exact else "",
        "sorts": _by_element("exact_sorts", "exact::Network", kernel.dtypes) if exact else "nullptr",
    }


def _filter(number: int, source: FilterSource, dtypes: Collection[str]) -> dict[str, object]:
    planes, rows, columns = source.shape
    return {
        "number": number,
        "window": window_name(source.shape, source.rank),
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
