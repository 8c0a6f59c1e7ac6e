"""The CUDA implementations of the operators: scratch memory, grids, and the order of the launches.

Nothing waits for the device. What a kernel finds wrong in values (a steepness, a target) it answers
with NaN, for the same reason. All scratch memory comes from torch's allocator on the current stream,
so that calls may be captured in CUDA graphs, and one that runs out of memory leaves nothing behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from nsc.runtime.kernel import Kernel, Launch, find
from nsc.runtime.routing import (
    ROUTINGS,
    check_keys,
    check_tensors,
    checked_backward,
    empty_loss,
    empty_sorted,
    inner_contiguous,
    output_shapes,
    real_of,
    takes,
    through_loss,
)

# Aim for the weights and their gradients that are held at a time; they stay in or near the L2 cache.
SCRATCH_BYTES = 64 << 20
# Pieces that a sample's columns are cut into, each with its own sums of weight gradients: by shape
# alone, so that the bits depend on nothing else.
MOST_CHUNKS = 16
WARP = 32
_SUFFIX = {"float32": "f32", "float64": "f64"}
_ENTRY_BYTES = {"float32": 8, "float64": 16}

Argument = Tensor | int | None


class Program(Protocol):
    """A kernel's CUDA functions, loaded on a device.

    Attributes:
        tile_columns: columns of a tile, by arithmetic type.
    """

    tile_columns: dict[str, int]

    def resident_blocks(self, function: str, threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a function the device runs at a time."""

    def launch(
        self, function: str, blocks: int, threads: int, shared_bytes: int, arguments: tuple[Argument, ...]
    ) -> None:
        """Launch a function on the current stream; tensors are passed as their addresses, an int as an
        int64, but for the first argument of the routing functions, which is an int32."""


def program_of(kernel: Kernel, device: torch.device) -> Program:
    """Return a kernel's program on a device, built and loaded on first use.

    Raises:
        OperandError: a kernel that was compiled without the CUDA target.
        ToolchainError: no CuPy, or no driver.
        BuildError: the compiler failed, or the device lacks shared memory for one sample.
    """
    from nsc.runtime.cupy_program import loaded

    return loaded(kernel, device)


def relax(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    """Implement `nsc::relax`; see `dispatch.relax`."""
    check_tensors(find(spec), x, steepness, payload, routing)
    values, routed = relax_unchecked(x, steepness, payload, routing, spec)
    return values, x.new_empty(x.shape[0], 0) if routed is None else routed


def relax_unchecked(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor | None]:
    """Do what `relax` does for arguments that fit together; what routing "none" routes is None."""
    shapes = output_shapes(x, payload, routing)
    values = x.new_empty(shapes[0])
    call = _call(x, steepness, payload, routing, spec)
    if routing == "none":
        call.keys(0, call.batch, values, None)
        return values, None
    routed = x.new_empty(shapes[1])
    for first, count in call.groups(with_gradients=False):
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
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Do what `relax_backward` does for arguments that fit together; what is not wanted is None."""
    if takes(routing) == "target" and routed_grad is not None:
        assert payload is not None
        return through_loss(
            loss, relax_backward_unchecked, values_grad, routed_grad, x, steepness, payload, routing, spec
        )
    call = _call(x, steepness, payload, routing, spec)
    x_grad = x.new_empty(x.shape)
    steepness_grad = x.new_empty(x.shape[0]) if with_steepness else None
    payload_grad = None
    if payload is not None and takes(routing) == "columns":
        payload_grad = x.new_zeros(payload.shape) if routed_grad is None else x.new_empty(payload.shape)
    values_grad = None if values_grad is None else values_grad.contiguous()
    routed_grad = None if routed_grad is None else routed_grad.contiguous()
    for first, count in call.groups(with_gradients=routed_grad is not None):
        weights = call.empty_weights(count)
        call.keys(first, count, None, weights)
        weight_grads = None
        if routed_grad is not None:
            weight_grads = call.empty_weight_grads(count)
            call.route_backward(first, count, weights, routed_grad, weight_grads, payload_grad, None)
        call.keys_backward(first, count, values_grad, weights, weight_grads, x_grad, steepness_grad)
    return x_grad, steepness_grad, payload_grad


relax_backward = checked_backward(relax_backward_unchecked)


def loss(
    x: Tensor, steepness: Tensor, target: Tensor, routing: str, spec: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `nsc::loss`; see `dispatch.loss`."""
    check_tensors(find(spec), x, steepness, target, routing)
    call = _call(x, steepness, target, routing, spec)
    losses, x_grad, steepness_grad = empty_loss(x, steepness, target, routing, spec)
    for first, count in call.groups(with_gradients=True):
        weights, weight_grads = call.empty_weights(count), call.empty_weight_grads(count)
        parts = call.empty_losses(count)
        call.keys(first, count, None, weights)
        call.route_backward(first, count, weights, None, weight_grads, None, parts)
        call.keys_backward(first, count, None, weights, weight_grads, x_grad, steepness_grad)
        losses[first : first + count] = parts.sum(-1)
    return losses, x_grad, steepness_grad


def hard_sort(x: Tensor, spec: str) -> tuple[Tensor, Tensor]:
    """Implement `nsc::hard_sort`; see `dispatch.hard_sort`."""
    kernel = find(spec)
    check_keys(kernel, x)
    values, indices = empty_sorted(x, spec)
    batch, real = x.shape[0], real_of(x.dtype)
    if batch:
        launch = kernel.launch
        if launch.tile_threads == WARP:  # a thread has a sample
            samples = launch.keys_threads
            places = samples // WARP * (WARP + 1) * kernel.n
        else:
            samples = launch.keys_threads // launch.sample_threads
            places = samples * _places(kernel.n)
        shared = places * _ENTRY_BYTES[real]
        blocks = _ceil(batch, samples)
        program_of(kernel, x.device).launch(
            f"nsc_sort_{_SUFFIX[real]}",
            blocks,
            launch.keys_threads,
            shared,
            (batch, x.contiguous(), values, indices),
        )
    return values, indices


@dataclass(frozen=True)
class _Call:
    """A call of an operator: its inputs, contiguous where kernels need them so."""

    program: Program | None  # None for an empty batch, which needs no device
    kernel: Kernel
    launch: Launch
    x: Tensor
    steepness: Tensor
    payload: Tensor | None
    routing: str

    @property
    def batch(self) -> int:
        return self.x.shape[0]

    @property
    def real(self) -> str:
        return real_of(self.x.dtype)

    @property
    def is_loss(self) -> bool:
        return takes(self.routing) == "target"

    @property
    def columns(self) -> int:
        if takes(self.routing) in ("columns", "ranks"):
            assert self.payload is not None
            return self.payload.shape[-1]
        return self.kernel.n

    @property
    def _tile_columns(self) -> int:
        assert self.program is not None
        return self.program.tile_columns[self.real]

    @property
    def _group(self) -> int:
        """Threads that a sample takes in a tile."""
        return 1 if self.columns == 1 else min(self._tile_columns, self.launch.widest_group)

    @property
    def chunks(self) -> int:
        """Pieces that a sample's columns are cut into."""
        return max(1, min(MOST_CHUNKS, _ceil(self.columns, self._group)))

    def groups(self, with_gradients: bool) -> list[tuple[int, int]]:
        """Return the samples that go through the passes together: the first and the number of each group."""
        if not self.batch:
            return []
        sums = self.chunks if with_gradients else 0
        bytes_per_sample = (self.launch.arrays + sums) * self.launch.slots * self.x.element_size()
        size = max(1, SCRATCH_BYTES // max(1, bytes_per_sample))
        return [(first, min(size, self.batch - first)) for first in range(0, self.batch, size)]

    def empty_weights(self, count: int) -> Tensor:
        return self.x.new_empty(count, self.launch.arrays, self.launch.slots)

    def empty_weight_grads(self, count: int) -> Tensor:
        return self.x.new_empty(count, self.chunks, self.launch.slots)

    def empty_losses(self, count: int) -> Tensor:
        return self.x.new_empty(count, self.chunks, dtype=torch.float64)

    def keys(self, first: int, count: int, values: Tensor | None, weights: Tensor | None) -> None:
        """Run the keys pass on a group; where there is a target it must be one, or the weights are NaN."""
        target = self.payload if self.is_loss else None
        self._launch_keys(
            "keys",
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
        """Take gradients of values and weights to those of x and the steepness; sums the latter's chunks."""
        if weight_grads is not None and self.chunks > 1:
            assert self.program is not None
            threads = self.launch.keys_threads
            blocks = _ceil(count * self.launch.slots, threads)
            function = f"nsc_sum_{_SUFFIX[self.real]}"
            self.program.launch(function, blocks, threads, 0, (count, self.chunks, weight_grads))
        self._launch_keys(
            "keys_backward",
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
        self._launch_routing("", first, count, weights, None if self.is_loss else routed[first:], losses)
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
        """Take the gradient of what is routed to weights and payload.

        A loss has no routed_grad: the gradient is that of each sample's loss, and `losses`, if given, takes
        the losses.
        """
        self._launch_routing(
            "_backward",
            first,
            count,
            weights,
            None if routed_grad is None else routed_grad[first:],
            weight_grads,
            None if payload_grad is None else payload_grad[first:],
            losses,
        )

    def _launch_keys(self, what: str, count: int, *arguments: Argument) -> None:
        if not count:
            return
        assert self.program is not None
        launch = self.launch
        samples = launch.keys_threads // launch.sample_threads
        shared = samples * _places(self.kernel.n) * self.x.element_size()
        function = f"nsc_{what}_{_SUFFIX[self.real]}"
        blocks = _ceil(count, samples)
        self.program.launch(function, blocks, launch.keys_threads, shared, (count, *arguments))

    def _launch_routing(
        self, what: str, first: int, count: int, weights: Tensor, *arguments: Argument
    ) -> None:
        assert self.program is not None
        launch = self.launch
        direction = "reversed" if self.routing in ("transposed", "rows") else "route"
        function = f"nsc_{direction}{what}_{_SUFFIX[self.real]}"
        tiles_per_block = launch.routing_threads // launch.tile_threads
        columns = self._tile_columns
        shared = tiles_per_block * self.kernel.n * columns * self.x.element_size()
        tasks = _ceil(count, columns // self._group) * self.chunks
        resident = self.program.resident_blocks(function, launch.routing_threads, shared)
        blocks = min(_ceil(tasks, tiles_per_block), resident)
        if what:
            is_payload = takes(self.routing) in ("columns", "ranks")
            rows = launch.kept_rows if is_payload else launch.kept_rows_permutation
            kept = self.x.new_empty(blocks * tiles_per_block * rows * columns)
            arguments = (*arguments, kept, rows)
        payload = self.payload
        self.program.launch(
            function,
            blocks,
            launch.routing_threads,
            shared,
            (
                ROUTINGS[self.routing].code,
                count,
                self.chunks,
                weights,
                None if payload is None else payload[first:],
                0 if payload is None else payload.stride(0),
                self.columns,
                *arguments,
            ),
        )


def _call(x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str) -> _Call:
    kernel = find(spec)
    program = program_of(kernel, x.device) if x.shape[0] else None
    return _Call(
        program, kernel, kernel.launch, x.contiguous(), steepness, inner_contiguous(payload), routing
    )


def _places(n: int) -> int:
    """Return the places of a sample's wires in shared memory; see templates/kernel_keys.cu.j2."""
    return n + n // WARP + 1


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
