"""Systems: what differs between Linux and macOS, in one table."""

from __future__ import annotations

import functools
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# The instructions of x86-64 that macOS calls other names than Linux.
_NAMES = {"avx1.0": "avx", "lzcnt": "abm"}
# What macOS says of a processor. Those of ARM have the first alone.
_FACTS = ("brand_string", "features", "leaf7_features", "extfeatures")


@dataclass(frozen=True)
class System:
    """A system that libraries are built for and loaded on.

    Attributes:
        suffix: of libraries.
        link_flags: returns flags for a library of that name. On macOS a library holds its own name, which is
            else the path where it is built.
        install: what makes a compiler available.
        processor: returns the system's words for this processor and its instructions.
        version: returns the version of what libraries link.
        has_tools: whether the system's own compilers are there. On macOS their names are there without them,
            and to run one opens a window.
    """

    suffix: str
    link_flags: Callable[[str], tuple[str, ...]]
    install: str
    processor: Callable[[], str]
    version: Callable[[], str]
    has_tools: Callable[[], bool] = lambda: True


def _processor_of_linux() -> str:
    """Return the lines of /proc/cpuinfo that describe a processor."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0]
    except OSError:
        return ""
    described = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")
    return "\n".join(line for line in first.splitlines() if line.startswith(described))


def _processor_of_macos() -> str:
    return _printed("/usr/sbin/sysctl", *(f"machdep.cpu.{fact}" for fact in _FACTS))


@functools.cache
def _has_tools_of_macos() -> bool:
    return _printed("/usr/bin/xcode-select", "-p") != ""


def _printed(*command: str) -> str:
    """Return what a command of the system prints; "" if it cannot be run."""
    import subprocess  # not needed on Linux

    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


SYSTEMS = {
    "linux": System(
        suffix=".so",
        link_flags=lambda name: (),
        install="Install g++ or clang, or pip install ziglang",
        processor=_processor_of_linux,
        version=lambda: "-".join(platform.libc_ver()),
    ),
    "darwin": System(
        suffix=".dylib",
        link_flags=lambda name: (f"-Wl,-install_name,@rpath/{name}",),
        install="Run xcode-select --install, or pip install ziglang",
        processor=_processor_of_macos,
        version=lambda: platform.mac_ver()[0],
        has_tools=_has_tools_of_macos,
    ),
}


def system() -> System:
    """Return this system; one that is not in the table is taken for Linux."""
    return SYSTEMS.get(sys.platform, SYSTEMS["linux"])


def machine() -> str:
    """Return this processor's architecture, by one name on all systems: x86_64, aarch64 or another."""
    return {"arm64": "aarch64"}.get(platform.machine(), platform.machine())


@functools.cache
def processor() -> str:
    """Return the system's words for this processor."""
    return f"{platform.machine()}\n{system().processor()}"


def instructions() -> frozenset[str]:
    """Return the names of this processor's instructions, as Linux calls them."""
    words = re.findall(r"[\w.]+", processor().lower())
    return frozenset(_NAMES.get(word, word) for word in words)
