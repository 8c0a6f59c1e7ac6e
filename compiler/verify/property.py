"""Properties: claims about the outputs of a network, in one form that all methods decide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.errors import PropertyError
from nsc.wording import an, argument, count


@dataclass(frozen=True)
class RankGroup:
    """Some wires that together carry as many consecutive ranks, in any order among themselves.

    Attributes:
        wires: the wires, at least one, ascending; a single wire carries exactly `first`.
        first: the lowest of the ranks, 0 the smallest value.
    """

    wires: tuple[int, ...]
    first: int


@dataclass(frozen=True)
class Property:
    """A claim about the outputs of a network on n wires, for all inputs or for presorted ones.

    Attributes:
        name: the property as `parse` takes it, with its wires and presorted runs.
        n: number of wires.
        groups: the ranks that outputs carry; wires and ranks of different groups are disjoint.
        presorted: runs of wires whose inputs ascend; disjoint.
        off_by: how far the rank of an output may be from the rank of its group; outputs of a group of several
            wires are sorted first.

    Raises:
        PropertyError: wires or ranks out of range, twice, or not as many as the property has.
    """

    name: str
    n: int
    groups: tuple[RankGroup, ...]
    presorted: tuple[tuple[int, ...], ...] = ()
    off_by: int = 0

    def __post_init__(self) -> None:
        wires = [wire for group in self.groups for wire in group.wires]
        ranks = [group.first + k for group in self.groups for k in range(len(group.wires))]
        inputs = [wire for run in self.presorted for wire in run]
        for noun, numbers in (("rank", ranks), ("output wire", wires), ("presorted wire", inputs)):
            if any(not 0 <= number < self.n for number in numbers):
                raise PropertyError(f"{self.name}: {an(noun)} is outside 0 … {self.n - 1} (n = {self.n})")
            if len(set(numbers)) < len(numbers):
                raise PropertyError(f"{self.name}: {an(noun)} is named twice")

    @property
    def is_sort(self) -> bool:
        """Whether every wire carries the rank of its number."""
        in_place = all(group.wires == (group.first,) for group in self.groups)
        return len(self.groups) == self.n and in_place and not self.off_by

    @property
    def ranks(self) -> dict[int, int]:
        """The rank of each wire that is a group of its own."""
        return {group.wires[0]: group.first for group in self.groups if len(group.wires) == 1}

    def fails(self, network: Network, inputs: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which 0-1 inputs, (count, n), come out wrong. Takes a byte a value: for a few inputs."""
        fails: npt.NDArray[np.bool_] = np.logical_or.reduce([*self.wrong(network, inputs)])
        return fails

    def wrong(self, network: Network, inputs: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.bool_]]:
        """Yield for each group for which 0-1 inputs, (count, n), its wires carry other ranks."""
        out = network.apply(inputs.astype(np.int8))
        zeros = self.n - inputs.sum(axis=1)
        for group in self.groups:
            zeros_out = (out[:, list(group.wires)] == 0).sum(axis=1)
            few, many = (zeros - group.first + off for off in (-self.off_by, self.off_by))
            yield zeros_out != np.clip(zeros_out, few, many).clip(0, len(group.wires))


def sort(n: int) -> Property:
    """Return the property that all n wires come out ascending, wire 0 the smallest."""
    return Property("sort", n, tuple(RankGroup((wire,), wire) for wire in range(n)))


def property_of(named: str | Property, n: int) -> Property:
    """Return the property of n wires that a text names, or the property itself.

    Raises:
        PropertyError: as `parse`, or neither of both.
    """
    if isinstance(named, str):
        return parse(named, n)
    if not isinstance(named, Property):
        raise PropertyError(
            f"{argument('property')} must be text, such as 'median' or 'top-8', got {named!r}"
        )
    return named


def middle_ranks(n: int) -> range:
    """Return the rank of the median of n values; of an even n the two middle ranks.

    >>> list(middle_ranks(5)), list(middle_ranks(6))
    ([2], [2, 3])
    """
    return range((n - 1) // 2, n // 2 + 1)


_NAME = re.compile(
    r"(\S+?)(?: on wires ([\d,]+))?(?:, presorted ([\d,-]+))?(?:, at most (\d{1,9}) off)?", re.ASCII
)


def parse(
    text: str, n: int, wires: Sequence[int] | None = None, presorted: str = "", off_by: int = 0
) -> Property:
    """Return the property that a text names, on n wires.

    Args:
        text: one of FORMS, or the name of a property.
        n: number of wires.
        wires: where the outputs are, smallest first; None: for top-K the last wires, for bottom-K the
            first, for rank-R wire R and so on, for the median the middle wire, of an even n the two
            middle ones, which then carry the two middle ranks in any order.
        presorted: runs of wires whose inputs ascend, such as "0-7,8-15".
        off_by: how far the rank of each output may be from the right one.

    Raises:
        PropertyError: no such property, or one that n wires do not have.

    >>> parse("top-2", 8).ranks
    {6: 6, 7: 7}
    >>> parse("median, at most 2 off", 9).off_by
    2
    """
    named = _NAME.fullmatch(text)
    if named and any(named.groups()[1:]):
        wires = [int(wire) for wire in named[2].split(",") if wire] if named[2] else wires
        return parse(named[1], n, wires, named[3] or presorted, int(named[4] or off_by))
    match = re.fullmatch(
        r"(sort|median|(top|bottom)-(\d{1,9})(-set)?|rank-(\d{1,9}(?:,\d{1,9})*)|"
        r"merge-(\d{1,9})\+(\d{1,9}))",
        text,
        re.ASCII,
    )
    if match is None:
        raise PropertyError(f"no property is called {text!r}; there are: {', '.join(FORMS)}")
    runs = _runs(presorted)
    ranks: Sequence[int] = range(n)
    as_set = False
    if match[2]:
        size, as_set = int(match[3]), match[4] is not None
        if not 1 <= size <= n:
            outputs = f"1 to {n} such outputs" if n > 1 else "1 such output"
            raise PropertyError(f"{text}: a network on {count(n, 'wire')} has {outputs}")
        ranks = range(n - size, n) if match[2] == "top" else range(size)
    elif match[5]:
        ranks = [int(rank) for rank in match[5].split(",")]
        if max(ranks) >= n:
            raise PropertyError(f"{text}: of {count(n, 'wire')} the ranks are 0 … {n - 1}, 0 the smallest")
    elif text == "median":
        ranks = middle_ranks(n)
        as_set = len(ranks) > 1
    elif match[6]:
        parts = int(match[6]), int(match[7])
        if sum(parts) != n or 0 in parts or runs:
            raise PropertyError(
                f"{text}: the runs of a merge are not empty and together have {count(n, 'wire')}"
            )
        runs = tuple(range(parts[0])), tuple(range(parts[0], n))
    carried = _carried(text, n, ranks, wires, as_set)
    named_runs = ",".join(f"{run[0]}-{run[-1]}" for run in _runs(presorted))
    name = carried.name + (f", presorted {named_runs}" if named_runs else "")
    if not 0 <= off_by < n:
        raise PropertyError(
            f"of {count(n, 'wire')} a rank is 0 to {n - 1} off, got {argument('off_by', off_by)}"
        )
    return Property(name + (f", at most {off_by} off" if off_by else ""), n, carried.groups, runs, off_by)


def _carried(
    name: str, n: int, ranks: Sequence[int], wires: Sequence[int] | None, as_set: bool = False
) -> Property:
    """Return the property that wires carry ranks, one each, or consecutive ranks in any order."""
    places = tuple(ranks if wires is None else wires)
    if len(places) != len(ranks):
        raise PropertyError(
            f"{name} has {count(len(ranks), 'output')}, "
            f"{argument('wires')} names {count(len(places), 'wire')}"
        )
    groups = (
        (RankGroup(tuple(sorted(places)), ranks[0]),)
        if as_set
        else tuple(RankGroup((wire,), rank) for wire, rank in zip(places, ranks, strict=True))
    )
    return Property(name + ("" if wires is None else f" on wires {','.join(map(str, places))}"), n, groups)


def _runs(text: str) -> tuple[tuple[int, ...], ...]:
    runs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d{1,6})-(\d{1,6})", part, re.ASCII)
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
