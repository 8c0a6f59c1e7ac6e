"""nsc.compat.torchsort: other conventions, limits or errors than torchsort has."""

from __future__ import annotations

import functools
import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

import nsc
from nsc.compat.torchsort import REGULARIZATIONS, soft_rank, soft_sort

pytestmark = pytest.mark.slow("networks of many sizes are relaxed")

DOUBLE = torch.float64
SIZES = [1, 5, 33]


def projected(x, strength):
    """Return the ranks of Blondel et al.: x / strength projected onto the permutahedron of 1 … n."""
    rows = []
    for row in (x / strength).numpy():
        order = row.argsort()[::-1]
        descending = row[order]
        wanted = range(len(row), 0, -1)
        dual = isotonic_regression(descending - list(wanted), increasing=False).x
        ranks = descending * 0
        ranks[order] = descending - dual
        rows.append(torch.from_numpy(ranks))
    return torch.stack(rows)


@pytest.mark.parametrize("regularization", REGULARIZATIONS)
@pytest.mark.parametrize("n", SIZES)
def test_a_small_strength_gives_exact_ranks_from_1_and_ascending_values(n, regularization):
    x = torch.randn(4, n, dtype=DOUBLE)
    ranks = soft_rank(x, regularization, 1e-12)
    torch.testing.assert_close(ranks, torch.from_numpy(rankdata(x.numpy(), axis=1)), rtol=0, atol=1e-6)
    torch.testing.assert_close(soft_sort(x, regularization, 1e-12), x.sort(-1).values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("regularization", REGULARIZATIONS)
def test_a_large_strength_gives_one_rank_and_one_value_for_powers_of_two(regularization):
    for n in (1, 2, 8, 64):
        x = torch.randn(2, n, dtype=DOUBLE)
        ranks, values = (each(x, regularization, 1e12) for each in (soft_rank, soft_sort))
        torch.testing.assert_close(ranks, torch.full_like(x, (n + 1) / 2), rtol=0, atol=1e-8)
        torch.testing.assert_close(values, x.mean(-1, keepdim=True).expand(2, n), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("regularization", "slope"), [("l2", 1 / 2), ("kl", 3 / 4)])
def test_ranks_of_two_equal_values_have_torchsorts_slope(regularization, slope):
    """l2 projects to 3/2 ± d / (2 strength), kl to 3 σ(±d / strength), for a small difference d."""
    x = torch.tensor([[1.0, 1.0]], dtype=DOUBLE, requires_grad=True)
    for strength in (0.2, 3.0):
        ranks = soft_rank(x, regularization, strength)
        torch.testing.assert_close(ranks.detach(), torch.full_like(x, 1.5))
        (grad,) = torch.autograd.grad(ranks[0, 1], x)
        expected = torch.tensor([[-slope, slope]], dtype=DOUBLE) / strength
        torch.testing.assert_close(grad, expected)


@settings(max_examples=40)
@given(st.integers(1, 20), st.floats(0.1, 10), st.sampled_from([*REGULARIZATIONS]), st.integers(0, 99))
def test_sums_of_rows_stay_and_ranks_depend_on_values_over_strength(n, strength, regularization, seed):
    x = torch.randn(3, n, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))
    ranks = soft_rank(x, regularization, strength)
    total = torch.full((3,), n * (n + 1) / 2, dtype=DOUBLE)
    torch.testing.assert_close(ranks.sum(-1), total)
    torch.testing.assert_close(soft_sort(x, regularization, strength).sum(-1), x.sum(-1))
    torch.testing.assert_close(soft_rank(x / strength, regularization, 1.0), ranks)


def test_sorted_values_are_those_of_the_P_whose_ranks_are_returned():
    x, op = (
        torch.randn(3, 8, dtype=DOUBLE),
        nsc.compile("odd_even_merge", 8, art_lambda=0.0, dtypes="float64"),
    )
    for regularization, steepness in (("l2", 2 / 0.3), ("kl", 9 / 0.3)):
        values, p = op.sort_with_permutation(x, steepness)
        torch.testing.assert_close(soft_sort(x, regularization, 0.3), values)
        ranks = torch.arange(1, 9, dtype=DOUBLE) @ p
        torch.testing.assert_close(soft_rank(x, regularization, 0.3), ranks)


@pytest.mark.parametrize("n", [5, 32])
def test_where_gaps_are_larger_than_the_strength_ranks_are_near_the_projected_ones(n):
    x = torch.randn(50, n, dtype=DOUBLE).argsort(-1) + 0.6 * torch.rand(50, n, dtype=DOUBLE)
    for strength, most in ((0.05, 0.02), (0.2, 0.15)):
        error = (soft_rank(x, "l2", strength) - projected(x, strength)).square().mean().sqrt()
        assert error < most


def test_gradcheck():
    x = torch.randn(2, 3, dtype=DOUBLE, requires_grad=True)
    for function in (soft_rank, soft_sort):
        for regularization in REGULARIZATIONS:
            call = functools.partial(function, regularization=regularization, regularization_strength=0.7)
            assert torch.autograd.gradcheck(call, x)
            assert torch.autograd.gradgradcheck(call, x)
    strength = torch.tensor(0.7, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, s: soft_rank(x, "l2", s), (x, strength))


def test_shapes_and_dtypes():
    for function in (soft_rank, soft_sort):
        for shape in ((0, 3), (2, 0), (1, 1), (2, 3)):
            for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
                result = function(torch.zeros(shape, dtype=dtype))
                assert (result.shape, result.dtype) == (shape, dtype)
        for dtype in (torch.int64, torch.uint8, torch.bool):
            assert function(torch.zeros(2, 3, dtype=dtype)).dtype == torch.float32
        assert function(torch.tensor([[1.0, torch.nan, 2.0]])).isnan().all()


def test_arguments_and_defaults_are_torchsorts():
    for function in (soft_rank, soft_sort):
        parameters = inspect.signature(function).parameters.values()
        assert [(each.name, each.default) for each in parameters] == [
            ("values", inspect.Parameter.empty),
            ("regularization", "l2"),
            ("regularization_strength", 1.0),
        ]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((torch.zeros(3),), nsc.OperandError, r"takes values \(batch, n\), got \(3,\)"),
        (([[1.0]],), nsc.OperandTypeError, "values must be a tensor, got list"),
        ((torch.zeros(1, 3).cfloat(),), nsc.OperandTypeError, "real numbers, got torch.complex64"),
        ((torch.zeros(1, 3), "l1"), nsc.OperandError, "regularization must be one of l2, kl, got 'l1'"),
        ((torch.zeros(1, 3), "l2", -1.0), nsc.OperandError, "above 0 and finite, got -1.0"),
        ((torch.zeros(1, 3), "l2", float("nan")), nsc.OperandError, "above 0 and finite, got nan"),
        ((torch.zeros(1, 3), "l2", "1"), nsc.OperandTypeError, "strength must be a number, got '1'"),
        ((torch.zeros(1, 3), "l2", torch.tensor(-1.0)), nsc.OperandError, "above 0"),
    ],
)
def test_what_is_refused(arguments, error, message):
    for function in (soft_rank, soft_sort):
        with pytest.raises(error, match=message):
            function(*arguments)
        # torchsort raises ValueError for shapes and names.
        assert issubclass(error, ValueError | TypeError)
