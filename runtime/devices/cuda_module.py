"""CUDA functions on a device: loaded and launched by the driver's API as CuPy has it."""

from __future__ import annotations

import contextlib
import importlib
import threading
from array import array
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from nsc.errors import BuildError, DeviceError, ToolchainError
from nsc.runtime.build.nvrtc import INSTALL
from nsc.runtime.devices.launches import Block
from nsc.wording import count

# Most shared memory of a block that a function may take without being told before its launch.
_PLAIN_SHARED_BYTES = 48 << 10
# Values of the driver's enumeration CUfunction_attribute.
_NUM_REGS = 4
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

Argument = Tensor | int | None
_T = TypeVar("_T")


@dataclass(frozen=True)
class Device:
    """A device that is ready for kernels.

    Attributes:
        index: its number in torch.
        architecture: such as sm_90.
        shared_bytes: what a block may ask for.
        multiprocessors: how many it has.
    """

    index: int
    architecture: str
    shared_bytes: int
    multiprocessors: int


def index_of(device: torch.device) -> int:
    """Return the number of a device; one without a number is the current device."""
    return torch.cuda.current_device() if device.index is None else device.index


def find_device(name: str, index: int) -> Device:
    """Return a device that a kernel of that name can be loaded on now.

    Raises:
        ToolchainError: no CuPy, or a CUDA graph is captured.
    """
    if torch.cuda.is_current_stream_capturing():
        raise ToolchainError(
            f"{name} is not loaded yet for this call, which cannot be done while a CUDA graph is captured: "
            "make the same call once before"
        )
    _cupy()
    properties: Any = torch.cuda.get_device_properties(index)
    return Device(
        index,
        f"sm_{properties.major}{properties.minor}",
        properties.shared_memory_per_block_optin,
        properties.multi_processor_count,
    )


class Loaded:
    """Values loaded once for each key, also if threads ask at the same time. A failed load is tried again."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._locks: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, load: Callable[[], _T]) -> _T:
        """Return the value of a key, loaded unless it is there."""
        if key not in self._values:
            with self._locks.setdefault(key, threading.Lock()):
                if key not in self._values:
                    self._values[key] = load()
        return self._values[key]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Function:
    """A function that is ready to be launched, and how many blocks of it the device runs at a time."""

    handle: int
    block: Block
    resident_blocks: int


class CudaModule:
    """The functions of a cubin on a device.

    Loading asks the driver all that launches need to know. The first call of a function may be captured in a
    CUDA graph, where little else than launches is allowed.

    Args:
        name: the kernel's, for messages.
        binary: the cubin.
        blocks: what a block of each function takes, by its name.
        device: where they run.

    Raises:
        BuildError: the driver does not load it.
        DeviceError: the device cannot hold a block of a function.
    """

    def __init__(self, name: str, binary: Path, blocks: Mapping[str, Block], device: Device) -> None:
        self._name = name
        self._driver = _cupy().cuda.driver
        self._device = device
        image = binary.read_bytes()
        with torch.cuda.device(device.index):
            # Makes torch's context current: a thread has none before its first call.
            torch.cuda.synchronize(device.index)
            self._context: int = self._driver.ctxGetCurrent()
            try:
                module = self._driver.moduleLoadData(image)
            except self._driver.CUDADriverError as error:
                raise BuildError(
                    f"the driver does not load {binary} ({error}): it may be older than NVRTC"
                ) from None
            try:
                self._functions = {
                    function: self._function(module, function, block) for function, block in blocks.items()
                }
            except BaseException:
                with contextlib.suppress(self._driver.CUDADriverError):
                    self._driver.moduleUnload(module)
                raise

    def resident_blocks(self, function: str) -> int:
        """Return how many blocks of a function the device runs at a time."""
        return self._functions[function].resident_blocks

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        """Launch a function on torch's current stream of the device; the arguments are copied.

        Raises:
            DeviceError: the driver refuses the launch, or an earlier kernel failed.
        """
        ready = self._functions[function]
        block = ready.block
        # The lowest bytes come first, so a function may take an int of four bytes.
        words = array("q", [_word(argument) for argument in arguments])
        start, count_of_words = words.buffer_info()
        addresses = array("q", range(start, start + 8 * count_of_words, 8))
        is_current = torch.cuda.current_device() == self._device.index
        with contextlib.nullcontext() if is_current else torch.cuda.device(self._device.index):
            # Autograd's threads begin without a context, and torch does not always set one.
            if self._driver.ctxGetCurrent() != self._context:
                self._driver.ctxSetCurrent(self._context)
            try:
                self._driver.launchKernel(
                    ready.handle,
                    *(blocks, 1, 1),
                    *(block.threads, 1, 1),
                    block.shared_bytes,
                    torch.cuda.current_stream().cuda_stream,
                    addresses.buffer_info()[0],
                    0,
                )
            except self._driver.CUDADriverError as error:
                raise DeviceError(
                    f"the driver refuses to launch {function} of {self._name} ({count(blocks, 'block')} of "
                    f"{block.threads} threads and {block.shared_bytes:,} bytes of shared memory): {error}. "
                    f"{_what_to_do(str(error))}"
                ) from None

    def _function(self, module: int, name: str, block: Block) -> _Function:
        handle = self._driver.moduleGetFunction(module, name)
        if block.shared_bytes > _PLAIN_SHARED_BYTES:
            self._driver.funcSetAttribute(handle, _MAX_DYNAMIC_SHARED_SIZE_BYTES, block.shared_bytes)
        per_multiprocessor: int = self._driver.occupancyMaxActiveBlocksPerMultiprocessor(
            handle, block.threads, block.shared_bytes
        )
        if per_multiprocessor < 1:
            registers = self._driver.funcGetAttribute(_NUM_REGS, handle)
            raise DeviceError(
                f"no multiprocessor of the device holds a block of {name} of {self._name}: {block.threads} "
                f"threads of {registers} registers, and {block.shared_bytes:,} bytes of shared memory. Use a "
                "smaller network, or the cpu target; where others share the device (MPS), a larger share"
            )
        return _Function(handle, block, per_multiprocessor * self._device.multiprocessors)


def _what_to_do(error: str) -> str:
    if "OUT_OF_MEMORY" in error:
        return (
            "The device has no memory left for the stacks of threads: torch.cuda.empty_cache() gives back "
            "what torch holds in store; or use a smaller batch"
        )
    return (
        "An earlier kernel may have failed, of any library, since launches do not wait: with "
        "CUDA_LAUNCH_BLOCKING=1 in the environment they do, and the one that fails says so. After an illegal "
        "address the process must be started anew"
    )


def _word(argument: Argument) -> int:
    if type(argument) is int:
        return argument
    return 0 if argument is None else argument.data_ptr()  # type: ignore[union-attr]


def _cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise ToolchainError(f"CUDA tensors need CuPy ({error}): {INSTALL}") from None
