"""Time and memory of the works: what is measured, in which unit, and what is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from experiments import timing as timing_module
from experiments.errors import ExperimentError
from experiments.methods import METHODS
from experiments.timing import SIZES, WORKS, can_measure_memory, measure, start, title_of

pytestmark = pytest.mark.nightly("losses are timed")


def test_every_method_and_p_itself_are_measured_at_the_papers_sizes() -> None:
    assert set(METHODS) < set(WORKS)
    assert [title_of(work) for work in WORKS if work not in METHODS] == [
        *("values of Odd-Even", "values of Bitonic", "P of Odd-Even", "P of Bitonic"),
        *("diffsort's P of Odd-Even", "diffsort's P of Bitonic"),
    ]
    assert {4, 16, 32, 128, 1024} < {*SIZES}


@pytest.mark.parametrize("work", WORKS)
def test_a_work_ends_in_the_gradient_of_the_scores(work: str) -> None:
    torch.manual_seed(0)
    (gradient,) = start(work, 4, 3)()
    assert gradient.shape == (3, 4)
    assert gradient.abs().sum() > 0


def test_a_timing_is_of_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.timing.ROUND_SECONDS", 0.002)
    monkeypatch.setattr("experiments.timing.can_measure_memory", lambda: False)
    told: list[str] = []
    threads = torch.get_num_threads()
    timings = measure(("P of bitonic", "soft_sort"), (8, 4), (1, 2), told.append)
    assert torch.get_num_threads() == threads
    assert [(timing.work, timing.n, timing.threads) for timing in timings] == [
        (work, n, number) for n in (4, 8) for number in (1, 2) for work in ("P of bitonic", "soft_sort")
    ]
    assert told[:3] == [
        "P of Bitonic, n = 4, 1 thread",
        "SoftSort, n = 4, 1 thread",
        "P of Bitonic, n = 4, 2 threads",
    ]
    for timing in timings:
        assert timing.seconds is not None
        assert timing.seconds > 0
        assert timing.batch * timing.n == 4096
        assert (timing.bytes, timing.reason) == (None, "")


def test_a_work_beyond_the_limit_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.timing.LIMIT", 1e-9)
    timing, larger = measure(("optimal_transport",), (8, 16))
    assert (timing.seconds, timing.bytes) == (None, None)
    assert timing.reason.startswith("a call takes ")
    assert timing.reason.endswith(" s, the limit is 1e-09 s")
    assert (larger.seconds, larger.reason) == (None, "it was left out at n = 8")


def test_a_work_that_would_take_too_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    start = timing_module.start
    monkeypatch.setattr(
        timing_module, "start", lambda work, n, batch: tried.append(n) or start(work, n, batch)
    )
    monkeypatch.setattr("experiments.timing._time", lambda call, repeats: 15.0)
    small, large = measure(("soft_sort",), (128, 256))
    assert small.seconds == 15 / 32
    assert large.reason == "a call would take 30 s, by what it took at n = 128, the limit is 20 s"
    assert tried == [128]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ("bogosort", "'bogosort' is neither a family"),
        ("P of bogosort", "'bogosort' is neither a family"),
        ("P of soft_sort", "'P of soft_sort': 'soft_sort' is not a sorting network without options"),
    ],
)
def test_all_names_are_checked_before_anything_is_measured(work: str, message: str) -> None:
    told: list[str] = []
    with pytest.raises(ExperimentError, match=message):
        measure(("soft_sort", work), (4,), (1,), told.append)
    assert not told


METHOD = """
from experiments.methods import Method
calls = 0
def start(n, temperature, generator):
    def loss(scores, truth):
        {body}
        return scores.sum()
    return loss
METHOD = Method("mine", "Mine", "nobody", start)
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("1 / 0", "it raises ZeroDivisionError: division by zero"),
        ("global calls; calls += 1; assert calls < 4, 'late'", "it raises AssertionError: late"),
    ],
)
def test_a_method_that_raises_is_named(body: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(METHOD.format(body=body))
    with pytest.raises(ExperimentError, match=rf"^{re.escape(str(file))}, n = 4: {message}"):
        measure((str(file),), (4,))


@pytest.mark.skipif(not can_measure_memory(), reason="the system does not tell peaks")
def test_memory_is_measured_in_a_process_of_its_own() -> None:
    (timing,) = measure(("soft_sort",), (64,))
    # The logits, their softmax and gradients are n × n floats each.
    assert timing.bytes is not None
    assert 2 * 4 * 64**2 < timing.bytes < 12 * 4 * 64**2
