"""Catches an example that fails, warns, prints other lines, or draws no picture when its user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("examples train")

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
ONE_SEED = "--steps 2 --seeds 1"
# By name: options that make an example short, and what it prints.
EXAMPLES = {
    "clients": ("--steps 2", ["mean, all honest", "mean, 4 of 15 attack", "median, 4 of 15 attack"]),
    "conformal": (ONE_SEED, ["cross entropy alone", "and the sizes of the sets"]),
    "correlation": (ONE_SEED, ["Spearman's correlation", "least squares"]),
    "denoise": ("--steps 2", ["noisy", "median 3 × 3", "median 5 × 5", "relaxed 3 × 3"]),
    "experts": (ONE_SEED, ["softmax of the chosen", "weights of the top k"]),
    "far_scores": (
        f"--n 4 {ONE_SEED} --batch 2 --test-numbers 200",
        ["log of a stored P, cut at 1e-12", "nsc's cross_entropy", "%"],
    ),
    "ranking": (ONE_SEED, ["graded cross entropy", "ListNet", "LambdaRank-style pairs"]),
    "recall": (
        ONE_SEED,
        ["bitonic, all ranks", "bitonic, mask", "SoftSort, mask", "closed form, fixed threshold", "softmax"],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_run_prints_the_results_and_draws_them(name, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    options, lines = EXAMPLES[name]
    picture = tmp_path / "new" / f"{name}.png"
    words = [sys.executable, "-m", f"examples.{name}", *options.split(), "--out", str(picture)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert name == "far_scores" or result.stderr == ""
    for line in lines:
        assert line in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
