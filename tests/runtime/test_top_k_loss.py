"""The top-k cross entropy: a value or a gradient that its definition does not give, wrong input that passes.

test_compat_difftopk.py compares it with difftopk.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nsc
from nsc.errors import LoweringError, NscError, OperandError, OperandTypeError
from nsc.nn import TopKCrossEntropy

pytestmark = pytest.mark.slow("many kernels are built")

DOUBLE = torch.float64


def batch(classes=10, lead=(20,), dtype=torch.float32):
    return torch.randn(*lead, classes, dtype=dtype, requires_grad=True), torch.randint(classes, lead)


def defined(loss, logits, labels):
    """Return the loss of each label by the formula, one term at a time, on rows of the whole network's P."""
    sorter = nsc.compile("bitonic", logits.shape[-1], dtypes="float64")
    rows = sorter.sort_with_permutation(logits, loss.steepness)[1].flip(-2)
    q = torch.zeros(len(labels), dtype=logits.dtype)
    for j, weight in enumerate(loss.p_k):
        for i in range(j + 1):
            q = q + weight * rows[torch.arange(len(labels)), i, labels]
    return -torch.log(q * (1 - 2e-7) + 1e-7)


@pytest.mark.parametrize("p_k", [(0.5, 0, 0, 0, 0.5), (0, 0, 1)])
def test_the_loss_is_its_definition(p_k):
    loss = TopKCrossEntropy(7, p_k, network="bitonic", steepness=2.0, reduction="none").double()
    logits, labels = batch(7, dtype=DOUBLE)
    ours, expected = loss(logits, labels), defined(loss, logits, labels)
    torch.testing.assert_close(ours, expected)
    ours_grad, expected_grad = (torch.autograd.grad(t.sum(), logits)[0] for t in (ours, expected))
    torch.testing.assert_close(ours_grad, expected_grad, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("m", "top1"), [(None, "network"), (4, "softmax"), (4, "cross_entropy")])
def test_gradcheck(m, top1):
    loss = TopKCrossEntropy(6, (0.3, 0.2, 0.5), m, top1=top1, steepness=1.5, learnable=True).double()
    logits, labels = batch(6, (3,), DOUBLE)
    assert torch.autograd.gradcheck(
        lambda x, log: torch.func.functional_call(loss, {"log_steepness": log}, (x, labels)),
        (logits, loss.log_steepness.detach().clone().requires_grad_()),
    )


shares = st.lists(st.integers(0, 8), min_size=4, max_size=4).filter(any)
scores = st.lists(st.integers(-(10**6), 10**6), min_size=6, max_size=6, unique=True)


@settings(max_examples=25)
@given(shares, scores, st.integers(0, 5), st.sampled_from([None, 5]))
def test_with_exact_comparators_q_is_the_share_of_top_sets_with_the_label(parts, logits, label, m):
    p_k = [part / sum(parts) for part in parts]
    loss = TopKCrossEntropy(6, p_k, m, network="bitonic", relaxation="hard")
    above = sum(logit > logits[label] for logit in logits)
    q = torch.tensor(sum(p_k[above:]), dtype=torch.float32)
    expected = -torch.log(q * (1 - 2e-7) + 1e-7)
    ours = loss(torch.tensor([logits], dtype=torch.float32), torch.tensor([label]))
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=25)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=6, max_size=6),
    st.integers(0, 5),
    st.sampled_from(["logistic", "cauchy"]),
)
def test_value_and_gradient_are_finite(logits, label, relaxation):
    loss = TopKCrossEntropy(6, (0.5, 0, 0.5), 5, network="bitonic", relaxation=relaxation)
    x = torch.tensor([logits], requires_grad=True)
    value = loss(x, torch.tensor([label]))
    assert -1e-5 <= value.item() <= 16.2
    assert torch.autograd.grad(value, x)[0].isfinite().all()


@pytest.mark.parametrize("m", [None, 4])
def test_classes_with_an_infinite_logit_are_out_of_the_question(m):
    loss = TopKCrossEntropy(6, (0.5, 0.5), m)
    x = torch.tensor([[1.0, -torch.inf, 0.5, -torch.inf, -torch.inf, 2.0]], requires_grad=True)
    value = loss(x, torch.tensor([5]))
    (grad,) = torch.autograd.grad(value, x)
    assert value.isfinite()
    assert grad.isfinite().all()
    assert grad[0, 5] < 0
    out = loss(x, torch.tensor([1]))
    assert out.item() == pytest.approx(16.118, abs=0.01)
    assert torch.autograd.grad(out, x)[0].isfinite().all()
    with torch.no_grad():
        x[0, 0] = torch.nan
    assert loss(x, torch.tensor([5])).isnan()


def test_the_network_selects_the_top_k_of_m_alone():
    whole, some = TopKCrossEntropy(100, (0.5,) * 2), TopKCrossEntropy(100, (0.5,) * 2, m=16)
    assert whole.operator.ranks == (99, 98)
    assert some.operator.ranks == (15, 14)
    assert some.operator.size < whole.operator.size < nsc.compile("bitonic", 100).size
    assert repr(some).startswith("TopKCrossEntropy(classes=100, p_k=(0.5, 0.5), m=16, Selector(best_16_top_2")
    logits, labels = batch(100)
    some(logits, labels).backward()
    compared = logits.detach().scatter(-1, labels.unsqueeze(-1), torch.inf).topk(16).indices
    outside = torch.ones_like(logits, dtype=torch.bool).scatter(-1, compared, False)
    assert not logits.grad[outside].any()
    assert logits.grad.gather(-1, labels.unsqueeze(-1)).all()


def test_reductions_and_leading_shapes():
    losses = {name: TopKCrossEntropy(5, (0.5, 0.5), reduction=name) for name in ("mean", "sum", "none")}
    logits, labels = batch(5, (2, 3))
    each = losses["none"](logits, labels)
    assert each.shape == (2, 3)
    torch.testing.assert_close(losses["sum"](logits, labels), each.sum())
    torch.testing.assert_close(losses["mean"](logits, labels), each.mean())
    for place in ((0, 2), (1, 1)):
        alone = losses["mean"](logits[place], labels[place].to(torch.uint8))
        torch.testing.assert_close(alone, each[place])
    assert losses["none"](logits[:0], labels[:0]).shape == (0, 3)


@pytest.mark.parametrize(("dtype", "m"), [(torch.bfloat16, 4), (torch.float16, None), (DOUBLE, None)])
def test_dtypes(dtype, m):
    loss = TopKCrossEntropy(6, (0.5, 0.5), m, steepness=2.0)
    logits, labels = batch(6)
    x = logits.detach().to(dtype).requires_grad_()
    exact = loss(x.float(), labels)
    if dtype == DOUBLE:
        with pytest.raises(
            OperandTypeError, match=r"float64 is not served: convert the module with .double()"
        ):
            loss(x, labels)
        loss = loss.to(dtype)
    value = loss(x, labels)
    assert value.dtype == dtype
    torch.testing.assert_close(value, exact.to(dtype))
    (grad,) = torch.autograd.grad(value, x)
    assert grad.dtype == dtype
    assert grad.isfinite().all()


def test_weights_may_be_numbers_of_any_kind():
    for p_k in (
        np.array([0.25, 0.75]),
        torch.tensor([0.25, 0.75]),
        iter([0.25, 0.75]),
        [0.25, Fraction(3, 4)],
    ):
        assert TopKCrossEntropy(6, p_k).p_k == (0.25, 0.75)
    assert len(TopKCrossEntropy(6, [0.333333] * 3).p_k) == 3


def test_a_selector_that_is_compiled_already():
    op = nsc.compile("odd_even", 6, select=nsc.top_k(2))
    logits, labels = batch(6)
    ours = TopKCrossEntropy(6, (0.5, 0.5), network=op)
    assert ours.operator is op
    assert torch.equal(
        ours(logits, labels), TopKCrossEntropy(6, (0.5, 0.5), network="odd_even")(logits, labels)
    )


def selector(n, select):
    return nsc.compile("bitonic", n, select=select)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((10, [0.5, 0.6]), {}, OperandError, "add up to 1, these add up to 1.1"),
        ((10, []), {}, OperandError, "add up to 0"),
        ((10, [1.5, -0.5]), {}, OperandError, r"0 or more, got \[1.5, -0.5\]"),
        ((10, [float("nan"), 1]), {}, OperandError, "finite and 0 or more"),
        ((10, 1.0), {}, OperandTypeError, "must list numbers, .* got 1.0"),
        ((10, "1"), {}, OperandTypeError, "must list numbers"),
        ((10, [True]), {}, OperandTypeError, "must list numbers"),
        ((10, bytearray(b"\x01")), {}, OperandTypeError, "must list numbers"),
        ((10, [1]), {"select": nsc.top_k(1)}, LoweringError, "selects .* itself: leave out select"),
        ((2, [0, 0, 1]), {}, OperandError, "p_k has 3 weights for 2 compared: leave out some"),
        ((10, [0, 0, 1], 2), {}, OperandError, "3 weights for 2 compared"),
        ((10, [1], 11), {}, OperandError, "m is at most the number of classes, 10, got 11"),
        ((10, [1], 0), {}, OperandError, "m must be 1 or more, got 0"),
        ((10, [1], 4.0), {}, OperandTypeError, "m must be an integer, got 4.0"),
        ((0, [1]), {}, OperandError, "classes must be 1 or more, got 0"),
        (("10", [1]), {}, OperandTypeError, "classes must be an integer, got '10'"),
        ((4, [1]), {"top1": "sm"}, OperandError, "no top1 'sm'; known: network, softmax, cross_entropy"),
        ((4, [1]), {"reduction": None}, OperandError, "reduction must be one of mean, sum, none, got None"),
        ((4, [1]), {"network": nsc.Network.from_layers(3, [])}, NscError, "3 wires, n=4 disagrees"),
        ((4, [1]), {"network": nsc.compile("bitonic", 4)}, OperandTypeError, "is a Sorter, .*top_k\\(1\\)"),
        ((4, [1]), {"network": selector(4, nsc.ranks(1, 2))}, OperandError, "selects the ranks 1, 2 of 4"),
        ((4, [1]), {"network": selector(5, nsc.top_k(1))}, OperandError, "top 1 of 4 values; .* 4 of 5"),
        ((4, [1]), {"network": selector(4, nsc.top_k(1)), "relaxation": "cauchy"}, OperandError, "leave out"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        TopKCrossEntropy(*arguments, **options)


@pytest.mark.parametrize(
    ("logits", "labels", "error", "message"),
    [
        (torch.zeros(2, 4), torch.tensor([0, 4]), OperandError, "labels are 0 … 3, found 4"),
        (torch.zeros(2, 4), torch.tensor([-100, 0]), OperandError, "labels are 0 … 3, found -100"),
        (torch.zeros(2, 4), torch.tensor([0.0, 1.0]), OperandTypeError, "integer dtype, got torch.float32"),
        (torch.zeros(2, 4), torch.tensor([True, False]), OperandTypeError, "integer dtype, got torch.bool"),
        (torch.zeros(2, 4), torch.tensor([0, 1]).to(torch.uint16), OperandTypeError, "uint16: use .long()"),
        ([[0.0] * 4], torch.tensor([0]), OperandTypeError, "logits must be a tensor, got list"),
        (torch.zeros(2, 4).long(), torch.tensor([0, 1]), OperandTypeError, "floating-point dtype, got"),
        (
            torch.zeros(2, 5),
            torch.tensor([0, 1]),
            OperandError,
            r"must be \(…, 4\) .* got \(2, 5\) and \(2,\)",
        ),
        (torch.zeros(2, 4), torch.tensor([[0, 1]]), OperandError, r"got \(2, 4\) and \(1, 2\)"),
        (torch.tensor(0.0), torch.tensor(0), OperandError, r"got \(\) and \(\)"),
        (torch.zeros(2, 4), torch.zeros(2, device="meta").long(), OperandError, "on cpu and labels on meta"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(logits, labels, error, message):
    with pytest.raises(error, match=message):
        TopKCrossEntropy(4, [1], 3)(logits, labels)
