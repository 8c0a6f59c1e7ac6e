"""Operators on demand: compiled when a call first needs them, also while torch traces the call."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import TypeVar

import torch

AnyOperator = TypeVar("AnyOperator")


def on_demand(make: Callable[..., AnyOperator]) -> Callable[..., AnyOperator]:
    """Return a function that makes an operator once for equal arguments, and that torch.compile can trace.

    torch.compile cannot trace the compiler of networks. So the operator becomes an attribute while a call is
    traced, and the program reads the attribute.

    Args:
        make: takes values that a program may have as constants.
    """
    kept, numbers = SimpleNamespace(), itertools.count()

    @functools.cache
    def keep(*arguments: object) -> str:
        name = f"operator_{next(numbers)}"
        setattr(kept, name, make(*arguments))
        return name

    @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
    def name_of(*arguments: object) -> str:
        return keep(*arguments)

    @functools.wraps(make)
    def find(*arguments: object) -> AnyOperator:
        return getattr(kept, name_of(*arguments))  # type: ignore[no-any-return]

    return find
