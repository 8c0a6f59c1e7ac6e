"""The calls that join the rooms: compile a network and give it to torch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import torch

import nsc
from nsc.compiler.describe import Named
from nsc.compiler.driver import Request, compile_network, resolved, selection
from nsc.compiler.formats import parse_network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.verify import Budget
from nsc.contract.interface import REALS
from nsc.errors import LoweringError
from nsc.join.building import MAX_MEMORY, budget_of
from nsc.operators.loading import load as load
from nsc.operators.loading import load_selector as load_selector
from nsc.operators.operator import Operator
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.wording import argument

__all__ = ["compile", "compile_selector", "load", "load_selector"]

AnyOperator = TypeVar("AnyOperator", bound=Operator)


def compile(
    network: Named,
    n: int | None = None,
    *,
    relaxation: str = "logistic",
    art_lambda: float = 0.25,
    error_free: bool = False,
    dtypes: str | Sequence[str] = ("float32",),
    targets: str | Sequence[str] = ("cpu",),
    name: str | None = None,
    unproved: bool = False,
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
) -> Sorter:
    """Prove a network and return its operator, built on first use and cached on disk.

    What was compiled before in this process, and is not among the least recently used, comes back at once,
    the same object: operators have no state that a call changes.

    Args:
        network: a family's name, a network file, a Network, or comparators (lo, hi) in lists: flat, or a
            list for each layer.
        n: number of wires, for a family, and for lists that do not show it.
        relaxation: logistic, gaussian, reciprocal, cauchy, optimal or hard.
        art_lambda: strength of the activation replacement trick, in [0, 1); 0 is none.
        error_free: forward exact values and a 0/1 P, backward the soft gradients.
        dtypes: one arithmetic type or several, float32 (serves bfloat16 and float16 too) and float64.
        targets: cpu, cuda, or both: for which tensors there are kernels.
        name: the operator's name in messages and in the cache.
        unproved: accept a network that no exact method settled.
        format: the network file's format; None: found from its content.
        index_base: what the network file or the lists count wires from, 0 or 1.
        max_memory: MB that the proof's method of reachable sets may take for 0-1 patterns.
        time_limit: seconds after which the proof gives up; None: about 20 a method.

    Raises:
        NetworkError, LoweringError, PropertyError: a request that makes no sense.
        VerificationError: the network does not sort; it carries a counterexample.
        UnprovedError: not settled, and `unproved` is false.

    >>> import torch
    >>> op = compile("bitonic", 4)
    >>> op.hard_sort(torch.tensor([3.0, 1.0, 2.0, 0.0]))[0]
    tensor([0., 1., 2., 3.])
    """
    budget = budget_of(max_memory, time_limit)
    request = Request(
        network=network,
        n=n,
        relaxation=Relaxation(relaxation, art_lambda, error_free),
        dtypes=_names(dtypes),
        targets=_names(targets),
        name=name,
        unproved=unproved,
        version=nsc.__version__,
        format=format,
        index_base=index_base,
    )
    return _compiled(Sorter, request, budget)


def compile_selector(
    network: Named,
    n: int | None = None,
    *,
    top_k: int | None = None,
    median: bool = False,
    ranks: Sequence[int] | None = None,
    wires: Sequence[int] | None = None,
    without_redundant: bool = False,
    relaxation: str = "logistic",
    art_lambda: float = 0.25,
    error_free: bool = False,
    dtypes: str | Sequence[str] = ("float32",),
    targets: str | Sequence[str] = ("cpu",),
    name: str | None = None,
    unproved: bool = False,
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
) -> Selector:
    """Prove a network for some ranks and return the operator of what these need of it.

    Soft values are those of the whole network at the same steepness, but for `without_redundant` and for
    "best", which may be another network for every choice of ranks.

    Args:
        network, n, relaxation, art_lambda, error_free, dtypes, targets, name, unproved, format, index_base,
            max_memory, time_limit: as in `compile`.
        top_k: select the k largest, largest first.
        median: select the middle value; of an even n the two middle ones.
        ranks: select these, 0 the smallest value, in this order. One of the three is needed.
        wires: where the network leaves what is selected, smallest first, or as the ranks are named; None:
            where a sorting network does.
        without_redundant: leave out comparators that never exchange anything, which changes soft values.

    Raises:
        NetworkError, LoweringError, PropertyError: a request that makes no sense.
        VerificationError: the network does not select these ranks; it carries a counterexample.
        UnprovedError: not settled, and `unproved` is false.

    >>> import torch
    >>> op = compile_selector("bitonic", 4, top_k=2)
    >>> op.hard_select(torch.tensor([3.0, 1.0, 2.0, 0.0]))[0]
    tensor([3., 2.])
    """
    budget = budget_of(max_memory, time_limit)
    selected = selection(top_k, median, ranks)
    if selected is None and wires is None:
        choices = ", ".join(map(argument, ("top_k", "median", "ranks")))
        raise LoweringError(f"nothing is selected: name one of {choices}, or use nsc.compile")
    request = Request(
        network=network,
        n=n,
        relaxation=Relaxation(relaxation, art_lambda, error_free),
        dtypes=_names(dtypes),
        targets=_names(targets),
        name=name,
        unproved=unproved,
        version=nsc.__version__,
        format=format,
        index_base=index_base,
        select=selected,
        wires=wires,
        without_redundant=without_redundant,
    )
    return _compiled(Selector, request, budget)


# Each holds the texts of its package, megabytes for a thousand wires.
_MOST_KEPT = 64


@dataclass(frozen=True)
class _Making:
    """What identifies a compiled operator, and what its proof may take, which does not."""

    kind: type[Operator]
    request: Request
    budget: Budget = field(compare=False)


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _compiled(kind: type[AnyOperator], request: Request, budget: Budget) -> AnyOperator:
    return cast(AnyOperator, _kept(_Making(kind, resolved(request), budget)))


@functools.lru_cache(_MOST_KEPT)
def _kept(making: _Making) -> Operator:
    return making.kind(compile_network(making.request, making.budget).package.files)


def with_dtype(operator: AnyOperator, dtype: torch.dtype) -> AnyOperator:
    """Return the operator, or one of the same network that is compiled for another dtype too.

    Args:
        operator: any, loaded ones too.
        dtype: a dtype of tensors; one that no arithmetic type serves changes nothing.
    """
    kernel, name = operator.kernel, str(dtype).removeprefix("torch.")
    missing = [real.name for real in REALS.values() if name in real.serves and name not in kernel.serves]
    if not missing:
        return operator
    outputs = kernel.outputs
    request = Request(
        network=parse_network(kernel.files["network.json"], format="nsc"),
        relaxation=Relaxation(kernel.sigmoid, kernel.art_lambda, kernel.error_free),
        dtypes=(*sorted(kernel.reals), *missing),
        targets=tuple(kernel.sources),
        name=kernel.name,
        unproved=True,  # as it was accepted before
        version=nsc.__version__,
        select=None if outputs is None else selection(None, False, outputs.ranks),
        wires=None if outputs is None else outputs.wires,
    )
    return _compiled(type(operator), request, budget_of())
