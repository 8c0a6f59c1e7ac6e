"""`python -m benchmarks.host`: microseconds of Python that a call on a GPU takes before the GPU begins.

Prints a table. No GPU is needed: the driver and torch.cuda are stand-ins that do nothing, and tensors lie in
the memory of the CPU. The quickest of ROUNDS rounds counts. Of a loss, the sum over its parts runs on the CPU
and counts too.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import click
import torch

from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.runtime.relaxed import cuda, cuda_program
from nsc.runtime.relaxed.call import Call
from nsc.runtime.relaxed.kernel import Kernel, register_kernel

NETWORKS = (("bitonic", 16), ("bitonic", 128))
BATCH = 100
ROUNDS, CALLS = 30, 100


class _Driver:
    """The functions of CUDA's driver that nsc calls, as CuPy names them."""

    CUDADriverError = RuntimeError

    def __init__(self) -> None:
        self.ctxGetCurrent = self.moduleLoadData = self.moduleGetFunction = lambda *_: 1
        self.occupancyMaxActiveBlocksPerMultiprocessor = lambda *_: 2
        self.ctxSetCurrent = self.funcSetAttribute = self.launchKernel = lambda *_: None


def _stand_in(folder: Path) -> None:
    """Replace the driver, torch's part of CUDA, and the compiler."""
    sys.modules["cupy"] = SimpleNamespace(cuda=SimpleNamespace(driver=_Driver()))  # type: ignore[assignment]
    properties = SimpleNamespace(
        major=9, minor=0, multi_processor_count=132, shared_memory_per_block_optin=227 << 10
    )
    stream = SimpleNamespace(cuda_stream=0)
    replaced = {
        "get_device_properties": lambda *_: properties,
        "is_current_stream_capturing": lambda: False,
        "device": lambda *_: contextlib.nullcontext(),
        "current_device": lambda: 0,
        "current_stream": lambda *_: stream,
        "synchronize": lambda *_: None,
    }
    for name, function in replaced.items():
        setattr(torch.cuda, name, function)

    def build(kernel: Kernel, *_: object) -> SimpleNamespace:
        binary = folder / kernel.name
        binary.write_text("a cubin")
        return SimpleNamespace(binary=binary)

    cuda_program.build = build  # type: ignore[assignment]


def calls_of(kernel: Kernel) -> dict[str, Callable[[], object]]:
    """Return the calls of training: P forward and backward, and the cross entropy with its gradients."""
    x, steepness = torch.randn(BATCH, kernel.n), torch.tensor(2.0).expand(BATCH)
    of_p, gradient = Call(x, steepness, None, "permutation", kernel), torch.randn(BATCH, kernel.n, kernel.n)
    of_loss = Call(x, steepness, x.argsort(-1), "cross_entropy", kernel)
    return {
        "P": lambda: cuda.relax(of_p),
        "P backward": lambda: cuda.relax_backward(of_p, None, gradient),
        "cross entropy and gradients": lambda: cuda.loss(of_loss),
    }


def microseconds(call: Callable[[], object]) -> float:
    """Return the microseconds of a call in its quickest round."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - start) / CALLS)
    return min(rounds) * 1e6


@click.command()
def main() -> None:
    """Print the microseconds of each call of each network."""
    with tempfile.TemporaryDirectory() as folder:
        _stand_in(Path(folder))
        click.echo("| network | call | µs |\n|---|---|---:|")
        for family, n in NETWORKS:
            request = Request(family, n, targets=("cuda",), straight_line=0)
            kernel = register_kernel(compile_network(request).package.files)
            for name, call in calls_of(kernel).items():
                click.echo(f"| {family} {n} | {name} | {microseconds(call):.0f} |")


if __name__ == "__main__":
    main()
