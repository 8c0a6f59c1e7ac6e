"""Cutting: a network taken apart into codelets, from either end, and which of the two cuts is better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network, earliest_layers
from nsc.compiler.schedule.codelets import (
    LONGEST,
    WIDEST,
    Codelet,
    Needed,
    PlacedComparator,
    Shape,
    shapes_of,
)

# Comparators that get straight-line code in CUDA, in the most frequent shapes; the others run from a table.
# The build of a large network takes a few seconds.
STRAIGHT_LINE = 600
# Most comparators of a network that is cut from either end.
CUT_TWICE = 1 << 20
# Columns of P whose light cone is taken as one: as many as the widest register has lanes.
CONE_COLUMNS = 16
# The cost of running a codelet on a block of columns, in comparators: once for the codelet, for each wire
# that it loads, and in CUDA for each comparator that runs from a table.
CODELET_COST = 10
LOAD_COST = 1
TABLE_COST = 3

# For each comparator, whether its minimum and its maximum are needed, (size, 2).
Halves = npt.NDArray[np.bool_]


class Work(NamedTuple):
    """The work of a kernel that computes P, a block of CONE_COLUMNS columns at a time, in light cones.

    Attributes:
        comparators: that are run, over all blocks.
        cost: an estimate of the time, in comparators.
    """

    comparators: int
    cost: int


def reaching_blocks(n: int, pieces: Iterable[Sequence[int]], columns: int) -> list[int]:
    """Return for each piece a bit for each block of columns of P: whether the block reaches it.

    The pieces that a block reaches are its light cone; a kernel skips the rest. P starts as the payload I:
    column c is 1 on wire c alone. A piece changes a column only if one of its wires has a value of that
    column that is not 0, and behind the piece all of its wires may have one.

    Args:
        n: wires of the network.
        pieces: the wires of its codelets, or of other pieces, in running order.
        columns: columns of a block.
    """
    reached = [1 << (wire // columns) for wire in range(n)]
    blocks_of_pieces = []
    for wires in pieces:
        blocks = 0
        for wire in wires:
            blocks |= reached[wire]
        for wire in wires:
            reached[wire] = blocks
        blocks_of_pieces.append(blocks)
    return blocks_of_pieces


def work_on_permutation(n: int, codelets: Sequence[Codelet]) -> Work:
    """Return the work on P of a network on n wires that was cut into these codelets.

    Args:
        n: wires of the network.
        codelets: its codelets, in running order.
    """
    straight = set(straight_line_shapes(shapes_of(codelets), STRAIGHT_LINE))
    comparators = cost = 0
    wires = [codelet.wires for codelet in codelets]
    for codelet, reached_by in zip(codelets, reaching_blocks(n, wires, CONE_COLUMNS), strict=True):
        blocks, size = reached_by.bit_count(), len(codelet.shape)
        by_table = 0 if codelet.shape in straight else size
        comparators += blocks * size
        cost += blocks * (CODELET_COST + LOAD_COST * len(codelet.wires) + size + TABLE_COST * by_table)
    return Work(comparators, cost)


def straight_line_shapes(shapes: tuple[Shape, ...], straight_line: int) -> tuple[Shape, ...]:
    """Return the first of these shapes, as many as have `straight_line` comparators together at most."""
    total = 0
    for index, shape in enumerate(shapes):
        total += len(shape)
        if total > straight_line:
            return shapes[:index]
    return shapes


def cut(network: Network, halves: Halves | None = None) -> tuple[Codelet, ...]:
    """Cut a network into codelets, in an order that respects the comparator graph.

    The network is cut twice, from the first comparator on and from the last one back, and the cut with
    less work on P is kept. From the back, codelets near the inputs, where light cones are narrow, come
    out smaller, and later codelets fuller. A network of more comparators than CUT_TWICE, whose P takes
    gigabytes, is cut from the first comparator on.

    Args:
        network: any network.
        halves: for each comparator, whether its minimum and its maximum are needed; None: all are.
    """

    def cost(codelets: tuple[Codelet, ...]) -> int:
        return work_on_permutation(network.n, codelets).cost

    if network.size > CUT_TWICE:
        return _cut(network, halves, backwards=False)
    return min((_cut(network, halves, backwards) for backwards in (False, True)), key=cost)


def _cut(network: Network, halves: Halves | None, backwards: bool) -> tuple[Codelet, ...]:
    """Cut a network from one end.

    One pass over the comparators. Each wire belongs to the codelet that touched it last. The first of
    these ways that is possible places a comparator:

    - Both wires belong to the same codelet, and it goes there.
    - The codelets of the two wires become one, if they fit.
    - One wire moves on into the other's codelet.
    - A new codelet begins.

    Each codelet has a level greater than the levels of all codelets that it takes wires from, so the order
    has no cycle. Two codelets may become one if nothing has been taken from either, or if their levels are
    equal. A wire may only move to a greater level. A codelet that nothing was taken from may be raised.

    Butterflies come out as three to four layers of 16 wires, networks of neighbours as trapezoids
    that narrow and widen in turn. Cost: about a microsecond per comparator.
    """
    # Two lists of numbers: a list of pairs takes ten times as long, most of it in garbage collection.
    los, his = network.comparators.T.tolist()
    parts = _Parts(network.n)
    owner = parts.owner
    for index in reversed(range(network.size)) if backwards else range(network.size):
        lo, hi = los[index], his[index]
        part = owner[lo]
        # Half of the comparators of a large network, without a call.
        is_one = part is owner[hi] and part is not None and part.merged_into is None
        if is_one and len(part.comparators) < LONGEST:
            part.comparators.append(index)
        else:
            parts.place(index, lo, hi)
    return _codelets(network, halves, parts.in_order(backwards))


class _Growing:
    """A codelet that is still growing."""

    __slots__ = ("comparators", "level", "merged_into", "taken_from", "wires")

    def __init__(self, level: int) -> None:
        self.level = level
        self.wires: set[int] = set()
        self.comparators: list[int] = []
        self.taken_from = False
        self.merged_into: _Growing | None = None

    def has_room(self, wires: int, comparators: int) -> bool:
        return len(self.wires) + wires <= WIDEST and len(self.comparators) + comparators <= LONGEST


class _Parts:
    def __init__(self, n: int) -> None:
        self.owner: list[_Growing | None] = [None] * n
        self.parts: list[_Growing] = []

    def place(self, index: int, lo: int, hi: int) -> None:
        a, b = self._owner(lo), self._owner(hi)
        if a is not None and a is b and len(a.comparators) < LONGEST:
            a.comparators.append(index)
            return
        part = self._merged(a, b) or self._grown(a, b, lo, hi) or self._new(a, b)
        part.wires.add(lo)
        part.wires.add(hi)
        part.comparators.append(index)
        self.owner[lo] = self.owner[hi] = part

    def in_order(self, backwards: bool) -> list[tuple[list[int], list[int]]]:
        """Return the wires and the comparators of each part, in running order.

        A part comes after all parts that it takes wires from. If several parts may come next, the one whose
        last wire became free most recently does: its values are still in the cache.
        """
        alive = [part for part in self.parts if part.merged_into is None]
        alive.sort(key=lambda part: (-part.level if backwards else part.level, min(part.wires)))
        last: dict[int, int] = {}
        waits = [0] * len(alive)
        followers: list[list[int]] = [[] for _ in alive]
        for index, part in enumerate(alive):
            before = {last[wire] for wire in part.wires if wire in last}
            waits[index] = len(before)
            for other in before:
                followers[other].append(index)
            last.update(dict.fromkeys(part.wires, index))
        free = [index for index in reversed(range(len(alive))) if not waits[index]]
        ordered = []
        while free:
            index = free.pop()
            ordered.append((sorted(alive[index].wires), alive[index].comparators))
            for follower in reversed(followers[index]):
                waits[follower] -= 1
                if not waits[follower]:
                    free.append(follower)
        return ordered

    def _owner(self, wire: int) -> _Growing | None:
        part = self.owner[wire]
        if part is None or part.merged_into is None:
            return part
        while part.merged_into is not None:
            part = part.merged_into
        self.owner[wire] = part
        return part

    def _merged(self, a: _Growing | None, b: _Growing | None) -> _Growing | None:
        if a is None or b is None or a is b:
            return None
        untouched = not a.taken_from and not b.taken_from
        fits = len(a.wires | b.wires) <= WIDEST and len(a.comparators) + len(b.comparators) < LONGEST
        if not fits or not (untouched or a.level == b.level):
            return None
        if len(a.wires) < len(b.wires):
            a, b = b, a
        a.level = max(a.level, b.level)
        a.taken_from |= b.taken_from
        a.wires |= b.wires
        a.comparators += b.comparators
        b.merged_into = a
        return a

    def _grown(self, a: _Growing | None, b: _Growing | None, lo: int, hi: int) -> _Growing | None:
        """Return the part that takes the wire: of greater level, else of more wires; None: neither can."""
        best: tuple[bool, int] | None = None
        chosen, source = None, None
        for into, other, wire in ((a, b, hi), (b, a, lo)):
            if into is None or into is other or wire in into.wires or not into.has_room(1, 1):
                continue
            stands_higher = (-1 if other is None else other.level) < into.level
            if (stands_higher or not into.taken_from) and (
                best is None or (stands_higher, len(into.wires)) > best
            ):
                best = (stands_higher, len(into.wires))
                chosen, source = into, other
        if chosen is not None and source is not None:
            source.taken_from = True
            chosen.level = max(chosen.level, source.level + 1)
        return chosen

    def _new(self, a: _Growing | None, b: _Growing | None) -> _Growing:
        before = [part for part in (a, b) if part is not None]
        for part in before:
            part.taken_from = True
        self.parts.append(_Growing(1 + max((part.level for part in before), default=-1)))
        return self.parts[-1]


def _codelets(
    network: Network, halves: Halves | None, ordered: list[tuple[list[int], list[int]]]
) -> tuple[Codelet, ...]:
    """Return the codelets of these wires and comparators; what repeats on other wires is worked out once."""
    needed = np.ones((network.size, 2), bool) if halves is None else halves
    place = np.empty(network.n, np.int8)
    known: dict[bytes, tuple[Shape, int]] = {}
    codelets = []
    for wires, held in ordered:
        place[wires] = _PLACES[: len(wires)]
        indices = np.sort(np.array(held))
        steps = np.concatenate((place[network.comparators[indices]], needed[indices]), axis=1)
        key = steps.tobytes()
        if key not in known:
            known[key] = _shape_and_flips(steps.tolist())
        codelets.append(Codelet(tuple(wires), *known[key]))
    return tuple(codelets)


_PLACES = np.arange(WIDEST, dtype=np.int8)


def _shape_and_flips(steps: list[list[int]]) -> tuple[Shape, int]:
    """Return the canonical order of comparators: by layer inside the codelet, then by wire."""
    placed = []
    layers = earliest_layers(WIDEST, (step[:2] for step in steps))
    for (lo, hi, *ends), layer in zip(steps, layers, strict=True):
        a, b = sorted((lo, hi))
        needed = _NEEDED[bool(ends[lo > hi]), bool(ends[lo < hi])]
        placed.append((layer, PlacedComparator(a, b, needed), lo > hi))
    placed.sort()
    flips = sum(1 << index for index, (*_, is_flipped) in enumerate(placed) if is_flipped)
    return tuple(comparator for _, comparator, _ in placed), flips


_NEEDED = {(True, True): Needed.BOTH, (True, False): Needed.FIRST, (False, True): Needed.SECOND}
