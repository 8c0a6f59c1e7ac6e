"""Wording: how messages name counts and arguments, the same in every room.

A message names an argument by `argument`, which is Python's `index_base=1` for who calls Python and
`--index-base 1` for who uses the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# An argument's name to the option that stands for it; None where Python was called.
_option_of: ContextVar[Callable[[str], str] | None] = ContextVar("option_of", default=None)


@contextmanager
def in_options(option_of: Callable[[str], str]) -> Iterator[None]:
    """Name arguments as options of a command line while the context lasts.

    Args:
        option_of: an argument's name to its option, such as index_base to --index-base.
    """
    token = _option_of.set(option_of)
    try:
        yield
    finally:
        _option_of.reset(token)


def argument(name: str, value: object = None) -> str:
    """Return how a message names an argument of a Python call, and a value of it where one is given.

    >>> argument("n"), argument("unproved", True), argument("targets", ("cpu", "cuda"))
    ('n', 'unproved=True', "targets=('cpu', 'cuda')")
    """
    option_of = _option_of.get()
    if option_of is None:
        return name if value is None else f"{name}={value!r}"
    if value is None or value is True:
        return option_of(name)
    listed = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return f"{option_of(name)} {listed}"


def count(number: int, noun: str) -> str:
    """Return a number of things in words; a noun's plural has an s.

    >>> count(1, "wire"), count(1200, "half operation")
    ('1 wire', '1,200 half operations')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def an(noun: str) -> str:
    """Return a noun with its article, which goes by the first letter.

    >>> an("output wire"), an("rank")
    ('an output wire', 'a rank')
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
