"""Loading: from a folder that `nsc compile` or `nsc filter` wrote to an operator or a filter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsc.arguments import path_of
from nsc.contract.manifest import MANIFEST, Manifest, RelaxedManifest, read_files
from nsc.errors import PackageError
from nsc.operators.operator import Operator
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter

if TYPE_CHECKING:
    from nsc.operators.filters import Filter


def load(folder: str | Path) -> Operator | Filter:
    """Return the operator or filter of a package's folder; its kernel is built on first use.

    Args:
        folder: where `nsc compile` or `nsc filter` wrote the package.

    Returns:
        A Filter; a Selector, if a network was compiled for some ranks alone, else a Sorter.

    Raises:
        PackageError: no such folder, or files that nsc did not write or that were changed.

    >>> import tempfile
    >>> import nsc
    >>> operator = nsc.compile("bitonic", 4)
    >>> with tempfile.TemporaryDirectory() as folder:  # `nsc compile` writes these files
    ...     for name, text in operator.kernel.files.items():
    ...         _ = Path(folder, name).write_text(text, encoding="utf-8")
    ...     load(folder) == operator
    True
    """
    files = read_files(path_of("a package's folder", folder, PackageError))
    manifest = Manifest.from_text(files[MANIFEST])
    if not isinstance(manifest, RelaxedManifest):
        from nsc.operators.filters import Filter  # loads the compiler, which operators do not need

        return Filter(files)
    operator = Sorter(files) if manifest.outputs is None else Selector(files)
    operator.kernel.specialise()
    return operator
