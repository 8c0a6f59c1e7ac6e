"""Losses of rankings as layers: of an order, and of measures such as Spearman's correlation and NDCG."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from nsc.compiler.describe import Named
from nsc.nn.functional.entries import SampleOptions, check_known, check_orders
from nsc.nn.functional.ranking import GAINS, LINKS, WAYS, list_rank_loss
from nsc.nn.layer import LayerOptions, SortingLayer, watch
from nsc.operators.operator import Operator
from nsc.operators.samples import Lengths, Mask
from nsc.operators.sorter import Sorter
from nsc.operators.targets import check_reduction
from nsc.sizes import Sizes

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ReducedOptions(LayerOptions, total=False):
    """Options of losses by name: a reduction over samples, then options of layers."""

    reduction: str


class RankingOptions(ReducedOptions, total=False):
    """Options of losses of rankings by name: also in how many orders the network takes the items."""

    orders: int


class RankingLoss(SortingLayer):
    """A Sorter or Sizes, its steepness, a reduction over samples, and a number of orders."""

    _options: ClassVar[tuple[str, ...]] = ("reduction", "orders")

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        reduction: str = "mean",
        orders: int = 1,
        **options: Unpack[LayerOptions],
    ) -> None:
        check_reduction(type(self).__name__, reduction)
        super().__init__(network, n, **options)
        self.reduction = reduction
        self.orders = check_orders(type(self).__name__, orders)

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        *,
        weight: Tensor | None = None,
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
    ) -> Tensor:
        """Return the loss of scores against relevances."""
        loss = self._call(scores, relevance, weight=weight, dim=dim, lengths=lengths, mask=mask)
        watch(type(self).__name__, scores, relevance, loss)
        return loss


class TargetLoss(RankingLoss):
    """A loss of a ranking whose labels are a target: numbers whose order alone counts."""

    def forward(
        self,
        scores: Tensor,
        target: Tensor,
        *,
        weight: Tensor | None = None,
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
    ) -> Tensor:
        """Return the loss of scores against a target."""
        return super().forward(scores, target, weight=weight, dim=dim, lengths=lengths, mask=mask)


class OrderLoss(TargetLoss):
    """The loss to learn an order by: the cross entropy of P between the orders of scores and of a target.

    It is the paper's loss, `Sorter.cross_entropy`, with other settings: the odd-even network, the Cauchy
    relaxation without the activation replacement trick, and the mean over 16 orders of the items. On
    Fashion-MNIST no other measured method is ahead of it. `nsc.nn.SortingNetwork` has the paper's settings.

    A network's P of scores that nearly tie depends on where their items stand, and so does the gradient. In
    the mean over several orders this part of the gradient is small. The orders are fixed, so the same input
    gives the same bits.

    Equal targets share their ranks: each item may have any of them. A sample without entries has the loss 0
    and counts nothing in the mean. A call is as in `SpearmanLoss`; dtypes, NaN, other arguments and errors
    too.

    Cost per sample and order: a `Sorter.cross_entropy`, O(n·size), which is O(n³) of odd-even and
    O(n²·log² n) of bitonic: from n = 100 on take "bitonic".

    Args:
        network: as in `SortingNetwork`; a Sorter or Sizes keeps its relaxation.
        orders: in how many orders the network takes the items.
        options: as in `SpearmanLoss`; if they are left out, relaxation is "cauchy" and art_lambda 0.
        n, reduction, steepness, learnable: as in `SpearmanLoss`.

    Source: equation 6 of Petersen et al., ICML 2021, for the loss. The settings were chosen on validation
    data: the page on relaxations.

    >>> import torch
    >>> loss, target = OrderLoss(n=4), torch.tensor([10.0, 30.0, 20.0, 40.0])
    >>> right, wrong = torch.tensor([1.0, 3.0, 2.0, 4.0]), torch.tensor([4.0, 2.0, 3.0, 1.0])
    >>> bool(loss(right, target) < loss(wrong, target))
    True
    """

    _function = "order_loss"

    def __init__(
        self,
        network: Sorter | Sizes | Named = "odd_even",
        n: int | None = None,
        *,
        orders: int = 16,
        **options: Unpack[ReducedOptions],
    ) -> None:
        if not isinstance(network, Operator | Sizes):
            options = {"relaxation": "cauchy", "art_lambda": 0.0, **options}
        super().__init__(network, n, orders=orders, **options)


class SpearmanLoss(TargetLoss):
    """1 - Spearman's correlation between the soft ranks of scores and the exact ranks of a target.

    0 is the order of the target, 2 the reverse. Equal targets share the mean of their ranks, as in
    scipy.stats.spearmanr. A sample of fewer than two entries, or of equal targets alone, has no correlation.
    Its loss is 0 and it counts nothing in the mean.

    The covariance of the ranks is divided by two norms: the norm of the target's ranks, and the norm of 0 …
    m-1. The second norm cannot vanish, but the norm of the soft ranks could. So equal scores have the
    correlation 0, or close to it, and a gradient of the usual size. Where no two scores are equal, a large
    steepness gives scipy's value.

    The network takes the items in a fixed order of its own, as in all losses of rankings. So equal scores do
    not look good in a list that is stored by its relevance. With several orders the loss is the mean over
    them, and depends less on where an item stands. The same input gives the same bits.

    A call takes scores (…, n) and target, numbers of the same shape, which have no gradient, and by name:

    - `weight`: the weight of each sample, of the shape of scores without the axis `dim`.
    - `dim`: the axis of scores and target.
    - `lengths` or `mask`: which entries take part, as in `Sorter`. Other entries do not matter, and have no
      gradient.

    The loss has the dtype of scores, under autocast at least float32; float16 and bfloat16 are computed in
    float32. A NaN among the scores of a sample makes its loss NaN.

    Cost per sample and order: a `Sorter.rank`, O(size), and an exact sort of the target.

    Args:
        reduction: over samples: "mean", over the samples that count, 0 if none counts; "sum"; or "none" for
            the loss of each sample, times its weight.
        orders: in how many orders the network takes the items.
        network, n, steepness, learnable, options: as in `SortingNetwork`.

    Raises:
        OperandError: an unknown reduction, or orders below 1. In a call: a target, weight, lengths or mask
            that does not fit, or a NaN in the target, which is found in plain tensors of the CPU alone.
        NscError: as in `SortingNetwork`.

    Source: C. Spearman 1904; soft ranks in it as in the label ranking of Blondel et al., Fast Differentiable
    Sorting and Ranking, ICML 2020, with their own relaxation.

    >>> import torch
    >>> loss, target = SpearmanLoss("bitonic", 4, steepness=50.0), torch.tensor([10.0, 30.0, 20.0, 40.0])
    >>> loss(torch.tensor([1.0, 3.0, 2.0, 4.0]), target).round(decimals=2)
    tensor(0.)
    >>> of_any_n = SpearmanLoss(steepness=50.0)
    >>> of_any_n(torch.arange(9.0), torch.arange(9.0)).round(decimals=2)
    tensor(0.)
    """

    _function = "spearman_loss"


class NDCGLoss(RankingLoss):
    """1 - the expected NDCG, normalised discounted cumulative gain, of the relaxed order.

    An item of relevance r is worth 2^r - 1 (gain "exponential") or r ("linear"). At position 1, 2, … from the
    top this gain is multiplied by 1 / log2(1 + position). The sum of the products is divided by the largest
    sum that an order can have.

    A sample without a positive gain has no NDCG: its loss is 0 and it counts nothing in the mean.

    By "route" P routes the gains, and the expected gain at a position has the factor of this position. By
    "ranks" the gain of an item has the factor of the position of its soft rank, which may lie between two
    whole positions.

    A call takes scores (…, n), the largest comes first, and relevance of the same shape, numbers of at least
    0 or booleans, which have no gradient. By name it takes what `SpearmanLoss` takes. Dtypes, NaN, other
    arguments and errors are as in `SpearmanLoss`. sklearn.metrics.ndcg_score has the gain "linear".

    Cost per sample and order: a `Sorter.route` of one column or a `Sorter.rank`, O(size), and an exact sort
    of the gains.

    Args:
        k: positions beyond it count nothing; None: all count. By "ranks" this falls linearly from the
            position k to k + 1.
        by: "route" or "ranks".
        gain: "exponential" or "linear".
        network, n, reduction, orders, steepness, learnable, options: as in `SpearmanLoss`.

    Raises:
        OperandError: a k outside 1 … n, or no such way or gain. In a call: a relevance that is negative or
            NaN, which is found in plain tensors of the CPU alone. Else as in `SpearmanLoss`.

    Source: Järvelin & Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002; the exponential
    gain of Burges et al., ICML 2005. By route: Pobrotyn & Białobrzeski, NeuralNDCG, 2021; by ranks: Qin, Liu
    & Li, ApproxNDCG, 2010, with their own relaxations.

    >>> import torch
    >>> loss, relevance = NDCGLoss("bitonic", 4, k=3, steepness=50.0), torch.tensor([0, 1, 0, 2])
    >>> loss(torch.tensor([4.0, 2.0, 3.0, 1.0]), relevance).round(decimals=2)
    tensor(0.8600)
    """

    _function = "ndcg_loss"
    _options = ("k", "by", "gain", "reduction", "orders")

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        k: int | None = None,
        by: str = "route",
        gain: str = "exponential",
        **options: Unpack[RankingOptions],
    ) -> None:
        check_known("NDCGLoss", "by", by, WAYS)
        check_known("NDCGLoss", "gain", gain, GAINS)
        super().__init__(network, n, **options)
        self.k = None if k is None else self._k(k)
        self.by, self.gain = by, gain


class PrecisionAtK(RankingLoss):
    """1 - the expected precision at k: the share of relevant items among the first k.

    An item is relevant if its relevance is above 0, or True. The number of relevant items is divided by k, in
    samples of fewer entries too. A sample without entries counts nothing in the mean.

    A call is as in `NDCGLoss`. Cost per sample and order: a `Sorter.route` of one column, O(size).

    Args:
        k: how many items are looked at.
        network, n, reduction, orders, steepness, learnable, options: as in `SpearmanLoss`.

    Raises:
        OperandError: a k outside 1 … n; else as in `NDCGLoss`.

    >>> import torch
    >>> loss = PrecisionAtK("bitonic", 4, k=2, steepness=50.0)
    >>> loss(torch.tensor([1.0, 3.0, 4.0, 5.0]), torch.tensor([0, 1, 0, 1])).round(decimals=2)
    tensor(0.5000)
    """

    _function = "precision_at_k_loss"
    _options = ("k", "reduction", "orders")

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        k: int,
        **options: Unpack[RankingOptions],
    ) -> None:
        super().__init__(network, n, **options)
        self.k = self._k(k)


class MRRLoss(RankingLoss):
    """1 - the expected reciprocal of the first relevant item's position; the mean of reciprocals is the MRR.

    An item is relevant if its relevance is above 0, or True. Let b_p be the share of relevant items at
    position p from the top. A reader goes from position to position and stops with this probability, so the
    reciprocal is

        Σ_p b_p / p · Π_{q < p} (1 - b_q)

    A sample without a relevant item has no such position: its loss is 0 and it counts nothing in the mean.

    A call is as in `NDCGLoss`. Cost per sample and order: a `Sorter.route` of one column, O(size).

    Args:
        k: positions beyond it count nothing; None: all count.
        network, n, reduction, orders, steepness, learnable, options: as in `SpearmanLoss`.

    Raises:
        OperandError: a k outside 1 … n; else as in `NDCGLoss`.

    Source: the cascade of Chapelle, Metzler, Zhang & Grinspan, Expected Reciprocal Rank for Graded Relevance,
    CIKM 2009, with the share of relevant items in place of their probability of a stop.

    >>> import torch
    >>> loss, relevance = MRRLoss("bitonic", 4, steepness=50.0), torch.tensor([True, False, True, False])
    >>> loss(torch.tensor([1.0, 4.0, 3.0, 2.0]), relevance).round(decimals=2)
    tensor(0.5000)
    """

    _function = "mrr_loss"
    _options = ("k", "reduction", "orders")

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        k: int | None = None,
        **options: Unpack[RankingOptions],
    ) -> None:
        super().__init__(network, n, **options)
        self.k = None if k is None else self._k(k)


class ListRankLoss(torch.nn.Module):
    """ListRank and ListNet: the cross entropy of top-one probabilities of scores and of relevances.

    The probability that item i comes first is

        exp(g(s_i)) / Σ_j exp(g(s_j))        by the scores s
        exp(r_i) / Σ_j exp(r_j)              by the relevances r

    The link g is "logistic" for ListRank, which bounds the effect of a score, and "identity" for ListNet.
    Nothing is sorted, so there is no network and no steepness. The loss says nothing of positions below the
    first; losses of a sorted order are compared with it.

    A call takes scores (…, n) for any n and relevance of the same shape, any numbers, which have no gradient;
    both may be lists of the kinds that `Sizes` take. By name it takes what `SpearmanLoss` takes. Dtypes and
    NaN are as in `SpearmanLoss`. A sample without entries has the loss 0 and counts nothing in the mean.

    Cost per sample: O(n).

    Args:
        link: "logistic" or "identity".
        reduction: over samples: "mean", "sum", or "none" for the loss of each sample, times its weight.

    Raises:
        OperandError: no such link or reduction. In a call: a relevance, weight, lengths or mask that does not
            fit, or a NaN in the relevance, which is found in plain tensors of the CPU alone.
        OperandTypeError: in a call: an argument of another type.

    Source: Shi, Larson & Hanjalic, List-wise Learning to Rank with Matrix Factorization for Collaborative
    Filtering, RecSys 2010, without its factors; Cao et al., Learning to Rank: From Pairwise Approach to
    Listwise Approach, ICML 2007, with top-one probabilities.

    >>> import torch
    >>> loss = ListRankLoss()
    >>> loss(torch.tensor([-9.0, 9.0]), torch.tensor([0, 1])).round(decimals=2)
    tensor(0.5800)
    """

    def __init__(self, *, link: str = "logistic", reduction: str = "mean") -> None:
        check_known("ListRankLoss", "link", link, LINKS)
        check_reduction("ListRankLoss", reduction)
        super().__init__()
        self.link, self.reduction = link, reduction

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        *,
        weight: Tensor | None = None,
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
    ) -> Tensor:
        """Return the loss; see `nsc.nn.functional.list_rank_loss`."""
        options: SampleOptions = {"weight": weight, "dim": dim, "lengths": lengths, "mask": mask}
        return list_rank_loss(scores, relevance, link=self.link, reduction=self.reduction, **options)

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        return f"link={self.link!r}, reduction={self.reduction!r}"


# For torch.fx it is one node: it looks at facts that the symbols of a trace do not have.
torch.fx.wrap("list_rank_loss")
