"""P and its gradient by matrix products on tensor cores: `python -m benchmarks.gpu --tensor-cores`.

An experiment beside the product's routing; nothing in the product uses it. A codelet has at most 16 wires: it
is a 16 × 16 matrix for each sample. The matrix is computed once for a sample and applied to all columns of P,
32 at a time, by mma.m16n8k8, with each float32 as two parts of TF32 (3×TF32). In the backward pass the
transposed matrices carry the gradient of P on. Products over the columns give the gradient of each matrix;
once for a sample, it becomes the gradient of the codelet's weights. The keys pass is the product's.

It computes P alone, in float32, for networks that sort, without the error-free form. A NaN spreads to all
wires of its codelet, and a gradient above 2^70 may overflow.

The table counts instructions; no time was measured. They are those of a warp for a codelet of 16 wires and 32
comparators on 64 columns, sm_90, by NVRTC 13.5: one turn of the product's loop over codelets, at 64 wires,
and two turns here. "keeping" is the forward pass that begins a backward one, and keeps the rows that codelets
load.

    pass                           all  mma  floating point  shared  global  shuffles  others
    forward, product              329    –             256      32      18         –      23
    forward, tensor cores         318   48              80      16       8         –     166
    keeping, product              350    –             256      32      34         –      28
    keeping, tensor cores         348   48              80      16      16         –     188
    backward, product             904    –             732      32      50        30      60
    backward, tensor cores        690   96             160      24      28         –     382

Tensor cores take 1.2 times fewer in all: about as many forward, 1.3 times fewer backward.

A thread reads 16 bytes of a row at a time from shared or global memory, the product's 8; the total is the
same. An mma is 1,024 multiply-adds. A quarter of a multiprocessor takes 4 cycles for it at the dense TF32
rate of an H100, and 8 at that of an A100, where the mma set the limit instead of the instructions. Memory
outside a block: a matrix is 1 KB, the weights in the product are 256 bytes. The gradient of a matrix is read
and written for each 32 columns, another 2 KB. Kept rows are 4 KB in both forms.

The errors are those of one sample of bitonic 1024 at steepness 20, against float64 with the same weights. The
emulation sums as coarsely as any tensor core is known to. Entries of P are those down to 2^-115, each error
relative to its entry. Gradients of weights come from a random gradient of P, their errors relative to the
largest (`python tests/cuda/tensor_core_errors.py`).

                      P, largest   P, root mean square   gradients, largest
    product              7.3e-07               1.0e-07              2.4e-07
    tensor cores         5.3e-06               1.6e-06              5.1e-07
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import jinja2
import torch
from torch import Tensor

from nsc.compiler.network import Network
from nsc.compiler.schedule import Codelet, in_levels, light_cones, schedule, slots_of
from nsc.compiler.targets.tables import UNIT
from nsc.runtime.devices import cuda
from nsc.runtime.devices.cuda_module import Argument
from nsc.runtime.kernel import Kernel

TEMPLATE = Path(__file__).with_suffix(".cu.j2")
# As in the template.
PLACES, COLUMNS = 16, 32
MATRIX_SIZE = PLACES * PLACES
MOST_THREADS, MATRIX_THREADS = 512, 128
# The value that stands for 1 in a matrix; times UNIT it is 2^126, which float32 holds.
MATRIX_UNIT = 2.0**54
# The most pieces of a sample's columns. Each piece has its own sums of the matrices' gradients. The number of
# pieces depends on n alone, and so do the bits.
MOST_CHUNKS = 4
# CuPy adds the architecture and -default-device, without which NVRTC 13.0 refuses generic lambdas.
OPTIONS = ("--std=c++17",)


# ------------------------------------------------------------------------------------------- text


def text(network: Network, kernel: Kernel) -> str:
    """Return the CUDA source of the experiment on a network; the kernel says how weights are stored."""
    ordered, ends = in_levels(schedule(network))
    assert ordered.slots == kernel.launch.slots
    number = {shape: index for index, shape in enumerate(ordered.shapes)}
    slots = (0, *accumulate(map(slots_of, ordered.codelets)))
    rows = [*map(row_of, range(network.n)), network.n * COLUMNS]
    *cones, _ = light_cones(network.n, ordered.codelets, ends, COLUMNS)
    reached_by_tile = [[number for level in cone for number in level] for cone in cones]
    padding = [-1] * len(ordered.codelets)
    values = {
        "n": network.n,
        "slots": ordered.slots,
        "arrays": kernel.launch.arrays,
        "levels": len(ends),
        "codelet_count": len(ordered.codelets),
        "columns": COLUMNS,
        "unit": UNIT.hex(),
        "matrix_unit": MATRIX_UNIT.hex(),
        "shapes": [
            {"index": index, "length": len(shape), "pairs": ", ".join(f"{{{p.a}, {p.b}}}" for p in shape)}
            for index, shape in enumerate(ordered.shapes)
        ],
        "codelet_lines": [
            f"{{{number[codelet.shape]}, {slot}}},"
            for codelet, slot in zip(ordered.codelets, slots, strict=False)
        ],
        "row_lines": _lines([rows]),
        "codelet_row_lines": [_by_thread(codelet, rows) for codelet in ordered.codelets],
        "listed_lines": _lines(
            [(reached + padding)[: len(padding)] for reached in reached_by_tile], braces=True
        ),
        "level_end_lines": _lines([list(accumulate(map(len, cone))) for cone in cones], braces=True),
    }
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, line_statement_prefix="//%"
    )
    template = TEMPLATE.read_text(encoding="utf-8").partition("\n")[2]  # without the comment on its values
    return environment.from_string(template).render(values)


def row_of(wire: int) -> int:
    """Return the start of a wire's row in a tile; a multiple of 4 in its low bits exchanges the columns.

    Shared memory serves the reads of eight threads, 16 bytes each, together. No two of them share a bank if
    the wires of a codelet differ in four neighbouring bits, as in most codelets of a bitonic network.
    """
    return wire * COLUMNS + 16 * (wire.bit_count() % 2) + 8 * ((wire & 0xAAAA).bit_count() % 2)


def _by_thread(codelet: Codelet, rows: list[int]) -> str:
    """Return a codelet's rows in the order in which threads take them, padded with the wire of zeros."""
    padded = [rows[wire] for wire in codelet.wires] + [rows[-1]] * (PLACES - len(codelet.wires))
    fours = [[padded[8 * h + 2 * c + e] for h in range(2) for e in range(2)] for c in range(4)]
    return "{" + ", ".join(f"{{{{{{{a}, {b}}}, {{{c}, {d}}}}}}}" for a, b, c, d in fours) + "},"


def _lines(tables: list[list[int]], braces: bool = False) -> list[str]:
    texts = [", ".join(map(str, table)) for table in tables]
    return [f"{{{line}}}," if braces else line for line in texts]


# ---------------------------------------------------------------------------------------- launches


class Program(Protocol):
    """The functions of the experiment's text, loaded on a device."""

    def resident_blocks(self, function: str, threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a function the device runs at a time."""

    def launch(
        self,
        function: str,
        blocks: int,
        threads: int,
        shared_bytes: int,
        arguments: tuple[Argument, ...],
    ) -> None:
        """Launch a function on the current stream."""


@dataclass(frozen=True)
class TensorCores:
    """The experiment on one network.

    Attributes:
        kernel: the compiled network, whose keys pass makes the weights.
        text: the CUDA source.
        codelets: number of codelets.
    """

    kernel: Kernel
    text: str
    codelets: int

    @classmethod
    def of(cls, network: Network, kernel: Kernel) -> TensorCores:
        """Return the experiment on a network and its kernel."""
        return cls(kernel, text(network, kernel), len(schedule(network).codelets))

    @property
    def chunks(self) -> int:
        """Number of pieces of a sample's columns."""
        return min(MOST_CHUNKS, _ceil(self.kernel.n, COLUMNS))

    def matrices(self, weights: Tensor) -> Tensor:
        """Return the matrix of each codelet and its transpose, from weights (batch, arrays, slots)."""
        batch = weights.shape[0]
        matrices = weights.new_empty(batch, self.codelets, 2, MATRIX_SIZE)
        self._launch_on_matrices("tensor_matrices", batch, weights, matrices)
        return matrices

    def forward(self, matrices: Tensor) -> Tensor:
        """Return P, (batch, n, n)."""
        batch, n = matrices.shape[0], self.kernel.n
        routed = matrices.new_empty(batch, n, n)
        self._launch_on_columns(
            "tensor_forward", batch, self._blocks("tensor_forward", batch), matrices, routed
        )
        return routed

    def backward(self, matrices: Tensor, routed_grad: Tensor) -> Tensor:
        """Return the gradients of the matrices, (batch, chunks, codelets, 256).

        routed_grad: the gradient of P, (batch, n, n), contiguous.
        """
        batch = matrices.shape[0]
        grads = matrices.new_zeros(batch, self.chunks, self.codelets, MATRIX_SIZE)
        blocks = self._blocks("tensor_backward", batch)
        kept = matrices.new_empty(blocks, self.codelets, PLACES, COLUMNS)
        self._launch_on_columns("tensor_backward", batch, blocks, matrices, routed_grad, grads, kept)
        return grads

    def weight_gradients(self, weights: Tensor, matrix_grads: Tensor) -> Tensor:
        """Return the gradients of the weights, (batch, slots), from those of the matrices."""
        batch = weights.shape[0]
        grads = weights.new_empty(batch, self.kernel.launch.slots)
        self._launch_on_matrices("tensor_weights", batch, self.chunks, weights, matrix_grads, grads)
        return grads

    @property
    def sample_bytes(self) -> int:
        """Bytes that a sample takes in addition to those of the product."""
        return 4 * self.codelets * MATRIX_SIZE * (2 + self.chunks)

    def _launch_on_matrices(self, function: str, batch: int, *arguments: Tensor | int) -> None:
        """Launch a function in which half a warp takes one codelet of one sample."""
        blocks = _ceil(32 * _ceil(batch, 2) * self.codelets, MATRIX_THREADS)
        program_of(self.text).launch(function, blocks, MATRIX_THREADS, 0, (batch, *arguments))

    def _launch_on_columns(self, function: str, batch: int, blocks: int, *arguments: Tensor) -> None:
        """Launch a function whose blocks take the pieces of all samples in turn."""
        program_of(self.text).launch(
            function, blocks, self._threads, block_bytes(self.kernel.n), (batch, self.chunks, *arguments)
        )

    def _blocks(self, function: str, batch: int) -> int:
        program = program_of(self.text)
        resident = program.resident_blocks(function, self._threads, block_bytes(self.kernel.n))
        return min(batch * self.chunks, resident)

    @property
    def _threads(self) -> int:
        return min(MOST_THREADS, 32 * _ceil(self.kernel.n, COLUMNS))


def block_bytes(n: int) -> int:
    """Return the shared memory of a block for n wires: a tile, and its row of zeros."""
    return (n + 1) * COLUMNS * 4


@cache
def program_of(source: str) -> Program:
    """Return the functions of a text, loaded on torch's current device."""
    return CupyModule(source)


class CupyModule:
    """Implements `Program` for a text that CuPy compiles and loads on torch's current device."""

    def __init__(self, source: str) -> None:
        self._cupy: Any = importlib.import_module("cupy")
        self._module = self._cupy.RawModule(code=source, options=OPTIONS)
        self._functions: dict[str, Any] = {}

    def resident_blocks(self, function: str, threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a function the device runs at a time."""
        handle = self._function(function, shared_bytes).kernel.ptr
        driver = self._cupy.cuda.driver
        blocks: int = driver.occupancyMaxActiveBlocksPerMultiprocessor(handle, threads, shared_bytes)
        return blocks * torch.cuda.get_device_properties().multi_processor_count

    def launch(
        self,
        function: str,
        blocks: int,
        threads: int,
        shared_bytes: int,
        arguments: tuple[Argument, ...],
    ) -> None:
        """Launch a function on torch's current stream."""
        words = [a.data_ptr() if isinstance(a, Tensor) else a or 0 for a in arguments]
        with self._cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            self._function(function, shared_bytes)(
                (blocks,), (threads,), tuple(map(self._cupy.int64, words)), shared_mem=shared_bytes
            )

    def _function(self, name: str, shared_bytes: int) -> Any:
        if name not in self._functions:
            self._functions[name] = self._module.get_function(name)
            self._functions[name].max_dynamic_shared_size_bytes = shared_bytes
        return self._functions[name]


# --------------------------------------------------------------------------------------- the whole


def permutation(cores: TensorCores, x: Tensor, steepness: Tensor) -> Tensor:
    """Return P, (batch, n, n), of x, (batch, n), contiguous, batch >= 1, and steepness, (batch,)."""
    with cuda.calling(x, steepness, None, "permutation", cores.kernel.spec, with_gradients=False) as call:
        weights = call.empty_weights(x.shape[0])
        call.keys(0, x.shape[0], None, weights)
        return cores.forward(cores.matrices(weights))


def relaxed(
    cores: TensorCores, x: Tensor, steepness: Tensor, routed_grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return P and, from the gradient of P, those of x and of the steepness.

    Args:
        cores: the experiment on a network of n wires.
        x: (batch, n), contiguous; batch >= 1.
        steepness: (batch,).
        routed_grad: (batch, n, n), contiguous.
    """
    batch = x.shape[0]
    with cuda.calling(x, steepness, None, "permutation", cores.kernel.spec, with_gradients=True) as call:
        weights = call.empty_weights(batch)
        call.keys(0, batch, None, weights)
        matrices = cores.matrices(weights)
        routed = cores.forward(matrices)
        # The keys pass adds the gradients of all the product's chunks; here the first chunk has them all.
        weight_grads = call.empty_weight_grads(batch).zero_()
        weight_grads[:, 0] = cores.weight_gradients(weights, cores.backward(matrices, routed_grad))
        x_grad, steepness_grad = torch.empty_like(x), x.new_empty(batch)
        call.keys_backward(0, batch, None, weights, weight_grads, x_grad, steepness_grad)
    return routed, x_grad, steepness_grad


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
