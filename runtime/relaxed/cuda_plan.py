"""Plans: what all calls of a kind share on a GPU, worked out once."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from nsc.contract.interface import function_name
from nsc.contract.launch import LANE_BYTES, MOST_CHUNKS, WARP
from nsc.contract.routings import LOSSES, ROUTINGS, Payload
from nsc.runtime.relaxed.cuda_program import Program
from nsc.runtime.relaxed.kernel import Kernel
from nsc.runtime.relaxed.shapes import payload_of, real_of

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
    """What all calls share of a kernel on a device, with a routing, a number of columns and a type.

    Attributes:
        code: the routing's number.
        is_loss: whether it gives a loss for each sample.
        is_reversed: whether the payload runs backwards through the network.
        has_target: whether the payload has the true rank of each item.
        columns: that a sample's tiles have.
        chunks: pieces that these are cut into; each has gradients of weights of its own.
        samples_per_tile: how many a tile of columns holds.
        keys, keys_backward, sums, route, route_backward: the functions.
        slots: places for gradients of weights.
        weight_numbers: what the keys pass leaves of a sample.
        merge_comparators: those of the merge that a loss takes apart.
        column_products, first_products: numbers of a sample that the backward routing leaves for the
            gradients of that merge: by column, and for its first level by warp; 0 where it is not apart.
        first_rows: rows of the latter.
        sample_bytes, sample_bytes_with_gradients: what a sample's weights take, with their gradients and
            parts of losses.
        kept_rows: most rows that the codelets of a tile load, and the backward routing keeps.
        kept_numbers, kept_bytes: what a block of it keeps.
    """

    code: int
    is_loss: bool
    is_reversed: bool
    has_target: bool
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
    taken = payload_of(routing)
    is_payload = taken in (Payload.COLUMNS, Payload.RANKS)
    kept_rows = launch.kept_rows if is_payload else launch.kept_rows_permutation
    described = ROUTINGS[routing]
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
        code=described.code,
        is_loss=described.is_loss,
        is_reversed=described.is_reversed,
        has_target=taken is Payload.TARGET,
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
