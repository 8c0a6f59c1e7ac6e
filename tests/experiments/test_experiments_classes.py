"""Methods of classes: a name says the loss, and what does not fit is refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import nsc
from experiments.errors import ExperimentError
from experiments.methods.classes import METHODS, find, record_name

pytestmark = pytest.mark.slow("methods of the experiments run")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_starts_at_every_temperature_of_its_grid(name):
    method = find(name)
    x, labels = torch.randn(8, 10, requires_grad=True), torch.arange(8)
    for temperature in (None, *method.grid):
        (grad,) = torch.autograd.grad(method.start(10, temperature)(x, labels), x)
        assert grad.isfinite().all()
        assert grad.any()
    assert method.name == name
    assert bool(method.grid) == bool(method.temperature) == (name != "softmax")


def test_a_name_says_the_loss_and_its_temperature():
    x, labels = torch.randn(8, 10), torch.arange(8)
    softmax = find("softmax").start(10, None)(x, labels)
    torch.testing.assert_close(softmax, torch.nn.functional.cross_entropy(x, labels))
    ours = find("topk:.25,0,.75+m=6+softmax")
    assert ours.title == "Top-k, p_k = 0.25, 0, 0.75, m = 6, softmax for top 1"
    depth = nsc.compile("best", 6, select=nsc.top_k(3)).depth
    for temperature, steepness in ((None, depth / 2), (4.0, 4 * depth)):
        same = nsc.nn.TopKCrossEntropy(10, [0.25, 0, 0.75], 6, top1="softmax", steepness=steepness)
        assert torch.equal(ours.start(10, temperature)(x, labels), same(x, labels))


def test_comparators_and_orders_of_classes_are_options():
    method = find("topk:.5,.5+orders=3+cauchy+art=0")
    assert method.title == "Top-k, p_k = 0.5, 0.5, cauchy, λ = 0, 3 orders"
    assert record_name(method.name) == "topk:.5,.5+cauchy+art=0+orders=3"
    x, labels = torch.randn(8, 10), torch.arange(8)
    network = nsc.compile("best", 10, select=nsc.top_k(2), relaxation="cauchy", art_lambda=0)
    one = nsc.nn.TopKCrossEntropy(10, [0.5, 0.5], network=network, steepness=2.0 * network.depth)
    losses = method.start(10, 2.0)
    each = [one(x[:, order], order.argsort()[labels]) for order in losses.orders]
    assert len({round(loss.item(), 5) for loss in each}) == 3
    torch.testing.assert_close(losses(x, labels), torch.stack(each).mean())
    in_place = find("topk:.5,.5+cauchy+art=0").start(10, 2.0)
    torch.testing.assert_close(in_place(x, labels), one(x, labels))


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.none() | st.integers(1, 99),
    st.booleans(),
    st.booleans(),
)
def test_spellings_of_a_method_have_one_record(p_k, m, softmax, m_first):
    options = [*(["softmax"] if softmax else []), *([f"m={m}"] if m else [])]
    if m_first:
        options.reverse()
    spellings = (
        "+".join([f"topk:{','.join(form(weight) for weight in p_k)}", *options])
        for form in (str, lambda weight: f"{weight:.17e}".replace("+", ""), lambda weight: f" {weight!r} ")
    )
    (record,) = {record_name(spelling) for spelling in spellings}
    assert record_name(record) == record
    loss = find(record).start.__self__
    assert (loss.p_k, loss.m, loss.top1 == "softmax") == (tuple(p_k), m, softmax)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bitonic", "no method 'bitonic' for classes; known: softmax, topk:1, "),
        ("topk:1,b", "'1,b' must be numbers"),
        ("topk:1+bce", "no option 'bce'; known: m=16, softmax, logistic"),
        ("topk:1+orders=0", "'orders=0' must be orders=K"),
    ],
)
def test_names_that_say_nothing_are_refused(name, message):
    with pytest.raises(ExperimentError, match=message):
        find(name)


@pytest.mark.parametrize(
    ("name", "temperature", "message"),
    [
        ("softmax", 1.0, "softmax has no temperature, got 1.0"),
        ("topk:.5,.6", None, "topk:.5,.6 with 10 classes: .* add up to 1"),
        ("topk:1+m=16", None, "with 10 classes: .* m is at most the number of classes, 10, got 16"),
        ("topk:1", 0.0, "steepness must be .* above 0"),
    ],
)
def test_methods_that_do_not_fit_are_refused(name, temperature, message):
    with pytest.raises(ExperimentError, match=message):
        find(name).start(10, temperature)
