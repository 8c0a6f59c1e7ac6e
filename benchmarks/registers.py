"""Registers: the sets of vector registers that kernels are built for on this machine."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache

from nsc.runtime.build.toolchain import find_toolchain

# What can be asked for: the name of a set to the flags that keep a compiler from wider registers.
CHOICES = {"avx2": ("-mno-avx512f",), "avx512": ()}
# Name of a set to the macro by which a compiler says that it builds for it, widest first.
_MACROS = {
    "avx512": "__AVX512F__",
    "avx2": "__AVX2__",
    "avx": "__AVX__",
    "sse2": "__SSE2__",
    "neon": "__ARM_NEON",
}
# The compiler's variable, as `find_toolchain` reads it.
_FLAGS = "NSC_CXXFLAGS"


def present() -> str:
    """Return the set that kernels are built for now: the machine's widest, unless flags say otherwise."""
    return _present(find_toolchain().command)


def available() -> tuple[str, ...]:
    """Return the sets that kernels can be built for now, the present one last."""
    return tuple(CHOICES) if present() == "avx512" else (present(),)


@contextlib.contextmanager
def built_for(registers: str) -> Iterator[None]:
    """Build kernels for one of the available sets, in this process and those that it starts."""
    before = os.environ.get(_FLAGS)
    try:
        if registers != present():
            os.environ[_FLAGS] = shlex.join([*shlex.split(before or ""), *CHOICES[registers]])
        yield
    finally:
        if before is None:
            os.environ.pop(_FLAGS, None)
        else:
            os.environ[_FLAGS] = before


@cache
def _present(command: tuple[str, ...]) -> str:
    macros = subprocess.run(
        [*command, "-dM", "-E", "-x", "c++", os.devnull], check=True, capture_output=True, text=True
    ).stdout
    defined = {line.split()[1] for line in macros.splitlines()}
    return next((name for name, macro in _MACROS.items() if macro in defined), "other")
