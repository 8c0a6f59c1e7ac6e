"""nsc doctor: the facts about this machine that a bug report needs, and a test of a kernel."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

import click

from nsc.audit.relaxed import relaxed_claim
from nsc.cli.shared import json_option
from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.errors import INSTALL_TORCH, BuildError, ToolchainError
from nsc.join.budget import budget_of
from nsc.runtime.build import nvrtc, prebuilt
from nsc.runtime.build.folder import made_folder
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.devices.threads import cores
from nsc.version import VERSION
from nsc.wording import count

_VARIABLES = ("NSC_CXX", "CXX", "NSC_CXXFLAGS", "NSC_CACHE_DIR")


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> None:
    """Say what nsc finds on this machine, and test whether it works here: a page for a bug report.

    A network is proved and its kernels are built and compared with the reference. Each line is ok or not ok.
    Exit code: 0 if nothing is not ok.
    """
    found = []
    for look in (_nsc, _platform, _variables, _compiler, _prebuilt, _torch, _cuda, _cache, _kernel):
        try:
            ok, text = True, look()
        except Exception as error:  # any error: the page goes on
            ok, text = False, f"{type(error).__name__}: {error}"
        found.append({"name": look.__name__[1:], "ok": ok, "text": text})
        if not as_json:
            start = f"{'ok' if ok else 'not ok':6}  {look.__name__[1:]:9}  "
            click.echo(start + text.replace("\n", f"\n{' ' * len(start)}"))
    wrong = sum(not finding["ok"] for finding in found)
    summary = f"not ok: {wrong} of {len(found)}" if wrong else "all is well"
    click.echo(json.dumps(found, indent=1) if as_json else summary)
    sys.exit(1 if wrong else 0)


def _nsc() -> str:
    return f"{VERSION} in {Path(__file__).parents[1]}; Python {platform.python_version()}, {sys.executable}"


def _platform() -> str:
    level = prebuilt.level_here() or platform.machine()
    return f"{platform.platform()}, {level}, {count(cores(), 'core')}"


def _variables() -> str:
    return ", ".join(f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ) or "none"


def _compiler() -> str:
    try:
        return find_toolchain().version.splitlines()[0]
    except ToolchainError as error:
        if not prebuilt.serve():
            raise
        return f"{error}. Until then networks run in prebuilt engines, and NumPy and torch sort exactly"


def _prebuilt() -> str:
    return prebuilt.description() or "no libraries"


def _torch() -> str:
    try:
        import torch
    except ModuleNotFoundError:
        return f"not installed; operators need it: {INSTALL_TORCH}"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
    return f"{torch.__version__}, {count(torch.get_num_threads(), 'thread')}, {device}"


def _cuda() -> str:
    return f"NVRTC {nvrtc.version()}" if nvrtc.is_installed() else f"no NVRTC: {nvrtc.INSTALL}"


def _cache() -> str:
    try:
        folder = made_folder()
    except OSError as error:
        raise BuildError(f"{error}; NSC_CACHE_DIR may name another folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BuildError(f"nothing can be written in {folder}: NSC_CACHE_DIR may name another folder")
    return str(folder)


def _kernel() -> str:
    """Run the kernel of a network, built or prebuilt, and compare it with the network and the reference."""
    files = compile_network(Request("bitonic", 8, version=VERSION), budget_of()).package.files
    *_, checks_of = relaxed_claim(files)
    checks = list(checks_of(budget_of()))
    if wrong := [check.sentence() for check in checks if check.wrong]:
        raise BuildError("; ".join(wrong))
    *_, gradients = checks
    sorts = "bitonic 8 is proved, and its kernel sorts"
    return f"{sorts}; its gradients are the reference's" if gradients.inputs else sorts
