"""Losses of scores against relevances: measures of rankings, as expected under the relaxed order.

Every loss takes these arguments; `list_rank_loss` has no operator and no steepness, as it sorts nothing:

    operator: a Sorter of n values; or Sizes, for any n and for lists of every kind.
    scores: (…, n); the largest comes first.
    target or relevance: the shape of scores, numbers of any real dtype. It has no gradient.
    steepness: as in the operator's methods; None: its default.
    weight: the weight of each sample, of the shape of scores without the axis `dim`; None: all the same.
    reduction: over samples: mean, sum, or none for the loss of each sample, times its weight. The mean is
        over the samples that count, and 0 if none counts.
    dim: the axis of scores and of target or relevance.
    lengths, mask: which entries take part, as in the operator's methods. Other entries do not matter, and
        have no gradient.
    orders: in how many orders the network takes the items; the loss is the mean over them.

Losses have the dtype of scores, under autocast at least float32; float16 and bfloat16 are computed in
float32. A NaN among the scores of a sample makes its loss NaN. A NaN or a negative relevance among the
entries that take part is refused on the CPU, where values can be looked at; on a GPU, and in a trace, it
gives NaN or a number without a meaning. Cost per sample and order: a `Sorter.rank` or a `Sorter.route` of
one column, O(size), or the cross entropy of P, O(n·size), and exact sorts of the relevances.

The network takes the items of a list in fixed orders of its own. In the first of them neighbours lie far
apart. So equal scores look neither good nor bad in a list that is stored by its relevance.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nsc.nn.functional.entries import OrderedOptions, SampleOptions, check_known, labelled
from nsc.operators.operands import Steepness, k_of
from nsc.operators.samples import by_samples
from nsc.operators.sharding import Axes
from nsc.operators.sorter import Sorter
from nsc.operators.targets import rank_intervals
from nsc.sizes import Sizes, most_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

# By the name of a gain: what items are worth by their relevance, in units that no relevance overflows. The
# second argument is the highest relevance.
GAINS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    # 2^r - 1 = 2^r (1 - 2^-r), without the difference of numbers that are nearly equal where r is small.
    "exponential": lambda relevance, highest: (
        (relevance - highest).exp2() * -(-math.log(2) * relevance).expm1()
    ),
    "linear": lambda relevance, highest: relevance / (highest + (highest == 0)),
}
WAYS = ("route", "ranks")
# By the name of a link: how scores are mapped before ListRank takes top-one probabilities.
LINKS: dict[str, Callable[[Tensor], Tensor]] = {"logistic": torch.sigmoid, "identity": torch.Tensor.clone}


@by_samples(Axes.FIRST)
def order_loss(
    operator: Sorter | Sizes,
    scores: Tensor,
    target: Tensor,
    steepness: Steepness = None,
    *,
    reduction: str = "mean",
    **options: Unpack[OrderedOptions],
) -> Tensor:
    """Return the cross entropy of P between the order of scores and the order of a target.

    Equal targets share their ranks. One order is the default, where `nsc.nn.OrderLoss` has 16. Ties, samples
    without entries, NaN, errors, other arguments and cost are as there.

    >>> import nsc, torch
    >>> op, target = nsc.compile("odd_even", 4), torch.tensor([10.0, 30.0, 20.0, 40.0])
    >>> scores = torch.tensor([[1.0, 3.0, 2.0, 4.0], [4.0, 2.0, 3.0, 1.0]])
    >>> order_loss(op, scores, target.expand(2, 4), 20.0, orders=8, reduction="none") < 1
    tensor([ True, False])
    """
    call = labelled("order_loss", operator, scores, "target", target, reduction, **options)
    of = call.scores
    losses = of.sorter.cross_entropy(
        of.keys, steepness=steepness, relevance=call.labels, lengths=of.lengths, reduction="none"
    )
    return call.loss(losses, of.counts > 0)


@by_samples(Axes.FIRST)
def spearman_loss(
    operator: Sorter | Sizes,
    scores: Tensor,
    target: Tensor,
    steepness: Steepness = None,
    *,
    reduction: str = "mean",
    **options: Unpack[OrderedOptions],
) -> Tensor:
    """Return 1 - Spearman's correlation between the soft ranks of scores and the exact ranks of a target.

    Ties, samples without a correlation, NaN, errors, other arguments and cost are as in
    `nsc.nn.SpearmanLoss`.

    >>> import nsc, torch
    >>> op, target = nsc.compile("bitonic", 4), torch.tensor([10.0, 30.0, 20.0, 40.0])
    >>> scores = torch.tensor([[1.0, 3.0, 2.0, 4.0], [4.0, 2.0, 3.0, 1.0]])
    >>> spearman_loss(op, scores, target.expand(2, 4), 50.0, reduction="none").round(decimals=2)
    tensor([0., 2.])
    """
    call = labelled("spearman_loss", operator, scores, "target", target, reduction, **options)
    counts = call.scores.counts.to(call.scores.keys.dtype)
    middle = (counts.unsqueeze(-1) - 1) / 2
    first, last = rank_intervals(call.labels, call.scores.is_entry)
    exact = torch.where(call.scores.is_entry, (first + last).to(call.scores.keys.dtype) / 2 - middle, 0)
    soft = torch.where(call.scores.is_entry, call.soft_ranks(steepness) - middle, 0)
    # The sum of the squares of ranks that all differ.
    most = (counts.pow(3) - counts) / 12
    target_squares = exact.square().sum(-1)
    has_correlation = target_squares > 0
    squares = torch.where(has_correlation, target_squares * most, 1)
    return call.loss(1 - (soft * exact).sum(-1) / squares.sqrt(), has_correlation)


@by_samples(Axes.FIRST)
def ndcg_loss(
    operator: Sorter | Sizes,
    scores: Tensor,
    relevance: Tensor,
    steepness: Steepness = None,
    *,
    k: int | None = None,
    by: str = "route",
    gain: str = "exponential",
    reduction: str = "mean",
    **options: Unpack[OrderedOptions],
) -> Tensor:
    """Return 1 - the expected NDCG, normalised discounted cumulative gain, of the relaxed order.

    Positions beyond k count nothing; None: all count. `by`, "route" or "ranks", `gain`, "exponential" or
    "linear", samples without a gain, NaN, errors, other arguments and cost are as in `nsc.nn.NDCGLoss`.

    >>> import nsc, torch
    >>> op, relevance = nsc.compile("bitonic", 4), torch.tensor([0, 1, 0, 2])
    >>> right, wrong = torch.tensor([1.0, 3.0, 2.0, 4.0]), torch.tensor([4.0, 2.0, 3.0, 1.0])
    >>> [round(ndcg_loss(op, scores, relevance, 50.0, k=3).item(), 2) for scores in (right, wrong)]
    [0.0, 0.86]
    """
    check_known("ndcg_loss", "by", by, WAYS)
    check_known("ndcg_loss", "gain", gain, GAINS)
    call = labelled("ndcg_loss", operator, scores, "relevance", relevance, reduction, **options)
    call.check_relevance("ndcg_loss")
    cut = _cut("ndcg_loss", k, operator, call.labels)
    gains = GAINS[gain](call.labels, call.labels.amax(-1, keepdim=True))
    ordered = gains.sort(-1, descending=True).values
    places = torch.arange(1, gains.shape[-1] + 1, device=gains.device)
    ideal = (ordered * _discounts(places, cut, gains)).sum(-1)
    has_gain = ideal > 0
    gains = (gains / torch.where(has_gain, ideal, 1).unsqueeze(-1)).to(call.scores.keys.dtype)
    if by == "route":
        terms = call.routed(gains, steepness) * _discounts(call.positions, cut, gains)
    else:
        positions = call.scores.counts.unsqueeze(-1) - call.soft_ranks(steepness)
        terms = gains * _discounts(positions, cut, gains)
    return call.loss(1 - terms.sum(-1), has_gain)


@by_samples(Axes.FIRST)
def precision_at_k_loss(
    operator: Sorter | Sizes,
    scores: Tensor,
    relevance: Tensor,
    steepness: Steepness = None,
    *,
    k: int,
    reduction: str = "mean",
    **options: Unpack[OrderedOptions],
) -> Tensor:
    """Return 1 - the expected share of relevant items among the first k.

    An item is relevant if its relevance is above 0, or True. Samples of fewer than k entries, NaN, errors,
    other arguments and cost are as in `nsc.nn.PrecisionAtK`.

    >>> import nsc, torch
    >>> op, relevance = nsc.compile("bitonic", 4), torch.tensor([0, 1, 0, 1])
    >>> precision_at_k_loss(op, torch.tensor([1.0, 3.0, 4.0, 5.0]), relevance, 50.0, k=2).round(decimals=2)
    tensor(0.5000)
    """
    call = labelled("precision_at_k_loss", operator, scores, "relevance", relevance, reduction, **options)
    call.check_relevance("precision_at_k_loss")
    cut = _cut("precision_at_k_loss", k, operator, call.labels)
    routed = call.routed((call.labels > 0).to(call.scores.keys.dtype), steepness)
    found = torch.where(call.positions <= cut, routed, 0).sum(-1)
    return call.loss(1 - found / float(k), call.scores.counts > 0)


@by_samples(Axes.FIRST)
def mrr_loss(
    operator: Sorter | Sizes,
    scores: Tensor,
    relevance: Tensor,
    steepness: Steepness = None,
    *,
    k: int | None = None,
    reduction: str = "mean",
    **options: Unpack[OrderedOptions],
) -> Tensor:
    """Return 1 - the expected reciprocal of the position of the first relevant item.

    An item is relevant if its relevance is above 0, or True. Positions beyond k count nothing; None: all
    count. The formula, samples without a relevant item, NaN, errors, other arguments and cost are as in
    `nsc.nn.MRRLoss`.

    >>> import nsc, torch
    >>> op, relevance = nsc.compile("bitonic", 4), torch.tensor([True, False, True, False])
    >>> mrr_loss(op, torch.tensor([1.0, 4.0, 3.0, 2.0]), relevance, 50.0).round(decimals=2)
    tensor(0.5000)
    """
    call = labelled("mrr_loss", operator, scores, "relevance", relevance, reduction, **options)
    call.check_relevance("mrr_loss")
    cut = _cut("mrr_loss", k, operator, call.labels)
    is_relevant = call.labels > 0
    # From the top. Ranks that a sample does not have come first, and nobody stops there.
    stops = call.routed(is_relevant.to(call.scores.keys.dtype), steepness).flip(-1)
    positions = call.positions.flip(-1)
    goes_on = torch.cat([torch.ones_like(stops[..., :1]), (1 - stops[..., :-1]).cumprod(-1)], -1)
    counted = (positions >= 1) & (positions <= cut)
    terms = torch.where(counted, stops * goes_on / positions.clamp_min(1), 0)
    return call.loss(1 - terms.sum(-1), is_relevant.any(-1))


@by_samples(Axes.FIRST)
def list_rank_loss(
    scores: Tensor,
    relevance: Tensor,
    *,
    link: str = "logistic",
    reduction: str = "mean",
    **options: Unpack[SampleOptions],
) -> Tensor:
    """Return the cross entropy of the top-one probabilities of scores against the relevances'.

    The link is "logistic" for ListRank, "identity" for ListNet. A relevance may be any number but NaN. The
    formula, samples without entries, NaN, errors, other arguments and cost are as in `nsc.nn.ListRankLoss`.

    >>> import torch
    >>> scores = torch.tensor([[1.0, 2.0, 1.0, 4.0], [4.0, 2.0, 4.0, 1.0]])
    >>> relevance = torch.tensor([0, 1, 0, 3]).expand(2, 4)
    >>> list_rank_loss(scores, relevance, link="identity", reduction="none").round(decimals=2)
    tensor([0.6700, 3.4300])
    """
    check_known("list_rank_loss", "link", link, LINKS)
    call = labelled("list_rank_loss", None, scores, "relevance", relevance, reduction, **options)
    has_entry = call.scores.counts > 0
    # All places of a sample without entries count, so that it has no loss, and no gradient that is NaN.
    counts = call.scores.is_entry | ~has_entry.unsqueeze(-1)
    linked = LINKS[link](torch.where(call.scores.is_entry, call.scores.keys, 0))
    score_logs = torch.where(counts, linked, -math.inf).log_softmax(-1)
    finite = call.labels.clamp(-sys.float_info.max, sys.float_info.max)  # ∞ - ∞ would be NaN
    label_shares = torch.where(counts, finite, -math.inf).softmax(-1).to(call.scores.keys.dtype)
    losses = -(label_shares * torch.where(counts, score_logs, 0)).sum(-1)
    return call.loss(torch.where(has_entry, losses, 0), has_entry)


def _cut(caller: str, k: object, operator: Sorter | Sizes, labels: Tensor) -> int:
    """Return the last position that counts, for a user's k: at most n + 1, for labels (…, n)."""
    last = labels.shape[-1] + 1
    return last if k is None else min(last, k_of(caller, k, most_of(operator)))


def _discounts(positions: Tensor, cut: int, like: Tensor) -> Tensor:
    """Return the discounts of positions 1, 2, … from the top, in a tensor's dtype; earlier ones count as 1.

    A score of +∞ ties with entries that take no part, so its soft rank may lie above all ranks.
    """
    positions = positions.to(like.dtype).clamp_min(1)
    return (cut + 1 - positions).clamp(0, 1) / torch.log2(1 + positions)
