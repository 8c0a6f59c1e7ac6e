"""Rank errors: how far the outputs of a network are from their ranks, over all orders of different values.

An output has one of the k largest values of an order iff it is 1 for the 0-1 input with ones in their places.
Each input of k ones stands for as many orders as the others. So the share p(k) of these inputs that leave a 1
on the output gives the share of orders that leave rank r there: p(n - r) - p(n - r - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.verify.counted import MOST_WIRES, Part, counted
from nsc.compiler.verify.property import Property
from nsc.compiler.verify.question import Budget, BudgetError, Question, question_of
from nsc.compiler.verify.zero_one import order_runs
from nsc.wording import count

# Memory of a pattern while it is counted.
_PATTERN_BYTES = 1 << 10
# Random orders of a sample, and the most values of them all.
_ORDERS, _VALUES = 1 << 14, 1 << 21
# Outputs that `lines` lists.
_LISTED = 8

# The share of orders for each rank that occurs, the lowest rank first.
Shares = dict[int, Fraction]


@dataclass(frozen=True)
class OutputErrors:
    """The ranks that an output carries, over orders of different values.

    Attributes:
        wires: the output; or wires that carry their ranks in any order, and are sorted first.
        rank: the right rank.
        shares: the share of orders for each rank that occurs.
    """

    wires: tuple[int, ...]
    rank: int
    shares: Shares

    @property
    def right(self) -> Fraction:
        """The share of orders for which the output is right."""
        return self.shares.get(self.rank, Fraction(0))

    @property
    def most_off(self) -> int:
        """The largest distance of a rank from the right one."""
        return max(abs(rank - self.rank) for rank in self.shares)


@dataclass(frozen=True)
class RankErrors:
    """The ranks that the outputs of a network carry.

    Attributes:
        outputs: one for each rank of a property.
        orders: None for all orders; else so many random ones.
    """

    outputs: tuple[OutputErrors, ...]
    orders: int | None = None

    def lines(self) -> list[str]:
        """Return a line for each of the outputs that are wrong most often."""
        wrong = sorted((each for each in self.outputs if each.most_off), key=lambda each: each.right)
        of, most = "orders", "at most"
        if self.orders is not None:
            of, most = count(self.orders, "random order"), "among these up to"
        if not wrong:
            return [f"right for all {of}"]
        lines = [
            f"rank {each.rank} on {'wire' if len(each.wires) == 1 else 'wires'} "
            f"{', '.join(map(str, each.wires))}: right for {_percent(each.right)} of {of}, "
            f"{most} {count(each.most_off, 'rank')} off"
            for each in wrong[:_LISTED]
        ]
        if len(wrong) > _LISTED:
            least = _percent(wrong[_LISTED].right)
            lines.append(f"{len(wrong) - _LISTED:,} more ranks: right for {least} of {of} or more")
        return lines

    def facts(self) -> dict[str, Any]:
        """Return the errors as a JSON object; a sample has no shares."""
        return {
            "orders": "all" if self.orders is None else self.orders,
            "outputs": [
                {
                    "wires": each.wires,
                    "rank": each.rank,
                    "right": float(each.right),
                    "most_off": each.most_off,
                }
                | ({} if self.orders else {"shares": {rank: str(part) for rank, part in each.shares.items()}})
                for each in self.outputs
            ],
        }


def rank_errors(network: Network, property_: Property, budget: Budget | None = None) -> RankErrors:
    """Return how far the outputs of a network are from their ranks, over all orders of different values.

    Presorted runs are sorted in each order before the network is.

    Args:
        network: any network of the property's wires.
        property_: which wires should carry which ranks.
        budget: its memory bounds the 0-1 patterns; beyond, and from 65 wires on, a sample of orders is taken,
            always the same.
    """
    question = question_of(network, property_, Budget() if budget is None else budget)
    orders = None
    try:
        shares = _counted(question)
    except BudgetError:
        orders = max(1, min(_ORDERS, _VALUES // network.n))
        shares = _sampled(question, orders)
    ranks = [(group.wires, group.first + k) for group in property_.groups for k in range(len(group.wires))]
    return RankErrors(tuple(OutputErrors(wires, rank, shares[rank]) for wires, rank in ranks), orders)


def _counted(question: Question) -> dict[int, Shares]:
    """Return the shares of each rank's wire by counting inputs; raise BudgetError if that takes too much."""
    network, budget = question.network, question.budget
    n = network.n
    if n > MOST_WIRES:
        raise BudgetError(f"{MOST_WIRES} wires")
    pairs = [(lo, hi) for lo, hi in network.comparators.tolist()]
    every = np.ones(n + 1, bool)
    most = budget.memory // _PATTERN_BYTES
    parts = counted(n, pairs, question.runs, question.ranks, lambda wires: every[: wires + 1], most)
    part_of = {wire: part for part in parts for wire in part.wires}
    return {rank: _shares(n, wire, part_of[wire]) for wire, rank in question.ranks.items()}


def _shares(n: int, wire: int, part: Part) -> Shares:
    """Return the shares of a wire; ones beyond the inputs of its part lie on any of the other wires."""
    inputs = len(part.wires)
    is_one = (part.patterns >> np.uint64(wire) & np.uint64(1)).astype(bool)
    counts = np.zeros(inputs + 1, np.int64)
    np.add.at(counts, part.ones[is_one], part.counts[is_one])
    share = [
        Fraction(
            sum(c * math.comb(n - inputs, k - j) for j, c in enumerate(counts.tolist()[: k + 1])),
            math.comb(n, k),
        )
        for k in range(n + 1)
    ]
    shares = {rank: share[n - rank] - share[n - rank - 1] for rank in range(n)}
    return {rank: part for rank, part in shares.items() if part}


def _sampled(question: Question, orders: int) -> dict[int, Shares]:
    """Return the shares of each rank's wire among random orders."""
    n = question.network.n
    values = np.random.default_rng(0).permuted(np.tile(np.arange(n), (orders, 1)), axis=1)
    order_runs(values, question.runs)
    out = question.network.apply(values)
    found = {rank: np.unique_counts(out[:, wire]) for wire, rank in question.ranks.items()}
    return {
        rank: {int(value): Fraction(int(times), orders) for value, times in zip(*each, strict=True)}
        for rank, each in found.items()
    }


def _percent(share: Fraction) -> str:
    """Return a share in percent; one that is not all or none is not rounded to either."""
    text = f"{float(share):.1%}"
    if 0 < share < 1:
        text = {"0.0%": "less than 0.1%", "100.0%": "more than 99.9%"}.get(text, text)
    return text.replace("%", " %")
