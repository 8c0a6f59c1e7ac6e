"""NVRTC: from CUDA source to a binary for one architecture, through CuPy; needs no driver and no GPU."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsc.errors import BuildError, ToolchainError
from nsc.runtime import cache
from nsc.runtime.kernel import Kernel, Launch

# Shared memory that a block may ask for, in KiB (CUDA C++ Programming Guide, table of technical
# specifications per compute capability).
SHARED_KIB = {
    "sm_75": 64,
    "sm_80": 163,
    "sm_86": 99,
    "sm_87": 163,
    "sm_88": 99,
    "sm_89": 99,
    "sm_90": 227,
    "sm_100": 227,
    "sm_103": 227,
    "sm_110": 227,
    "sm_120": 99,
    "sm_121": 99,
}
_REAL_BYTES = {"float32": 4, "float64": 8}
_WARP = 32
# No fast-math. Constants that only some networks use are no reason for a warning.
_OPTIONS = ("--std=c++17", "--diag-suppress=177", "--ptxas-options=-v")


@dataclass(frozen=True)
class Nvrtc:
    """The compiler for one architecture.

    Attributes:
        architecture: such as sm_90.
        version: of NVRTC.
        defines: what the source leaves to the build, names to values.
    """

    architecture: str
    version: str
    defines: tuple[tuple[str, str], ...] = ()
    source_suffix = ".cu"
    binary_suffix = ".cubin"

    @property
    def options(self) -> tuple[str, ...]:
        """The compiler's options."""
        defines = tuple(f"-D{name}={value}" for name, value in self.defines)
        return (f"--gpu-architecture={self.architecture}", *_OPTIONS, *defines)

    @property
    def identity(self) -> tuple[str, ...]:
        """All that a binary depends on, apart from its source."""
        return ("nvrtc", self.version, *self.options)

    def command_for(self, source: Path, binary: Path) -> tuple[str, ...]:
        """Return the build command that does the same with nvcc."""
        shared = (option for option in self.options if option != _OPTIONS[-1])
        return ("nvcc", "-cubin", *shared, str(source), "-o", str(binary))

    def compile(self, source: Path, binary: Path) -> None:
        """Compile a source to a cubin.

        Raises:
            BuildError: the compiler failed; the error carries its log.
        """
        cubin, _ = self.compiled(source.read_text(encoding="utf-8"), source.name)
        binary.write_bytes(cubin)

    def compiled(self, text: str, name: str = "kernel.cu") -> tuple[bytes, str]:
        """Return the cubin of a text and the compiler's log, which has each kernel's registers and spills.

        Raises:
            BuildError: the compiler failed; the error carries its log.
        """
        nvrtc = _nvrtc()
        program = nvrtc.createProgram(text, name, (), ())
        try:
            nvrtc.compileProgram(program, self.options)
            return nvrtc.getCUBIN(program), nvrtc.getProgramLog(program)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise BuildError(
                f"NVRTC {self.version} failed for {self.architecture}: {error}\n{log.strip()[-2000:]}",
                self.command_for(Path(name), Path(name).with_suffix(self.binary_suffix)),
                log,
            ) from None
        finally:
            nvrtc.destroyProgram(program)


def build(kernel: Kernel, architecture: str, shared_bytes: int | None = None) -> cache.Artifact:
    """Return a kernel's cubin for an architecture, compiled unless the cache has it.

    Args:
        kernel: one with the CUDA target.
        architecture: such as sm_90.
        shared_bytes: what a block of the device may ask for; None: what the architecture has.

    Raises:
        ToolchainError, BuildError: see `find_nvrtc`; or the compiler failed.
    """
    compiler = find_nvrtc(architecture, kernel.n, kernel.launch, shared_bytes)
    return cache.build(kernel.name, kernel.sources["cuda"], compiler, kernel.version)


def find_nvrtc(architecture: str, n: int, launch: Launch, shared_bytes: int | None = None) -> Nvrtc:
    """Return the compiler of a kernel on n wires for an architecture.

    Args:
        architecture: such as sm_90.
        n: number of wires.
        launch: what the kernel's launches depend on.
        shared_bytes: what a block of the device may ask for; None: what the architecture has.

    Raises:
        ToolchainError: no CuPy or no NVRTC, or one that does not know the architecture.
        BuildError: not even one column fits the shared memory.
    """
    nvrtc = _nvrtc()
    version = ".".join(map(str, nvrtc.getVersion()))
    known = [f"sm_{number}" for number in nvrtc.getSupportedArchs()]
    if architecture not in known or (shared_bytes is None and architecture not in SHARED_KIB):
        raise ToolchainError(
            f"NVRTC {version} knows no architecture {architecture!r}; known: {', '.join(known)}"
        )
    shared = SHARED_KIB[architecture] * 1024 if shared_bytes is None else shared_bytes
    columns = tile_columns(n, launch, shared)
    defines = tuple(
        (f"NSC_TILE_COLUMNS_F{8 * _REAL_BYTES[real]}", str(count)) for real, count in columns.items()
    )
    return Nvrtc(architecture, version, defines)


def tile_columns(n: int, launch: Launch, shared_bytes: int) -> dict[str, int]:
    """Return how many columns a tile has, by arithmetic type: as many as the shared memory of a block holds.

    Raises:
        BuildError: not even one column fits.
    """
    tiles = launch.routing_threads // launch.tile_threads
    columns = {}
    for real, size in _REAL_BYTES.items():
        fits = shared_bytes // (tiles * n * size)
        if fits < 1:
            raise BuildError(
                f"a column of {n} values of {real} does not fit the {shared_bytes:,} bytes of shared "
                "memory that a block of the device has: use a smaller network, or the cpu target"
            )
        columns[real] = min(_WARP, 1 << (fits.bit_length() - 1))
    return columns


def resources(log: str) -> dict[str, tuple[int, int]]:
    """Return what a compiler's log says of each kernel: registers of a thread and bytes of spills."""
    found: dict[str, tuple[int, int]] = {}
    kernel, spilled = "", 0
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            kernel, spilled = match[1], 0
        elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(match[1]) + int(match[2])
        elif match := re.search(r"Used (\d+) registers", line):
            found[kernel] = (int(match[1]), spilled)
    return found


def _nvrtc() -> Any:
    try:
        nvrtc = importlib.import_module("cupy.cuda").nvrtc
        nvrtc.getVersion()
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise ToolchainError(
            f"no CUDA compiler: CuPy with NVRTC cannot be loaded ({error}). pip install 'nsc[cuda]'"
        ) from None
    return nvrtc
