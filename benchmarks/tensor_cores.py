"""`python -m benchmarks.tensor_cores`: P and its gradient by matrix products on tensor cores.

An experiment beside the product's routing; nothing in the product uses it. A codelet, at most 16 wires, is a
16 × 16 matrix for each sample. It is made once a sample and applied to all columns of P, 32 at a time, by
mma.m16n8k8 with each float32 in two parts of TF32 (3×TF32). Backward, the transposed matrices take the
gradient on, products over the columns make the gradient of each matrix, and that is taken to the codelet's
weights once a sample. The keys pass is the product's.

float32, P alone, networks that sort, not the error-free form. A NaN spreads to all wires of its codelet, and
a gradient above 2^70 may overflow.

Counted, not measured: warp instructions for a codelet of 16 wires and 32 comparators on 32 columns, sm_90, by
NVRTC 13.5, both sides of branches, beside the product's routing with a column a thread and offsets of wires
from a table.

    pass                          all  mma  floating point  shared  global  shuffles  integers and others
    forward, product              243    –             128      32      36         –                   47
    forward, tensor cores         159   24              40       8       4         –                   83
    keeping for backward, product 266    –             128      32      53         –                   53
    keeping, tensor cores         174   24              40       8       8         –                   94
    backward, product             655    –             414      32      99        31                   79
    backward, tensor cores        346   48              80      12      14         –                  192

A thread takes 16 bytes of a row from shared or global memory where the product's takes 4; the bytes are the
same. An mma is 1,024 multiply-adds. At the dense TF32 rate of an H100 they take a quarter of a multiprocessor
4 cycles; at that of an A100 8, where they bind instead of the instructions. Memory outside a block: a matrix
is 1 KB where weights are 256 bytes, and the gradient of one is read and written for each 32 columns, another
2 KB, beside 4 KB of kept rows in both forms.

Errors in the emulation, whose sums on tensor cores are as coarse as any processor's are known to be, of one
sample of bitonic 1024 at steepness 20 beside float64 with the same weights. Entries of P down to 2^-115, each
relative to itself; gradients of weights from a random gradient of P, relative to the largest.

                      P, largest   P, root mean square   gradients, largest
    product              7.3e-07               1.0e-07              1.9e-07
    tensor cores         5.3e-06               1.6e-06              5.1e-07
"""

from __future__ import annotations

import importlib
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import click
import jinja2
import torch
from torch import Tensor

import nsc
from nsc.compiler.codelets import Codelet
from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.render import UNIT
from nsc.compiler.schedule import in_levels, schedule, slots_of
from nsc.runtime import cuda, reference
from nsc.runtime.kernel import Kernel

TEMPLATE = Path(__file__).with_suffix(".cu.j2")
FAMILY = "bitonic"
SIZES = (128, 256, 512, 1024)
STEEPNESS = 20.0
ART_LAMBDA = 0.25
# As in the template.
PLACES, COLUMNS = 16, 32
MATRIX_SIZE = PLACES * PLACES
MOST_THREADS, MATRIX_THREADS = 512, 128
# What stands for 1 in a matrix; times UNIT it is 2^126, which float32 holds.
MATRIX_UNIT = 2.0**54
# Pieces that a sample's columns are cut into, each with its own sums of the matrices' gradients. By shape
# alone, so that the bits depend on nothing else.
MOST_CHUNKS = 4
# CuPy adds the architecture, and that functions are the device's, without which NVRTC 13.0 takes no generic
# lambda.
OPTIONS = ("--std=c++17",)
# P of a timed batch takes this much, for at most so many samples; a checked batch has a few.
P_BYTES = 1 << 29
MOST_SAMPLES = 1 << 12
CHECKED_SAMPLES = 3
# Relative to the largest entry, given the same x. The steepness is low: errors of the keys pass, which is
# float32 too, grow with it.
TOLERANCE = 2e-4
CHECKED_STEEPNESS = 2.0
ROUNDS = 11
ROUND_SECONDS = 0.05
DEVICE = "cuda"

Call = Callable[[], object]


# ------------------------------------------------------------------------------------------- text


def text(network: Network, kernel: Kernel) -> str:
    """Return the CUDA source of the experiment on a network; the kernel says how weights are stored."""
    ordered, ends = in_levels(schedule(network))
    assert ordered.slots == kernel.launch.slots
    number = {shape: index for index, shape in enumerate(ordered.shapes)}
    slots = (0, *accumulate(map(slots_of, ordered.codelets)))
    rows = [*map(row_of, range(network.n)), network.n * COLUMNS]
    lists = [light_cone(ordered.codelets, ends, tile) for tile in range(_ceil(network.n, COLUMNS))]
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
        "listed_lines": _lines([(reached + padding)[: len(padding)] for reached, _ in lists], braces=True),
        "level_end_lines": _lines([level_ends for _, level_ends in lists], braces=True),
    }
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, line_statement_prefix="//%"
    )
    template = TEMPLATE.read_text(encoding="utf-8").partition("\n")[2]  # without its remark on what it takes
    return environment.from_string(template).render(values)


def row_of(wire: int) -> int:
    """Return where a wire's row begins in a tile; a multiple of 4 in its low bits exchanges its columns.

    The reads of eight threads, 16 bytes each, are served together. No two of them share a bank where the
    wires of a codelet differ in four neighbouring bits, as in most codelets of a bitonic network.
    """
    return wire * COLUMNS + 16 * (wire.bit_count() % 2) + 8 * ((wire & 0xAAAA).bit_count() % 2)


def light_cone(
    codelets: tuple[Codelet, ...], ends: tuple[int, ...], tile: int
) -> tuple[list[int], list[int]]:
    """Return the codelets that a tile's columns of P reach, and where those of each level end."""
    reached = set(range(tile * COLUMNS, (tile + 1) * COLUMNS))
    found: list[int] = []
    found_ends = []
    for first, end in zip((0, *ends), ends, strict=False):
        for index in range(first, end):
            if not reached.isdisjoint(codelets[index].wires):
                reached.update(codelets[index].wires)
                found.append(index)
        found_ends.append(len(found))
    return found, found_ends


def _by_thread(codelet: Codelet, rows: list[int]) -> str:
    """Return a codelet's rows in the order in which threads take them, padded with the wire of zeros."""
    of = [rows[wire] for wire in codelet.wires] + [rows[-1]] * (PLACES - len(codelet.wires))
    fours = [[of[8 * h + 2 * c + e] for h in range(2) for e in range(2)] for c in range(4)]
    return "{" + ", ".join(f"{{{{{{{a}, {b}}}, {{{c}, {d}}}}}}}" for a, b, c, d in fours) + "},"


def _lines(tables: list[list[int]], braces: bool = False) -> list[str]:
    texts = [", ".join(map(str, table)) for table in tables]
    return [f"{{{line}}}," if braces else line for line in texts]


# ---------------------------------------------------------------------------------------- launches


class Program(Protocol):
    """The functions of the experiment's text, loaded on a device; as `cuda.Program` launches them."""

    def resident_blocks(self, function: str, threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a function the device runs at a time."""

    def launch(
        self,
        function: str,
        blocks: int,
        threads: int,
        shared_bytes: int,
        arguments: tuple[cuda.Argument, ...],
    ) -> None:
        """Launch a function on the current stream."""


@dataclass(frozen=True)
class TensorCores:
    """The experiment on one network.

    Attributes:
        kernel: the compiled network, whose keys pass makes the weights.
        program: the functions of the experiment's text.
        codelets: number of codelets.
    """

    kernel: Kernel
    program: Program
    codelets: int

    @classmethod
    def of(cls, network: Network, kernel: Kernel, load: Callable[[str], Program]) -> TensorCores:
        """Return the experiment on a network, its kernel and what loads a text."""
        return cls(kernel, load(text(network, kernel)), len(schedule(network).codelets))

    @property
    def chunks(self) -> int:
        """Pieces that a sample's columns are cut into."""
        return min(MOST_CHUNKS, _ceil(self.kernel.n, COLUMNS))

    def matrices(self, weights: Tensor) -> Tensor:
        """Return the matrix of each codelet and its transpose, from weights (batch, arrays, slots)."""
        batch = weights.shape[0]
        made = weights.new_empty(batch, self.codelets, 2, MATRIX_SIZE)
        self._launch_on_matrices("tensor_matrices", batch, weights, made)
        return made

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

    def _launch_on_matrices(self, function: str, batch: int, *arguments: Tensor | int) -> None:
        """Launch a function of which half a warp takes a codelet of a sample."""
        blocks = _ceil(32 * _ceil(batch, 2) * self.codelets, MATRIX_THREADS)
        self.program.launch(function, blocks, MATRIX_THREADS, 0, (batch, *arguments))

    def _launch_on_columns(self, function: str, batch: int, blocks: int, *arguments: Tensor) -> None:
        """Launch a function whose blocks take the tasks in turn."""
        self.program.launch(
            function, blocks, self._threads, self.shared_bytes, (batch, self.chunks, *arguments)
        )

    def _blocks(self, function: str, batch: int) -> int:
        resident = self.program.resident_blocks(function, self._threads, self.shared_bytes)
        return min(batch * self.chunks, resident)

    @property
    def _threads(self) -> int:
        return min(MOST_THREADS, 32 * _ceil(self.kernel.n, COLUMNS))

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: a tile, and its row of zeros."""
        return (self.kernel.n + 1) * COLUMNS * 4


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
        arguments: tuple[cuda.Argument, ...],
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


# ----------------------------------------------------------------------------------------- checks


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
        # The keys pass adds the gradients of the product's chunks; these are in one.
        weight_grads = call.empty_weight_grads(batch).zero_()
        weight_grads[:, 0] = cores.weight_gradients(weights, cores.backward(matrices, routed_grad))
        x_grad, steepness_grad = torch.empty_like(x), x.new_empty(batch)
        call.keys_backward(0, batch, None, weights, weight_grads, x_grad, steepness_grad)
    return routed, x_grad, steepness_grad


def problems(cores: TensorCores, batch: int) -> Iterator[str]:
    """Yield what differs from the reference in float64, by more than TOLERANCE of the largest entry."""
    n, draw = cores.kernel.n, torch.Generator().manual_seed(0)
    x = torch.randn(batch, n, generator=draw).to(DEVICE)
    routed_grad = torch.randn(batch, n, n, generator=draw).to(DEVICE)
    steepness = torch.full((batch,), CHECKED_STEEPNESS, device=DEVICE)
    leaves = x.double().requires_grad_(), steepness.double().requires_grad_()
    wanted = reference.relax(cores.kernel, *leaves, None, "permutation")[1]
    wanted_grads = torch.autograd.grad(wanted, leaves, routed_grad.double())
    found = relaxed(cores, x, steepness, routed_grad)
    names = "P", "gradient of x", "gradient of the steepness"
    for name, f, w in zip(names, found, (wanted.detach(), *wanted_grads), strict=True):
        error = float((f - w).abs().max() / w.abs().max())
        if not error <= TOLERANCE:
            yield f"{FAMILY} {n}, {name}: off by {error:.1e}"


# ----------------------------------------------------------------------------------------- timing


@dataclass(frozen=True)
class Timing:
    """What a pass takes.

    Attributes:
        name: of the pass.
        seconds: of a sample, the median of the rounds.
    """

    name: str
    seconds: float


def measure(cores: TensorCores, batch: int, seconds_of: Callable[[Call], float]) -> list[Timing]:
    """Return the time of each pass, the product's two of routing last.

    Args:
        cores: the experiment.
        batch: samples in a call.
        seconds_of: the seconds of a call.
    """
    n = cores.kernel.n
    x, steepness = torch.randn(batch, n, device=DEVICE), torch.full((batch,), STEEPNESS, device=DEVICE)
    routed_grad = torch.randn(batch, n, n, device=DEVICE)
    with cuda.calling(x, steepness, None, "permutation", cores.kernel.spec, with_gradients=True) as call:
        weights, routed = call.empty_weights(batch), torch.empty_like(routed_grad)
        weight_grads = call.empty_weight_grads(batch)
        call.keys(0, batch, None, weights)
        matrices = cores.matrices(weights)
        matrix_grads = cores.backward(matrices, routed_grad)
        passes: dict[str, Call] = {
            "matrices": lambda: cores.matrices(weights),
            "forward": lambda: cores.forward(matrices),
            "backward": lambda: cores.backward(matrices, routed_grad),
            "gradients of weights": lambda: cores.weight_gradients(weights, matrix_grads),
            "product, forward": lambda: call.route(0, batch, weights, routed),
            "product, backward": lambda: call.route_backward(
                0, batch, weights, routed_grad, weight_grads, None, None
            ),
        }
        return [Timing(name, seconds_of(run) / batch) for name, run in passes.items()]


def seconds_by_events(call: Call) -> float:
    """Return the median seconds of a call over rounds of many, by CUDA events."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]

    def seconds(repeats: int) -> float:
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / repeats

    seconds(1)
    repeats = max(1, int(ROUND_SECONDS / max(seconds(1), 1e-6)))
    return statistics.median(seconds(repeats) for _ in range(ROUNDS))


# ------------------------------------------------------------------------------------------- main


@click.command()
def main() -> None:
    """Check P and its gradient by matrix products against the reference on this GPU, then time them."""
    if not torch.cuda.is_available():
        raise click.UsageError("torch sees no CUDA device: this benchmark is for machines with a GPU")
    click.echo(torch.cuda.get_device_name())
    wrong = 0
    for n in SIZES:
        network = family_network(FAMILY, n)
        kernel = nsc.compile(FAMILY, n, art_lambda=ART_LAMBDA, targets=("cuda",)).kernel
        cores = TensorCores.of(network, kernel, CupyModule)
        has = torch.cuda.get_device_properties().shared_memory_per_block_optin
        if cores.shared_bytes > has:
            click.echo(f"{FAMILY} {n} takes {cores.shared_bytes:,} bytes of a block's {has:,}: left out")
            continue
        for problem in problems(cores, CHECKED_SAMPLES):
            wrong += 1
            click.echo(f"WRONG: {problem}")
        batch = min(MOST_SAMPLES, P_BYTES // (4 * n * n))
        for timing in measure(cores, batch, seconds_by_events):
            click.echo(f"{FAMILY} {n}, batch {batch}, {timing.name}: {timing.seconds * 1e9:,.1f} ns a sample")
    if wrong:
        sys.exit(1)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


if __name__ == "__main__":
    main()
