"""Catches losses and gradients that differ from the reference in float64, or a reference from 50 digits."""

from __future__ import annotations

import math

import exact
import mpmath
import pytest
import torch
from networks import irregular

import nsc
from nsc.compiler.relaxations import SIGMOIDS
from nsc.contract import routings
from nsc.runtime.relaxed import reference

LOSSES = ["cross_entropy", "binary_cross_entropy"]
# The cut of the logarithms, as a probability.
LEAST = math.exp(-80)
BOTH = ("float32", "float64")


def draw(batch, n, spread, dtype=torch.float32):
    """Return scores and independent targets, so that most entries of P are tails."""
    x = spread * torch.randn(batch, n)
    return x.to(dtype), torch.stack([torch.randperm(n) for _ in range(batch)])


def reference_loss(op, loss, x, target, steepness):
    """Return the losses of the samples and their gradients, by autograd in float64."""
    x = x.double().requires_grad_()
    steepnesses = torch.full((len(x),), steepness, dtype=torch.float64)
    losses = reference.relax(op.kernel, x, steepnesses, target, loss)[1]
    return losses.detach(), torch.autograd.grad(losses.sum(), x)[0]


def kernel_loss(op, loss, x, target, steepness):
    """Return the losses of the samples and their gradients, one call for each."""
    leaf = x.clone().requires_grad_()
    samples = zip(leaf.split(1), target.split(1), strict=True)
    losses = torch.stack([getattr(op, loss)(*sample, steepness) for sample in samples])
    return losses.detach(), torch.autograd.grad(losses.sum(), leaf)[0]


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "batch"), [(16, 20), (128, 1)])
def test_value_and_gradient_against_float64(n, batch, loss):
    op = nsc.compile("bitonic", n, dtypes=BOTH)
    for spread in (1, 3, 10):
        check_against_reference(op, loss, batch, spread)


@pytest.mark.nightly("more sizes, families and dtypes are built")
def test_value_and_gradient_of_the_largest_network():
    check_against_reference(nsc.compile("bitonic", 1024, dtypes=BOTH), "cross_entropy", 1, 3)


def check_against_reference(op, loss, batch, spread):
    x, target = draw(batch, op.n, spread)
    losses, grads = reference_loss(op, loss, x, target, op.default_steepness)
    actual, actual_grads = kernel_loss(op, loss, x.double(), target, op.default_steepness)
    torch.testing.assert_close(actual, losses, rtol=1e-9, atol=0)
    errors = (actual_grads - grads).norm(dim=1)
    assert (errors <= 1e-6 * grads.norm(dim=1)).all()
    actual, actual_grads = kernel_loss(op, loss, x, target, op.default_steepness)
    assert actual_grads.isfinite().all()
    torch.testing.assert_close(actual.double(), losses, rtol=1e-5, atol=0)
    norms, actual_norms = grads.norm(dim=1), actual_grads.double().norm(dim=1)
    assert ((actual_norms - norms).abs() <= 0.01 * norms).all()
    assert ((actual_grads * grads).sum(1) >= 0.9999 * norms * actual_norms).all()


@pytest.mark.slow("kernels are compared with 50 digits")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("sigmoid", "art_lambda"), [*((sigmoid, 0.0) for sigmoid in SIGMOIDS), ("logistic", 0.25)]
)
def test_the_reference_against_50_digits(sigmoid, art_lambda, loss):
    """Exact derivatives are differences of values in 200 digits."""
    op = nsc.compile("odd_even", 4, dtypes=("float64",), relaxation=sigmoid, art_lambda=art_lambda)
    pairs = op_pairs(op)
    x, target = draw(2, 4, 2.0, torch.float64)
    x[0] = torch.tensor([3.0, -2.0, 1.0, 5.0])
    losses, grads = reference_loss(op, loss, x, target, 8.0)
    with mpmath.workdps(50):
        for sample, ranks, value, grad in zip(x, target.tolist(), losses, grads, strict=True):

            def exact_loss(*numbers, ranks=ranks):
                P = exact.permutation(pairs, numbers, sigmoid, art_lambda, 8)
                return getattr(exact, loss)(P, ranks)

            point = [mpmath.mpf(v.item()) for v in sample]
            assert abs(exact_loss(*point) - value.item()) <= 1e-12 * abs(value.item())
            for wire, actual in enumerate(grad.tolist()):
                orders = tuple(int(w == wire) for w in range(4))
                with mpmath.workdps(200):
                    derivative = mpmath.diff(exact_loss, tuple(point), orders)
                assert abs(derivative - actual) <= 1e-9 * grad.abs().max().item()


def op_pairs(op):
    return [pair for layer in op.kernel.layers for pair in layer.tolist()]


@pytest.mark.slow("many kernels are built")
def test_values_far_from_0():
    """The network has five wires and comparators in both directions; values are near 100."""
    network = irregular(5, 9, seed=2)
    op = nsc.compile(network, art_lambda=0)
    x, target = draw(10, 5, 1.0)
    x = x + 100
    losses, _ = kernel_loss(op, "cross_entropy", x, target, 6.0)
    with mpmath.workdps(50):
        for sample, ranks, actual in zip(x, target.tolist(), losses.tolist(), strict=True):
            point = [mpmath.mpf(v.item()) for v in sample]
            P = exact.permutation(op_pairs(op), point, "logistic", 0, 6)
            condition = 6 * 101 * network.depth * torch.finfo(x.dtype).eps
            assert abs(exact.cross_entropy(P, ranks) - actual) <= condition


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", BOTH)
def test_where_all_logarithms_are_cut_there_is_no_gradient(dtype, loss):
    op = nsc.compile("bitonic", 8, dtypes=(dtype,))
    x = (1e3 * torch.arange(8, dtype=getattr(torch, dtype))).requires_grad_()
    value = getattr(op, loss)(x, torch.arange(8).flip(0))
    (grad,) = torch.autograd.grad(value, x)
    assert value.item() == (80 if loss == "cross_entropy" else 20)
    assert (grad == 0).all()
    right = getattr(op, loss)(x, torch.arange(8))
    (grad,) = torch.autograd.grad(right, x)
    assert right.item() == 0
    assert (grad == 0).all()


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", BOTH)
def test_the_loss_of_a_nearly_right_order_keeps_its_digits(dtype, loss):
    """Where p rounds to 1, -log p is the sum of the other entries of its column."""
    op = nsc.compile("odd_even", 2, art_lambda=0, dtypes=(dtype,))
    for gap in (2.0, 7.0):
        x = torch.tensor([0.0, gap], dtype=getattr(torch, dtype), requires_grad=True)
        value = getattr(op, loss)(x, torch.tensor([0, 1]), 10.0)
        (grad,) = torch.autograd.grad(value, x)
        expected = math.log1p(math.exp(-10 * gap))
        torch.testing.assert_close(value.item(), expected, rtol=1e-5, atol=0)
        torch.testing.assert_close(grad[0].item(), 10 * math.exp(-10 * gap), rtol=1e-4, atol=0)
        assert grad[1] == -grad[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_callers_gradient_multiplies_last(loss):
    """The scale would leave the range of float32 if it were applied before the products."""
    op = nsc.compile("bitonic", 8)
    x, target = draw(6, 8, 3.0)
    x.requires_grad_()
    (grad,) = torch.autograd.grad(getattr(op, loss)(x, target), x)
    for scale in (2.0**-60, 2.0**60):
        (scaled,) = torch.autograd.grad(scale * getattr(op, loss)(x, target), x)
        torch.testing.assert_close(scaled / scale, grad, rtol=1e-6, atol=0)
    target = target.expand(3, 6, 8)
    (grad,) = torch.autograd.grad(getattr(op, loss)(x.expand(3, 6, 8), target), x)
    assert grad.isfinite().all()


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("loss", LOSSES)
def test_the_error_free_form_keeps_a_surrogate(loss):
    """P is 0 or 1. The gradient of a wrong entry is that of 1e-12, which moves x in the right direction."""
    op = nsc.compile("bitonic", 8, dtypes=("float64",), error_free=True)
    x, target = draw(20, 8, 1.0)
    losses, grads = reference_loss(op, loss, x, target, op.default_steepness)
    actual, actual_grads = kernel_loss(op, loss, x.double(), target, op.default_steepness)
    torch.testing.assert_close(actual, losses)
    torch.testing.assert_close(actual_grads, grads, rtol=1e-9, atol=1e-9 * grads.abs().max().item())
    P = op.sort_with_permutation(x.double())[1]
    wrong = 1 - P.gather(-2, target.unsqueeze(-2)).squeeze(-2)
    each = 80 / 8 if loss == "cross_entropy" else 2 * 80 / 64
    torch.testing.assert_close(losses, each * wrong.sum(-1))
    assert (grads[wrong.any(-1)].abs().amax(-1) > 1e6).all()


def test_the_reference_has_every_loss_of_the_contract():
    assert reference.LOSSES.keys() == routings.LOSSES.keys()


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("spread", [1, 10])
def test_second_derivatives_in_float32(loss, spread):
    """They contain 1/p², which leaves the range of float32 long before p does."""
    op = nsc.compile("bitonic", 16, dtypes=BOTH)
    x, target = draw(10, 16, spread)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaf = x.to(dtype).requires_grad_()
        (grad,) = torch.autograd.grad(getattr(op, loss)(leaf, target), leaf, create_graph=True)
        results.append(torch.autograd.grad((grad * grad).sum(), leaf)[0].double())
    actual, expected = results
    assert (actual - expected).norm() <= 1e-3 * expected.norm()
