"""A kernel's CUDA functions on a device: built, loaded and launched through CuPy."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nsc.errors import OperandError, ToolchainError
from nsc.runtime.cuda import Argument
from nsc.runtime.kernel import Kernel
from nsc.runtime.nvrtc import build, tile_columns

_WARP = 32
# The routing's number comes first, and it is an int32 in the kernels.
_ROUTING_FUNCTIONS = ("nsc_route", "nsc_reversed")


def loaded(kernel: Kernel, device: torch.device) -> CupyProgram:
    """Return a kernel's program on a device, built and loaded on first use; see `cuda.program_of`."""
    return _loaded(kernel, torch.cuda.current_device() if device.index is None else device.index)


@functools.cache
def _loaded(kernel: Kernel, device: int) -> CupyProgram:
    with torch.cuda.device(device):
        return CupyProgram(kernel, device)


class CupyProgram:
    """Implements `cuda.Program` on a device."""

    def __init__(self, kernel: Kernel, device: int) -> None:
        if "cuda" not in kernel.sources:
            raise OperandError(
                f"{kernel.name} is compiled for {', '.join(kernel.sources)}: compile it with "
                "--target cpu,cuda"
            )
        if torch.cuda.is_current_stream_capturing():
            raise ToolchainError(
                f"{kernel.name} is not loaded yet, which cannot be done while a CUDA graph is captured: "
                "call it once before"
            )
        cupy = _cupy()
        self._cupy = cupy
        self._device = device
        attributes = cupy.cuda.Device(device).attributes
        self._multiprocessors: int = attributes["MultiProcessorCount"]
        shared_bytes = attributes["MaxSharedMemoryPerBlockOptin"]
        self.tile_columns = tile_columns(kernel.n, kernel.launch, shared_bytes)
        architecture = f"sm_{attributes['ComputeCapabilityMajor']}{attributes['ComputeCapabilityMinor']}"
        binary = build(kernel, architecture, shared_bytes).binary
        self._module = cupy.RawModule(path=str(binary))
        self._functions: dict[tuple[str, int], Any] = {}
        self.launch("nsc_prepare", kernel.launch.cones + 1, _WARP, -(-kernel.n // 16) * 16, ())
        # Calls on other streams must find the tables written.
        torch.cuda.synchronize(device)

    def resident_blocks(self, function: str, threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a function the device runs at a time."""
        handle = self._function(function, shared_bytes).kernel.ptr
        per_multiprocessor = self._cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            handle, threads, shared_bytes
        )
        return max(1, int(per_multiprocessor)) * self._multiprocessors

    def launch(
        self, function: str, blocks: int, threads: int, shared_bytes: int, arguments: tuple[Argument, ...]
    ) -> None:
        """Launch a function on torch's current stream of the device."""
        values = [np.int64(_address(argument)) for argument in arguments]
        if function.startswith(_ROUTING_FUNCTIONS):
            values[0] = values[0].astype(np.int32)
        with torch.cuda.device(self._device):
            stream = self._cupy.cuda.Stream.from_external(torch.cuda.current_stream())
            with stream:
                self._function(function, shared_bytes)((blocks,), (threads,), values, shared_mem=shared_bytes)

    def _function(self, name: str, shared_bytes: int) -> Any:
        found = self._functions.get((name, shared_bytes))
        if found is None:
            found = self._module.get_function(name)
            if shared_bytes > _PLAIN_SHARED_BYTES:
                found.max_dynamic_shared_size_bytes = shared_bytes
            self._functions[name, shared_bytes] = found
        return found


# Beyond this a function must be told so before its launch.
_PLAIN_SHARED_BYTES = 48 << 10


def _address(argument: Argument) -> int:
    if isinstance(argument, Tensor):
        return argument.data_ptr()
    return 0 if argument is None else argument


def _cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise ToolchainError(f"CUDA tensors need CuPy ({error}): pip install 'nsc[cuda]'") from None
