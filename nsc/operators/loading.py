"""Loading: the folder that `nsc compile` wrote to the operator that is in it."""

from __future__ import annotations

from pathlib import Path

from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.runtime.kernel import Kernel


def load(folder: str | Path) -> Sorter:
    """Return the operator of a folder that `nsc compile` wrote; it is built on first use.

    Raises:
        PackageError: no such folder, files that nsc did not write or that were changed, or a package of
            some ranks alone.
    """
    return Sorter(Kernel.from_folder(Path(folder)).files)


def load_selector(folder: str | Path) -> Selector:
    """Return the operator of a folder that `nsc compile` wrote with --top-k, --median or --ranks.

    Raises:
        PackageError: no such folder, files that nsc did not write or that were changed, or a package that
            sorts.
    """
    return Selector(Kernel.from_folder(Path(folder)).files)
