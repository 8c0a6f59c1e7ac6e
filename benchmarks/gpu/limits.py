"""Limits: the best rates of the device, and how long a case takes at each rate."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.building import Mixes
from benchmarks.gpu.events import DEVICE, rounds
from benchmarks.gpu.peers import EXACT_WORKS, KEYS, LOSS_GRAD, P_GRAD, RANKS, SOFT_WORKS, P
from nsc.contract.interface import REALS

SOURCE = Path(__file__).with_name("limits.cu")
# As in limits.cu.
STEPS, CHAINS = 64, 8
COUNT = 64
COPIED_BYTES = 1 << 30
# As many threads as a multiprocessor holds; some hold 1,536, and run the remaining blocks later.
THREADS, BLOCKS_PER_MULTIPROCESSOR = 256, 8
WARP = 32

# Operations of a mix on a column. Forward: two products and two fused multiply-adds. Backward: the same to
# recompute values, the same for the gradient, and three for the weight: a difference, a difference times it,
# and a sum over columns.
FORWARD_OPERATIONS = 4
BACKWARD_OPERATIONS = 11
# Instructions that a warp runs for a mix on 32 columns: the instructions of a turn of its loop over codelets
# of 16 wires and 32 comparators, in which each half warp mixes 32 columns. Loads and stores, the choice of
# one of two shapes and the loop itself count. Code for a sample on one lane, or for lanes apart, does not
# run. The backward pass has two loops: the first keeps the rows that codelets load. Counted in the machine
# code for 64 wires, sm_90, by NVRTC 13.5.
FORWARD_INSTRUCTIONS = 329 / (32 * 2)
BACKWARD_INSTRUCTIONS = (350 + 904) / (32 * 2)


@dataclass(frozen=True)
class Limits:
    """The best rates of the device.

    Attributes:
        bytes_per_second: read and written by a copy.
        operations_per_second: float32 fused multiply-adds.
        instructions_per_second: of warps, which run multiply-adds and logical operations without waits.
        launch_seconds: of an empty kernel, launched by CuPy one after another.
        event_seconds: between two events around one empty kernel: the least time that a launch can show.
    """

    bytes_per_second: float
    operations_per_second: float
    instructions_per_second: float
    launch_seconds: float
    event_seconds: float


def measure() -> Limits:
    """Measure the limits, each by its best round."""
    cupy: Any = importlib.import_module("cupy")
    text = SOURCE.read_text(encoding="utf-8")

    def function(name: str, multiply_adds: int = 1) -> Callable[..., None]:
        kernel = cupy.RawModule(code=text, options=(f"-DMULTIPLY_ADDS={multiply_adds}",)).get_function(name)
        # On the default stream, here the current stream of both torch and CuPy.
        return partial(kernel, (blocks,), (THREADS,))

    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    blocks = BLOCKS_PER_MULTIPROCESSOR * multiprocessors
    threads = blocks * THREADS
    source = torch.empty(COPIED_BYTES, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    copy = min(rounds(partial(target.copy_, source)))
    del source, target
    out = torch.empty(threads, device=DEVICE)
    arguments = (cupy.uint64(out.data_ptr()), cupy.int32(COUNT), cupy.float32(0.999))
    multiply_adds = function("multiply_adds")
    fma = min(rounds(lambda: multiply_adds(arguments)))
    issue_rates = []
    # One instruction is issued a cycle; the units of each kind take all of these, or every second one.
    for ratio in (1, 2):
        mixed = function("mixed_instructions", ratio)
        mixed_arguments = (*arguments, cupy.uint32(0x5A5A5A5A))
        seconds = min(rounds(partial(mixed, mixed_arguments)))
        issue_rates.append(threads // WARP * COUNT * STEPS * (ratio + 1) / seconds)
    operations = threads * COUNT * STEPS * CHAINS / fma
    empty = partial(function("empty"), ())
    return Limits(
        bytes_per_second=2 * COPIED_BYTES / copy,
        operations_per_second=operations,
        instructions_per_second=max(*issue_rates, operations / WARP),
        launch_seconds=min(rounds(empty)),
        event_seconds=min(rounds(empty, seconds=0)),
    )


def limit_seconds(work: str, n: int, batch: int, mixes: Mixes, limits: Limits) -> dict[str, float]:
    """Return how long a case takes at each limit that is known for it.

    Args:
        work, n, batch: the case.
        mixes: the mixes of a sample.
        limits: the best rates of the device.

    Returns:
        "memory": inputs and outputs alone; in float32 also "multiply-adds": the arithmetic of mixes, inside
        light cones for P and for losses; "issue": instructions of the routing.
    """
    if work in EXACT_WORKS:
        exact = EXACT_WORKS[work]
        results = exact.top_k or n
        size = n * exact.dtype.itemsize + results * (exact.value_bytes - exact.dtype.itemsize)
        return {"memory": batch * size / limits.bytes_per_second}
    soft = SOFT_WORKS[work]
    real_bytes = REALS[soft.real].bytes
    square, columns = real_bytes * n * n, mixes.on_columns
    instructions = {
        P: FORWARD_INSTRUCTIONS * columns,
        P_GRAD: (FORWARD_INSTRUCTIONS + BACKWARD_INSTRUCTIONS) * columns,
        LOSS_GRAD: BACKWARD_INSTRUCTIONS * mixes.for_loss,
    }
    operations, size = {
        P: (FORWARD_OPERATIONS * columns, square),
        P_GRAD: ((FORWARD_OPERATIONS + BACKWARD_OPERATIONS) * columns, 2 * square),
        LOSS_GRAD: (BACKWARD_OPERATIONS * mixes.for_loss, (2 * real_bytes + 8) * n),
        KEYS: (FORWARD_OPERATIONS * mixes.comparators, 2 * real_bytes * n),
        RANKS: (2 * FORWARD_OPERATIONS * mixes.comparators, 2 * real_bytes * n),
    }[soft.result]
    seconds = {"memory": batch * size / limits.bytes_per_second}
    if soft.real == "float32":
        seconds["multiply-adds"] = batch * operations / limits.operations_per_second
        if soft.result in instructions:
            seconds["issue"] = batch / WARP * instructions[soft.result] / limits.instructions_per_second
    return seconds
