"""A kernel's CUDA functions on a device: built, loaded and launched by the driver's API as CuPy has it."""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import torch
from torch import Tensor

from nsc.errors import BuildError, OperandError, PackageError, ToolchainError
from nsc.runtime.cuda import Argument
from nsc.runtime.kernel import Kernel
from nsc.runtime.nvrtc import build, tile_columns
from nsc.wording import argument

_WARP = 32
# The routing's number comes first, and it is an int32 in the kernels.
_ROUTING_FUNCTIONS = ("nsc_route", "nsc_reversed")
# Beyond this a function must be told so before its launch.
_PLAIN_SHARED_BYTES = 48 << 10
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # of the driver's enumeration CUfunction_attribute


def loaded(kernel: Kernel, device: torch.device) -> CupyProgram:
    """Return a kernel's program on a device, built and loaded on first use; see `cuda.program_of`."""
    return _loaded(kernel, torch.cuda.current_device() if device.index is None else device.index)


@functools.cache
def _loaded(kernel: Kernel, device: int) -> CupyProgram:
    return CupyProgram(kernel, device)


class CupyProgram:
    """Implements `cuda.Program` on a device."""

    def __init__(self, kernel: Kernel, device: int) -> None:
        if "cuda" not in kernel.sources:
            raise OperandError(
                f"{kernel.name} is compiled for {', '.join(kernel.sources)}: compile it with "
                f"{argument('targets', ('cpu', 'cuda'))}"
            )
        if torch.cuda.is_current_stream_capturing():
            raise ToolchainError(
                f"{kernel.name} is not loaded yet, which cannot be done while a CUDA graph is captured: "
                "call it once before"
            )
        self._driver = _cupy().cuda.driver
        self._device = device
        properties: Any = torch.cuda.get_device_properties(device)
        self._multiprocessors: int = properties.multi_processor_count
        shared_bytes = properties.shared_memory_per_block_optin
        self.tile_columns = tile_columns(kernel.n, kernel.launch, shared_bytes)
        binary = build(kernel, f"sm_{properties.major}{properties.minor}", shared_bytes).binary
        self._functions: dict[tuple[str, int], int] = {}
        with torch.cuda.device(device):
            # Makes torch's context the thread's, which no context is before a thread's first call.
            torch.cuda.synchronize(device)
            self._context: int = self._driver.ctxGetCurrent()
            try:
                self._module = self._driver.moduleLoad(str(binary))
            except self._driver.CUDADriverError as error:
                raise BuildError(
                    f"the driver does not load {binary} ({error}): it may be older than NVRTC"
                ) from None
            if kernel.facts["cuda"].encode() not in binary.read_bytes():
                raise PackageError(
                    f"the manifest of {kernel.name} and the kernels in {binary} are not of one package: "
                    "compile it again"
                )
            self.launch("nsc_prepare", kernel.launch.cones + 1, _WARP, -(-kernel.n // 16) * 16, ())
            # Calls on other streams must find the tables written.
            torch.cuda.synchronize(device)

    def resident_blocks(self, function: str, threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a function the device runs at a time."""
        with torch.cuda.device(self._device):
            handle = self._function(function, shared_bytes)
            per_multiprocessor: int = self._driver.occupancyMaxActiveBlocksPerMultiprocessor(
                handle, threads, shared_bytes
            )
        return max(1, per_multiprocessor) * self._multiprocessors

    def launch(
        self, function: str, blocks: int, threads: int, shared_bytes: int, arguments: tuple[Argument, ...]
    ) -> None:
        """Launch a function on torch's current stream of the device; the arguments are copied."""
        values: list[ctypes.c_int64 | ctypes.c_int32] = [ctypes.c_int64(_word(a)) for a in arguments]
        if function.startswith(_ROUTING_FUNCTIONS):
            values[0] = ctypes.c_int32(values[0].value)
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        with torch.cuda.device(self._device):
            self._driver.launchKernel(
                self._function(function, shared_bytes),
                *(blocks, 1, 1),
                *(threads, 1, 1),
                shared_bytes,
                torch.cuda.current_stream().cuda_stream,
                ctypes.addressof(addresses),
                0,
            )

    def _function(self, name: str, shared_bytes: int) -> int:
        """Return a function's handle, ready for the thread and for that much shared memory."""
        # Autograd's threads begin without a context, and torch sets one only where it has to.
        if self._driver.ctxGetCurrent() != self._context:
            self._driver.ctxSetCurrent(self._context)
        found = self._functions.get((name, shared_bytes))
        if found is None:
            found = self._driver.moduleGetFunction(self._module, name)
            if shared_bytes > _PLAIN_SHARED_BYTES:
                self._driver.funcSetAttribute(found, _MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
            self._functions[name, shared_bytes] = found
        return found


def _word(argument: Argument) -> int:
    if isinstance(argument, Tensor):
        return argument.data_ptr()
    return 0 if argument is None else argument


def _cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise ToolchainError(f"CUDA tensors need CuPy ({error}): pip install 'nsc[cuda]'") from None
