"""Text: lines of readable length, tables of initialisers, and comparators as straight-line code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence


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


def straight_lines(
    comparators: Sequence[tuple[int, int]], loads: Mapping[int, str], stores: Mapping[tuple[int, ...], str]
) -> tuple[str, ...]:
    """Return statements that run comparators, in lines of readable length.

    Wire w is the variable w<w> of the type Item, and Form::order a comparator. A wire is loaded just before
    its first comparator and stored just after its last one, so that few are held at a time. Half of a
    comparator that no store needs is left to the C++ compiler to remove.

    Args:
        comparators: (lo, hi), in order.
        loads: the expression that loads each wire.
        stores: each statement that stores wires, by the wires.
    """
    return filled(_statements(comparators, loads, stores), 110)


def _statements(
    comparators: Sequence[tuple[int, int]], loads: Mapping[int, str], stores: Mapping[tuple[int, ...], str]
) -> Iterator[str]:
    last = {wire: index for index, pair in enumerate(comparators) for wire in pair}
    ready: dict[int, list[tuple[int, ...]]] = {}
    for wires in stores:
        ready.setdefault(max(last.get(wire, -1) for wire in wires), []).append(wires)
    loaded: set[int] = set()

    def load(wires: Iterable[int]) -> Iterator[str]:
        fresh = [wire for wire in dict.fromkeys(wires) if wire not in loaded]
        loaded.update(fresh)
        if fresh:
            yield f"Item {', '.join(f'w{wire} = {loads[wire]}' for wire in fresh)};"

    for index, pair in enumerate([(), *comparators], start=-1):
        yield from load(pair)
        if pair:
            yield f"Form::order(w{pair[0]}, w{pair[1]});"
        for wires in ready.get(index, []):
            yield from load(wires)
            yield stores[wires]
