"""Operators on demand: compiled when a call first needs them, also while torch traces the call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import TypeVar

import torch

from nsc.operators.operator import Operator

AnyOperator = TypeVar("AnyOperator", bound=Operator)


def on_demand(make: Callable[..., AnyOperator]) -> Callable[..., AnyOperator]:
    """Return a function that makes an operator, and that torch.compile can trace.

    torch.compile cannot trace the compiler of networks. So the operator becomes an attribute while a call is
    traced, and the program reads the attribute.

    Args:
        make: makes an operator, the same for the same arguments, which become constants of the program.
    """
    kept = SimpleNamespace()

    def keep(*arguments: object) -> str:
        operator = make(*arguments)
        setattr(kept, operator.kernel.spec, operator)
        return operator.kernel.spec

    # All that torch.compiler.assume_constant_result does, apart from 0.7 s to load torch._dynamo.
    keep._dynamo_marked_constant = True  # type: ignore[attr-defined]

    @functools.wraps(make)
    def find(*arguments: object) -> AnyOperator:
        if not torch.compiler.is_compiling():
            return make(*arguments)
        return getattr(kept, keep(*arguments))  # type: ignore[no-any-return]

    return find
