"""Runs the PTX that NVRTC makes of CUDA sources, on the CPU, by the machine of ptx/."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ptx_text
from emulated import ORDERS, Dim3, EmulationError
from filelock import FileLock
from nvrtc_library import NvrtcLibrary
from ptx_text import BITS, Address, Kernel, Module, Statement, UnknownPtxError
from torch import Tensor

import nsc.library
from nsc.runtime.build import nvrtc

MACHINE = Path(__file__).with_name("ptx")
# PTX says what is fused.
COMMAND = (
    "g++",
    "-std=c++17",
    "-O2",
    "-march=native",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fPIC",
    "-shared",
)
ROOT = Path(__file__).parents[2]

# As machine.h has them.
SPACES = {"": 0, "global": 1, "shared": 2, "local": 3, "param": 4}
SPECIAL = ("%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid")
MOST_OPERANDS = 8
INSTRUCTION = np.dtype(
    [
        ("opcode", np.int32),
        ("line", np.int32),
        ("guard", np.int32),
        ("negated", np.int32),
        ("operands", np.int32, MOST_OPERANDS),
        ("immediate", np.int64),
        ("space", np.int8),
        ("count", np.int8),
        ("is_constant", np.int8),
        ("padding", np.int8, 5),
    ]
)


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("is_written", ctypes.c_int64))


class _Program(ctypes.Structure):
    _fields_ = (
        ("instructions", ctypes.c_void_p),
        ("constants", ctypes.c_void_p),
        ("instruction_count", ctypes.c_int64),
        ("register_count", ctypes.c_int64),
        ("local_bytes", ctypes.c_int64),
        ("cell_bytes", ctypes.c_int64),
    )


def _folder() -> Path:
    folder = Path(os.environ["NSC_CACHE_DIR"]).with_name("executed")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@functools.cache
def machine() -> ctypes.CDLL:
    """Return the library of the machine, which all workers of a run build once."""
    texts = [path.read_bytes() for path in sorted(MACHINE.iterdir())]
    library = _folder() / f"machine-{hashlib.sha256(b''.join(texts)).hexdigest()[:24]}.so"
    with FileLock(library.with_suffix(".lock")):
        if not library.exists():
            part = library.with_suffix(".part")
            subprocess.run([*COMMAND, MACHINE / "machine.cpp", "-o", part], check=True, timeout=300)
            part.rename(library)
    built = ctypes.CDLL(str(library))
    built.ptx_launch.restype = ctypes.c_char_p
    return built


@dataclass(frozen=True)
class Compiler:
    """Makes PTX of CUDA C++, with the options of the kernels that are shipped.

    Attributes:
        folder: where NVRTC's libraries are; empty: where CuPy finds them.
        architecture: such as compute_90.
    """

    folder: str
    architecture: str

    @property
    def library(self) -> NvrtcLibrary:
        return _library(self.folder)

    def ptx(self, text: str) -> str:
        """Return the PTX of a text with all that it includes; all workers of a run compile it once."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        path = _folder() / f"{digest}-{self.library.version}-{self.architecture}.ptx"
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                options = (f"--gpu-architecture={self.architecture}", *nvrtc._OPTIONS, "-default-device")
                path.write_text(self.library.ptx(text, options), encoding="utf-8")
        return path.read_text(encoding="utf-8")


NEWEST = Compiler("", "compute_90")
# One of version 12, for the first architecture that it knows.
OLDEST = Compiler(f"{ROOT}/.venv/nvrtc-12.4/nvidia/cuda_nvrtc/lib", "compute_70")


@functools.cache
def _library(folder: str) -> NvrtcLibrary:
    if not folder:
        found = importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc")
        return NvrtcLibrary(Path(found.abs_path).parent)
    return NvrtcLibrary(Path(folder))


@dataclass(frozen=True)
class Encoded:
    """A kernel as the machine takes it.

    Attributes:
        instructions: of type INSTRUCTION.
        constants: what instructions have for operands, beside registers.
        parameters: the bytes of each.
        registers: how many.
        local_bytes: of a thread.
        cell_bytes: the narrowest store.
    """

    instructions: np.ndarray
    constants: np.ndarray
    parameters: tuple[int, ...]
    registers: int
    local_bytes: int
    cell_bytes: int

    @property
    def program(self) -> _Program:
        return _Program(
            self.instructions.ctypes.data,
            self.constants.ctypes.data,
            len(self.instructions),
            self.registers,
            self.local_bytes,
            self.cell_bytes,
        )


class _Encoder:
    """Numbers what a kernel names."""

    def __init__(self, kernel: Kernel, tables: dict[str, int]) -> None:
        self._kernel = kernel
        self._constants: dict[int, int] = {}
        self._names = {name: place for place, name in enumerate(SPECIAL)}
        for prefix, count in kernel.registers.items():
            for name in [f"{prefix}{k}" for k in range(count)] if count else [prefix]:
                self._names[name] = len(self._names)
        self._names["_"] = len(self._names)
        self._symbols = {**tables, "shared_memory": 0, "WARP_SZ": 32}
        self._symbols |= {name: 8 * place for place, name in enumerate(kernel.parameters)}
        self._local_bytes = 0
        for name, size in kernel.local.items():
            self._symbols[name] = self._local_bytes
            self._local_bytes += -(-size // 16) * 16
        self._narrowest = 8

    def encoded(self) -> Encoded:
        instructions = np.zeros(len(self._kernel.statements), INSTRUCTION)
        for place, statement in enumerate(self._kernel.statements):
            instructions[place] = self._instruction(statement)
        return Encoded(
            instructions,
            np.array(list(self._constants), np.uint64),
            tuple(BITS[type_] // 8 for type_ in self._kernel.parameters.values()),
            len(self._names),
            self._local_bytes,
            self._narrowest,
        )

    def _instruction(self, statement: Statement) -> tuple:
        guard, negated = statement.guard.removeprefix("!"), statement.guard.startswith("!")
        opcode, space, count, is_constant = self._split(statement)
        operands, immediate = [], 0
        for operand in statement.operands:
            if isinstance(operand, Address):
                operands.append(self._operand(operand.base))
                immediate = operand.offset
            elif isinstance(operand, tuple):
                operands += map(self._operand, operand)
            elif operand in self._kernel.labels:
                immediate = self._kernel.labels[operand]
            else:
                operands.append(self._operand(operand))
        number = machine().ptx_opcode(opcode.encode())
        if number < 0 or len(operands) > MOST_OPERANDS:
            raise UnknownPtxError(f"{statement.opcode} (line {statement.line} of {self._kernel.name})")
        operands += [0] * (MOST_OPERANDS - len(operands))
        place = self._names[guard] if guard else -1
        return (number, statement.line, place, negated, operands, immediate, space, count, is_constant, 0)

    def _split(self, statement: Statement) -> tuple[str, int, int, bool]:
        """Return the opcode that the machine knows, and what it takes apart from its name."""
        name, *modifiers = statement.opcode.split(".")
        if name in ("ld", "st", "atom"):
            *modifiers, type_ = modifiers
            space = next((each for each in modifiers if each in SPACES), "")
            vector = next((each for each in modifiers if each in ("v2", "v4", "v8")), "v1")
            rest = [each for each in modifiers if each not in (space, vector, "nc")]
            if name != "ld" and space != "local":
                self._narrowest = min(self._narrowest, BITS[type_] // 8)
            if name == "atom":
                return ".".join([name, *rest, type_]), SPACES[space], 1, False
            if rest or ("nc" in modifiers and (name, space) != ("ld", "global")):
                raise UnknownPtxError(f"{statement.opcode} (line {statement.line} of {self._kernel.name})")
            return f"{name}.{type_}", SPACES[space], int(vector[1:]), "nc" in modifiers
        if name == "mov" and any(isinstance(each, tuple) for each in statement.operands):
            parts = next(each for each in statement.operands if isinstance(each, tuple))
            whole = BITS[modifiers[0]]
            verb = "unpack" if isinstance(statement.operands[0], tuple) else "pack"
            return f"{verb}.b{whole}.b{whole // len(parts)}", 0, 0, False
        if name == "shfl" and not isinstance(statement.operands[0], tuple):
            raise UnknownPtxError(f"{statement.opcode} without a predicate (line {statement.line})")
        return statement.opcode, 0, 0, False

    def _operand(self, text: str) -> int:
        if text in self._names:
            return self._names[text]
        if text in self._symbols:
            return self._constant(self._symbols[text])
        try:
            return self._constant(ptx_text.number(text))
        except ValueError:
            raise UnknownPtxError(f"operand {text} in {self._kernel.name}") from None

    def _constant(self, value: int) -> int:
        return ~self._constants.setdefault(value & (1 << 64) - 1, len(self._constants))


class Executed:
    """The kernels of a CUDA source; see `emulated.Emulated`, which has the same methods.

    It differs: a launch may read and write the storage of its tensors alone; accesses of two threads
    that no barrier orders are a race and end it, and so does a read of shared memory that nobody wrote.

    Attributes:
        executed: by kernel, the instructions that the threads of its last launch came to.
    """

    compiler = NEWEST

    def __init__(
        self, text: str, folder: Path, options: tuple[str, ...] = (), ptx: str | None = None
    ) -> None:
        if ptx is None:
            ptx = self.compiler.ptx(nsc.library.expanded(text))
        module = _module(ptx)
        # Tables lie where their addresses say; the machine only reads them.
        self._tables = {name: _aligned(*table) for name, table in module.tables.items()}
        self.executed: dict[str, int] = {}
        self._module = module
        self._known: dict[str, Encoded] = {}

    def launch(
        self,
        kernel: str,
        grid: Dim3,
        block: Dim3,
        arguments: Sequence[Tensor | ctypes._SimpleCData | None],
        shared_bytes: int = 0,
        order: str = "ascending",
        seed: int = 0,
    ) -> None:
        """Run a kernel; tensors are passed as their addresses.

        Raises:
            EmulationError: the kernel did something that CUDA forbids.
        """
        assert grid[1:] == block[1:] == (1, 1)
        encoded = self._encoded(kernel)
        ranges = [_Range(table.ctypes.data, table.nbytes, False) for table in self._tables.values()]
        for storage in {
            a.untyped_storage().data_ptr(): a.untyped_storage() for a in arguments if _is_memory(a)
        }.values():
            ranges.append(_Range(storage.data_ptr(), storage.nbytes(), True))
        words = [_word(a, size) for a, size in zip(arguments, encoded.parameters, strict=True)]
        executed = ctypes.c_uint64()
        message = machine().ptx_launch(
            ctypes.byref(encoded.program),
            grid[0],
            block[0],
            ctypes.c_int64(shared_bytes),
            (ctypes.c_uint64 * len(words))(*words),
            (_Range * len(ranges))(*ranges),
            ctypes.c_int64(len(ranges)),
            ORDERS[order],
            ctypes.c_uint64(seed),
            ctypes.byref(executed),
        )
        if message is not None:
            raise EmulationError(message.decode())
        self.executed[kernel] = executed.value

    def _encoded(self, kernel: str) -> Encoded:
        if kernel not in self._known:
            addresses = {name: table.ctypes.data for name, table in self._tables.items()}
            self._known[kernel] = _Encoder(self._module.kernels[kernel], addresses).encoded()
        return self._known[kernel]


class ExecutedByOldest(Executed):
    """The same by an NVRTC of version 12."""

    compiler = OLDEST


@functools.lru_cache(maxsize=4)
def _module(ptx: str) -> Module:
    return ptx_text.read(ptx)


def _aligned(content: bytes, alignment: int) -> np.ndarray:
    buffer = np.empty(len(content) + alignment, np.uint8)
    start = -buffer.ctypes.data % alignment
    table = buffer[start : start + len(content)]
    table[:] = np.frombuffer(content, np.uint8)
    return table


def _is_memory(argument: object) -> bool:
    return isinstance(argument, Tensor) and argument.untyped_storage().nbytes() > 0


def _word(argument: Tensor | ctypes._SimpleCData | None, size: int) -> int:
    """Return the low bytes of an argument, as a launch copies them."""
    if argument is None:
        return 0
    if isinstance(argument, Tensor):
        return argument.data_ptr()
    return int.from_bytes(bytes(argument)[:size], "little")
