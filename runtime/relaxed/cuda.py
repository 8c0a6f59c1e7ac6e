"""The CUDA implementation of the operators: scratch memory, grids, and the order of the launches.

GPU calls do not check values on the host: an invalid steepness or target gives NaN. All scratch memory comes
from torch's allocator on the current stream. So calls may be captured in CUDA graphs, and a call that runs
out of memory leaves nothing behind.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nsc.contract.launch import MOST_CHUNKS
from nsc.contract.routings import Payload
from nsc.errors import OperandError
from nsc.runtime.devices.cuda_module import Argument
from nsc.runtime.relaxed.call import Call, has_gradient, inner_contiguous, is_loss, output_shapes, payload_of
from nsc.runtime.relaxed.cuda_program import Function, ceil, plan_of, program_of
from nsc.runtime.relaxed.derivatives import through_loss
from nsc.wording import count as count_of

# Bytes of the weights, and their gradients, of a group of samples: they should stay in or near the L2 cache.
# A group has no fewer samples than the device has multiprocessors, because the keys pass would leave some
# idle. The second number limits such a group.
SCRATCH_BYTES = 64 << 20
MOST_SCRATCH_BYTES = 2 << 30
# Most bytes of weights that a forward pass keeps for its backward pass: the weights of a group. More weights
# would be read from memory, which takes about as long as the keys pass takes to work them out again.
MOST_KEPT_WEIGHTS = SCRATCH_BYTES
# Most bytes of loaded rows that the backward routing keeps at a time. A single block may keep more.
KEPT_BYTES = 256 << 20
# The backward routing leaves these for the gradients of a merge that is taken apart: products by column, sums
# of products by warp, and how many rows of sums a sample has.
Products = tuple[Tensor | None, Tensor | None, int]
# Most columns of a payload: kernels count columns times chunks in 32 bits.
MOST_COLUMNS = (2**31 - 1) // MOST_CHUNKS


def empty_kept(call: Call) -> Tensor | None:
    """Return memory for the weights of all samples; None for more than MOST_KEPT_WEIGHTS, or than is free.

    None too for a kernel without CUDA functions: the call says what is wrong.
    """
    launch, x = call.kernel.manifest.cuda, call.x
    shape = x.shape[0], 0 if launch is None else launch.weight_numbers
    if launch is None or math.prod(shape) * x.itemsize > MOST_KEPT_WEIGHTS:
        return None
    try:
        return x.new_empty(shape)
    except torch.OutOfMemoryError:
        return None


def relax(call: Call, kept: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """Run the keys pass and a routing; see `Implementation`."""
    x, shapes = call.x, output_shapes(call.x, call.payload, call.routing)
    with _Launches(call, with_gradients=False) as launch:
        values = x.new_empty(shapes[0])
        if call.routing == "none":  # no scratch memory: one launch takes the whole batch
            if launch.batch:
                launch.keys(0, launch.batch, values, kept)
            return values, None
        routed = x.new_empty(shapes[1])
        for first, count in launch.groups():
            weights = launch.empty_weights(count) if kept is None else kept[first : first + count]
            launch.keys(first, count, values, weights)
            losses = launch.route(first, count, weights, routed)
            if losses is not None:
                _put(routed, first, count, losses)
        return values, routed


def relax_backward(
    call: Call,
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    needs: tuple[bool, bool] = (True, True),
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the gradients of x, steepness and payload; see `Implementation`."""
    if is_loss(call.routing) and routed_grad is not None:
        return through_loss(loss, relax_backward, call, values_grad, routed_grad)
    x, payload = call.x, call.payload
    with _Launches(call, with_gradients=routed_grad is not None) as launch:
        x_grad = x.new_empty(x.shape)
        steepness_grad = x.new_empty(x.shape[0]) if needs[0] else None
        payload_grad = None
        if needs[1] and payload is not None and has_gradient(call.routing):
            payload_grad = x.new_zeros(payload.shape) if routed_grad is None else x.new_empty(payload.shape)
        values_grad = None if values_grad is None else values_grad.contiguous()
        routed_grad = None if routed_grad is None else routed_grad.contiguous()
        for first, count in launch.groups():
            if kept is None:
                weights = launch.empty_weights(count)
                launch.keys(first, count, None, weights)
            else:
                weights = kept[first : first + count]
            weight_grads = None
            if routed_grad is not None:
                weight_grads = launch.empty_weight_grads(count)
                launch.route_backward(first, count, weights, routed_grad, weight_grads, payload_grad, None)
            launch.keys_backward(first, count, values_grad, weights, weight_grads, x_grad, steepness_grad)
        return x_grad, steepness_grad, payload_grad


def loss(
    call: Call, needs: tuple[bool, bool] = (True, True)
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Return the losses and their gradients of x, steepness and target; see `Implementation`."""
    x, target = call.x, call.payload
    assert target is not None
    with _Launches(call, with_gradients=True) as launch:
        losses, x_grad = x.new_empty(x.shape[0]), x.new_empty(x.shape)
        steepness_grad = x.new_empty(x.shape[0]) if needs[0] else None
        target_grad = x.new_empty(target.shape) if needs[1] and has_gradient(call.routing) else None
        for first, count in launch.groups():
            weights, weight_grads = launch.empty_weights(count), launch.empty_weight_grads(count)
            parts, products = launch.empty_losses(count), launch.empty_products(count)
            launch.keys(first, count, None, weights)
            launch.route_backward(first, count, weights, None, weight_grads, target_grad, parts, products)
            launch.keys_backward(first, count, None, weights, weight_grads, x_grad, steepness_grad, products)
            _put(losses, first, count, parts)
        return losses, x_grad, steepness_grad, target_grad


class _Launches:
    """The launches of a call. As a context it says how much memory a call takes where there is too little."""

    __slots__ = ("_kernel", "_payload", "_plan", "_program", "_steepness", "_with_gradients", "_x", "batch")

    def __init__(self, call: Call, with_gradients: bool) -> None:
        """Find what implements a call; raises OperandError for more than MOST_COLUMNS columns."""
        self._x, self._steepness, self._payload, routing, self._kernel, _ = call
        self.batch, columns = self._x.shape[0], self._kernel.n
        if self._payload is not None and payload_of(routing) in (Payload.COLUMNS, Payload.RANKS):
            columns = self._payload.shape[-1]
        if columns > MOST_COLUMNS:
            raise OperandError(
                f"{self._kernel.name}: the payload has {columns:,} columns, a call on a GPU takes at most "
                f"{MOST_COLUMNS:,}: pass them in several calls"
            )
        self._with_gradients = with_gradients
        if self.batch:  # an empty one needs no device
            self._program = program_of(self._kernel, self._x.device)
            self._plan = plan_of(self._kernel, self._program, routing, columns, self._x.dtype)

    def __enter__(self) -> _Launches:
        try:
            self._x, self._payload = self._x.contiguous(), inner_contiguous(self._payload)
        except torch.OutOfMemoryError as error:
            self.__exit__(None, error, None)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, torch.OutOfMemoryError):
            raise torch.OutOfMemoryError(
                f"{self._kernel.name}: {count_of(self.batch, 'sample')} took more memory than there is, "
                f"beside inputs and results up to {self._scratch_bytes:,} bytes of scratch memory: use a "
                f"smaller batch. {error}"
            ) from None

    def groups(self) -> list[tuple[int, int]]:
        """Return the groups of samples that pass together: the first sample, and how many."""
        if not self.batch:
            return []
        size = self._samples_at_once
        return [(first, min(size, self.batch - first)) for first in range(0, self.batch, size)]

    @property
    def _samples_at_once(self) -> int:
        each = max(1, self._plan.bytes_per_sample(self._with_gradients))
        most = max(1, MOST_SCRATCH_BYTES // each)
        return min(self.batch, most, max(self._program.multiprocessors, SCRATCH_BYTES // each))

    @property
    def _scratch_bytes(self) -> int:
        """Memory that the call takes beside its inputs and results, at most."""
        if not self.batch:
            return 0
        size = self._samples_at_once
        kept = self._backward_blocks(size) * self._plan.kept_bytes if self._with_gradients else 0
        return size * self._plan.bytes_per_sample(self._with_gradients) + kept

    def empty_weights(self, count: int) -> Tensor:
        return self._x.new_empty(count, self._plan.weight_numbers)

    def empty_weight_grads(self, count: int) -> Tensor:
        return self._x.new_empty(count, self._plan.chunks, self._plan.slots)

    def empty_products(self, count: int) -> Products:
        """Return memory for what a merge that is taken apart needs for its gradients."""
        plan = self._plan
        if not plan.column_products:
            return None, None, 0
        columns = self._x.new_empty(count, plan.column_products)
        return columns, self._x.new_empty(count, plan.first_products), plan.first_rows

    def empty_losses(self, count: int) -> Tensor:
        return self._x.new_empty((count, self._plan.chunks), dtype=torch.float64)

    def keys(self, first: int, count: int, values: Tensor | None, weights: Tensor | None) -> None:
        """Run the keys pass on a group. A target with a wrong rank makes its weights NaN."""
        steepness = self._steepness
        target = _rows(self._payload if self._plan.routing.payload is Payload.TARGET else None, first)
        function = self._plan.keys
        self._program.launch(
            function.name,
            function.blocks_for(count),
            (
                count,
                _behind(self._x, first),
                _behind(steepness, first),
                steepness.stride(0),
                *target,
                _behind(values, first),
                weights,
            ),
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
        products: Products = (None, None, 0),
    ) -> None:
        """Turn the gradients of values and weights into the gradients of x and the steepness."""
        plan, steepness = self._plan, self._steepness
        sums = count * (plan.slots + (plan.merge_comparators if plan.column_products else 0))
        if weight_grads is not None and sums and (plan.chunks > 1 or plan.column_products):
            self._program.launch(
                plan.sums.name,
                plan.sums.blocks_for(sums),
                (count, plan.chunks, weight_grads, weights, *products),
            )
        self._program.launch(
            plan.keys_backward.name,
            plan.keys_backward.blocks_for(count),
            (
                count,
                _behind(steepness, first),
                steepness.stride(0),
                _behind(values_grad, first),
                weights,
                weight_grads,
                plan.chunks if weight_grads is not None else 0,
                _behind(x_grad, first),
                _behind(steepness_grad, first),
            ),
        )

    def route(self, first: int, count: int, weights: Tensor, routed: Tensor) -> Tensor | None:
        """Route a group; a loss is returned in parts (count, chunks)."""
        plan = self._plan
        losses = self.empty_losses(count) if plan.routing.is_loss else None
        blocks = self._routing_blocks(plan.route, count)
        self._program.launch(
            plan.route.name,
            blocks,
            (
                plan.routing.code,
                count,
                plan.chunks,
                weights,
                *_rows(self._payload, first),
                plan.columns,
                None if plan.routing.is_loss else _behind(routed, first),
                losses,
            ),
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
        products: Products = (None, None, 0),
    ) -> None:
        """Turn the gradient of what is routed, or a loss, which `losses` receives, into gradients."""
        plan, blocks = self._plan, self._backward_blocks(count)
        # One operand runs forwards through the network, then the other one backwards.
        forwards, backwards = self._payload, routed_grad
        if plan.routing.is_reversed:
            forwards, backwards = backwards, forwards
        # The weights are passed twice, see `Call` in library/nsc/relaxed/cuda/tile.h. With one pointer the
        # backward routing of 16 wires would spill 900 bytes.
        self._program.launch(
            plan.route_backward.name,
            blocks,
            (
                plan.routing.code,
                count,
                plan.chunks,
                weights,
                weights,
                *_rows(forwards, first),
                *_rows(backwards, first),
                plan.columns,
                weight_grads,
                _behind(payload_grad, first),
                losses,
                self._x.new_empty(blocks * plan.kept_numbers),
                plan.kept_rows,
                *products,
            ),
        )

    def _routing_blocks(self, function: Function, count: int) -> int:
        """Return how many blocks route a group: as many as have work and run at a time."""
        tasks = ceil(count, self._plan.samples_per_tile) * self._plan.chunks
        return min(function.blocks_for(tasks), self._program.resident_blocks(function.name))

    def _backward_blocks(self, count: int) -> int:
        """Return how many blocks route a group backward: no more than may keep rows, but at least one."""
        may_keep = KEPT_BYTES // max(1, self._plan.kept_bytes)
        return max(1, min(self._routing_blocks(self._plan.route_backward, count), may_keep))


def _behind(tensor: Tensor | None, first: int) -> Tensor | None:
    """Return a tensor from a sample on."""
    return tensor if tensor is None or not first else tensor[first:]


def _rows(tensor: Tensor | None, first: int) -> tuple[Argument, Argument]:
    """Return a tensor from a sample on, and how far its samples lie apart."""
    return (None, 0) if tensor is None else (_behind(tensor, first), tensor.stride(0))


def _put(losses: Tensor, first: int, count: int, parts: Tensor) -> None:
    """Write the losses of a group, the sums of their parts."""
    to = losses if count == len(losses) else losses[first : first + count]
    to.copy_(parts.sum(-1) if parts.shape[-1] > 1 else parts[:, 0])
