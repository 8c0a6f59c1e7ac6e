"""Programs: a package's CUDA functions on a device, and the plans of calls, each worked out once.

Each part of a package is built and loaded on first use.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from nsc.contract.interface import function_name
from nsc.contract.launch import LANE_BYTES, MOST_CHUNKS, PARTS, WARP
from nsc.contract.routings import LOSSES, ROUTINGS, Payload, Routing
from nsc.errors import OperandError
from nsc.runtime.devices.cuda_module import Argument, CudaModule, Loaded, find_device, index_of
from nsc.runtime.devices.launches import launches
from nsc.runtime.relaxed.call import real_of
from nsc.runtime.relaxed.cubin import build
from nsc.runtime.relaxed.kernel import Kernel
from nsc.wording import argument


class Program:
    """A kernel's CUDA functions on a device. The first call of a function loads its part of the kernel.

    Attributes:
        launches: what blocks of its functions take.
        multiprocessors: how many the device has.

    Raises:
        OperandError: the kernel was compiled without the CUDA target.
        ToolchainError: no CuPy, or no driver.
        BuildError: the device lacks shared memory for one sample.
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
        """Return how many blocks of a function the device runs at a time; raises as `launch`."""
        return self._module_of(function).resident_blocks(function)

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        """Launch a function on the current stream.

        A tensor is passed as its address, an int in eight bytes. A function that declares a shorter int takes
        the lowest of them.

        Raises:
            ToolchainError: the function's part is not loaded, and a CUDA graph is captured.
            BuildError: the compiler failed, or the driver does not load what it made.
            DeviceError: the device cannot hold a block, or the driver refuses.
        """
        self._module_of(function).launch(function, blocks, arguments)

    def _module_of(self, function: str) -> CudaModule:
        part = self._part_of[function]
        return self._modules.get(part, lambda: self._load(part))

    def _load(self, part: str) -> CudaModule:
        kernel, device = self._kernel, find_device(self._kernel.name, self._index)
        blocks = {name: block for name, block in self.launches.blocks.items() if self._part_of[name] == part}
        binary = build(kernel, device.architecture, part, device.shared_bytes).binary
        return CudaModule(kernel.name, binary, blocks, device)


_programs = Loaded()


def program_of(kernel: Kernel, device: torch.device) -> Program:
    """Return a kernel's program on a device; raises as `Program`."""
    index = index_of(device)
    return _programs.get((kernel, index), lambda: Program(kernel, index))


# Bytes of a part of a loss.
_LOSS_BYTES = 8


@dataclass(frozen=True)
class Function:
    """A function of a program.

    Attributes:
        name: its name.
        items: how many samples, tiles or slots a block of it works on at a time.
    """

    name: str
    items: int

    def blocks_for(self, items: int) -> int:
        """Return how many blocks work on so many items."""
        return ceil(items, self.items)


@dataclass(frozen=True)
class Plan:
    """The plan that all calls of a kernel on a device share, for a routing, a number of columns and a type.

    Attributes:
        routing: the routing.
        columns: columns of a sample's tiles.
        chunks: pieces that the columns are cut into; each has its own gradients of weights.
        samples_per_tile: how many a tile of columns holds.
        keys, keys_backward, sums, route, route_backward: the functions.
        slots: places for gradients of weights.
        weight_numbers: numbers that the keys pass leaves of a sample.
        merge_comparators: comparators of the merge that a loss takes apart.
        column_products, first_products: numbers of a sample that the backward routing leaves for the
            gradients of that merge: by column, and for its first level by warp; 0 where a call does not take
            the merge apart.
        first_rows: rows of a sample's `first_products`.
        sample_bytes, sample_bytes_with_gradients: what a sample's weights take, with their gradients and
            parts of losses.
        kept_rows: most rows that the codelets of a tile load, and the backward routing keeps.
        kept_numbers, kept_bytes: what a block of the backward routing keeps.
    """

    routing: Routing
    columns: int
    chunks: int
    samples_per_tile: int
    keys: Function
    keys_backward: Function
    sums: Function
    route: Function
    route_backward: Function
    slots: int
    weight_numbers: int
    merge_comparators: int
    column_products: int
    first_rows: int
    first_products: int
    sample_bytes: int
    sample_bytes_with_gradients: int
    kept_rows: int
    kept_numbers: int
    kept_bytes: int

    def bytes_per_sample(self, with_gradients: bool) -> int:
        """Return the bytes of scratch memory that a sample takes."""
        return self.sample_bytes_with_gradients if with_gradients else self.sample_bytes


@functools.lru_cache(maxsize=4096)
def plan_of(kernel: Kernel, program: Program, routing: str, columns: int, dtype: torch.dtype) -> Plan:
    """Return the plan of calls of a kernel on a device.

    Args:
        kernel: the kernel.
        program: its functions on the device.
        routing: a key of ROUTINGS.
        columns: of the payload; of P and losses the number of wires.
        dtype: of x.
    """
    launch, launches, real = kernel.launch, program.launches, real_of(dtype)
    lane_columns = LANE_BYTES // dtype.itemsize
    tile_columns = launches.tile_lanes * lane_columns
    # Columns of a tile that a sample takes; see `Tile` in library/nsc/relaxed/cuda/tile.h.
    group = lane_columns
    if columns > lane_columns:
        group = max(lane_columns, min(tile_columns, launch.widest_group))
    chunks = max(1, min(MOST_CHUNKS, ceil(columns, group)))
    described = ROUTINGS[routing]
    taken = described.payload
    is_payload = taken in (Payload.COLUMNS, Payload.RANKS)
    kept_rows = launch.kept_rows if is_payload else launch.kept_rows_permutation
    losses = chunks * _LOSS_BYTES if described.is_loss else 0
    if launch.kept_rows_in_block:
        kept_rows = 0
    column_products = first_rows = first_products = 0
    asks_for_one = described.loss is not None and not LOSSES[described.loss].by_rank
    if launch.merge_layers and taken is Payload.TARGET and asks_for_one:
        half = columns // 2
        kept_rows, column_products = launch.kept_rows_front, columns * half
        first_rows = ceil(columns, group) * (launch.tile_threads // WARP)
        first_products = first_rows * half

    def function(name: str) -> Function:
        full = function_name(name, real)
        return Function(full, launches.blocks[full].items)

    route_backward = function("route_backward")
    kept_numbers = route_backward.items * kept_rows * tile_columns
    return Plan(
        routing=described,
        columns=columns,
        chunks=chunks,
        samples_per_tile=tile_columns // group,
        keys=function("keys"),
        keys_backward=function("keys_backward"),
        sums=function("sum"),
        route=function("reversed" if described.is_reversed else "route"),
        route_backward=route_backward,
        slots=launch.slots,
        weight_numbers=launch.weight_numbers,
        merge_comparators=launch.merge_layers << launch.merge_layers >> 1,
        column_products=column_products,
        first_rows=first_rows,
        first_products=first_products,
        sample_bytes=launch.weight_numbers * dtype.itemsize + losses,
        sample_bytes_with_gradients=(
            launch.weight_numbers + chunks * launch.slots + column_products + first_products
        )
        * dtype.itemsize
        + losses,
        kept_rows=kept_rows,
        kept_numbers=kept_numbers,
        kept_bytes=kept_numbers * dtype.itemsize,
    )


def ceil(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)
