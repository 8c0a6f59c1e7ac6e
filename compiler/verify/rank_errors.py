"""Rank errors: how far the outputs of a network are from their ranks, over all orders of different values.

An output has one of the k largest values of an order iff it is 1 for the 0-1 input with ones in their places.
Each input of k ones stands for as many orders as the others. So the share p(k) of these inputs that leave a 1
on the output gives the share of orders that leave rank r there: p(n - r) - p(n - r - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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

Shares = dict[int, Fraction]


@dataclass(frozen=True)
class OutputErrors:
    """The ranks that an output carries.

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
        orders: how many random orders were tried; None: all orders are counted.
    """

    outputs: tuple[OutputErrors, ...]
    orders: int | None = None

    def lines(self) -> list[str]:
        """Return a line for each of the outputs that are wrong most often."""
        wrong = sorted((each for each in self.outputs if each.most_off), key=lambda each: each.right)
        of, most = "orders", "at most"
        if self.orders is not None:
            of, most = count(self.orders, "random order"), "among these up to"
        lines = [
            f"rank {each.rank} on wire{'s' * (len(each.wires) > 1)} {', '.join(map(str, each.wires))}: right "
            f"for {_percent(each.right)} of {of}, {most} {count(each.most_off, 'rank')} off"
            for each in wrong[:_LISTED]
        ]
        for each in wrong[_LISTED : _LISTED + 1]:
            more = count(len(wrong) - _LISTED, "more rank")
            lines.append(f"{more}: right for {_percent(each.right)} of {of} or more")
        return lines or [f"right for all {of}"]

    def facts(self) -> dict[str, Any]:
        """Return the errors as a JSON object; a sample has no shares."""
        outputs = [
            {"wires": each.wires, "rank": each.rank, "right": float(each.right), "most_off": each.most_off}
            | ({} if self.orders else {"shares": {rank: str(share) for rank, share in each.shares.items()}})
            for each in self.outputs
        ]
        return {"orders": self.orders or "all", "outputs": outputs}


def rank_errors(network: Network, property_: Property, budget: Budget | None = None) -> RankErrors:
    """Return how far the outputs of a network are from their ranks, over all orders of different values.

    Args:
        network: any network of the property's wires.
        property_: which wires should carry which ranks; presorted runs are sorted in each order.
        budget: its memory bounds the 0-1 patterns; beyond, and from 65 wires on, a sample of orders is taken,
            always the same.
    """
    question = question_of(network, replace(property_, off_by=0), Budget() if budget is None else budget)
    orders = None
    try:
        shares = _counted(question)
    except BudgetError:
        orders = max(1, min(_ORDERS, _VALUES // network.n))
        shares = _sampled(question, orders)
    ranks = [(group.wires, group.first + k) for group in property_.groups for k in range(len(group.wires))]
    return RankErrors(tuple(OutputErrors(wires, rank, shares[rank]) for wires, rank in ranks), orders)


def _counted(question: Question) -> dict[int, Shares]:
    """Return the shares for each right rank by counting inputs; raise BudgetError if that takes too much."""
    n = question.network.n
    if n > MOST_WIRES:
        raise BudgetError(f"{MOST_WIRES} wires")
    pairs = [(lo, hi) for lo, hi in question.network.comparators.tolist()]
    most = question.budget.memory // _PATTERN_BYTES
    parts = counted(n, pairs, question.runs, question.ranks, lambda inputs: np.ones(inputs + 1, bool), most)
    part_of = {wire: part for part in parts for wire in part.wires}
    return {span.start: _shares(n, wire, part_of[wire]) for wire, span in question.ranks.items()}


def _shares(n: int, wire: int, part: Part) -> Shares:
    """Return the shares of a wire; ones beyond the inputs of its part lie on any of the other wires."""
    is_one = (part.patterns >> np.uint64(wire) & np.uint64(1)).astype(bool)
    counts = np.zeros(n + 1, np.int64)
    np.add.at(counts, part.ones[is_one], part.counts[is_one])
    others = n - len(part.wires)
    ways = [
        sum(c * math.comb(others, k - j) for j, c in enumerate(counts.tolist()[: k + 1]))
        for k in range(n + 1)
    ]
    share = [Fraction(ways[n - zeros], math.comb(n, zeros)) for zeros in range(n + 1)]
    return {rank: share[rank] - share[rank + 1] for rank in range(n) if share[rank] != share[rank + 1]}


def _sampled(question: Question, orders: int) -> dict[int, Shares]:
    """Return the shares for each right rank among random orders."""
    values = np.random.default_rng(0).permuted(np.tile(np.arange(question.network.n), (orders, 1)), axis=1)
    order_runs(values, question.runs)
    out = question.network.apply(values)
    found = {span.start: np.unique_counts(out[:, wire]) for wire, span in question.ranks.items()}
    return {
        rank: {int(value): Fraction(int(times), orders) for value, times in zip(*each, strict=True)}
        for rank, each in found.items()
    }


def _percent(share: Fraction) -> str:
    """Return a share in percent; one that is not all or none is not rounded to either."""
    text = f"{float(share):.1%}".replace("%", " %")
    rounded = {"0.0 %": "less than 0.1 %", "100.0 %": "more than 99.9 %"}
    return rounded.get(text, text) if 0 < share < 1 else text
