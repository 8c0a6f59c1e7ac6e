"""A package's CUDA functions on a device. Each part is built and loaded on first use."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import torch

from nsc.contract.interface import function_name
from nsc.contract.launch import PARTS
from nsc.errors import OperandError
from nsc.runtime.build.cache import used
from nsc.runtime.devices.cuda_module import Argument, CudaModule, Loaded, find_device, index_of
from nsc.runtime.devices.launches import Launches, launches
from nsc.runtime.relaxed.cubin import build
from nsc.runtime.relaxed.kernel import Kernel
from nsc.wording import argument


class Program(Protocol):
    """A kernel's CUDA functions on a device. The first call of a function loads its part of the kernel.

    Attributes:
        launches: what blocks of its functions take.
        multiprocessors: how many the device has.
    """

    launches: Launches
    multiprocessors: int

    def __hash__(self) -> int:
        """Programs are equal only to themselves."""

    def resident_blocks(self, function: str) -> int:
        """Return how many blocks of a function the device runs at a time."""

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        """Launch a function on the current stream.

        A tensor is passed as its address, an int in eight bytes. A function that declares a shorter int takes
        the lowest of them.
        """


_programs = Loaded()


def program_of(kernel: Kernel, device: torch.device) -> Program:
    """Return a kernel's program on a device.

    Raises:
        OperandError: a kernel that was compiled without the CUDA target.
        ToolchainError: no CuPy, or no driver.
        BuildError: the device lacks shared memory for one sample.
    """
    index = index_of(device)
    return _programs.get((kernel, index), lambda: CupyProgram(kernel, index))


class CupyProgram:
    """Implements `Program` by CuPy.

    `resident_blocks` and `launch` raise, where they load a part of the kernel:

    Raises:
        ToolchainError: a CUDA graph is captured.
        BuildError: the compiler failed, or the driver does not load what it made.
        DeviceError: the device cannot hold a block of a function.
    """

    def __init__(self, kernel: Kernel, index: int) -> None:
        if "cuda" not in kernel.sources:
            raise OperandError(
                f"{kernel.name} is compiled for {', '.join(kernel.sources)}: compile it with "
                f"{argument('targets', ('cpu', 'cuda'))}"
            )
        device = find_device(kernel.name, index)
        self.multiprocessors = device.multiprocessors
        self.launches = launches(kernel.n, kernel.launch, kernel.reals, device.shared_bytes)
        self._kernel = kernel
        self._index = index
        self._modules = Loaded()
        self._part_of = {
            function_name(function, real): part
            for part, functions in PARTS.items()
            for function in functions
            for real in kernel.reals
        }

    def resident_blocks(self, function: str) -> int:
        return self._module_of(function).resident_blocks(function)

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        self._module_of(function).launch(function, blocks, arguments)

    def _module_of(self, function: str) -> CudaModule:
        part = self._part_of[function]
        return self._modules.get(part, lambda: self._load(part))

    def _load(self, part: str) -> CudaModule:
        kernel, device = self._kernel, find_device(self._kernel.name, self._index)
        blocks = {name: block for name, block in self.launches.blocks.items() if self._part_of[name] == part}
        return used(
            partial(build, kernel, device.architecture, part, device.shared_bytes),
            lambda binary: CudaModule(kernel.name, binary, blocks, device),
        )
