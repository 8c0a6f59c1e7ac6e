"""The example of scores that begin far apart, run as its user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("examples train")

pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[2]


def test_run_prints_both_losses_and_draws_them(tmp_path):
    picture = tmp_path / "new" / "far_scores.png"
    words = ["--n", "4", "--steps", "2", "--batch", "2", "--seeds", "1", "--test-numbers", "200", "--out"]
    result = subprocess.run(
        [sys.executable, "-m", "examples.far_scores", *words, picture],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr
    assert "log of a stored P, cut at 1e-12" in result.stdout
    assert "nsc's cross_entropy" in result.stdout
    assert result.stdout.count("%") == 2
    assert picture.read_bytes().startswith(b"\x89PNG")
