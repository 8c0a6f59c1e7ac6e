"""Statistics of relaxed sorted values: others than torch's, NumPy's and scipy's at a large steepness."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import median_abs_deviation, trim_mean
from torch import Tensor

import nsc
from nsc.nn import Median, MedianAbsoluteDeviation, Quantile, SoftTopK, TrimmedMean, functional

N, BATCH = 6, 5
DOUBLE = torch.float64
STEEP, SOFT = 1e6, 2.0
RULES = ("linear", "lower", "higher", "nearest", "midpoint")


@pytest.fixture(scope="module")
def op() -> nsc.Sorter:
    return nsc.compile("bitonic", N, dtypes=("float32", "float64"))


def samples(seed: int = 0) -> Tensor:
    return torch.randn(BATCH, N, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


CASES = {
    "quantile": (functional.quantile, (0.3,), lambda x: torch.quantile(x, 0.3, -1)),
    "quantiles": (
        functional.quantile,
        ((0.0, 0.5, 0.8),),
        lambda x: torch.quantile(x, torch.tensor([0.0, 0.5, 0.8], dtype=x.dtype), -1),
    ),
    "median": (functional.median, (), lambda x: torch.tensor(np.median(x, -1))),
    "trimmed mean": (functional.trimmed_mean, (0.2,), lambda x: torch.tensor(trim_mean(x, 0.2, -1))),
    "deviation": (
        functional.median_absolute_deviation,
        (),
        lambda x: torch.tensor(median_abs_deviation(x, -1)),
    ),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("n", "dtype"), [(1, DOUBLE), (2, torch.float32), (5, DOUBLE), (6, torch.float32)])
def test_quantiles_are_torchs(rule, n, dtype):
    op = nsc.compile("odd_even", n, dtypes=("float32", "float64"))
    x = torch.randn(3, n, generator=torch.Generator().manual_seed(n)).to(dtype)
    levels = [*(place / 20 for place in range(21)), *(place / 8 for place in range(9)), 1 / 3, 0.123]
    expected = torch.quantile(x, torch.tensor(levels, dtype=dtype), -1, interpolation=rule)
    got = functional.quantile(op, x, levels, 1e30, interpolation=rule)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    for level in levels:
        one = functional.quantile(op, x, level, 1e30, interpolation=rule)
        torch.testing.assert_close(
            one, torch.quantile(x, level, -1, interpolation=rule), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=30)
@given(data=st.data())
def test_statistics_are_those_of_the_entries_alone(op, name, data):
    statistic, arguments, exact = CASES[name]
    x = samples(data.draw(st.integers(0, 100)))
    flags = data.draw(st.lists(st.booleans(), min_size=BATCH * N, max_size=BATCH * N))
    mask = torch.tensor(flags).view(BATCH, N)
    got = statistic(op, torch.where(mask, x, math.nan), *arguments, STEEP, mask=mask)
    for place, (sample, takes) in enumerate(zip(x, mask, strict=True)):
        here = got[..., place]
        if takes.any():
            torch.testing.assert_close(here, exact(sample[takes]), rtol=1e-4, atol=1e-4)
        else:
            assert here.isnan().all()
    lengths = mask.sum(-1)
    first = torch.arange(N) < lengths.unsqueeze(-1)
    assert torch.equal(
        statistic(op, x, *arguments, SOFT, lengths=lengths).nan_to_num(),
        statistic(op, x, *arguments, SOFT, mask=first).nan_to_num(),
    )


@pytest.mark.parametrize("proportion", [0, 0.1, 1 / 6, 0.2, 1 / 3, 0.4, 0.49])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 10])
def test_trimmed_means_are_scipys(n, proportion):
    op = nsc.compile("odd_even", n, dtypes="float64")
    x = torch.randn(3, n, dtype=DOUBLE, generator=torch.Generator().manual_seed(n))
    got = functional.trimmed_mean(op, x, proportion, 1e30)
    torch.testing.assert_close(got, torch.tensor(trim_mean(x.numpy(), proportion, -1)))


def test_soft_values_are_those_of_the_relaxed_sort(op):
    x = samples()
    values = op.sort(x, SOFT)
    torch.testing.assert_close(functional.median(op, x, SOFT), (values[:, 2] + values[:, 3]) / 2)
    torch.testing.assert_close(functional.quantile(op, x, 1, SOFT), values[:, -1])
    torch.testing.assert_close(functional.trimmed_mean(op, x, 0.2, SOFT), values[:, 1:-1].mean(-1))
    torch.testing.assert_close(functional.trimmed_mean(op, x, 0, SOFT), x.mean(-1))
    distances = (x - functional.median(op, x, SOFT).unsqueeze(-1)).abs()
    deviation = functional.median_absolute_deviation(op, x, SOFT)
    torch.testing.assert_close(deviation, functional.median(op, distances, SOFT))


@pytest.mark.parametrize("name", [*CASES, "top k"])
def test_gradients_and_axes(op, name):
    statistic, arguments = CASES[name][:2] if name in CASES else (functional.soft_top_k, (2,))
    x = samples()
    lengths = torch.tensor([6, 5, 4, 2, 1])
    for entries in ({}, {"lengths": lengths}):
        assert torch.autograd.gradcheck(
            lambda x, steepness, entries=entries: statistic(op, x, *arguments, steepness, **entries),
            (x.clone().requires_grad_(), torch.tensor(SOFT, dtype=DOUBLE, requires_grad=True)),
        )
    got, moved = statistic(op, x, *arguments, SOFT), statistic(op, x.t(), *arguments, SOFT, dim=0)
    torch.testing.assert_close(moved if name in CASES else moved.t(), got)
    torch.testing.assert_close(
        statistic(op, x[0], *arguments, SOFT), got[0] if name == "top k" else got[..., 0]
    )


@pytest.mark.parametrize("name", [*CASES, "top k"])
def test_nothing_else_matters_and_nothing_else_gets_a_gradient(op, name):
    statistic, arguments = CASES[name][:2] if name in CASES else (functional.soft_top_k, (2,))
    x, mask = samples(), torch.rand(BATCH, N, generator=torch.Generator().manual_seed(3)) < 0.6
    assert mask.any(-1).all()
    results = []
    for junk in (0.0, math.nan, math.inf, -1e308):
        leaf = torch.where(mask, x, junk).requires_grad_()
        value = statistic(op, leaf, *arguments, SOFT, mask=mask)
        (grad,) = torch.autograd.grad(value.cos().sum(), leaf)
        assert not grad[~mask].any()
        assert grad.any()
        results.append(torch.cat([value.flatten(), grad.flatten()]))
    for result in results:
        assert torch.equal(result, results[0])


@pytest.mark.parametrize("k", [1, 2, N])
def test_weights_of_the_top_k(op, k):
    x = samples()
    rows = op.topk(x, k, SOFT)[1]
    weights = functional.soft_top_k(op, x, k, SOFT)
    torch.testing.assert_close(weights, rows.sum(-2))
    torch.testing.assert_close(weights.sum(-1), torch.full((BATCH,), k, dtype=DOUBLE))
    torch.testing.assert_close(op.top_k_weights(x, k, SOFT), weights)
    exact = torch.zeros_like(x).scatter(-1, x.topk(k).indices, 1)
    torch.testing.assert_close(functional.soft_top_k(op, x, k, 1e30), exact)
    leaf = x.clone().requires_grad_()
    hard = functional.soft_top_k(op, leaf, k, SOFT, straight_through=True)
    assert torch.equal(hard, exact)
    (passed,) = torch.autograd.grad(hard.mul(x.sin()).sum(), leaf)
    (soft,) = torch.autograd.grad(functional.soft_top_k(op, leaf, k, SOFT).mul(x.sin()).sum(), leaf)
    torch.testing.assert_close(passed, soft)


def test_weights_of_the_top_k_of_some(op):
    x = samples().float()
    mask = torch.rand(BATCH, N, generator=torch.Generator().manual_seed(3)) < 0.6
    mask[0], x[1, 0] = False, -math.inf
    junk = torch.where(mask, x, math.nan)
    soft = functional.soft_top_k(op, junk, 2, SOFT, mask=mask)
    hard = functional.soft_top_k(op, junk, 2, SOFT, mask=mask, straight_through=True)
    torch.testing.assert_close(soft.sum(-1), mask.sum(-1).clamp_max(2).float())
    for sample, takes, weights in zip(x, mask, hard, strict=True):
        best = torch.where(takes, sample, -math.inf).topk(min(2, int(takes.sum()))).indices
        assert weights.nonzero().flatten().tolist() == sorted(best.tolist())
        assert set(weights.tolist()) <= {0, 1}
    assert torch.equal(
        functional.soft_top_k(op, junk.t(), 2, SOFT, mask=mask.t(), dim=0, straight_through=True), hard.t()
    )
    assert op.top_k_weights(x, 2, mask=mask, fill=-1)[~mask].eq(-1).all()


def test_the_first_of_equal_values_are_taken_and_a_nan_stays_visible(op):
    equal = torch.zeros(N)
    assert functional.soft_top_k(op, equal, 2, straight_through=True).tolist() == [1, 1, 0, 0, 0, 0]
    rows = op.topk(equal, 2, straight_through=True)[1]
    assert rows.argmax(-1).tolist() == [0, 1]
    equal[:], some = math.inf, torch.arange(N) > 2  # as the entries that take no part
    weights = functional.soft_top_k(op, equal, 2, mask=some, straight_through=True)
    assert weights.tolist() == [0, 0, 0, 1, 1, 0]
    equal[1] = math.nan
    assert functional.soft_top_k(op, equal, 2, straight_through=True).isnan().all()


@pytest.mark.parametrize(
    ("values", "low", "middle"),
    [
        ((-math.inf, -math.inf, 3, 4), -math.inf, -math.inf),
        ((1, 2, math.inf, math.inf), 1.9, math.inf),
        ((-math.inf, 2, math.inf, math.inf), -math.inf, math.inf),
        ((-math.inf, -math.inf, math.inf, math.inf), -math.inf, math.nan),
        ((-3e38, -3e38, 3e38, 3e38), -3e38, 0),
    ],
)
def test_infinite_and_huge_values(values, low, middle):
    op, x = nsc.compile("bitonic", 4), torch.tensor([values]).t().requires_grad_()
    found = functional.quantile(op, x, (0.3, 0.5), 1e9, dim=0)
    torch.testing.assert_close(found[:, 0], torch.tensor([low, middle], dtype=torch.float32), equal_nan=True)
    found.sum().backward()
    assert not x.grad.isnan().any()


@pytest.mark.nightly("17 million values take a second, and 0.3 GB")
def test_more_values_than_torch_quantile_takes():
    x = torch.arange(4.0).repeat((1 << 22) + 1, 1)
    assert Quantile("bitonic", 4, q=0.5, steepness=1e6)(x).eq(1.5).all()


@pytest.mark.parametrize("name", CASES)
def test_dtypes_and_nan(op, name):
    statistic, arguments, _ = CASES[name]
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        x = samples().to(dtype)
        value = statistic(op, x, *arguments, SOFT)
        assert value.dtype == dtype
        torch.testing.assert_close(value, statistic(op, x.float(), *arguments, SOFT).to(dtype))
    alone = torch.tensor([math.inf, 0, 0, 0, 0, 0], dtype=DOUBLE)
    if name != "deviation":
        assert statistic(op, -alone, *arguments, lengths=torch.tensor(1)).eq(-math.inf).all()
    x = samples()
    x[1, 2] = math.nan
    found = statistic(op, x, *arguments, SOFT).isnan()
    assert found[..., 1].all()
    assert found.sum() == found[..., 1].numel()
    assert statistic(op, x[:0], *arguments, SOFT).shape == found[..., :0].shape


MODULES = {
    "quantile": lambda *network, **more: Quantile(*network, q=0.3, **more),
    "quantiles": lambda *network, **more: Quantile(*network, q=(0.0, 0.5, 0.8), **more),
    "median": Median,
    "trimmed mean": lambda *network, **more: TrimmedMean(*network, proportion=0.2, **more),
    "deviation": MedianAbsoluteDeviation,
    "top k": lambda *network, **more: SoftTopK(*network, k=2, **more),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_their_functions(op, name):
    statistic, arguments = CASES[name][:2] if name in CASES else (functional.soft_top_k, (2,))
    x, lengths = samples().float(), torch.tensor([6, 5, 4, 3, 2])
    module = MODULES[name]("bitonic", N, steepness=SOFT, learnable=True)
    got = module(x, lengths=lengths)
    torch.testing.assert_close(got, statistic(op, x, *arguments, SOFT, lengths=lengths))
    got.cos().sum().backward()
    assert module.log_steepness.grad.any()
    assert MODULES[name](op).operator is op
    assert repr(module).startswith(type(module).__name__)


X = torch.zeros(2, N)


@pytest.mark.parametrize(
    ("function", "arguments", "options", "error", "message"),
    [
        ("quantile", (1.5,), {}, nsc.OperandError, "quantile: q must be in 0 … 1, got 1.5"),
        ("quantile", ((),), {}, nsc.OperandError, r"q must be in 0 … 1, got \(\)"),
        ("quantile", ((0.5, math.nan),), {}, nsc.OperandError, "q must be in 0 … 1"),
        ("quantile", ("0.5",), {}, nsc.OperandTypeError, "q must be a number or several"),
        ("quantile", (True,), {}, nsc.OperandTypeError, "q must be a number or several"),
        ("quantile", (0.5,), {"interpolation": "near"}, nsc.OperandError, "no interpolation 'near'; known: "),
        ("trimmed_mean", (0.5,), {}, nsc.OperandError, "proportion must be at least 0 and less than 1/2"),
        ("trimmed_mean", ("0",), {}, nsc.OperandError, "proportion must be at least 0 .* got '0'"),
        ("soft_top_k", (0,), {}, nsc.OperandError, "k must be an integer in 1 … 6, got 0"),
        ("soft_top_k", (2,), {"straight_through": 1}, nsc.OperandTypeError, "must be True or False, got 1"),
        ("median", (), {"dim": 2}, nsc.OperandError, "dim must be in -2 … 1"),
        ("median", (), {"mask": X}, nsc.OperandTypeError, "mask must hold booleans"),
        ("median", (), {"lengths": torch.tensor([1, 7])}, nsc.OperandError, "lengths must be in 0 … 6"),
    ],
)
def test_wrong_arguments_are_refused(op, function, arguments, options, error, message):
    with pytest.raises(error, match=message):
        getattr(functional, function)(op, X, *arguments, **options)


def test_what_is_no_sorter_is_refused(op):
    for function in (functional.median, functional.median_absolute_deviation):
        with pytest.raises(nsc.OperandTypeError, match="operator must be a Sorter or Sizes, got str"):
            function("bitonic", X)
    with pytest.raises(nsc.OperandError, match="SoftTopK: k must be an integer in 1 … 6, got 7"):
        SoftTopK(op, k=7)
    with pytest.raises(nsc.OperandError, match="Quantile: q must be in 0 … 1, got 2"):
        Quantile(op, q=2)
    with pytest.raises(nsc.OperandError, match="TrimmedMean: proportion must be"):
        TrimmedMean(op, proportion=0.7)
    with pytest.raises(nsc.OperandTypeError, match="straight_through must be True or False"):
        SoftTopK(op, k=2, straight_through="no")
    with pytest.raises(nsc.LoweringError, match="Median sorts all values"):
        Median("bitonic", N, select=nsc.median())
