"""NVRTC: from CUDA source to a binary for one architecture, through CuPy; needs no driver and no GPU."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsc import library
from nsc.errors import BuildError, ToolchainError

# Advice for a machine where CuPy or NVRTC is missing or does not fit.
INSTALL = (
    "pip install cupy-cuda13x cuda-pathfinder 'nvidia-cuda-nvrtc>=13,<14'; for a driver of CUDA 12 "
    "cupy-cuda12x cuda-pathfinder 'nvidia-cuda-nvrtc-cu12>=12.4,<13'"
)
# No fast-math. Constants that only some networks use are no reason for a warning.
_OPTIONS = ("--std=c++17", "--diag-suppress=177")
# Options that nvcc implies or has no use for. Without the first, NVRTC before 13.2 refuses generic lambdas.
_OPTIONS_OF_NVRTC = ("-default-device", "--ptxas-options=-v")


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
        return (*self._shared_options, *_OPTIONS_OF_NVRTC)

    @property
    def _shared_options(self) -> tuple[str, ...]:
        """The options that nvcc has too."""
        defines = tuple(f"-D{name}={value}" for name, value in self.defines)
        return (f"--gpu-architecture={self.architecture}", *_OPTIONS, *defines)

    @property
    def identity(self) -> tuple[str, ...]:
        """All that a binary depends on, except its source."""
        return ("nvrtc", self.version, *self.options)

    def command_for(self, source: Path, binary: Path) -> tuple[str, ...]:
        """Return the build command that does the same with nvcc."""
        return ("nvcc", "-cubin", *self._shared_options, str(source), "-o", str(binary))

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
        # NVRTC 12 leaves its thread in the locale C, in which Python takes texts for ASCII.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._compiled, text, name).result()

    def _compiled(self, text: str, name: str) -> tuple[bytes, str]:
        nvrtc = _nvrtc()
        program = nvrtc.createProgram(library.expanded(text), name, (), ())
        try:
            nvrtc.compileProgram(program, self.options)
            # CuPy takes the binary for text and its last byte, which is 0, for the text's end.
            return nvrtc.getCUBIN(program) + b"\0", nvrtc.getProgramLog(program)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise BuildError(
                f"NVRTC {self.version} failed for {self.architecture}: {error}\n{log.strip()[-2000:]}",
                self.command_for(Path(name), Path(name).with_suffix(self.binary_suffix)),
                log,
            ) from None
        finally:
            nvrtc.destroyProgram(program)


def is_installed() -> bool:
    """Return whether there is CuPy, through which NVRTC is called; nothing is loaded."""
    return importlib.util.find_spec("cupy") is not None


def version() -> str:
    """Return the version of NVRTC.

    Raises:
        ToolchainError: no CuPy or no NVRTC.
    """
    return ".".join(map(str, _nvrtc().getVersion()))


def find_nvrtc(architecture: str) -> Nvrtc:
    """Return the compiler for an architecture, such as sm_90.

    Raises:
        ToolchainError: no CuPy or no NVRTC, or one that does not know the architecture.
    """
    known = [f"sm_{number}" for number in _nvrtc().getSupportedArchs()]
    if architecture not in known:
        raise ToolchainError(
            f"NVRTC {version()} knows no architecture {architecture!r}; known: {', '.join(known)}"
        )
    return Nvrtc(architecture, version())


def _nvrtc() -> Any:
    # CuPy before 14 finds the library only where the system's loader does, not in its package.
    with contextlib.suppress(ImportError, RuntimeError):
        importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc")
    try:
        nvrtc = importlib.import_module("cupy.cuda").nvrtc
        nvrtc.getVersion()
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise ToolchainError(
            f"no CUDA compiler: CuPy with NVRTC cannot be loaded ({error}): {INSTALL}"
        ) from None
    return nvrtc
