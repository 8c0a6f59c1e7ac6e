"""Runs PTX on the CPU: reads the text that NVRTC makes of kernels, and has the machine of ptx/ run it.

Source: NVIDIA, Parallel Thread Execution ISA, version 9. Only what NVRTC writes for nsc's kernels is read;
everything else ends with its text.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from filelock import FileLock
from torch import Tensor

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

# As machine.h has them.
ORDERS = {"ascending": 0, "descending": 1, "shuffled": 2}
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

BITS = {
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    "f32": 32,
    "f64": 64,
    "pred": 1,
}


class LaunchError(Exception):
    """A kernel did something that CUDA forbids."""


class UnknownPtxError(Exception):
    """A text that has what nobody taught the reader or the machine."""


def folder() -> Path:
    """Return the folder of what all workers of a run build once, beside the build cache."""
    found = Path(os.environ["NSC_CACHE_DIR"]).with_name("executed")
    found.mkdir(parents=True, exist_ok=True)
    return found


@functools.cache
def _machine() -> ctypes.CDLL:
    texts = [path.read_bytes() for path in sorted(MACHINE.iterdir())]
    library = folder() / f"machine-{hashlib.sha256(b''.join(texts)).hexdigest()[:24]}.so"
    with FileLock(library.with_suffix(".lock")):
        if not library.exists():
            part = library.with_suffix(".part")
            subprocess.run([*COMMAND, MACHINE / "machine.cpp", "-o", part], check=True, timeout=300)
            part.rename(library)
    built = ctypes.CDLL(str(library))
    built.ptx_launch.restype = ctypes.c_char_p
    return built


# ------------------------------------------------------------------------------------------- texts


@dataclass
class _Kernel:
    """What a text says of a kernel.

    Attributes:
        parameters: names to types.
        registers: prefixes, such as %rd, to how many there are; 0: a single register of that name.
        local: names of arrays of a thread to their bytes.
        statements: instructions: the line in the text, the predicate on which it runs, such as %p1 or !%p1,
            the opcode with its modifiers and types, and the operands.
        labels: names to the places of the instructions behind them.
    """

    parameters: dict[str, str] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)
    local: dict[str, int] = field(default_factory=dict)
    statements: list[tuple[int, str, str, str]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


_TABLE = re.compile(
    r"(?:\.visible )?\.(?:global|const) \.align (?P<align>\d+) \.(?P<type>\w+) (?P<name>[\w$]+)"
    r"(?:\[(?P<count>\d+)\])?(?: = (?P<values>.*))?;"
)
_ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
_PARAMETER = re.compile(r"\.param \.(\w+) (\w+)[,)]?")
_REGISTERS = re.compile(r"\.reg \.\w+\s+(%\w+)(?:<(\d+)>)?;")
_LOCAL = re.compile(r"\.local \.align \d+ \.b8\s+(\w+)\[(\d+)\];")
_STATEMENT = re.compile(r"(?:@(!?%\w+)\s+)?([a-z][\w.:]*)\s*(.*);")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_ADDRESS = re.compile(r"\[([%\w$]+)(?:\+(-?\d+))?\]")
# What is said to other tools, and what every text has.
_IGNORED = re.compile(
    r"\.(?:version|target|address_size|maxntid|minnctapersm|pragma|loc|file|section)\b"
    r"|\.extern \.shared \.align 16 \.b8 shared_memory\[\];"
)


@functools.lru_cache(maxsize=4)
def _read(text: str) -> tuple[dict[str, tuple[bytes, int]], dict[str, _Kernel]]:
    """Return a text's tables, names to their bytes and alignment, and its kernels."""
    lines = ((number, line.split("//")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
    lines = ((number, line) for number, line in lines if line and not _IGNORED.match(line))
    tables, kernels = {}, {}
    for number, line in lines:
        if match := _TABLE.fullmatch(line):
            tables[match["name"]] = (_bytes_of(match), int(match["align"]))
        elif match := _ENTRY.match(line):
            kernels[match[1]] = _read_kernel(match[1], line[match.end() :], lines)
        else:
            raise UnknownPtxError(f"line {number}: {line}")
    return tables, kernels


def _bytes_of(table: re.Match[str]) -> bytes:
    width, count = BITS[table["type"]] // 8, int(table["count"] or 1)
    texts = (table["values"] or "").strip("{} ").split(", ")
    values = [_number(text) & (1 << 8 * width) - 1 for text in texts if text]
    return b"".join(value.to_bytes(width, "little") for value in values).ljust(width * count, b"\0")


def _number(text: str) -> int:
    """Return the bits of a literal: an integer, or a number by its bits."""
    if text[:2].lower() in ("0f", "0d"):
        return int(text[2:], 16)
    return int(text.removesuffix("U"), 0)


def _read_kernel(name: str, rest: str, lines: Iterator[tuple[int, str]]) -> _Kernel:
    """Read a kernel behind the first parenthesis."""
    kernel = _Kernel()
    while rest not in (")", "{"):
        match = _PARAMETER.fullmatch(rest) if rest else None
        if match:
            kernel.parameters[match[2]] = match[1]
        elif rest:
            raise UnknownPtxError(f"a parameter of {name}: {rest}")
        rest = next(lines)[1]
    for number, line in lines:
        if line == "}":
            return kernel
        if line in ("{", ")"):
            continue
        if line.endswith(":"):
            kernel.labels[line[:-1]] = len(kernel.statements)
        elif match := _REGISTERS.fullmatch(line):
            kernel.registers[match[1]] = int(match[2] or 0)
        elif match := _LOCAL.fullmatch(line):
            kernel.local[match[1]] = int(match[2])
        elif match := _STATEMENT.fullmatch(line):
            kernel.statements.append((number, match[1] or "", match[2], match[3]))
        else:
            raise UnknownPtxError(f"line {number}: {line}")
    raise UnknownPtxError(f"{name} has no end")


# ------------------------------------------------------------------------- texts to what is executed


class _Program(ctypes.Structure):
    _fields_ = (
        ("instructions", ctypes.c_void_p),
        ("constants", ctypes.c_void_p),
        ("instruction_count", ctypes.c_int64),
        ("register_count", ctypes.c_int64),
        ("local_bytes", ctypes.c_int64),
        ("cell_bytes", ctypes.c_int64),
    )


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("is_written", ctypes.c_int64))


Argument = Tensor | ctypes._SimpleCData | int | None
# All memory, for launches by addresses alone.
ANYWHERE = (_Range(0, (1 << 64) - 1, True),)


class _Encoded:
    """A kernel as the machine takes it.

    Attributes:
        program: what the machine takes.
        parameter_bytes: of each parameter.
    """

    def __init__(self, name: str, kernel: _Kernel, tables: dict[str, int]) -> None:
        """Encode a kernel; `tables` are the addresses of the text's tables."""
        self._name, self._kernel = name, kernel
        self._constants: dict[int, int] = {}
        self._registers = {name: place for place, name in enumerate(SPECIAL)}
        for prefix, count in kernel.registers.items():
            for register in [f"{prefix}{k}" for k in range(count)] if count else [prefix]:
                self._registers[register] = len(self._registers)
        self._registers["_"] = len(self._registers)
        self._symbols = {**tables, "shared_memory": 0, "WARP_SZ": 32}
        self._symbols |= {name: 8 * place for place, name in enumerate(kernel.parameters)}
        local_bytes = 0
        for array, size in kernel.local.items():
            self._symbols[array] = local_bytes
            local_bytes += -(-size // 16) * 16
        self._narrowest_store = 8
        self._instructions = np.zeros(len(kernel.statements), INSTRUCTION)
        for place, statement in enumerate(kernel.statements):
            self._instructions[place] = self._instruction(*statement)
        self.parameter_bytes = [BITS[type_] // 8 for type_ in kernel.parameters.values()]
        self._words = np.array(list(self._constants), np.uint64)
        self.program = _Program(
            self._instructions.ctypes.data,
            self._words.ctypes.data,
            len(self._instructions),
            len(self._registers),
            local_bytes,
            self._narrowest_store,
        )

    def _instruction(self, line: int, guard: str, opcode: str, text: str) -> tuple:
        parts = _OPERAND.findall(text)
        known, space, count, is_constant = self._split(opcode, parts)
        operands, immediate = [], 0
        for part in map(str.strip, parts):
            if part in self._kernel.labels:
                immediate = self._kernel.labels[part]
            elif match := _ADDRESS.fullmatch(part):
                operands.append(self._operand(match[1]))
                immediate = int(match[2] or 0)
            else:
                operands += [self._operand(each.strip()) for each in re.split("[,|]", part.strip("{}"))]
        number = -1 if known is None else _machine().ptx_opcode(known.encode())
        if number < 0 or len(operands) > MOST_OPERANDS:
            raise UnknownPtxError(f"{opcode} (line {line} of {self._name})")
        operands += [0] * (MOST_OPERANDS - len(operands))
        place = self._registers[guard.removeprefix("!")] if guard else -1
        negated = guard.startswith("!")
        return (number, line, place, negated, operands, immediate, space, count, is_constant, 0)

    def _split(self, opcode: str, operands: list[str]) -> tuple[str | None, int, int, bool]:
        """Return the opcode that the machine knows, if it may know it, and what it takes beside."""
        name, *modifiers = opcode.split(".")
        if name in ("ld", "st", "atom"):
            *modifiers, type_ = modifiers
            space = next((each for each in modifiers if each in SPACES), "")
            vector = next((each for each in modifiers if each in ("v2", "v4", "v8")), "v1")
            rest = [each for each in modifiers if each not in (space, vector, "nc")]
            if name != "ld" and space != "local":
                self._narrowest_store = min(self._narrowest_store, BITS[type_] // 8)
            if name == "atom":
                return ".".join([name, *rest, type_]), SPACES[space], 1, False
            is_constant = "nc" in modifiers
            if rest or (is_constant and (name, space) != ("ld", "global")):
                return None, 0, 0, False
            return f"{name}.{type_}", SPACES[space], int(vector[1:]), is_constant
        vectors = [each for each in operands if each.startswith("{")]
        if name == "mov" and vectors:
            whole, parts = BITS[modifiers[0]], vectors[0].count(",") + 1
            verb = "unpack" if operands[0].startswith("{") else "pack"
            return f"{verb}.b{whole}.b{whole // parts}", 0, 0, False
        if name == "shfl" and "|" not in operands[0]:
            return None, 0, 0, False
        return opcode, 0, 0, False

    def _operand(self, text: str) -> int:
        if text in self._registers:
            return self._registers[text]
        try:
            value = self._symbols[text] if text in self._symbols else _number(text)
        except ValueError:
            raise UnknownPtxError(f"operand {text} in {self._name}") from None
        return ~self._constants.setdefault(value & (1 << 64) - 1, len(self._constants))


class Kernels:
    """The kernels of a PTX text."""

    def __init__(self, ptx: str) -> None:
        tables, self._kernels = _read(ptx)
        # Tables lie where their addresses say; the machine only reads them.
        self._tables = {name: _aligned(*table) for name, table in tables.items()}
        self._encoded: dict[str, _Encoded] = {}

    def __contains__(self, kernel: str) -> bool:
        return kernel in self._kernels

    def launch(
        self,
        kernel: str,
        blocks: int,
        threads: int,
        arguments: Sequence[Argument],
        shared_bytes: int = 0,
        order: str = "ascending",
        memory: Sequence[_Range] | None = None,
    ) -> None:
        """Run a kernel; tensors are passed as their addresses.

        Args:
            kernel: its name.
            blocks, threads: of the grid, of a block.
            arguments: the kernel's.
            shared_bytes: of a block.
            order: that of the threads between barriers, a key of ORDERS.
            memory: what may be read and written; None: the storage of tensors.

        Raises:
            LaunchError: the kernel did something that CUDA forbids: two accesses of one place that no barrier
                orders, a read of shared memory that nobody wrote, an access outside of the arguments or one
                that is misaligned, threads that wait for each other in vain.
        """
        if memory is None:
            storages = [a.untyped_storage() for a in arguments if isinstance(a, Tensor)]
            sizes = {each.data_ptr(): each.nbytes() for each in storages if each.nbytes()}
            memory = [_Range(start, size, True) for start, size in sizes.items()]
        ranges = [_Range(table.ctypes.data, table.nbytes, False) for table in self._tables.values()]
        ranges += memory
        encoded = self.encoded(kernel)
        words = [_word(a, size) for a, size in zip(arguments, encoded.parameter_bytes, strict=True)]
        message = _machine().ptx_launch(
            ctypes.byref(encoded.program),
            blocks,
            threads,
            ctypes.c_int64(shared_bytes),
            (ctypes.c_uint64 * len(words))(*words),
            (_Range * len(ranges))(*ranges),
            ctypes.c_int64(len(ranges)),
            ORDERS[order],
        )
        if message is not None:
            raise LaunchError(message.decode())

    def encoded(self, kernel: str) -> _Encoded:
        """Return a kernel as the machine takes it."""
        if kernel not in self._encoded:
            addresses = {name: table.ctypes.data for name, table in self._tables.items()}
            self._encoded[kernel] = _Encoded(kernel, self._kernels[kernel], addresses)
        return self._encoded[kernel]


def _aligned(content: bytes, alignment: int) -> np.ndarray:
    buffer = np.empty(len(content) + alignment, np.uint8)
    start = -buffer.ctypes.data % alignment
    table = buffer[start : start + len(content)]
    table[:] = np.frombuffer(content, np.uint8)
    return table


def _word(argument: Argument, size: int) -> int:
    """Return the low bytes of an argument, as a launch copies them."""
    if argument is None or isinstance(argument, int):
        return argument or 0
    if isinstance(argument, Tensor):
        return argument.data_ptr()
    return int.from_bytes(bytes(argument)[:size], "little")
