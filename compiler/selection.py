"""Selection: which of n values an operator gives, where it does not sort them all.

`top_k`, `median` and `ranks` make one. A selection knows the property that a network must have for it, and
how packages, their headers and commands name it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nsc.arguments import integer, wholes
from nsc.compiler.verify import Property, parse
from nsc.compiler.verify.property import middle_ranks
from nsc.errors import LoweringError, PropertyError
from nsc.wording import argument

# The longest list of ranks that is part of a package's default name.
_LONGEST_LABEL = 12


@dataclass(frozen=True, repr=False)
class Selection:
    """A selection from n values: `top_k(8)`, `median()` or `ranks(3, 7)`. Frozen, compared by value.

    Attributes:
        form: what packages call selections of this form, a key of SELECTIONS.
        ranks: the ranks of `ranks`, in its order; none of the other forms.
        property: the name of what a network must do.
        label: what it adds to a package's default name, such as top_8.
        words: what it is in a sentence, such as "the 8 largest".
        option: the option of `nsc compile` for it, such as "--top-k 8".
        call: how Python makes it, such as "nsc.top_k(8)".

    >>> top_k(2).outputs(4)
    {3: 3, 2: 2}
    """

    form: str
    ranks: tuple[int, ...]
    property: str
    label: str
    words: str
    option: str
    call: str

    def __repr__(self) -> str:
        return self.call

    def property_of(self, n: int, wires: Sequence[int] | None = None) -> Property:
        """Return what a network on n wires must do: a wire for each selected rank.

        Args:
            n: number of wires.
            wires: the wires that carry the ranks, smallest rank first, or in the order of `ranks`; None: the
                wires that carry them in a sorting network.

        Raises:
            PropertyError: ranks that n wires do not have, or wires that do not fit.
        """
        middle = middle_ranks(n)
        if self.form == "median" and len(middle) > 1:
            lower, upper = middle
            raise PropertyError(
                f"{_as_given(self)}: the median of {n} values is the mean of ranks {lower} and {upper}, and "
                f"a selection gives values: select both, {_as_given(ranks(lower, upper))}, or one of them"
            )
        return parse(self.property, n, wires)

    def outputs(self, n: int, wires: Sequence[int] | None = None) -> dict[int, int]:
        """Return each output wire with its rank, in the order in which an operator gives them."""
        given = self.property_of(n, wires).ranks
        return {wire: given[wire] for wire in self.wires_of(tuple(given))}

    def wires_of(self, outputs: Sequence[int]) -> tuple[int, ...]:
        """Return the wires of results as `outputs` takes them, given in the order of the results."""
        # An operator gives the largest value first, and the wires name the smallest one first.
        return tuple(outputs[::-1] if self.form == "top_k" else outputs)


def top_k(k: int) -> Selection:
    """Select the k largest values, largest first, as torch.topk gives them.

    Of equal values an exact selection takes the one with the lower index first.

    Raises:
        LoweringError: k is no integer, or less than 1. Whether n wires have k values is checked when a
            network is compiled.

    >>> top_k(8)
    nsc.top_k(8)
    """
    k = integer("top_k", k, LoweringError)
    if k < 1:
        raise LoweringError(f"{argument('top_k')} must be 1 or more, got {k}")
    return Selection(
        form="top_k",
        ranks=(),
        property=f"top-{k}",
        label=f"top_{k}",
        words="the largest" if k == 1 else f"the {k} largest",
        option=f"--top-k {k}",
        call=f"nsc.top_k({k})",
    )


def median() -> Selection:
    """Select the median of an odd number of values.

    The median of an even number of values is the mean of two values, and none of the values itself. Select
    these two: `ranks(7, 8)` does so for 16 values. An exact selection takes NaN for the largest value; a
    relaxed one gives NaN, as torch.median does.

    >>> median().outputs(5)
    {2: 2}
    """
    return Selection("median", (), "median", "median", "the median", "--median", "nsc.median()")


def ranks(*ranks: int) -> Selection:
    """Select the values of some ranks, in the order named; rank 0 is the smallest value.

    A list is spread: `ranks(*[3, 7])` is `ranks(3, 7)`.

    Raises:
        LoweringError: no rank, one that is no integer, or one below 0. Whether n wires have these ranks is
            checked when a network is compiled.

    >>> ranks(3, 7)
    nsc.ranks(3, 7)
    """
    numbers = wholes(ranks)
    listed = ", ".join(map(repr, ranks)) or "none"
    if not numbers or min(numbers) < 0:
        is_list = len(ranks) == 1 and wholes(ranks[0]) is not None
        raise LoweringError(
            f"{argument('ranks')} must be one or more integers, each 0 or more, got {listed}"
            + (": spread a list, as nsc.ranks(*ranks)" if is_list else "")
        )
    if len(set(numbers)) < len(numbers):
        raise LoweringError(f"{argument('ranks')} must name each rank once, got {listed}")
    texts = [*map(str, numbers)]
    label, some = f"rank_{'_'.join(texts)}", f"{len(texts)} ranks"
    return Selection(
        form="ranks",
        ranks=numbers,
        property=f"rank-{','.join(texts)}",
        label=label if len(label) <= _LONGEST_LABEL else some.replace(" ", "_"),
        words=f"rank {texts[0]}" if len(texts) == 1 else some,
        option=f"--ranks {','.join(texts)}",
        call=f"nsc.ranks({', '.join(texts)})",
    )


# For each form, the selection of some ranks in order.
SELECTIONS: dict[str, Callable[[tuple[int, ...]], Selection]] = {
    "top_k": lambda selected: top_k(len(selected)),
    "median": lambda selected: median(),
    "ranks": lambda selected: ranks(*selected),
}


def _as_given(selection: Selection) -> str:
    """Return a selection for a message, as it is written in Python or on the command line."""
    return selection.call if argument("select") == "select" else selection.option
