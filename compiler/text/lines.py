"""Lines of tables: initialisers as C, C++ and CUDA have them."""

from __future__ import annotations

from collections.abc import Iterable


def wrapped(items: Iterable[int | str]) -> tuple[str, ...]:
    """Return the items of a table, comma-separated, in lines of readable length."""
    lines = [""]
    for item in map(str, items):
        if len(lines[-1]) + len(item) > 96:
            lines.append("")
        lines[-1] += f"{item}, "
    return tuple(line.rstrip() for line in lines)


def braced(fields: Iterable[int | str]) -> str:
    """Return the initialiser of an entry of a table."""
    return f"{{{', '.join(map(str, fields))}}}"


def words(bits: int, count: int) -> list[str]:
    """Return bits as `count` words of 64, the lowest first."""
    return [hex(bits >> shift & (1 << 64) - 1) for shift in range(0, 64 * count, 64)]
