"""Plan: the networks of a filter, stage by stage, and what neighbouring windows share.

A stage is a network that runs at every place of a row. It reads pixels, or lists that earlier stages wrote,
at its place or some columns further on. So a list of values that several windows of a row need is made
once. Two windows below each other share the rows that they have in common: a step makes two rows of
results.

Small windows sort the pixels of rows, then join rows. Windows below each other then share lists at the same
place, so a step of many rows keeps these in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from nsc.compiler.families import best
from nsc.compiler.network import Network
from nsc.compiler.passes import half_operations, restrict
from nsc.compiler.windows.merging import merged
from nsc.contract.windows import Window

# Up to this many columns all ways to join them are tried; more are halved.
_MOST_TRIED = 9
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
        results: the stage of each row of results; its only output is the result.
    """

    window: Window
    step: int
    stages: tuple[Stage, ...]
    results: tuple[int, ...]

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

    >>> [plan.half_operations for plan in plans(Window(1, 3, 3, 4))]
    [21.0, 18.5]
    """
    steps = [1, 2] if window.rows > 1 else [1]
    columns = min((_by_columns(window, step) for step in steps), key=lambda plan: plan.half_operations)
    has_rows = window.rows > 1 and window.values <= _MOST_BY_ROWS
    return (columns, _by_rows(window, MOST_ROWS)) if has_rows else (columns,)


@dataclass(frozen=True, order=True)
class _Pixels:
    """Pixels whose values a stage puts in order: of some of a step's rows, in neighbouring columns."""

    values: int
    rows: tuple[int, ...]
    columns: int

    @classmethod
    def of(cls, rows: Iterable[int], columns: int) -> _Pixels:
        rows = tuple(rows)
        return cls(len(rows) * columns, rows, columns)


# A joined part to its two parts, and how many columns the second lies behind the first.
_Joins = dict[_Pixels, tuple[_Pixels, _Pixels, int]]


@dataclass(frozen=True)
class _Draft:
    """A stage that names parts: each wire takes a rank of a part, or a row's pixel, at a shift."""

    network: Network
    reads: tuple[tuple[_Pixels | None, int, int], ...]
    outputs: tuple[int, ...]
    ranks: tuple[int, ...]


def _by_columns(window: Window, step: int) -> Plan:
    """Return the plan that sorts columns and joins neighbouring ones, for one or two rows of results."""
    if step == 1:
        whole = _lines(window, step, 0, window.rows)
        return _numbered(window, step, _cheapest(whole, (window.rank,)), [whole])
    joins = _two_by_two(window, step)
    results = [*joins]
    for common, own, _ in [*joins.values()]:
        used = merged(common.values, own.values, (window.rank,)).used
        joins |= _cheapest(common, tuple(wire for wire in used if wire < common.values))
        joins |= _cheapest(own, tuple(wire - common.values for wire in used if wire >= common.values))
    return _numbered(window, step, joins, results)


def _by_rows(window: Window, step: int) -> Plan:
    """Return the plan that sorts rows and joins neighbouring ones, for an even number of rows of results."""
    joins = _two_by_two(window, step)
    results = [*joins]

    def join(first: int, count: int) -> _Pixels:
        """Join rows, in pairs whose first one is odd: windows two rows apart then have pairs in common."""
        part = _lines(window, step, first, count)
        if count > 1:
            upper = 1 if count == 2 else 2 * ((count + 2) // 4)
            joins[part] = (join(first, upper), join(first + upper, count - upper), 0)
        return part

    for first in range(1, step, 2):
        join(first, window.rows - 1)
    return _numbered(window, step, joins, results)


def _lines(window: Window, step: int, first: int, count: int) -> _Pixels:
    """Return the part of these rows of every plane."""
    height = window.rows + step - 1
    rows = [plane * height + first + k for plane in range(window.planes) for k in range(count)]
    return _Pixels.of(rows, window.columns)


def _two_by_two(window: Window, step: int) -> _Joins:
    """Return how each row of results is joined: rows that its window shares with another, and its own."""
    joins: _Joins = {}
    for first in range(0, step, 2):
        common = _lines(window, step, first + 1, window.rows - 1)
        for number in (first, first + window.rows):
            own = _lines(window, step, number, 1)
            result = _Pixels(common.values + own.values, common.rows + own.rows, window.columns)
            joins[result] = (common, own, 0)
    return joins


def _cheapest(part: _Pixels, ranks: tuple[int, ...]) -> _Joins:
    """Return how a part's columns are joined so that some ranks of it take fewest minima and maxima."""

    def cost(joins: _Joins) -> int:
        drafts = _drafts(joins, {part: ranks}).values()
        return sum(half_operations(draft.network, draft.outputs) for draft in drafts)

    return min((_joins(part.rows, cuts) for cuts in _cuts(part.columns)), key=cost)


def _joins(rows: tuple[int, ...], cuts: dict[int, int]) -> _Joins:
    return {
        _Pixels.of(rows, columns): (_Pixels.of(rows, first), _Pixels.of(rows, columns - first), first)
        for columns, first in cuts.items()
    }


def _cuts(columns: int) -> list[dict[int, int]]:
    """Return ways to join columns: each joined number of them with the size of its first part."""
    found: list[dict[int, int]] = []

    def extend(open_: set[int], cuts: dict[int, int]) -> None:
        left = open_ - {1} - cuts.keys()
        if not left:
            found.append(cuts)
            return
        widest = max(left)
        halves = range((widest + 1) // 2, widest) if columns <= _MOST_TRIED else [(widest + 1) // 2]
        for first in halves:
            extend(left | {first, widest - first}, {**cuts, widest: first})

    extend({columns}, {})
    return found


def _drafts(joins: _Joins, wanted: dict[_Pixels, tuple[int, ...]]) -> dict[_Pixels, _Draft]:
    """Return the stages for ranks of some parts, largest first: each keeps the ranks that others need."""
    needs = {part: set(ranks) for part, ranks in wanted.items()}
    drafts: dict[_Pixels, _Draft] = {}
    while left := needs.keys() - drafts.keys():
        part = max(left)
        ranks = tuple(sorted(needs[part]))
        draft = _join(*joins[part], ranks) if part in joins else _sorted(part, ranks)
        drafts[part] = draft
        for source, rank, _ in draft.reads:
            if source is not None:
                needs.setdefault(source, set()).add(rank)
    return drafts


def _join(first: _Pixels, second: _Pixels, shift: int, ranks: tuple[int, ...]) -> _Draft:
    merge = merged(first.values, second.values, ranks)
    places = {wire: place for place, wire in enumerate(merge.used)}
    reads = tuple(
        _read(first, wire, 0) if wire < first.values else _read(second, wire - first.values, shift)
        for wire in merge.used
    )
    pairs = [(places[lo], places[hi]) for lo, hi in merge.network.comparators.tolist()]
    network = Network.from_comparators(len(places), pairs)
    return _Draft(network, reads, tuple(places[wire] for wire in merge.outputs), ranks)


def _read(part: _Pixels, rank: int, shift: int) -> tuple[_Pixels | None, int, int]:
    return (None, part.rows[0], shift) if part.values == 1 else (part, rank, shift)


def _sorted(part: _Pixels, ranks: tuple[int, ...]) -> _Draft:
    """Return the stage that sorts pixels, such as a column of them."""
    reads = tuple((None, row, shift) for row in part.rows for shift in range(part.columns))
    return _Draft(restrict(best(part.values), ranks), reads, ranks, ranks)


def _numbered(window: Window, step: int, joins: _Joins, results: Sequence[_Pixels]) -> Plan:
    """Return the plan of joined parts, smallest part first, so that no stage reads a later one."""
    drafts = _drafts(joins, dict.fromkeys(results, (window.rank,)))
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
    return Plan(window, step, tuple(stages), tuple(number[part] for part in results))
