"""Losses of logits: softmax and top-k supervision, named as the command line names them.

find("topk:.5,0,0,0,.5+m=16").start(100, None)(logits, labels).backward()
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

import nsc
from experiments.errors import ExperimentError
from experiments.methods.networks import SIGMOID_OPTIONS, NetworkLoss, targets, with_option
from experiments.methods.records import middle

# Steepness over depth. For ranks the paper's choice is 2 (section 5.1); scores of classes lie further apart.
GRID = (0.125, 0.25, 0.5, 1.0)
# A method cannot choose another network than the best that nsc knows.
COMPARATORS = NetworkLoss("best")
# The weights p_k are those that difftopk's authors compare (Petersen et al., ICML 2022).
METHODS = (
    "softmax",
    "topk:1",
    "topk:.2,.2,.2,.2,.2",
    "topk:.5,0,0,0,.5",
    "topk:.25,0,0,0,.75",
    "topk:.1,0,0,0,.9",
    "topk:.5,0,0,0,.5+cauchy+art=0",
    "topk:.5,0,0,0,.5+cauchy+art=0+orders=16",
)
OPTIONS = ("m=16", "softmax", *SIGMOID_OPTIONS, "art=λ", "orders=K")


@dataclass(frozen=True)
class ClassMethod:
    """A way to learn logits from labels.

    Attributes:
        name: for the command line and files.
        title: for tables.
        source: the paper that defines it.
        start: takes the number of classes and a temperature; returns the loss, a module of logits, (batch,
            classes), and labels, (batch,). A temperature of None is the middle of the grid. Raises
            ExperimentError for weights or an m that do not fit the classes, a temperature that is not a
            number above 0, and one where the method has none.
        grid: the temperatures to choose from on the validation part; () if the method has none.
        temperature: what the temperature is called.
    """

    name: str
    title: str
    source: str
    start: Callable[[int, float | None], nn.Module]
    grid: tuple[float, ...] = ()
    temperature: str = ""


@dataclass(frozen=True)
class TopK:
    """What the name of a top-k method says.

    Attributes:
        name: the whole name.
        p_k: weight j weighs "the label is among the top j + 1".
        m: the number of classes that are compared, the label's and the largest others; None: all.
        top1: "softmax" if the term of the top 1 is a softmax, otherwise "network".
        comparators: the relaxation, λ and the orders of the classes, as those of a network method.
    """

    name: str
    p_k: tuple[float, ...]
    m: int | None = None
    top1: str = "network"
    comparators: NetworkLoss = COMPARATORS

    @property
    def title(self) -> str:
        """The title for tables."""
        weights = ", ".join(f"{weight:g}" for weight in self.p_k)
        m = "" if self.m is None else f", m = {self.m}"
        top1 = ["softmax for top 1"] * (self.top1 == "softmax")
        return ", ".join(
            (f"Top-k, p_k = {weights}{m}", *top1, *(title for title, _ in self.comparators.options))
        )

    def start(self, classes: int, temperature: float | None) -> nn.Module:
        """Return the loss at a steepness of temperature × depth, through the best network that nsc knows."""
        scale = middle(GRID) if temperature is None else temperature
        make = partial(nsc.nn.TopKCrossEntropy, classes, self.p_k, self.m, top1=self.top1)
        of = self.comparators
        try:
            operator = make(relaxation=of.sigmoid, art_lambda=of.art_lambda, targets=targets()).operator
            loss = make(network=operator, steepness=scale * max(1, operator.depth))
        except nsc.NscError as error:
            raise ExperimentError(f"{self.name} with {classes} classes: {error}") from None
        return _InOrders(loss, classes, of.orders) if of.orders else loss


class _InOrders(nn.Module):
    """The mean of a loss of logits over fixed random orders of the classes."""

    orders: Tensor

    def __init__(self, loss: nn.Module, classes: int, count: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.loss = loss
        orders = [torch.randperm(classes, generator=generator) for _ in range(count)]
        self.register_buffer("orders", torch.stack(orders))

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss of labels (batch,) for logits (batch, classes)."""
        in_orders = torch.cat([logits[:, order] for order in self.orders])
        places = self.orders.argsort(-1)[:, labels].flatten()
        return self.loss(in_orders, places)  # type: ignore[no-any-return]


def find(name: str) -> ClassMethod:
    """Return the method of a name.

    Args:
        name: "softmax", the cross entropy; or "topk:" with the weights p_k, separated by commas, then
            options that are joined with "+": m=16 compares the label's and the 15 largest other logits,
            softmax takes the place of the network for the top 1, as in difftopk; relaxations, art=λ and
            orders=K are as in `network_method`, with orders of the classes.

    Raises:
        ExperimentError: an unknown name or option, or weights that are no numbers.

    >>> find("topk:.5,0,.5+m=16").title
    'Top-k, p_k = 0.5, 0, 0.5, m = 16'
    """
    if name == "softmax":
        return ClassMethod(name, "Softmax cross entropy", "Bridle, NIPS 1989", _softmax)
    method = _parsed(name)
    source = "Petersen et al., ICML 2021 and ICML 2022"
    return ClassMethod(name, method.title, source, method.start, GRID, "steepness / depth")


def record_name(name: str) -> str:
    """Return a method's name for records, the same for all spellings of one method.

    Weights of 0 at the end are kept: with them the network selects more ranks, and may be another one.

    Raises:
        ExperimentError: see `find`.

    >>> record_name("topk:1.0"), record_name("topk:0.50,0,.5+softmax+m=016")
    ('topk:1', 'topk:.5,0,.5+m=16+softmax')
    """
    if name == "softmax":
        return name
    method = _parsed(name)
    weights = ",".join(map(_spelled, method.p_k))
    m = "" if method.m is None else f"+m={method.m}"
    top1 = ["softmax"] * (method.top1 == "softmax")
    return "+".join((f"topk:{weights}{m}", *top1, *(record for _, record in method.comparators.options)))


def _spelled(weight: float) -> str:
    """Return the shortest spelling of a weight that reads as the same number."""
    return f"{weight:.0f}" if weight.is_integer() else repr(weight).removeprefix("0")


def _parsed(name: str) -> TopK:
    """Return what a name other than softmax says."""
    kind, _, rest = name.partition(":")
    if kind != "topk":
        raise ExperimentError(f"no method {name!r} for classes; known: {', '.join(METHODS)}")
    weights, *options = rest.split("+")
    try:
        p_k = tuple(float(weight) for weight in weights.split(","))
    except ValueError:
        raise ExperimentError(
            f"method {name!r}: {weights!r} must be numbers separated by commas, such as topk:.5,0,0,0,.5"
        ) from None
    m, top1, comparators = None, "network", COMPARATORS
    for option in options:
        if option == "softmax":
            top1 = "softmax"
        elif option.startswith("m=") and option[2:].isdecimal():
            m = int(option[2:])
        elif option in SIGMOID_OPTIONS or option.startswith(("art=", "orders=")):
            comparators = with_option(name, comparators, option)
        else:
            raise ExperimentError(f"method {name!r}: no option {option!r}; known: {', '.join(OPTIONS)}")
    return TopK(name, p_k, m, top1, comparators)


CLASS_GRAMMAR = (
    "A method of the table topk is softmax, or topk: and weights p_1,p_2,…, which add up to 1, and options "
    "joined with +. p_k weighs that the label is among the k largest logits; m=16 compares the label's logit "
    "and the 15 largest others; softmax takes the place of the network for the largest; relaxations, art=λ "
    "and orders=K are as of sorting networks. "
    "For example topk:.5,0,0,0,.5+m=16+softmax."
)
"""How a method of classes is named, sentences for users."""


def _softmax(classes: int, temperature: float | None) -> nn.Module:
    if temperature is not None:
        raise ExperimentError(f"softmax has no temperature, got {temperature}: leave it out")
    return nn.CrossEntropyLoss()
