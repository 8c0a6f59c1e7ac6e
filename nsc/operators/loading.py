"""Loading: from the folder that `nsc compile` wrote to its operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsc.arguments import path_of
from nsc.contract.windows import is_filter, read_filter_files
from nsc.errors import PackageError
from nsc.operators.operator import Operator
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.runtime.kernel import Kernel

if TYPE_CHECKING:
    from nsc.operators.filters import Filter


def load(folder: str | Path) -> Operator:
    """Return the operator of a folder that `nsc compile` wrote; it is built on first use.

    Returns:
        A Selector, if the package was compiled for some ranks alone, else a Sorter.

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
    path = path_of("a package's folder", folder, PackageError)
    if is_filter(path):
        raise PackageError(f"{path} is a filter: load it with nsc.load_filter")
    kernel = Kernel.from_folder(path)
    return (Sorter if kernel.outputs is None else Selector)(kernel.files)


def load_filter(folder: str | Path) -> Filter:
    """Return the filter of a folder that `nsc compile --window` wrote; it is built on first use.

    Raises:
        PackageError: no such folder, or files that nsc did not write or that were changed.

    >>> import tempfile
    >>> from nsc.compiler.windows import Window
    >>> from nsc.join.filters import compiled_filter
    >>> with tempfile.TemporaryDirectory() as folder:  # `nsc compile --window` writes these files
    ...     for name, text in compiled_filter(Window.of(3)).package.files.items():
    ...         _ = Path(folder, name).write_text(text, encoding="utf-8")
    ...     load_filter(folder)
    Filter(median_3x3: the median of 3x3 pixels)
    """
    # Filters come with the compiler of networks, which other packages do not need.
    from nsc.operators.filters import Filter

    return Filter(read_filter_files(path_of("a package's folder", folder, PackageError)))
