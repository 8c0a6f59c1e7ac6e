"""Both weights of a comparator, and P as their product, against 50 digits, tails included."""

from __future__ import annotations

import math

import exact
import mpmath
import numpy as np
import pytest
import torch
from exact import SMALLEST_NORMAL, ulps
from networks import irregular

import nsc
from nsc.contract.routings import LOSSES
from nsc.runtime.relaxed import reference

pytestmark = pytest.mark.slow("kernels are compared with 50 digits")

DIGITS = 50
# No other test uses this name, so no kernel of theirs, built without an optimiser, is taken.
NAME = "as_users_build_it"
SMOOTH = [sigmoid for sigmoid in exact.SIGMOIDS if sigmoid != "hard"]
DTYPES = ["float32", "float64"]
MORE = pytest.mark.nightly("more sigmoids, strengths and types are compared with 50 digits")


def points(dtype, count):
    """Return differences of every size, many of them in the tails of the sigmoids."""
    least, most = {"float32": (-30, 38.5), "float64": (-200, 308.2)}[dtype]
    rng = np.random.default_rng(0)
    sizes = [10 ** rng.uniform(least, most, count), rng.uniform(0, 110, 2 * count)]
    sizes += [10 ** rng.uniform(-3, 2, count), np.finfo(dtype).max * np.array([1, 0.5, 0.2])]
    if dtype == "float64":
        sizes.append(rng.uniform(0, 800, count))
    return torch.from_numpy(np.concatenate([*sizes, [0.0, 0.25, 1.0]]).astype(dtype))


def compiled(network, n=None, **options):
    return nsc.compile(network, n, name=NAME, **options)


def by_kernel(op, x, steepness):
    return op.sort_with_permutation(x, steepness)[1]


def by_reference(op, x, steepness):
    steepnesses = torch.full((len(x),), steepness, dtype=x.dtype)
    return reference.relax(op.kernel, x, steepnesses, None, "permutation")[1]


def weights(op, gaps, steepness=1.0, permutation=by_kernel):
    """Return α and β of one comparator on (0, d): a column of P of the network on two wires."""
    x = torch.stack([torch.zeros_like(gaps), gaps], -1)
    P, of_opposite = permutation(op, x, steepness), permutation(op, -x, steepness)
    assert torch.equal(P[:, 0, 0], P[:, 1, 1])
    assert torch.equal(P[:, 0, 1], P[:, 1, 0])
    assert torch.equal(P, of_opposite.flip(-1))
    return P[:, 0, 0], P[:, 1, 0]


def check_weights(actual, expected, dtype, allowed):
    """Check weights against mpmath numbers, each within its allowance; tiny ones may be 0."""
    normal = [i for i, e in enumerate(expected) if e >= SMALLEST_NORMAL[dtype]]
    tiny = sorted(set(range(len(expected))) - set(normal))
    errors = ulps(actual[normal], [expected[i] for i in normal], dtype)
    assert all(error <= allowed[i] for i, error in zip(normal, errors, strict=True))
    assert (actual[tiny] <= SMALLEST_NORMAL[dtype]).all()


# The functions of the kernels have unit tests of their own, of each sigmoid in both types.
@pytest.mark.parametrize(
    ("sigmoid", "permutation", "dtype"),
    [*((sigmoid, by_reference, "float64") for sigmoid in SMOOTH), ("logistic", by_kernel, "float32")],
)
def test_both_weights_are_within_4_units_of_their_tails(sigmoid, permutation, dtype):
    op = compiled("bitonic", 2, relaxation=sigmoid, art_lambda=0, dtypes=(dtype,))
    gaps = points(dtype, 50)
    alpha, beta = weights(op, gaps, permutation=permutation)
    allowed = [4.0] * len(gaps)
    if (sigmoid, dtype, permutation) == ("gaussian", "float64", by_reference):
        # The argument of torch's erfc is rounded twice, which counts v² times.
        allowed = (4 + 2 * gaps**2).tolist()
    with mpmath.workdps(DIGITS + 20):
        values = [mpmath.mpf(float(d)) for d in gaps]
        for weight, sign in ((alpha, 1), (beta, -1)):
            expected = [exact.SIGMOIDS[sigmoid](sign * v) for v in values]
            check_weights(weight, expected, dtype, allowed)
    assert (alpha[gaps == 0] == 0.5).all()


# The trick is a function of its own. At night each sigmoid takes it, by roots and by powers.
STRENGTHS = [
    ("logistic", 0.25, "float32"),
    ("logistic", 0.25, "float64"),
    *(
        pytest.param(sigmoid, art_lambda, DTYPES[(number + place) % 2], marks=MORE)
        for number, sigmoid in enumerate(SMOOTH)
        for place, art_lambda in enumerate((0.5, 0.4))
    ),
]


@pytest.mark.parametrize(("sigmoid", "art_lambda", "dtype"), STRENGTHS)
def test_both_weights_with_the_activation_replacement_trick(sigmoid, art_lambda, dtype):
    """The argument is rounded in three steps, which count κ = |v f'(v) / f(v)| times in the result."""
    op = compiled("bitonic", 2, relaxation=sigmoid, art_lambda=art_lambda, dtypes=(dtype,))
    gaps = points(dtype, 20)
    alpha, beta = weights(op, gaps, 3.0)
    f = exact.SIGMOIDS[sigmoid]
    with mpmath.workdps(DIGITS + 20):
        arguments = [3 * exact.activation(mpmath.mpf(float(d)), art_lambda) for d in gaps]
        for weight, sign in ((alpha, 1), (beta, -1)):
            expected, allowed = [], []
            for v in arguments:
                value = f(sign * v)
                # f(v (1 + h)) / f(v) - 1 = κ h for a small h, so the test needs no derivative.
                step = mpmath.mpf(10) ** -20
                kappa = abs(f(sign * v * (1 + step)) / value - 1) / step if value else 0
                expected.append(value)
                allowed.append(4 + 4 * kappa)
            check_weights(weight, expected, dtype, allowed)


@pytest.mark.parametrize(
    ("sigmoid", "art_lambda"),
    [("logistic", 0.25), *(pytest.param(each, 0.5, marks=MORE) for each in SMOOTH)],
)
def test_the_largest_numbers_have_weights_and_gradients_too(sigmoid, art_lambda):
    """A mask puts them where nothing takes part. Where a difference overflows, it is infinite."""
    op = compiled("bitonic", 5, relaxation=sigmoid, art_lambda=art_lambda, dtypes=DTYPES)
    for dtype in (torch.float32, torch.float64):
        greatest = torch.finfo(dtype).max
        for largest in (greatest, 0.6 * greatest, 0.3 * greatest, math.inf):
            x = torch.tensor([1.0, 2.0, 3.0, -largest, largest], dtype=dtype).requires_grad_()
            p = by_kernel(op, x.unsqueeze(0), 20.0)
            torch.testing.assert_close(p, by_reference(op, x.unsqueeze(0), 20.0))
            assert (p >= 0).all()
            torch.testing.assert_close(p.sum(-1), torch.ones(1, 5, dtype=dtype))
            assert torch.autograd.grad(p.square().sum(), x)[0].isfinite().all()
            if sigmoid == "logistic":
                infinite = torch.tensor([1.0, 2.0, 3.0, -math.inf, math.inf], dtype=dtype)
                torch.testing.assert_close(op.sort(x, 20.0)[1:4], op.sort(infinite, 20.0)[1:4])


def through_pairs(network, x, steepness):
    """Run a network pair by pair on the kernel for two wires, and multiply its weights to P in 50 digits."""
    pair = compiled("bitonic", 2, dtypes=(str(x.dtype).removeprefix("torch."),))
    products = [exact.unit_matrix(network.n) for _ in x]
    for layer in network.layers():
        wires = torch.tensor(layer.tolist())
        values, mixes = pair.sort_with_permutation(x[:, wires], steepness)
        x = x.clone()
        x[:, wires] = values
        for product, of_sample in zip(products, mixes.tolist(), strict=True):
            for (lo, hi), mix in zip(layer.tolist(), of_sample, strict=True):
                exact.mix_rows(product, lo, hi, mpmath.mpf(mix[0][0]), mpmath.mpf(mix[0][1]))
    return x, [entry for product in products for row in product for entry in row]


@pytest.mark.parametrize(("spread", "dtype"), [(0.3, "float32"), (3.0, "float64")])
def test_entries_of_P_given_the_weights(spread, dtype):
    """Every normal entry is within 2 × depth + 8 units of the product of the rounded weights."""
    network = irregular(13, 20, seed=7)
    op = compiled(network, dtypes=(dtype,))
    steepness = 2.0 * network.depth
    x = spread * torch.randn(3, network.n, dtype=getattr(torch, dtype))
    values, P = op.sort_with_permutation(x, steepness)
    with mpmath.workdps(DIGITS):
        expected_values, expected = through_pairs(network, x, steepness)
        entries = P.flatten().tolist()
        normal = [i for i, e in enumerate(expected) if e >= SMALLEST_NORMAL[dtype]]
        errors = ulps([entries[i] for i in normal], [expected[i] for i in normal], dtype)
    assert torch.equal(expected_values, values)
    assert max(errors) <= 2 * network.depth + 8
    assert min(expected) < 1e-18  # there are tails to get wrong
    tiny = sorted(set(range(len(expected))) - set(normal))
    assert all(entries[i] <= 2 * SMALLEST_NORMAL[dtype] for i in tiny)


def test_renaming_the_wires_changes_no_bit():
    """New names reverse the comparators whose first wire gets the higher number."""
    dtype = "float32"
    network = irregular(13, 20, seed=7)
    names = np.random.default_rng(3).permutation(network.n)
    renamed = nsc.Network.from_layers(network.n, [names[layer] for layer in network.layers()])
    new_wires = torch.from_numpy(names)
    x = torch.randn(40, network.n, dtype=getattr(torch, dtype))
    x[0, :4] = 0.5
    moved = torch.empty_like(x)
    moved[:, new_wires] = x
    op = compiled(network, dtypes=(dtype,))
    # The renamed network leaves its ranks on other wires, so it is compiled as a selection of all ranks.
    all_ranks = nsc.ranks(*range(network.n))
    selector = nsc.compile(renamed, name=NAME, select=all_ranks, wires=names.tolist(), dtypes=(dtype,))
    values, P = op.sort_with_permutation(x, 24.0)
    assert torch.equal(selector.select(moved, 24.0), values)
    # P is computed from 2^72 times the unit matrix, whose rows move with the wires.
    unit = torch.zeros(network.n, network.n, dtype=x.dtype)
    unit[new_wires, torch.arange(network.n)] = 2.0**72
    moved_P = selector.route(moved, unit.expand(len(x), -1, -1), 24.0) * 2.0**-72
    normal = SMALLEST_NORMAL[dtype] <= P
    assert torch.equal(moved_P[normal], P[normal])


@pytest.mark.parametrize("n", [5, 36])
def test_a_sample_does_not_depend_on_its_batch(n):
    op = compiled("bitonic", n)
    x = torch.randn(20, n, requires_grad=True)
    target = torch.stack([torch.randperm(n) for _ in range(20)])
    upstream = torch.randn(20, n, n)
    steepness = torch.full((20,), 20.0, requires_grad=True)

    def run(*samples):
        x, target, upstream, steepness = samples
        P = op.sort_with_permutation(x, steepness)[1]
        results = [P, op.sort(x, steepness), op.rank(x, steepness)]
        cotangents = [upstream, upstream[:, 0], upstream[:, 0]]
        losses = [op.loss(name, x, target, steepness, reduction="none") for name in LOSSES]
        cotangents += [torch.ones(len(x))] * len(losses)
        grads = [
            torch.autograd.grad(result, (x, steepness), cotangent)
            for result, cotangent in zip((*results, *losses), cotangents, strict=True)
        ]
        return [each.detach() for each in (*results, *losses, *(grad for both in grads for grad in both))]

    operands = (x, target, upstream, steepness)
    together = run(*operands)
    for place in (0, 7, 19):  # the last of a register's lanes, and of a register that is not full
        alone = run(*(each[place : place + 1] for each in operands))
        for of_all, singly in zip(together, alone, strict=True):
            assert torch.equal(of_all[place : place + 1], singly)
