"""MNIST, Fashion-MNIST and CIFAR, from small files that the tests write, sound and damaged."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from messages import check_words

from experiments.data import Data, load
from experiments.data.idx import VALIDATION, read_idx
from experiments.data.splitting import cut
from experiments.errors import DataError

pytestmark = pytest.mark.slow("data sets are read")


def check_refused(call: Callable[[], object], message: str) -> None:
    """Check that a call fails by one DataError, whose message is one line in good words."""
    with pytest.raises(DataError, match=message) as caught:
        call()
    assert "\n" not in caught.value.message
    check_words(caught.value.message)


def codes_of(data: Data) -> list[list[int]]:
    """Return the first pixel of each image, sorted, of each part: the tests number their images by it."""
    return [sorted(part.images[:, 0, 0, 0].tolist()) for part in (data.training, data.validation, data.test)]


# IDX files


def write_idx(file: Path, array: npt.ArrayLike, magic: int | None = None) -> None:
    array = np.asarray(array, np.uint8)
    magic = 0x0800 | array.ndim if magic is None else magic
    content = struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


def write_mnist(folder: Path, suffix: str = "") -> None:
    """Write 120 training and 20 test images; the digit i % 10 is on image i, whose first pixel is i."""
    for part, start, size in (("train", 0, 120), ("t10k", 120, 20)):
        images = np.zeros((size, 28, 28))
        images[:, 0, 0] = start + np.arange(size)
        write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", np.arange(size) % 10)


@pytest.mark.parametrize(
    ("name", "suffix", "folder"), [("mnist", "", ""), ("fashion", ".gz", "FashionMNIST/raw")]
)
def test_idx_files(name, suffix, folder, tmp_path):
    write_mnist(tmp_path / folder, suffix)
    data = load(name, tmp_path)
    # A twelfth of the training files validates, as 5,000 of 60,000 do.
    assert data.training.labels.bincount().tolist() == [11] * 10
    assert data.validation.labels.bincount().tolist() == [1] * 10
    assert data.test.labels.tolist() == [*range(10)] * 2
    training, validation, test = codes_of(data)
    assert sorted(training + validation) == list(range(120))
    assert test == list(range(120, 140))
    for part in (data.training, data.validation, data.test):
        assert part.images.shape[1:] == (1, 28, 28)
        assert torch.equal(part.images[:, 0, 0, 0] % 10, part.labels)
    assert load(name, tmp_path, side=8).training.images.shape == (110, 1, 8, 8)
    assert codes_of(load(name, tmp_path)) == [training, validation, test]


def test_the_papers_sizes():
    """55,000, 5,000 and 10,000 images, with MNIST's own counts of the ten digits."""
    counts = torch.tensor([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
    training, validation = cut(torch.arange(10).repeat_interleave(counts), VALIDATION, "MNIST")
    assert (len(training), len(validation)) == (55_000, 5_000)


def test_damaged_idx_files(tmp_path):
    file = tmp_path / "file"

    def refused(message: str, name: str = "file") -> None:
        check_refused(lambda: read_idx(tmp_path / name, 3), f"^{tmp_path / name}: {message}")

    refused("cannot be read")
    write_idx(file, np.zeros((3, 3)))
    refused("no IDX file of 3 axes of bytes: it begins with 00000802")
    write_idx(file, np.zeros((2, 3, 3)), magic=0x0D03)
    refused("no IDX file of 3 axes of bytes: it begins with 00000d03")
    write_idx(file, np.zeros((2, 3, 3)))
    whole = file.read_bytes()
    for content, found in ((whole[:-1], 17), (whole + b"12", 20), (whole[:6], 0)):
        file.write_bytes(content)
        refused(f"the header says [0-9]+ bytes of data, found {found}$")
    compressed = gzip.compress(whole)
    for content in (b"no gzip", compressed[:-9], compressed[:20] + b"\xff" + compressed[21:]):
        (tmp_path / "file.gz").write_bytes(content)
        with pytest.raises(DataError):
            read_idx(tmp_path / "file.gz", 3)


def test_idx_files_that_do_not_fit_together(tmp_path):
    def refused(message: str) -> None:
        check_refused(lambda: load("mnist", tmp_path), message)

    refused("no train-images-idx3-ubyte and no train-images-idx3-ubyte.gz there, nor in MNIST/raw under it")
    write_mnist(tmp_path)
    labels = tmp_path / "t10k-labels-idx1-ubyte"
    write_idx(labels, np.arange(19) % 10)
    refused("20 images and 19 labels; need as many")
    write_idx(labels, np.full(20, 10))
    refused("label 10 in the labels' file is no digit")
    labels.unlink()
    refused("no t10k-labels-idx1-ubyte")
    write_idx(tmp_path / "train-images-idx3-ubyte", np.zeros((120, 8, 8)))
    refused("images of 28×28 expected, found 8×8")
    for part, axes in (("images-idx3", (0, 28, 28)), ("labels-idx1", (0,))):
        write_idx(tmp_path / f"train-{part}-ubyte", np.zeros(axes))
    refused("0 images and 0 labels; need as many, at least one")


# CIFAR's binary files

LEARNED10 = [f"data_batch_{i}.bin" for i in range(1, 6)]
CIFAR = {
    "cifar10": ("cifar-10-batches-bin", LEARNED10, "test_batch.bin", 10),
    "cifar100": ("cifar-100-binary", ["train.bin"], "test.bin", 100),
}


def cifar_records(fine: npt.NDArray[np.int64], coarse: bool, start: int) -> bytes:
    """Return the records of images whose red is the class, green is 7, and blue counts from a start."""
    pixels = np.empty((len(fine), 3, 32, 32), np.uint8)
    pixels[:, 0] = fine[:, None, None]
    pixels[:, 1] = 7
    pixels[:, 2] = (start + np.arange(len(fine)))[:, None, None] % 256
    head = [fine // 5, fine] if coarse else [fine]
    columns = [*(column[:, None] for column in head), pixels.reshape(len(fine), -1)]
    return np.concatenate(columns, axis=1).astype(np.uint8).tobytes()


def write_cifar(folder: Path, name: str) -> None:
    """Write each class 20 times for training and once for the test."""
    _, learned, test, classes = CIFAR[name]
    folder.mkdir(parents=True, exist_ok=True)
    repeats = 20 // len(learned)
    for i, file in enumerate(learned):
        fine = np.tile(np.arange(classes), repeats)
        (folder / file).write_bytes(cifar_records(fine, name == "cifar100", i * len(fine)))
    (folder / test).write_bytes(cifar_records(np.arange(classes), name == "cifar100", 0))


@pytest.mark.parametrize("name", list(CIFAR))
def test_cifar(name, tmp_path):
    folder, *_, classes = CIFAR[name]
    write_cifar(tmp_path / folder, name)
    data = load(name, tmp_path)
    assert data.training.labels.bincount().tolist() == [18] * classes
    assert data.validation.labels.bincount().tolist() == [2] * classes
    assert data.test.labels.tolist() == list(range(classes))
    for part in (data.training, data.validation, data.test):
        assert part.images.shape[1:] == (3, 32, 32)
        assert (part.images[:, 0] == part.labels[:, None, None]).all()
        assert (part.images[:, 1] == 7).all()
    # Blue and class together name an image: no image is lost or doubled.
    learned = [
        (p.labels[i].item(), p.images[i, 2, 0, 0].item())
        for p in (data.training, data.validation)
        for i in range(len(p.labels))
    ]
    assert sorted(learned) == sorted((i % classes, i % 256) for i in range(20 * classes))
    assert load(name, tmp_path, side=16).test.images.shape == (classes, 3, 16, 16)


@pytest.mark.parametrize("name", list(CIFAR))
def test_damaged_cifar_files(name, tmp_path):
    folder, learned, test, classes = CIFAR[name]

    def refused(message: str) -> None:
        check_refused(lambda: load(name, tmp_path), message)

    refused(f"no {test} there, nor in {folder} under it")
    write_cifar(tmp_path, name)
    file = tmp_path / learned[-1]
    whole = file.read_bytes()
    record = 3074 if name == "cifar100" else 3073
    for content in (whole[:-1], whole + b"\0", b"", b"text"):
        file.write_bytes(content)
        refused(f"^{file}: {len(content):,} bytes; need a multiple of {record}")
    labels = record - 3072
    file.write_bytes(whole[: labels - 1] + bytes([classes]) + whole[labels:])
    refused(f"^{file}: label {classes} found, the classes are 0 to {classes - 1}")
    file.unlink()
    refused(f"^{file}: cannot be read")
