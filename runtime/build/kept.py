"""Kept: built libraries of exact kernels and filters by their task, found without the compiler of networks.

To compile a kernel's source anew, only to see that its library is in the cache, would take up to a second.
A task keeps the name of its library and what else a call needs. Another version or state of nsc, another
processor or another compiler in the environment does not see it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nsc.runtime.build import cache
from nsc.runtime.build.texts import Texts
from nsc.version import VERSION

_ROOT = Path(__file__).parents[2]
# What libraries are made from.
_ROOMS = ("compiler", "contract", "library", "templates")
# Lines of /proc/cpuinfo that say what a processor is.
_PROCESSOR = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")


def find(task: str) -> tuple[Path, dict[str, Any]] | None:
    """Return the library of a task and what was kept beside it; None: there is none that may be used."""
    name = _name(task)
    text = None if name is None else Texts(VERSION).read(name)
    if text is None:
        return None
    try:
        said = json.loads(text)
        library = cache.binary_of(Path(said.pop("library")).name)
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
    return None if library is None else (library, said)


def keep(task: str, artifact: cache.Artifact, said: Mapping[str, Any]) -> None:
    """Keep the library of a task, with what `find` shall return beside it."""
    name = _name(task)
    if name is not None:
        Texts(VERSION).write(name, json.dumps({"library": artifact.binary.name, **said}))


def _name(task: str) -> str | None:
    processor = _processor()
    if processor is None:
        return None
    names = ("NSC_CXX", "CXX", "NSC_CXXFLAGS")
    state = (task, _sources(), platform.machine(), processor, *(os.environ.get(name) for name in names))
    return f"kernel-{hashlib.sha256(repr(state).encode()).hexdigest()[:24]}"


@functools.cache
def _processor() -> str | None:
    """Return what processor this is, as Linux says it; None: another system."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0]
    except OSError:
        return None
    return "\n".join(line for line in first.splitlines() if line.startswith(_PROCESSOR))


@functools.cache
def _sources() -> str:
    """Return a digest of the sizes and times of the files that libraries are made from."""
    state = hashlib.sha256()
    for room in _ROOMS:
        for path, status in sorted(_files(_ROOT / room)):
            state.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return state.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for file in files:
            path = os.path.join(above, file)
            yield path, os.stat(path)
