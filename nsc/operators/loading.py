"""Loading: from the folder that `nsc compile` wrote to its operator."""

from __future__ import annotations

import os
from pathlib import Path

from nsc.errors import PackageError
from nsc.operators.operator import Operator
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.runtime.kernel import Kernel


def load(folder: str | Path) -> Operator:
    """Return the operator of a folder that `nsc compile` wrote; it is built on first use.

    Returns:
        A Selector, if the package was compiled for some ranks alone, else a Sorter.

    Raises:
        PackageError: no such folder, or files that nsc did not write or that were changed.
    """
    if not isinstance(folder, str | os.PathLike):
        raise PackageError(f"a package is named by its folder, a str or a Path, got {folder!r}")
    kernel = Kernel.from_folder(Path(folder))
    return (Sorter if kernel.outputs is None else Selector)(kernel.files)
