"""Targets: what P should be, from the form that users pass to the form that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import torch
from torch import Tensor

from nsc.arguments import real
from nsc.contract.routings import IGNORED, LOSSES, Payload
from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import INTEGERS, as_loss, check_dense, check_device
from nsc.operators.samples import Arrangement, Lengths, Mask
from nsc.operators.sharding import PARTS, Parts, mean_of
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.relaxed.checks import ABOUT_RANKS
from nsc.wording import argument

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

# Ranks; first and last ranks; or shares, what P should be.
Target = Tensor | tuple[Tensor, Tensor]
REDUCTIONS = ("mean", "sum", "none")


class RowLossOptions(TypedDict, total=False):
    """Options that the losses of a Selector take by name; see `Selector.loss`."""

    weight: Tensor | None
    reduction: str
    dim: int
    lengths: Lengths
    mask: Mask


class LossOptions(RowLossOptions, total=False):
    """Options that the losses of a Sorter take by name; see `Sorter.loss`."""

    relevance: Tensor | None
    label_smoothing: float
    group: ProcessGroup | None


class Given(NamedTuple):
    """The arguments of a loss that say what P is compared with.

    Attributes:
        target: ranks, a pair of first and last ranks, or shares; None: there are relevances.
        relevance: (…, n), grades: the highest should come last; None: there is a target.
        weight: (…), the weight of each sample, or (…, n), the weight of each item; None: all the same.
        smoothing: how much of an item's share is divided among all ranks; for true ranks alone.
    """

    target: Target | None
    relevance: Tensor | None
    weight: Tensor | None
    smoothing: float = 0.0

    @property
    def first_tensor(self) -> Tensor | None:
        """A tensor of the target."""
        if self.relevance is not None or self.target is None:
            return self.relevance
        return self.target if isinstance(self.target, Tensor) else self.target[0]


def check_given(caller: str, x: Tensor, keys: Tensor, given: Given, arrangement: Arrangement) -> None:
    """Refuse arguments that are no target of x; its sorted axis is the last of `keys`."""
    target, relevance, weight, smoothing = given
    if (target is None) == (relevance is None):
        both = "both are given" if relevance is not None else "got neither"
        raise OperandError(f"{caller}: a loss needs target or relevance, {both}")
    if isinstance(target, tuple | list):
        if len(target) != 2 or not all(isinstance(each, Tensor) for each in target):
            raise OperandTypeError(
                f"{caller}: target must be a tensor, or a pair of tensors of first and last ranks, got a "
                f"{type(target).__name__} of {len(target)}"
            )
        for name, ranks in zip(("first ranks", "last ranks"), target, strict=True):
            _check_integers(caller, x, name, ranks)
    elif relevance is None:
        if isinstance(target, Tensor) and target.dtype.is_floating_point and target.dim() > x.dim():
            check_dense(caller, "target", target)
            m = keys.shape[-1] - (arrangement.missing or 0)
            _check_shape(caller, x, "target of shares", target, (*keys.shape[:-1], m, m))
        else:
            _check_integers(caller, x, "target", target)
    else:
        check_labels(caller, x, "relevance", relevance)
        assert relevance is not None
        is_seen = way_of(relevance) is PLAIN and not relevance.is_cuda
        has_nan = is_seen and relevance.is_floating_point() and bool(relevance.isnan().any())
        if has_nan and bool(arrangement.at_end(relevance, 0).isnan().any()):
            raise OperandError(f"{caller}: relevance must hold numbers, got NaN")
    if weight is not None:
        check_weight(caller, x, weight, keys.shape[:-1], of_items=True)
    if type(smoothing) is float and smoothing == 0:
        return
    number = real(smoothing)
    if number is None or not 0 <= number <= 1:
        raise OperandError(f"{caller}: label_smoothing must be a number in 0 … 1, got {smoothing!r}")
    if number and (not isinstance(target, Tensor) or target.dtype.is_floating_point):
        raise OperandError(f"{caller}: label_smoothing is for a target of ranks alone: leave it out")


def check_labels(caller: str, x: Tensor, name: str, labels: Any, takes_bool: bool = False) -> None:
    """Refuse labels that are not a real number for each entry of x."""
    check_dense(caller, name, labels)
    if labels.dtype.is_complex or (labels.dtype == torch.bool and not takes_bool):
        raise OperandTypeError(f"{caller}: {name} must hold real numbers, got {labels.dtype}")
    _check_shape(caller, x, name, labels, x.shape)


def check_weight(
    caller: str, x: Tensor, weight: Any, samples: tuple[int, ...], of_items: bool = False
) -> None:
    """Refuse anything but a weight for each sample or, with `of_items`, for each item of x."""
    check_dense(caller, "weight", weight)
    if not weight.dtype.is_floating_point:
        raise OperandTypeError(f"{caller}: weight must have a floating-point dtype, got {weight.dtype}")
    if weight.requires_grad:
        raise OperandError(f"{caller}: weight has no gradient: detach it")
    check_device(caller, x, "weight", weight)
    is_of_items = of_items and weight.dim() > len(samples)
    if weight.shape != (x.shape if is_of_items else samples):
        shape = f"the shape of the samples, {tuple(samples)}"
        if of_items:
            shape += f", or the shape of x, {tuple(x.shape)}"
        raise OperandError(f"{caller}: weight must have {shape}, got {tuple(weight.shape)}")


def check_reduction(caller: str, reduction: object) -> None:
    """Raise OperandError for an unknown reduction."""
    if reduction is not PARTS and reduction not in REDUCTIONS:
        raise OperandError(
            f"{caller}: {argument('reduction')} must be one of {', '.join(REDUCTIONS)}, got {reduction!r}"
        )


def reduced(losses: Tensor, weight: Tensor | None, reduction: str | Parts, scores: Tensor) -> Tensor:
    """Return the losses of samples, reduced: their mean, their sum, or each; or the parts of their mean.

    Args:
        losses: of any shape.
        weight: of the same shape, the weight of each sample, in floating-point numbers; None: all the same. A
            sample of the weight 0 has the loss 0, and is not in the mean.
        reduction: one of REDUCTIONS, or PARTS.
        scores: the scores of the loss, see `as_loss`.
    """
    if weight is not None:
        # In float64, where no product and no sum of them overflows. 0 times an infinite loss would be NaN.
        weight = weight.double()
        losses = torch.where(weight != 0, losses * weight, 0)
    if reduction == "none":
        return as_loss(losses, scores)
    total = losses.sum(dtype=torch.float64)
    if reduction != "sum":
        count = (torch.ones_like(losses) if weight is None else weight).sum(dtype=torch.float64)
        if reduction is PARTS:
            return torch.stack([total, count])
        total = mean_of(total, count)
    return as_loss(total, scores)


def _check_integers(caller: str, x: Tensor, name: str, ranks: Any) -> None:
    check_dense(caller, name, ranks)
    if ranks.dtype not in INTEGERS:
        shares = (*x.shape, x.shape[-1]) if x.dim() else ()
        note = f"; as shares they are {tuple(shares)}" if ranks.dtype.is_floating_point else ""
        raise OperandTypeError(
            f"{caller}: {name} holds ranks and must have an integer dtype, got {ranks.dtype}: convert with "
            f"{name.replace(' ', '_')}.long(){note}"
        )
    _check_shape(caller, x, name, ranks, x.shape)


def _check_shape(caller: str, x: Tensor, name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tensor.shape != shape:
        advice = ": drop the last axis of x with .squeeze(-1)" if (*tensor.shape, 1) == shape else ""
        raise OperandError(
            f"{caller}: {name} must have {_shape_in_words(x, shape)}, got {tuple(tensor.shape)}{advice}"
        )
    check_device(caller, x, name, tensor)


def _shape_in_words(x: Tensor, shape: tuple[int, ...]) -> str:
    if shape == x.shape:
        return f"the shape of x, {tuple(shape)}"
    return f"the shape {tuple(shape)} for x of shape {tuple(x.shape)}"


def _check_ranks(caller: str, ranks: Tensor, arrangement: Arrangement, may_repeat: bool) -> None:
    """Refuse ranks (batch, n) beyond the entries that take part and, with `may_repeat`, repeated ranks."""
    n = ranks.shape[-1]
    counts = n if arrangement.lists is None else arrangement.lists.counts.reshape(-1, 1)
    is_wrong = bool((ranks >= counts).any())
    if may_repeat and not is_wrong:
        ordered = ranks.sort(-1).values
        is_wrong = bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != IGNORED)).any())
    if is_wrong:
        raise OperandError(
            f"{caller}: target must hold each rank 0 … m-1 once, of a sample's m entries that take "
            f"part{ABOUT_RANKS}"
        )


def operand_of(
    caller: str,
    loss: str,
    given: Given,
    arrangement: Arrangement,
    dtype: torch.dtype,
    samples: torch.Size,
    is_seen: bool,
) -> tuple[Tensor, Payload, Tensor | None]:
    """Return a target, which `check_given` let pass, as a routing takes it, its samples in one axis.

    Beside it are its form and (…), the weight of each sample: 0 if no item counts; None: all the same.
    `is_seen` says whether ranks may be looked at. Ranks that no entry can have are refused.
    """
    target, _, weight, smoothing = given
    of_items = weight is not None and weight.dim() > len(samples)
    ranks = None
    if isinstance(target, Tensor) and not target.dtype.is_floating_point:
        ranks = _folded(arrangement.target(target))
    lists, by_rank = arrangement.lists, LOSSES[loss].by_rank
    if ranks is not None and is_seen and (of_items or lists is not None or smoothing):
        # Kernels do not find ranks of no entry, nor repeated ranks where these become intervals or shares.
        _check_ranks(caller, ranks, arrangement, bool(of_items or by_rank or smoothing))
    if ranks is not None and not of_items and not smoothing and (lists is None or not by_rank):
        payload, form = ranks, Payload.TARGET
        have_all = is_seen and ranks.numel() and ranks.min().item() >= 0
        counts = None if have_all else (ranks != IGNORED).any(-1)
    else:
        rows, form, counted = _rows_of(given, ranks, arrangement, dtype)
        n = rows.shape[-1]
        weights = rows.new_ones(rows.shape[0], n)
        if weight is not None and of_items:
            weights = _folded(arrangement.at_end(weight, 0)).to(dtype)
        if counted is not None:
            weights = torch.where(counted, weights, 0)
        total = weights.sum(-1, keepdim=True, dtype=torch.float64)  # a sum of large float32 may overflow
        is_counted = total > 0
        weights = (weights / torch.where(is_counted, total, 1)).to(dtype)
        if by_rank and lists is not None:
            weights = weights * (n / lists.counts.reshape(-1, 1).clamp_min(1).to(dtype))
        counts = None if is_seen and is_counted.all() else is_counted.squeeze(-1)
        payload = torch.cat([rows, weights.unsqueeze(-2)], -2)
    weight = None if of_items else weight
    if counts is not None:
        has_items = counts.reshape(samples).to(dtype)
        weight = has_items if weight is None else weight * has_items
    return payload, form, weight


def _rows_of(
    given: Given, ranks: Tensor | None, arrangement: Arrangement, dtype: torch.dtype
) -> tuple[Tensor, Payload, Tensor | None]:
    """Return shares, or the first and the last rank of each item; what they are; and which items count."""
    target, relevance, _, smoothing = given
    lists, smoothing = arrangement.lists, float(smoothing)
    counted = None if lists is None else _folded(lists.is_entry)
    if isinstance(target, Tensor) and target.dtype.is_floating_point:
        return _folded(arrangement.shares(target).to(dtype), 2), Payload.SHARES, counted
    if ranks is not None and smoothing:
        place = torch.arange(ranks.shape[-1], device=ranks.device).unsqueeze(-1)
        is_true = (ranks.unsqueeze(-2) == place).to(dtype)
        there = ranks.new_full((1, 1, 1), len(place)) if lists is None else lists.counts.reshape(-1, 1, 1)
        each = (smoothing / there.clamp_min(1).double()).to(dtype)
        rows = (1 - smoothing) * is_true + torch.where(place < there, each, 0)
        return rows, Payload.SHARES, ranks != IGNORED
    if target is not None:
        ends = [ranks, ranks] if ranks is not None else [_folded(arrangement.target(each)) for each in target]
        counted = (ends[0] != IGNORED) & (ends[1] != IGNORED)
        ends = [torch.where(counted, each, 0) for each in ends]
    else:
        assert relevance is not None
        ends = rank_intervals(_folded(arrangement.at_end(relevance, 0)), counted)
    return torch.stack(ends, -2).to(dtype), Payload.INTERVALS, counted


def _folded(operand: Tensor, axes: int = 1) -> Tensor:
    # Reshaping takes as long as a small sort, even where nothing changes.
    if operand.dim() == axes + 1:
        return operand
    return operand.reshape(-1, *operand.shape[operand.dim() - axes :])


def rank_intervals(relevance: Tensor, counted: Tensor | None) -> list[Tensor]:
    """Return the first and the last rank of each item among those that count; equal items share their ranks.

    Args:
        relevance: (…, n), the higher comes last.
        counted: (…, n), which items count; None: all.
    """
    relevance, last = relevance.double(), torch.as_tensor(relevance.shape[-1] - 1, device=relevance.device)
    if counted is not None:
        # Items that do not count get the highest relevance that counts: they change ranks above `last` alone.
        high = torch.where(counted, relevance, -torch.inf).amax(-1, keepdim=True)
        relevance = torch.where(counted, relevance, high)
        last = counted.sum(-1, keepdim=True).sub(1).clamp_min(0)
    # torch warns unless a sample's numbers lie side by side.
    relevance = relevance.contiguous()
    ordered = relevance.sort(-1).values
    first = torch.searchsorted(ordered, relevance)
    end = torch.searchsorted(ordered, relevance, right=True) - 1
    return [torch.minimum(each, last) for each in (first, end)]
