"""A device for `runtime.devices.cuda`: emulation.h runs the real sources and launches on CPU tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import torch
from emulated import Emulated
from torch import Tensor

from nsc import library
from nsc.contract.exact import ExactSource, for_element
from nsc.runtime.devices.cuda_module import Argument
from nsc.runtime.devices.launches import Block, exact_launches, launches
from nsc.runtime.relaxed.kernel import Kernel

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
    ) -> None:
        self.launches = launches(kernel.n, kernel.launch, kernel.reals, shared_bytes)
        self.order = "ascending"
        self.blocks = 3
        self.multiprocessors = 1
        defines = "".join(f"#define {name} {value}\n" for name, value in self.launches.defines)
        self._kernels = Emulated(defines + edit(library.expanded(kernel.sources["cuda"])), folder, options)

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
    ) -> None:
        self.source = source
        self.launches = exact_launches(source, getattr(torch, dtype).itemsize, shared_bytes)
        self.order = "ascending"
        defines = "".join(f"#define {name} {value}\n" for name, value in self.launches.defines)
        self._kernels = Emulated(defines + for_element(source.texts["cuda"], dtype), folder, options)

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        _launch(self._kernels, function, blocks, self.launches.blocks[function], arguments, self.order)


def _launch(
    kernels: Emulated,
    function: str,
    blocks: int,
    block: Block,
    arguments: tuple[Argument, ...],
    order: str,
) -> None:
    values = [a if a is None or isinstance(a, Tensor) else ctypes.c_int64(a) for a in arguments]
    shared_bytes = -(-block.shared_bytes // 16) * 16
    kernels.launch(function, (blocks, 1, 1), (block.threads, 1, 1), values, shared_bytes, order)
