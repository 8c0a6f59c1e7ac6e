"""Doctor: what a report of a defect needs to say of this machine, and whether a kernel works here."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nsc.audit.relaxed import relaxed_claim
from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.errors import INSTALL_TORCH, BuildError, ToolchainError
from nsc.join.budget import budget_of
from nsc.runtime.build import nvrtc, prebuilt
from nsc.runtime.build.folder import check_folder, user_folder
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.threads import cores
from nsc.version import VERSION
from nsc.wording import count

_VARIABLES = ("NSC_CXX", "CXX", "NSC_CXXFLAGS", "NSC_CACHE_DIR")


@dataclass(frozen=True)
class Finding:
    """What was found of one thing.

    Attributes:
        name: the thing.
        ok: whether it is well.
        text: what was found; where it is not well, what to do.
    """

    name: str
    ok: bool
    text: str


def findings() -> Iterator[Finding]:
    """Yield what is found of each thing; no defect of the machine ends this with an error.

    Cost: a few seconds, in which a kernel is built and torch is imported.

    >>> found = findings()
    >>> next(found).name, next(found).name
    ('nsc', 'platform')
    """
    for look in (_nsc, _platform, _variables, _compiler, _torch, _cuda, _cache, _kernel):
        try:
            yield Finding(look.__name__[1:], True, look())
        except Exception as error:  # of whatever kind: the page goes on
            yield Finding(look.__name__[1:], False, f"{type(error).__name__}: {error}")


def _nsc() -> str:
    return f"{VERSION} in {Path(__file__).parent}; Python {platform.python_version()}, {sys.executable}"


def _platform() -> str:
    level = prebuilt.level_here() or platform.machine()
    return f"{platform.platform()}, {level}, {count(cores(), 'core')}"


def _variables() -> str:
    return ", ".join(f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ) or "none"


def _compiler() -> str:
    libraries = prebuilt.description() or "no prebuilt libraries"
    try:
        return f"{find_toolchain().version.splitlines()[0]}; {libraries}"
    except ToolchainError as error:
        raise ToolchainError(f"{error}; {libraries}") from None


def _torch() -> str:
    try:
        import torch
    except ModuleNotFoundError:
        return f"not installed; operators need it: {INSTALL_TORCH}"
    return f"{torch.__version__}, {count(torch.get_num_threads(), 'thread')}"


def _cuda() -> str:
    compiler = f"NVRTC {nvrtc.version()}" if nvrtc.is_installed() else f"no NVRTC: {nvrtc.INSTALL}"
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return f"torch finds no device; {compiler}"
    properties = torch.cuda.get_device_properties()
    return f"{properties.name}, sm_{properties.major}{properties.minor}; {compiler}"


def _cache() -> str:
    folder = user_folder()
    if not folder.exists():
        return f"{folder}, which the first build makes"
    check_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BuildError(f"nothing can be written in {folder}: NSC_CACHE_DIR may name another folder")
    return str(folder)


def _kernel() -> str:
    """Build the kernels of a network, and compare them with the network and the plain reference."""
    files = compile_network(Request("bitonic", 8, version=VERSION), budget_of()).package.files
    checks = list(relaxed_claim(files).check(budget_of()))
    wrong = [check.sentence() for check in checks if check.wrong]
    if wrong:
        raise BuildError("; ".join(wrong))
    sorts = "bitonic 8 is proved and built, and sorts"
    return f"{sorts}; its gradients are the reference's" if all(check.inputs for check in checks) else sorts
