"""Cubins: a kernel's CUDA functions as a binary for an architecture; needs no torch, no driver and no GPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from nsc.contract.launch import PARTS
from nsc.errors import ToolchainError
from nsc.runtime.build import cache
from nsc.runtime.build.nvrtc import Nvrtc, find_nvrtc
from nsc.runtime.devices.launches import SHARED_KIB, launches
from nsc.runtime.relaxed.kernel import Kernel


def build(kernel: Kernel, architecture: str, part: str, shared_bytes: int | None = None) -> cache.Artifact:
    """Return the cubin of a part of a kernel for an architecture, compiled unless the cache has it.

    Args:
        kernel: one with the CUDA target.
        architecture: such as sm_90.
        part: a key of PARTS.
        shared_bytes: what a block of the device may ask for; None: what the architecture has.

    Raises:
        ToolchainError, BuildError: see `compiler_of`; or the compiler failed.
    """
    compiler = compiler_of(kernel, architecture, part, shared_bytes)
    return cache.build(f"{kernel.name}_{part}", kernel.sources["cuda"], compiler)


def build_all(
    kernel: Kernel, architecture: str, shared_bytes: int | None = None
) -> tuple[cache.Artifact, ...]:
    """Return the cubins of all parts, see `build`; they are compiled at the same time."""
    with ThreadPoolExecutor(len(PARTS)) as pool:
        return tuple(pool.map(lambda part: build(kernel, architecture, part, shared_bytes), PARTS))


def compiler_of(
    kernel: Kernel, architecture: str, part: str | None = None, shared_bytes: int | None = None
) -> Nvrtc:
    """Return what compiles a kernel for an architecture.

    Args:
        kernel: one with the CUDA target.
        architecture: such as sm_90.
        part: a key of PARTS; None: all functions together.
        shared_bytes: what a block of the device may ask for; None: what the architecture has.

    Raises:
        ToolchainError: no CuPy or no NVRTC, or an architecture that NVRTC or nsc does not know.
        BuildError: the network is too wide for the shared memory; see `launches`.
    """
    compiler = find_nvrtc(architecture)
    if shared_bytes is None:
        if architecture not in SHARED_KIB:
            raise ToolchainError(
                f"nsc knows no shared memory of {architecture!r}; known for {', '.join(SHARED_KIB)}: build "
                "on a machine that has such a device"
            )
        shared_bytes = SHARED_KIB[architecture] * 1024
    defines = launches(kernel.n, kernel.launch, kernel.reals, shared_bytes).defines
    if part is not None:
        defines = (*defines, (f"NSC_{part.upper()}", "1"))
    return replace(compiler, defines=defines)
