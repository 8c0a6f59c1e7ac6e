"""A device for `runtime.devices.cuda`: runs the real sources and launches on CPU tensors, see MACHINES."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from emulated import Emulated
from executed import Executed, ExecutedByOldest
from torch import Tensor

from nsc import library
from nsc.contract.exact import ExactSource, for_element
from nsc.runtime.devices.cuda_module import Argument
from nsc.runtime.devices.launches import Block, exact_launches, launches
from nsc.runtime.relaxed.kernel import Kernel

# What runs kernels: the PTX of the newest and of the oldest NVRTC, or the text itself.
MACHINES = {"ptx": Executed, "oldest ptx": ExecutedByOldest, "text": Emulated}
OTHER_MACHINE = pytest.mark.nightly("the oldest PTX and the text run too, not only the newest PTX")
Machine = type[Executed] | type[Emulated]
# The most shared memory that a block of an H100 may have.
SHARED_BYTES = 227 << 10


class EmulatedProgram:
    """Implements `cuda_program.Program`.

    Attributes:
        order: the order in which threads run between barriers.
        blocks: how many blocks the device runs at a time.
        multiprocessors: the least samples that fill the device.
    """

    def __init__(
        self,
        kernel: Kernel,
        folder: Path,
        shared_bytes: int = SHARED_BYTES,
        edit: Callable[[str], str] = str,
        options: tuple[str, ...] = (),
        machine: Machine = Executed,
    ) -> None:
        self.launches = launches(kernel.n, kernel.launch, kernel.reals, shared_bytes)
        self.order = "ascending"
        self.blocks = 3
        self.multiprocessors = 1
        defines = "".join(f"#define {name} {value}\n" for name, value in self.launches.defines)
        self._kernels = machine(defines + edit(library.expanded(kernel.sources["cuda"])), folder, options)

    @property
    def executed(self) -> dict[str, int]:
        """By function, the instructions of its last launch; only of PTX."""
        return self._kernels.executed

    def resident_blocks(self, function: str) -> int:
        return self.blocks

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        _launch(self._kernels, function, blocks, self.launches.blocks[function], arguments, self.order)


class EmulatedExactProgram:
    """Implements `exact_cuda.ExactProgram`; see `EmulatedProgram`."""

    def __init__(
        self,
        source: ExactSource,
        dtype: str,
        folder: Path,
        shared_bytes: int = SHARED_BYTES,
        options: tuple[str, ...] = (),
        machine: Machine = Executed,
    ) -> None:
        self.source = source
        self.launches = exact_launches(source, getattr(torch, dtype).itemsize, shared_bytes)
        self.order = "ascending"
        defines = "".join(f"#define {name} {value}\n" for name, value in self.launches.defines)
        self._kernels = machine(defines + for_element(source.texts["cuda"], dtype), folder, options)

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        _launch(self._kernels, function, blocks, self.launches.blocks[function], arguments, self.order)


def _launch(
    kernels: Executed | Emulated,
    function: str,
    blocks: int,
    block: Block,
    arguments: tuple[Argument, ...],
    order: str,
) -> None:
    values = [a if a is None or isinstance(a, Tensor) else ctypes.c_int64(a) for a in arguments]
    shared_bytes = -(-block.shared_bytes // 16) * 16
    kernels.launch(function, (blocks, 1, 1), (block.threads, 1, 1), values, shared_bytes, order)
