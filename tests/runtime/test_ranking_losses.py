"""Losses of rankings: another value or gradient than by definition, scipy or scikit-learn."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import ndcg_score
from torch import Tensor

import nsc
from nsc.nn import ListRankLoss, MRRLoss, NDCGLoss, OrderLoss, PrecisionAtK, SpearmanLoss, functional

N, BATCH = 6, 5
# In which orders a network takes a list: by the fractional parts of i/φ + 1/2, 0.12, 0.35, …, then by a hash.
ORDERS = [[1, 3, 0, 5, 2, 4], [0, 3, 2, 4, 5, 1], [3, 4, 5, 1, 0, 2]]
DOUBLE = torch.float64
STEEP, SOFT = 1e6, 2.0


@pytest.fixture(scope="module")
def op() -> nsc.Sorter:
    return nsc.compile("bitonic", N, dtypes=("float32", "float64"))


def samples(seed: int = 0) -> Tensor:
    return torch.randn(BATCH, N, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def permutation_of(op: nsc.Sorter, scores: Tensor, order: list[int]) -> Tensor:
    """Return P of the scores of a list, which the network takes in an order."""
    count = len(scores)
    order = [item for item in order if item < count]
    x = torch.cat([scores[order], scores.new_zeros(N - count)])
    p = op.sort_with_permutation(x, SOFT, lengths=torch.tensor(count))[1][:count, :count]
    return p[:, torch.tensor(order, dtype=torch.int64).argsort()]


def discounts(count: int, k: int | None) -> Tensor:
    """Return what the ranks 0 … count-1 count."""
    positions = torch.arange(count, 0, -1, dtype=DOUBLE)
    return torch.where(positions <= (k or count), 1 / torch.log2(1 + positions), 0)


def reciprocal(stops: Tensor, k: int | None) -> Tensor:
    """Return the reciprocal rank of a cascade; the last rank is looked at first."""
    total, goes_on = torch.zeros((), dtype=DOUBLE), torch.ones((), dtype=DOUBLE)
    for position, stop in enumerate(stops.flip(0)[:k], 1):
        total, goes_on = total + goes_on * stop / position, goes_on * (1 - stop)
    return total


# Losses by name: the function, and what a sample of all entries gives by its P and scores; None: it counts
# nothing.


def order_of(p: Tensor, scores: Tensor, target: Tensor) -> Tensor | None:
    if not len(target):
        return None
    may_have = target.sort().values.unsqueeze(1) == target
    return -torch.where(may_have, p, 0).sum(0).log().mean()


def spearman_of(p: Tensor, scores: Tensor, target: Tensor) -> Tensor | None:
    if len(target) < 2 or (target == target[0]).all():
        return None
    ranks = torch.arange(len(target), dtype=DOUBLE)
    soft = ranks @ p
    less = (target.unsqueeze(0) < target.unsqueeze(1)).sum(1)
    same = (target.unsqueeze(0) == target.unsqueeze(1)).sum(1)
    exact = less + (same - 1) / 2
    spread = ranks.std() * exact.to(DOUBLE).std()
    return 1 - torch.cov(torch.stack((soft, exact.to(DOUBLE))))[0, 1] / spread


def ndcg_of(
    p: Tensor, scores: Tensor, relevance: Tensor, k: int | None = None, by: str = "route"
) -> Tensor | None:
    gains = relevance.to(DOUBLE).exp2() - 1
    ideal = (gains.sort().values * discounts(len(gains), k)).sum()
    if not ideal > 0:
        return None
    if by == "route":
        return 1 - (discounts(len(gains), k) @ p @ gains) / ideal
    positions = len(gains) - torch.arange(len(gains), dtype=DOUBLE) @ p
    cut = 1 if k is None else (k + 1 - positions).clamp(0, 1)
    return 1 - (gains * cut / torch.log2(1 + positions)).sum() / ideal


def precision_of(p: Tensor, scores: Tensor, relevance: Tensor, k: int) -> Tensor | None:
    if not len(relevance):
        return None
    return 1 - (p @ (relevance > 0).to(DOUBLE))[-k:].sum() / k


def mrr_of(p: Tensor, scores: Tensor, relevance: Tensor, k: int | None = None) -> Tensor | None:
    if not (relevance > 0).any():
        return None
    return 1 - reciprocal(p @ (relevance > 0).to(DOUBLE), k)


def list_rank_of(p: Tensor, scores: Tensor, relevance: Tensor, link: str) -> Tensor | None:
    if not len(relevance):
        return None
    by_scores = (torch.special.expit(scores) if link == "logistic" else scores).exp()
    by_relevance = relevance.to(DOUBLE).exp()
    return -(by_relevance / by_relevance.sum()) @ (by_scores / by_scores.sum()).log()


def list_rank_loss(
    op: nsc.Sorter, x: Tensor, relevance: Tensor, steepness: object = None, **options
) -> Tensor:
    """Return ListRank, called as the losses of an operator."""
    return functional.list_rank_loss(x, relevance, **options)


CASES = {
    "order": (functional.order_loss, {}, order_of),
    "order by three orders": (functional.order_loss, {"orders": 3}, order_of),
    "spearman": (functional.spearman_loss, {}, spearman_of),
    "spearman by three orders": (functional.spearman_loss, {"orders": 3}, spearman_of),
    "ndcg": (functional.ndcg_loss, {}, ndcg_of),
    "ndcg@3": (functional.ndcg_loss, {"k": 3}, ndcg_of),
    "ndcg by ranks": (functional.ndcg_loss, {"by": "ranks"}, ndcg_of),
    "ndcg by three orders": (functional.ndcg_loss, {"orders": 3}, ndcg_of),
    "ndcg@3 by ranks": (functional.ndcg_loss, {"by": "ranks", "k": 3}, ndcg_of),
    "precision@2": (functional.precision_at_k_loss, {"k": 2}, precision_of),
    "precision@2 by two orders": (functional.precision_at_k_loss, {"k": 2, "orders": 2}, precision_of),
    "mrr by two orders": (functional.mrr_loss, {"orders": 2}, mrr_of),
    "mrr": (functional.mrr_loss, {}, mrr_of),
    "mrr@2": (functional.mrr_loss, {"k": 2}, mrr_of),
    "ListRank": (list_rank_loss, {"link": "logistic"}, list_rank_of),
    "ListNet": (list_rank_loss, {"link": "identity"}, list_rank_of),
}


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=30)
@given(data=st.data())
def test_losses_are_those_of_the_entries_alone(op, name, data):
    loss, options, by_hand = CASES[name]
    x = samples(data.draw(st.integers(0, 100)))
    grades = data.draw(st.lists(st.integers(0, 3), min_size=BATCH * N, max_size=BATCH * N))
    relevance = torch.tensor(grades).view(BATCH, N)
    flags = data.draw(st.lists(st.booleans(), min_size=BATCH * N, max_size=BATCH * N))
    mask = torch.tensor(flags).view(BATCH, N)
    measure = {key: value for key, value in options.items() if key != "orders"}
    expected = []
    for sample, grade, takes in zip(x, relevance, mask, strict=True):
        entries, labels = sample[takes], grade[takes]
        matrices = [permutation_of(op, entries, order) for order in ORDERS[: options.get("orders", 1)]]
        losses = [by_hand(p, entries, labels, **measure) for p in matrices]
        expected.append(None if losses[0] is None else torch.stack(losses).mean())
    junk = torch.where(mask, x, math.nan), torch.where(mask, relevance.to(DOUBLE), math.nan)
    got = loss(op, *junk, SOFT, mask=mask, reduction="none", **options)
    zero = torch.zeros((), dtype=DOUBLE)
    torch.testing.assert_close(got, torch.stack([zero if each is None else each for each in expected]))
    counted = [each for each in expected if each is not None]
    mean = loss(op, *junk, SOFT, mask=mask, **options)
    if counted:
        torch.testing.assert_close(mean, torch.stack(counted).mean())
    else:
        assert mean == 0
    lengths = mask.sum(-1)
    first = torch.arange(N) < lengths.unsqueeze(-1)
    torch.testing.assert_close(
        loss(op, x, relevance, SOFT, lengths=lengths, **options),
        loss(op, x, relevance, SOFT, mask=first, **options),
        equal_nan=True,
    )


def test_spearman_is_scipys(op):
    x, generator = samples(), torch.Generator().manual_seed(1)
    for high in (2, 4, 1000):
        target = torch.randint(high, (BATCH, N), generator=generator)
        losses = functional.spearman_loss(op, x, target, STEEP, reduction="none")
        for sample, labels, loss in zip(x, target, losses, strict=True):
            assert loss.item() == pytest.approx(1 - spearmanr(sample, labels).statistic, abs=1e-9)
    reverse = functional.spearman_loss(op, x, -x, STEEP)
    torch.testing.assert_close(reverse, torch.tensor(2, dtype=DOUBLE))


@pytest.mark.parametrize("family", ["bitonic", "odd_even"])
@pytest.mark.parametrize("size", [0, 1e-3])
def test_spearman_of_nearly_equal_scores_has_no_larger_gradient_than_the_cross_entropy(family, size):
    op = nsc.compile(family, 8)
    x = size * torch.randn(8, generator=torch.Generator().manual_seed(1))
    x.requires_grad_()
    loss = functional.spearman_loss(op, x, torch.arange(8))
    assert loss.item() == pytest.approx(1, abs=0.3)
    of_loss, of_entropy = (
        torch.autograd.grad(each, x)[0].norm() for each in (loss, op.cross_entropy(x, torch.arange(8)))
    )
    assert 0 < of_loss < 1.5 * of_entropy


@pytest.mark.parametrize("family", ["bitonic", "odd_even", "insertion"])
@pytest.mark.parametrize("count", [10, 32])
def test_equal_scores_of_a_list_that_is_stored_by_relevance_look_neither_good_nor_bad(family, count):
    op, target = nsc.compile(family, 32), torch.arange(32.0)
    lists = {"lengths": torch.tensor(count)} if count < 32 else {}
    for labels in (target, -target):
        loss = functional.spearman_loss(op, torch.zeros(32), labels, **lists)
        assert loss.item() == pytest.approx(1, abs=0.15)


@pytest.mark.slow("a model trains")
def test_a_model_that_starts_at_zero_learns_as_one_that_starts_at_random():
    """A last layer of zeros makes all scores equal."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(32, 8, 4, generator=generator)
    target = features @ torch.tensor([1.0, -2.0, 0.5, 0.0])
    loss, reached = SpearmanLoss("bitonic", 8), []
    for start in (torch.zeros(4), torch.randn(4, generator=generator)):
        weight = start.clone().requires_grad_()
        optimiser = torch.optim.Adam([weight], lr=0.2)
        for _ in range(60):
            optimiser.zero_grad()
            value = loss(features @ weight, target)
            value.backward()
            optimiser.step()
        reached.append(value.item())
    assert max(reached) < 0.2, reached


@pytest.mark.parametrize("by", ["route", "ranks"])
@pytest.mark.parametrize("k", [None, 3])
def test_ndcg_is_scikit_learns(op, by, k):
    x = samples()
    relevance = torch.randint(4, (BATCH, N), generator=torch.Generator().manual_seed(2))
    relevance[:, 0] = 3
    linear = functional.ndcg_loss(op, x, relevance, STEEP, k=k, by=by, gain="linear")
    assert linear.item() == pytest.approx(1 - ndcg_score(relevance.numpy(), x.numpy(), k=k), abs=1e-6)
    gains = relevance.exp2() - 1
    exponential = functional.ndcg_loss(op, x, relevance, STEEP, k=k, by=by)
    assert exponential.item() == pytest.approx(1 - ndcg_score(gains.numpy(), x.numpy(), k=k), abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "labels", "options"),
    [
        (functional.ndcg_loss, [0.0, 1, 2, 0, 1, 128], {}),
        (functional.ndcg_loss, [0.0, 1, 2, 0, 1, 1e5], {}),
        (functional.ndcg_loss, [0.0, 1e38, 2e38, 0, 3e38, 1e300], {"gain": "linear"}),
        (functional.ndcg_loss, [1e-42] * N, {"gain": "linear"}),
        (list_rank_loss, [math.inf, -math.inf, 0, 1, 2, 3], {}),
        (list_rank_loss, [-math.inf] * N, {}),
    ],
)
def test_labels_may_be_large_small_or_infinite(loss, labels, options):
    """What is computed in float32 is what float64 gives."""
    op, found = nsc.compile("bitonic", N, dtypes=("float32", "float64")), []
    for dtype in (torch.float32, DOUBLE):
        x = samples()[0].to(dtype).requires_grad_()
        value = loss(op, x, torch.tensor(labels, dtype=DOUBLE), SOFT, **options)
        found.append(torch.cat([value.reshape(1), torch.autograd.grad(value, x)[0]]).double())
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)
    assert found[0].isfinite().all()


def test_a_k_may_be_any_whole_number_where_any_number_of_items_is_served(op):
    sizes, x = nsc.compile_sizes("bitonic"), samples()[0].float()
    labels = torch.tensor([0, 1, 0, 2, 0, 0])
    for loss in (functional.ndcg_loss, functional.mrr_loss):
        assert loss(sizes, x, labels, k=10**30) == loss(sizes, x, labels)


@pytest.mark.parametrize("name", CASES)
def test_gradients(op, name):
    """Of scores that nearly tie too, and in the tails."""
    loss, options, _ = CASES[name]
    x = torch.tensor([[1], [0.02], [20], [1], [1]], dtype=DOUBLE) * samples()
    relevance = torch.tensor([[0, 2, 1, 0, 3, 1]]).expand(BATCH, N)
    lengths = torch.tensor([6, 5, 4, 2, 0])
    assert torch.autograd.gradcheck(
        lambda x, steepness: loss(op, x, relevance, steepness, reduction="none", lengths=lengths, **options),
        (x.requires_grad_(), torch.tensor(SOFT, dtype=DOUBLE, requires_grad=True)),
    )


@pytest.mark.parametrize("name", CASES)
def test_nothing_else_matters_and_nothing_else_gets_a_gradient(op, name):
    loss, options, _ = CASES[name]
    x, relevance = samples(), torch.tensor([[0, 2, 1, 0, 3, 1]], dtype=DOUBLE).expand(BATCH, N)
    mask = torch.rand(BATCH, N, generator=torch.Generator().manual_seed(3)) < 0.6
    results = []
    for junk in (0.0, math.nan, math.inf, -1e308):
        leaf = torch.where(mask, x, junk).requires_grad_()
        value = loss(op, leaf, torch.where(mask, relevance, junk), SOFT, mask=mask, **options)
        (grad,) = torch.autograd.grad(value, leaf)
        assert not grad[~mask].any()
        assert grad.any()
        results.append(torch.cat([value.reshape(1), grad.flatten()]))
    for result in results:
        assert torch.equal(result, results[0])


@pytest.mark.parametrize("name", CASES)
def test_axes_weights_and_reductions(op, name):
    loss, options, _ = CASES[name]
    x, relevance = samples(), torch.tensor([[0, 2, 1, 0, 3, 1]]).expand(BATCH, N)
    each = loss(op, x, relevance, SOFT, reduction="none", **options)
    weight = torch.rand(BATCH, generator=torch.Generator().manual_seed(4))
    moved = loss(op, x.t(), relevance.t(), SOFT, dim=0, reduction="none", **options)
    torch.testing.assert_close(moved, each)
    torch.testing.assert_close(loss(op, x[0], relevance[0], SOFT, **options), each[0])
    torch.testing.assert_close(loss(op, x, relevance, SOFT, reduction="sum", **options), each.sum())
    weighted = loss(op, x, relevance, SOFT, weight=weight, reduction="none", **options)
    torch.testing.assert_close(weighted, each * weight)
    mean = loss(op, x, relevance, SOFT, weight=weight, **options)
    torch.testing.assert_close(mean, (each * weight).sum() / weight.sum(dtype=DOUBLE))
    steepness = torch.linspace(1, 3, BATCH, dtype=DOUBLE)
    by_sample = loss(op, x, relevance, steepness, reduction="none", **options)
    torch.testing.assert_close(by_sample[2], loss(op, x[2], relevance[2], 2.0, **options))


@pytest.mark.parametrize("name", CASES)
def test_dtypes_and_nan(op, name):
    loss, options, _ = CASES[name]
    relevance = torch.tensor([[0, 2, 1, 0, 3, 1]]).expand(BATCH, N)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        x = samples().to(dtype)
        value = loss(op, x, relevance, SOFT, **options)
        assert value.dtype == dtype
        torch.testing.assert_close(value, loss(op, x.float(), relevance, SOFT, **options).to(dtype))
        for labels in (relevance.to(torch.uint8), relevance.to(dtype)):
            assert torch.equal(loss(op, x, labels, SOFT, **options), value)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert loss(op, x, relevance, SOFT, **options).dtype == torch.float32
    x = samples()
    x[1, 2] = math.nan
    assert loss(op, x, relevance, SOFT, reduction="none", **options).isnan().tolist() == [
        place == 1 for place in range(BATCH)
    ]


MODULES = {
    "order by three orders": OrderLoss,
    "spearman": SpearmanLoss,
    "ndcg": NDCGLoss,
    "precision@2": PrecisionAtK,
    "mrr@2": MRRLoss,
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_their_functions(op, name):
    loss, options, _ = CASES[name]
    x, relevance = samples().float(), torch.tensor([[0, 2, 1, 0, 3, 1]]).expand(BATCH, N)
    lengths = torch.tensor([6, 5, 4, 3, 2])
    module = MODULES[name](op, steepness=SOFT, learnable=True, reduction="none", **options)
    got = module(x, relevance, lengths=lengths)
    torch.testing.assert_close(
        got, loss(op, x, relevance, SOFT, lengths=lengths, reduction="none", **options)
    )
    got.sum().backward()
    assert module.log_steepness.grad.any()
    assert MODULES[name](op, **options).operator is op
    assert "reduction='none'" in repr(module)


def test_the_loss_of_an_order_has_settings_of_its_own_and_keeps_those_that_are_given(op):
    x, target = samples().float(), torch.arange(N).expand(BATCH, N)
    its_own = nsc.compile("odd_even", N, relaxation="cauchy", art_lambda=0)
    assert OrderLoss(n=N)(x, target) == functional.order_loss(its_own, x, target, orders=16)
    given = nsc.compile("bitonic", N, art_lambda=0.4)
    layer = OrderLoss("bitonic", N, relaxation="logistic", art_lambda=0.4, orders=2)
    assert layer(x, target) == functional.order_loss(given, x, target, orders=2)
    assert OrderLoss(op).operator is op
    assert OrderLoss()(x[:, :5], target[:, :5]).isfinite()


def test_the_loss_of_ranks_in_one_order_is_the_papers(op):
    x = samples()
    ranks = x.cos().argsort(-1)
    in_order = x[:, ORDERS[0]], ranks[:, ORDERS[0]]
    torch.testing.assert_close(functional.order_loss(op, x, ranks, SOFT), op.cross_entropy(*in_order, SOFT))


@pytest.mark.parametrize(
    ("orders", "words"), [(0, "1 or more, got 0"), (2.0, "an integer"), (True, "an integer")]
)
def test_orders_that_are_no_number_of_orders_are_refused(op, orders, words):
    for call in (
        lambda: functional.ndcg_loss(op, X, GRADES, orders=orders),
        lambda: SpearmanLoss(op, orders=orders),
    ):
        with pytest.raises(nsc.OperandError, match=f"orders.* must be {words}"):
            call()


@pytest.mark.parametrize("link", ["logistic", "identity"])
def test_list_rank_takes_any_number_of_values_and_lists(link):
    """It has no network: a call of 5 values and one of 50 need nothing else."""
    module = ListRankLoss(link=link, reduction="none")
    assert repr(module) == f"ListRankLoss(link={link!r}, reduction='none')"
    rows = [torch.randn(length) for length in (50, 5, 1)]
    values, offsets = torch.cat(rows), torch.tensor([0, 50, 55, 56])
    alone = torch.stack([module(row, row.cos()) for row in rows])
    torch.testing.assert_close(module((values, offsets), (values.cos(), offsets)), alone)
    far = torch.tensor([1e30, -1e30, 0.0], requires_grad=True)
    loss = module(far, torch.tensor([0, 5, 1]))
    (grad,) = torch.autograd.grad(loss, far)
    assert loss.isfinite()
    assert grad.isfinite().all()
    for call, message in (
        (lambda: ListRankLoss(link="log"), "ListRankLoss: no link 'log'; known: logistic, identity"),
        (lambda: ListRankLoss(reduction="max"), "ListRankLoss: reduction must be one of"),
        (lambda: module(far, far[:2].detach()), r"list_rank_loss: relevance must have the shape of x"),
    ):
        with pytest.raises(nsc.OperandError, match=message):
            call()


X, GRADES = torch.zeros(2, N), torch.zeros(2, N, dtype=torch.int64)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (
            (X, -1 - GRADES),
            {},
            nsc.OperandError,
            "relevance must be 0 or more, found -1: leave padding out with lengths= or mask=",
        ),
        ((X.unsqueeze(-1), GRADES), {}, nsc.OperandError, r"drop the last axis with \.squeeze\(-1\)"),
        ((X, X / 0), {}, nsc.OperandError, "relevance must hold numbers, got NaN"),
        ((X, GRADES[0]), {}, nsc.OperandError, r"relevance must have the shape of x, \(2, 6\), got \(6,\)"),
        ((X, GRADES.to("meta")), {}, nsc.OperandError, "x is on cpu and relevance on meta"),
        (
            (X.long(), GRADES),
            {},
            nsc.OperandTypeError,
            "scores must have a floating-point dtype, got torch.int64",
        ),
        ((X[:, :3], GRADES[:, :3]), {}, nsc.OperandError, "x has 3 values along dim -1, this op sorts 6"),
        ((X, GRADES), {"dim": 2}, nsc.OperandError, "dim must be in -2 … 1"),
        ((X, GRADES), {"k": 7}, nsc.OperandError, "k must be an integer in 1 … 6, got 7"),
        ((X, GRADES), {"by": "rank"}, nsc.OperandError, "no by 'rank'; known: route, ranks"),
        ((X, GRADES), {"gain": 2}, nsc.OperandError, "no gain 2; known: exponential, linear"),
        ((X, GRADES), {"reduction": ["mean"]}, nsc.OperandError, "reduction must be one of mean, sum, none"),
        ((X, GRADES), {"weight": torch.ones(3)}, nsc.OperandError, r"the samples, \(2,\), got \(3,\)"),
        ((X, GRADES), {"weight": torch.ones(2).long()}, nsc.OperandTypeError, "weight must have a floating"),
    ],
)
def test_wrong_arguments_are_refused(op, arguments, options, error, message):
    with pytest.raises(error, match=message):
        functional.ndcg_loss(op, *arguments, **options)


def test_wrong_operators_and_options_are_refused(op):
    selector = nsc.compile("bitonic", N, select=nsc.top_k(2))
    with pytest.raises(nsc.OperandTypeError, match="operator must be a Sorter or Sizes, got Selector"):
        functional.mrr_loss(selector, X, GRADES)
    with pytest.raises(nsc.OperandTypeError, match="is a Selector, which"):
        MRRLoss(selector)
    with pytest.raises(nsc.NetworkError, match=r"NDCGLoss: .* got int: pass k=10 or n=10 by name"):
        NDCGLoss(10)
    with pytest.raises(nsc.NetworkError, match=r"SortingNetwork: .* got int: pass n=16 by name"):
        nsc.nn.SortingNetwork(16)
    with pytest.raises(nsc.OperandTypeError, match=r"make the layer or the operator with dtypes=\("):
        NDCGLoss()(X.double(), GRADES)
    with pytest.raises(nsc.OperandError, match=r"drop the last axis of x with \.squeeze\(-1\)"):
        NDCGLoss()(X.unsqueeze(-1), GRADES)
    with pytest.raises(nsc.OperandError, match="NDCGLoss: k must be an integer in 1 … 6, got 7"):
        NDCGLoss(op, k=7)
    with pytest.raises(nsc.OperandError, match="NDCGLoss: no gain 'log'; known: exponential, linear"):
        NDCGLoss(op, gain="log")
    with pytest.raises(nsc.OperandError, match="SpearmanLoss: reduction must be one of"):
        SpearmanLoss(op, reduction="max")
    with pytest.raises(nsc.LoweringError, match="PrecisionAtK sorts all values"):
        PrecisionAtK("bitonic", N, k=2, select=nsc.top_k(2))
    with pytest.raises(nsc.OperandError, match="compiled already: leave out n"):
        MRRLoss(op, N)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["NDCGLoss", "PrecisionAtK", "SortingNetwork"])
def test_a_flat_batch_is_warned_of_once(name):
    """The gradient underflows. A batch in which nothing counts, and one that learns, are none."""
    if name == "SortingNetwork":
        network = nsc.nn.SortingNetwork("odd_even", 4)

        def loss(scores, relevance):
            return network.cross_entropy(scores, relevance=relevance)
    else:
        loss = getattr(nsc.nn, name)("odd_even", 4, k=2)
    model = torch.nn.Linear(1, 1, bias=False)
    items, grades = torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([3, 2, 1, 0])

    def learn(scale, relevance):
        loss(scale * model(items).squeeze(-1), relevance).backward()

    torch.nn.init.ones_(model.weight)
    learn(1.0, grades)
    learn(1e6, torch.zeros_like(grades))
    with pytest.warns(RuntimeWarning, match=f"{name}: the gradient of a batch is exactly 0"):
        learn(1e6, grades)
    learn(1e6, grades)


def test_gains_of_small_relevances_keep_their_digits():
    """Both gains are proportional to them."""
    scores = torch.tensor([0.3, 0.1, 0.2, 0.0], dtype=torch.float64)
    relevance = 1e-12 * torch.tensor([1.0, 3.0, 2.0, 5.0], dtype=torch.float64)
    op = nsc.compile("bitonic", 4, dtypes="float64")
    of_each = [
        nsc.nn.functional.ndcg_loss(op, scores, relevance, gain=gain) for gain in ("exponential", "linear")
    ]
    torch.testing.assert_close(*of_each, rtol=1e-11, atol=0)
