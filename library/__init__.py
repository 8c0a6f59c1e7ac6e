"""The kernel library: C++ and CUDA headers that do not depend on a network. Kernels include them.

A compiler gets one text: `expanded` puts each header in the place of its first `#include <nsc/...>`.

The code that runs kernels does not depend on a network, so it is a library that C++ programmers read and
test as such. The text of a kernel has its network: counts and tables, straight-line code of an exact kernel,
stages of a filter. A build's key covers the expanded text. A package names the library that it was written
for by its digest.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

from nsc.errors import BuildError

# The folder that a compiler may search for headers.
FOLDER = Path(__file__).parent
_INCLUDE = re.compile(r"^#include <(nsc/[\w/]+\.h)>\n", re.MULTILINE)
_ONCE = "#pragma once\n"


def expanded(source: str) -> str:
    """Return a kernel's text with the library's headers in it, each once.

    Raises:
        BuildError: it includes a header that this library does not have.
    """
    seen: set[str] = set()

    def header(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        return _INCLUDE.sub(header, text(name).replace(_ONCE, ""))

    return _INCLUDE.sub(header, source)


def without_headers(source: str) -> str:
    """Return a kernel's text without its includes of the library."""
    return _INCLUDE.sub("", source)


@functools.cache
def text(name: str) -> str:
    """Return the text of a header, which is called as in `#include`.

    Raises:
        BuildError: this library does not have it.
    """
    try:
        return (FOLDER / name).read_text(encoding="utf-8")
    except OSError:
        raise BuildError(f"a kernel includes {name}, which the library of this nsc does not have") from None


def constant(name: str, header: str) -> float:
    """Return a number that a header of nsc/ defines, so that Python has it from there."""
    line = rf"^(?:inline )?constexpr [^;]*\b{name} = ([-.\w]+)[,;]"
    found = re.search(line, text(f"nsc/{header}"), re.MULTILINE)
    assert found is not None, (name, header)
    return float(found[1])


@functools.cache
def digest() -> str:
    """Return the SHA-256 of all headers, names and texts."""
    state = hashlib.sha256()
    for path in sorted(FOLDER.glob("nsc/**/*.h")):
        state.update(f"{path.relative_to(FOLDER).as_posix()}\0".encode())
        state.update(path.read_bytes() + b"\0")
    return state.hexdigest()
