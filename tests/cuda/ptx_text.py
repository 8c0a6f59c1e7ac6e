"""PTX: the text that NVRTC makes of a CUDA source, read into records.

Source: NVIDIA, Parallel Thread Execution ISA, version 9. Only what NVRTC writes for nsc's kernels is read;
everything else ends with its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

BITS = {
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    "f32": 32,
    "f64": 64,
    "pred": 1,
}


class UnknownPtxError(Exception):
    """A text that has what nobody taught the reader or the machine."""


@dataclass(frozen=True)
class Address:
    """An operand in brackets.

    Attributes:
        base: a register, a symbol or a parameter.
        offset: bytes behind it.
    """

    base: str
    offset: int


@dataclass(frozen=True)
class Statement:
    """An instruction.

    Attributes:
        line: in the text, from 1 on.
        guard: the predicate on which it runs, such as %p1 or !%p1; empty: always.
        opcode: with its modifiers and types.
        operands: in the text's order; vectors and pairs are tuples.
    """

    line: int
    guard: str
    opcode: str
    operands: tuple[str | Address | tuple[str, ...], ...]


@dataclass(frozen=True)
class Kernel:
    """A function that a host can launch.

    Attributes:
        name: its name.
        parameters: names to types.
        registers: prefixes, such as %rd, to how many there are; 0: a single register of that name.
        local: names of arrays of a thread to their bytes.
        statements: its instructions.
        labels: names to the places of the instructions behind them.
    """

    name: str
    parameters: dict[str, str]
    registers: dict[str, int]
    local: dict[str, int]
    statements: tuple[Statement, ...]
    labels: dict[str, int]


@dataclass(frozen=True)
class Module:
    """A text of PTX.

    Attributes:
        tables: names of global arrays to their bytes and alignment.
        kernels: by name.
    """

    tables: dict[str, tuple[bytes, int]]
    kernels: dict[str, Kernel]


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


def read(text: str) -> Module:
    """Return the records of a text.

    Raises:
        UnknownPtxError: a line that no rule reads.
    """
    lines = ((number, line.split("//")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
    lines = ((number, line) for number, line in lines if line and not _IGNORED.match(line))
    tables, kernels = {}, {}
    for number, line in lines:
        if match := _TABLE.fullmatch(line):
            tables[match["name"]] = (_bytes_of(match), int(match["align"]))
        elif match := _ENTRY.match(line):
            kernels[match[1]] = _kernel(match[1], line[match.end() :], lines)
        else:
            raise UnknownPtxError(f"line {number}: {line}")
    return Module(tables, kernels)


def _bytes_of(table: re.Match[str]) -> bytes:
    width, count = BITS[table["type"]] // 8, int(table["count"] or 1)
    texts = (table["values"] or "").strip("{} ").split(", ")
    values = [number(text) & (1 << 8 * width) - 1 for text in texts if text]
    return b"".join(value.to_bytes(width, "little") for value in values).ljust(width * count, b"\0")


def _kernel(name: str, rest: str, lines: Iterator[tuple[int, str]]) -> Kernel:
    """Read a kernel behind the first parenthesis."""
    parameters, registers, local, statements, labels = {}, {}, {}, [], {}
    while rest not in (")", "{"):
        match = _PARAMETER.fullmatch(rest) if rest else None
        if match:
            parameters[match[2]] = match[1]
        elif rest:
            raise UnknownPtxError(f"a parameter of {name}: {rest}")
        rest = next(lines)[1]
    for number, line in lines:
        if line == "}":
            return Kernel(name, parameters, registers, local, tuple(statements), labels)
        if line in ("{", ")"):
            continue
        if line.endswith(":"):
            labels[line[:-1]] = len(statements)
        elif match := _REGISTERS.fullmatch(line):
            registers[match[1]] = int(match[2] or 0)
        elif match := _LOCAL.fullmatch(line):
            local[match[1]] = int(match[2])
        elif match := _STATEMENT.fullmatch(line):
            operands = tuple(map(_operand, _OPERAND.findall(match[3])))
            statements.append(Statement(number, match[1] or "", match[2], operands))
        else:
            raise UnknownPtxError(f"line {number}: {line}")
    raise UnknownPtxError(f"{name} has no end")


def _operand(text: str) -> str | Address | tuple[str, ...]:
    text = text.strip()
    if text.startswith("["):
        if not (match := _ADDRESS.fullmatch(text)):
            raise UnknownPtxError(f"an address: {text}")
        return Address(match[1], int(match[2] or 0))
    if text.startswith("{"):
        return tuple(each.strip() for each in text[1:-1].split(","))
    return tuple(text.split("|")) if "|" in text else text


def number(text: str) -> int:
    """Return the bits of a literal: an integer, or a number by its bits."""
    if text[:2].lower() in ("0f", "0d"):
        return int(text[2:], 16)
    return int(text.removesuffix("U"), 0)
