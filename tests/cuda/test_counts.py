"""What kernels take where no GPU measures it, held by a table: tests/golden/counts.md."""

from __future__ import annotations

import pytest
import torch
from device import CpuProgram
from test_compile import VERSION

from nsc.compiler.driver import compile_network
from nsc.compiler.families import family_network
from nsc.compiler.relaxed import cuda as lowering
from nsc.compiler.relaxed import levels
from nsc.compiler.request import Request
from nsc.compiler.schedule import schedule
from nsc.contract.launch import WARP
from nsc.runtime.build import nvrtc
from nsc.runtime.relaxed import cuda
from nsc.runtime.relaxed.call import Call
from nsc.runtime.relaxed.kernel import register_kernel

pytestmark = pytest.mark.nightly("kernels of up to 1,024 wires run on the CPU for minutes")

HEAD = """# What CUDA kernels take

Counted, not measured, for float32 and bitonic networks.

## Waits at levels

Tiles of P on some warps: the most comparators of a team at each level, summed over the levels of all light
cones, by what teams would have with equal shares. The warps of the kernels are marked.

| n | 1 | 2 | 4 | 8 |
|---:|---:|---:|---:|---:|
"""
EXECUTED = f"""
## Instructions

The PTX is that of NVRTC {VERSION[0]}.{VERSION[1]} for sm_90. Instructions that the threads of a sample
execute are divided by {WARP}: so many its warps issue where lanes do not part.
The cross entropy takes the last merge apart from {levels.FEWEST_PARTED} wires on, and codelets of P end in
front of it.

| n | call | keys | route | route backward | sums | keys backward | together |
|---:|---|---:|---:|---:|---:|---:|---:|
"""
CALLS = ("P and gradient", "cross entropy and gradient")
FUNCTIONS = ("keys", "route", "route_backward", "sum", "keys_backward")


def waits(lowered, warps):
    """Return the time of a level's busiest team by that of equal shares, over all levels of P."""
    teams = warps * WARP // lowered.launch.tile_lanes
    busiest = shares = 0
    for level in (level for cone in lowered.cones[:-1] for level in cone):
        work = [0] * teams
        for place, number in enumerate(level):
            work[place % teams] += len(lowered.schedule.codelets[number].shape)
        busiest += max(work)
        shares += sum(work) / teams
    return busiest / shares


def waits_of(n):
    lowered = lowering.lower(schedule(family_network("bitonic", n)), Request("bitonic", n))
    own = lowered.launch.tile_threads // WARP
    figures = (f"{waits(lowered, warps):.2f}{' *' if warps == own else ''}" for warps in (1, 2, 4, 8))
    return f"| {n} | {' | '.join(figures)} |\n"


def executed(monkeypatch, n, call):
    """Return the instructions of each function for a sample; the batch fills a block of the keys pass."""
    kernel = register_kernel(compile_network(Request("bitonic", n, targets=("cuda",))).package.files)
    program = CpuProgram(kernel)
    monkeypatch.setattr(cuda, "program_of", lambda *_: program)
    draw = torch.Generator().manual_seed(0)
    batch = kernel.launch.keys_threads // kernel.launch.sample_threads
    x, steepness = torch.randn(batch, n, generator=draw), torch.full((batch,), 20.0)
    if call == CALLS[0]:
        of_p = Call(x, steepness, None, "permutation", kernel)
        kept = cuda.empty_kept(of_p)
        _, P = cuda.relax(of_p, kept)
        cuda.relax_backward(of_p, None, torch.randn(P.shape, generator=draw), kept=kept)
    else:
        ranks = torch.rand(batch, n, generator=draw).argsort(-1)
        cuda.loss(Call(x, steepness, ranks, "cross_entropy", kernel))
    return [program.kernels.executed.get(f"nsc_{name}_f32", 0) / WARP / batch for name in FUNCTIONS]


def instructions_of(monkeypatch, n, call, words):
    counts = executed(monkeypatch, n, call)
    figures = " | ".join(f"{round(each):,}" if each else "" for each in (*counts, sum(counts)))
    return f"| {n} | {words} | {figures} |\n"


def test_the_counts_are_true(golden, monkeypatch):
    if nvrtc._nvrtc().getVersion() != VERSION:
        pytest.skip(f"the table is of NVRTC {VERSION}")
    text = HEAD + "".join(map(waits_of, (64, 128, 256, 512, 1024))) + EXECUTED
    for n in (128, 256, 512, 1024):
        text += "".join(instructions_of(monkeypatch, n, call, call) for call in CALLS)
        with monkeypatch.context() as whole:
            whole.setattr(levels, "MOST_PARTED", 0)
            text += "".join(instructions_of(whole, n, call, f"{call}, no merge apart") for call in CALLS)
    golden("counts.md", text)
