"""Statistics of samples, and the soft top k, as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from nsc.arguments import flag, real
from nsc.compiler.describe import Named
from nsc.errors import OperandTypeError
from nsc.nn.functional.entries import check_known
from nsc.nn.functional.statistics import RULES, levels_of, proportion_of
from nsc.nn.layer import LayerOptions, SortingLayer
from nsc.operators.samples import Lengths, Mask
from nsc.operators.sorter import Sorter
from nsc.sizes import Sizes

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Statistic(SortingLayer):
    def forward(self, x: Tensor, *, dim: int = -1, lengths: Lengths = None, mask: Mask = None) -> Tensor:
        """Return the statistic of the entries of x that take part."""
        return self._call(x, dim=dim, lengths=lengths, mask=mask)


class Quantile(_Statistic):
    """Quantiles of the relaxed sorted values, by torch.quantile's rules.

    Among m entries the quantile q lies at the rank q · (m - 1), computed in the dtype of x as torch does.
    Between two ranks it is

    - "linear": their values' linear interpolation,
    - "lower" or "higher": the lower or the higher value,
    - "nearest": the nearer value, the even rank's if both are as near,
    - "midpoint": the mean of both.

    A call takes x (…, n), and by name `dim`, the axis of x, and `lengths` or `mask`, which entries take part,
    as in `Sorter`. The result has the dtype of x, and the shape of x without the axis; several q make a new
    axis in front. float16 and bfloat16 are computed in float32. The result is NaN for a sample without
    entries, and for one with a NaN. Between two ranks it is infinite if one of their values is, and NaN
    between -∞ and ∞. Entries that take no part have no gradient.

    Cost per sample: a `Sorter.sort`, O(size). `SelectionNetwork` needs fewer comparators for few ranks.

    Args:
        q: in 0 … 1, one number or several.
        interpolation: one of these rules.
        network, n, steepness, learnable, options: as in `SortingNetwork`.

    Raises:
        OperandError: a q outside of 0 … 1, or none; no such interpolation. In a call: no such axis, or
            lengths or a mask that do not fit.
        OperandTypeError: a q that is no number. In a call: an argument of another type.
        NscError: as in `SortingNetwork`.

    >>> import torch
    >>> quartiles = Quantile("bitonic", 5, q=(0.25, 0.75), steepness=50.0)
    >>> quartiles(torch.tensor([4.0, 1.0, 2.0, 8.0, 16.0])).round(decimals=2)
    tensor([2., 8.])
    """

    _function = "quantile"
    _options = ("q", "interpolation")

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        q: float | Sequence[float],
        interpolation: str = "linear",
        **options: Unpack[LayerOptions],
    ) -> None:
        levels = levels_of("Quantile", q)
        check_known("Quantile", "interpolation", interpolation, RULES)
        super().__init__(network, n, **options)
        self.q: float | tuple[float, ...] = levels if real(q) is None else levels[0]
        self.interpolation = interpolation


class Median(_Statistic):
    """The median of the relaxed sorted values: for an even number of entries the mean of the middle two.

    numpy.median has the same rule; torch.median takes the lower value, as does `Quantile` with
    interpolation="lower". Calls, arguments, NaN, errors and cost: see `Quantile`.

    >>> import torch
    >>> Median("bitonic", 4, steepness=50.0)(torch.tensor([4.0, 1.0, 2.0, 8.0])).round(decimals=2)
    tensor(3.)
    """

    _function = "median"


class TrimmedMean(_Statistic):
    """The mean of the relaxed sorted values without the smallest and the largest.

    Among m entries int(proportion · m) are left out at each end, as in scipy.stats.trim_mean. Calls, NaN,
    other arguments, errors and cost: see `Quantile`.

    Args:
        proportion: the share of entries that is left out at each end, at least 0 and below 1/2.
        network, n, steepness, learnable, options: as in `Quantile`.

    Raises:
        OperandError: no such proportion; else as in `Quantile`.

    >>> import torch
    >>> mean = TrimmedMean("bitonic", 4, proportion=0.25, steepness=50.0)
    >>> mean(torch.tensor([4.0, 1.0, 2.0, 800.0])).round(decimals=2)
    tensor(3.)
    """

    _function = "trimmed_mean"
    _options = ("proportion",)

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        proportion: float,
        **options: Unpack[LayerOptions],
    ) -> None:
        share = proportion_of("TrimmedMean", proportion)
        super().__init__(network, n, **options)
        self.proportion = share


class MedianAbsoluteDeviation(_Statistic):
    """The relaxed median of the distances from the relaxed median, with one steepness for both.

    The result times 1.4826 estimates the standard deviation of normally distributed values. Calls, arguments,
    NaN and errors: see `Quantile`. Cost: two calls of `Sorter.sort`.

    Source: F. R. Hampel, The influence curve and its role in robust estimation, 1974.

    >>> import torch
    >>> deviation = MedianAbsoluteDeviation("bitonic", 4, steepness=50.0)
    >>> deviation(torch.tensor([4.0, 1.0, 2.0, 800.0])).round(decimals=2)
    tensor(1.5000)
    """

    _function = "median_absolute_deviation"


class SoftTopK(_Statistic):
    """Weights of the shape of x, in 0 … 1, that say how much of each value is among the k largest.

    They are Pᵀ times 1 for the k highest ranks, 0 for the others; P is never formed. So they add up to k, or
    to the number of entries if fewer take part. Other entries have the weight 0.

    With `straight_through` they are exactly 1 for the k largest, and 0 for the others; of equal values the
    one with the lower index counts as the larger. Their gradient is the soft weights'.

    Calls, other arguments and errors: see `Quantile`; the weights have the dtype of x, and are NaN in a
    sample with a NaN. Cost per sample: a `Sorter.rank`, O(size), with `straight_through` also an exact
    sort.

    Args:
        k: how many values are taken.
        straight_through: whether the weights are exact.
        network, n, steepness, learnable, options: as in `Quantile`.

    Raises:
        OperandError: a k outside of 1 … n; else as in `Quantile`.
        OperandTypeError: a straight_through that is no bool; else as in `Quantile`.

    Source of the straight-through gradient: Bengio, Léonard & Courville, Estimating or Propagating Gradients
    Through Stochastic Neurons, 2013.

    >>> import torch
    >>> x = torch.tensor([4.0, 1.0, 2.0, 3.5])
    >>> SoftTopK("bitonic", 4, k=2, steepness=2.0)(x).sum().round(decimals=2)
    tensor(2.)
    >>> SoftTopK("bitonic", 4, k=2, straight_through=True)(x)
    tensor([1., 0., 0., 1.])
    """

    _function = "soft_top_k"
    _options = ("k", "straight_through")

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        k: int,
        straight_through: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(network, n, **options)
        self.k = self._k(k)
        self.straight_through = flag("straight_through", straight_through, OperandTypeError)
