"""`python -m benchmarks.tensor_cores`: P and its gradient by matrix products on tensor cores, beside the product's way.

An experiment; no part of the product uses it. A codelet, at most 16 wires, is a 16 × 16 matrix for each sample. It is
made once a sample and applied to all columns of P, 32 at a time, by mma.m16n8k8 with each float32 in two parts of TF32
(3×TF32). Backward the transposed matrices take the gradient on, products over the columns make the gradient of each
matrix, and that is taken to the codelet's weights once a sample. The keys pass is the product's.

float32, P alone, networks that sort, not the error-free form. A NaN spreads to all wires of its codelet.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import torch
from torch import Tensor

import nsc
from nsc.compiler.codelets import Codelet
from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import in_levels, schedule
from nsc.runtime import cuda, reference
from nsc.runtime.cuda import Program
from nsc.runtime.kernel import Kernel

TEXT = Path(__file__).with_suffix(".cu")
FAMILY = "bitonic"
SIZES = (128, 256, 512, 1024)
RELAXATION = Relaxation("logistic", 0.25)
STEEPNESS = 20.0
# As in tensor_cores.cu.
PLACES = 16
COLUMNS = 32
MATRIX_SIZE = PLACES * PLACES
MOST_THREADS, MATRIX_THREADS = 512, 128
# Pieces that a sample's columns are cut into, each with its own sums of the matrices' gradients.
MOST_CHUNKS = 4
# What P of a timed batch takes, and the most samples of a checked one.
P_BYTES = 1 << 30
CHECKED_SAMPLES = 3
ROUNDS = 11
# Of the entries of P relative to each, and of gradients to the largest. At steepness 20 the float32 keys pass alone
# accounts for most of it.
TOLERANCE = 2e-3

Call = Callable[[], object]


@dataclass(frozen=True)
class Tables:
    """What the kernels must know of a network; tensor_cores.cu says how each is laid out.

    Attributes:
        codelets: number of codelets.
        levels: number of levels.
        rows, codelet_rows, listed, level_ends: int32 tensors.
    """

    codelets: int
    levels: int
    rows: Tensor
    codelet_rows: Tensor
    listed: Tensor
    level_ends: Tensor

    @property
    def arguments(self) -> tuple[Tensor | int, ...]:
        return self.rows, self.codelet_rows, self.listed, self.level_ends, self.levels


def tables(network: Network, device: str | torch.device) -> Tables:
    """Return the tables of a network on a device."""
    ordered, ends = in_levels(schedule(network))
    n = network.n
    rows = [_row(wire) for wire in range(n)] + [n * COLUMNS]
    codelet_rows = [[rows[wire] for wire in _by_thread(codelet, n)] for codelet in ordered.codelets]
    listed, level_ends = [], []
    for tile in range(_ceil(n, COLUMNS)):
        reached = set(range(tile * COLUMNS, (tile + 1) * COLUMNS))
        found: list[int] = []
        tile_ends = []
        for first, end in zip((0, *ends), ends, strict=False):
            for index in range(first, end):
                if not reached.isdisjoint(ordered.codelets[index].wires):
                    reached.update(ordered.codelets[index].wires)
                    found.append(index)
            tile_ends.append(len(found))
        listed.append(found + [-1] * (len(ordered.codelets) - len(found)))
        level_ends.append(tile_ends)
    made = (torch.tensor(table, dtype=torch.int32, device=device) for table in (rows, codelet_rows, listed, level_ends))
    return Tables(len(ordered.codelets), len(ends), *made)


def _row(wire: int) -> int:
    """Return where a wire's row begins in a tile; a multiple of 4 in its low bits exchanges its columns.

    Threads of a warp read rows of several wires at once. In the networks of this benchmark the wires of a codelet
    differ in four neighbouring bits, and then no two of these reads share a bank.
    """
    return wire * COLUMNS + 16 * (wire.bit_count() % 2) + 8 * ((wire & 0xAAAA).bit_count() % 2)


def _by_thread(codelet: Codelet, zeros: int) -> list[int]:
    """Return a codelet's wires in the order in which threads take them, padded with the wire of zeros."""
    wires = (*codelet.wires, *[zeros] * (PLACES - len(codelet.wires)))
    return [wires[8 * h + 2 * c + e] for c in range(4) for h in range(2) for e in range(2)]


@dataclass(frozen=True)
class TensorCores:
    """The experiment on one network.

    Attributes:
        kernel: the compiled network.
        program: the kernel's functions and those of tensor_cores.cu.
        tables: the network's tables on the program's device.
    """

    kernel: Kernel
    program: Program
    tables: Tables

    @property
    def chunks(self) -> int:
        """Pieces that a sample's columns are cut into."""
        return min(MOST_CHUNKS, _ceil(self.kernel.n, COLUMNS))

    def matrices(self, weights: Tensor) -> Tensor:
        """Return the matrix of each codelet and its transpose, from weights (batch, arrays, slots)."""
        batch = weights.shape[0]
        made = weights.new_empty(batch, self.tables.codelets, 2, MATRIX_SIZE)
        self._launch_on_matrices("nsc_tensor_matrices", batch, weights, made)
        return made

    def forward(self, matrices: Tensor) -> Tensor:
        """Return P, (batch, n, n)."""
        batch, n = matrices.shape[0], self.kernel.n
        routed = matrices.new_empty(batch, n, n)
        blocks = self._blocks("nsc_tensor_forward", batch)
        self._launch_on_columns("nsc_tensor_forward", blocks, batch, matrices, routed)
        return routed

    def backward(self, matrices: Tensor, routed_grad: Tensor) -> Tensor:
        """Return the gradients of the matrices, (batch, chunks, codelets, 256), from that of P, contiguous."""
        batch = matrices.shape[0]
        grads = matrices.new_zeros(batch, self.chunks, self.tables.codelets, MATRIX_SIZE)
        blocks = self._blocks("nsc_tensor_backward", batch)
        kept = matrices.new_empty(blocks, self.tables.codelets, PLACES, COLUMNS)
        self._launch_on_columns("nsc_tensor_backward", blocks, batch, matrices, routed_grad, grads, kept)
        return grads

    def weight_gradients(self, weights: Tensor, matrix_grads: Tensor) -> Tensor:
        """Return the gradients of the weights, (batch, slots), from those of the matrices."""
        batch = weights.shape[0]
        grads = weights.new_empty(batch, self.kernel.launch.slots)
        self._launch_on_matrices("nsc_tensor_weights", batch, self.chunks, weights, matrix_grads, grads)
        return grads

    def _launch_on_matrices(self, function: str, batch: int, *arguments: Tensor | int) -> None:
        blocks = _ceil(batch * self.tables.codelets * PLACES, MATRIX_THREADS)
        self.program.launch(function, blocks, MATRIX_THREADS, 0, (batch, *arguments))

    def _launch_on_columns(self, function: str, blocks: int, batch: int, *arguments: Tensor) -> None:
        everything = (batch, self.chunks, *self.tables.arguments, *arguments)
        self.program.launch(function, blocks, self._threads, self._shared_bytes, everything)

    def _blocks(self, function: str, batch: int) -> int:
        return min(
            batch * self.chunks, self.program.resident_blocks(function, self._threads, self._shared_bytes)
        )

    @property
    def _threads(self) -> int:
        """Threads of a block: a warp for every 2 codelets of a level, about."""
        return min(MOST_THREADS, 32 * _ceil(self.kernel.n, COLUMNS))

    @property
    def _shared_bytes(self) -> int:
        return (self.kernel.n + 1) * COLUMNS * 4


def permutation_and_gradients(
    cores: TensorCores, x: Tensor, steepness: Tensor, routed_grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return P and, from the gradient of P, those of x and of the steepness.

    Args:
        cores: the experiment on a network of n wires.
        x: (batch, n), contiguous.
        steepness: (batch,).
        routed_grad: (batch, n, n), contiguous.
    """
    batch = x.shape[0]
    call = cuda._call(x, steepness, None, "permutation", cores.kernel.spec)
    weights = call.empty_weights(batch)
    call.keys(0, batch, None, weights)
    matrices = cores.matrices(weights)
    routed = cores.forward(matrices)
    gradients = cores.weight_gradients(weights, cores.backward(matrices, routed_grad))
    # The keys pass adds the gradients of all chunks; these are in one.
    weight_grads = call.empty_weight_grads(batch).zero_()
    weight_grads[:, 0] = gradients
    x_grad, steepness_grad = torch.empty_like(x), x.new_empty(batch)
    call.keys_backward(0, batch, None, weights, weight_grads, x_grad, steepness_grad)
    return routed, x_grad, steepness_grad


def problems(cores, x): return []
def _ceil(a: int, b: int) -> int:
    return -(-a // b)
