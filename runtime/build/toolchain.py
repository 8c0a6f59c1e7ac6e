"""Toolchains: which C++ compiler this machine has, and what its flags mean here."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from nsc.errors import BuildError, ToolchainError
from nsc.runtime.build.system import System, machine, system

# No -ffast-math: it would flush denormals in the whole process once loaded, and NaN and the tails
# of the sigmoids would be lost. The flags may change errno and FP exception flags, but no result.
FLAGS = (
    "-std=c++17",
    # Registers and loops over lanes are written out in the source; -O3 builds twice as long for no gain.
    "-O2",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
)
# The first clang does at -O2 by itself. Without the second, the place of a hot loop in its cache line is
# chance, and worth up to a tenth of its time.
_GCC_FLAGS = ("-funswitch-loops", "-falign-functions=64")
# Passes that make no relaxed kernel faster and take an eighth of its build. Exact kernels need them.
_GCC_FLAGS_RELAXED = (
    "-fno-tree-vectorize",
    "-fno-gcse",
    "-fno-code-hoisting",
    "-fno-tree-vrp",
    "-fno-cse-follow-jumps",
    "-fno-rerun-cse-after-loop",
)
_ZIG = (sys.executable, "-m", "ziglang", "c++")
# Without -nostdlib ziglang first builds a run-time library of its own, which takes longer than any kernel.
_ZIG_FLAGS = ("-nostdlib", "-lc", "-fno-exceptions", "-fno-rtti", "-fno-sanitize=undefined")
# Words in commands of GCC and clang; the word behind says something of the processor.
_PROCESSOR = ("--param", "-triple", "-target-cpu", "-target-feature", "-tune-cpu")
_PROBE_SECONDS = 60
_COMPILE_SECONDS = 600


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler as this machine has it.

    Attributes:
        command: the compiler with its flags; input and output files come behind it.
        version: its version, in its own words.
        instruction_set: what -march=native stands for on this machine, as the compiler resolves it.
            A key over the flag's text would let a shared home serve another machine's binary.
        system: that libraries are for.
    """

    command: tuple[str, ...]
    version: str
    instruction_set: str
    system: System
    source_suffix = ".cpp"

    @property
    def binary_suffix(self) -> str:
        """The suffix of libraries."""
        return self.system.suffix

    @property
    def identity(self) -> tuple[str, ...]:
        """All that a library depends on, except its source."""
        place = (platform.machine(), self.system.version())
        return (shlex.join(self.command), self.version, self.instruction_set, *place)

    def command_for(self, source: Path, binary: Path) -> tuple[str, ...]:
        """Return the complete build command."""
        return (*self.command, str(source), "-o", str(binary), *self.system.link_flags(binary.name))

    def compile(self, source: Path, binary: Path) -> None:
        """Compile a source to a shared library.

        Raises:
            BuildError: the compiler failed; the error carries its command and log.
        """
        command = self.command_for(source, binary)
        _output(command, _COMPILE_SECONDS)
        if not binary.is_file():
            raise BuildError(f"the compiler failed: {shlex.join(command)} wrote no library", command)


def find_toolchain(relaxed: bool = False) -> Toolchain:
    """Return the first usable compiler of $NSC_CXX, $CXX, c++, g++, clang++ and ziglang.

    A compiler that the user names in $NSC_CXX is used or refused, never passed over. The flags are nsc's own,
    then those behind the compiler's name, then $NSC_CXXFLAGS, for any of the compilers: a later flag wins.
    All are part of a library's key in the cache.

    Args:
        relaxed: whether for relaxed kernels, which need fewer passes of GCC.

    Raises:
        ToolchainError: none was found, the message lists what was tried; or a variable cannot be read.
        BuildError: the compiler does not run with these flags.
    """
    names = ("NSC_CXX", "CXX", "PATH", "NSC_CXXFLAGS")
    return _find(relaxed, *(os.environ.get(name) for name in names))


@cache
def _find(
    relaxed: bool, nsc_cxx: str | None, cxx: str | None, path: str | None, cxxflags: str | None
) -> Toolchain:
    flags = _added_flags(cxxflags or "")
    programs = _programs(nsc_cxx, cxx)
    if nsc_cxx and _located(nsc_cxx) is None:
        raise ToolchainError(
            f"NSC_CXX is {nsc_cxx!r}, and no such program is on the PATH: correct or unset it"
        )
    program = next(filter(None, programs.values()), None)
    if program is None:
        raise ToolchainError(f"no C++ compiler found; tried {', '.join(programs)}. {system().install}")
    return _probe(program, flags, relaxed)


def cross_toolchain(target: str, cpu: str, system: System) -> Toolchain:
    """Return ziglang's compiler for processors of a system; on every machine it writes the same libraries.

    Args:
        target: the processors and the system, as ziglang names them.
        cpu: the least of these processors.
        system: the system.

    Raises:
        BuildError: no ziglang.
    """
    # Without -s a library holds paths of this machine, for debuggers.
    command = (*_ZIG, "-target", target, f"-mcpu={cpu}", "-s", *FLAGS, *_ZIG_FLAGS)
    return Toolchain(command, _output((*_ZIG, "--version")).strip(), cpu, system)


def _programs(nsc_cxx: str | None, cxx: str | None) -> dict[str, _Program | None]:
    stated = {f"$NSC_CXX ({nsc_cxx or 'unset'})": nsc_cxx, f"$CXX ({cxx or 'unset'})": cxx}
    names = {**stated, **{name: name for name in ("c++", "g++", "clang++")}}
    has_zig = importlib.util.find_spec("ziglang") is not None
    zig = (_ZIG, _ZIG_FLAGS) if has_zig else None
    return {**{name: _located(command or "") for name, command in names.items()}, "the ziglang package": zig}


def _added_flags(cxxflags: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(cxxflags))
    except ValueError as error:
        raise ToolchainError(
            f"NSC_CXXFLAGS is {cxxflags!r}, which is no list of flags ({error}): correct or unset it"
        ) from None


# A compiler's words, and the flags that stand behind them.
_Program = tuple[tuple[str, ...], tuple[str, ...]]


def _located(command: str) -> _Program | None:
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    path = shutil.which(words[0]) if words else None
    if path is None or (Path(path).parent == Path("/usr/bin") and not system().has_tools()):
        return None
    flags = next((k for k, word in enumerate(words) if word.startswith("-")), len(words))
    return (path, *words[1:flags]), tuple(words[flags:])


def _probe(compiler: _Program, added: tuple[str, ...], relaxed: bool) -> Toolchain:
    program, flags = compiler
    native = "-mcpu=native" if machine() == "aarch64" else "-march=native"
    version = _output((*program, "--version"))
    own = () if "clang" in version else (*_GCC_FLAGS, *(_GCC_FLAGS_RELAXED if relaxed else ()))
    command = (*program, *FLAGS, *own, native, *flags, *added)
    try:
        verbose = _verbose(command)
    except BuildError as error:
        if not added:
            raise
        hint = f"its last flags come from NSC_CXXFLAGS, {shlex.join(added)!r}: correct or unset it"
        raise BuildError(f"{error}\n{hint}", error.command, error.log) from None
    resolved = [_instructions(line) for line in verbose.splitlines() if "cc1" in line]
    return Toolchain(command, version.strip(), "\n".join(resolved), system())


def _instructions(line: str) -> str:
    """Return what a compiler's own command says of the processor.

    Other words name temporary files and the working folder, so that no two processes would share a key.
    """
    pairs = pairwise(line.replace('"', "").split())
    return " ".join(word for before, word in pairs if word.startswith("-m") or before in _PROCESSOR)


def _verbose(command: tuple[str, ...]) -> str:
    """Return what the compiler says of itself when it preprocesses nothing, with -v."""
    preprocess = ("-E", "-x", "c++", os.devnull, "-o", os.devnull)
    try:
        return _output((*command, "-v", *preprocess))
    except BuildError:
        _output((*command, *preprocess))  # without -v the compiler says what is wrong and no more
        raise


def _output(command: tuple[str, ...], seconds: int = _PROBE_SECONDS) -> str:
    """Return what a compiler prints; raises BuildError if it does not run, takes longer or fails."""
    line = shlex.join(command)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"the compiler took over {seconds} s: {line}", command) from None
    except OSError as error:
        raise BuildError(f"the compiler does not run: {line}: {error}", command) from None
    if done.returncode != 0:
        raise BuildError(
            f"the compiler failed with exit code {done.returncode}.\ncommand: {line}\n"
            f"{done.stderr.strip()[:2000]}",
            command,
            done.stderr,
        )
    return done.stdout + done.stderr
