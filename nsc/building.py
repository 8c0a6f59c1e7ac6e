"""What the compiler may build on this machine: C++ that proves networks."""

from __future__ import annotations

from pathlib import Path

import nsc
from nsc.errors import ToolchainError
from nsc.runtime import cache
from nsc.runtime.toolchain import find_toolchain


def build_library(name: str, source: str) -> Path | None:
    """Return the library of a C++ source, from the cache or built now; None where there is no compiler.

    Raises:
        BuildError: the compiler failed.
    """
    try:
        return cache.build(name, source, find_toolchain(), nsc.__version__).binary
    except ToolchainError:
        return None
