"""Plan: the networks of a filter, stage by stage, and what neighbouring windows share.

A stage is a network that runs at every place of a row. It reads pixels, or lists that earlier stages wrote,
at its place or some columns further on. So a list of values that several windows of a row need is made
once. Two windows below each other share the rows that they have in common: a step makes two rows of
results.

Small windows sort the pixels of rows, then join rows. Windows below each other then share lists at the same
place, so a step of many rows keeps these in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from nsc.compiler.families import best
from nsc.compiler.network import Network
from nsc.compiler.passes import half_operations, restrict
from nsc.compiler.windows.merging import merged
from nsc.contract.windows import Window

# Most rows of results of a step.
MOST_ROWS = 8
# Windows of up to this many values may be planned by rows: in larger ones columns share more, and a step's
# code would be long.
_MOST_BY_ROWS = 81


@dataclass(frozen=True)
class Read:
    """Where a wire of a stage takes its value.

    Attributes:
        stage: an earlier stage; None: the image.
        index: which output of the stage, or which row of the step's pixels.
        shift: how many columns further on.
    """

    stage: int | None
    index: int
    shift: int


@dataclass(frozen=True)
class Stage:
    """A network that runs at every place of a row.

    Attributes:
        network: its comparators.
        reads: where each wire takes its value.
        outputs: the wires that are kept, smallest value first.
    """

    network: Network
    reads: tuple[Read, ...]
    outputs: tuple[int, ...]

    @cached_property
    def half_operations(self) -> int:
        """Minima and maxima that its outputs depend on."""
        return half_operations(self.network, self.outputs)


@dataclass(frozen=True)
class Plan:
    """The stages of a filter.

    Attributes:
        window: what is selected.
        step: how many rows of results a step makes.
        stages: in an order in which they can run.
        results: the stage of each row of results, whose outputs are the window's ranks, ascending, and how
            many columns further on it is read.
    """

    window: Window
    step: int
    stages: tuple[Stage, ...]
    results: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """How many rows of each plane a step reads."""
        return self.window.rows + self.step - 1

    @property
    def half_operations(self) -> float:
        """Minima and maxima for a pixel."""
        return sum(stage.half_operations for stage in self.stages) / self.step


def plans(window: Window) -> tuple[Plan, ...]:
    """Return the plans of a window that are tried: the best by columns, and one by rows.

    Cost: a second for the widest windows.

    Source: shared columns and rows as in Adams, "Fast median filters using separable sorting networks",
    SIGGRAPH 2021.

    >>> [plan.half_operations for plan in plans(Window(1, 3, 3, (4,)))]
    [21.0, 18.5]
    """
    steps = [1, 2] if window.rows > 1 else [1]
    found = [plan for step in steps if (plan := _by_columns(window, step))]
    columns = min(found, key=lambda plan: plan.half_operations)
    if window.rows == 1 or window.places or window.values > _MOST_BY_ROWS:
        return (columns,)
    rows = _by_rows(window, MOST_ROWS)
    return (columns, rows) if rows else (columns,)


@dataclass(frozen=True, order=True)
class _Pixels:
    """Pixels whose values a stage puts in order: rows of a step with columns, from column 0 on."""

    values: int
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, places: Iterable[tuple[int, int]]) -> tuple[_Pixels, int]:
        """Return these pixels from column 0 on, and the column where they begin."""
        placed = sorted(places)
        first = min(column for _, column in placed)
        return cls(len(placed), tuple((row, column - first) for row, column in placed)), first


class _Joined(NamedTuple):
    """How some pixels are joined: of two parts, each so many columns further on."""

    first: _Pixels
    shift: int
    second: _Pixels
    other_shift: int


_Joins = dict[_Pixels, _Joined]
# Pixels of a step, by row and column.
_Places = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class _Draft:
    """A stage that names parts: each wire takes a rank of a part, or a row's pixel, at a shift."""

    network: Network
    reads: tuple[tuple[_Pixels | None, int, int], ...]
    outputs: tuple[int, ...]
    ranks: tuple[int, ...]
    half_operations: int


def _by_columns(window: Window, step: int) -> Plan | None:
    """Return the plan that sorts columns and joins them, for one or two rows of results.

    None: windows below each other have no pixel in common.
    """
    if step == 1:
        whole = _places(window, step, 0)
        return _numbered(window, step, _cheapest(whole, window.ascending))
    joins = _two_by_two(window, step)
    if joins is None:
        return None
    for first, _, second, _ in [*joins.values()]:
        used = merged(first.values, second.values, window.ascending).used
        joins |= _cheapest(first.places, tuple(wire for wire in used if wire < first.values))
        joins |= _cheapest(second.places, tuple(wire - first.values for wire in used if wire >= first.values))
    return _numbered(window, step, joins)


def _by_rows(window: Window, step: int) -> Plan | None:
    """Return the plan that sorts rows and joins neighbouring ones, for an even number of rows of results."""
    joins = _two_by_two(window, step)
    if joins is None:
        return None

    def join(first: int, count: int) -> _Pixels:
        """Join rows, in pairs whose first one is odd: windows two rows apart then have pairs in common."""
        part = _lines(window, step, first, count)
        if count > 1:
            upper = 1 if count == 2 else 2 * ((count + 2) // 4)
            joins[part] = _Joined(join(first, upper), 0, join(first + upper, count - upper), 0)
        return part

    for first in range(1, step, 2):
        join(first, window.rows - 1)
    return _numbered(window, step, joins)


def _lines(window: Window, step: int, first: int, count: int) -> _Pixels:
    """Return these rows of every plane of a window without gaps."""
    height = window.rows + step - 1
    rows = [plane * height + first + k for plane in range(window.planes) for k in range(count)]
    return _Pixels.of((row, column) for row in rows for column in range(window.columns))[0]


def _places(window: Window, step: int, result: int) -> _Places:
    """Return the pixels of the window of a row of results."""
    height = window.rows + step - 1
    return frozenset((plane * height + row + result, column) for plane, row, column in window.offsets)


def _two_by_two(window: Window, step: int) -> _Joins | None:
    """Return how each row of results is joined: pixels that its window shares with another, and its own."""
    joins: _Joins = {}
    for first in range(0, step, 2):
        both = [_places(window, step, first), _places(window, step, first + 1)]
        shared = both[0] & both[1]
        if not shared:
            return None
        common, at = _Pixels.of(shared)
        for places in both:
            (result, start), (own, own_at) = _Pixels.of(places), _Pixels.of(places - shared)
            joins[result] = _Joined(common, at - start, own, own_at - start)
    return joins


def _cheapest(places: Iterable[tuple[int, int]], ranks: tuple[int, ...]) -> _Joins:
    """Return how the columns of some pixels are joined so that ranks take fewest minima and maxima."""
    placed = frozenset(places)
    part = _Pixels.of(placed)[0]

    def cost(joins: _Joins) -> int:
        return sum(draft.half_operations for draft in _drafts(joins, {part: ranks}).values())

    return min((_joined(placed, order) for order in _ORDERS), key=cost)


# Which pairs of parts are joined first: how often a pair occurs, and how many values it has.
_ORDERS: tuple[Callable[[int, int], tuple[int, ...]], ...] = (
    lambda count, values: (-count, values),
    lambda count, values: (-count, -values),
    lambda count, values: (values, -count),
)


def _joined(places: _Places, order: Callable[[int, int], tuple[int, ...]]) -> _Joins:
    """Return how the columns of some pixels are joined, two parts at a time, until one is left.

    A pair of parts that occurs several times, at the same distance, is joined once and read at shifts.
    """
    columns = sorted({column for _, column in places})
    parts = [_Pixels.of(place for place in places if place[1] == column) for column in columns]
    joins: _Joins = {}
    while len(parts) > 1:
        pairs: dict[tuple[_Pixels, _Pixels, int], list[tuple[int, int]]] = {}
        for i, (first, start) in enumerate(parts):
            for j, (second, other) in enumerate(parts[i + 1 :], start=i + 1):
                found = pairs.setdefault((first, second, other - start), [])
                if not any(index in pair for pair in found for index in (i, j)):
                    found.append((i, j))
        (first, second, distance), found = min(
            pairs.items(),
            key=lambda item: (*order(len(item[1]), item[0][0].values + item[0][1].values), item[0][2]),
        )
        shift, other_shift = max(0, -distance), max(0, distance)
        both = [
            *((row, column + shift) for row, column in first.places),
            *((row, column + other_shift) for row, column in second.places),
        ]
        part, _ = _Pixels.of(both)
        joins[part] = _Joined(first, shift, second, other_shift)
        joined = {index for pair in found for index in pair}
        made = [(part, parts[i][1] - shift) for i, _ in found]
        parts = [each for index, each in enumerate(parts) if index not in joined] + made
        parts.sort(key=lambda each: each[1])
    return joins


def _drafts(joins: _Joins, wanted: dict[_Pixels, tuple[int, ...]]) -> dict[_Pixels, _Draft]:
    """Return the stages for ranks of some parts, largest first: each keeps the ranks that others need."""
    needs = {part: set(ranks) for part, ranks in wanted.items()}
    drafts: dict[_Pixels, _Draft] = {}
    while left := needs.keys() - drafts.keys():
        part = max(left)
        ranks = tuple(sorted(needs[part]))
        draft = _join(joins[part], ranks) if part in joins else _sorted(part, ranks)
        drafts[part] = draft
        for source, rank, _ in draft.reads:
            if source is not None:
                needs.setdefault(source, set()).add(rank)
    return drafts


def _join(joined: _Joined, ranks: tuple[int, ...]) -> _Draft:
    first, shift, second, other_shift = joined
    merge = merged(first.values, second.values, ranks)
    places = {wire: place for place, wire in enumerate(merge.used)}
    reads = tuple(
        _read(first, wire, shift) if wire < first.values else _read(second, wire - first.values, other_shift)
        for wire in merge.used
    )
    pairs = [(places[lo], places[hi]) for lo, hi in merge.network.comparators.tolist()]
    network = Network.from_comparators(len(places), pairs)
    outputs = tuple(places[wire] for wire in merge.outputs)
    return _Draft(network, reads, outputs, ranks, merge.half_operations)


def _read(part: _Pixels, rank: int, shift: int) -> tuple[_Pixels | None, int, int]:
    return (None, part.places[0][0], shift) if part.values == 1 else (part, rank, shift)


def _sorted(part: _Pixels, ranks: tuple[int, ...]) -> _Draft:
    """Return the stage that sorts pixels, such as a column of them."""
    reads = tuple((None, row, column) for row, column in part.places)
    network = restrict(best(part.values), ranks)
    return _Draft(network, reads, ranks, ranks, half_operations(network, ranks))


def _numbered(window: Window, step: int, joins: _Joins) -> Plan:
    """Return the plan of joined parts, smallest part first, so that no stage reads a later one."""
    results = [_Pixels.of(_places(window, step, result)) for result in range(step)]
    drafts = _drafts(joins, {part: window.ascending for part, _ in results})
    order = sorted(drafts)
    number = {part: index for index, part in enumerate(order)}
    stages = []
    for part in order:
        draft = drafts[part]
        reads = tuple(
            Read(None, index, shift)
            if source is None
            else Read(number[source], drafts[source].ranks.index(index), shift)
            for source, index, shift in draft.reads
        )
        stages.append(Stage(draft.network, reads, draft.outputs))
    return Plan(window, step, tuple(stages), tuple((number[part], start) for part, start in results))
