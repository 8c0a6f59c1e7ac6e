"""Catches calls with lengths or masks that are not calls with +∞ in the place of the other entries.

What an operator gives is compared with the plain reference of the entries, padded by hand.
"""

from __future__ import annotations

import math

import pytest
import torch
from called import METHODS
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import nsc
from nsc.runtime.relaxed import reference

N = 6
DOUBLE = torch.float64


@pytest.fixture(scope="module")
def op() -> nsc.Sorter:
    return nsc.compile("bitonic", N, dtypes=("float32", "float64"))


def padded(x: Tensor, mask: Tensor) -> Tensor:
    """Return a sample's entries that take part, in front of +∞."""
    return torch.cat([x[mask], torch.full((int((~mask).sum()),), math.inf, dtype=x.dtype)])


def by_hand(op: nsc.Sorter, x: Tensor, mask: Tensor, steepness: float) -> tuple[Tensor, Tensor]:
    """Return the values and P of a sample by the reference, P with its columns in their places."""
    keys = padded(x, mask).unsqueeze(0)
    values, p = reference.relax(op.kernel, keys, keys.new_full((1,), steepness), None, "permutation")
    count = int(mask.sum())
    placed = torch.zeros(N, N, dtype=x.dtype)
    placed[:count, mask] = p[0, :count, :count]
    return torch.where(torch.arange(N) < count, values[0], 0), placed


@st.composite
def lists(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Draw samples, and which of their entries take part."""
    batch = draw(st.integers(1, 4))
    numbers = st.one_of(st.floats(-3, 3, width=32), st.sampled_from([0.0, -math.inf]))
    x = draw(st.lists(numbers, min_size=batch * N, max_size=batch * N))
    mask = draw(st.lists(st.booleans(), min_size=batch * N, max_size=batch * N))
    return torch.tensor(x, dtype=DOUBLE).view(batch, N), torch.tensor(mask).view(batch, N)


@settings(max_examples=60)
@given(lists())
def test_results_are_those_of_the_entries_padded_by_hand(op, drawn):
    x, mask = drawn
    values, p = op.sort_with_permutation(x, 3.0, mask=mask)
    ranks, columns = op.rank(x, 3.0, mask=mask, fill=-1), torch.arange(2 * N, dtype=DOUBLE).view(N, 2).sin()
    routed = op.route(x, columns.expand(*x.shape, 2), 3.0, mask=mask)
    best, rows = op.topk(x, 4, 3.0, mask=mask)
    for b, sample in enumerate(mask):
        expected, placed = by_hand(op, x[b], sample, 3.0)
        count = int(sample.sum())
        torch.testing.assert_close(values[b], expected)
        torch.testing.assert_close(p[b], placed)
        torch.testing.assert_close(op.sort(x[b], 3.0, mask=sample), expected)
        of_ranks = torch.arange(N, dtype=DOUBLE) @ placed
        torch.testing.assert_close(ranks[b], torch.where(sample, of_ranks, -1))
        torch.testing.assert_close(routed[b], placed @ columns)
        largest = [rank for rank in range(count - 1, count - 5, -1) if rank >= 0]
        torch.testing.assert_close(rows[b, : len(largest)], placed[largest])
        torch.testing.assert_close(best[b, : len(largest)], expected[largest])
        assert not rows[b, len(largest) :].any()
        assert not best[b, len(largest) :].any()


@pytest.mark.parametrize("name", ["cross_entropy", "binary_cross_entropy"])
@settings(max_examples=30)
@given(lists(), st.randoms(use_true_random=False))
def test_losses_average_over_the_entries(op, name, drawn, random):
    x, mask = drawn
    x = x.nan_to_num(posinf=4, neginf=-4)
    target = torch.full(x.shape, 77)
    expected = []
    for b, sample in enumerate(mask):
        count = int(sample.sum())
        ranks = random.sample(range(count), count)
        target[b, sample] = torch.tensor(ranks, dtype=torch.int64)
        if count:
            p = by_hand(op, x[b], sample, 3.0)[1][:count, sample]
            truth = torch.tensor(ranks) == torch.arange(count).unsqueeze(-1)
            logs = torch.where(truth, p, 1 - p).clamp_min(math.exp(-80)).log()
            expected.append(-(logs[truth].mean() if name == "cross_entropy" else logs.mean()))
    losses = op.loss(name, x, target, 3.0, mask=mask, reduction="none")
    mean = op.loss(name, x, target, 3.0, mask=mask)
    if expected:
        torch.testing.assert_close(mean, torch.stack(expected).mean())
        torch.testing.assert_close(losses.sum(), torch.stack(expected).sum())
    else:
        assert mean == 0
        assert not losses.any()


# Here nothing but the keys is made of x: its other entries may be NaN.
OF_KEYS = METHODS | {
    "route": lambda op, x, **lists: op.route(torch.zeros_like(x), x.unsqueeze(-1), **lists),
    "shares": lambda op, x, **lists: op.binary_cross_entropy(
        x, torch.eye(N, dtype=x.dtype).expand(*x.shape, N), **lists
    ),
}
del OF_KEYS["ranks"]
INTEGERS = ["uint8", "uint64", "int32"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_lengths_of_every_integer_dtype_say_the_same(op, dtype):
    functional = nsc.nn.functional
    calls = {
        **OF_KEYS,
        "hard_sort": lambda op, x, **lists: op.hard_sort(x, **lists).values,
        "soft_top_k": lambda op, x, **lists: functional.soft_top_k(op, x, 5, straight_through=True, **lists),
        "quantile": lambda op, x, **lists: functional.quantile(op, x, 0.5, **lists),
        "deviation": functional.median_absolute_deviation,
        "trimmed mean": lambda op, x, **lists: functional.trimmed_mean(op, x, 0.2, **lists),
        "NDCG": lambda op, x, **lists: functional.ndcg_loss(op, x, x.square(), k=5, **lists),
    }
    x, lengths = torch.randn(4, N, dtype=DOUBLE), torch.tensor([3, 0, 1, 6])
    for call in calls.values():
        expected = call(op, x, lengths=lengths)
        result = call(op, x, lengths=lengths.to(getattr(torch, dtype)))
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(nsc.OperandError, match="lengths must be in 0 … 6, got 7"):
        op.sort(x, lengths=torch.tensor([3, 0, 7, 6]).to(getattr(torch, dtype)))


@pytest.mark.parametrize("dtype", [*INTEGERS, "int64", "bool"])
def test_values_of_every_integer_dtype_are_sorted_exactly(op, dtype):
    numbers = torch.tensor([[3, 1, 2, 0, 5, 4], [2, 2, 1, 0, 0, 1]])
    x, mask = numbers.to(getattr(torch, dtype)), torch.tensor([[1, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 1]]).bool()
    lengths = torch.tensor([4, 2])
    for lists in ({"mask": mask}, {"lengths": lengths}):
        takes_part = lists.get("mask", torch.arange(N) < lengths.unsqueeze(-1))
        for descending in (False, True):
            result = op.hard_sort(x, descending=descending, fill=1, **lists)
            assert result.values.dtype == x.dtype
            for sample, part, values in zip(x.long(), takes_part, result.values.long(), strict=True):
                expected = sample[part].sort(descending=descending).values
                assert values.tolist() == [*expected.tolist(), *[1] * (N - len(expected))]
        largest = nsc.compile("bitonic", N, select=nsc.top_k(2)).hard_select(x, **lists).values
        sorted_values = op.hard_sort(x, descending=True, **lists).values
        assert torch.equal(largest, sorted_values[:, :2])
    for fill in (0.5, math.inf, math.nan, 2.0**70):
        with pytest.raises(nsc.OperandError, match=rf"fill must be a whole number in .* for torch.{dtype}"):
            op.hard_sort(x, lengths=lengths, fill=fill)


@pytest.mark.parametrize("method", OF_KEYS)
@pytest.mark.parametrize("kind", ["lengths", "mask"])
def test_nothing_else_matters_and_nothing_else_gets_a_gradient(op, method, kind):
    x = torch.randn(5, N, dtype=DOUBLE)
    lengths = torch.tensor([0, 1, 3, 5, 6])
    mask = torch.arange(N) < lengths.unsqueeze(-1)
    lists = {"lengths": lengths}
    if kind == "mask":
        mask = mask[:, torch.randperm(N)]
        lists = {"mask": mask}
    results = []
    for other in (0.0, math.nan, math.inf, 1e308):
        leaf = torch.where(mask, x, other).requires_grad_()
        result = OF_KEYS[method](op, leaf, **lists)
        (grad,) = torch.autograd.grad(result.cos().sum(), leaf)
        assert not grad[~mask].any()
        assert grad[mask].isfinite().all()
        results.append(torch.cat([result.flatten(), grad.flatten()]))
    for result in results[1:]:
        assert torch.equal(result, results[0])
    grades = torch.where(mask, 1.0, math.nan)
    assert op.cross_entropy(x, relevance=grades, **lists).isfinite()
    leaf = torch.where(mask, x, 0).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: OF_KEYS[method](op, x, **lists), leaf)


def test_other_columns_of_p_are_zero_where_infinite_values_tie_with_them(op):
    x = torch.full((1, N), math.inf)
    mask = torch.tensor([[True, False, True, False, False, True]])
    p = op.sort_with_permutation(x, mask=mask)[1]
    rows = op.topk(x, 2, mask=mask)[1]
    assert not p[..., ~mask[0]].any()
    assert not rows[..., ~mask[0]].any()
    assert p[0, 0].any()


@pytest.mark.parametrize("batch", [3, 300], ids=["by the whole network", "by classes"])
@pytest.mark.parametrize("kind", ["lengths", "mask"])
def test_gradients_of_other_places_of_p_do_not_matter(kind, batch):
    n = 32
    op = nsc.compile("odd_even_merge", n)
    x, lengths = torch.randn(batch, n).requires_grad_(), torch.randint(n + 1, (batch,))
    is_rank = torch.arange(n) < lengths.unsqueeze(-1)
    is_entry = is_rank if kind == "lengths" else is_rank[:, torch.randperm(n)]
    options = {"lengths": lengths} if kind == "lengths" else {"mask": is_entry}
    is_both = is_rank.unsqueeze(-1) & is_entry.unsqueeze(-2)
    given, found = torch.randn(batch, n, n), []
    for other in (0.0, math.nan):
        p = op.sort_with_permutation(x, 3.0, **options)[1]
        found.append(torch.autograd.grad(p, x, torch.where(is_both, given, other))[0])
    assert torch.equal(*found)
    assert found[0].any()


def test_lengths_are_the_mask_of_the_first_entries_along_any_axis(op):
    x = torch.randn(2, N, 3, dtype=DOUBLE)
    lengths = torch.tensor([[0, 1, 2], [4, 5, 6]])
    mask = torch.arange(N).view(1, N, 1) < lengths.unsqueeze(1)
    target = x.argsort(1).argsort(1)
    for kwargs in ({"lengths": lengths}, {"mask": mask}):
        values, p = op.sort_with_permutation(x, dim=1, **kwargs)
        assert torch.equal(values.movedim(1, -1), op.sort(x.movedim(1, -1), lengths=lengths))
        assert torch.equal(p, op.sort_with_permutation(x.movedim(1, -1), lengths=lengths)[1])
        within = torch.where(mask, x, math.inf).argsort(1).argsort(1)
        assert op.cross_entropy(x, within, dim=1, **kwargs).isfinite()
    assert target.shape == op.rank(x, dim=1, lengths=lengths).shape


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("descending", [False, True])
def test_exact_sorts_of_some_values(op, descending, dtype):
    x = torch.randint(0, 4, (9, N)).to(dtype)
    if dtype.is_floating_point:
        x[:3, ::2] = torch.tensor([math.nan, -math.inf, math.inf])
    lengths = torch.arange(9) % (N + 1)
    mask = torch.rand(9, N) < 0.5
    for lists, taken in (
        ({"lengths": lengths}, torch.arange(N) < lengths.unsqueeze(-1)),
        ({"mask": mask}, mask),
    ):
        values, indices = op.hard_sort(x, descending=descending, fill=1, **lists)
        alone = op.hard_sort(x, descending=descending, values_only=True, fill=1, **lists)
        assert torch.equal(alone.nan_to_num(), values.nan_to_num())
        for b in range(9):
            places = taken[b].nonzero().squeeze(-1)
            expected = x[b, places].sort(stable=True, descending=descending)
            count = len(places)
            torch.testing.assert_close(values[b, :count], expected.values, equal_nan=True)
            assert indices[b, :count].tolist() == places[expected.indices].tolist()
            assert (values[b, count:] == 1).all()
            assert (indices[b, count:] == -1).all()


SELECTIONS = {"largest": nsc.top_k(3), "smallest": nsc.ranks(0, 1), "both ends": nsc.ranks(5, 0)}


@pytest.fixture(scope="module", params=SELECTIONS)
def selector(request) -> nsc.Selector:
    return nsc.compile("bitonic", N, select=SELECTIONS[request.param], dtypes=("float32", "float64"))


@settings(max_examples=40)
@given(lists())
def test_selections_are_those_of_the_entries_padded_by_hand(selector, drawn):
    """Where the largest alone are selected, the others are -∞, and ranks count from the largest."""
    x, mask = drawn
    of_largest = selector.ranks == (5, 4, 3)
    columns = torch.arange(2 * N, dtype=DOUBLE).view(N, 2).sin()
    values, rows = selector.select_with_rows(x, 3.0, mask=mask, fill=-7)
    routed = selector.route(x, columns.expand(*x.shape, 2), 3.0, mask=mask, fill=-7)
    torch.testing.assert_close(selector.select(x, 3.0, mask=mask, fill=-7), values)
    front = x.gather(-1, (~mask).argsort(stable=True, dim=-1))
    by_lengths = selector.select(front, 3.0, lengths=mask.sum(-1), fill=-7)
    torch.testing.assert_close(by_lengths, values)
    for b, sample in enumerate(mask):
        count = int(sample.sum())
        keys = padded(x[b], sample)
        if of_largest:
            keys = keys.where(torch.arange(N) < count, -math.inf)
        all_values, p = reference.relax(
            selector.kernel, keys[None], keys.new_full((1,), 3.0), None, "permutation"
        )
        for place, (rank, wire) in enumerate(zip(selector.ranks, selector.kernel.outputs.wires, strict=True)):
            if (N - 1 - rank if of_largest else rank) >= count:
                assert values[b, place] == -7
                assert (routed[b, place] == -7).all()
                assert not rows[b, place].any()
                continue
            torch.testing.assert_close(values[b, place], all_values[0, wire])
            row = torch.zeros(N, dtype=DOUBLE)
            row[sample] = p[0, wire, :count]
            torch.testing.assert_close(rows[b, place], row)
            torch.testing.assert_close(routed[b, place], row @ columns)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_exact_selections_of_some_values(selector, dtype):
    x = torch.randint(0, 4, (40, N)).to(dtype)
    if dtype.is_floating_point:
        x[:20, ::2] = torch.tensor([math.nan, -math.inf, math.inf])
        x[20:30] = -math.inf
    mask = torch.rand(40, N) < 0.5
    of_largest = selector.ranks == (5, 4, 3)
    values, indices = selector.hard_select(x, mask=mask, fill=1)
    alone = selector.hard_select(x, mask=mask, fill=1, values_only=True)
    assert torch.equal(alone.nan_to_num(), values.nan_to_num())
    straight_rows = None
    if dtype.is_floating_point:
        straight_rows = selector.select_with_rows(x, mask=mask, straight_through=True)[1]
    for b, sample in enumerate(mask):
        places = sample.nonzero().squeeze(-1)
        expected = x[b, places].sort(stable=True, descending=of_largest)
        for place, rank in enumerate(selector.ranks):
            own = N - 1 - rank if of_largest else rank
            if own >= len(places):
                assert values[b, place] == 1
                assert indices[b, place] == -1
                continue
            torch.testing.assert_close(values[b, place], expected.values[own], equal_nan=True)
            assert indices[b, place] == places[expected.indices[own]]
            if straight_rows is not None and not x[b, sample].isnan().any():
                assert straight_rows[b, place].argmax() == indices[b, place]


@pytest.mark.parametrize("method", ["select", "select_with_rows", "route"])
def test_nothing_else_matters_to_a_selection(selector, method):
    calls = {
        "select": lambda x, **lists: selector.select(x, **lists),
        "select_with_rows": lambda x, **lists: selector.select_with_rows(x, **lists)[1],
        "route": lambda x, **lists: selector.route(torch.zeros_like(x), x.unsqueeze(-1), **lists),
    }
    x = torch.randn(5, N, dtype=DOUBLE)
    mask = (torch.arange(N) < torch.tensor([0, 1, 3, 5, 6]).unsqueeze(-1))[:, torch.randperm(N)]
    results = []
    for other in (0.0, math.nan, math.inf, 1e308):
        leaf = torch.where(mask, x, other).requires_grad_()
        result = calls[method](leaf, mask=mask)
        (grad,) = torch.autograd.grad(result.cos().sum(), leaf)
        assert not grad[~mask].any()
        results.append(torch.cat([result.flatten(), grad.flatten()]))
    for result in results[1:]:
        assert torch.equal(result, results[0])
    leaf = torch.where(mask, x, 0).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: calls[method](x, mask=mask), leaf)
    exact = calls[method](leaf, mask=mask, straight_through=True)
    assert exact.grad_fn is not None
    soft = calls[method](leaf, mask=mask)
    for each in (exact, soft):
        each.grads = torch.autograd.grad(each.sum(), leaf, retain_graph=True)[0]
    torch.testing.assert_close(exact.grads, soft.grads)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"lengths": torch.tensor([1, 7])}, "lengths must be in 0 … 6, got 7"),
        ({"lengths": torch.tensor([-1, 2])}, "lengths must be in 0 … 6, got -1"),
        ({"lengths": torch.tensor([1.0, 2.0])}, "lengths must hold integers, got torch.float32"),
        ({"lengths": torch.tensor([True, False])}, "lengths must hold integers, got torch.bool"),
        ({"lengths": torch.tensor([1, 2, 3])}, r"lengths must have the shape \(2,\) for x of shape \(2, 6\)"),
        ({"lengths": [1, 2]}, "lengths must be a tensor, got list"),
        ({"mask": torch.ones(2, 6)}, "mask must hold booleans, got torch.float32"),
        ({"mask": torch.ones(2, dtype=torch.bool)}, r"mask must have the shape \(2, 6\)"),
        (
            {"lengths": torch.tensor([1, 2]), "mask": torch.ones(2, 6, dtype=torch.bool)},
            "lengths and mask say the same: leave one of them out",
        ),
    ],
)
def test_wrong_lists_are_refused(op, lists, message):
    with pytest.raises(nsc.NscError, match=f"bitonic_6.*sort: {message}"):
        op.sort(torch.randn(2, N), **lists)
