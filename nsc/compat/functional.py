"""diffsort.functional over compiled kernels: `sort` and `execute_sort`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from nsc.api import compile
from nsc.arguments import is_name, real
from nsc.compat.networks import Layer, network_of
from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.selection import top_k
from nsc.errors import LoweringError, OperandError
from nsc.operators.operands import check_dense
from nsc.operators.operator import Operator, on_demand
from nsc.operators.sorter import Sorter
from nsc.runtime.dispatch.ways import PLAIN, way_of

# diffsort's names of relaxations. `art_lambda` applies to "logistic_phi" alone.
DISTRIBUTIONS = ("logistic", "logistic_phi", "gaussian", "reciprocal", "cauchy", "optimal")


def execute_sort(
    sorting_network: Sequence[Layer],
    vectors: Tensor,
    steepness: float | Tensor = 10.0,
    art_lambda: float = 0.25,
    distribution: str = "cauchy",
) -> tuple[Tensor, Tensor]:
    """Return sorted values (batch, n) and P (batch, n, n) with sorted = vectors @ P, as diffsort does.

    Args:
        sorting_network: what `nsc.compat.networks` returns, or layers of matrices like these.
        vectors: (batch, n).
        steepness: a number, or a tensor of shape (), (1,) or (batch, 1). A negative one sorts descending.
        art_lambda: strength of the activation replacement trick, used by "logistic_phi" alone.
        distribution: logistic, logistic_phi, gaussian, reciprocal, cauchy or optimal.

    Raises:
        LoweringError: another distribution.
        OperandError: vectors that are not (batch, n).
        OperandTypeError: vectors that are no tensor.
        NetworkError: matrices that are no comparators.
        VerificationError: a network that does not sort.

    >>> from nsc.compat.networks import odd_even_network
    >>> execute_sort(odd_even_network(3), torch.tensor([[3.0, 1.0, 2.0]]), steepness=-100.0)[0].round()
    tensor([[3., 2., 1.]])
    """
    check_dense("execute_sort", "vectors", vectors)
    network = network_of(sorting_network)
    if vectors.dim() != 2 or vectors.shape[1] != network.n:
        raise OperandError(f"the network sorts (batch, {network.n}) along axis 1, got {tuple(vectors.shape)}")
    operator = operator_of(network, None, distribution, art_lambda, real_of(vectors), vectors.device.type)
    return sorted_by(operator, vectors, steepness)


sort = execute_sort


def sorted_by(operator: Operator, vectors: Tensor, steepness: float | Tensor) -> tuple[Tensor, Tensor]:
    """Do what `execute_sort` does on vectors (batch, n)."""
    assert isinstance(operator, Sorter)
    sign, steepness = signed(vectors, steepness)
    values, p = operator.sort_with_permutation(vectors if sign is None else sign * vectors, steepness)
    return values if sign is None else sign * values, p.transpose(-1, -2)


def real_of(vectors: Tensor) -> str:
    """Return the arithmetic type for vectors."""
    return "float64" if vectors.dtype == torch.float64 else "float32"


def signed(vectors: Tensor, steepness: float | Tensor) -> tuple[Tensor | None, float | Tensor]:
    """Return the sign of the steepness of vectors (batch, n), and its size; no sign if all are positive.

    A comparator of a negative steepness does what one of a positive steepness does to the negative values.

    Returns:
        (batch, 1) or (1, 1), or None, and a number or a tensor of shape () or (batch,).
    """
    sign = None
    if isinstance(steepness, Tensor):
        if steepness.dim():
            steepness = steepness.reshape(-1).expand(vectors.shape[0])
        is_seen = way_of(steepness) is PLAIN and not steepness.is_cuda
        if is_seen and not bool((steepness > 0).all()):
            sign = steepness.detach().sign().to(vectors.dtype).reshape(-1, 1)
            steepness = steepness.abs()
    elif (number := real(steepness)) is not None and number < 0:
        sign, steepness = vectors.new_full((1, 1), -1), -number
    return sign, steepness


@on_demand
def operator_of(
    network: Network,
    name: str | None,
    distribution: str,
    art_lambda: float,
    real: str,
    device: str,
    top: int | None = None,
) -> Operator:
    """Return the operator of a network under one of diffsort's distributions, or refuse another one.

    `name` names the network in messages. `top`: how many of the largest values are selected; None: all are
    sorted.
    """
    if not is_name(distribution, DISTRIBUTIONS):
        raise LoweringError(f"distribution must be one of {', '.join(DISTRIBUTIONS)}, got {distribution!r}")
    sigmoid = distribution.removesuffix("_phi")
    relaxation = Relaxation(sigmoid, art_lambda if sigmoid != distribution else 0.0)
    return _compiled(network, name, relaxation, real, device, top)


@functools.cache
def _compiled(
    network: Network, name: str | None, relaxation: Relaxation, real: str, device: str, top: int | None
) -> Operator:
    targets = ("cpu", "cuda") if device == "cuda" else ("cpu",)
    select = None if top is None else top_k(top)
    if name is not None and select is not None:
        name = f"{name}_{select.label}"
    return compile(network, select=select, name=name, relaxation=relaxation, dtypes=(real,), targets=targets)
