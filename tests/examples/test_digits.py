"""The digits example, run as its user runs it, and its parts on cases worked out by hand."""

from __future__ import annotations

import gzip
import importlib.util
import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import nsc
from nsc.cli import main as nsc_main

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

SCRIPT = Path(__file__).parents[2] / "examples" / "digits.py"
SMALL = ("--net", "odd_even", "--n", "8", "--steps", "3", "--test-numbers", "200")
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_example", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module while they are defined.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of the runs: one cache for all, and nsc from this tree."""
    paths = [str(SCRIPT.parents[1]), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "NSC_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONIOENCODING": "utf-8",
        "OMP_NUM_THREADS": "1",
    }


def run(folder: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def write_idx(file: Path, array: np.ndarray, magic: int | None = None) -> None:
    magic = 0x0800 | array.ndim if magic is None else magic
    data = struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.astype(np.uint8).tobytes()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)


def write_mnist(root: Path, suffix: str) -> None:
    rng = np.random.default_rng(7)
    root.mkdir(parents=True)
    for part, count in (("train", 40), ("t10k", 20)):
        write_idx(root / f"{part}-images-idx3-ubyte{suffix}", rng.integers(0, 256, (count, 28, 28)))
        write_idx(root / f"{part}-labels-idx1-ubyte{suffix}", np.arange(count) % 10)


def test_run_prints_the_table_and_draws_the_picture(tmp_path: Path, environment: dict[str, str]) -> None:
    result = run(tmp_path, environment, *SMALL)
    assert result.returncode == 0, result.stderr
    for row in ("EM ", "EW ", "EM5"):
        assert len(re.findall(rf"{row}.*\d\.\d\d%.*\d\.\d\d%", result.stdout)) == 1, result.stdout
    assert "compiled here" in result.stdout
    assert "3/3" in result.stdout
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", result.stdout + result.stderr)
    assert (tmp_path / "examples/output/digits.png").read_bytes().startswith(PNG_MAGIC)


def test_same_seed_same_run(
    digits: ModuleType, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NSC_CACHE_DIR", environment["NSC_CACHE_DIR"])

    def table(seed: str) -> str:
        result = CliRunner().invoke(digits.main, [*SMALL, "--seed", seed])
        assert result.exit_code == 0, result.output
        return result.output[result.output.index("Held-out") :]

    assert table("3") == table("3")
    assert table("3") != table("4")


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("place", [".", "MNIST/raw"])
def test_mnist_files(digits: ModuleType, tmp_path: Path, suffix: str, place: str) -> None:
    write_mnist(tmp_path / "data" / place, suffix)
    training, test = digits.load_mnist(tmp_path / "data")
    assert training.images.shape == (40, 28, 28)
    assert test.images.shape == (20, 28, 28)
    assert training.labels.tolist() == [*range(10)] * 4
    assert 0.9 < training.images.max() <= 1


def test_mnist_run(tmp_path: Path, environment: dict[str, str]) -> None:
    write_mnist(tmp_path / "data", ".gz")
    options = ("--data", "mnist", "--root", "data", "--out", "new/folder/picture.png")
    result = run(tmp_path, environment, *SMALL, *options)
    assert result.returncode == 0, result.stderr
    assert "40 digits to train on, 20 to test on" in result.stdout
    assert (tmp_path / "new/folder/picture.png").read_bytes().startswith(PNG_MAGIC)


def test_malformed_idx_files(digits: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "file"
    good = np.zeros((2, 3, 3))

    def check_refused(message: str, name: str = "file") -> None:
        with pytest.raises(digits.DataError, match=message):
            digits.read_idx(tmp_path / name, 3)

    check_refused("cannot be read")
    for content in (b"", b"\0\0", b"no IDX file at all, but text"):
        file.write_bytes(content)
        check_refused("no IDX file of 3 axes")
    write_idx(file, good[0])
    check_refused("no IDX file of 3 axes")
    write_idx(file, good, magic=0x0D03)
    check_refused("begins with 00000d03")
    write_idx(file, good)
    file.write_bytes(file.read_bytes()[:-1])
    check_refused("18 bytes of data, found 17")
    file.write_bytes(file.read_bytes() + b"12")
    check_refused("18 bytes of data, found 19")
    for content in (b"no gzip", gzip.compress(b"cut" * 99)[:-9]):
        (tmp_path / "file.gz").write_bytes(content)
        check_refused("cannot be read", "file.gz")


def test_mnist_files_that_do_not_fit_together(digits: ModuleType, tmp_path: Path) -> None:
    def check_refused(message: str) -> None:
        with pytest.raises(digits.DataError, match=message):
            digits.load_mnist(tmp_path / "data")

    check_refused("no train-images-idx3-ubyte")
    write_mnist(tmp_path / "data", "")
    labels = tmp_path / "data/t10k-labels-idx1-ubyte"
    write_idx(labels, np.arange(19) % 10)
    check_refused("20 images and 19 labels")
    write_idx(labels, np.full(20, 10))
    check_refused("label 10 .* no digit")
    write_idx(tmp_path / "data/train-images-idx3-ubyte", np.zeros((40, 8, 8)))
    check_refused("28×28 expected, found 8×8")


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
        (["--data", "mnist"], "--root"),
        (["--root", "somewhere"], "--data"),
        (["--data", "mnist", "--root", "somewhere"], "somewhere"),
        (["--out", "."], "--out"),
    ],
)
def test_bad_options(
    digits: ModuleType,
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
    assert re.fullmatch(r"Error: nowhere: no train-images.*\n", result.stderr)


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child process")
def test_interrupt_ends_with_a_message(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-u", str(SCRIPT), *SMALL, "--steps", "1000000"]
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


def test_metrics_by_hand(digits: ModuleType) -> None:
    numbers = torch.tensor([10, 20, 30, 40, 50, 1, 2, 3, 4, 5])
    perfect = digits.measure(numbers.float(), numbers, n=10)
    assert perfect == digits.Metrics(em=1, ew=1, em5=1)
    swapped = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 2.0, 1.0, 3.0, 4.0, 5.0])
    assert digits.measure(swapped, numbers, n=5) == digits.Metrics(em=0.5, ew=0.8, em5=0.5)
    # In samples of two, four of five keep their order; the last number of a ragged cut is left out.
    assert digits.measure(swapped[1:], numbers[1:], n=2).ew == 0.75
    # The order is right within fives, and wrong across them.
    assert digits.measure(swapped, numbers, n=10).ew == 0


def test_equal_numbers_may_come_in_any_order(digits: ModuleType) -> None:
    numbers = torch.tensor([7, 7, 7, 1, 9])
    for scores in ([2.0, 3.0, 4.0, 1.0, 5.0], [4.0, 2.0, 3.0, 1.0, 5.0]):
        assert digits.measure(torch.tensor(scores), numbers, n=5).em == 1
    assert digits.measure(torch.tensor([2.0, 3.0, 6.0, 1.0, 5.0]), numbers, n=5).ew == pytest.approx(0.6)


def test_numbers_join_four_digits(digits: ModuleType) -> None:
    one_hot = digits.Digits(torch.arange(10.0).reshape(10, 1, 1).expand(10, 2, 3), torch.arange(10))
    images, numbers = one_hot.numbers(50, np.random.default_rng(0))
    assert images.shape == (50, 1, 2, 12)
    values = images[:, 0, 1, ::3].long() @ torch.tensor([1000, 100, 10, 1])
    assert torch.equal(values, numbers)


def test_held_out_digits_are_none_of_the_training_digits(digits: ModuleType) -> None:
    training, test = digits.load_sklearn(np.random.default_rng(0))
    assert (len(training.labels), len(test.labels)) == (1438, 359)
    both = torch.cat([training.images, test.images]).flatten(1)
    assert len(both.unique(dim=0)) == 1797
    assert both.min() >= 0
    assert both.max() == 1


def test_scorer_is_the_papers_network(digits: ModuleType) -> None:
    scores = digits.Scorer(28, 28)(torch.zeros(3, 1, 28, 112))
    assert scores.shape == (3,)
    shapes = [tuple(p.shape) for p in digits.Scorer(8, 8).parameters() if p.dim() > 1]
    assert shapes == [(32, 1, 5, 5), (64, 32, 5, 5), (64, 64 * 2 * 8), (1, 64)]


def test_a_generated_operator_is_used_only_if_it_fits(
    digits: ModuleType, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NSC_CACHE_DIR", environment["NSC_CACHE_DIR"])
    compiled = CliRunner().invoke(nsc_main, ["compile", "--net", "odd_even", "--n", "5"])
    assert compiled.exit_code == 0, compiled.output
    op, origin = digits.find_operator("odd_even", 5, "logistic")
    assert op == nsc.load("generated/odd_even_5")
    assert "generated" in origin
    for request in (("odd_even", 5, "cauchy"), ("odd_even", 6, "logistic")):
        op, origin = digits.find_operator(*request)
        assert (op.n, op.kernel.sigmoid) == request[1:]
        assert "compiled here" in origin
