"""The digits example, run as its user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from examples import digits, four_digits, showing

pytestmark = pytest.mark.slow("an example runs")

SMALL = ("--net", "odd_even", "--n", "8", "--steps", "3", "--test-numbers", "200")
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@pytest.mark.nightly("examples train")
def test_run_prints_the_table_and_draws_the_picture(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "examples.digits", *SMALL]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=120
    )
    assert result.returncode == 0, result.stderr
    for row in ("EM ", "EW ", "EM5"):
        assert len(re.findall(rf"{row}.*\d\.\d\d%.*\d\.\d\d%", result.stdout)) == 1, result.stdout
    assert "odd_even_8" in result.stdout
    assert "1,438 digits to train on, 359 to test on" in result.stdout
    assert "3/3" in result.stdout
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", result.stdout + result.stderr)
    assert (tmp_path / "examples/output/digits.png").read_bytes().startswith(PNG_MAGIC)


def test_same_seed_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def table(seed: str) -> str:
        result = CliRunner().invoke(digits.main, [*SMALL, "--seed", seed])
        assert result.exit_code == 0, result.output
        return result.output[result.output.index("Held-out") :]

    assert table("3") == table("3")
    assert table("3") != table("4")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "0"], "steps"),
        (["--n", "1"], "--n"),
        (["--seed", "-1"], "--seed"),
        (["--net", "bubble"], "bubble"),
        (["--relaxation", "hard"], "hard"),
        (["--steepness", "nan"], "nan"),
        (["--steepness", "-2"], "-2"),
        (["--out", "."], "--out"),
    ],
)
def test_bad_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(digits.main, [*SMALL, *options])
    assert result.exit_code in (1, 2)
    # Click's own exit; any other exception would be a traceback.
    assert isinstance(result.exception, SystemExit)
    (line,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert message in line


def test_the_picture_is_drawn_for_few_numbers_and_equal_scores(tmp_path: Path) -> None:
    reading = showing.Reading(
        torch.rand(2, 1, 8, 32), torch.tensor([7, 7]), torch.zeros(2), torch.full((2, 2), 0.5)
    )
    showing.draw(tmp_path / "equal.png", "equal scores", [0.7], reading, reading)
    assert (tmp_path / "equal.png").read_bytes().startswith(PNG_MAGIC)


def test_a_number_in_the_wrong_place_is_red() -> None:
    axes = Figure().subplots()
    numbers = torch.tensor([5, 3, 9, 3])
    scores = torch.tensor([0.1, 0.2, 0.4, 0.05])
    showing.draw_scored(axes, showing.Reading(torch.rand(4, 1, 8, 32), numbers, scores, torch.eye(4)))
    texts = [(text.get_text(), text.get_color()) for text in axes.texts]
    assert texts[::2] == [("0003", "black"), ("0005", showing.RED), ("0003", showing.RED), ("0009", "black")]
    assert [text for text, _ in texts[1::2]] == ["0.050", "0.100", "0.200", "0.400"]


def test_metrics_count_at_least_the_numbers_asked_for() -> None:
    class OneScore(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            asked.append(len(images))
            return torch.zeros(len(images))

    samples = four_digits.load()[-1]
    for count, n, drawn in ((200, 8, 1000), (1001, 8, 2000), (5, 1024, 2000)):
        asked: list[int] = []
        assert set(digits.evaluate(OneScore(), samples, n, count, seed=0)) == {"em", "ew", "em5"}
        assert sum(asked) == drawn


def test_the_parts_have_their_shares_of_each_class_and_nothing_twice() -> None:
    parts = four_digits.load()
    assert [len(part.labels) for part in parts] == [1258, 180, 359]
    whole = torch.cat([part.images for part in parts])
    assert len(whole.unique(dim=0)) == len(whole)
    for part, share in zip(parts, (0.7, 0.1, 0.2), strict=True):
        counts = part.labels.bincount(minlength=10)
        assert (counts / torch.cat([each.labels for each in parts]).bincount() - share).abs().max() < 0.01


def test_numbers_are_joined_from_their_digits() -> None:
    images = torch.arange(10, dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 2, 3) * 25
    drawn, numbers = four_digits.FourDigits(images, torch.arange(10)).draw(50, torch.Generator())
    assert drawn.shape == (50, 1, 2, 12)
    shown = (drawn[:, 0, 0, ::3] * 255 / 25).round().long()
    assert [int("".join(map(str, digits))) for digits in shown.tolist()] == numbers.tolist()


def test_metrics_are_shares_of_right_ranks() -> None:
    numbers = torch.tensor([3, 1, 2, 5, 5, 4, 9, 9, 9, 9])
    scores = torch.tensor([1.0, 3, 2, 5, 5, 0, 0, 0, 0, 0])
    assert four_digits.metrics(scores, numbers, 2) == {"em": 4 / 5, "ew": 8 / 10, "em5": 1 / 2}
    assert four_digits.metrics(numbers.float(), numbers, 5) == {"em": 1, "ew": 1, "em5": 1}
