"""Plan: the networks of a filter, stage by stage, and what neighbouring windows share.

A stage is a network that runs at every place of a row. It reads pixels, or lists that earlier stages wrote,
at its place or some columns further on. So a list of values that several windows of a row need is made
once. Two windows below each other share the rows that they have in common: a step makes two rows of
results.

Small windows sort the pixels of rows, then join rows. Windows below each other then share lists at the same
place, so a step of many rows keeps these in registers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from nsc.compiler.network import Network
from nsc.compiler.passes import half_operations
from nsc.compiler.windows.merging import Merge, merged, selected
from nsc.contract.windows import Window

# Most rows of results of a step.
MOST_ROWS = 8
# Windows of up to this many values may be planned by rows: in larger ones columns share more, and a step's
# code would be long.
_MOST_BY_ROWS = 49


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


# Pixels of a step, by row and column; some from column 0 on, and the column where they begin.
_Places = frozenset[tuple[int, int]]
_Placed = tuple[_Pixels, int]
# The two parts from which pixels are joined.
_Joins = dict[_Pixels, tuple[_Placed, _Placed]]


def _by_columns(window: Window, step: int) -> Plan | None:
    """Return the plan that sorts columns and joins them; None: windows below each other share no pixel."""
    if step == 1:
        whole = _places(window, step, 0)
        return _numbered(window, step, _cheapest(whole, window.ascending))
    joins = _two_by_two(window, step)
    if joins is None:
        return None
    for part in [*joins]:
        for (half, _), ranks in zip(joins[part], _needed(joins, part, window.ascending), strict=True):
            joins |= _cheapest(half.places, ranks)
    return _numbered(window, step, joins)


def _by_rows(window: Window, step: int) -> Plan | None:
    """Return the plan that sorts rows and joins neighbouring ones, for an even number of rows of results."""
    joins = _two_by_two(window, step)
    if joins is None:
        return None
    height = window.rows + step - 1

    def join(part: _Pixels) -> None:
        """Join rows, in pairs whose first one is odd: windows two rows apart then have pairs in common."""
        rows = sorted({row % height for row, _ in part.places})
        if len(rows) == 1:
            return
        below = rows[1 if len(rows) == 2 else 2 * ((len(rows) + 2) // 4)]
        upper = _Pixels.of(place for place in part.places if place[0] % height < below)
        lower = _Pixels.of(place for place in part.places if place[0] % height >= below)
        joins[part] = upper, lower
        join(upper[0])
        join(lower[0])

    for (common, _), _ in [*joins.values()]:
        join(common)
    return _numbered(window, step, joins)


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
            joins[result] = (common, at - start), (own, own_at - start)
    return joins


def _cheapest(places: Iterable[tuple[int, int]], wanted: tuple[int, ...]) -> _Joins:
    """Return how the columns of some pixels are joined so that ranks take fewest minima and maxima."""
    placed = frozenset(places)
    part = _Pixels.of(placed)[0]

    def cost(joins: _Joins) -> int:
        ranks = _ranks(joins, {part: wanted})
        return sum(_network(joins, each, ranks[each]).half_operations for each in ranks)

    return min((_joined(placed, sign) for sign in (1, -1)), key=cost)


def _joined(places: _Places, sign: int) -> _Joins:
    """Return how the columns of some pixels are joined, two parts at a time, until one is left.

    A pair of parts that occurs several times, at the same distance, is joined once and read at shifts. The
    one that occurs most comes first; then the smallest, or for the sign -1 the largest.
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
            key=lambda item: (-len(item[1]), sign * (item[0][0].values + item[0][1].values), item[0][2]),
        )
        shift, other_shift = max(0, -distance), max(0, distance)
        both = [
            *((row, column + shift) for row, column in first.places),
            *((row, column + other_shift) for row, column in second.places),
        ]
        part, _ = _Pixels.of(both)
        joins[part] = (first, shift), (second, other_shift)
        joined = {index for pair in found for index in pair}
        made = [(part, parts[i][1] - shift) for i, _ in found]
        parts = [each for index, each in enumerate(parts) if index not in joined] + made
        parts.sort(key=lambda each: each[1])
    return joins


def _network(joins: _Joins, part: _Pixels, ranks: tuple[int, ...]) -> Merge:
    """Return the network for ranks of a part: a merge, or a sort of pixels such as a column."""
    if part in joins:
        (first, _), (second, _) = joins[part]
        return merged(first.values, second.values, ranks)
    return selected(part.values, ranks)


def _needed(joins: _Joins, part: _Pixels, ranks: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return which ranks of its two parts the ranks of a part need."""
    used, count = _network(joins, part, ranks).used, joins[part][0][0].values
    return tuple(wire for wire in used if wire < count), tuple(wire - count for wire in used if wire >= count)


def _ranks(joins: _Joins, wanted: dict[_Pixels, tuple[int, ...]]) -> dict[_Pixels, tuple[int, ...]]:
    """Return the ranks of each part that others need, for ranks of some parts; largest first, no pixels."""
    needs = {part: set(ranks) for part, ranks in wanted.items()}
    found: dict[_Pixels, tuple[int, ...]] = {}
    while left := needs.keys() - found.keys():
        part = max(left)
        found[part] = tuple(sorted(needs[part]))
        if part in joins:
            for (half, _), ranks in zip(joins[part], _needed(joins, part, found[part]), strict=True):
                if ranks and half.values > 1:
                    needs.setdefault(half, set()).update(ranks)
    return found


def _numbered(window: Window, step: int, joins: _Joins) -> Plan:
    """Return the plan of joined parts, smallest part first, so that no stage reads a later one."""
    results = [_Pixels.of(_places(window, step, result)) for result in range(step)]
    ranks = _ranks(joins, {part: window.ascending for part, _ in results})
    number = {part: index for index, part in enumerate(sorted(ranks))}

    def reads(part: _Pixels) -> dict[int, Read]:
        """Return where the values of a part's network lie, those that are kept."""
        if part not in joins:
            return {wire: Read(None, *place) for wire, place in enumerate(part.places)}
        found, base = {}, 0
        for half, shift in joins[part]:
            if half.values == 1:
                found[base] = Read(None, half.places[0][0], shift)
            else:
                kept = enumerate(ranks.get(half, ()))
                found |= {base + rank: Read(number[half], index, shift) for index, rank in kept}
            base += half.values
        return found

    def stage(part: _Pixels) -> Stage:
        made, sources = _network(joins, part, ranks[part]), reads(part)
        place = {wire: index for index, wire in enumerate(made.used)}
        pairs = [(place[lo], place[hi]) for lo, hi in made.network.comparators.tolist()]
        return Stage(
            Network.from_comparators(len(place), pairs),
            tuple(sources[wire] for wire in made.used),
            tuple(place[wire] for wire in made.outputs),
        )

    stages = tuple(stage(part) for part in number)
    return Plan(window, step, stages, tuple((number[part], start) for part, start in results))
