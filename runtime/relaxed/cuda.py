"""The CUDA implementations of the operators: scratch memory, grids, and the order of the launches.

GPU calls do not check values on the host: an invalid steepness or target gives NaN. All scratch memory comes
from torch's allocator on the current stream. So calls may be captured in CUDA graphs, and a call that runs
out of memory leaves nothing behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from nsc.contract.interface import function_name
from nsc.contract.launch import LANE_BYTES, MOST_CHUNKS, Launch
from nsc.contract.routings import ROUTINGS, Payload
from nsc.errors import OperandError
from nsc.runtime.devices.cuda_module import Argument
from nsc.runtime.relaxed.checks import check_tensors, checked_backward, checked_loss
from nsc.runtime.relaxed.cuda_program import Program, program_of
from nsc.runtime.relaxed.derivatives import through_loss
from nsc.runtime.relaxed.kernel import Kernel, find_kernel
from nsc.runtime.relaxed.shapes import (
    has_gradient,
    inner_contiguous,
    is_loss,
    output_shapes,
    payload_of,
    real_of,
)
from nsc.wording import count as count_of

# Bytes of the weights, and their gradients, of a group of samples: they should stay in or near the L2 cache.
# A group has no fewer samples than the device has multiprocessors, because the keys pass would leave some
# idle. The second number limits such a group.
SCRATCH_BYTES = 64 << 20
MOST_SCRATCH_BYTES = 2 << 30
# Most bytes of loaded rows that the backward routing keeps at a time. A single block may keep more.
KEPT_BYTES = 256 << 20
# Most columns of a payload: kernels count columns times chunks in 32 bits.
MOST_COLUMNS = (2**31 - 1) // MOST_CHUNKS
# Bytes of a part of a loss.
_LOSS_BYTES = 8


def relax(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    """Implement `nsc::relax`; see `dispatch.entries.relax`."""
    check_tensors(find_kernel(spec), x, steepness, payload, routing)
    values, routed = relax_unchecked(x, steepness, payload, routing, spec)
    return values, x.new_empty(x.shape[0], 0) if routed is None else routed


def empty_kept(x: Tensor, routing: str, spec: str) -> Tensor | None:
    """Return None: the backward pass works all weights out anew."""
    return None


def relax_unchecked(
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Do what `relax` does without argument checks; routing "none" gives None for its empty result."""
    shapes = output_shapes(x, payload, routing)
    with calling(x, steepness, payload, routing, spec, with_gradients=False) as call:
        values = x.new_empty(shapes[0])
        if routing == "none":
            call.keys(0, call.batch, values, None)
            return values, None
        routed = x.new_empty(shapes[1])
        for first, count in call.groups():
            weights = call.empty_weights(count)
            call.keys(first, count, values, weights)
            losses = call.route(first, count, weights, routed)
            if losses is not None:
                routed[first : first + count] = losses.sum(-1)
        return values, routed


def relax_backward_unchecked(
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
    with_steepness: bool = True,
    with_payload: bool = True,
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Do what `relax_backward` does without argument checks; gradients that are not needed are None."""
    if is_loss(routing) and routed_grad is not None:
        assert payload is not None
        return through_loss(
            loss, relax_backward_unchecked, values_grad, routed_grad, x, steepness, payload, routing, spec
        )
    with calling(x, steepness, payload, routing, spec, with_gradients=routed_grad is not None) as call:
        x_grad = x.new_empty(x.shape)
        steepness_grad = x.new_empty(x.shape[0]) if with_steepness else None
        payload_grad = None
        if with_payload and payload is not None and has_gradient(routing):
            payload_grad = x.new_zeros(payload.shape) if routed_grad is None else x.new_empty(payload.shape)
        values_grad = None if values_grad is None else values_grad.contiguous()
        routed_grad = None if routed_grad is None else routed_grad.contiguous()
        for first, count in call.groups():
            weights = call.empty_weights(count)
            call.keys(first, count, None, weights)
            weight_grads = None
            if routed_grad is not None:
                weight_grads = call.empty_weight_grads(count)
                call.route_backward(first, count, weights, routed_grad, weight_grads, payload_grad, None)
            call.keys_backward(first, count, values_grad, weights, weight_grads, x_grad, steepness_grad)
        return x_grad, steepness_grad, payload_grad


relax_backward = checked_backward(relax_backward_unchecked)


def loss_unchecked(
    x: Tensor,
    steepness: Tensor,
    target: Tensor,
    routing: str,
    spec: str,
    with_steepness: bool = True,
    with_target: bool = True,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Do what `loss` does without argument checks; gradients that are not needed are None."""
    with calling(x, steepness, target, routing, spec, with_gradients=True) as call:
        losses, x_grad = x.new_empty(x.shape[0]), x.new_empty(x.shape)
        steepness_grad = x.new_empty(x.shape[0]) if with_steepness else None
        target_grad = x.new_empty(target.shape) if with_target and has_gradient(routing) else None
        for first, count in call.groups():
            weights, weight_grads = call.empty_weights(count), call.empty_weight_grads(count)
            parts = call.empty_losses(count)
            call.keys(first, count, None, weights)
            call.route_backward(first, count, weights, None, weight_grads, target_grad, parts)
            call.keys_backward(first, count, None, weights, weight_grads, x_grad, steepness_grad)
            losses[first : first + count] = parts.sum(-1)
        return losses, x_grad, steepness_grad, target_grad


loss = checked_loss(loss_unchecked)


@dataclass(frozen=True)
class Call:
    """A call of an operator: its inputs, contiguous where kernels need them so.

    Attributes:
        with_gradients: whether it works out gradients of weights.
    """

    program: Program | None  # None for an empty batch, which needs no device
    kernel: Kernel
    launch: Launch
    x: Tensor
    steepness: Tensor
    payload: Tensor | None
    routing: str
    with_gradients: bool

    @property
    def batch(self) -> int:
        return self.x.shape[0]

    @property
    def real(self) -> str:
        return real_of(self.x.dtype)

    @property
    def is_loss(self) -> bool:
        return is_loss(self.routing)

    @property
    def columns(self) -> int:
        if payload_of(self.routing) in (Payload.COLUMNS, Payload.RANKS):
            assert self.payload is not None
            return self.payload.shape[-1]
        return self.kernel.n

    @property
    def _lane_columns(self) -> int:
        """Columns that a lane of a tile holds."""
        return LANE_BYTES // self.x.element_size()

    @property
    def _tile_columns(self) -> int:
        assert self.program is not None
        return self.program.launches.tile_lanes * self._lane_columns

    @property
    def _group(self) -> int:
        """Columns of a tile that a sample takes; see `Tile` in library/nsc/relaxed/cuda/tile.h."""
        if self.columns <= self._lane_columns:
            return self._lane_columns
        return max(self._lane_columns, min(self._tile_columns, self.launch.widest_group))

    @cached_property
    def chunks(self) -> int:
        """Pieces that a sample's columns are cut into."""
        return max(1, min(MOST_CHUNKS, _ceil(self.columns, self._group)))

    @property
    def _bytes_per_sample(self) -> int:
        """What a sample's weights take, with their gradients and parts of losses."""
        sums = self.chunks if self.with_gradients else 0
        weights = (self.launch.arrays + sums) * self.launch.slots * self.x.element_size()
        return weights + (self.chunks * _LOSS_BYTES if self.is_loss else 0)

    @property
    def _samples_at_once(self) -> int:
        assert self.program is not None
        each = max(1, self._bytes_per_sample)
        most = max(1, MOST_SCRATCH_BYTES // each)
        return min(self.batch, most, max(self.program.multiprocessors, SCRATCH_BYTES // each))

    def groups(self) -> list[tuple[int, int]]:
        """Return the groups of samples that pass together: the first sample, and how many."""
        if not self.batch:
            return []
        size = self._samples_at_once
        return [(first, min(size, self.batch - first)) for first in range(0, self.batch, size)]

    @property
    def scratch_bytes(self) -> int:
        """Memory that the call takes beside its inputs and results, at most."""
        if not self.batch:
            return 0
        size = self._samples_at_once
        kept = 0
        if self.with_gradients:
            kept = self._routing_blocks(True, size) * self._kept_bytes_per_block
        return size * self._bytes_per_sample + kept

    def empty_weights(self, count: int) -> Tensor:
        return self.x.new_empty(count, self.launch.arrays, self.launch.slots)

    def empty_weight_grads(self, count: int) -> Tensor:
        return self.x.new_empty(count, self.chunks, self.launch.slots)

    def empty_losses(self, count: int) -> Tensor:
        return self.x.new_empty(count, self.chunks, dtype=torch.float64)

    def keys(self, first: int, count: int, values: Tensor | None, weights: Tensor | None) -> None:
        """Run the keys pass on a group. A target with a wrong rank makes its weights NaN."""
        target = self.payload if payload_of(self.routing) is Payload.TARGET else None
        self._launch(
            "keys",
            count,
            count,
            self.x[first:],
            self.steepness[first:],
            self.steepness.stride(0),
            None if target is None else target[first:],
            0 if target is None else target.stride(0),
            None if values is None else values[first:],
            weights,
        )

    def keys_backward(
        self,
        first: int,
        count: int,
        values_grad: Tensor | None,
        weights: Tensor,
        weight_grads: Tensor | None,
        x_grad: Tensor,
        steepness_grad: Tensor | None,
    ) -> None:
        """Turn the gradients of values and weights into those of x and the steepness."""
        if weight_grads is not None and self.chunks > 1:
            self._launch("sum", count * self.launch.slots, count, self.chunks, weight_grads)
        self._launch(
            "keys_backward",
            count,
            count,
            self.steepness[first:],
            self.steepness.stride(0),
            None if values_grad is None else values_grad[first:],
            weights,
            weight_grads,
            self.chunks if weight_grads is not None else 0,
            x_grad[first:],
            None if steepness_grad is None else steepness_grad[first:],
        )

    def route(self, first: int, count: int, weights: Tensor, routed: Tensor) -> Tensor | None:
        """Route a group; a loss is returned in parts (count, chunks)."""
        losses = self.empty_losses(count) if self.is_loss else None
        self._launch_routing(
            False,
            count,
            weights,
            *_rows(self.payload, first),
            self.columns,
            None if self.is_loss else routed[first:],
            losses,
        )
        return losses

    def route_backward(
        self,
        first: int,
        count: int,
        weights: Tensor,
        routed_grad: Tensor | None,
        weight_grads: Tensor,
        payload_grad: Tensor | None,
        losses: Tensor | None,
    ) -> None:
        """Turn the gradient of what is routed into those of weights and payload.

        A loss has no `routed_grad`: the gradients are those of each sample's loss. `losses`, if given, takes
        these losses.
        """
        # What runs forwards through the network, and what then runs backwards.
        forwards, backwards = self.payload, routed_grad
        if ROUTINGS[self.routing].is_reversed:
            forwards, backwards = backwards, forwards
        self._launch_routing(
            True,
            count,
            weights,
            *_rows(forwards, first),
            *_rows(backwards, first),
            self.columns,
            weight_grads,
            None if payload_grad is None else payload_grad[first:],
            losses,
        )

    def _launch(self, name: str, items: int, *arguments: Argument) -> None:
        """Launch a function with enough blocks for so many of its items."""
        if not items:
            return
        assert self.program is not None
        function = function_name(name, self.real)
        blocks = _ceil(items, self.program.launches.blocks[function].items)
        self.program.launch(function, blocks, arguments)

    def _routing_function(self, is_backward: bool) -> str:
        forward = "reversed" if ROUTINGS[self.routing].is_reversed else "route"
        return function_name("route_backward" if is_backward else forward, self.real)

    @property
    def _kept_rows(self) -> int:
        """Most rows that the codelets of a tile load."""
        is_payload = payload_of(self.routing) in (Payload.COLUMNS, Payload.RANKS)
        return self.launch.kept_rows if is_payload else self.launch.kept_rows_permutation

    @property
    def _kept_bytes_per_block(self) -> int:
        assert self.program is not None
        tiles = self.program.launches.blocks[self._routing_function(is_backward=True)].items
        return tiles * self._kept_rows * self._tile_columns * self.x.element_size()

    def _routing_blocks(self, is_backward: bool, count: int) -> int:
        """Return how many blocks route a group: as many as have work, run at a time, and may keep rows."""
        assert self.program is not None
        function = self._routing_function(is_backward)
        tasks = _ceil(count, self._tile_columns // self._group) * self.chunks
        blocks = _ceil(tasks, self.program.launches.blocks[function].items)
        blocks = min(blocks, self.program.resident_blocks(function))
        if is_backward:
            blocks = min(blocks, KEPT_BYTES // max(1, self._kept_bytes_per_block))
        return max(1, blocks)

    def _launch_routing(self, is_backward: bool, count: int, weights: Tensor, *arguments: Argument) -> None:
        assert self.program is not None
        blocks = self._routing_blocks(is_backward, count)
        # The weights are passed twice, see `Call` in library/nsc/relaxed/cuda/tile.h. With one pointer the
        # backward routing of 16 wires would spill 900 bytes.
        both = (weights, weights) if is_backward else (weights,)
        if is_backward:
            kept = self.x.new_empty(blocks * self._kept_bytes_per_block // self.x.element_size())
            arguments = (*arguments, kept, self._kept_rows)
        self.program.launch(
            self._routing_function(is_backward),
            blocks,
            (
                ROUTINGS[self.routing].code,
                count,
                self.chunks,
                *both,
                *arguments,
            ),
        )


@contextlib.contextmanager
def calling(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str, with_gradients: bool
) -> Iterator[Call]:
    """Yield a call to what implements it; an error of too little memory says how much the call takes.

    Raises:
        OperandError: more than MOST_COLUMNS columns.
        torch.OutOfMemoryError: with what the call takes.
    """
    kernel = find_kernel(spec)
    program = program_of(kernel, x.device) if x.shape[0] else None
    call = Call(program, kernel, kernel.launch, x, steepness, payload, routing, with_gradients)
    if call.columns > MOST_COLUMNS:
        raise OperandError(
            f"{kernel.name}: the payload has {call.columns:,} columns, a call on a GPU takes at most "
            f"{MOST_COLUMNS:,}: pass them in several calls"
        )
    try:
        yield replace(call, x=x.contiguous(), payload=inner_contiguous(payload))
    except torch.OutOfMemoryError as error:
        raise _out_of_memory(kernel, call.batch, call.scratch_bytes, error) from None


def _out_of_memory(
    kernel: Kernel, batch: int, scratch_bytes: int, error: torch.OutOfMemoryError
) -> torch.OutOfMemoryError:
    """Return torch's error, with what the call takes and what to do."""
    return torch.OutOfMemoryError(
        f"{kernel.name}: {count_of(batch, 'sample')} took more memory than there is, beside inputs and "
        f"results up to {scratch_bytes:,} bytes of scratch memory: use a smaller batch. {error}"
    )


def _rows(tensor: Tensor | None, first: int) -> tuple[Argument, Argument]:
    """Return a tensor from a sample on, and how far its samples lie apart."""
    return (None, 0) if tensor is None else (tensor[first:], tensor.stride(0))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
