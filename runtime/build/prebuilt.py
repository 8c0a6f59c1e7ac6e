"""Prebuilt: libraries that the package sortnets-kernels brings, so that a first call needs no compiler.

They are built for levels of processors, and are found by their source, headers included.
The package is trusted, as Python trusts the code of every package.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from nsc import library
from nsc.runtime.build.cache import digest
from nsc.runtime.build.system import System, instructions, machine, system
from nsc.wording import count

PACKAGE = "sortnets_kernels"
# The levels of processors that libraries are built for, the best first, by their names in ziglang, with what
# Linux calls their instructions.
LEVELS: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": {
        "x86_64_v4": frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]),
        "x86_64_v3": frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"]),
    },
    "aarch64": {"generic": frozenset()},
}


def find(name: str, source: str) -> Path | None:
    """Return the library of a source for this processor, named as in `cache.build`; None: there is none.

    None too if NSC_CXX or NSC_CXXFLAGS is set.
    """
    folder, level = _folder(), level_here()
    if folder is None or level is None or not serve():
        return None
    path = folder / file_name(name, source, level, system())
    return path if path.is_file() else None


def serve() -> bool:
    """Return whether libraries are there for this processor, and the user names no compiler or flags."""
    is_built_here = {"NSC_CXX", "NSC_CXXFLAGS"} & os.environ.keys()
    return _folder() is not None and level_here() is not None and not is_built_here


def file_name(name: str, source: str, level: str, system: System) -> str:
    """Return the name of a library's file in the package."""
    return f"{name}-{digest(library.expanded(source), level)}{system.suffix}"


def description() -> str | None:
    """Return in words what is there for this processor; None: nothing."""
    folder, level = _folder(), level_here()
    if folder is None or level is None:
        return None
    engines = sum(path.suffix == system().suffix for path in folder.iterdir())
    return f"{count(engines, 'engine')}, {level}, in {folder}"


@functools.cache
def _folder() -> Path | None:
    found = importlib.util.find_spec(PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent


@functools.cache
def level_here() -> str | None:
    """Return the best level of this processor; None: it has none."""
    return best_level(machine(), instructions())


def best_level(machine: str, has: Iterable[str]) -> str | None:
    """Return the best level of a processor with some instructions; None: it has none."""
    return next((level for level, needs in LEVELS.get(machine, {}).items() if needs <= set(has)), None)
