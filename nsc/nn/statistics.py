"""Statistics of samples, and the soft top k, as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from nsc.api import Options
from nsc.arguments import flag, real
from nsc.compiler.describe import Named
from nsc.errors import OperandTypeError
from nsc.nn.functional.statistics import check_interpolation, levels_of, proportion_of
from nsc.nn.layer import SortingLayer
from nsc.operators.lists import Lengths, Mask
from nsc.operators.sorter import Sorter
from nsc.sizes import Sizes

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Quantile(SortingLayer):
    """Quantiles of the relaxed sorted values, by torch.quantile's rules.

    Of m entries the quantile q lies at the rank q · (m - 1), computed in the dtype of x as torch does.
    Between two ranks it is

    - "linear": their values' linear interpolation,
    - "lower" or "higher": the lower or the higher value,
    - "nearest": the nearer value, that of the even rank if both are as near,
    - "midpoint": the mean of both.

    A call takes x (…, n), and by name `dim`, the axis of x, and `lengths` or `mask`, which entries take part,
    as of `Sorter`. The result has the shape of x without the axis, for several q with a new axis in front;
    and the dtype of x. float16 and bfloat16 are computed in float32. It is NaN for a sample without entries,
    and for one with a NaN. What takes no part has no
    gradient. A module that is converted to another dtype, as by `.double()`, or moved to a GPU, compiles its
    network for it too.

    Cost per sample: that of `Sorter.sort`, O(size). `SelectionNetwork` needs fewer comparators for few ranks.

    Args:
        network: a Sorter, Sizes, or what `nsc.compile` takes: a family's name, a file, a Network, lists.
        n: number of wires, as `nsc.compile` takes it. A family without n serves any number of values, from
            call to call another, and lists of every kind: see `Sizes`.
        q: in 0 … 1, one number or several.
        interpolation: one of these rules.
        steepness: in units of x^(λ − 1); None: 2 × depth, without n that of the network of a call's size.
        learnable: whether the steepness is a parameter, as of `SortingNetwork`.
        options: further options of `nsc.compile`, such as relaxation.

    Raises:
        OperandError: a q outside of 0 … 1, or none; no such interpolation; a steepness that is no finite
            number above 0; none for a learnable one without n; or options beside a Sorter or Sizes, which are
            compiled already. In a call: no such axis, or lengths or a mask that do not fit.
        OperandTypeError: a q that is no number, a Selector, or a learnable that is no bool. In a call: an
            argument of another type.
        NscError: what `nsc.compile` raises.

    >>> import torch
    >>> quartiles = Quantile("bitonic", 5, q=(0.25, 0.75), steepness=50.0)
    >>> quartiles(torch.tensor([4.0, 1.0, 2.0, 8.0, 16.0])).round(decimals=2)
    tensor([2., 8.])
    """

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        q: float | Sequence[float],
        interpolation: str = "linear",
        steepness: float | None = None,
        learnable: bool = False,
        **options: Unpack[Options],
    ) -> None:
        levels = levels_of("Quantile", q)
        check_interpolation("Quantile", interpolation)
        super().__init__(network, n, steepness=steepness, learnable=learnable, **options)
        self.q: float | tuple[float, ...] = levels if real(q) is None else levels[0]
        self.interpolation = interpolation

    def forward(self, x: Tensor, *, dim: int = -1, lengths: Lengths = None, mask: Mask = None) -> Tensor:
        """Return the quantiles; see `nsc.nn.functional.quantile`."""
        return self._function(
            "quantile", x, self.q, interpolation=self.interpolation, dim=dim, lengths=lengths, mask=mask
        )

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        return f"q={self.q}, interpolation={self.interpolation!r}, {super().extra_repr()}"


class Median(SortingLayer):
    """The median of the relaxed sorted values: of an even number of entries the mean of the middle two.

    numpy.median has the same rule; torch.median takes the lower value, as does `Quantile` with
    interpolation="lower". Calls, arguments, NaN, errors and cost as of `Quantile`.

    >>> import torch
    >>> Median("bitonic", 4, steepness=50.0)(torch.tensor([4.0, 1.0, 2.0, 8.0])).round(decimals=2)
    tensor(3.)
    """

    def forward(self, x: Tensor, *, dim: int = -1, lengths: Lengths = None, mask: Mask = None) -> Tensor:
        """Return the median; see `nsc.nn.functional.median`."""
        return self._function("median", x, dim=dim, lengths=lengths, mask=mask)


class TrimmedMean(SortingLayer):
    """The mean of the relaxed sorted values without the smallest and the largest.

    Of m entries int(proportion · m) are left out at each end, as in scipy.stats.trim_mean. Calls, NaN, other
    arguments, errors and cost as of `Quantile`.

    Args:
        proportion: what is left out at each end, at least 0 and below 1/2.
        network, n, steepness, learnable, options: as of `Quantile`.

    Raises:
        OperandError: no such proportion; else as of `Quantile`.

    >>> import torch
    >>> mean = TrimmedMean("bitonic", 4, proportion=0.25, steepness=50.0)
    >>> mean(torch.tensor([4.0, 1.0, 2.0, 800.0])).round(decimals=2)
    tensor(3.)
    """

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        proportion: float,
        steepness: float | None = None,
        learnable: bool = False,
        **options: Unpack[Options],
    ) -> None:
        share = proportion_of("TrimmedMean", proportion)
        super().__init__(network, n, steepness=steepness, learnable=learnable, **options)
        self.proportion = share

    def forward(self, x: Tensor, *, dim: int = -1, lengths: Lengths = None, mask: Mask = None) -> Tensor:
        """Return the mean; see `nsc.nn.functional.trimmed_mean`."""
        return self._function("trimmed_mean", x, self.proportion, dim=dim, lengths=lengths, mask=mask)

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        return f"proportion={self.proportion:g}, {super().extra_repr()}"


class MedianAbsoluteDeviation(SortingLayer):
    """The median of the distances from the median, both relaxed, at the same steepness.

    Times 1.4826 it estimates the standard deviation of normally distributed values. Calls, arguments, NaN and
    errors as of `Quantile`; cost: that of two calls of `Sorter.sort`.

    Source: F. R. Hampel, The influence curve and its role in robust estimation, 1974.

    >>> import torch
    >>> deviation = MedianAbsoluteDeviation("bitonic", 4, steepness=50.0)
    >>> deviation(torch.tensor([4.0, 1.0, 2.0, 800.0])).round(decimals=2)
    tensor(1.5000)
    """

    def forward(self, x: Tensor, *, dim: int = -1, lengths: Lengths = None, mask: Mask = None) -> Tensor:
        """Return the deviation; see `nsc.nn.functional.median_absolute_deviation`."""
        return self._function("median_absolute_deviation", x, dim=dim, lengths=lengths, mask=mask)


class SoftTopK(SortingLayer):
    """Weights of the shape of x, in 0 … 1, that say how much of each value is among the k largest.

    They are Pᵀ times 1 for the k highest ranks, 0 for the others; P is never formed. So they add up to k, or
    to the number of entries if fewer take part. What takes no part has the weight 0.

    With `straight_through` they are exactly 1 for the k largest, of equal values the later ones, and 0 for
    the others. Their gradient is that of the soft weights.

    Calls, other arguments and errors as of `Quantile`; the weights have the dtype of x, and are NaN in a
    sample with a NaN. Cost per sample: that of `Sorter.rank`, O(size), with `straight_through` also an exact
    sort.

    Args:
        k: how many values are taken.
        straight_through: whether the weights are exact.
        network, n, steepness, learnable, options: as of `Quantile`.

    Raises:
        OperandError: a k outside of 1 … n; else as of `Quantile`.
        OperandTypeError: a straight_through that is no bool; else as of `Quantile`.

    Source of the straight-through gradient: Bengio, Léonard & Courville, Estimating or Propagating Gradients
    Through Stochastic Neurons, 2013.

    >>> import torch
    >>> x = torch.tensor([4.0, 1.0, 2.0, 3.5])
    >>> SoftTopK("bitonic", 4, k=2, steepness=2.0)(x).sum().round(decimals=2)
    tensor(2.)
    >>> SoftTopK("bitonic", 4, k=2, straight_through=True)(x)
    tensor([1., 0., 0., 1.])
    """

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        k: int,
        straight_through: bool = False,
        steepness: float | None = None,
        learnable: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(network, n, steepness=steepness, learnable=learnable, **options)
        self.k = self._k(k)
        self.straight_through = flag("straight_through", straight_through, OperandTypeError)

    def forward(self, x: Tensor, *, dim: int = -1, lengths: Lengths = None, mask: Mask = None) -> Tensor:
        """Return the weights; see `nsc.nn.functional.soft_top_k`."""
        return self._function(
            "soft_top_k",
            x,
            self.k,
            straight_through=self.straight_through,
            dim=dim,
            lengths=lengths,
            mask=mask,
        )

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        straight = ", straight_through=True" if self.straight_through else ""
        return f"k={self.k}{straight}, {super().extra_repr()}"
