"""Doctor: what nsc finds on this machine and whether it works here, as a page for reports of defects."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import stat
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.filesize import decimal

from nsc.audit.kernel import relaxed_claim
from nsc.compiler.driver import compile_network
from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.families import family_network
from nsc.compiler.request import Request
from nsc.compiler.verify import Verdict, verify
from nsc.errors import INSTALL_TORCH, BuildError, NscError, ToolchainError
from nsc.join.budget import budget_of
from nsc.runtime.build import nvrtc, prebuilt
from nsc.runtime.build.cache import user_folder
from nsc.runtime.build.entries import entries_of, remove
from nsc.runtime.build.toolchain import find_toolchain, looked_for
from nsc.runtime.build.trust import UntrustedError, check_folder
from nsc.runtime.exact.kernel import ExactKernel, layout_of
from nsc.runtime.threads import cores
from nsc.version import VERSION
from nsc.wording import count

_VARIABLES = ("NSC_CXX", "CXX", "NSC_CXXFLAGS", "NSC_CACHE_DIR")
# What a compiler defines for the vectors of a processor, the widest first.
_VECTORS = {
    "__AVX512F__": "AVX-512",
    "__AVX2__": "AVX2",
    "__AVX__": "AVX",
    "__SSE2__": "SSE2",
    "__ARM_NEON": "NEON",
}
# Of float32 at a steepness of 4, where P and the reference in float64 are compared.
_MOST_ERROR = 1e-4


@dataclass(frozen=True)
class Finding:
    """What was found of one thing.

    Attributes:
        name: the thing.
        ok: whether it is well; None: it is not there, or not tested, and nsc does without it.
        text: what was found; where it is not well, what to do.
    """

    name: str
    ok: bool | None
    text: str


class _AbsentError(Exception):
    """Something is not there, or cannot be tested, and nsc does without it."""


def findings() -> Iterator[Finding]:
    """Yield what is found of each thing; no defect of the machine ends this with an error.

    Cost: a few seconds, in which a network is proved, kernels are built, and torch is imported.

    >>> found = findings()
    >>> next(found).name, next(found).name
    ('nsc', 'Python')
    """
    for name, look in _LOOKS.items():
        try:
            yield Finding(name, True, look())
        except _AbsentError as absent:
            yield Finding(name, None, str(absent))
        except NscError as error:
            yield Finding(name, False, str(error))
        except Exception as error:  # of whatever kind: the page goes on
            yield Finding(name, False, f"{type(error).__name__}: {error}")


def _nsc() -> str:
    return f"{VERSION} in {Path(__file__).parent}"


def _python() -> str:
    return f"{platform.python_version()}, {sys.executable}"


def _platform() -> str:
    if sys.platform != "linux":
        raise ToolchainError(f"{platform.platform()}: nsc runs on Linux")
    return platform.platform()


def _variables() -> str:
    stated = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    return ", ".join(stated) or f"none of {', '.join(_VARIABLES)}"


def _processor() -> str:
    try:
        names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    except OSError:
        names = []
    name = names[0] if names else platform.machine()
    try:
        macros = find_toolchain().macros()
    except NscError:
        return f"{name}, {count(cores(), 'core')}; its vectors are unknown without a compiler"
    vectors = next((name for macro, name in _VECTORS.items() if macro in macros), "no vectors")
    return f"{name}, {count(cores(), 'core')}; kernels use {vectors}"


def _compiler() -> str:
    toolchain, places = find_toolchain(), looked_for()
    version = toolchain.version.splitlines()[0]
    listed = ", ".join(f"{name}: {place or 'none'}" for name, place in places.items())
    return f"{version}\nlooked for {listed}"


def _prebuilt() -> str:
    found = prebuilt.description()
    if found is None:
        raise _AbsentError("the package sortnets-kernels is not installed, or has nothing for this processor")
    return found


def _torch() -> str:
    _check_torch(f"not installed; operators need it: {INSTALL_TORCH}")
    import torch

    cuda = torch.version.cuda
    kind = "CPUs alone" if cuda is None else f"CUDA {cuda}"
    return f"{torch.__version__}, built for {kind}, {count(torch.get_num_threads(), 'thread')}"


def _cuda() -> str:
    try:
        compiler = f"NVRTC {nvrtc.version()}"
    except ToolchainError:
        compiler = f"no NVRTC: {nvrtc.INSTALL}"
    try:
        driver, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        driver.cuDriverGetVersion(ctypes.byref(number))
    except OSError:
        raise _AbsentError(f"no driver; {compiler}") from None
    found = f"a driver for CUDA {number.value // 1000}.{number.value % 1000 // 10}; {compiler}"
    if not compiler.startswith("NVRTC"):
        raise _AbsentError(found)
    _check_torch(f"{found}; tensors need it: {INSTALL_TORCH}")
    import torch

    if not torch.cuda.is_available():
        raise _AbsentError(f"{found}; torch finds no device")
    properties = torch.cuda.get_device_properties()
    return f"{found}; {properties.name}, sm_{properties.major}{properties.minor}"


def _cache() -> str:
    folder = user_folder()
    if not folder.exists():
        return f"{folder}, which the first build makes"
    status, entries = folder.stat(), entries_of(folder)[0]
    found = (
        f"{folder}, {decimal(sum(entry.size for entry in entries))} in {len(entries):,} entries, "
        f"of user {status.st_uid}, {stat.filemode(status.st_mode)}"
    )
    try:
        check_folder(folder)
    except UntrustedError as error:
        raise BuildError(f"{found}; {error}; NSC_CACHE_DIR may name another folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BuildError(f"{found}; nothing can be written there; NSC_CACHE_DIR may name another folder")
    return found


def _proof() -> str:
    network, start = family_network("bitonic", 16), time.perf_counter()
    verdicts = verify(network).verdict, verify(network[:-1]).verdict
    if verdicts != (Verdict.PROVED, Verdict.REFUTED):
        raise NscError(f"of bitonic 16 and what lacks its last layer the verdicts are {verdicts}")
    seconds = time.perf_counter() - start
    return f"bitonic 16 is proved to sort, and refuted without its last layer, in {seconds:.2f} s"


def _kernel() -> str:
    """Build an exact kernel, load it from the cache folder, and call it."""
    _check_compiler()
    # No other program asks for this version. So it is built, and nobody misses it when it is removed.
    source = compile_exact(8, version=f"{VERSION} doctor {uuid.uuid4()}", budget=budget_of())
    kernel, start = ExactKernel(source), time.perf_counter()
    binary = kernel.build("float32").binary
    try:
        seconds = time.perf_counter() - start
        x = np.random.default_rng(8).random((64, 8), np.float32)
        values, layout = np.empty_like(x), layout_of(len(x), 8, 1)
        assert layout is not None
        kernel.function("float32").call(x.ctypes.data, layout, values.ctypes.data, None, 0, False)
    finally:
        remove(binary)
        binary.with_suffix(".lock").unlink(missing_ok=True)  # nobody waits for it
    if not np.array_equal(values, np.sort(x)):
        raise BuildError(f"the kernel that sorts 8 values, built in {binary.parent}, sorts wrongly")
    return f"built in {seconds:.1f} s in {binary.parent}, and sorts as NumPy"


def _gradients() -> str:
    """Compare a relaxed kernel with the reference in NumPy, as `nsc verify` does."""
    _check_compiler()
    files = compile_network(Request("bitonic", 8, version=VERSION), budget_of()).package.files
    wrong = [check.sentence() for check in relaxed_claim(files).check(budget_of()) if check.wrong]
    if wrong:
        raise BuildError("; ".join(wrong))
    return "those of bitonic 8, and its values, P and losses, are the reference's"


def _operator() -> str:
    """Compare the gradient of an operator with that of the reference in torch."""
    _check_compiler()
    _check_torch("not tested without torch")
    import torch

    from nsc.api import compile
    from nsc.runtime.relaxed.reference import relax

    operator = compile("bitonic", 8)
    draw = torch.Generator().manual_seed(8)
    x, weights = torch.randn(3, 8, generator=draw), torch.randn(3, 8, 8, generator=draw)
    ours, theirs = x.clone().requires_grad_(), x.double().requires_grad_()
    p = operator.sort_with_permutation(ours, 4.0)[1]
    q = relax(operator.kernel, theirs, torch.full((3,), 4.0).double(), None, "permutation")[1]
    (got,) = torch.autograd.grad((p * weights).sum(), ours)
    (wanted,) = torch.autograd.grad((q * weights).sum(), theirs)
    error = float((got - wanted).abs().max() / wanted.abs().max())
    if not error <= _MOST_ERROR:
        raise BuildError(f"the gradient of P of bitonic 8 is {error:.0e} away from the reference's")
    return f"the gradient of P of bitonic 8 is the reference's, within {error:.0e}"


def _check_compiler() -> None:
    try:
        find_toolchain()
    except NscError:
        raise _AbsentError("not tested without a compiler") from None


def _check_torch(otherwise: str) -> None:
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise _AbsentError(otherwise) from None


_LOOKS = {
    "nsc": _nsc,
    "Python": _python,
    "platform": _platform,
    "variables": _variables,
    "processor": _processor,
    "compiler": _compiler,
    "prebuilt": _prebuilt,
    "torch": _torch,
    "CUDA": _cuda,
    "cache": _cache,
    "proof": _proof,
    "kernel": _kernel,
    "gradients": _gradients,
    "operator": _operator,
}
