"""Checks of built relaxed kernels: exact where comparators are, and elsewhere true to what they say of P."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.verify import stable_order
from nsc.contract.routings import ROUTINGS, Payload, Routing
from nsc.join.relaxed_calls import Array, Numbers, Operands, RelaxedKernel

# Comparators whose inputs differ by 1 or more have the weights 0 and 1 here, within 1e-19, in both types and
# for every relaxation.
_STEEP = 1e20
# Most numbers of the matrices P that are looked at for each batch of 0-1 inputs, but for the first input.
_MOST_OF_P = 1 << 20
# The largest error of a sum, as a part of its terms, and of a derivative taken from differences of values.
_ROUNDING = {"float32": 1e-4, "float64": 1e-12}
_DIFFERENCE = {"float32": 2.0**-7, "float64": 2.0**-10}
_DERIVATIVE = 0.05


def run_exactly(
    kernel: RelaxedKernel, wires: list[int], ranks: list[int]
) -> Callable[[npt.NDArray[np.float64]], tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]]:
    """Return what runs a kernel where it must be exact, for `check_emitted`: its values, and P by its rows.

    A 0-1 input stands for the numbers 1 … n in the order in which a stable sort puts it, and again with the
    infinities at both ends. An index is -1 where a value or a row of P is wrong.

    Args:
        wires: those of the results.
        ranks: the rank of each.
    """

    def run(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        order = stable_order(values)
        rank_of = np.empty_like(order)
        np.put_along_axis(rank_of, order, np.arange(kernel.n)[None], axis=1)
        indices = order[:, ranks]
        for ends in ((1, kernel.n), (-np.inf, np.inf)):
            keys = np.arange(1, kernel.n + 1, dtype=kernel.dtype)
            keys[[0, -1]] = ends
            operands = Operands(keys[rank_of], np.full(len(values), _STEEP, kernel.dtype))
            got = kernel.forward(ROUTINGS["none"], operands)[0][:, wires]
            indices = np.where(got == keys[ranks], indices, -1)
            some = max(1, min(len(values), _MOST_OF_P // kernel.n**2))
            few = Operands(operands.x[:some], operands.steepness[:some])
            rows = kernel.forward(ROUTINGS["permutation"], few)[1][:, wires]
            wanted = order[:some, ranks, None] == np.arange(kernel.n)
            # Written so that NaN is wrong.
            right = (abs(rows - wanted) < 1e-12).all(axis=-1)
            indices[:some] = np.where(right, indices[:some], -1)
        return np.take_along_axis(values, order[:, ranks], axis=1), indices

    return run


def broken_law(kernel: RelaxedKernel, network: Network) -> str | None:
    """Return a law that a relaxed kernel breaks on random inputs, in words; None: none was seen broken.

    P has rows and columns that sum to 1, and mixes ties half and half; values and all routings are what P
    makes of their operands; a sample has the same results alone; a loss is 0 where the order is right and
    exact; gradients are derivatives of the results. The error-free form keeps ties in place, and its
    gradients are those of other values.
    """
    many = _random_operands(kernel, kernel.samples)
    laws = [*_laws_of_p(kernel, many)]
    if kernel.is_sorter:
        laws += _laws_of_losses(kernel, many)
    if kernel.mixes_ties:
        laws.append(_law_of_ties(kernel, network))
    if not kernel.error_free:
        for routing in ROUTINGS.values():
            laws += _laws_of_gradients(kernel, routing, many)
    return next((words for words, error, bound in laws if not error <= bound), None)


# A law in words, how far it was missed, and how far it may be.
_Law = tuple[str, float, float]


def _random_operands(kernel: RelaxedKernel, count: int) -> Operands:
    random = np.random.default_rng(kernel.n)
    x = np.argsort(random.random((count, kernel.n)), axis=1) + random.uniform(-0.25, 0.25, (count, kernel.n))
    # Every second sample is soft, where gradients of weights count, and every second nearly exact.
    steepness = np.where(np.arange(count) % 2, random.uniform(4, 8, count), random.uniform(1, 2, count))
    return Operands(x.astype(kernel.dtype), steepness.astype(kernel.dtype))


def _payload_of(kernel: RelaxedKernel, routing: Routing, count: int) -> Numbers | None:
    random = np.random.default_rng(routing.code)
    match routing.payload:
        case Payload.NOTHING:
            return None
        case Payload.COLUMNS:
            return random.standard_normal((count, kernel.n, 3)).astype(kernel.dtype)
        case Payload.RANKS:
            return random.integers(kernel.n, size=(count, 3))
        case Payload.TARGET:
            return np.argsort(random.random((count, kernel.n)), axis=1)


def _laws_of_p(kernel: RelaxedKernel, operands: Operands) -> Iterator[_Law]:
    bound, count = _ROUNDING[kernel.real], len(operands.x)
    values, p, _ = kernel.forward(ROUTINGS["permutation"], operands)
    for axis, lines in ((-1, "rows"), (-2, "columns")):
        yield f"{lines} of P do not sum to 1", _distance(p.sum(axis), np.ones(()), np.ones(())), bound
    yield "P has entries below 0", float(-p.min()), 0.0
    plain = kernel.forward(ROUTINGS["none"], operands)[0]
    sizes = abs(operands.x).max(axis=1, keepdims=True)
    yield "values are not P x", _distance(values, _product(p, operands.x[..., None])[..., 0], sizes), bound
    yield "values without P are others", _distance(values, plain, sizes), bound
    alone = kernel.forward(ROUTINGS["none"], operands.first(1))[0]
    yield "a sample alone has other values", _distance(values[:1], alone, sizes[:1]), bound
    for routing in ROUTINGS.values():
        payload = _payload_of(kernel, routing, count)
        if payload is None or routing.is_loss:
            continue
        routed = kernel.forward(routing, replace(operands, payload=payload))[1]
        if routing.payload is Payload.RANKS:
            wanted = np.take_along_axis(p, payload[..., None].astype(np.int64), axis=1).swapaxes(1, 2)
        else:
            wanted = _product(p.swapaxes(1, 2) if routing.is_reversed else p, payload)
        largest = np.asarray(max(1.0, float(abs(wanted).max())))
        yield f"the routing {routing.name!r} is not that of P", _distance(routed, wanted, largest), bound


def _laws_of_losses(kernel: RelaxedKernel, operands: Operands) -> Iterator[_Law]:
    ranks = np.argsort(np.argsort(operands.x, axis=1), axis=1)
    exact = Operands(operands.x, np.full_like(operands.steepness, _STEEP), ranks)
    for routing in ROUTINGS.values():
        if routing.is_loss:
            losses = kernel.forward(routing, exact)[1]
            yield f"the loss {routing.name!r} of the truth is not 0", float(abs(losses).max()), 1e-6


def _law_of_ties(kernel: RelaxedKernel, network: Network) -> _Law:
    operands = Operands(np.zeros((1, kernel.n), kernel.dtype), np.ones(1, kernel.dtype))
    wanted = np.eye(kernel.n)
    for layer in network.layers():
        lo, hi = layer.T
        wanted[lo] = wanted[hi] = (wanted[lo] + wanted[hi]) / 2
    p = kernel.forward(ROUTINGS["permutation"], operands)[1][0]
    return "ties are not mixed half and half", float(abs(p - wanted).max()), _ROUNDING[kernel.real]


def _product(p: Array, columns: Numbers) -> Array:
    return np.matmul(p.astype(np.float64), columns.astype(np.float64))  # type: ignore[no-any-return]


def _distance(got: Array, wanted: Array, sizes: Numbers) -> float:
    """Return the largest distance as a part of `sizes`; NaN where a result is NaN."""
    return float((abs(got - wanted) / sizes).max())


def _laws_of_gradients(kernel: RelaxedKernel, routing: Routing, operands: Operands) -> Iterator[_Law]:
    """Compare the gradients of a routing with differences of its results, along a random direction."""
    count, random = len(operands.x), np.random.default_rng(routing.code)
    operands = replace(operands, payload=_payload_of(kernel, routing, count))
    values, routed, kept = kernel.forward(routing, operands)
    # The weights of the results in a sum, whose gradient is asked for.
    of_values = random.standard_normal(values.shape).astype(kernel.dtype)
    of_routed = random.standard_normal(routed.shape).astype(kernel.dtype)
    if routing.is_loss:
        of_values[...], of_routed[...] = 0, 1
    if routing.name == "none":
        of_routed[...] = 0
    values_grad = None if routing.is_loss else of_values
    routed_grad = None if routing.is_loss or routing.name == "none" else of_routed

    def backward(count: int, kept: Array | None, with_steepness: bool) -> tuple[Operands, Array | None]:
        grads = (None if each is None else each[:count] for each in (values_grad, routed_grad))
        return kernel.backward(routing, operands.first(count), (*grads,), kept, with_steepness)

    gradients, losses = backward(count, kept, True)
    others, _ = backward(count, None, False)
    alone, _ = backward(1, None, True)
    sizes, bound = 1 + abs(gradients.x).max(axis=1, keepdims=True), 10 * _ROUNDING[kernel.real]
    what = f"the gradient of the routing {routing.name!r}"
    yield f"{what} is another without the steepness's", _distance(gradients.x, others.x, sizes), bound
    yield f"{what} is another for a sample alone", _distance(gradients.x[:1], alone.x, sizes[:1]), bound
    steepness = abs(gradients.steepness[:1] - alone.steepness).max()
    yield f"{what} by steepness is another for a sample alone", float(steepness / sizes[0, 0]), bound
    if losses is not None:
        yield (
            f"the loss {routing.name!r} is another with its gradient",
            _distance(losses, routed, 1 + routed),
            bound,
        )

    def sum_at(point: Operands) -> npt.NDArray[np.float64]:
        values, routed, _ = kernel.forward(routing, point)
        parts = (of_values, values), (of_routed, routed)
        sums: npt.NDArray[np.float64] = np.sum(
            [(weight.astype(np.float64) * result).reshape(count, -1).sum(axis=1) for weight, result in parts],
            axis=0,
        )
        return sums

    direction = Operands(
        random.standard_normal(operands.x.shape),
        random.standard_normal(count) / 4,
        None if gradients.payload is None else random.standard_normal(gradients.payload.shape),
    )
    wanted = _derivative(sum_at, operands, direction, _DIFFERENCE[kernel.real])
    terms = [
        (gradient.astype(np.float64) * along).reshape(count, -1)
        for gradient, along in (
            (gradients.x, direction.x),
            (gradients.steepness, direction.steepness),
            (gradients.payload, direction.payload),
        )
        if gradient is not None and along is not None
    ]
    together = np.concatenate(terms, axis=1)
    sizes = np.linalg.norm(together, axis=1) + abs(wanted)
    missed = abs(together.sum(axis=1) - wanted) / np.where(sizes > 0, sizes, 1)
    # A step across a tie misses much: the medians of soft and of steep samples are not moved by a few.
    error = float(max(np.median(half) for half in (missed[::2], missed[1::2]) if len(half)))
    yield f"{what} is not its derivative", error, _DERIVATIVE


def _derivative(
    function: Callable[[Operands], npt.NDArray[np.float64]],
    at: Operands,
    direction: Operands,
    step: float,
) -> npt.NDArray[np.float64]:
    """Return the derivative along a direction by differences of two widths, whose leading errors cancel.

    Source: Richardson 1911.
    """
    wide, narrow = (
        (function(at.moved(direction, width)) - function(at.moved(direction, -width))) / (2 * width)
        for width in (step, step / 2)
    )
    return (4 * narrow - wide) / 3
