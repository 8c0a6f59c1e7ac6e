"""The table of methods: names, temperatures, gradients, extreme scores, and two steps of training."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import nsc
from experiments.errors import ExperimentError
from experiments.methods import (
    METHODS,
    Method,
    Truth,
    find,
    middle,
    record_name,
    usual_temperature,
    with_strength,
)
from nsc.compiler.formats import write_network

pytestmark = pytest.mark.slow("other methods are compared with their sources")

NETWORKS = ("odd_even", "bitonic")
# Their loss depends on the place of an item in the sample: through its wire, or through its noise.
PLACED = (*NETWORKS, "stochastic_neural_sort")
UNPLACED = [name for name in METHODS if name not in PLACED]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def truth_of(values: Tensor) -> Truth:
    return Truth(values.argsort(dim=-1, stable=True).argsort(-1), values)


def drawn(batch: int, n: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Truth]:
    """Return scores and a truth that disagree."""
    scores = torch.randn(batch, n, dtype=dtype)
    return scores, truth_of(10000 * torch.rand(batch, n, dtype=dtype))


def evaluated(
    name: str, scores: Tensor, truth: Truth, temperature: float | None = None
) -> tuple[Tensor, Tensor]:
    """Return the loss and its gradient."""
    scores = scores.detach().requires_grad_()
    loss = find(name).start(scores.shape[-1], temperature, generator())(scores, truth)
    return loss.detach(), torch.autograd.grad(loss, scores)[0]


@pytest.mark.parametrize("name", METHODS)
def test_a_row_is_complete(name: str) -> None:
    method = METHODS[name]
    assert method.source
    assert bool(method.grid) == bool(method.temperature)
    assert [other.name for other in METHODS.values() if other.title == method.title] == [name]


@pytest.mark.parametrize("name", METHODS)
def test_a_loss_is_a_number_that_a_step_lowers(name: str) -> None:
    scores, truth = drawn(6, 4)
    loss, gradient = evaluated(name, scores, truth)
    assert loss.shape == ()
    assert gradient.shape == scores.shape
    lower, _ = evaluated(name, scores - 1e-3 * gradient / gradient.norm(), truth)
    assert lower < loss


@pytest.mark.parametrize("name", METHODS)
def test_scores_in_the_true_order_are_better_than_reversed_ones(name: str) -> None:
    truth = truth_of(torch.rand(3, 8))
    scores = truth.ranks.float() - 3.5
    assert evaluated(name, scores, truth)[0] < evaluated(name, -scores, truth)[0]


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].grid])
def test_no_temperature_is_the_usual_one(name: str) -> None:
    scores, truth = drawn(2, 4)
    usual = usual_temperature(METHODS[name])
    # Networks have the paper's steepness, 2 × depth, and other methods the middle of their grid.
    assert usual == (2.0 if METHODS[name].is_network else middle(METHODS[name].grid))
    same = evaluated(name, scores, truth, usual)
    assert torch.equal(evaluated(name, scores, truth)[0], same[0])
    assert not torch.equal(evaluated(name, scores, truth, min(METHODS[name].grid))[0], same[0])


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ["bitonic", "soft_sort"])
def test_a_temperature_is_a_number_above_0(name: str, temperature: float) -> None:
    with pytest.raises(ExperimentError, match=f"{name}: the temperature.*above 0, got {temperature}"):
        find(name).start(4, temperature, generator())


@pytest.mark.parametrize("name", [*METHODS, "odd_even+cauchy+art=0+bce", "odd_even+orders=3"])
def test_gradients_are_the_derivatives(name: str) -> None:
    scores, truth = drawn(2, 4, torch.float64)

    def loss(x: Tensor) -> Tensor:
        return find(name).start(4, None, generator())(x, truth)

    assert torch.autograd.gradcheck(loss, scores.requires_grad_())


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["tied", "some tied", "far", "far and wrong", "far and tied"])
def test_extreme_scores_have_finite_losses_and_gradients(name: str, kind: str) -> None:
    n = 16
    truth = truth_of(torch.rand(3, n))
    scores = {
        "tied": torch.zeros(3, n),
        "some tied": (truth.ranks // 4).float(),
        "far": 1e4 * (truth.ranks / (n - 1) * 2 - 1),
        "far and wrong": 1e4 * (1 - truth.ranks / (n - 1) * 2),
        "far and tied": 1e4 * (1 - 2.0 * (truth.ranks < n // 2)),
    }[kind]
    for temperature in METHODS[name].grid or (None,):
        loss, gradient = evaluated(name, scores, truth, temperature)
        assert loss.isfinite(), f"temperature {temperature}"
        assert gradient.isfinite().all(), f"temperature {temperature}"


@pytest.mark.parametrize("name", UNPLACED)
@settings(max_examples=40)
@given(data=st.data())
def test_permuted_items_have_permuted_gradients(name: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 8))
    # SoftSort's derivative at a tie depends on how a sort breaks it.
    grid = st.lists(st.integers(-20, 20), min_size=n, max_size=n, unique=name == "soft_sort")
    scores = torch.tensor([data.draw(grid)], dtype=torch.float64) / 8
    values = torch.tensor([data.draw(st.permutations(range(n)))], dtype=torch.float64)
    order = torch.tensor(data.draw(st.permutations(range(n))))
    truth = truth_of(values)
    loss, gradient = evaluated(name, scores, truth)
    permuted = Truth(truth.ranks[:, order], truth.values[:, order])
    permuted_loss, permuted_gradient = evaluated(name, scores[:, order], permuted)
    torch.testing.assert_close(permuted_loss, loss)
    torch.testing.assert_close(permuted_gradient, gradient[:, order], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", UNPLACED)
def test_the_loss_of_a_batch_is_the_mean_of_its_samples(name: str) -> None:
    scores, truth = drawn(5, 6, torch.float64)
    alone = [
        evaluated(name, scores[i : i + 1], Truth(truth.ranks[i : i + 1], truth.values[i : i + 1]))
        for i in range(5)
    ]
    loss, gradient = evaluated(name, scores, truth)
    torch.testing.assert_close(loss, torch.stack([one for one, _ in alone]).mean())
    torch.testing.assert_close(gradient, torch.cat([one for _, one in alone]) / 5)


def test_a_generator_decides_the_noise() -> None:
    scores, truth = drawn(2, 5)
    loss = find("stochastic_neural_sort").start(5, None, generator())
    first, second = loss(scores, truth), loss(scores, truth)
    assert first != second
    assert find("stochastic_neural_sort").start(5, None, generator())(scores, truth) == first


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("odd_even", "Odd-Even"),
        ("bitonic+optimal+art=0.4+error_free+bce", "Bitonic, optimal, λ = 0.4, error-free, BCE"),
        ("odd_even+cauchy+art=0+orders=8", "Odd-Even, cauchy, λ = 0, 8 orders"),
    ],
)
def test_a_networks_title_says_its_options(name: str, title: str) -> None:
    method = find(name)
    assert (method.name, method.title) == (name, title)
    assert "Petersen et al., ICML 2021" in method.source


@pytest.fixture
def network_file(tmp_path: Path) -> Path:
    file = tmp_path / "mine.txt"
    file.write_text(write_network(nsc.compile("bitonic", 4).network), encoding="utf-8")
    return file


@given(st.floats(0, 1, exclude_max=True))
def test_a_network_keeps_its_strength(strength: float) -> None:
    for name in (f"bitonic+art={strength!r}", with_strength("bitonic", strength)):
        record = record_name(name)
        assert record_name(record) == record
        *_, shown = find(record).title.split("λ = ")
        assert (float(shown) if record != "bitonic" else 0.25) == strength


def test_orders_are_those_of_the_library_and_in_the_record() -> None:
    assert record_name("odd_even+orders=08+art=.0+cauchy") == "odd_even+cauchy+art=0+orders=8"
    scores, truth = drawn(3, 6)
    op = nsc.compile("odd_even", 6)
    expected = nsc.nn.functional.order_loss(op, scores, truth.ranks, 6.0, orders=4)
    assert find("odd_even+orders=4").start(6, 1.0, generator())(scores, truth) == expected


def test_a_network_file_is_a_method(network_file: Path) -> None:
    scores, truth = drawn(3, 4)
    method = find(f"{network_file}+cauchy")
    assert method.title == "mine.txt, cauchy"
    assert torch.equal(
        evaluated(method.name, scores, truth)[0], evaluated("bitonic+cauchy", scores, truth)[0]
    )


def test_a_file_that_does_not_sort_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "short.txt"
    file.write_text("[[[0,1]],[[1,2]]]", encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"short.txt with n = 3: .*sort"):
        find(str(file)).start(3, None, generator())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("quicksort", ["'quicksort'", "odd_even", "bitonic", "network file", "neural_sort", "list_mle"]),
        ("bitonic+soft", ["'soft'", "cauchy", "art=λ", "error_free", "bce"]),
        ("bitonic+art=1", ["'art=1'", "[0, 1)"]),
        ("bitonic+orders=0", ["'orders=0'", "at least 1"]),
        ("bitonic+orders=two", ["'orders=two'", "at least 1"]),
        ("bitonic+bce+orders=2", ["cross entropy", "leave bce out"]),
        ("neural_sort+bce", ["'neural_sort'", "neither"]),
    ],
)
def test_an_unknown_name_lists_the_known_ones(name: str, words: list[str]) -> None:
    with pytest.raises(ExperimentError) as caught:
        find(name)
    for word in words:
        assert word in caught.value.message


def trained(method: Method, n: int = 5) -> str:
    """Return two steps of gradient descent on a linear scorer, with few enough digits for any machine."""
    torch.manual_seed(0)
    features = torch.rand(8, n, 3)
    truth = truth_of(5000 * features.sum(-1).square() / 9)
    weights = torch.tensor([0.3, -0.2, 0.1], requires_grad=True)
    loss_of = method.start(n, None, generator())
    lines = []
    for _ in range(2):
        loss = loss_of(features @ weights, truth)
        (gradient,) = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            weights -= 0.1 * gradient
        shown = " ".join(f"{weight:9.4g}" for weight in weights.tolist())
        lines.append(f"{method.name:<22} {loss.item():9.4g}  {shown}\n")
    return "".join(lines)


def test_two_steps_of_training(golden: Callable[[str, str], Path]) -> None:
    names = [*METHODS, "bitonic+cauchy", "odd_even+art=0+bce", "odd_even+orders=3"]
    golden(
        "methods.txt",
        "method, then loss and weights of each step\n" + "".join(trained(find(name)) for name in names),
    )
