"""The example of Spearman's correlation, run as its user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("examples train")

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]


def test_run_prints_the_results_and_draws_them(tmp_path):
    picture = tmp_path / "new" / "correlation.png"
    words = [
        sys.executable,
        "-m",
        "examples.correlation",
        "--steps",
        "2",
        "--seeds",
        "1",
        "--out",
        str(picture),
    ]
    wide = {**os.environ, "COLUMNS": "200"}
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=ROOT, env=wide)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for name in ("Spearman's correlation", "least squares"):
        assert name in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
