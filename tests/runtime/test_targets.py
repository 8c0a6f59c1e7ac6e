"""Catches losses of ranks, intervals, relevances or shares, weighted or reduced, that are not as defined.

Losses are compared with their definitions on the P that the operator gives, in float64.
"""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import nsc

N, BATCH = 7, 5
DOUBLE = torch.float64
STEEPNESS = 2.0
LOSSES = ("cross_entropy", "binary_cross_entropy")


@pytest.fixture(scope="module")
def op() -> nsc.Sorter:
    return nsc.compile("odd_even", N, dtypes=("float32", "float64"))


def samples(seed: int = 0) -> Tensor:
    return torch.randn(BATCH, N, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def losses_by_hand(name: str, p: Tensor, is_in: Tensor, weights: Tensor) -> Tensor:
    """Return the losses of samples whose items may have some ranks (…, rank, item), by the definitions."""
    shares = is_in / is_in.sum(-2, keepdim=True).clamp_min(1)
    if name == "cross_entropy":
        logs = (p * is_in).sum(-2).log()
    else:
        logs = (shares * p.log() + (1 - shares) * (1 - p).log()).mean(-2)
    return -torch.where(weights > 0, weights * logs, 0).sum(-1) / weights.sum(-1)


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=40)
@given(data=st.data())
def test_items_of_equal_relevance_share_their_ranks(op, name, data):
    x = samples()
    grades = data.draw(st.lists(st.integers(-2, 2), min_size=BATCH * N, max_size=BATCH * N))
    relevance = torch.tensor(grades).view(BATCH, N)
    first = (relevance.unsqueeze(-2) < relevance.unsqueeze(-1)).sum(-1)
    last = (relevance.unsqueeze(-2) <= relevance.unsqueeze(-1)).sum(-1) - 1
    rows = torch.arange(N).unsqueeze(-1)
    is_in = (first.unsqueeze(-2) <= rows) & (rows <= last.unsqueeze(-2))
    expected = losses_by_hand(name, op.sort_with_permutation(x, STEEPNESS)[1], is_in, torch.ones(BATCH, N))
    for given_ in ({"relevance": relevance}, {"relevance": relevance.double()}, {"target": (first, last)}):
        got = op.loss(name, x, steepness=STEEPNESS, reduction="none", **given_)
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("name", LOSSES)
def test_different_relevances_are_ranks(op, name):
    x = samples()
    target = torch.rand(BATCH, N).argsort(-1)
    expected = op.loss(name, x, target, STEEPNESS)
    torch.testing.assert_close(op.loss(name, x, relevance=target.exp2(), steepness=STEEPNESS), expected)
    torch.testing.assert_close(op.loss(name, x, (target, target), STEEPNESS), expected)
    truth = (target.unsqueeze(-2) == torch.arange(N).unsqueeze(-1)).to(DOUBLE)
    torch.testing.assert_close(op.loss(name, x, truth, STEEPNESS), expected)


@pytest.mark.parametrize("name", LOSSES)
def test_an_ignored_item_does_not_count(op, name):
    x, target = samples(), torch.rand(BATCH, N).argsort(-1)
    counts = torch.arange(N) % 3 != torch.arange(BATCH).unsqueeze(-1) % 3
    rows = torch.arange(N).unsqueeze(-1)
    p = op.sort_with_permutation(x, STEEPNESS)[1]
    expected = losses_by_hand(name, p, target.unsqueeze(-2) == rows, counts.to(DOUBLE))
    ranks = torch.where(counts, target, -100)
    torch.testing.assert_close(op.loss(name, x, ranks, STEEPNESS, reduction="none"), expected)
    torch.testing.assert_close(op.loss(name, x, (ranks, ranks), STEEPNESS, reduction="none"), expected)
    nothing = torch.full_like(ranks, -100)
    assert not op.loss(name, x, nothing, STEEPNESS, reduction="none").any()


@pytest.mark.parametrize("name", LOSSES)
def test_shares_and_their_gradient(op, name):
    x = samples().requires_grad_()
    shares = torch.rand(BATCH, N, N, dtype=DOUBLE).requires_grad_()
    p = op.sort_with_permutation(x, STEEPNESS)[1]
    by_row = (shares * p.log()).sum((-1, -2)) / N
    if name == "binary_cross_entropy":
        by_row = (by_row + ((1 - shares) * (1 - p).log()).sum((-1, -2)) / N) / N
    torch.testing.assert_close(op.loss(name, x, shares, STEEPNESS, reduction="none"), -by_row)
    assert torch.autograd.gradcheck(
        lambda x, shares: op.loss(name, x, shares, STEEPNESS, reduction="none"), (x, shares)
    )
    # Another operator's P is such a target.
    teacher = nsc.compile("bitonic", N, dtypes="float64").sort_with_permutation(x.detach(), 3.0)[1]
    torch.testing.assert_close(
        op.cross_entropy(x, teacher, STEEPNESS), -(teacher * p.log()).sum((-1, -2)).mean() / N
    )


@pytest.mark.parametrize("name", LOSSES)
def test_weights_and_reductions(op, name):
    x, target = samples(), torch.rand(BATCH, N).argsort(-1)
    p = op.sort_with_permutation(x, STEEPNESS)[1]
    is_in = target.unsqueeze(-2) == torch.arange(N).unsqueeze(-1)
    of_items = torch.rand(BATCH, N, dtype=DOUBLE)
    of_items[0, :3] = 0
    expected = losses_by_hand(name, p, is_in, of_items)

    def loss(**options):
        return op.loss(name, x, target, STEEPNESS, **options)

    torch.testing.assert_close(loss(weight=of_items, reduction="none"), expected)
    torch.testing.assert_close(loss(weight=of_items), expected.mean())
    each, of_samples = loss(reduction="none"), torch.rand(BATCH, dtype=DOUBLE)
    torch.testing.assert_close(loss(reduction="sum"), each.sum())
    torch.testing.assert_close(loss(weight=of_samples, reduction="none"), of_samples * each)
    torch.testing.assert_close(loss(weight=of_samples), (of_samples * each).sum() / of_samples.sum())
    assert torch.autograd.gradcheck(
        lambda x: op.loss(name, x, target, STEEPNESS, weight=of_items, reduction="none"), x.requires_grad_()
    )


def test_smoothed_labels_are_those_of_torch(op):
    smoothing = 0.1
    x, ranks = samples(), samples(1).argsort(-1)
    of_items = torch.rand(BATCH, N, dtype=DOUBLE)

    def by_torch(x, ranks, reduction="mean"):
        logits = op.sort_with_permutation(x, STEEPNESS)[1].log()  # each column is a distribution already
        return torch.nn.functional.cross_entropy(
            logits, ranks, label_smoothing=smoothing, reduction=reduction
        )

    def ours(x, ranks, **options):
        return op.cross_entropy(x, ranks, STEEPNESS, label_smoothing=smoothing, **options)

    for ranks_, weight in ((ranks, None), (ranks, of_items), (ranks.where(ranks != 2, -100), None)):
        leaf = x.clone().requires_grad_()
        each = by_torch(leaf, ranks_, "none")
        weights = (ranks_ != -100).to(DOUBLE) if weight is None else weight
        expected = ((each * weights).sum(-1) / weights.sum(-1)).mean()
        got = ours(leaf, ranks_, weight=weight)
        torch.testing.assert_close(got, expected)
        gradients = [torch.autograd.grad(loss, leaf)[0] for loss in (got, expected)]
        torch.testing.assert_close(*gradients)
    torch.testing.assert_close(ours(x, ranks), by_torch(x, ranks))
    lengths, sizes = torch.full((BATCH,), 4), nsc.compile_sizes("odd_even", dtypes="float64")
    front = ranks[:, :4].argsort(-1).argsort(-1)
    padded = torch.cat([front, torch.full((BATCH, 3), -5)], -1)
    p = op.sort_with_permutation(x, STEEPNESS, lengths=lengths)[1][:, :4, :4]
    expected = torch.nn.functional.cross_entropy(p.log(), front, label_smoothing=smoothing)
    torch.testing.assert_close(ours(x, padded, lengths=lengths), expected)
    p = sizes.sort_with_permutation(x, STEEPNESS)[1]
    expected = torch.nn.functional.cross_entropy(p.log(), ranks, label_smoothing=smoothing)
    got = sizes.cross_entropy(x, ranks, STEEPNESS, label_smoothing=smoothing)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("name", LOSSES)
def test_smoothed_labels_are_shares(op, name):
    x, ranks, lengths = samples(), samples(1).argsort(-1), torch.tensor([7, 3, 1, 0, 5])
    ranks = torch.where(ranks < lengths.unsqueeze(-1), ranks, -100).sort(-1, descending=True).values
    m = lengths.clamp_min(1).view(-1, 1, 1)
    shares = 0.75 * (ranks.unsqueeze(-2) == torch.arange(N).unsqueeze(-1)).double() + 0.25 / m
    smoothed = op.loss(name, x, ranks, lengths=lengths, label_smoothing=0.25, reduction="none")
    torch.testing.assert_close(smoothed, op.loss(name, x, shares, lengths=lengths, reduction="none"))


def test_the_loss_of_a_group_keeps_its_tail(op):
    """Where the sum of a group's entries rounds to 1, its logarithm is that of the other entries."""
    x = torch.arange(N, dtype=torch.float32).unsqueeze(0)
    relevance = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    single = op.cross_entropy(x, relevance=relevance, steepness=40.0)
    double = op.cross_entropy(x.double(), relevance=relevance, steepness=40.0)
    assert 0 < double < 1e-9
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=0)


LARGE = 128  # wires from which on a bitonic sorter takes its last merge apart


@pytest.fixture(scope="module")
def large() -> nsc.Sorter:
    return nsc.compile("bitonic", LARGE, dtypes=("float32", "float64"))


def large_targets() -> dict[str, dict[str, object]]:
    """Targets of two samples: groups inside of blocks of 16 ranks and across them, and what shares ranks."""
    order = torch.arange(LARGE)
    first, last = torch.cat([order[:20], order[20:] // 36 * 36]), order.clone()
    first[20:36], last[20:36] = 20, 35
    for begin in (36, 72, 108):
        last[begin : begin + 36] = min(begin + 35, LARGE - 1)
    overlapping = last.clone()
    overlapping[5] = 30
    weight = torch.rand(2, LARGE, generator=torch.Generator().manual_seed(0)).double()
    weight[:, ::7] = 0
    inside = first.clone()
    inside[49:70:7] = 48  # inside of a group, where nothing counts
    return {
        "ranks": {"target": order},
        "ignored": {"target": torch.where(order % 5 == 3, -100, order)},
        "grades": {"relevance": order // 30},
        "groups": {"target": (first, last)},
        "overlapping groups": {"target": (first, overlapping)},
        "weights": {"target": order, "weight": weight},
        "weighted groups": {"target": (inside, last), "weight": weight},
    }


@pytest.mark.parametrize("kind", large_targets())
@pytest.mark.parametrize("steepness", [1.0, 30.0])
def test_a_loss_with_its_merge_apart_is_that_of_p_and_its_gradient_is_its_derivative(large, kind, steepness):
    x = torch.arange(LARGE) + 0.3 * torch.randn(2, LARGE, dtype=DOUBLE)
    options = {
        name: [each.expand(2, -1) for each in value] if isinstance(value, tuple) else value.expand(2, -1)
        for name, value in large_targets()[kind].items()
    }

    def loss_of(x: Tensor, steepness: Tensor | float) -> Tensor:
        given_ = {name: tuple(v) if isinstance(v, list) else v for name, v in options.items()}
        return large.cross_entropy(x, steepness=steepness, reduction="none", **given_)

    ranks = torch.arange(LARGE).expand(2, -1)
    if "relevance" in options:
        grades = options["relevance"]
        first = (grades.unsqueeze(-2) < grades.unsqueeze(-1)).sum(-1)
        last = (grades.unsqueeze(-2) <= grades.unsqueeze(-1)).sum(-1) - 1
    else:
        target = options["target"]
        first, last = target if isinstance(target, list) else (target, target)
    rows = ranks[0].unsqueeze(-1)
    is_in = (first.unsqueeze(-2) <= rows) & (rows <= last.unsqueeze(-2))
    weights = options.get("weight", torch.ones(2, LARGE)) * (first >= 0)
    p = large.sort_with_permutation(x, steepness)[1]
    by_hand = losses_by_hand("cross_entropy", p, is_in, weights)
    torch.testing.assert_close(loss_of(x, steepness), by_hand, rtol=1e-9, atol=1e-13)

    soft = torch.full((2,), steepness, dtype=DOUBLE, requires_grad=True)
    x.requires_grad_()
    grads = torch.autograd.grad(loss_of(x, soft).sum(), (x, soft))
    direction = torch.randn(2, LARGE, dtype=DOUBLE)
    step = 1e-6
    with torch.no_grad():
        along = (loss_of(x + step * direction, soft) - loss_of(x - step * direction, soft)) / (2 * step)
        by_steepness = (loss_of(x, soft + step) - loss_of(x, soft - step)) / (2 * step)
    size = grads[0].norm(dim=-1)
    assert ((grads[0] * direction).sum(-1) - along).abs().le(1e-6 * size + 1e-9).all()
    assert (grads[1] - by_steepness).abs().le(1e-6 * grads[1].abs() + 1e-9).all()


@pytest.mark.parametrize(
    ("network", "n"), [("odd_even", 7), ("odd_even", 40), ("bitonic", 40), ("bitonic", 128)]
)
def test_the_gradient_of_an_almost_certain_group_keeps_its_digits(network, n):
    """The sum over the group is 1, and mixes of equal numbers are not equal: its gradient would drown."""
    op = nsc.compile(network, n, dtypes=("float32", "float64"))
    x = (torch.arange(n) + 0.2 * torch.rand(n)).unsqueeze(0).double().requires_grad_()
    relevance = (torch.arange(n) > n // 2).long().unsqueeze(0)
    for steepness in (10.0, 25.0):
        grads = [
            torch.autograd.grad(op.cross_entropy(x.to(dtype), relevance=relevance, steepness=steepness), x)[0]
            for dtype in (torch.float32, DOUBLE)
        ]
        assert (grads[0] - grads[1]).norm() <= 1e-3 * grads[1].norm()


def test_one_steepness_for_each_sample(op):
    x, target = samples(), torch.rand(BATCH, N).argsort(-1)
    steepness = torch.linspace(0.5, 4, BATCH, dtype=DOUBLE, requires_grad=True)
    values = op.sort(x, steepness)
    losses = op.cross_entropy(x, target, steepness, reduction="none")
    for b, each in enumerate(steepness.tolist()):
        torch.testing.assert_close(values[b], op.sort(x[b], each))
        torch.testing.assert_close(losses[b], op.cross_entropy(x[b], target[b], each))
    stacked = x.expand(2, BATCH, N)
    torch.testing.assert_close(op.sort(stacked, steepness.view(1, BATCH)), values.expand(2, BATCH, N))
    torch.testing.assert_close(op.sort(stacked, steepness[:2].view(2, 1))[1], op.sort(x, steepness[1].item()))
    assert torch.autograd.gradcheck(lambda steepness: op.rank(x, steepness), steepness)
    with pytest.raises(
        nsc.OperandError, match=r"of torch.float64 and shape \(3,\) for samples of shape \(5,\)"
    ):
        op.sort(x, steepness[:3])
    with pytest.raises(nsc.OperandError, match=r"finite and above 0 .*, got -1\.0"):
        op.sort(x, torch.tensor([1.0, 1, -1, 1, 1]))


RANKS = torch.arange(N).expand(BATCH, N)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "a loss needs target or relevance, got neither"),
        ({"target": RANKS, "relevance": RANKS}, "a loss needs target or relevance, both are given"),
        (
            {"target": (RANKS,)},
            "target must be a tensor, or a pair of tensors of first and last ranks, got a tuple of 1",
        ),
        ({"target": (RANKS, RANKS.double())}, "last ranks holds ranks and must have an integer dtype"),
        ({"target": (RANKS + 1, RANKS)}, "target must have first and last ranks with 0 ≤ first ≤ last ≤ 6"),
        (
            {"target": torch.rand(BATCH, N)},
            r"integer dtype, got torch.float32: convert with target.long\(\); as shares they are \(5, 7, 7\)",
        ),
        ({"target": 2 * torch.eye(N).expand(BATCH, N, N)}, "target must hold numbers in 0 … 1"),
        (
            {"target": RANKS, "weight": torch.rand(3)},
            r"weight must have the shape of the samples, \(5,\), or",
        ),
        ({"target": RANKS, "weight": -torch.ones(BATCH, N)}, "weights that are finite and not below 0"),
        ({"target": RANKS, "weight": RANKS}, "weight must have a floating-point dtype, got torch.int64"),
        (
            {"target": RANKS, "weight": torch.ones(BATCH).requires_grad_()},
            "weight has no gradient: detach it",
        ),
        ({"relevance": RANKS > 2}, "relevance must hold real numbers, got torch.bool"),
        ({"relevance": RANKS[:, :3]}, r"relevance must have the shape of x, \(5, 7\)"),
        ({"relevance": torch.full((BATCH, N), math.nan)}, "relevance must hold numbers, got NaN"),
        ({"target": RANKS, "label_smoothing": 1.5}, r"label_smoothing must be a number in 0 … 1, got 1\.5"),
        ({"relevance": RANKS, "label_smoothing": 0.1}, "label_smoothing is for a target of ranks alone"),
        ({"target": RANKS * 0, "label_smoothing": 0.1}, "target must hold each rank 0 … m-1 once"),
        (
            {"target": RANKS, "reduction": "average"},
            "reduction.* must be one of mean, sum, none, got 'average'",
        ),
    ],
)
def test_wrong_targets_are_refused(op, options, message):
    with pytest.raises(nsc.NscError, match=message):
        op.cross_entropy(samples(), **options)


@pytest.fixture(scope="module")
def selector() -> nsc.Selector:
    return nsc.compile("bitonic", N, select=nsc.top_k(3), dtypes=("float32", "float64"))


@pytest.mark.parametrize("name", LOSSES)
def test_rows_against_shares(selector, name):
    x = samples().requires_grad_()
    shares = torch.rand(BATCH, 3, N, dtype=DOUBLE).requires_grad_()
    p = selector.select_with_rows(x, STEEPNESS)[1]
    logs = shares * p.log()
    if name == "binary_cross_entropy":
        logs = (logs + (1 - shares) * (1 - p).log()) / N
    expected = -logs.sum((-1, -2)) / 3
    torch.testing.assert_close(selector.loss(name, x, shares, STEEPNESS, reduction="none"), expected)
    of_samples = torch.rand(BATCH, dtype=DOUBLE)
    torch.testing.assert_close(
        selector.loss(name, x, shares, STEEPNESS, weight=of_samples),
        (of_samples * expected).sum() / of_samples.sum(),
    )
    assert torch.autograd.gradcheck(lambda *args: selector.loss(name, *args, STEEPNESS), (x, shares))
    assert torch.autograd.gradgradcheck(lambda *args: selector.loss(name, *args, STEEPNESS), (x, shares))


@pytest.mark.parametrize("name", LOSSES)
def test_rows_of_lists_against_shares(selector, name):
    """The others are no items, and a rank that a list does not have is no row."""
    x = samples()
    mask = torch.arange(N) < (torch.arange(BATCH) % (N + 1)).unsqueeze(-1)
    mask = mask[:, torch.randperm(N)]
    shares = torch.rand(BATCH, 3, N, dtype=DOUBLE)
    rows = selector.select_with_rows(x, STEEPNESS, mask=mask)[1]
    expected = []
    for b, sample in enumerate(mask):
        count = int(sample.sum())
        p, share = rows[b, :count, sample], shares[b, :count, sample]
        logs = share * p.log()
        if name == "binary_cross_entropy":
            logs = logs + torch.where(share < 1, (1 - share) * (1 - p).clamp_min(math.exp(-80)).log(), 0)
            logs = logs / max(1, count)
        expected.append(-logs.sum() / max(1, min(3, count)))
    expected = torch.stack(expected)
    each = selector.loss(name, x, shares, STEEPNESS, mask=mask, reduction="none")
    torch.testing.assert_close(each, expected)
    mean = selector.loss(name, x, shares, STEEPNESS, mask=mask)
    torch.testing.assert_close(mean, expected.sum() / mask.any(-1).sum())


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_rows_keep_their_tails(selector, name):
    """Near 0 and far from it a loss and its gradient in float32 are those in float64."""
    for scale in (30.0, 3.0):
        x = torch.arange(N, dtype=torch.float32).flip(-1).unsqueeze(0) * scale / 30
        shares = torch.eye(N)[:3].unsqueeze(0)
        for target in (shares, shares.flip(-1)):
            found = []
            for dtype in (torch.float32, DOUBLE):
                leaf = x.to(dtype).requires_grad_()
                loss = selector.loss(name, leaf, target.to(dtype), 40.0)
                found.append((loss, *torch.autograd.grad(loss, leaf)))
            for single, double in zip(*found, strict=True):
                # Slopes of wrong shares are large, and at a wire between two of them they cancel.
                atol = 1e-38 if target is shares else 2e-7 * double.abs().max().item()
                torch.testing.assert_close(single.double(), double, rtol=2e-4, atol=atol)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (torch.zeros(2, 3, N, dtype=torch.int64), "target must have a floating-point dtype, got torch.int64"),
        (torch.zeros(2, N, N), r"target must have the shape of the rows, \(2, 3, 7\), got \(2, 7, 7\)"),
        (torch.full((2, 3, N), 1.5), r"target must hold numbers in 0 … 1"),
        ([0.5], "target must be a tensor, got list"),
    ],
)
def test_wrong_shares_of_rows_are_refused(selector, target, message):
    with pytest.raises(nsc.NscError, match=message):
        selector.cross_entropy(torch.randn(2, N), target)
    with pytest.raises(nsc.OperandError, match=r"weight must have the shape of the samples, \(2,\)"):
        selector.cross_entropy(torch.randn(2, N), torch.zeros(2, 3, N), weight=torch.ones(2, N))
    with pytest.raises(nsc.OperandError, match="cross_entropy: steepness must be"):
        selector.cross_entropy(torch.randn(2, N), torch.zeros(2, 3, N), -1.0)


def test_weights_whose_sum_overflows():
    x, op = torch.randn(BATCH, N), nsc.compile("odd_even", N)
    for shape in ((BATCH,), (BATCH, N)):
        large = op.cross_entropy(x, RANKS, weight=torch.full(shape, 3e38))
        torch.testing.assert_close(large, op.cross_entropy(x, RANKS, weight=torch.ones(shape)))
