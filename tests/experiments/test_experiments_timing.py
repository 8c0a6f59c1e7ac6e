"""Time and memory of the works: what is measured, in which unit, and what is left out."""

from __future__ import annotations

import pytest
import torch

from experiments.errors import ExperimentError
from experiments.methods import METHODS
from experiments.timing import SIZES, WORKS, can_measure_memory, measure, peak_of, start, title_of


def test_every_method_and_p_itself_are_measured_at_the_papers_sizes() -> None:
    assert set(METHODS) < set(WORKS)
    assert [title_of(work) for work in WORKS if work not in METHODS] == ["P of Odd-Even", "P of Bitonic"]
    assert SIZES == (4, 16, 32, 128, 1024)


@pytest.mark.parametrize("work", WORKS)
def test_a_work_ends_in_the_gradient_of_the_scores(work: str) -> None:
    torch.manual_seed(0)
    (gradient,) = start(work, 4, 3)()
    assert gradient.shape == (3, 4)
    assert gradient.abs().sum() > 0


def test_a_timing_is_of_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.timing.ROUND_SECONDS", 0.002)
    told: list[str] = []
    threads = torch.get_num_threads()
    timings = measure(("P of bitonic", "soft_sort"), (4, 8), memory=False, report=told.append)
    assert torch.get_num_threads() == threads
    assert [(timing.work, timing.n) for timing in timings] == [
        ("P of bitonic", 4),
        ("soft_sort", 4),
        ("P of bitonic", 8),
        ("soft_sort", 8),
    ]
    assert told == ["P of Bitonic, n = 4", "SoftSort, n = 4", "P of Bitonic, n = 8", "SoftSort, n = 8"]
    for timing in timings:
        assert timing.low is not None
        assert timing.seconds is not None
        assert timing.high is not None
        assert 0 < timing.low <= timing.seconds <= timing.high
        assert timing.batch * timing.n == 4096
        assert (timing.rounds, timing.bytes, timing.reason) == (9, None, "")


def test_a_work_beyond_the_limit_is_left_out_with_the_reason() -> None:
    (timing,) = measure(("optimal_transport",), (8,), limit=1e-9)
    assert (timing.seconds, timing.bytes, timing.rounds) == (None, None, 0)
    assert timing.reason.startswith("a call takes ")
    assert timing.reason.endswith(" s, the limit is 1e-09 s")


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ExperimentError, match="'bogosort' is neither a family"):
        measure(("bogosort",), (4,))


@pytest.mark.skipif(not can_measure_memory(), reason="the system does not tell peaks")
def test_memory_is_measured_in_a_process_of_its_own() -> None:
    (timing,) = measure(("soft_sort",), (64,))
    # The logits, their softmax and gradients are n × n floats each.
    assert timing.bytes is not None
    assert 2 * 4 * 64**2 < timing.bytes < 12 * 4 * 64**2


@pytest.mark.skipif(not can_measure_memory(), reason="the system does not tell peaks")
def test_memory_is_resolved_below_a_page() -> None:
    assert 8 < peak_of("regression", 4) < 400
