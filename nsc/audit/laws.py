"""Laws of relaxed kernels: results and gradients on random samples equal the reference's, within errors.

Near a tie P and gradients magnify the rounding errors of the values, so no number of digits is right for all
inputs. The reference therefore runs in float64 as it is, and then some times with a random error in each
product. The spread of these runs around the first shows how far a right kernel may lie from it.

Source: Vignes 1993, for injected errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

from nsc.compiler.verify import MANY_WIRES
from nsc.contract.routings import IGNORED, ROUTINGS, Payload, Routing
from nsc.runtime.relaxed import cpu, reference
from nsc.runtime.relaxed.call import Call
from nsc.runtime.relaxed.kernel import Kernel

# - samples at once: more than two registers have lanes, so that some lanes of a kernel are idle;
# - the most numbers of their matrices P;
# - the most numbers of the matrices that a loss is computed from.
_SAMPLES, _MOST_OF_P, _MOST_OF_A_LOSS = 33, 1 << 22, 1 << 20
# Runs of the reference, the first without errors, and the size of an injected error, in units in the last
# place of the kernel's type.
_RUNS, _UNITS = 5, 2
# Allowed error of a kernel: so many times the spread of the reference's runs. A kernel's weight is within
# four units and a mix within one, so right kernels stay within 1 spread, and mostly within 0.1. The rest is
# for chance: one run has less than 1/64 of its usual error once in 80 times, and all four runs once in 4e7
# times.
_MARGIN = 64
# The allowed difference of two results that are computed from the same P in two ways, in errors of an entry.
_SAME_P = 16

# The breach of a law in words, and whether the law holds.
_Law = tuple[str, bool]


class _Operands(NamedTuple):
    """Operands of a call: x (batch, n), steepness (batch,), and the routing's payload (batch, …), if any."""

    x: Tensor
    steepness: Tensor
    payload: Tensor | None = None

    def first(self, count: int) -> _Operands:
        """Return the operands of the first samples."""
        payload = None if self.payload is None else self.payload[:count]
        return _Operands(self.x[:count], self.steepness[:count], payload)


def samples_of(n: int) -> int:
    """Return how many random samples a kernel of n wires runs on."""
    return max(1, min(_SAMPLES, _MOST_OF_P // n**2))


def broken_law(kernel: Kernel, real: str) -> str | None:
    """Return what a registered kernel does wrong on random samples, in words; None: nothing was seen.

    The laws:

    - values, all routings and their gradients equal the reference's;
    - a loss and its gradient equal the loss and the gradient computed from P (a network of many wires has
      neither P nor losses);
    - a sample has the same results alone as in a batch;
    - a gradient is the same whether or not the steepness's gradient is asked for.
    """
    n, dtype, random = kernel.n, getattr(torch, real), torch.Generator().manual_seed(kernel.n)
    count = samples_of(n)
    x = _uniform(random, count, n).argsort(1) + _uniform(random, count, n) / 2
    x[2:3] = 0  # ties
    x[4:5] = (x[4:5] / 2).floor() + 1e-4 * x[4:5]  # pairs that nearly tie
    # Every second sample is soft, where gradients of weights count, and every second nearly exact. One is so
    # steep that logarithms are cut.
    steepness = (1 + _uniform(random, count)) * torch.tensor([1, 4]).repeat(count)[:count]
    steepness[3:4] *= 32
    operands = _Operands(x.to(dtype), steepness.to(dtype))
    along = _Operands(_normal(random, count, n), _normal(random, count) / 4)
    # An entry of P has two roundings a layer each time that it is computed from the same weights.
    bound = _SAME_P * (2 * kernel.depth + 8) * torch.finfo(dtype).eps
    routings = list(ROUTINGS.values())
    if n >= MANY_WIRES:
        routings = [ROUTINGS[name] for name in ("none", "route", "transposed", "rows")]
    few_operands = operands.first(max(1, _MOST_OF_A_LOSS // n**2))
    laws = (
        _laws_of_a_loss(kernel, routing, few_operands, bound)
        if routing.is_loss
        else _laws_of_a_routing(kernel, routing, operands, along, bound)
        for routing in routings
    )
    return next((words for words, holds in chain.from_iterable(laws) if not holds), None)


def _uniform(random: torch.Generator, *shape: int) -> Tensor:
    return torch.rand(shape, generator=random, dtype=torch.float64)


def _normal(random: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=random, dtype=torch.float64)


def _forward(kernel: Kernel, routing: Routing, operands: _Operands) -> tuple[Tensor, Tensor]:
    """Return the values and the routed results."""
    values, routed = cpu.relax(Call(*operands, routing.name, kernel))
    return values, values.new_empty(len(values), 0) if routed is None else routed


def _gradients(
    kernel: Kernel,
    routing: Routing,
    operands: _Operands,
    grads: tuple[Tensor | None, Tensor | None],
    with_steepness: bool = True,
) -> list[Tensor]:
    """Return the gradients of the operands that have one; `grads` are of the results, and a loss has none."""
    call, needs = Call(*operands, routing.name, kernel), (with_steepness, True)
    found = cpu.loss(call, needs)[1:] if routing.is_loss else cpu.relax_backward(call, *grads, needs)
    return [each for each in found if each is not None]


class _Dual(NamedTuple):
    """Results of the reference's runs (runs, batch, …), and their derivatives along a direction."""

    at: Tensor
    along: Tensor


# These functions of torch have no types.
_dual: Callable[[Tensor, Tensor], Tensor] = forward_ad.make_dual
_parts: Callable[[Tensor], tuple[Tensor, Tensor | None]] = forward_ad.unpack_dual


class _Rounding(TorchFunctionMode):
    """Gives each product a random error, but for the samples of the first run."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._error = _UNITS * torch.finfo(dtype).eps
        self._random = torch.Generator().manual_seed(0)

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        result = function(*arguments, **(options or {}))
        if function is not torch.Tensor.mul:
            return result
        # Both parts are multiplied directly. Torch's product of a dual number and errors, which have no
        # derivative, would take 1 ms.
        value, change = _parts(result)
        errors = 1 + self._error * _normal(self._random, *value.shape)
        errors[: len(value) // _RUNS] = 1
        return value * errors if change is None else _dual(value * errors, change * errors)


def _by_reference(
    kernel: Kernel, routing: str, at: _Operands, along: _Operands, dtype: torch.dtype
) -> tuple[_Dual, _Dual]:
    """Return the values, and the routed results."""

    def repeated(each: Tensor | None, change: Tensor | None) -> Any:
        if each is None:
            return None
        each = torch.cat([each] * _RUNS)
        return each if change is None else _dual(each.double(), torch.cat([change] * _RUNS))

    def run_by_run(each: Tensor | None, like: Tensor) -> Tensor:
        each = torch.zeros_like(like) if each is None else each
        return each.view(_RUNS, len(at.x), *like.shape[1:])

    with forward_ad.dual_level(), _Rounding(dtype):
        x, steepness, payload = map(repeated, at, along)
        results = [_parts(each) for each in reference.relax(kernel, x, steepness, payload, routing)]
    values, routed = (_Dual(*(run_by_run(each, both[0]) for each in both)) for both in results)
    return values, routed


def _laws_of_a_routing(
    kernel: Kernel, routing: Routing, operands: _Operands, along: _Operands, bound: float
) -> Iterator[_Law]:
    (count, n), dtype = operands.x.shape, operands.x.dtype
    random, shape, eps = torch.Generator().manual_seed(routing.code), (count, n, 3), torch.finfo(dtype).eps
    # The operand that the routing mixes, and the weights of the results in a sum.
    columns = _normal(random, *shape).to(dtype)
    grad_values, grad_routed = _normal(random, count, n).to(dtype), _normal(random, *shape).to(dtype)
    if routing.payload is Payload.COLUMNS:
        operands = operands._replace(payload=columns)
        along = along._replace(payload=_normal(random, *shape))
    if routing.payload is Payload.RANKS:
        operands = operands._replace(payload=torch.randint(n, (count, 3), generator=random))
    results = _forward(kernel, routing, operands)
    values, routed = results
    name, at, grads = routing.name, operands, (grad_values, grad_routed)
    if name == "none":
        grad_routed = routed
        grads = grad_values, grad_routed
    if name == "permutation":
        # A wrong P has wrong products with random columns.
        name, at = "route", operands._replace(payload=columns.double())
        routed = routed.double() @ columns.double()
        grads = grad_values, (grad_routed.double() @ columns.double().mT).to(dtype)

    dual_values, dual_routed = _by_reference(kernel, name, at, along, dtype)
    what = f"the routing {routing.name!r}"
    yield f"{what} has wrong values", _is_near(values, dual_values.at, eps)
    yield f"{what} is wrong", _is_near(routed, dual_routed.at, eps)
    gradients = _gradients(kernel, routing, operands, grads)
    products = torch.cat(
        [
            (gradient.double() * change).reshape(count, -1)
            for gradient, change in zip(gradients, along, strict=False)
            if change is not None
        ],
        dim=1,
    )
    changes = (dual_values.along * grad_values).sum(2) + (dual_routed.along * grad_routed).flatten(2).sum(2)
    is_near = _is_near(products.sum(1), changes, eps, products.abs().sum(1))
    yield f"the gradient of {what} is wrong", is_near
    yield from _laws_of_batches(kernel, routing, operands, results, grads, gradients, bound)


def _is_near(got: Tensor, runs: Tensor, eps: float, sizes: Tensor | None = None) -> bool:
    """Return whether results (batch, …) lie no further from the reference's runs than rounding explains.

    `sizes`, (batch,), are the sizes of the numbers that were added up; None: the sizes of the results.
    """
    chance = _largest((runs - runs[0]).abs().amax(0))
    sizes = _largest(runs[0]) if sizes is None else sizes
    return bool((_largest(got - runs[0]) <= _MARGIN * (chance + eps * sizes)).all())


def _laws_of_batches(
    kernel: Kernel,
    routing: Routing,
    operands: _Operands,
    results: tuple[Tensor, Tensor],
    grads: tuple[Tensor | None, Tensor | None],
    gradients: list[Tensor],
    bound: float,
) -> Iterator[_Law]:
    """Compare results and gradients with a call of one sample alone, and without the steepness's gradient."""
    what, first = f"the routing {routing.name!r}", operands.first(1)
    for got, alone in zip(results, _forward(kernel, routing, first), strict=True):
        yield f"{what} is another for a sample alone", _is_close(got[:1], alone, bound)
    grad_values, grad_routed = (None if each is None else each[:1] for each in grads)
    gradients_alone = _gradients(kernel, routing, first, (grad_values, grad_routed))
    for got, alone in zip(gradients[:2], gradients_alone[:2], strict=True):
        yield f"the gradient of {what} is another for a sample alone", _is_close(got[:1], alone, bound)
    others, *_ = _gradients(kernel, routing, operands, grads, with_steepness=False)
    yield f"the gradient of {what} is another without the steepness's", _is_close(gradients[0], others, bound)


def _laws_of_a_loss(kernel: Kernel, routing: Routing, operands: _Operands, bound: float) -> Iterator[_Law]:
    permutation, what = ROUTINGS["permutation"], f"the loss {routing.name!r}"
    p = _forward(kernel, permutation, operands)[1].double().requires_grad_()
    target = _random_target(kernel.n, routing, operands.x)
    truth = target.double().requires_grad_() if routing.payload.has_gradient else target
    losses = reference.losses_of(kernel, p, reference.complement(p, -2), truth, routing)
    grad_p, *grad_truth = torch.autograd.grad(losses.sum(), (p, truth) if truth.requires_grad else (p,))
    wanted, at_target = losses.detach(), operands._replace(payload=target)
    results = _forward(kernel, routing, at_target)
    yield f"{what} is wrong", _is_close(results[1], wanted, bound)
    with_gradient = cpu.loss(Call(*at_target, routing.name, kernel))[0]
    yield f"{what} is another with its gradient", _is_close(with_gradient, wanted, bound)
    gradients = _gradients(kernel, routing, at_target, (None, None))
    through = _gradients(kernel, permutation, operands, (None, grad_p.to(operands.x.dtype)))
    parts = (what, f"the steepness in {what}", f"the shares in {what}")
    for part, got, expected in zip(parts, gradients, [*through, *grad_truth], strict=False):
        yield f"the gradient of {part} is wrong", _is_close(got, expected, bound)
    yield from _laws_of_batches(kernel, routing, at_target, results, (None, None), gradients, bound)


def _random_target(n: int, routing: Routing, x: Tensor) -> Tensor:
    """Return random targets of a loss, in the order of x with noise; a tenth of the items do not count."""
    random, count = torch.Generator().manual_seed(routing.code), len(x)
    target = (x + _normal(random, count, n)).argsort(1).argsort(1)
    is_counted = _uniform(random, count, n) < 0.9
    if routing.payload is Payload.TARGET:
        return torch.where(is_counted, target, IGNORED)
    weights = torch.where(is_counted, 0.5 + _uniform(random, count, n), 0).unsqueeze(1) / n
    if routing.payload is Payload.SHARES:
        return torch.cat([_uniform(random, count, n, n), weights], 1).to(x.dtype)
    begins = _uniform(random, n) < 0.2  # a group of some five ranks
    begins[0] = True
    firsts, group = begins.nonzero()[:, 0], begins.cumsum(0)[target] - 1
    lasts = torch.cat([firsts[1:], torch.tensor([n])]) - 1
    return torch.stack([firsts[group], lasts[group], weights[:, 0]], 1).to(x.dtype)


def _is_close(got: Tensor, wanted: Tensor, bound: float) -> bool:
    """Return whether results differ by at most `bound` · (1 + the sample's largest number)."""
    return bool((_largest(got - wanted) <= bound * (1 + _largest(wanted))).all())


def _largest(numbers: Tensor) -> Tensor:
    """Return the largest absolute number of each sample: 0 if it has no numbers, NaN if one is NaN."""
    numbers = numbers.abs().reshape(len(numbers), -1)
    return torch.nn.functional.pad(numbers, (0, 1)).amax(1)
