"""Methods: one table from names to losses of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


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


@dataclass(frozen=True)
class Method:
    """A way to learn scores from ranks.

    Attributes:
        name: for the command line and files.
        title: for tables.
        source: the paper that defines it.
        start: takes n, a temperature, and a generator for methods that draw; returns the loss. A temperature
            of None is the middle of the grid.
        grid: the temperatures to choose from on the validation part; () if the method has none.
        temperature: what the temperature is called, such as "τ" or "steepness / depth".
    """

    name: str
    title: str
    source: str
    start: Callable[[int, float | None, torch.Generator], Loss]
    grid: tuple[float, ...] = ()
    temperature: str = ""
