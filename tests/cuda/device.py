"""A device for the runtime's CUDA half: real sources, compiled to PTX that the CPU runs; and any NVRTC."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from filelock import FileLock
from machine import Kernels, folder

from nsc import library
from nsc.compiler.driver import compile_network
from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.request import Request
from nsc.contract.exact import ExactSource, for_element
from nsc.contract.routings import IGNORED, ROUTINGS, Payload
from nsc.runtime.build import nvrtc
from nsc.runtime.devices.cuda_module import Argument
from nsc.runtime.devices.launches import ExactLaunches, Launches, exact_launches, launches
from nsc.runtime.relaxed import cuda, reference
from nsc.runtime.relaxed.call import Call, has_gradient, is_loss
from nsc.runtime.relaxed.kernel import Kernel, register_kernel

ENVIRONMENT = Path(__file__).parents[2] / ".venv"
# The most shared memory that a block of an H100 may have.
SHARED_BYTES = 227 << 10

BATCH = 5
TOLERANCE = {
    torch.float64: {"rtol": 1e-9, "atol": 1e-9},
    torch.float32: {"rtol": 5e-4, "atol": 5e-5},
}
# Routings, each with the number of columns of its payload.
ROUTED = [
    ("none", 0),
    ("permutation", 0),
    ("route", 1),
    ("route", 35),
    ("transposed", 1),
    ("transposed", 3),
    ("rows", 2),
    *((name, 0) for name, routing in ROUTINGS.items() if routing.is_loss),
]


# ---------------------------------------------------------------------------------------- compilers


class NvrtcLibrary:
    """An NVRTC of any version by its C interface, with CuPy's names; several can be loaded at a time."""

    class NVRTCError(Exception):
        """A call failed."""

    def __init__(self, folder: Path) -> None:
        libraries = [path for path in folder.glob("libnvrtc.so.*") if "alt" not in path.name]
        assert libraries, f"no libnvrtc.so in {folder}: run make .venv/test.stamp"
        for path in folder.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(libraries[0]))

    def _call(self, name: str, *arguments: object) -> None:
        if status := self._library[f"nvrtc{name}"](*arguments):
            raise self.NVRTCError(f"nvrtc{name}: status {status}")

    def _bytes(self, name: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{name}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"Get{name}", program, buffer)
        return buffer.raw

    def getVersion(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("Version", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def getSupportedArchs(self) -> list[int]:
        count = ctypes.c_int()
        self._call("GetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._call("GetSupportedArchs", found)
        return list(found)

    def createProgram(self, text: str, name: str, headers: tuple, includes: tuple) -> ctypes.c_void_p:
        program = ctypes.c_void_p()
        self._call("CreateProgram", ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
        return program

    def compileProgram(self, program: ctypes.c_void_p, options: Sequence[str]) -> None:
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self._call("CompileProgram", program, len(options), given)

    def getCUBIN(self, program: ctypes.c_void_p) -> bytes:
        return self._bytes("CUBIN", program)

    def getPTX(self, program: ctypes.c_void_p) -> str:
        return self._bytes("PTX", program).rstrip(b"\0").decode()

    def getProgramLog(self, program: ctypes.c_void_p) -> str:
        return self._bytes("ProgramLog", program).rstrip(b"\0").decode()

    def destroyProgram(self, program: ctypes.c_void_p) -> None:
        self._call("DestroyProgram", ctypes.byref(program))


@dataclass(frozen=True)
class Compiler:
    """Makes PTX of CUDA C++, with the options of the kernels that are shipped.

    Attributes:
        folder: where NVRTC's libraries are, in the environment; empty: where CuPy finds them.
        architecture: such as compute_90.
    """

    folder: str
    architecture: str

    @property
    def library(self) -> NvrtcLibrary:
        return _library(self.folder)

    def kernels(self, text: str) -> Kernels:
        """Return the kernels of a text with all that it includes."""
        return Kernels(self.ptx(library.expanded(text)))

    def ptx(self, text: str) -> str:
        """Return the PTX of a text; all workers of a run compile it once."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        version = ".".join(map(str, self.library.getVersion()))
        path = folder() / f"{digest}-{version}-{self.architecture}.ptx"
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                # NVRTC 12 leaves its thread in the locale C, in which Python takes texts for ASCII.
                with ThreadPoolExecutor(1) as pool:
                    made = pool.submit(self._compiled, text).result()
                path.write_text(made, encoding="utf-8")
        return path.read_text(encoding="utf-8")

    def _compiled(self, text: str) -> str:
        compiler = self.library
        program = compiler.createProgram(text, "kernel.cu", (), ())
        try:
            options = (f"--gpu-architecture={self.architecture}", *nvrtc._OPTIONS, "-default-device")
            compiler.compileProgram(program, options)
            return compiler.getPTX(program)
        except NvrtcLibrary.NVRTCError:
            raise AssertionError(compiler.getProgramLog(program)[:4000]) from None
        finally:
            compiler.destroyProgram(program)


NEWEST = Compiler("", "compute_90")
# One of version 12, for the first architecture that it knows; and the first of version 13.
OLDEST = Compiler("nvrtc-12.4/nvidia/cuda_nvrtc/lib", "compute_70")
FIRST_OF_13 = Compiler("nvrtc-13.0/nvidia/cu13/lib", "compute_75")


@functools.cache
def _library(folder: str) -> NvrtcLibrary:
    if folder:
        _library("")  # first: CuPy takes the one that is loaded
        return NvrtcLibrary(ENVIRONMENT / folder)
    found = importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc")
    return NvrtcLibrary(Path(found.abs_path).parent)


# ---------------------------------------------------------------------------------------- programs


class OnTheCpu:
    """Kernels that the CPU runs as a device would.

    Attributes:
        launches: what blocks of its functions take.
        order: the order in which threads run between barriers.
        kernels: the functions.
    """

    def __init__(self, text: str, launches: Launches | ExactLaunches, compiler: Compiler) -> None:
        self.launches = launches
        self.order = "ascending"
        self.kernels = compiler.kernels(with_defines(text, launches))

    def launch(self, function: str, blocks: int, arguments: tuple[Argument, ...]) -> None:
        block = self.launches.blocks[function]
        shared_bytes = -(-block.shared_bytes // 16) * 16
        self.kernels.launch(function, blocks, block.threads, arguments, shared_bytes, self.order)


class CpuProgram(OnTheCpu):
    """Stands in for `cuda_program.Program`.

    Attributes:
        blocks: how many blocks the device runs at a time.
        multiprocessors: the least samples that fill the device.
    """

    def __init__(
        self,
        kernel: Kernel,
        shared_bytes: int = SHARED_BYTES,
        edit: Callable[[str], str] = str,
        compiler: Compiler = NEWEST,
    ) -> None:
        launched = launches(kernel.n, kernel.launch, kernel.reals, shared_bytes)
        super().__init__(edit(library.expanded(kernel.sources["cuda"])), launched, compiler)
        self.blocks = 3
        self.multiprocessors = 1

    def resident_blocks(self, function: str) -> int:
        return self.blocks


class CpuExactProgram(OnTheCpu):
    """Stands in for `exact_cuda.ExactProgram`."""

    def __init__(
        self,
        source: ExactSource,
        dtype: str,
        shared_bytes: int = SHARED_BYTES,
        compiler: Compiler = NEWEST,
    ) -> None:
        self.source = source
        launched = exact_launches(source, getattr(torch, dtype).itemsize, shared_bytes)
        super().__init__(for_element(source.texts["cuda"], dtype), launched, compiler)


def with_defines(text: str, launches: Launches | ExactLaunches) -> str:
    return "".join(f"#define {name} {value}\n" for name, value in launches.defines) + text


# ------------------------------------------------------------------------- kernels and the reference


def irregular(n: int) -> Network:
    """Return a merge exchange network with random crossings of wires and comparators in both directions."""
    layers = family_network("merge_exchange", n).layers()
    draw, names, crossed = random.Random(1), list(range(n)), []
    # From the end: to exchange two wires in front of their comparator changes no result.
    for layer in reversed([layer.tolist() for layer in layers]):
        crossed.append([(names[lo], names[hi]) for lo, hi in layer])
        for lo, hi in layer:
            if draw.random() < 0.5:
                names[lo], names[hi] = names[hi], names[lo]
    return Network.from_layers(n, crossed[::-1])


def targets(routing, n, batch, dtype, draw, order=None):
    """Return targets as a loss takes them: ranks in a random order, or `order`, and what is made of these.

    Some items do not count, and of the second sample none; other samples have items of equal rank.
    """
    order = torch.rand(batch, n, generator=draw).argsort(-1) if order is None else order
    counts = torch.rand(batch, n, generator=draw) < 0.8
    counts[:1], counts[1:2] = True, False
    form = ROUTINGS[routing].payload
    if form is Payload.TARGET:
        return torch.where(counts, order, IGNORED)
    weights = torch.where(counts, torch.rand(batch, n, generator=draw) + 0.5, 0)[:, None] / n
    if form is Payload.INTERVALS:
        rows = torch.stack([order // 3 * 3, (order // 3 * 3 + 2).clamp_max(n - 1)], 1)
        rows[-1:] = order[-1:, None]  # one rank for each
    else:
        rows = (order[:, None] == torch.arange(n)[:, None]).to(dtype)
        rows[1:] = torch.rand(batch - 1, n, n, generator=draw)
    return torch.cat([rows, weights], 1).to(dtype)


class Device:
    """A kernel on a device, compared with the plain torch reference.

    Attributes:
        steepness: of the inputs.
    """

    steepness = 3.0

    def __init__(self, monkeypatch, request: Request, **options):
        self.kernel = register_kernel(compile_network(request).package.files)
        self.program = CpuProgram(self.kernel, **options)
        self.dtype = getattr(torch, request.dtypes[0])
        self.outputs = list(self.kernel.outputs.wires if self.kernel.outputs else range(self.kernel.n))
        monkeypatch.setattr(cuda, "program_of", lambda kernel, device: self.program)

    def inputs(self, routing, columns, batch=BATCH):
        n, draw = self.kernel.n, torch.Generator().manual_seed(2)
        x = torch.randn(batch, n, dtype=self.dtype, generator=draw)
        steepness = torch.tensor(self.steepness, dtype=self.dtype).expand(batch)
        if routing == "rows":
            return x, steepness, torch.arange(n)[self.outputs].flip(0)[:columns].expand(batch, -1)
        if is_loss(routing):
            return x, steepness, targets(routing, n, batch, self.dtype, draw)
        payload = torch.randn(batch, n, columns, dtype=self.dtype, generator=draw) if columns else None
        return x, steepness, payload

    def check(self, routing, columns, batch=BATCH):
        """Compare values, the routed output and all gradients with the reference."""
        inputs = self.inputs(routing, columns, batch)
        is_leaf = (True, True, has_gradient(routing))
        leaves = [t.clone().requires_grad_() if is_leaf[k] else t for k, t in enumerate(inputs)]
        expected = reference.relax(self.kernel, *leaves, routing)
        actual = cuda.relax(Call.of(*inputs, routing, self.kernel.spec))
        kinds = (0,) if routing == "none" else (0, 1)
        grads = [torch.randn_like(t) for t in expected]
        if self.kernel.outputs is not None:  # the other wires have no result and no gradient
            others = [wire for wire in range(self.kernel.n) if wire not in self.outputs]
            unwanted = [(0, (slice(None), others))] + [(1, (slice(None), others))] * (routing == "route")
            for k, place in unwanted:
                for tensor in (grads[k], expected[k].data, actual[k]):
                    tensor[place] = 0
        total = self.nothing(leaves) + sum((expected[k] * grads[k]).sum() for k in kinds)
        places = [k for k, t in enumerate(leaves) if t is not None and t.requires_grad]
        actual_grads = cuda.relax_backward(
            Call.of(*inputs, routing, self.kernel.spec), grads[0], grads[1] if 1 in kinds else None
        )
        for k in kinds:
            self.close(actual[k], expected[k].detach())
        expected_grads = torch.autograd.grad(total, [leaves[k] for k in places])
        for k, grad in zip(places, expected_grads, strict=True):
            self.close(actual_grads[k], grad)
        if is_loss(routing):
            losses, *actual_grads_of_losses = cuda.loss(Call.of(*inputs, routing, self.kernel.spec))
            expected = reference.relax(self.kernel, *leaves, routing)[1]
            self.close(losses, expected.detach())
            grads = torch.autograd.grad(expected.sum() + self.nothing(leaves), [leaves[k] for k in places])
            for k, grad in zip(places, grads, strict=True):
                self.close(actual_grads_of_losses[k], grad)
            assert has_gradient(routing) or actual_grads_of_losses[2] is None

    @staticmethod
    def nothing(leaves):
        """Return 0, a function of x and steepness: a loss of a network of one wire depends on neither."""
        return 0 * leaves[0].sum() + 0 * leaves[1].sum()

    def close(self, actual, expected):
        scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
        torch.testing.assert_close(actual / scale, expected / scale, **TOLERANCE[expected.dtype])
