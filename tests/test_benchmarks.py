"""The benchmark measures what it says; how fast anything is, is no matter for a test."""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("diffsort")

from click.testing import CliRunner

from benchmarks import cases, measure, report
from benchmarks.cases import WORKS, Case


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(measure, "ROUNDS", 3)
    monkeypatch.setattr(measure, "ROUND_SECONDS", 0.001)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("work", WORKS)
def test_peers_of_a_work_do_the_same(work):
    results = {name: call() for name, call in WORKS[work](Case(work, "odd_even", 8, 3)).items()}
    ours = results.pop("nsc")
    assert results
    for theirs in results.values():
        for actual, expected in zip(ours, theirs, strict=True):
            scale = 1 + expected.abs().max()
            torch.testing.assert_close(actual / scale, expected / scale, rtol=0, atol=1e-4)


def test_timings_are_written_as_json_table_and_picture(tmp_path):
    timings = [
        timing
        for n in (4, 8)
        for threads in (1, 2)
        for timing in measure.measure(Case("P + gradient", "bitonic", n, 2), threads)
    ]
    assert all(0 < t.low <= t.seconds <= t.high and t.rounds == 3 for t in timings)
    files = report.write(tmp_path / "new" / "results", timings)
    facts = json.loads(files[0].read_text())
    assert len(facts["timings"]) == len(timings) == 12
    table = files[1].read_text()
    assert table.count("| diffsort |") == 4
    assert "bitonic 8, batch 2" in table
    assert files[2].read_bytes().startswith(b"\x89PNG")


def test_an_unknown_case_is_refused():
    from benchmarks.__main__ import main

    done = CliRunner().invoke(main, ["--only", "nonesuch"])
    assert done.exit_code == 2
    assert cases.CASES[0].name in done.output
