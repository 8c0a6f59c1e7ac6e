"""Layers that sort, and that select some ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from nsc.api import Options, compile
from nsc.compiler.describe import Named
from nsc.compiler.selection import Selection
from nsc.errors import LoweringError, OperandTypeError
from nsc.nn.layer import Layer, SortingLayer, refuse_options
from nsc.operators.exact import Sorted
from nsc.operators.samples import Lengths, ListOptions, Mask, SelectOptions, SortOptions
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.operators.targets import LossOptions, RowLossOptions, Target

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SortingNetwork(SortingLayer):
    """A relaxed sorting network: x (…, n) to sorted values (…, n) and P (…, n, n).

    It has the methods of `Sorter`, at the module's steepness. A module that is converted to another
    dtype, as by `.double()`, or moved to a GPU, compiles its network for it too.

    Args:
        network: a Sorter, Sizes, or what `nsc.compile` takes: a family's name, a file, a Network, lists.
        n: number of wires, as `nsc.compile` takes it. A family without n serves any number of values, which
            may change from call to call, and lists of every kind: see `Sizes`.
        steepness: in units of x^(λ − 1); None: 2 × depth; without n 2 × the depth of the network of a
            call's size.
        learnable: whether the steepness is a parameter. It is kept as `log_steepness`, of shape (1,), so
            that no step of an optimiser can make it negative.
        options: further options of `nsc.compile`, such as relaxation.

    Raises:
        OperandError: a steepness that is no finite number above 0, no steepness for a learnable one without
            n, or options beside a Sorter or Sizes, which are compiled already.
        OperandTypeError: a Selector, which is for SelectionNetwork, or a learnable that is no bool.
        LoweringError: select, which is for SelectionNetwork.
        NscError: what `nsc.compile` raises.

    >>> import torch
    >>> layer = SortingNetwork("odd_even", 3, steepness=100.0)
    >>> values, P = layer(torch.tensor([2.0, 3.0, 1.0]))
    >>> values.round()
    tensor([1., 2., 3.])
    >>> any_number = SortingNetwork(steepness=100.0)
    >>> [any_number.rank(torch.rand(m)).shape for m in (3, 30)]
    [torch.Size([3]), torch.Size([30])]
    """

    def forward(
        self,
        x: Tensor,
        *,
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
        straight_through: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return values and P; see `Sorter.sort_with_permutation`."""
        return self.sort_with_permutation(
            x, dim=dim, lengths=lengths, mask=mask, fill=fill, straight_through=straight_through
        )

    def sort(self, x: Tensor, **options: Unpack[ListOptions]) -> Tensor:
        """Return the relaxed sorted values, (…, n); see `Sorter.sort`."""
        return self._relaxed("sort", x, **options)  # type: ignore[no-any-return]

    def sort_with_permutation(self, x: Tensor, **options: Unpack[ListOptions]) -> tuple[Tensor, Tensor]:
        """Return values and P, as a call of the module does."""
        return self._relaxed("sort_with_permutation", x, **options)  # type: ignore[no-any-return]

    def rank(self, x: Tensor, **options: Unpack[ListOptions]) -> Tensor:
        """Return the soft ranks, (…, n); see `Sorter.rank`."""
        return self._relaxed("rank", x, **options)  # type: ignore[no-any-return]

    def route(self, x: Tensor, payload: Tensor, **options: Unpack[ListOptions]) -> Tensor:
        """Return P @ payload, (…, n, m); see `Sorter.route`."""
        return self._relaxed("route", x, payload, **options)  # type: ignore[no-any-return]

    def topk(self, x: Tensor, k: int, **options: Unpack[ListOptions]) -> tuple[Tensor, Tensor]:
        """Return the k largest values, largest first, and their rows of P; see `Sorter.topk`."""
        return self._relaxed("topk", x, k, **options)  # type: ignore[no-any-return]

    def top_k_weights(self, x: Tensor, k: int, **options: Unpack[ListOptions]) -> Tensor:
        """Return how much of each value is among the k largest, (…, n); see `Sorter.top_k_weights`."""
        return self._relaxed("top_k_weights", x, k, **options)  # type: ignore[no-any-return]

    def loss(
        self, name: str, x: Tensor, target: Target | None = None, **options: Unpack[LossOptions]
    ) -> Tensor:
        """Return a loss of P against a target, by its name; see `Sorter.loss`."""
        return self._relaxed("loss", name, x, target, **options)  # type: ignore[no-any-return]

    def cross_entropy(
        self, x: Tensor, target: Target | None = None, **options: Unpack[LossOptions]
    ) -> Tensor:
        """Return the paper's loss against a target; see `Sorter.cross_entropy`."""
        return self._relaxed("cross_entropy", x, target, **options)  # type: ignore[no-any-return]

    def binary_cross_entropy(
        self, x: Tensor, target: Target | None = None, **options: Unpack[LossOptions]
    ) -> Tensor:
        """Return the binary cross entropy of P; see `Sorter.binary_cross_entropy`."""
        return self._relaxed("binary_cross_entropy", x, target, **options)  # type: ignore[no-any-return]

    def hard_sort(self, x: Tensor, dim: int = -1, **options: Unpack[SortOptions]) -> Sorted:
        """Return exactly sorted values and indices, which no steepness changes; see `Sorter.hard_sort`."""
        return self._exact("hard_sort", x, dim=dim, **options)  # type: ignore[no-any-return]


class SelectionNetwork(Layer[Selector]):
    """A network for some ranks alone: x (…, n) to their values (…, k) and their rows of P (…, k, n).

    It has the methods of `Selector`, at the module's steepness. A module that is converted to another
    dtype, as by `.double()`, or moved to a GPU, compiles its network for it too.

    Args:
        network: a Selector, or what `nsc.compile` takes.
        n: number of wires, as `nsc.compile` takes it.
        select: the selection, as `nsc.compile` takes it; needed unless the network is a Selector.
        steepness: in units of x^(λ − 1); None: 2 × depth.
        learnable: as in `SortingNetwork`.
        options: further options of `nsc.compile`, such as relaxation.

    Raises:
        OperandError: a steepness that is no finite number above 0, or options beside a Selector, which is
            compiled already.
        LoweringError: nothing is selected.
        OperandTypeError: a Sorter, which is for SortingNetwork, or a learnable that is no bool.
        NscError: what `nsc.compile` raises.

    >>> import nsc, torch
    >>> layer = SelectionNetwork("odd_even", 3, select=nsc.median(), steepness=100.0)
    >>> layer.select(torch.tensor([2.0, 3.0, 1.0])).round()
    tensor([2.])
    """

    def __init__(
        self,
        network: Selector | Named,
        n: int | None = None,
        *,
        select: Selection | None = None,
        steepness: float | None = None,
        learnable: bool = False,
        **options: Unpack[Options],
    ) -> None:
        if isinstance(network, Sorter):
            raise OperandTypeError(f"{network.name} is a Sorter, which nsc.nn.SortingNetwork takes")
        if isinstance(network, Selector):
            refuse_options(network, n=n, select=select, **options)
        elif select is None:
            raise LoweringError(
                "SelectionNetwork: nothing is selected: add select=nsc.top_k(8) or the like; "
                "nsc.nn.SortingNetwork sorts"
            )
        else:
            network = compile(network, n, select=select, **options)
        super().__init__(network, steepness, learnable)

    def forward(
        self,
        x: Tensor,
        *,
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
        straight_through: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return the ranks' values and rows of P; see `Selector.select_with_rows`."""
        return self.select_with_rows(
            x, dim=dim, lengths=lengths, mask=mask, fill=fill, straight_through=straight_through
        )

    def select(self, x: Tensor, **options: Unpack[ListOptions]) -> Tensor:
        """Return the relaxed values of the ranks, (…, k); see `Selector.select`."""
        return self._relaxed("select", x, **options)  # type: ignore[no-any-return]

    def select_with_rows(self, x: Tensor, **options: Unpack[ListOptions]) -> tuple[Tensor, Tensor]:
        """Return the ranks' values and rows of P, as a call of the module does."""
        return self._relaxed("select_with_rows", x, **options)  # type: ignore[no-any-return]

    def route(self, x: Tensor, payload: Tensor, **options: Unpack[ListOptions]) -> Tensor:
        """Return the ranks' rows of P @ payload, (…, k, m); see `Selector.route`."""
        return self._relaxed("route", x, payload, **options)  # type: ignore[no-any-return]

    def loss(self, name: str, x: Tensor, target: Tensor, **options: Unpack[RowLossOptions]) -> Tensor:
        """Return a loss of the rows against what they should be, by its name; see `Selector.loss`."""
        return self._relaxed("loss", name, x, target, **options)  # type: ignore[no-any-return]

    def cross_entropy(self, x: Tensor, target: Tensor, **options: Unpack[RowLossOptions]) -> Tensor:
        """Return the cross entropy of the rows; see `Selector.cross_entropy`."""
        return self._relaxed("cross_entropy", x, target, **options)  # type: ignore[no-any-return]

    def binary_cross_entropy(self, x: Tensor, target: Tensor, **options: Unpack[RowLossOptions]) -> Tensor:
        """Return the binary cross entropy of the rows; see `Selector.binary_cross_entropy`."""
        return self._relaxed("binary_cross_entropy", x, target, **options)  # type: ignore[no-any-return]

    def hard_select(self, x: Tensor, dim: int = -1, **options: Unpack[SelectOptions]) -> Sorted:
        """Return exact values and indices, which no steepness changes; see `Selector.hard_select`."""
        return self._exact("hard_select", x, dim=dim, **options)  # type: ignore[no-any-return]
