"""Sorting networks as methods: a family or a network file, with options joined by "+"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

import nsc
from experiments.errors import ExperimentError
from experiments.methods.records import Loss, Method, Truth, tempered
from experiments.user_files import checked, with_digest
from nsc.api import serving
from nsc.compiler.describe import describe
from nsc.compiler.families import FAMILIES
from nsc.compiler.relaxations import SIGMOIDS
from nsc.nn.functional import order_loss
from nsc.wording import count

# The exact comparator has no gradient, so that nothing can be learned through it.
SIGMOID_OPTIONS = tuple(name for name in SIGMOIDS if name != "hard")
OPTIONS = (*SIGMOID_OPTIONS, "art=λ", "error_free", "bce", "orders=K")
STEEPNESS = "steepness / depth"
# The paper's choice, section 5.1.
PAPER_STEEPNESS = 2.0
GRID = (0.5, 1.0, 2.0)
PAPER = "Petersen et al., ICML 2021"


@dataclass(frozen=True)
class NetworkLoss:
    """A loss of P through a sorting network.

    Attributes:
        network: a family's name or the path of a network file.
        sigmoid: the relaxation, a key of nsc's SIGMOIDS.
        art_lambda: strength λ of the activation replacement trick, in [0, 1); 0 is none.
        error_free: exact values forward, soft gradients backward.
        bce: binary cross entropy of all entries, as in the authors' program, in place of cross entropy.
        orders: in how many orders of its own the network takes the items; 0: in the order of the sample.
    """

    network: str
    sigmoid: str = "logistic"
    art_lambda: float = 0.25
    error_free: bool = False
    bce: bool = False
    orders: int = 0

    @property
    def title(self) -> str:
        """The title for tables, such as "Bitonic, cauchy, λ = 0"; defaults are left out."""
        words = self.network.replace("odd_even", "odd-even").replace("_", " ").capitalize()
        name = "Odd-Even" if self.network == "odd_even" else words
        network = name if self.network in FAMILIES else Path(self.network).name
        return ", ".join((network, *(title for title, _ in self.options)))

    @property
    def options(self) -> list[tuple[str, str]]:
        """What differs from the defaults, as titles and as records say it."""
        strength = _written(self.art_lambda)
        every = {
            "sigmoid": (self.sigmoid, self.sigmoid),
            "art_lambda": (f"λ = {strength}", f"art={strength}"),
            "error_free": ("error-free", "error_free"),
            "bce": ("BCE", "bce"),
            "orders": (count(self.orders, "order"), f"orders={self.orders}"),
        }
        return [words for name, words in every.items() if getattr(self, name) != getattr(NetworkLoss, name)]

    @property
    def source(self) -> str:
        """The papers that define the loss."""
        papers = (PAPER, SIGMOIDS[self.sigmoid], *(["Kim et al., ICLR 2024"] * self.error_free))
        return "; ".join(dict.fromkeys(papers))

    def start(self, n: int, temperature: float, generator: torch.Generator) -> Loss:
        """Return the loss of samples of n at a steepness of temperature × depth.

        Cost: O(n·size), as P is computed, though never stored.

        Raises:
            ExperimentError: nsc cannot compile the network, as for a file of another n.
        """
        _check_wires(self.network, n)
        try:
            op = nsc.compile(
                self.network,
                n,
                relaxation=self.sigmoid,
                art_lambda=self.art_lambda,
                error_free=self.error_free,
                targets=targets(),
            )
        except nsc.NscError as error:
            raise ExperimentError(f"{self.network} with n = {n}: {error}") from None
        steepness = temperature * max(1, op.depth)
        name = "binary_cross_entropy" if self.bce else "cross_entropy"

        def loss(scores: Tensor, truth: Truth) -> Tensor:
            operator = serving(op, scores.dtype, scores.device)
            if self.orders:
                return order_loss(operator, scores, truth.ranks, steepness, orders=self.orders)
            return operator.loss(name, scores, truth.ranks, steepness)

        return loss


def targets() -> tuple[str, ...]:
    """Return the targets to compile for. The text of CUDA kernels takes time, so only where they can run."""
    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def network_method(name: str) -> Method:
    """Return the method of a network and its options.

    Args:
        name: a family of nsc or the path of a network file, then any of OPTIONS, joined with "+". A path may
            end in "#" and the file's digest, as `recorded` writes it.

    Raises:
        ExperimentError: neither a family nor a file, a file of another digest, or an unknown option.

    >>> network_method("bitonic+cauchy+art=0").title
    'Bitonic, cauchy, λ = 0'
    """
    loss = _parsed(name)
    return tempered(
        name=name,
        title=loss.title,
        source=loss.source,
        loss_of=loss.start,
        grid=GRID,
        temperature=STEEPNESS,
        usual=PAPER_STEEPNESS,
        is_network=True,
    )


def recorded(name: str) -> str:
    """Return a network method's name for records, the same for all spellings of one method.

    Options have one order, and those that state a default are left out. The path of a file is followed by "#"
    and its digest, so that a run is done again when the file has changed.

    >>> recorded("bitonic+art=0.25+cauchy+logistic"), recorded("bitonic+art=.0+cauchy")
    ('bitonic', 'bitonic+cauchy+art=0')
    """
    loss = _parsed(name)
    network = loss.network if loss.network in FAMILIES else with_digest(loss.network)
    return "+".join((network, *(record for _, record in loss.options)))


def with_strength(name: str, strength: float) -> str:
    """Return the name of a network method with another strength λ.

    Raises:
        ExperimentError: the name states a strength already.
    """
    if any(option.startswith("art=") for option in name.split("+")[1:]):
        raise ExperimentError(f"method {name!r}: this table sets λ itself: leave art= out")
    return f"{name}+art={_written(strength)}"


def _written(strength: float) -> str:
    """Return λ without trailing zeros, with all digits that tell it from other numbers."""
    short = f"{strength:g}"
    return short if float(short) == strength else repr(strength)


def _parsed(name: str) -> NetworkLoss:
    network, *options = name.split("+")
    loss = NetworkLoss(network if network in FAMILIES else _file(name, network))
    for option in options:
        loss = with_option(name, loss, option)
    if loss.bce and loss.orders:
        raise ExperimentError(f"method {name!r}: orders= goes with the cross entropy: leave bce out")
    return loss


def depth(name: str, n: int) -> int:
    """Return the depth of a network method's network on n wires, at least 1.

    Raises:
        ExperimentError: the method has no network on n wires.
    """
    network = name.split("+")[0].partition("#")[0]
    _check_wires(network, n)
    try:
        return max(1, describe(network, n).depth)
    except nsc.NscError as error:
        raise ExperimentError(f"method {name!r}: {error}") from None


def _check_wires(network: str, n: int) -> None:
    """Refuse a network file that does not have n wires."""
    if network in FAMILIES:
        return
    try:
        wires = describe(network).n
    except nsc.NscError:  # a file that does not state its wires, or is no network: compiling it says more
        return
    if wires != n:
        raise ExperimentError(f"{network} has {wires} wires, samples have {n} items: pass --n {wires}")


def _file(name: str, network: str) -> str:
    """Return the path of a network file; the digest in its name, if there is one, must be the file's."""
    path = network.partition("#")[0]
    if not Path(path).is_file():
        raise ExperimentError(
            f"method {name!r}: {path!r} is neither a family ({', '.join(FAMILIES)}) nor a network file. A "
            "file needs a network on as many wires as a sample has items, in a format that `nsc convert` "
            'reads, and a path without "+" and "#"'
        )
    return str(checked(network))


def with_option(name: str, loss: NetworkLoss, option: str) -> NetworkLoss:
    """Return the loss with one more option; of several of a kind the last one counts."""
    if option in SIGMOID_OPTIONS:
        return replace(loss, sigmoid=option)
    if option.startswith("art="):
        return replace(loss, art_lambda=_strength(name, option))
    if option == "error_free":
        return replace(loss, error_free=True)
    if option == "bce":
        return replace(loss, bce=True)
    if option.startswith("orders="):
        return replace(loss, orders=_orders(name, option))
    raise ExperimentError(f"method {name!r}: no option {option!r}; known: {', '.join(OPTIONS)}")


def _orders(name: str, option: str) -> int:
    text = option.removeprefix("orders=")
    if not text.isdecimal() or int(text) < 1:
        raise ExperimentError(f"method {name!r}: {option!r} must be orders=K, K at least 1, such as orders=8")
    return int(text)


def _strength(name: str, option: str) -> float:
    try:
        strength = float(option.removeprefix("art="))
    except ValueError:
        strength = -1.0
    if not 0 <= strength < 1:
        raise ExperimentError(
            f"method {name!r}: {option!r} must be art=λ, λ in [0, 1), such as art=0.25; art=0 is without"
        )
    return strength
