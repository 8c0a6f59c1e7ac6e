"""Routings: the kinds of routing, and the losses of P, in one table each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Payload(Enum):
    """The third operand of a routing, beside keys and steepness."""

    NOTHING = "nothing"
    COLUMNS = "columns"  # a payload (batch, n, m), which has a gradient
    RANKS = "ranks"  # int64 ranks (batch, k): the rows of P that are wanted
    TARGET = "target"  # the int64 ranks (batch, n) of a loss


@dataclass(frozen=True)
class Routing:
    """A kind of routing.

    Attributes:
        name: its name in operators, kernels and graphs of torch.
        payload: its third operand.
        is_reversed: whether the comparators run from the last to the first.
        sorter: the method of `Sorter` that it serves.
        selector: the method of `Selector` that it serves; None: it needs all n ranks.
    """

    name: str
    payload: Payload
    is_reversed: bool
    sorter: str
    selector: str | None

    @cached_property
    def code(self) -> int:
        """Its number in the C interface."""
        return list(ROUTINGS).index(self.name)

    @property
    def is_loss(self) -> bool:
        """Whether it gives a loss for each sample."""
        return self.payload is Payload.TARGET


@dataclass(frozen=True)
class Loss:
    """A loss of P against the true ranks.

    Attributes:
        name: the name of its routing, and of its functions in kernels.
        sentence: its definition in one line, for generated modules.
    """

    name: str
    sentence: str


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("cross_entropy", "the mean over samples of (1/n) Σ_c -log P[target[c], c]"),
        Loss(
            "binary_cross_entropy",
            "the mean over samples and entries of the binary cross entropy between P and the truth",
        ),
    )
}

# Losses cut logarithms here. A single weight below e^-87 is 0 in float32, whatever it is multiplied with.
LOWEST_LOG = -80
# The least probability whose reciprocal the error-free form takes, as torch's binary cross entropy does.
SURROGATE_LEAST = 1e-12
# Above this 1 - p would lose digits, and is the sum of the column's other entries instead. At most one entry
# of a column is so large.
LARGE = 0.75

ROUTINGS: dict[str, Routing] = {
    routing.name: routing
    for routing in (
        Routing("none", Payload.NOTHING, False, "sort", "select"),
        Routing("permutation", Payload.NOTHING, False, "sort_with_permutation", None),
        Routing("route", Payload.COLUMNS, False, "route", "route"),
        Routing("transposed", Payload.COLUMNS, True, "rank", None),
        Routing("rows", Payload.RANKS, True, "topk", "select_with_rows"),
        *(Routing(name, Payload.TARGET, False, name, None) for name in LOSSES),
    )
}
