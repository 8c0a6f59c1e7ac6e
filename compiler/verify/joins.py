"""Joins: which joins of two components the method of reachable sets makes."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nsc.compiler.verify.question import Budget
from nsc.wording import argument

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
        ranks: wire to its required rank; wires without one are forgotten.
    """

    budget: Budget
    states: int | None
    n: int
    ranks: dict[int, int]

    def needed(self, inputs: int) -> npt.NDArray[np.bool_]:
        """Return for each number of zeros, 0 … inputs, whether patterns of a component with it are kept.

        Those are kept that can be part of an input of r or r + 1 zeros, for a rank r.
        """
        others = self.n - inputs
        needed: npt.NDArray[np.bool_] = self._up_to[others + 1 :] > self._up_to[: inputs + 1]
        return needed

    @cached_property
    def _up_to(self) -> Integers:
        """How many of the numbers 0, 1, … below each one are zeros of an input that matters; (n + 2,)."""
        matters = np.zeros(self.n + 2, dtype=np.int64)
        for rank in self.ranks.values():
            matters[rank : rank + 2] = 1
        return np.concatenate([[0], np.cumsum(matters[:-1])])

    def refuses(self, patterns: int, wires: int, inputs: int) -> bool:
        """Return whether a join is refused.

        Args:
            patterns: number of patterns in the product of the two components.
            wires, inputs: number of wires and of inputs of both components together.
        """
        return self._is_slow(patterns, wires) or self.is_too_much(self._least_held(inputs))

    def why(self, patterns: int, wires: int, inputs: int) -> str:
        """Return why a join is refused, and which limit would allow it.

        Args:
            patterns, wires, inputs: as for `refuses`.
        """
        held = self._least_held(inputs)
        reasons = [self._why_slow(patterns, wires)] if self._is_slow(patterns, wires) else []
        return ", and ".join([*reasons, *([self.why_too_much(held)] if self.is_too_much(held) else [])])

    def _least_held(self, inputs: int) -> int:
        """Return a number of bytes that the patterns of a component with this many inputs take at least.

        If inputs of every number of zeros matter, there is one pattern for each.
        """
        needs_all = set(self.ranks.values()) == set(range(len(self.ranks)))
        levels = min(inputs, len(self.ranks)) if needs_all else 0
        wires = max(inputs - (self.n - len(self.ranks)), 1)
        return wires * -(-(levels + 1) // 8)

    def is_too_much(self, held: int) -> bool:
        """Return whether patterns of this many bytes are too large to merge."""
        return _MERGING * held > self.budget.memory

    def why_too_much(self, held: int) -> str:
        """Return why patterns of this many bytes are not merged, and which memory would suffice."""
        limit = argument("max_memory", -(-2 * _MERGING * held >> 20))
        return f"the {self.budget.memory >> 20:,} MB that patterns may take: try {limit}"

    def _is_slow(self, patterns: int, wires: int) -> bool:
        if self.states is not None:
            return patterns > self.states
        deadline = self.budget.deadline
        if deadline is None:
            return patterns * wires > MOST_BITS
        return patterns * wires > (deadline - time.monotonic()) / 2 * BITS_PER_SECOND

    def _why_slow(self, patterns: int, wires: int) -> str:
        size = f"{patterns:,} patterns in a join"
        if self.states is not None:
            return size
        seconds = patterns * wires / BITS_PER_SECOND
        needed = 2 * math.ceil(seconds) + 60
        if needed >= _LONG_SECONDS:
            return f"{size}, more than a day of work: no practical time limit suffices"
        return f"{size}, about {seconds:,.0f} s: try {argument('time_limit', needed)}"
