"""Wording: how messages name counts and arguments, the same in every room.

A message gets the name of an argument from `argument`: `index_base=1` in a Python call, `--index-base 1` on
the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Maps an argument's name to its option on the command line; None in a Python call.
_option_of: ContextVar[Callable[[str], str] | None] = ContextVar("option_of", default=None)


@contextmanager
def in_options(option_of: Callable[[str], str]) -> Iterator[None]:
    """Name arguments as command-line options inside the context.

    Args:
        option_of: maps an argument's name to its option, such as index_base to --index-base.
    """
    token = _option_of.set(option_of)
    try:
        yield
    finally:
        _option_of.reset(token)


def argument(name: str, value: object = None) -> str:
    """Return an argument for a message: its name, or its name and value if a value is given.

    >>> argument("n"), argument("unproved", True), argument("targets", ("cpu", "cuda"))
    ('n', 'unproved=True', "targets=('cpu', 'cuda')")
    """
    option_of = _option_of.get()
    if option_of is None:
        return name if value is None else f"{name}={value!r}"
    if value is None or value is True:
        return option_of(name)
    text = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return f"{option_of(name)} {text}"


def spelled(call: str, command: str) -> str:
    """Return how a message names something that users may do: a Python call, or a command."""
    return call if _option_of.get() is None else command


def count(number: int, noun: str) -> str:
    """Return a number with its noun; the plural adds an s.

    >>> count(1, "wire"), count(1200, "half operation")
    ('1 wire', '1,200 half operations')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def an(noun: str) -> str:
    """Return a noun with its indefinite article, chosen by the first letter.

    >>> an("output wire"), an("rank")
    ('an output wire', 'a rank')
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
