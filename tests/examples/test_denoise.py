"""The example of noisy photographs, run as its user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("examples train")

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]


def test_run_prints_the_ratios_and_draws_the_images(tmp_path):
    picture = tmp_path / "new" / "denoise.png"
    words = [sys.executable, "-m", "examples.denoise", "--steps", "2", "--out", str(picture)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for name in ("noisy", "median 3 × 3", "median 5 × 5", "relaxed 3 × 3"):
        assert name in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
