"""EM, EW and EM5 on cases worked out by hand, and on permutations."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import ExperimentError
from experiments.metrics import error_of_mean, error_of_share, ranking_metrics, right_ranks

NUMBERS = torch.tensor([10, 20, 30, 40, 50, 1, 2, 3, 4, 5])
SWAPPED = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 2.0, 1.0, 3.0, 4.0, 5.0])


def test_metrics_by_hand() -> None:
    assert ranking_metrics(NUMBERS.float(), NUMBERS, n=10) == {"em": 1, "ew": 1, "em5": 1}
    assert ranking_metrics(SWAPPED, NUMBERS, n=5) == {"em": 0.5, "ew": 0.8, "em5": 0.5}
    # The order is right within fives, and wrong across them.
    assert ranking_metrics(SWAPPED, NUMBERS, n=10) == {"em": 0, "ew": 0, "em5": 0.5}


def test_what_does_not_fill_a_sample_is_left_out() -> None:
    # Of pairs, three of four keep their order; the ninth number has no partner.
    metrics = ranking_metrics(SWAPPED[1:], NUMBERS[1:], n=2)
    assert (metrics["em"], metrics["ew"]) == (0.75, 0.75)


def test_equal_values_may_come_in_any_order() -> None:
    numbers = torch.tensor([7, 7, 7, 1, 9])
    for scores in ([2.0, 3.0, 4.0, 1.0, 5.0], [4.0, 2.0, 3.0, 1.0, 5.0]):
        assert ranking_metrics(torch.tensor(scores), numbers, n=5)["em"] == 1
    wrong = torch.tensor([2.0, 3.0, 6.0, 1.0, 5.0])
    assert ranking_metrics(wrong, numbers, n=5)["ew"] == pytest.approx(0.6)


def test_equal_scores_stay_in_the_order_of_the_draw() -> None:
    numbers = torch.randperm(5000, generator=torch.Generator().manual_seed(0))
    metrics = ranking_metrics(torch.zeros(5000), numbers, n=5)
    # By chance 1 in 120 samples of 5 is right, and one rank in five.
    assert abs(metrics["em"] - 1 / 120) < 5 * error_of_share(1 / 120, 1000)
    assert abs(metrics["ew"] - 1 / 5) < 5 * error_of_share(1 / 5, 1000)
    assert torch.equal(right_ranks(torch.zeros(40), torch.arange(40)), torch.ones(40, dtype=torch.bool))


@given(st.permutations(range(8)), st.lists(st.integers(0, 5), min_size=8, max_size=8))
def test_metrics_do_not_depend_on_the_order_of_different_values(order: list[int], repeats: list[int]) -> None:
    values = torch.arange(8)
    scores = torch.tensor([10.0 * value + repeat for value, repeat in enumerate(repeats)])
    assert right_ranks(scores[list(order)], values[list(order)]).all()
    reversed_right = right_ranks(-scores[list(order)], values[list(order)])
    assert not reversed_right.any()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.randoms(use_true_random=False))
def test_a_score_that_is_the_value_is_always_right(values: list[int], random) -> None:
    random.shuffle(values)
    assert right_ranks(torch.tensor(values).float(), torch.tensor(values)).all()


@pytest.mark.parametrize(("count", "n", "size"), [(9, 10, 10), (4, 2, 5), (0, 5, 5)])
def test_too_few_items_are_refused(count: int, n: int, size: int) -> None:
    with pytest.raises(ExperimentError, match=f"samples of {size} need at least {size} items, got {count}"):
        ranking_metrics(torch.zeros(count), torch.zeros(count), n)


def test_standard_errors_by_hand() -> None:
    assert error_of_share(0.5, 100) == pytest.approx(0.05)
    assert error_of_share(1.0, 10) == error_of_share(0.0, 10) == 0
    # 1, 2, 3 have deviation 1.
    assert error_of_mean([1.0, 2.0, 3.0]) == pytest.approx(1 / math.sqrt(3))
    assert error_of_mean([0.7, 0.7]) == 0


def test_the_error_of_a_share_is_the_deviation_of_repeated_measurements() -> None:
    draws = torch.rand(4000, 250, generator=torch.Generator().manual_seed(1)) < 0.3
    measured = draws.double().mean(-1).std().item()
    assert measured == pytest.approx(error_of_share(0.3, 250), rel=0.05)
