"""Patterns: sets of 0-1 values on some wires, in packed bits, and which of their products are made.

Each wire has a row with one bit per pattern, padded to whole bytes by repeating a pattern. So a comparator is
an AND and an OR of two rows, and the product of two sets is a repeat and a tile of bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nsc.compiler.verify.question import Budget, BudgetError
from nsc.compiler.verify.zero_one import Bits, transposed
from nsc.wording import argument

ZeroCounts = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

# A product is computed in pieces with rows of about this many bytes: 32 MB for 4,096 wires.
_ROW_BYTES = 1 << 13
# The least product that is divided by numbers of zeros: a smaller product would take longer that way.
_PARTED = 1 << 16
# The first bytes of each row: most sets that are not a chain already fail there.
_GLANCE = 64


@dataclass
class Component:
    """A set of wires and the patterns they can hold.

    Attributes:
        rows: wire to its packed bits; bit t (little-endian) is its value in pattern t; patterns may repeat.
        count: number of patterns, a multiple of 8.
        zeros: (count,): number of the component's inputs that are 0, for each pattern.
        inputs: number of inputs of the component.
        whole: whether the component still has all wires of these inputs.
        unseen: whether the patterns are too many to keep; then rows are empty and count exceeds all others.
        different: number of different patterns; 0 where it is not known.
    """

    rows: dict[int, Bits]
    count: int
    zeros: ZeroCounts
    inputs: int
    whole: bool = True
    unseen: bool = False
    different: int = 0

    @property
    def bytes(self) -> int:
        """Memory of the patterns, in bytes."""
        return len(self.rows) * self.count // 8 + self.zeros.nbytes


def product_count(a: Component, b: Component, needed: Flags) -> int:
    """Return how many patterns `products` yields, filled up to bytes or not; of unseen parts too many."""
    if a.unseen or b.unseen or _is_made_whole(a, b, needed):
        return a.count * b.count
    counts = np.convolve(np.bincount(a.zeros), np.bincount(b.zeros))
    return int(counts[needed[: len(counts)]].sum())


def products(a: Component, b: Component, needed: Flags) -> Iterator[Component]:
    """Yield the product of two components in pieces.

    Args:
        a, b: the components.
        needed: for each number of zeros, whether patterns with it are wanted.
    """
    if _is_made_whole(a, b, needed):
        for piece in _products(a, b):
            wanted = np.flatnonzero(needed[piece.zeros])
            if len(wanted):
                yield selected(piece, wanted)
        return
    for zeros in np.unique(a.zeros):
        others = np.flatnonzero(needed[zeros + b.zeros])
        if len(others):
            yield from _products(selected(a, np.flatnonzero(a.zeros == zeros)), selected(b, others))


def _is_made_whole(a: Component, b: Component, needed: Flags) -> bool:
    return a.count * b.count < _PARTED or bool(needed.all())


def _products(a: Component, b: Component) -> Iterator[Component]:
    """Yield the product of two components in pieces; pattern (s, t) has index s·count(b) + t."""
    whole = np.array([0, 0xFF], dtype=np.uint8)
    size = max(1, 8 * _ROW_BYTES // b.count)
    a_bits = {wire: np.unpackbits(row, bitorder="little") for wire, row in a.rows.items()}
    for start in range(0, a.count, size):
        part = slice(start, min(start + size, a.count))
        length = part.stop - part.start
        rows = {wire: np.repeat(whole[bits[part]], b.count // 8) for wire, bits in a_bits.items()}
        rows |= {wire: np.tile(row, length) for wire, row in b.rows.items()}
        zeros = (a.zeros[part, None] + b.zeros).ravel()
        yield Component(rows, length * b.count, zeros, a.inputs + b.inputs, a.whole and b.whole)


def concatenated(pieces: list[Component]) -> Component:
    """Return one component with the patterns of all pieces, which have the same wires."""
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    return Component(
        {wire: np.concatenate([piece.rows[wire] for piece in pieces]) for wire in first.rows},
        sum(piece.count for piece in pieces),
        np.concatenate([piece.zeros for piece in pieces]),
        first.inputs,
        first.whole,
    )


def distinct(component: Component, wires: list[int], needed: Flags) -> Component:
    """Return a component without repeated patterns.

    Args:
        component: a component whose patterns may repeat.
        wires: the wires whose values distinguish patterns.
        needed: for each number of zeros, whether patterns with it are kept.
    """

    def kept(index: npt.NDArray[np.int64]) -> Component:
        are_needed = needed[component.zeros]
        index = index[are_needed[index]]
        repeats_alone = are_needed.all() and -(-len(index) // 8) * 8 == component.count
        return replace(component if repeats_alone else selected(component, index), different=len(index))

    if component.whole:
        chain = _chain(component, wires)
        if chain is not None:
            return kept(chain)
    rows = [component.rows[wire] for wire in wires]
    if not component.whole:
        # Wires were forgotten: patterns with different numbers of zeros differ, even if these wires agree.
        more = component.zeros - component.zeros.min()
        digits = range(int(more.max()).bit_length())
        rows += [np.packbits(more >> digit & 1 == 1, bitorder="little") for digit in digits]
    first = _first_of_each(np.stack(rows)) if rows else np.zeros(1, np.int64)
    return kept(first)


def selected(component: Component, kept: npt.NDArray[np.int64]) -> Component:
    """Return a component with some of its patterns, at least one; the first is repeated to fill a byte."""
    if len(kept) == component.count:
        return component
    kept = np.append(kept, np.full(-len(kept) % 8, kept[0]))
    rows = {}
    if component.rows:
        bits = np.stack(list(component.rows.values()))[:, kept >> 3] >> (kept & 7).astype(np.uint8) & 1
        rows = dict(zip(component.rows, np.packbits(bits, axis=1, bitorder="little"), strict=True))
    return Component(rows, len(kept), component.zeros[kept], component.inputs, component.whole)


def _chain(component: Component, wires: list[int]) -> npt.NDArray[np.int64] | None:
    """Return one index of each pattern if the wires ascend in some order in all patterns; None otherwise.

    The outputs of a merge are such a chain; it has at most one pattern more than wires.
    """
    rows = np.stack([component.rows[wire] for wire in wires])
    chain = rows[np.argsort(np.bitwise_count(rows).sum(axis=1), kind="stable")]
    for part in (chain[:, :_GLANCE], chain):
        if (part[:-1] & ~part[1:]).any():
            return None
    # Row i marks the patterns whose first 1 is on wire i of the chain; the last row, those without a 1.
    new = np.concatenate([chain, np.full_like(chain[:1], 0xFF)])
    new[1:] &= ~chain
    byte = (new != 0).argmax(axis=1)
    bits = new[np.arange(len(new)), byte]
    lowest = np.bitwise_count((bits & -bits) - np.uint8(1))
    index: npt.NDArray[np.int64] = (8 * byte + lowest)[bits != 0]
    return index


def _first_of_each(rows: Bits) -> npt.NDArray[np.int64]:
    """Return the index of the first copy of each pattern; each row is a wire."""
    patterns = transposed(rows)
    keys = patterns.view(np.dtype((np.void, patterns.shape[1]))).ravel()
    return np.unique(keys, return_index=True)[1]


Integers = npt.NDArray[np.int64]

# Bits of a join, patterns times wires, that a slow machine computes in a second.
BITS_PER_SECOND = 1 << 29
# Without a time limit, a join of more bits is refused: a count, so that all machines prove the same networks.
# With one, a join may take half of the time left.
MOST_BITS = 20 * BITS_PER_SECOND
# Messages suggest only time limits below this one.
_LONG_SECONDS = 24 * 3600
# Finding the distinct patterns takes this many times their bytes, by measurement.
_MERGING = 8


@dataclass(frozen=True)
class JoinRule:
    """Which joins are made.

    Attributes:
        budget: limits of the method.
        states: the most patterns of a join; None: as many as time and memory allow.
        n: number of wires of the network.
        ranks: wire to the ranks that it may carry; other wires are forgotten.
    """

    budget: Budget
    states: int | None
    n: int
    ranks: dict[int, range]

    def needed(self, inputs: int) -> npt.NDArray[np.bool_]:
        """Return for each number of zeros, 0 … inputs, whether patterns of a component with it are kept.

        Those are kept that can be part of an input that decides a wire: with as many zeros as the lowest rank
        that it may carry, or one more than the highest.
        """
        others = self.n - inputs
        needed: npt.NDArray[np.bool_] = self._up_to[others + 1 :] > self._up_to[: inputs + 1]
        return needed

    @cached_property
    def _up_to(self) -> Integers:
        """For each k from 0 to n + 1, how many numbers below k are numbers of zeros that matter; (n + 2,)."""
        matters = np.zeros(self.n + 2, dtype=np.int64)
        for span in self.ranks.values():
            matters[[max(span.start, 0), min(span.stop, self.n)]] = 1
        return np.concatenate([[0], np.cumsum(matters[:-1])])

    def why_not(self, patterns: int, wires: int) -> str | None:
        """Return why a join is refused, and which limit would allow it; None if it is made.

        Args:
            patterns: number of patterns in the product of the two components.
            wires: number of wires of both components together.
        """
        size, deadline = f"{patterns:,} patterns in a join", self.budget.deadline
        if self.states is not None:
            return size if patterns > self.states else None
        most = MOST_BITS if deadline is None else (deadline - time.monotonic()) / 2 * BITS_PER_SECOND
        if patterns * wires <= most:
            return None
        seconds = patterns * wires / BITS_PER_SECOND
        needed = 2 * math.ceil(seconds) + 60
        if needed >= _LONG_SECONDS:
            return f"{size}, more than a day of work: no practical time limit suffices"
        return f"{size}, about {seconds:,.0f} s: try {argument('time_limit', needed)}"

    def check_memory(self, held: int) -> None:
        """Raise BudgetError if patterns of this many bytes are too large to merge."""
        if _MERGING * held > self.budget.memory:
            limit = argument("max_memory", -(-2 * _MERGING * held >> 20))
            raise BudgetError(f"the {self.budget.memory >> 20:,} MB that patterns may take: try {limit}")
