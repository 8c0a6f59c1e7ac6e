"""Routings: the kinds of routing, and the losses of P, in one table each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from nsc import library


class Payload(Enum):
    """The third operand of a routing, beside keys and steepness."""

    NOTHING = "nothing"
    COLUMNS = "columns"  # a payload (batch, n, m), which has a gradient
    RANKS = "ranks"  # int64 ranks (batch, k): the rows of P that are wanted
    # The target of a loss, with which it compares P.
    TARGET = "target"  # int64 (batch, n): the rank of each item, or IGNORED
    INTERVALS = "intervals"  # (batch, 3, n): each item's first rank, last rank and weight
    # (batch, n + 1, n): each item's share of each rank, in 0 … 1, with a gradient; then its weight
    SHARES = "shares"

    @property
    def is_target(self) -> bool:
        """Whether it belongs to a loss."""
        return self in (Payload.TARGET, Payload.INTERVALS, Payload.SHARES)

    @property
    def has_gradient(self) -> bool:
        """Whether its gradient is computed."""
        return self in (Payload.COLUMNS, Payload.SHARES)


# The rank of an item that does not count, as torch's losses have it.
IGNORED = int(library.constant("ignored", "relaxed/targets.h"))


@dataclass(frozen=True)
class Routing:
    """A kind of routing.

    Attributes:
        name: its name in operators, kernels and graphs of torch.
        payload: the kind of its third operand.
        is_reversed: whether the comparators run from the last to the first.
        sorter: the method of `Sorter` that uses it.
        selector: the method of `Selector` that uses it; None: it needs all n ranks.
        loss: the name of the loss that it computes; None: it computes none.
    """

    name: str
    payload: Payload
    is_reversed: bool
    sorter: str
    selector: str | None
    loss: str | None = None

    @cached_property
    def code(self) -> int:
        """Its number in the C interface."""
        return list(ROUTINGS).index(self.name)

    @property
    def is_loss(self) -> bool:
        """Whether it computes a loss for each sample."""
        return self.payload.is_target


@dataclass(frozen=True)
class Loss:
    """A loss of P against a target.

    Attributes:
        name: its name in `Sorter.loss`, and of its functions in kernels.
        sentence: its definition in one line, for generated modules.
        by_rank: whether it averages over ranks too, not over items alone.
    """

    name: str
    sentence: str
    by_rank: bool


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("cross_entropy", "the mean over samples of (1/n) Σ_c -log P[target[c], c]", False),
        Loss(
            "binary_cross_entropy",
            "the mean over samples and entries of the binary cross entropy between P and the truth",
            True,
        ),
    )
}

# Constants of relaxed/probability.h:
# - the value below which losses cut logarithms;
# - the least probability whose reciprocal the error-free form takes;
# - the p above which 1 - p is computed as the sum of the column's other entries.
LOWEST_LOG, SURROGATE_LEAST, LARGE = (
    library.constant(name, "relaxed/probability.h")
    for name in ("lowest_log", "surrogate_least", "large_probability")
)


# Maps a loss and the form of its target to the name of the routing that computes it.
ROUTING_OF: dict[tuple[str, Payload], str] = {
    (name, form): name if form is Payload.TARGET else f"{name}_of_{form.value}"
    for name in LOSSES
    for form in Payload
    if form.is_target
}

ROUTINGS: dict[str, Routing] = {
    routing.name: routing
    for routing in (
        Routing("none", Payload.NOTHING, False, "sort", "select"),
        Routing("permutation", Payload.NOTHING, False, "sort_with_permutation", None),
        Routing("route", Payload.COLUMNS, False, "route", "route"),
        Routing("transposed", Payload.COLUMNS, True, "rank", None),
        Routing("rows", Payload.RANKS, True, "topk", "select_with_rows"),
        *(Routing(name, form, False, loss, None, loss) for (loss, form), name in ROUTING_OF.items()),
    )
}
