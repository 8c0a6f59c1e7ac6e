"""The example of graded lists, run as its user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("examples train")

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]


def test_run_prints_the_results_and_draws_them(tmp_path):
    picture = tmp_path / "new" / "ranking.png"
    words = [sys.executable, "-m", "examples.ranking", "--steps", "2", "--seeds", "1", "--out", str(picture)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for name in ("graded cross entropy", "ListNet", "LambdaRank-style pairs"):
        assert name in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
