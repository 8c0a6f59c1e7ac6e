"""`python driven.py FOLDER`: nsc's way to a device through the real CuPy, with driver.cpp as its libcuda.

Stands in for torch's part alone: a build of torch without CUDA has no devices and no streams.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import torch
from emulated import Emulated

from nsc.compiler.driver import Request, compile_network
from nsc.errors import BuildError, PackageError
from nsc.runtime import cuda, cupy_program, reference
from nsc.runtime.kernel import register

CONTEXT = 1
PROPERTIES = SimpleNamespace(
    multi_processor_count=2, major=9, minor=0, shared_memory_per_block_optin=227 << 10
)


@dataclass
class Driven:
    """What stands in for the build cache: kernels built for the emulation."""

    folder: Path

    def build(self, kernel, architecture, shared_bytes):
        assert architecture == "sm_90"
        columns = cupy_program.tile_columns(kernel.n, kernel.launch, shared_bytes)
        defines = "".join(
            f"#define NSC_TILE_COLUMNS_F{bits} {columns[f'float{bits}']}\n" for bits in (32, 64)
        )
        folder = self.folder / kernel.name
        folder.mkdir()
        Emulated(defines + kernel.sources["cuda"], folder)
        return SimpleNamespace(binary=folder / "kernels.so")


def synchronize(device):
    """Bind the device's context to the thread, as any call of CUDA's runtime does."""
    from cupy.cuda import driver

    driver.ctxSetCurrent(CONTEXT)


def main(folder):
    torch.cuda.get_device_properties = lambda device: PROPERTIES
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.device = lambda device: contextlib.nullcontext()
    torch.cuda.current_stream = lambda: SimpleNamespace(cuda_stream=0)
    torch.cuda.synchronize = synchronize
    cupy_program.build = Driven(folder).build
    programs = {}

    def program_of(kernel, device):
        if kernel not in programs:
            programs[kernel] = cupy_program.CupyProgram(kernel, 0)
        return programs[kernel]

    cuda.program_of = program_of
    check()
    print("right")
    in_a_thread = threading.Thread(target=lambda: (check(), print("right in a thread")))
    in_a_thread.start()
    in_a_thread.join()
    other = register(compile_network(Request("bitonic", 4, targets=("cuda",))).package.files)
    built = Driven(folder).build(other, "sm_90", PROPERTIES.shared_memory_per_block_optin)
    cupy_program.build = lambda *args: built
    try:
        cupy_program.CupyProgram(made(), 0)
    except PackageError as error:
        print(error)
    broken = folder / "broken.so"
    broken.write_text("")
    cupy_program.build = lambda *args: SimpleNamespace(binary=broken)
    try:
        cupy_program.CupyProgram(made(), 0)
    except BuildError as error:
        print(error)


def made():
    """A kernel whose tiles take more shared memory than launches may have unasked."""
    request = Request("bitonic", 64, dtypes=("float64",), targets=("cuda",))
    return register(compile_network(request).package.files)


def check():
    kernel = made()
    x = torch.randn(2, kernel.n, dtype=torch.float64, requires_grad=True)
    steepness = torch.tensor(0.5, dtype=torch.float64).expand(2)
    values, losses = reference.relax(kernel, x, steepness, target := x.argsort(-1), "cross_entropy")
    (wanted,) = torch.autograd.grad(losses.sum(), x)
    x = x.detach()
    sorted_, indices = cuda.hard_sort(x, kernel.spec)
    assert torch.equal(x.gather(-1, indices), sorted_)
    torch.testing.assert_close(
        cuda.relax_unchecked(x, steepness, None, "none", kernel.spec)[0], values.detach()
    )
    found, x_grad, _ = cuda.loss(x, steepness, target, "cross_entropy", kernel.spec)
    torch.testing.assert_close(found, losses.detach())
    torch.testing.assert_close(x_grad, wanted)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
