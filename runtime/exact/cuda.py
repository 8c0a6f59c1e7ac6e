"""Exact kernels on CUDA devices, built for each type of values and loaded on first use."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from nsc.contract.exact import ELEMENTS, ExactSource, for_element
from nsc.runtime.build import cache
from nsc.runtime.build.nvrtc import find_nvrtc
from nsc.runtime.devices.cuda_module import Argument, CudaModule, Loaded, find_device, index_of
from nsc.runtime.devices.launches import EXACT_PAIRS, EXACT_VALUES, ExactLaunches, exact_launches
from nsc.runtime.exact.kernel import Layout
from nsc.runtime.exact.sorting import KernelSort

_programs = Loaded()


def program_of(source: ExactSource, dtype: str, device: torch.device) -> ExactProgram:
    """Return a kernel's program for a type of values on a device, built and loaded on first use.

    Args:
        source: the kernel.
        dtype: a key of ELEMENTS.
        device: where it runs.

    Raises:
        ToolchainError: no CuPy, or no driver; or a CUDA graph is captured, where nothing can be loaded.
        BuildError: the compiler failed.
        DeviceError: the device cannot hold a block of a function.
    """
    index = index_of(device)
    key = source.texts["cuda"], ELEMENTS[dtype], index
    return _programs.get(key, lambda: ExactProgram(source, dtype, index))


class ExactProgram(CudaModule):
    """An exact kernel's CUDA functions for a type of values, loaded on a device.

    Attributes:
        launches: what blocks of its functions take.
    """

    def __init__(self, source: ExactSource, dtype: str, index: int) -> None:
        device = find_device(source.name, index)
        value_bytes = getattr(torch, dtype).itemsize
        self.launches = exact_launches(source, value_bytes, device.shared_bytes)
        binary = build(source, dtype, device.architecture, self.launches).binary
        super().__init__(source.name, binary, self.launches.blocks, device)


def build(source: ExactSource, dtype: str, architecture: str, launches: ExactLaunches) -> cache.Artifact:
    """Return the cubin of an exact kernel, compiled unless the cache has it; needs no driver and no GPU.

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
    text = for_element(source.texts["cuda"], dtype)
    return cache.build(f"{source.name}_{ELEMENTS[dtype]}", text, compiler)


class CudaSort(KernelSort):
    """Sorts tensors on a GPU, on torch's current stream; `sort` raises DeviceError if the driver refuses."""

    # Neighbouring threads read what lies side by side, however few samples there are.
    least_columns = 1

    def __init__(self, source: ExactSource, program: ExactProgram) -> None:
        super().__init__(source)
        self._program = program

    def sort(
        self, x: Tensor, layout: Layout, descending: bool, values: Tensor, indices: Tensor | None
    ) -> None:
        function = EXACT_VALUES if indices is None else EXACT_PAIRS
        block = self._program.launches.blocks[function]
        arguments: tuple[Argument, ...] = (
            x,
            *(layout.slabs, layout.samples, layout.slab, layout.wire, layout.sample),
            int(descending),
            block.items,
            values,
        )
        if indices is not None:
            arguments = (*arguments, indices, indices.itemsize)
        blocks = -(-layout.slabs * layout.samples // block.items)
        if blocks:
            self._program.launch(function, blocks, arguments)
