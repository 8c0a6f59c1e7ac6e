"""Selection: which of n values an operator gives, where it does not sort them all.

`top_k`, `median` and `ranks` make one. A selection knows the property that a network must have for it, and
how packages, their headers and commands name it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nsc.arguments import integer, wholes
from nsc.compiler.verify.property import Property, middle_ranks, ranked, top
from nsc.compiler.verify.property import median as median_property
from nsc.errors import LoweringError, PropertyError
from nsc.wording import argument

# The longest list of ranks that is part of a package's default name.
_LONGEST_LABEL = 12


class Selection(ABC):
    """What is selected of n values: `top_k(8)`, `median()` or `ranks(3, 7)`. Frozen, compared by value.

    >>> top_k(2).outputs(4)
    {3: 3, 2: 2}
    """

    # What packages call selections of this form, a key of SELECTIONS.
    form: ClassVar[str]

    @abstractmethod
    def property_of(self, n: int, wires: Sequence[int] | None = None) -> Property:
        """Return what a network on n wires must do: a wire for each selected rank.

        Args:
            n: number of wires.
            wires: the wires that carry the ranks, smallest rank first, or in the order of `ranks`; None: the
                wires that carry them in a sorting network.

        Raises:
            PropertyError: ranks that n wires do not have, or wires that do not fit.
        """

    def outputs(self, n: int, wires: Sequence[int] | None = None) -> dict[int, int]:
        """Return each output wire with its rank, in the order in which an operator gives them."""
        return self.property_of(n, wires).ranks

    def wires_of(self, outputs: Sequence[int]) -> tuple[int, ...]:
        """Return the wires of results as `outputs` takes them, given in the order of the results."""
        return tuple(outputs)

    @property
    @abstractmethod
    def label(self) -> str:
        """What it adds to a package's default name, such as top_8."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What it is in a sentence, such as "the 8 largest"."""

    @property
    @abstractmethod
    def option(self) -> str:
        """The option of `nsc compile` for it, such as "--top-k 8"."""


@dataclass(frozen=True, repr=False)
class TopK(Selection):
    """The k largest values, largest first."""

    form: ClassVar[str] = "top_k"

    k: int

    def __post_init__(self) -> None:
        k = integer("top_k", self.k, LoweringError)
        if k < 1:
            raise LoweringError(f"{argument('top_k')} must be 1 or more, got {k}")
        object.__setattr__(self, "k", k)

    def __repr__(self) -> str:
        return f"nsc.top_k({self.k})"

    def property_of(self, n: int, wires: Sequence[int] | None = None) -> Property:
        return top(n, self.k, wires)

    def outputs(self, n: int, wires: Sequence[int] | None = None) -> dict[int, int]:
        return dict(reversed(super().outputs(n, wires).items()))

    def wires_of(self, outputs: Sequence[int]) -> tuple[int, ...]:
        return tuple(reversed(outputs))

    @property
    def label(self) -> str:
        return f"top_{self.k}"

    @property
    def words(self) -> str:
        return "the largest" if self.k == 1 else f"the {self.k} largest"

    @property
    def option(self) -> str:
        return f"--top-k {self.k}"


@dataclass(frozen=True, repr=False)
class Median(Selection):
    """The middle value of an odd n."""

    form: ClassVar[str] = "median"

    def __repr__(self) -> str:
        return "nsc.median()"

    def property_of(self, n: int, wires: Sequence[int] | None = None) -> Property:
        middle = middle_ranks(n)
        if len(middle) > 1:
            lower, upper = middle
            raise PropertyError(
                f"{_as_given(self)}: the median of {n} values is the mean of ranks {lower} and {upper}, and "
                f"a selection gives values: select both, {_as_given(Ranks((lower, upper)))}, or one of them"
            )
        return median_property(n, wires)

    @property
    def label(self) -> str:
        return "median"

    @property
    def words(self) -> str:
        return "the median"

    @property
    def option(self) -> str:
        return "--median"


@dataclass(frozen=True, repr=False)
class Ranks(Selection):
    """The values of some ranks, in this order; rank 0 is the smallest value."""

    form: ClassVar[str] = "ranks"

    ranks: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = wholes(self.ranks)
        listed = ", ".join(map(repr, self.ranks)) or "none"
        if not numbers or min(numbers) < 0:
            is_list = len(self.ranks) == 1 and wholes(self.ranks[0]) is not None
            raise LoweringError(
                f"{argument('ranks')} must be one or more integers, each 0 or more, got {listed}"
                + (": spread a list, as nsc.ranks(*ranks)" if is_list else "")
            )
        if len(set(numbers)) < len(numbers):
            raise LoweringError(f"{argument('ranks')} must name each rank once, got {listed}")
        object.__setattr__(self, "ranks", numbers)

    def __repr__(self) -> str:
        return f"nsc.ranks({', '.join(map(str, self.ranks))})"

    def property_of(self, n: int, wires: Sequence[int] | None = None) -> Property:
        return ranked(n, self.ranks, wires)

    @property
    def label(self) -> str:
        label = f"rank_{'_'.join(map(str, self.ranks))}"
        return label if len(label) <= _LONGEST_LABEL else f"{len(self.ranks)}_ranks"

    @property
    def words(self) -> str:
        return f"rank {self.ranks[0]}" if len(self.ranks) == 1 else f"{len(self.ranks)} ranks"

    @property
    def option(self) -> str:
        return f"--ranks {','.join(map(str, self.ranks))}"


# Of each form, the selection of some ranks in order.
SELECTIONS: dict[str, Callable[[tuple[int, ...]], Selection]] = {
    TopK.form: lambda ranks: TopK(len(ranks)),
    Median.form: lambda ranks: Median(),
    Ranks.form: Ranks,
}


def _as_given(selection: Selection) -> str:
    """Return a selection for a message, as it is written in Python or on the command line."""
    return repr(selection) if argument("select") == "select" else selection.option


def top_k(k: int) -> Selection:
    """Select the k largest values, largest first, as torch.topk gives them.

    Raises:
        LoweringError: k is no integer, or less than 1. Whether n wires have k values is checked when a
            network is compiled.

    >>> top_k(8)
    nsc.top_k(8)
    """
    return TopK(k)


def median() -> Selection:
    """Select the median of an odd number of values.

    Of an even number it is the mean of two values, and no value itself: `ranks(7, 8)` selects these of 16.

    >>> median().outputs(5)
    {2: 2}
    """
    return Median()


def ranks(*ranks: int) -> Selection:
    """Select the values of some ranks, in the order named; rank 0 is the smallest value.

    A list is spread: `ranks(*[3, 7])` is `ranks(3, 7)`.

    Raises:
        LoweringError: no rank, one that is no integer, or one below 0. Whether n wires have these ranks is
            checked when a network is compiled.

    >>> ranks(3, 7)
    nsc.ranks(3, 7)
    """
    return Ranks(ranks)
