"""A package's CUDA functions on a device, built and loaded on first use."""

from __future__ import annotations

from typing import Protocol

import torch

from nsc.errors import OperandError
from nsc.runtime.devices.cuda_module import Argument, CudaModule, Loaded, find_device, index_of
from nsc.runtime.devices.launches import Launches, launches
from nsc.runtime.relaxed.cubin import build
from nsc.runtime.relaxed.kernel import Kernel
from nsc.wording import argument


class Program(Protocol):
    """A kernel's CUDA functions, loaded on a device.

    Attributes:
        launches: what blocks of its functions take.
        multiprocessors: how many the device has.
    """

    launches: Launches
    multiprocessors: int

    def resident_blocks(self, function: str) -> int:
        """Return how many blocks of a function the device runs at a time."""

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        """Launch a function on the current stream.

        A tensor is passed as its address, an int in eight bytes. A function that declares a shorter int takes
        the lowest of them.
        """


_programs = Loaded()


def program_of(kernel: Kernel, device: torch.device) -> Program:
    """Return a kernel's program on a device, built and loaded on first use.

    Raises:
        OperandError: a kernel that was compiled without the CUDA target.
        ToolchainError: no CuPy, or no driver.
        BuildError: the compiler failed, or the device lacks shared memory for one sample.
        DeviceError: the device cannot hold a block of a function.
    """
    index = index_of(device)
    return _programs.get((kernel, index), lambda: CupyProgram(kernel, index))


class CupyProgram(CudaModule):
    """Implements `Program` by CuPy."""

    def __init__(self, kernel: Kernel, index: int) -> None:
        if "cuda" not in kernel.sources:
            raise OperandError(
                f"{kernel.name} is compiled for {', '.join(kernel.sources)}: compile it with "
                f"{argument('targets', ('cpu', 'cuda'))}"
            )
        device = find_device(kernel.name, index)
        self.multiprocessors = device.multiprocessors
        self.launches = launches(kernel.n, kernel.launch, kernel.reals, device.shared_bytes)
        binary = build(kernel, device.architecture, device.shared_bytes).binary
        super().__init__(kernel.name, binary, kernel.manifest.stated("cuda"), self.launches.blocks, device)
