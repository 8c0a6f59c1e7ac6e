"""Binaries that were built on a machine without a GPU, and are carried to one that has it.

The folder is a cache of nsc's, with the version of the NVRTC that filled it: another version finds what it
holds too. Wheels in it, such as diffsort's, can be imported.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from nsc.runtime.build import nvrtc

FOLDER = Path(__file__).with_name("carried")
MOST_BYTES = 40 << 20
_CACHE = "NSC_CACHE_DIR"
_OWN_VERSION = nvrtc.version


def begin() -> None:
    """Make the folder, and let this process and its children fill it."""
    FOLDER.mkdir(exist_ok=True)
    _version_file().write_text(nvrtc.version(), encoding="ascii")
    os.environ[_CACHE] = str(FOLDER)


def choose() -> None:
    """Let this process and its children take the folder, if it is there, or else build into a new one."""
    chosen = str(FOLDER) if _version_file().is_file() else tempfile.mkdtemp(prefix="nsc-")
    os.environ.setdefault(_CACHE, chosen)


def is_used() -> bool:
    """Say whether this process takes its binaries from the folder."""
    return os.environ.get(_CACHE) == str(FOLDER)


def leave_out() -> None:
    """Let this process build its binaries: the driver does not load those of the folder."""
    os.environ[_CACHE] = tempfile.mkdtemp(prefix="nsc-")
    nvrtc.version = _OWN_VERSION


def use() -> None:
    """Find what the folder has, if this process takes it."""
    if not is_used():
        return
    FOLDER.chmod(0o700)  # a cache that others may write to is refused
    version = _version_file().read_text(encoding="ascii")
    nvrtc.version = lambda: version
    sys.path += [str(wheel) for wheel in FOLDER.glob("*.whl") if str(wheel) not in sys.path]


def finish() -> int:
    """Leave the binaries alone in the folder, without their sources; return its bytes."""
    for path in FOLDER.iterdir():
        if path.suffix in (".cu", ".lock"):
            path.unlink()
    return sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())


def _version_file() -> Path:
    return FOLDER / "nvrtc"
