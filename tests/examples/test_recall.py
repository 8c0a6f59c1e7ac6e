"""The example of the best of a list, run as its user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("examples train")

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]


def test_run_prints_the_results_and_draws_them(tmp_path):
    picture = tmp_path / "new" / "recall.png"
    words = [sys.executable, "-m", "examples.recall", "--steps", "2", "--seeds", "1", "--out", str(picture)]
    wide = {**os.environ, "COLUMNS": "200"}
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=ROOT, env=wide)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for name in (
        "bitonic, all ranks",
        "bitonic, mask",
        "SoftSort, mask",
        "closed form, fixed threshold",
        "softmax",
    ):
        assert name in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
