"""Sorting networks as torch modules."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

from nsc.api import compile
from nsc.compiler.network import Network
from nsc.errors import OperandError
from nsc.runtime.operator import Operator


class SortingNetwork(torch.nn.Module):
    """A relaxed sorting network: x (…, n) to sorted values (…, n) and P (…, n, n).

    Args:
        network: an Operator, or what `nsc.compile` takes: a family's name, a file, a Network.
        n: number of wires, for a family.
        steepness: 1 / unit of x; None: 2 × depth.
        learnable: whether the steepness is a parameter. It is kept as `log_steepness`, so that no
            step of an optimiser can make it negative.
        options: further arguments of `nsc.compile`, such as relaxation.

    Raises:
        OperandError: a steepness that is no finite number above 0; and what `nsc.compile` raises.

    >>> layer = SortingNetwork("odd_even", 3, steepness=100.0)
    >>> values, P = layer(torch.tensor([2.0, 3.0, 1.0]))
    >>> values.round()
    tensor([1., 2., 3.])
    """

    log_steepness: Tensor

    def __init__(
        self,
        network: Operator | Network | str | Path,
        n: int | None = None,
        *,
        steepness: float | None = None,
        learnable: bool = False,
        **options: object,
    ) -> None:
        super().__init__()
        self.operator = (
            network if isinstance(network, Operator) else compile(network, n, **options)  # type: ignore[arg-type]
        )
        start = self.operator.default_steepness if steepness is None else float(steepness)
        if not (start > 0 and math.isfinite(start)):
            raise OperandError(f"steepness must be a finite number above 0, got {steepness}")
        log = torch.tensor(math.log(start), dtype=torch.float64)
        if learnable:
            self.log_steepness = torch.nn.Parameter(log)
        else:
            self.register_buffer("log_steepness", log)

    @property
    def steepness(self) -> Tensor:
        """The steepness as a 0-d tensor."""
        return self.log_steepness.exp()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return values and P; see `Operator.sort_with_permutation`."""
        return self.operator.sort_with_permutation(x, self.steepness)

    def rank(self, x: Tensor) -> Tensor:
        """Return the soft ranks, (…, n)."""
        return self.operator.rank(x, self.steepness)

    def cross_entropy(self, x: Tensor, target: Tensor) -> Tensor:
        """Return the paper's loss against the true ranks; see `Operator.cross_entropy`."""
        return self.operator.cross_entropy(x, target, self.steepness)

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        return f"{self.operator!r}, steepness={self.steepness.item():g}"
