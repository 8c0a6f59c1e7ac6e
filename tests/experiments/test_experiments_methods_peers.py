"""Methods against published packages, against the dense matrix, and against their definitions."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import nsc
from experiments.methods import Truth, find
from experiments.methods.laplace import log_weights, thresholds
from experiments.methods.permutations import neuralsort_logits, softsort_logits
from experiments.methods.ranks import decreasing_blocks, soft_ranks
from experiments.methods.transport import log_plan, squash

pytestmark = pytest.mark.slow("other methods are compared with their sources")


def samples(batch: int, n: int, spread: float = 1.0) -> Tensor:
    return spread * torch.randn(batch, n, dtype=torch.float64)


def ranks_of(batch: int, n: int) -> Tensor:
    return torch.rand(batch, n).argsort(-1)


@pytest.mark.parametrize("tau", [0.2, 5.0])
def test_neuralsort_is_difftopks(tau: float) -> None:
    peer = pytest.importorskip("difftopk.neuralsort").NeuralSort(tau=tau)
    x = torch.randn(3, 7)
    # It returns items first, then ranks.
    torch.testing.assert_close(neuralsort_logits(x, tau).softmax(-1), peer(x).mT)


@pytest.mark.parametrize("tau", [0.1, 10.0])
def test_softsort_is_difftopks(tau: float) -> None:
    peer = pytest.importorskip("difftopk.softsort").SoftSort(tau=tau)
    x = torch.randn(3, 7)
    torch.testing.assert_close(softsort_logits(x, tau).softmax(-1), peer(x).flip(-2))


@pytest.mark.parametrize("name", ["neural_sort", "soft_sort"])
def test_cross_entropy_is_of_the_entries_at_the_true_ranks(name: str) -> None:
    logits = {"neural_sort": neuralsort_logits, "soft_sort": softsort_logits}[name]
    x, ranks = samples(3, 6), ranks_of(3, 6)
    P = logits(x, 1.0).softmax(-1)
    losses = [-P[b, ranks[b, c], c].log() for b in range(3) for c in range(6)]
    loss = find(name).start(6, 1.0, torch.Generator())(x, Truth(ranks, ranks))
    torch.testing.assert_close(loss, torch.stack(losses).mean())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [2, 9])
def test_soft_ranks_are_torchsorts(n: int, epsilon: float) -> None:
    peer = pytest.importorskip("torchsort").soft_rank
    x = samples(20, n).requires_grad_()
    theirs = peer(x, regularization_strength=epsilon) - 1
    ours = soft_ranks(x, epsilon)
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn_like(x)
    torch.testing.assert_close(*(torch.autograd.grad(ranks, x, upstream)[0] for ranks in (ours, theirs)))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_blocks_are_those_of_the_isotonic_regression(values: list[int]) -> None:
    n, y = len(values), torch.tensor(values, dtype=torch.float64)
    blocks = decreasing_blocks(y.unsqueeze(0))[0]
    solution = torch.stack([y[blocks == block].mean() for block in blocks])
    # The formula of minima and maxima of means, by its definition.
    expected = [
        min(max(y[start : end + 1].mean() for end in range(i, n)) for start in range(i + 1)) for i in range(n)
    ]
    torch.testing.assert_close(solution, torch.stack(expected))


def test_soft_ranks_of_scores_far_apart_are_the_ranks() -> None:
    x = torch.tensor([[30.0, -10.0, 10.0, 70.0]])
    assert soft_ranks(x, 1.0).tolist() == [[2.0, 0.0, 1.0, 3.0]]
    assert soft_ranks(torch.zeros(1, 4), 1.0).tolist() == [[1.5] * 4]


@pytest.mark.parametrize("iterations", [1, 2, 20])
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_the_plan_is_pots(epsilon: float, iterations: int) -> None:
    ot = pytest.importorskip("ot")
    n = 6
    x = samples(1, n)
    places = torch.linspace(0, 1, n, dtype=x.dtype)
    cost = (squash(x)[0].unsqueeze(-1) - places).square().numpy()
    uniform = torch.full((n,), 1 / n, dtype=x.dtype).numpy()
    # It scales the second axis first, as ours scales ranks first.
    options = {"method": "sinkhorn_log", "numItermax": iterations, "stopThr": 0.0, "warn": False}
    plan = ot.sinkhorn(uniform, uniform, cost, epsilon, **options)
    torch.testing.assert_close(log_plan(x, epsilon, iterations).exp()[0], n * torch.tensor(plan).mT)


def test_the_plan_of_scores_in_many_places_is_finite() -> None:
    x = torch.tensor([[1e4, 1e4 - 1, 0.0, 1e-4, -1e4, 0.0, 0.0, 0.0]])
    logs = log_plan(x, 1e-4)
    assert logs.isfinite().all()
    torch.testing.assert_close(logs.exp().sum(-2), torch.ones(1, 8))


def test_squashed_scores_keep_their_order_and_have_no_unit() -> None:
    x = samples(4, 9)
    assert torch.equal(squash(x).argsort(-1), x.argsort(-1))
    torch.testing.assert_close(squash(100 * x + 7), squash(x))


def laplace_matrix(x: Tensor, alpha: float) -> Tensor:
    """Return LapSum's matrix of one sample, (n, n), ranks first, by bisection of its definition."""

    def distribution(b: Tensor) -> Tensor:
        z = (b.unsqueeze(-1) - x) / alpha
        return torch.where(z < 0, 0.5 * z.clamp_max(0).exp(), 1 - 0.5 * (-z.clamp_min(0)).exp())

    n = len(x)
    counts = torch.arange(1, n, dtype=x.dtype)
    low, high = (x.new_full((n - 1,), sign * (x.abs().max().item() + 50 * alpha)) for sign in (-1, 1))
    for _ in range(100):
        middle = (low + high) / 2
        is_low = distribution(middle).sum(-1) < counts
        low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
    rows = distribution(low)
    return torch.cat((rows, torch.ones(1, n))) - torch.cat((torch.zeros(1, n), rows))


@settings(max_examples=60)
@given(
    st.lists(st.integers(-30, 30), min_size=2, max_size=9),
    st.sampled_from([0.1, 1.0, 10.0]),
)
def test_lapsum_solves_its_equations(values: list[int], alpha: float) -> None:
    x = torch.tensor([values], dtype=torch.float64) / 8
    n = len(values)
    expected = laplace_matrix(x[0], alpha)
    weights = torch.stack([log_weights(x, torch.full((1, n), r), alpha)[0].exp() for r in range(n)])
    torch.testing.assert_close(weights, expected, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(weights.sum(-1), torch.ones(n, dtype=x.dtype))
    bounds = thresholds(x, alpha)[0]
    assert (bounds.diff() > 0).all()


def test_lapsums_weights_far_away_have_logarithms() -> None:
    logs = log_weights(torch.tensor([[0.0, 1000.0]]), torch.tensor([[1, 0]]), 1.0)
    torch.testing.assert_close(logs, torch.full((1, 2), -500 - math.log(2)))


@pytest.mark.parametrize("n", [2, 7])
def test_ranknet_and_listmle_are_their_definitions(n: int) -> None:
    x, ranks = samples(1, n), ranks_of(1, n)
    truth = Truth(ranks, ranks)
    ordered = x[0, ranks[0].argsort()]
    pairs = [(1 + (ordered[low] - ordered[high]).exp()).log() for high in range(n) for low in range(high)]
    torch.testing.assert_close(
        find("rank_net").start(n, 1.0, torch.Generator())(x, truth), sum(pairs) / len(pairs)
    )
    drawn = [ordered[r].exp() / ordered[: r + 1].exp().sum() for r in range(n)]
    expected = -torch.stack(drawn).log().mean()
    torch.testing.assert_close(find("list_mle").start(n, 1.0, torch.Generator())(x, truth), expected)


def test_regression_is_in_standard_deviations_of_four_digit_numbers() -> None:
    numbers = torch.arange(10000.0)
    loss = find("regression").start(10000, None, torch.Generator())
    truth = Truth(numbers.long().unsqueeze(0), numbers.unsqueeze(0))
    torch.testing.assert_close(loss(torch.zeros(1, 10000), truth), torch.tensor(1.0), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("network", "options"),
    [("odd_even", ""), ("odd_even", "+bce"), ("odd_even", "+cauchy"), ("bitonic", "+art=0.4+bce")],
)
def test_a_networks_loss_is_that_of_its_matrix(network: str, options: str) -> None:
    n, temperature = 6, 1.0
    x, ranks = torch.randn(4, n), ranks_of(4, n)
    art_lambda = 0.4 if "art" in options else 0.25
    sigmoid = "cauchy" if "cauchy" in options else "logistic"
    op = nsc.compile(network, n, relaxation=sigmoid, art_lambda=art_lambda)
    _, P = op.sort_with_permutation(x, temperature * op.depth)
    true = torch.nn.functional.one_hot(ranks, n).mT.to(P.dtype)
    if "bce" in options:
        expected = torch.nn.functional.binary_cross_entropy(P.clamp(0, 1), true)
    else:
        expected = -(P.log() * true).sum() / (4 * n)
    loss = find(network + options).start(n, temperature, torch.Generator())(x, Truth(ranks, ranks))
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-6)


def test_an_error_free_network_counts_wrong_ranks() -> None:
    x = torch.tensor([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 2.0, 3.0]])
    truth = Truth(torch.arange(4).expand(2, 4), x)
    loss = find("bitonic+error_free").start(4, None, torch.Generator())(x, truth)
    assert loss.item() == 80 * 2 / 8  # logarithms are cut at -80; two of eight items have a wrong rank


def test_steepness_grows_with_depth() -> None:
    x, ranks = torch.randn(4, 8), ranks_of(4, 8)
    op = nsc.compile("bitonic", 8)
    default = find("bitonic").start(8, None, torch.Generator())(x, Truth(ranks, ranks))
    assert default == op.cross_entropy(x, ranks, 2 * op.depth)
