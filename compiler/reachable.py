"""Exact verification by reachable 0-1 sets per connected component of wires.

For every component, the wires joined so far by comparators, the set of 0-1 patterns that it can
hold is kept; a comparator that joins two components multiplies their sets. Polynomial for networks
that merge sorted parts: a sorted component of k wires has k + 1 patterns, so a bitonic or odd-even
merge of n wires peaks at (n/2 + 1)² of them. Networks that join wires before they are sorted
(pairwise, odd-even transposition) grow exponentially and end at the budget.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.zero_one import Vector

Bits = npt.NDArray[np.uint8]

# One component's patterns times wires, in bits: 384 MB, of which about twice is held at a time.
# Bitonic needs 277 million at n = 1024 and 2.2 billion at n = 2048.
BUDGET_BITS = 3 << 30
BUDGET_PATTERNS = 1 << 21

_DONE = -1
# Repeats are removed in pieces of this many bytes of patterns a wire, for the sake of the memory of
# their transpose: 64 MB a piece at 2,048 wires.
_PIECE_BYTES = 1 << 15


class BudgetError(Exception):
    """A component would hold more patterns than the budget allows."""


@dataclass
class Component:
    """A set of wires and the patterns they can hold.

    Attributes:
        rows: wire to its packed bits, bit t (little-endian) in pattern t; patterns may repeat.
        count: number of patterns, a multiple of 8.
        repeats: whether patterns may repeat, beyond the padding to a multiple of 8.
    """

    rows: dict[int, Bits]
    count: int
    repeats: bool = False


@dataclass(frozen=True)
class Outcome:
    """What the search found: a failing 0-1 input or None, and the most patterns in a component."""

    failing: Vector | None
    peak: int


def search(network: Network) -> Outcome:
    """Return whether the network sorts, with a failing 0-1 input if it does not.

    Raises:
        BudgetError: the sets grew beyond BUDGET_PATTERNS or BUDGET_BITS.
    """
    outcome = _Search(network, trace=False).run()
    if outcome.failing is None:
        return outcome
    # Patterns forget the inputs they came from; a second run carries these along.
    return _Search(network, trace=True).run()


class _Search:
    """One run over the comparator graph; with `trace` wire n + w carries the input of wire w."""

    def __init__(self, network: Network, trace: bool) -> None:
        self.network = network
        self.trace = trace
        n = network.n
        both = np.array([0b10101010], dtype=np.uint8)
        self.component = [
            Component({w: both.copy()} | ({n + w: both.copy()} if trace else {}), 8) for w in range(n)
        ]
        self.pairs: list[tuple[int, int]] = [(lo, hi) for lo, hi in network.comparators.tolist()]
        # Each wire's comparators, the next one last, above a sentinel that is no comparator.
        self.queue: list[list[int]] = [[_DONE] for _ in range(n)]
        for index, pair in reversed(list(enumerate(self.pairs))):
            for wire in pair:
                self.queue[wire].append(index)
        self.joins: list[tuple[int, int]] = []
        self.peak = 8

    def run(self) -> Outcome:
        """Join, cheapest product first. A component changes only when it is itself joined."""
        for wire in range(self.network.n):
            self._note_join(wire)
        while self.joins:
            cost, index = heapq.heappop(self.joins)
            lo, hi = self.pairs[index]
            if not self._is_join(index) or cost != self._cost(index):
                continue
            joined = self._join(lo, hi)
            wires = [wire for wire in joined.rows if wire < self.network.n]
            self._advance(joined, wires)
            for wire in wires:
                self._note_join(wire)
        return self._outcome()

    def _head(self, wire: int) -> int:
        return self.queue[wire][-1]

    def _ready(self, index: int) -> bool:
        if index == _DONE:
            return False
        lo, hi = self.pairs[index]
        return self.queue[lo][-1] == self.queue[hi][-1] == index

    def _is_join(self, index: int) -> bool:
        if not self._ready(index):
            return False
        lo, hi = self.pairs[index]
        return self.component[lo] is not self.component[hi]

    def _note_join(self, wire: int) -> None:
        index = self._head(wire)
        if self._is_join(index):
            for end in self.pairs[index]:
                self._remove_repeats(self.component[end])
            heapq.heappush(self.joins, (self._cost(index), index))

    def _advance(self, component: Component, wires: list[int]) -> None:
        """Run every comparator that is ready and inside the component."""
        rows = component.rows
        stack = list(wires)
        while stack:
            index = self._head(stack.pop())
            if not self._ready(index):
                continue
            lo, hi = self.pairs[index]
            if self.component[lo] is not self.component[hi]:
                continue
            rows[lo], rows[hi] = rows[lo] & rows[hi], rows[lo] | rows[hi]
            self.queue[lo].pop()
            self.queue[hi].pop()
            stack += (lo, hi)

    def _cost(self, index: int) -> int:
        lo, hi = self.pairs[index]
        return self.component[lo].count * self.component[hi].count

    def _remove_repeats(self, component: Component) -> None:
        if not component.repeats:
            return
        component.repeats = False
        wires = list(component.rows)
        rows = np.stack(list(component.rows.values()))
        # With a trace the inputs ride along: patterns that differ in them alone still repeat.
        seen = rows[[place for place, wire in enumerate(wires) if wire < self.network.n]]
        pieces = range(0, seen.shape[1], _PIECE_BYTES)
        kept = np.concatenate([_first_of_each(seen[:, p : p + _PIECE_BYTES]) + 8 * p for p in pieces])
        if len(pieces) > 1:
            again = _first_of_each(_select(seen, kept))
            kept = kept[again[again < len(kept)]]
        kept = np.append(kept, np.full(-len(kept) % 8, kept[0]))
        component.rows = dict(zip(wires, _select(rows, kept), strict=True))
        component.count = len(kept)

    def _join(self, lo: int, hi: int) -> Component:
        """Replace two components by their product; pattern (s, t) has index s·count(hi) + t."""
        a, b = self.component[lo], self.component[hi]
        count = a.count * b.count
        wires = sum(wire < self.network.n for wire in (*a.rows, *b.rows))  # a trace is no reason to end
        if count > BUDGET_PATTERNS or count * wires > BUDGET_BITS:
            raise BudgetError(f"{count:,} patterns of {wires:,} wires")
        whole = np.array([0, 0xFF], dtype=np.uint8)
        rows = {
            wire: np.repeat(whole[np.unpackbits(row, bitorder="little")], b.count // 8)
            for wire, row in a.rows.items()
        } | {wire: np.tile(row, a.count) for wire, row in b.rows.items()}
        joined = Component(rows, count, repeats=True)
        for wire in rows:
            if wire < self.network.n:
                self.component[wire] = joined
        self.peak = max(self.peak, count)
        return joined

    def _outcome(self) -> Outcome:
        n = self.network.n
        for wire in range(n - 1):
            upper, lower = self.component[wire], self.component[wire + 1]
            if upper is not lower:
                # Never joined: a 1 above and a 0 below can meet, and each component can hold them.
                return Outcome(self._meet(upper, wire, lower), self.peak)
            failing = upper.rows[wire] & ~upper.rows[wire + 1]
            if failing.any():
                bits = np.unpackbits(failing, bitorder="little")
                return Outcome(self._input({id(upper): int(bits.argmax())}), self.peak)
        return Outcome(None, self.peak)

    def _meet(self, upper: Component, wire: int, lower: Component) -> Vector:
        ones = np.unpackbits(upper.rows[wire], bitorder="little")
        zeros = np.unpackbits(lower.rows[wire + 1], bitorder="little") == 0
        return self._input({id(upper): int(ones.argmax()), id(lower): int(zeros.argmax())})

    def _input(self, pattern: dict[int, int]) -> Vector:
        """Return the input that leads to the given pattern of some components (pattern 0 of others)."""
        n = self.network.n
        vector = []
        for wire in range(n):
            component = self.component[wire]
            row = component.rows[n + wire if self.trace else wire]
            bits = np.unpackbits(row, bitorder="little")
            vector.append(int(bits[pattern.get(id(component), 0)]))
        return tuple(vector)


def _first_of_each(rows: Bits) -> npt.NDArray[np.int64]:
    """Return the index of the first of each pattern among equal ones; rows hold a wire each."""
    patterns = _transposed(rows)
    keys = patterns.view(np.dtype((np.void, patterns.shape[1]))).ravel()
    return np.unique(keys, return_index=True)[1]


def _transposed(rows: Bits) -> Bits:
    """Return a row of packed wires per pattern for a row of packed patterns per wire.

    By blocks of 8 × 8 bits held in a 64-bit word. Source: Warren, Hacker's Delight, section 7-3.
    """
    wires, width = rows.shape
    padded = np.zeros((-(-wires // 8) * 8, width), dtype=np.uint8)
    padded[:wires] = rows
    block = padded.reshape(-1, 8, width).transpose(0, 2, 1).copy().view("<u8")[..., 0]
    for distance, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
        swapped = (block ^ (block >> np.uint64(distance))) & np.uint64(mask)
        block = block ^ swapped ^ (swapped << np.uint64(distance))
    return np.ascontiguousarray(block.view(np.uint8).reshape(len(block), 8 * width).T)


def _select(rows: Bits, kept: npt.NDArray[np.int64]) -> Bits:
    """Return the rows with the kept patterns alone, in that order."""
    bits = (rows[:, kept >> 3] >> (kept & 7).astype(np.uint8)) & 1
    return np.packbits(bits, axis=1, bitorder="little")
