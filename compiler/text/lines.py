"""Lines: words in lines of readable length, and tables of initialisers as C, C++ and CUDA have them."""

from __future__ import annotations

from collections.abc import Iterable


def filled(words: Iterable[str], width: int) -> tuple[str, ...]:
    """Return words, which may have spaces inside, with a space between them, in lines of about a width."""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    return tuple(lines)


def wrapped(items: Iterable[int | str]) -> tuple[str, ...]:
    """Return the items of a table, comma-separated, in lines of readable length."""
    return filled((f"{item}," for item in items), 96)


def braced(fields: Iterable[int | str]) -> str:
    """Return the initialiser of an entry of a table."""
    return f"{{{', '.join(map(str, fields))}}}"


def words(bits: int, count: int) -> list[str]:
    """Return bits as `count` words of 64, the lowest first."""
    return [hex(bits >> shift & (1 << 64) - 1) for shift in range(0, 64 * count, 64)]
