"""The calls that join the rooms: compile a network and give it to torch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast, overload

import torch

from nsc.arguments import flag, names
from nsc.compiler.describe import Named, describe, is_family
from nsc.compiler.driver import compile_again, compile_network
from nsc.compiler.naming import package_name
from nsc.compiler.relaxations import Relaxation, relaxation_of
from nsc.compiler.request import Request
from nsc.compiler.selection import Selection
from nsc.compiler.verify import Budget, Verdict
from nsc.contract.interface import REALS
from nsc.contract.targets import TARGETS
from nsc.errors import LoweringError
from nsc.join.budget import MAX_MEMORY, budget_of
from nsc.join.on_demand import selection_of
from nsc.operators.operator import Operator
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.version import VERSION

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Options", "compile", "serving"]

AnyOperator = TypeVar("AnyOperator", bound=Operator)


class Options(TypedDict, total=False):
    """The options of `compile` that do not decide which operator it returns; `compile` documents them."""

    wires: Sequence[int] | None
    remove_redundant: bool
    relaxation: str | Relaxation
    art_lambda: float | None
    error_free: bool | None
    dtypes: str | Sequence[str]
    targets: str | Sequence[str]
    name: str | None
    unproved: bool
    format: str | None
    index_base: int | None
    max_memory: int
    time_limit: float | None
    build: bool


@overload
def compile(
    network: Named, n: int | None = None, *, select: None = None, **options: Unpack[Options]
) -> Sorter: ...


@overload
def compile(
    network: Named, n: int | None = None, *, select: Selection, **options: Unpack[Options]
) -> Selector: ...


def compile(
    network: Named,
    n: int | None = None,
    *,
    select: Selection | None = None,
    wires: Sequence[int] | None = None,
    remove_redundant: bool = False,
    relaxation: str | Relaxation = "logistic",
    art_lambda: float | None = None,
    error_free: bool | None = None,
    dtypes: str | Sequence[str] = ("float32",),
    targets: str | Sequence[str] = ("cpu",),
    name: str | None = None,
    unproved: bool = False,
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
    build: bool = False,
) -> Sorter | Selector:
    """Prove a network and return its operator.

    The operator sorts, or selects some ranks alone if `select` names them. A selector has only the
    comparators that its ranks depend on. At the same steepness its soft values equal the whole network's.
    They differ if redundant comparators are removed, or if the network is "best", which may be another
    network for every selection.

    The operators of the last 64 different requests are kept: an equal request returns the same object at
    once. No call changes an operator.

    Args:
        network: a family's name, a network file, a Network, or comparators (lo, hi) in lists: flat, or a
            list for each layer.
        n: number of wires, for a family, and for lists that do not show it.
        select: what is selected: nsc.top_k(8), nsc.median() or nsc.ranks(3, 7), 0 the smallest value; None:
            all values are sorted.
        wires: the wires that carry the selected values, smallest first, or in the order of nsc.ranks; None:
            the wires that carry them in a sorting network.
        remove_redundant: remove comparators that exact results do not need, which changes soft values.
        relaxation: how comparators are softened: logistic, gaussian, reciprocal, cauchy, optimal or hard, or
            an nsc.Relaxation, which holds the next two options itself.
        art_lambda: strength of the activation replacement trick, in [0, 1); 0 is none; None: 0.25.
        error_free: exact values and a 0/1 P in the forward pass, soft gradients in the backward pass; None:
            no.
        dtypes: one arithmetic type or several, float32 (serves bfloat16 and float16 too) and float64.
        targets: cpu, cuda, or both: for which tensors there are kernels.
        name: the operator's name in messages and in the cache.
        unproved: accept a network that no exact method settled.
        format: the network file's format; None: found from its content.
        index_base: the number of the first wire in the network file or the lists, 0 or 1.
        max_memory: MB that the proof's method of reachable sets may take for 0-1 patterns.
        time_limit: seconds after which the proof gives up; None: each method counts its steps.
        build: whether to build the network's own library now, which takes some seconds. It may save a quarter
            of the time of a call for P of few wires, and a tenth of other calls. Without it the engine of the
            relaxation runs the network, with the same bits. The engine is built once for all networks.
            Networks of 8,192 wires or more always have their own library.

    Returns:
        A Selector if `select` is given, else a Sorter.

    Raises:
        NetworkError, LoweringError, PropertyError: an invalid argument, or arguments that exclude each other.
        VerificationError: the network does not sort, or does not select these ranks; the error carries a
            counterexample.
        UnprovedError: no method settled it, and `unproved` is false.

    >>> import nsc, torch
    >>> x = torch.tensor([3.0, 1.0, 2.0, 0.0])
    >>> compile("bitonic", 4).hard_sort(x)[0]
    tensor([0., 1., 2., 3.])
    >>> compile("bitonic", 4, select=nsc.top_k(2)).hard_select(x)[0]
    tensor([3., 2.])
    """
    is_built = flag("build", build, LoweringError)
    budget = budget_of(max_memory, time_limit, keeps=True)
    request = Request(
        network=network,
        n=n,
        relaxation=relaxation_of(relaxation, art_lambda, error_free),
        dtypes=names(dtypes),
        targets=names(targets),
        name=name,
        unproved=unproved,
        version=VERSION,
        format=format,
        index_base=index_base,
        select=select,
        wires=wires,
        remove_redundant=remove_redundant,
    )
    kind: type[Sorter] | type[Selector] = Sorter if select is None else Selector
    operator = cast("Sorter | Selector", _kept(_Key(kind, _resolved(request), budget)))
    if is_built and "cpu" in operator.kernel.sources:
        operator.kernel.specialise()
        operator.kernel.library()
    return operator


# How many operators are kept. Each holds the texts of its package, megabytes for a thousand wires.
_MOST_KEPT = 64


@dataclass(frozen=True)
class _Key:
    """The class and the request identify a compiled operator; the budget of its proof does not."""

    kind: type[Operator]
    request: Request
    budget: Budget = field(compare=False)


def _resolved(request: Request) -> Request:
    """Return the request with the network itself in the place of a file or lists, as a key for operators."""
    if is_family(request.network):
        return request
    network = describe(request.network, request.n, request.format, request.index_base)
    name = package_name(request, network.n)
    return replace(request, network=network, n=None, format=None, index_base=None, name=name)


@functools.lru_cache(_MOST_KEPT)
def _kept(key: _Key) -> Operator:
    return key.kind(compile_network(key.request, key.budget).package.files)


def serving(operator: AnyOperator, dtype: torch.dtype, device: torch.device) -> AnyOperator:
    """Return an operator of the same network that serves another dtype and another device too.

    It is the operator itself if it serves both, or if no type and no target of nsc does.
    """
    kernel, name = operator.kernel, str(dtype).removeprefix("torch.")
    reals = [real.name for real in REALS.values() if name in real.serves and name not in kernel.serves]
    targets = [
        target.name
        for target in TARGETS.values()
        if device.type in target.devices and target.name not in kernel.sources
    ]
    if not reals and not targets:
        return operator
    again = _again(operator, (*sorted(kernel.reals), *reals), (*kernel.sources, *targets))
    if kernel.is_specialised:
        again.kernel.specialise()
    return cast(AnyOperator, again)


@functools.lru_cache(_MOST_KEPT)
def _again(operator: Operator, dtypes: tuple[str, ...], targets: tuple[str, ...]) -> Operator:
    """Return an operator of the same network and proof for some types and targets."""
    kernel, network, proof = operator.kernel, operator.network, operator.proof
    select, outputs = selection_of(kernel), kernel.outputs
    request = Request(
        network=network,
        relaxation=Relaxation(kernel.sigmoid, kernel.art_lambda, kernel.error_free),
        dtypes=dtypes,
        targets=targets,
        name=kernel.name,
        unproved=proof.verdict is Verdict.UNPROVED,
        version=VERSION,
        select=select,
        wires=None if select is None or outputs is None else select.wires_of(outputs.wires),
    )
    return type(operator)(compile_again(network, proof, request).files)
