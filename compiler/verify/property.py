"""Properties: what a network is said to do, in one form that all methods decide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.errors import PropertyError
from nsc.wording import an, argument, count


@dataclass(frozen=True)
class Selection:
    """Wires that together carry as many consecutive ranks, in any order among themselves.

    Attributes:
        wires: the wires, at least one; a single wire carries exactly `first`.
        first: the lowest of the ranks, 0 the smallest value.
    """

    wires: tuple[int, ...]
    first: int


@dataclass(frozen=True)
class Property:
    """What the outputs of a network on n wires are said to be, for all inputs or for presorted ones.

    Attributes:
        name: the property in words, as `parse` takes it, with its wires and presorted runs.
        n: number of wires.
        selections: what the outputs carry; wires and ranks of different ones are disjoint.
        presorted: runs of wires whose inputs ascend; disjoint.

    Raises:
        PropertyError: wires or ranks out of range, twice, or not as many as the property has.
    """

    name: str
    n: int
    selections: tuple[Selection, ...]
    presorted: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        wires = [wire for selection in self.selections for wire in selection.wires]
        ranks = [s.first + k for s in self.selections for k in range(len(s.wires))]
        inputs = [wire for run in self.presorted for wire in run]
        for what, found in (("output wire", wires), ("rank", ranks), ("presorted wire", inputs)):
            if any(not 0 <= value < self.n for value in found):
                raise PropertyError(f"{self.name}: {an(what)} is outside 0 … {self.n - 1} (n = {self.n})")
            if len(set(found)) < len(found):
                raise PropertyError(f"{self.name}: {an(what)} is named twice")

    @property
    def is_sort(self) -> bool:
        """Whether every wire carries the rank of its number."""
        return len(self.selections) == self.n and all(s.wires == (s.first,) for s in self.selections)

    @property
    def ranks(self) -> dict[int, int]:
        """The rank of each wire, of selections of one wire."""
        return {s.wires[0]: s.first for s in self.selections if len(s.wires) == 1}

    def fails(self, network: Network, inputs: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Say of 0-1 inputs, (count, n), which come out wrong; for a few inputs: a byte a value."""
        out = network.apply(inputs.astype(np.int8))
        zeros = self.n - inputs.sum(axis=1)
        wrong = np.zeros(len(inputs), dtype=bool)
        for selection in self.selections:
            found = (out[:, list(selection.wires)] == 0).sum(axis=1)
            wrong |= found != np.clip(zeros - selection.first, 0, len(selection.wires))
        return wrong


def sort(n: int) -> Property:
    """Return the property that all n wires come out ascending, wire 0 the smallest."""
    return Property("sort", n, tuple(Selection((wire,), wire) for wire in range(n)))


def parse(text: str, n: int, wires: Sequence[int] | None = None, presorted: str = "") -> Property:
    """Return the property that a text names, on n wires.

    Args:
        text: one of FORMS, or the name of a property.
        n: number of wires.
        wires: where the outputs are, smallest first; None: for top-K the last wires, for bottom-K the
            first, for rank-R wire R and so on, for the median the middle wire, of an even n the two
            middle ones, which then carry the two middle ranks in any order.
        presorted: runs of wires whose inputs ascend, such as "0-7,8-15".

    Raises:
        PropertyError: no such property, or one that n wires do not have.

    >>> parse("top-2", 8).ranks
    {6: 6, 7: 7}
    """
    named = re.fullmatch(r"(\S+?)(?: on wires ([\d,]+))?(?:, presorted ([\d,-]+))?", text)
    if named and (named[2] or named[3]):
        listed = None if named[2] is None else [int(wire) for wire in named[2].split(",") if wire]
        return parse(named[1], n, listed, named[3] or "")
    match = re.fullmatch(
        r"(sort|median|(top|bottom)-(\d{1,6})(-set)?|rank-(\d{1,6}(?:,\d{1,6})*)|"
        r"merge-(\d{1,6})\+(\d{1,6}))",
        text,
    )
    if match is None:
        raise PropertyError(f"no property is called {text!r}; there are: {', '.join(FORMS)}")
    runs = _runs(presorted)
    first, size, as_set = 0, n, False
    ranks: Sequence[int] | None = None
    if match[2]:
        size, as_set = int(match[3]), match[4] is not None
        if not 1 <= size <= n:
            outputs = f"1 to {n} such outputs" if n > 1 else "1 such output"
            raise PropertyError(f"{text}: a network on {count(n, 'wire')} has {outputs}")
        first = n - size if match[2] == "top" else 0
    elif match[5]:
        ranks = [int(rank) for rank in match[5].split(",")]
        if max(ranks) >= n:
            raise PropertyError(f"{text}: of {count(n, 'wire')} the ranks are 0 … {n - 1}, 0 the smallest")
    elif text == "median":
        first, size, as_set = (n - 1) // 2, 2 - n % 2, True
    elif match[6]:
        parts = int(match[6]), int(match[7])
        if sum(parts) != n or 0 in parts or runs:
            raise PropertyError(
                f"{text}: the runs of a merge are not empty and together have {count(n, 'wire')}"
            )
        runs = tuple(range(parts[0])), tuple(range(parts[0], n))
    if ranks is None:
        ranks = range(first, first + size)
    at = tuple(ranks if wires is None else wires)
    if len(at) != len(ranks):
        raise PropertyError(
            f"{text} has {count(len(ranks), 'output')}, {argument('wires')} names {count(len(at), 'wire')}"
        )
    selections = (
        (Selection(at, first),)
        if as_set
        else tuple(Selection((wire,), rank) for wire, rank in zip(at, ranks, strict=True))
    )
    name = text + ("" if wires is None else f" on wires {','.join(map(str, at))}")
    return Property(name + (f", presorted {presorted}" if presorted else ""), n, selections, runs)


def _runs(text: str) -> tuple[tuple[int, ...], ...]:
    runs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d{1,6})-(\d{1,6})", part)
        if match is None or int(match[1]) >= int(match[2]):
            raise PropertyError(f"presorted runs are such as 0-7,8-15, lower wire first; found {part!r}")
        runs.append(tuple(range(int(match[1]), int(match[2]) + 1)))
    return tuple(runs)


FORMS = (
    "sort",
    "top-K and bottom-K, sorted",
    "top-K-set and bottom-K-set, in any order",
    "rank-R or rank-R,R,…, 0 the smallest",
    "median",
    "merge-P+Q, of the first P and the last Q wires, each presorted",
)
