"""Joins: how large a product of two components the method of reachable sets makes.

The rule goes by numbers alone, and what it refuses it refuses of more patterns, wires and inputs too. So it
holds for a join that is at hand and, by `foresight`, for bounds from below on one that must come.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.compiler.verify.question import Budget
from nsc.wording import argument

Integers = npt.NDArray[np.int64]

# A join that would take longer is not begun, without a time limit of the user's; with one, a join may take
# half of what is left of it.
SECONDS = 20.0
# Bits of a join, patterns times wires, that are made in a second on a slow machine. A constant, so that what
# is proved without a time limit does not depend on the machine.
BITS_PER_SECOND = 1 << 29
# A time limit that is worth a hint.
_LONG_SECONDS = 24 * 3600
# Distinct patterns are found in so many times their bytes, by measurement.
_MERGING = 8


@dataclass(frozen=True)
class JoinRule:
    """Which joins are made. Its methods take numbers, or arrays of them, and answer alike.

    Attributes:
        budget: what the method may take.
        states: patterns that a join may make; None: what time and memory allow.
        n: wires of the network.
        ranks: wire to the rank that is asked of it; other wires are forgotten.
    """

    budget: Budget
    states: int | None
    n: int
    ranks: dict[int, int]

    @cached_property
    def most_zeros(self) -> int:
        """Patterns with more zeros are left out."""
        return max(self.ranks.values(), default=0) + 1

    def patterns(self, inputs: int | Integers) -> Any:
        """Return how many patterns components of so many inputs hold at least: one for each number of zeros.

        They come in whole bytes.
        """
        return -(-(np.minimum(inputs, self.most_zeros) + 1) // 8) * 8

    def wires(self, inputs: int | Integers) -> Any:
        """Return how many wires components of so many inputs have at least."""
        return np.maximum(inputs - (self.n - len(self.ranks)), 1)

    def held(self, inputs: int | Integers) -> Any:
        """Return how many bytes the patterns of components of so many inputs take at least."""
        return self.wires(inputs) * self.patterns(inputs) // 8

    def refuses(self, patterns: int | Integers, wires: int | Integers, inputs: int | Integers) -> Any:
        """Say whether a join is not begun.

        Args:
            patterns: of the product of both components.
            wires, inputs: of both together.
        """
        return self._is_slow(patterns, wires) | self.is_too_much(self.held(inputs))

    def why(self, patterns: int, wires: int, inputs: int, others: float = 0) -> str:
        """Return why a join is not begun, and what would help.

        Args:
            patterns, wires, inputs: as of `refuses`.
            others: patterns times wires of the joins that come before, where they are known.
        """
        held = int(self.held(inputs))
        reasons = [self._why_slow(patterns, wires, others)] if self._is_slow(patterns, wires) else []
        return ", and ".join([*reasons, *([self.why_too_much(held)] if self.is_too_much(held) else [])])

    def is_too_much(self, held: int | Integers) -> Any:
        """Say whether patterns that take so many bytes are not merged."""
        return _MERGING * held > self.budget.memory

    def why_too_much(self, held: int) -> str:
        """Return why patterns that take so many bytes are not merged, and the memory that would help."""
        limit = argument("max_memory", -(-2 * _MERGING * held >> 20))
        return f"the {self.budget.memory >> 20:,} MB that patterns may take: try {limit}"

    def _is_slow(self, patterns: int | Integers, wires: int | Integers) -> Any:
        if self.states is not None:
            return patterns > self.states
        deadline = self.budget.deadline
        left = SECONDS if deadline is None else (deadline - time.monotonic()) / 2
        return patterns * wires > left * BITS_PER_SECOND

    def _why_slow(self, patterns: int, wires: int, others: float) -> str:
        what = f"{patterns:,} patterns in a join"
        if self.states is not None:
            return what
        seconds = patterns * wires / BITS_PER_SECOND
        needed = 2 * math.ceil(seconds) + math.ceil(others / BITS_PER_SECOND) + 60
        if needed >= _LONG_SECONDS:
            return f"{what}, more than a day of work: no time limit that is worth a try would do"
        return f"{what}, about {seconds:,.0f} s: try {argument('time_limit', needed)}"
