"""Checks of built relaxed kernels: exact where comparators are, and elsewhere those of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from nsc.audit.relaxed_calls import Array, KernelInputs, Numbers, RelaxedKernel
from nsc.audit.relaxed_reference import Floats, Reference, loss_of_p
from nsc.compiler.network import Network
from nsc.compiler.verify import MANY_WIRES, stable_order
from nsc.contract.routings import IGNORED, ROUTINGS, Payload, Routing

# Comparators whose inputs differ by 1 or more have the weights 0 and 1 here, within 1e-19, in both types and
# for every relaxation.
_STEEP = 1e20
# Most numbers of the matrices P that are looked at for each batch of 0-1 inputs and for a loss, but for the
# first matrix.
_MOST_OF_P = 1 << 20
# A kernel may lie so many times as far from the reference as the reference's runs with errors. These have
# errors of two units. A weight is within four and a mix within one, so right kernels lie no further than the
# runs, and mostly at a tenth. The rest is for chance: a run has less than 1/64 of its usual error once in 80
# times, and all four of them once in 4e7 times.
_MARGIN = 64
# The error of what is worked out of the same P in two ways, in units and as a part of the error of an entry.
_SAME_P = 16


def run_exactly(
    kernel: RelaxedKernel, wires: list[int], ranks: list[int]
) -> Callable[[npt.NDArray[np.float64]], tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]]:
    """Return what runs a kernel where it must be exact, for `check_emitted`: its values, and P by its rows.

    A network of many wires has its ranks in the place of P, which would take 256 MB or more.

    A 0-1 input stands for the numbers 1 … n in the order in which a stable sort puts it, and again with the
    infinities at both ends. An index is -1 where a value or a row of P is wrong.

    Args:
        wires: those of the results.
        ranks: the rank of each.
    """

    # Of each wire that is a result its rank, from 1 on, as a payload whose result are ranks of items.
    numbers = np.zeros((kernel.n, 1), kernel.dtype)
    numbers[wires, 0] = np.add(ranks, 1)

    def wrong_ranks(operands: KernelInputs, order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        payload = np.broadcast_to(numbers, (len(order), *numbers.shape)).copy()
        found = kernel.forward(ROUTINGS["transposed"], replace(operands, payload=payload))[1][..., 0]
        wanted = np.zeros_like(found)
        np.put_along_axis(wanted, order[:, ranks], np.add(ranks, 1).astype(kernel.dtype)[None], axis=1)
        wrong: npt.NDArray[np.bool_] = (~(found == wanted)).any(axis=1)  # NaN is wrong
        return wrong

    def run(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        order = stable_order(values)
        rank_of = np.empty_like(order)
        np.put_along_axis(rank_of, order, np.arange(kernel.n)[None], axis=1)
        indices = order[:, ranks]
        for ends in ((1, kernel.n), (-np.inf, np.inf)):
            keys = np.arange(1, kernel.n + 1, dtype=kernel.dtype)
            keys[[0, -1]] = ends
            operands = KernelInputs(keys[rank_of], np.full(len(values), _STEEP, kernel.dtype))
            got = kernel.forward(ROUTINGS["none"], operands)[0][:, wires]
            indices = np.where(got == keys[ranks], indices, -1)
            if kernel.n >= MANY_WIRES:
                indices[wrong_ranks(operands, order)] = -1
                continue
            some = max(1, min(len(values), _MOST_OF_P // kernel.n**2))
            few = KernelInputs(operands.x[:some], operands.steepness[:some])
            rows = kernel.forward(ROUTINGS["permutation"], few)[1][:, wires]
            wanted = order[:some, ranks, None] == np.arange(kernel.n)
            # Written so that NaN is wrong.
            right = (abs(rows - wanted) < 1e-12).all(axis=-1)
            indices[:some] = np.where(right, indices[:some], -1)
        return np.take_along_axis(values, order[:, ranks], axis=1), indices

    return run


def broken_law(kernel: RelaxedKernel, network: Network) -> str | None:
    """Return what a relaxed kernel does wrong on random inputs, in words; None: nothing was seen.

    Values, all routings and their gradients are those of the reference. A loss is that of P, and so is its
    gradient; of many wires there are neither P nor losses. A sample has the same results alone, and a
    gradient is the same without the steepness's.
    """
    random = np.random.default_rng(kernel.n)
    operands = _random_operands(kernel, random)
    direction = KernelInputs(
        random.standard_normal(operands.x.shape), random.standard_normal(kernel.samples) / 4
    )
    reference = Reference(kernel, network, operands, direction)
    routings = list(ROUTINGS.values())
    if kernel.n >= MANY_WIRES:
        routings = [ROUTINGS[name] for name in ("none", "route", "transposed", "rows")]
        p = np.empty(0, kernel.dtype)
    else:
        p = kernel.forward(ROUTINGS["permutation"], operands)[1]
    some = max(1, _MOST_OF_P // kernel.n**2)
    # An entry of P has two roundings a layer each time that it is worked out of the same weights.
    bound = _SAME_P * (2 * network.depth + 8) * float(np.finfo(kernel.dtype).eps)
    laws: list[_Law] = []
    for routing in routings:
        if routing.is_loss:
            laws += _laws_of_a_loss(kernel, routing, operands.first(some), p[:some], bound)
        else:
            laws += _laws_of_a_routing(kernel, reference, routing, operands, direction, bound)
    return next((words for words, error, bound in laws if not error <= bound), None)


# A law in words, how far it was missed, and how far it may be.
_Law = tuple[str, float, float]


def _random_operands(kernel: RelaxedKernel, random: np.random.Generator) -> KernelInputs:
    count = kernel.samples
    x = np.argsort(random.random((count, kernel.n)), axis=1) + random.uniform(-0.25, 0.25, (count, kernel.n))
    x[2:3] = 0  # ties
    # Every second sample is soft, where gradients of weights count, and every second nearly exact. One is so
    # steep that logarithms are cut.
    steepness = np.where(np.arange(count) % 2, random.uniform(4, 8, count), random.uniform(1, 2, count))
    steepness[3:4] *= 32
    return KernelInputs(x.astype(kernel.dtype), steepness.astype(kernel.dtype))


def _laws_of_a_routing(
    kernel: RelaxedKernel,
    reference: Reference,
    routing: Routing,
    operands: KernelInputs,
    direction: KernelInputs,
    bound: float,
) -> Iterator[_Law]:
    count, random = len(operands.x), np.random.default_rng(routing.code)
    shape = (count, kernel.n, 0 if routing.name == "none" else 3)
    # What the routing mixes, how it changes along the direction, and the weights of the results in a sum.
    columns = random.standard_normal(shape).astype(kernel.dtype)
    along = random.standard_normal(shape) if routing.payload is Payload.COLUMNS else np.zeros(shape)
    of_values = random.standard_normal(operands.x.shape).astype(kernel.dtype)
    of_routed = random.standard_normal(shape).astype(kernel.dtype)
    payload: Numbers | None = columns if routing.payload is Payload.COLUMNS else None
    if routing.payload is Payload.RANKS:
        payload = random.integers(kernel.n, size=(count, 3))
        columns = (payload[:, None, :] == np.arange(kernel.n)[:, None]).astype(kernel.dtype)
    operands = replace(operands, payload=payload)
    values, routed, kept = kernel.forward(routing, operands)
    mixed = routed
    grads: tuple[Array | None, ...] = of_values, of_routed
    if routing.name == "none":
        grads = of_values, None
    if routing.name == "permutation":
        # A wrong P has wrong products with random columns.
        mixed = _product(routed, columns)
        grads = of_values, _product(of_routed, columns.swapaxes(1, 2)).astype(kernel.dtype)

    what, wanted = f"the routing {routing.name!r}", reference.routed(routing, columns, along)
    yield f"{what} has wrong values", *_beyond(kernel, values[..., None], reference.values.at)
    yield f"{what} is wrong", *_beyond(kernel, mixed, wanted.at)
    gradients, _ = kernel.backward(routing, operands, grads, kept, True)
    terms = [(gradients.x, direction.x), (gradients.steepness, direction.steepness)]
    if gradients.payload is not None:
        terms.append((gradients.payload, along))
    products = np.concatenate([(a.astype(float) * b).reshape(count, -1) for a, b in terms], axis=1)
    change = (reference.values.along[..., 0] * of_values).sum(axis=2) + (wanted.along * of_routed).sum(
        axis=(2, 3)
    )
    yield (
        f"the gradient of {what} is wrong",
        *_beyond(kernel, products.sum(axis=1), change, abs(products).sum(axis=1)),
    )
    yield from _laws_of_batches(kernel, routing, operands, (values, routed), grads, gradients, bound)


def _beyond(
    kernel: RelaxedKernel, got: Array, runs: Floats, sizes: Floats | None = None
) -> tuple[float, float]:
    """Return how much further results lie from the reference's than rounding brings them, and 0, the bound.

    Args:
        got: (batch, …).
        runs: what the runs of the reference have in its place, (runs, batch, …).
        sizes: the sizes of the numbers that were added up (batch,); None: of the results.
    """
    count = len(got)
    errors = abs(got - runs[0]).reshape(count, -1).max(axis=1, initial=0)
    chance = abs(runs[1:] - runs[0]).max(axis=0).reshape(count, -1).max(axis=1, initial=0)
    sizes = abs(runs[0]).reshape(count, -1).max(axis=1, initial=0) if sizes is None else sizes
    return float((errors - _MARGIN * (chance + np.finfo(kernel.dtype).eps * sizes)).max()), 0.0


def _laws_of_batches(
    kernel: RelaxedKernel,
    routing: Routing,
    operands: KernelInputs,
    results: tuple[Array, Array],
    grads: tuple[Array | None, ...],
    gradients: KernelInputs,
    bound: float,
) -> Iterator[_Law]:
    """Compare results and gradients with those of a sample alone, and without the steepness's."""
    what = f"the routing {routing.name!r}"
    first, first_grads = operands.first(1), (*(None if each is None else each[:1] for each in grads),)
    for got, alone in zip(results, kernel.forward(routing, first)[:2], strict=True):
        error = float(abs(got[:1] - alone).max(initial=0))
        yield f"{what} is another for a sample alone", error, bound * float(1 + abs(got[:1]).max(initial=0))
    sizes = 1 + abs(gradients.x).max(axis=1, keepdims=True)
    others, _ = kernel.backward(routing, operands, grads, None, False)
    of_first, _ = kernel.backward(routing, first, first_grads, None, True)
    yield (
        f"the gradient of {what} is another without the steepness's",
        _distance(gradients.x, others.x, sizes),
        bound,
    )
    for got, alone in ((gradients.x, of_first.x), (gradients.steepness, of_first.steepness)):
        yield (
            f"the gradient of {what} is another for a sample alone",
            _distance(got[:1], alone, sizes[0]),
            bound,
        )


def _laws_of_a_loss(
    kernel: RelaxedKernel, routing: Routing, operands: KernelInputs, p: Array, bound: float
) -> Iterator[_Law]:
    target = _random_target(kernel, routing, operands.x)
    of_p = loss_of_p(kernel, routing, p.astype(float), target)
    wanted = of_p.at.sum(axis=(1, 2))
    operands, what = replace(operands, payload=target), f"the loss {routing.name!r}"
    values, losses, kept = kernel.forward(routing, operands)
    yield f"{what} is wrong", _distance(losses, wanted, 1 + wanted), bound
    gradients, others = kernel.backward(routing, operands, (None, None), kept, True)
    assert others is not None
    yield f"{what} is another with its gradient", _distance(losses, others, 1 + wanted), bound
    if gradients.payload is not None:
        assert of_p.by_shares is not None
        by_target = np.concatenate([of_p.by_shares, np.zeros_like(of_p.by_shares[:, :1])], axis=1)
        yield (
            f"the gradient of the shares of {what} is wrong",
            _distance(gradients.payload, by_target, 1 + abs(by_target)),
            bound,
        )
    grads = None, of_p.by_p.astype(kernel.dtype)
    through, _ = kernel.backward(ROUTINGS["permutation"], replace(operands, payload=None), grads, None, True)
    sizes = abs(through.x).max(axis=1)
    yield f"the gradient of {what} is wrong", _distance(gradients.x, through.x, 1 + sizes[:, None]), bound
    yield (
        f"the gradient of {what} by steepness is wrong",
        _distance(gradients.steepness, through.steepness, 1 + abs(through.steepness)),
        bound,
    )
    yield from _laws_of_batches(kernel, routing, operands, (values, losses), (None, None), gradients, bound)


def _random_target(kernel: RelaxedKernel, routing: Routing, x: Array) -> Numbers:
    """Return targets near the order of x, as a routing takes them; some items do not count."""
    random, n = np.random.default_rng(routing.code), kernel.n
    target = np.argsort(np.argsort(x + random.standard_normal(x.shape), axis=1), axis=1)
    is_counted = random.random(target.shape) < 0.9
    if routing.payload is Payload.TARGET:
        return np.where(is_counted, target, IGNORED)
    weights = np.where(is_counted, random.uniform(0.5, 1.5, target.shape), 0)[:, None] / n
    if routing.payload is Payload.SHARES:
        return np.concatenate([random.random((len(x), n, n)), weights], 1).astype(kernel.dtype)
    firsts = np.flatnonzero(np.append(True, random.random(n - 1) < 0.2))  # of groups of some five ranks
    group = np.searchsorted(firsts, target, side="right")
    ends = np.append(firsts[1:], n)
    return np.stack([firsts[group - 1], ends[group - 1] - 1, weights[:, 0]], 1).astype(kernel.dtype)


def _product(p: Array, columns: Numbers) -> Array:
    return np.matmul(p.astype(np.float64), columns.astype(np.float64))  # type: ignore[no-any-return]


def _distance(got: Array, wanted: Array, sizes: Numbers) -> float:
    """Return the largest distance as a part of `sizes`; NaN where a result is NaN."""
    return float((abs(got - wanted) / sizes).max())
