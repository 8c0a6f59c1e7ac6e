"""The top-k cross entropy: a loss of classification whose prediction is a set of k classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nsc.api import Options, compile
from nsc.arguments import reals, whole
from nsc.compiler.describe import Named
from nsc.compiler.selection import top_k
from nsc.errors import LoweringError, OperandError, OperandTypeError
from nsc.nn.functional.entries import check_known
from nsc.nn.layer import Layer, call, refuse_options
from nsc.operators.operands import check_dense
from nsc.operators.operator import Operator
from nsc.operators.samples import by_samples
from nsc.operators.selector import Selector
from nsc.operators.sharding import Axes
from nsc.operators.targets import check_reduction, reduced
from nsc.runtime.dispatch.ways import Way, way_of
from nsc.wording import count

if TYPE_CHECKING:
    from typing_extensions import Unpack

# How far from 1 the sum of p_k may be, as in difftopk: weights of a table are often rounded.
_SUM_TOLERANCE = 1e-4
# The loss of a probability q is -log(q (1 - 2 FLOOR) + FLOOR), as difftopk's: at most 16.2.
_FLOOR = 1e-7

# torch has no comparisons of the wider unsigned integers.
_LABELS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
TOP_1 = ("network", "softmax", "cross_entropy")


class TopKCrossEntropy(Layer[Selector]):
    """The top-k cross entropy of logits (…, classes) and labels (…): a label is right within the top k.

    p_k[j] weights "the label is among the top j + 1". Let r_i[c] be the relaxed weight of class c at rank i,
    rank 0 the largest logit. The probability of a label c and its loss are

        q = Σ_j p_k[j] Σ_{i ≤ j} r_i[c]        loss = -log(q (1 - 2e-7) + 1e-7)

    The network selects the top len(p_k) alone. The gradient is the derivative of the value, and finite for
    finite logits; bfloat16 and float16 are computed in float32. An error-free network (`error_free=True`) has
    the gradient of the soft one; for float16 logits near ±6e4 it can exceed the range of float16. A NaN among
    the logits that are compared makes the loss NaN.

    Cost per sample: O(len(p_k) · size of the network); m bounds the size where there are many classes.

    Args:
        classes: number of classes, the length of the logits' last axis.
        p_k: the weights, 0 or more, with a sum of 1; (0, 0, 0, 0, 1) is the top 5 alone, (1,) the top 1.
        m: only the label's logit and the m - 1 largest others are compared, so the network has m wires;
            the others' order is torch.topk's. None: all classes are compared.
        network: what `nsc.compile` takes, for m wires, or classes if m is None; or a Selector of the top
            len(p_k) of as many values.
        top1: how the term j = 0 is computed:

            - "network": as in the formula, like all terms.
            - "softmax": the softmax of the compared logits takes the place of r_0, as difftopk does
              by default.
            - "cross_entropy": q has the terms j > 0 alone. The loss is p_k[0] times the cross entropy of the
              compared logits plus p_k[1] + p_k[2] + … times the formula's loss.
        reduction: "mean", "sum", or "none" for the loss of each label.
        steepness, learnable, options: as in `SelectionNetwork`.

    Raises:
        OperandError: classes, p_k or m that do not fit, an unknown top1 or reduction, or a Selector of other
            ranks.
        OperandTypeError: a classes or m that is no integer, a p_k that is no list of numbers, or a Sorter.
        LoweringError: select among the options; p_k determines it.
        NscError: as in `SelectionNetwork`.

    Source: Petersen et al., Differentiable Top-k Classification Learning, ICML 2022; the floor and m as in
    the authors' package difftopk 0.2.0.

    >>> loss = TopKCrossEntropy(10, [0.5, 0, 0, 0, 0.5])
    >>> logits = torch.zeros(2, 10)
    >>> logits[:, 3] = 9.0
    >>> right, wrong = loss(logits[:1], torch.tensor([3])), loss(logits[1:], torch.tensor([7]))
    >>> bool(right < 0.01), bool(wrong > 0.5)
    (True, True)
    """

    def __init__(
        self,
        classes: int,
        p_k: Sequence[float],
        m: int | None = None,
        *,
        network: Selector | Named = "best",
        top1: str = "network",
        reduction: str = "mean",
        steepness: float | None = None,
        learnable: bool = False,
        **options: Unpack[Options],
    ) -> None:
        own = "TopKCrossEntropy"
        classes, weights = positive_of(own, "classes", classes), weights_of(own, p_k)
        m = None if m is None else positive_of(own, "m", m)
        check_known(own, "top1", top1, TOP_1)
        check_reduction(own, reduction)
        if "select" in options:
            raise LoweringError("TopKCrossEntropy selects the top len(p_k) itself: leave out select")
        wires = classes if m is None else m
        if wires > classes:
            raise OperandError(f"TopKCrossEntropy: m is at most the number of classes, {classes}, got {m}")
        if len(weights) > wires:
            given = f"{count(len(weights), 'weight')} for {wires} compared"
            raise OperandError(f"TopKCrossEntropy: p_k has {given}: leave out some")
        super().__init__(_selector(network, wires, len(weights), options), steepness, learnable)
        self.classes, self.p_k, self.m = classes, weights, m
        self.top1, self.reduction = top1, reduction

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of labels (…), integers 0 … classes - 1, for logits (…, classes).

        Returns:
            A 0-d tensor; (…) if nothing is reduced. Its dtype is the logits', under autocast at least
            float32. The "mean" of an empty batch is 0.

        Raises:
            OperandError: logits or labels of other shapes, on two devices, or a label that is no class. On a
                GPU, and in a trace, torch's own check of indices finds such a label.
            OperandTypeError: logits without a floating-point dtype, or with float64 where the module is not
                converted to it; labels without an integer dtype, or of one that torch cannot compare, such as
                uint16; or no tensors.
        """
        return self._loss(logits, labels, self.steepness, self.reduction)

    @by_samples(Axes.FIRST)
    def _loss(self, logits: Tensor, labels: Tensor, steepness: Tensor | None, reduction: str) -> Tensor:
        takes_double = "float64" in self.operator.kernel.serves
        compared, labels = compared_of("TopKCrossEntropy", logits, labels, self.classes, self.m, takes_double)
        places = labels.unsqueeze(-1)
        rows = call(self.operator, "select_with_rows", None, compared, steepness)[1]
        # The weight of the label at each rank, the largest first: (…, k). `torch.take_along_dim` compares
        # shapes: a program that torch exports or compiles would be for one batch size.
        shares = rows.gather(-1, places.unsqueeze(-1).expand_as(rows[..., :1])).squeeze(-1)
        losses = losses_of(shares, compared, places, self.p_k, self.top1)
        return reduced(losses, None, reduction, logits)

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        m = "" if self.m is None else f", m={self.m}"
        return f"classes={self.classes}, p_k={self.p_k}{m}, {super().extra_repr()}"


def positive_of(caller: str, name: str, value: object) -> int:
    """Return a whole number above 0, or raise the error that says what it must be."""
    number = whole(value)
    if number is None:
        raise OperandTypeError(f"{caller}: {name} must be an integer, got {value!r}")
    if number < 1:
        raise OperandError(f"{caller}: {name} must be 1 or more, got {number}")
    return number


def weights_of(caller: str, p_k: object) -> tuple[float, ...]:
    """Return p_k as floats, or raise the error that says what it must be."""
    weights = reals(p_k)
    if weights is None:
        raise OperandTypeError(f"{caller}: p_k must list numbers, such as (0.5, 0, 0.5), got {p_k!r}")
    if not all(0 <= weight < math.inf for weight in weights):
        raise OperandError(f"{caller}: each weight of p_k must be finite and 0 or more, got {p_k!r}")
    if abs(math.fsum(weights) - 1) > _SUM_TOLERANCE:
        raise OperandError(
            f"{caller}: the weights of p_k must add up to 1, these add up to {math.fsum(weights):g}: "
            "divide them by their sum"
        )
    return weights


def _selector(network: Selector | Named, wires: int, k: int, options: Options) -> Selector:
    """Return the operator for the k largest values on `wires` wires, compiled unless it is given."""
    if not isinstance(network, Operator):
        return compile(network, wires, select=top_k(k), **options)
    refuse_options(network, **options)
    if not isinstance(network, Selector):
        raise OperandTypeError(
            f"{network.name} is a Sorter, and TopKCrossEntropy takes a Selector: compile it with "
            f"select=nsc.top_k({k})"
        )
    if network.n != wires or network.ranks != tuple(range(wires - 1, wires - 1 - k, -1)):
        raise OperandError(
            f"TopKCrossEntropy needs the top {k} of {wires} values; {network.name} selects the ranks "
            f"{', '.join(map(str, network.ranks))} of {network.n}: compile it with select=nsc.top_k({k})"
        )
    return network


def compared_of(
    caller: str, logits: Tensor, labels: Tensor, classes: int, m: int | None, takes_double: bool = True
) -> tuple[Tensor, Tensor]:
    """Check a call's tensors; return the logits that are compared, and the labels' places among them.

    With m the label's logit is the first, and the m - 1 largest others follow, the largest first. The logits
    that are returned are float32 at least. `takes_double`: whether the network is compiled for float64.
    """
    _check_call(caller, logits, labels, classes)
    if logits.dtype == torch.float64 and not takes_double:
        raise OperandTypeError(
            f"{caller}: float64 is not served: convert the module with .double(), or the logits with .float()"
        )
    logits, labels = logits.to(torch.promote_types(logits.dtype, torch.float32)), labels.long()
    if m is None:
        return logits, labels
    place = labels.unsqueeze(-1)
    others = torch.arange(classes - 1, device=logits.device)
    others = others + (others >= place)
    largest = logits.gather(-1, others).topk(m - 1).values
    return torch.cat([logits.gather(-1, place), largest], -1), torch.zeros_like(labels)


def losses_of(shares: Tensor, compared: Tensor, places: Tensor, p_k: Sequence[float], top1: str) -> Tensor:
    """Return the loss of each label.

    Args:
        shares: (…, k), the weight of the label at each rank, the largest logit's first.
        compared, places: (…, m) and (…, 1), as `compared_of` returns them.
        p_k, top1: as in `TopKCrossEntropy`.
    """
    sums = shares.cumsum(-1)
    within = [sums[..., j] for j in range(len(p_k))]
    if top1 == "softmax":
        within[0] = compared.softmax(-1).gather(-1, places).squeeze(-1)
    if top1 != "cross_entropy":
        return _minus_log(p_k, within)
    first = -p_k[0] * compared.log_softmax(-1).gather(-1, places).squeeze(-1)
    rest = math.fsum(p_k[1:])
    return first + rest * _minus_log(p_k[1:], within[1:]) if rest else first


def _minus_log(weights: Sequence[float], within: Sequence[Tensor]) -> Tensor:
    """Return minus the logarithm of a weighted sum of probabilities, of which at least one has a weight."""
    terms = [weight * top for weight, top in zip(weights, within, strict=True) if weight]
    return -torch.log(torch.stack(terms).sum(0) * (1 - 2 * _FLOOR) + _FLOOR)


# For torch.fx each is one node: they look at facts that the symbols of a trace do not have.
torch.fx.wrap("call")
torch.fx.wrap("compared_of")
torch.fx.wrap("reduced")


def _check_call(caller: str, logits: Tensor, labels: Tensor, classes: int) -> None:
    for name, tensor in (("logits", logits), ("labels", labels)):
        check_dense(caller, name, tensor)
    if not logits.dtype.is_floating_point:
        raise OperandTypeError(
            f"{caller}: logits must have a floating-point dtype, got {logits.dtype}: use .float()"
        )
    if labels.dtype not in _LABELS:
        raise OperandTypeError(
            f"{caller}: labels must have a signed or 8-bit integer dtype, got {labels.dtype}: use .long()"
        )
    if logits.dim() == 0 or logits.shape[-1] != classes or labels.shape != logits.shape[:-1]:
        raise OperandError(
            f"{caller}: logits must be (…, {classes}) and labels (…), got {tuple(logits.shape)} and "
            f"{tuple(labels.shape)}"
        )
    if labels.device != logits.device:
        raise OperandError(
            f"{caller}: logits are on {logits.device} and labels on {labels.device}: move one of them"
        )
    # To look at values would make a GPU wait, and a trace has none.
    if not labels.is_cuda and way_of(logits, labels) is Way.PLAIN:
        wrong = labels[(labels < 0) | (labels >= classes)]
        if wrong.numel():
            raise OperandError(f"{caller}: labels are 0 … {classes - 1}, found {wrong[0].item()}")
