"""The digits example, run as its user runs it."""

from __future__ import annotations

import gzip
import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from examples import digits, showing
from experiments.data import Part, load
from experiments.samples import FourDigits

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "examples.digits")
SMALL = ("--net", "odd_even", "--n", "8", "--steps", "3", "--test-numbers", "200")
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of the runs: one cache for all, and nsc from this tree."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "NSC_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONIOENCODING": "utf-8",
        "OMP_NUM_THREADS": "1",
    }


def run(folder: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def write_idx(file: Path, array: np.ndarray) -> None:
    header = struct.pack(f">{1 + array.ndim}I", 0x0800 | array.ndim, *array.shape)
    file.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def write_mnist(root: Path) -> None:
    rng = np.random.default_rng(7)
    root.mkdir(parents=True)
    for part, count in (("train", 400), ("t10k", 20)):
        write_idx(root / f"{part}-images-idx3-ubyte.gz", rng.integers(0, 256, (count, 28, 28)))
        write_idx(root / f"{part}-labels-idx1-ubyte.gz", np.arange(count) % 10)


def test_run_prints_the_table_and_draws_the_picture(tmp_path: Path, environment: dict[str, str]) -> None:
    result = run(tmp_path, environment, *SMALL)
    assert result.returncode == 0, result.stderr
    for row in ("EM ", "EW ", "EM5"):
        assert len(re.findall(rf"{row}.*\d\.\d\d%.*\d\.\d\d%", result.stdout)) == 1, result.stdout
    assert "odd_even_8" in result.stdout
    assert "1,438 digits to train on, 359 to test on" in result.stdout
    assert "3/3" in result.stdout
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", result.stdout + result.stderr)
    assert (tmp_path / "examples/output/digits.png").read_bytes().startswith(PNG_MAGIC)


def test_same_seed_same_run(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NSC_CACHE_DIR", environment["NSC_CACHE_DIR"])

    def table(seed: str) -> str:
        result = CliRunner().invoke(digits.main, [*SMALL, "--seed", seed])
        assert result.exit_code == 0, result.output
        return result.output[result.output.index("Held-out") :]

    assert table("3") == table("3")
    assert table("3") != table("4")


def test_mnist_run(tmp_path: Path, environment: dict[str, str]) -> None:
    write_mnist(tmp_path / "data")
    options = ("--data", "mnist", "--root", "data", "--out", "new/folder/picture.png")
    result = run(tmp_path, environment, *SMALL, *options)
    assert result.returncode == 0, result.stderr
    assert "400 digits to train on, 20 to test on" in result.stdout
    assert (tmp_path / "new/folder/picture.png").read_bytes().startswith(PNG_MAGIC)


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
        (["--data", "mnist"], "root"),
        (["--root", "somewhere"], "somewhere"),
        (["--data", "mnist", "--root", "somewhere"], "somewhere"),
        (["--model", "svhn"], "16×16"),
        (["--out", "."], "--out"),
    ],
)
def test_bad_options(
    tmp_path: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NSC_CACHE_DIR", environment["NSC_CACHE_DIR"])
    result = CliRunner().invoke(digits.main, [*SMALL, *options])
    assert result.exit_code in (1, 2)
    # Click's own exit; any other exception would be a traceback.
    assert isinstance(result.exception, SystemExit)
    (line,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert message in line


def test_error_of_a_real_run_is_one_message(tmp_path: Path, environment: dict[str, str]) -> None:
    result = run(tmp_path, environment, "--data", "mnist", "--root", "nowhere")
    assert result.returncode == 2
    assert re.fullmatch(r"Error: nowhere: no such folder.*\n", result.stderr)


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child process")
def test_interrupt_ends_with_a_message(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-u", *PROGRAM[1:], *SMALL, "--steps", "1000000"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # Background jobs of a shell ignore SIGINT, and their children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        while "to test on" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped before the end" in output
    assert "Traceback" not in errors


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

    samples = FourDigits(load("digits").test)
    for count, n, drawn in ((200, 8, 1000), (1001, 8, 2000), (5, 1024, 2000)):
        asked: list[int] = []
        assert set(digits.evaluate(OneScore(), samples, n, count, seed=0)) == {"em", "ew", "em5"}
        assert sum(asked) == drawn


def test_training_joins_parts() -> None:
    parts = [Part(torch.full((m, 1, 2, 2), m, dtype=torch.uint8), torch.full((m,), m)) for m in (2, 3)]
    both = digits.joined(parts)
    assert both.labels.tolist() == [2, 2, 3, 3, 3]
    assert both.images[:, 0, 1, 1].tolist() == [2, 2, 3, 3, 3]
