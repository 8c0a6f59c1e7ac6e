"""Catches an operator or a layer that treats NaN in another way than docs/numbers.md says."""

from __future__ import annotations

import math

import called
import pytest
import torch

import nsc

# These return values of x, of which NaN is the largest. All others compute.
SELECTING = ("exact", "filter", "filter layers")
HUGE = 1e30


@pytest.mark.parametrize("name", called.COLUMNS)
def test_nan_is_selected_as_the_largest_value_or_spreads(name, monkeypatch):
    column = called.COLUMNS[name]
    for operand in ("steepness", "payload", "shares"):  # these are numbers
        make = getattr(called, operand)
        monkeypatch.setattr(called, operand, lambda x, make=make: make(x.nan_to_num(1.0)))
    x = torch.rand(column.shape, generator=torch.Generator().manual_seed(0))
    x[..., 1] = HUGE
    calls = column.make()
    program = called.Program(calls)
    results = program(torch.where(x == HUGE, math.nan, x))
    if name not in SELECTING:
        assert all(result.isnan().any() for result in results)
        return
    for each, result, expected in zip(calls, results, program(x), strict=True):
        if getattr(each.subject, "nan", "largest") == "keep":
            assert torch.equal(result.isnan(), x == HUGE)
            continue
        expected = torch.where(expected < HUGE, expected, math.nan)
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


def test_a_selected_median_is_a_number_and_a_computed_one_is_nan():
    x = torch.tensor([math.inf, 0, -1, math.nan, 5])
    op = nsc.compile("best", 5, select=nsc.median())
    values, indices = op.hard_select(x)
    assert (values.item(), indices.item()) == (5, 4)
    assert op(x).isnan()
    assert op.select(x, straight_through=True).isnan()
    assert nsc.nn.Median()(x).isnan()
    assert torch.median(x).isnan()
