"""Cubins: an exact kernel's CUDA functions as a binary; needs no torch, no driver and no GPU."""

from __future__ import annotations

from dataclasses import replace

from nsc.contract.exact import ELEMENTS, ExactSource, for_element
from nsc.runtime.build import cache
from nsc.runtime.build.nvrtc import find_nvrtc
from nsc.runtime.devices.launches import ExactLaunches


def build(source: ExactSource, dtype: str, architecture: str, launches: ExactLaunches) -> cache.Artifact:
    """Return the cubin of an exact kernel for a type of values, compiled unless the cache has it.

    Args:
        source: the kernel.
        dtype: a key of ELEMENTS.
        architecture: such as sm_90.
        launches: how it is launched there.

    Raises:
        ToolchainError: no CuPy or no NVRTC, or an architecture that NVRTC does not know.
        BuildError: the compiler failed.
    """
    compiler = replace(find_nvrtc(architecture), defines=launches.defines)
    name = f"{source.name}_{ELEMENTS[dtype]}"
    return cache.build(name, for_element(source.texts["cuda"], dtype), compiler, source.version)
