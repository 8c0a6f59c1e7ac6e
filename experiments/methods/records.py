"""The records of methods: what a loss is given, and what a method is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from experiments.errors import ExperimentError
from experiments.user_files import check_line


@dataclass(frozen=True)
class Truth:
    """What is known of samples of n items.

    Attributes:
        ranks: (batch, n), int64: 0 for the smallest of a sample; equal values have different ranks.
        values: (batch, n): the values that the ranks order, such as four-digit numbers.
    """

    ranks: Tensor
    values: Tensor


Loss = Callable[[Tensor, Truth], Tensor]
"""A loss of scores, (batch, n), and their truth: a 0-d tensor to minimise, the mean over the batch."""

Start = Callable[[int, float | None, torch.Generator], Loss]


@dataclass(frozen=True)
class Method:
    """A way to learn scores from ranks.

    A user's file builds one, so it is checked.

    Attributes:
        name: for the command line and files.
        title: for tables.
        source: the paper that defines it.
        start: takes n, a temperature, and a generator for methods that draw; returns the loss. A temperature
            of None is the usual one. Raises ExperimentError for an n below 2, a temperature that is
            not a number above 0, and one where the method has none.
        grid: the temperatures to choose from on the validation part; () if the method has none.
        temperature: what the temperature is called, such as "τ" or "steepness / depth".
        usual: the temperature of runs that choose none; None: the middle of the grid.
        is_network: whether it is a sorting network.

    Raises:
        ValueError: a name or title that is no text of one line, a start that cannot be called, a grid that is
            no tuple of different finite numbers above 0, or a usual temperature that is no such number.
    """

    name: str
    title: str
    source: str
    start: Start
    grid: tuple[float, ...] = ()
    temperature: str = ""
    usual: float | None = None
    is_network: bool = False

    def __post_init__(self) -> None:
        """Check what a user may have written."""
        for field in ("name", "title"):
            check_line(field, getattr(self, field))
        if not callable(self.start):
            raise ValueError(f"start must be a function, got {self.start!r}")
        if not isinstance(self.grid, tuple) or not all(map(_is_temperature, self.grid)):
            raise ValueError(f"grid must be a tuple of finite numbers above 0, got {self.grid!r}")
        if len({*self.grid}) < len(self.grid):
            raise ValueError(f"the temperatures of grid must differ, got {self.grid!r}")
        if self.usual is not None and not _is_temperature(self.usual):
            raise ValueError(f"usual must be None or a finite number above 0, got {self.usual!r}")


def _is_temperature(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def usual_temperature(method: Method) -> float | None:
    """Return the temperature of runs that choose none; None if the method has no temperature."""
    if method.usual is not None:
        return method.usual
    return middle(method.grid) if method.grid else None


def middle(grid: tuple[float, ...]) -> float:
    """Return the temperature in the middle of a grid, in the order of its numbers; of two the larger.

    >>> middle((1.0, 2.0, 4.0))
    2.0
    """
    return sorted(grid)[len(grid) // 2]


def tempered(
    name: str,
    title: str,
    source: str,
    loss_of: Callable[[int, float, torch.Generator], Loss],
    grid: tuple[float, ...],
    temperature: str,
    usual: float | None = None,
    is_network: bool = False,
) -> Method:
    """Return a method with a temperature.

    Args:
        name, title, source, grid, temperature, usual, is_network: see Method.
        loss_of: takes n, a temperature above 0 and a generator; returns the loss.
    """

    def start(n: int, value: float | None, generator: torch.Generator) -> Loss:
        _check_items(name, n)
        chosen = usual_temperature(method) if value is None else value
        assert chosen is not None  # the grid has a middle
        if not 0 < chosen < math.inf:
            raise ExperimentError(
                f"{name}: the temperature, {temperature}, must be a number above 0, got {chosen}"
            )
        return loss_of(n, chosen, generator)

    method = Method(name, title, source, start, grid, temperature, usual, is_network)
    return method


def untempered(name: str, title: str, source: str, loss: Loss) -> Method:
    """Return a method without a temperature. Method explains the arguments."""

    def start(n: int, value: float | None, generator: torch.Generator) -> Loss:
        _check_items(name, n)
        if value is not None:
            raise ExperimentError(f"{name} has no temperature, got {value}: leave it out")
        return loss

    return Method(name, title, source, start)


def _check_items(name: str, n: int) -> None:
    if n < 2:
        raise ExperimentError(f"{name} learns from the order of n items, n at least 2, got n = {n}")
