"""SVHN from small folders that the tests write as MATLAB does, sound and damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from messages import check_words

from experiments.data import load
from experiments.data.svhn import enlarge
from experiments.errors import DataError

pytestmark = pytest.mark.slow("data sets are read")

h5py = pytest.importorskip("h5py")
Image = pytest.importorskip("PIL.Image")

Digit = tuple[float, float, float, float, float]
"""label, left, top, width, height"""
FIELDS = ("label", "left", "top", "width", "height")
GRAY, INK = (60, 60, 60), (200, 30, 90)


def write_struct(file: Path, houses: dict[str, Sequence[Digit]]) -> None:
    """Write a digitStruct.mat: HDF5 after MATLAB's header of 512 bytes, one reference an image."""
    with h5py.File(file, "w", userblock_size=512) as store:
        refs = store.create_group("#refs#")
        count = 0

        def refer(value: object) -> object:
            nonlocal count
            count += 1
            return refs.create_dataset(str(count), data=value).ref

        struct = store.create_group("digitStruct")
        rows = []
        for name, digits in houses.items():
            box = refs.create_group(f"box {name}")
            for i, field in enumerate(FIELDS):
                if len(digits) == 1:
                    box[field] = np.array([[digits[0][i]]], dtype=float)
                else:
                    values = [refer(np.array([[digit[i]]], dtype=float)) for digit in digits]
                    box.create_dataset(field, data=np.array(values, dtype=h5py.ref_dtype)[:, None])
            rows.append((refer(np.array([[ord(c)] for c in name], dtype=np.uint16)), box.ref))
        for i, field in enumerate(("name", "bbox")):
            column = np.empty((len(rows), 1), dtype=h5py.ref_dtype)
            column[:, 0] = [row[i] for row in rows]
            struct.create_dataset(field, data=column)
    with file.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .".ljust(512))


def digits_of(number: str, left: float = 20, top: float = 10) -> list[Digit]:
    """Return the boxes of a number's digits, 10×20 pixels each, side by side."""
    return [(int(c) or 10, left + 10 * i, top, 10, 20) for i, c in enumerate(number)]


def write_image(file: Path, width: int = 90, height: int = 40) -> None:
    """Write a gray image with ink from column 20 to 40, row 10 to 30."""
    pixels = np.full((height, width, 3), GRAY, np.uint8)
    pixels[10:30, 20:40] = INK
    Image.fromarray(pixels).save(file)


def write_folder(folder: Path, numbers: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    names = [f"{i}.png" for i in range(1, len(numbers) + 1)]
    for name in names:
        write_image(folder / name)
    write_struct(folder / "digitStruct.mat", dict(zip(names, map(digits_of, numbers), strict=True)))


TRAIN = [*map(str, range(1, 21)), "100", "210", "999", "10203"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of 24 numbers to train on and 3 to test on, with a cache of its own."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    write_folder(tmp_path / "svhn" / "train", TRAIN)
    write_folder(tmp_path / "svhn" / "test", ["5", "40", "1907"])
    return tmp_path / "svhn"


def test_numbers_and_parts(root):
    data = load("svhn", root)
    assert data.test.labels.tolist() == [5, 40, 1907]
    learned = [*data.training.labels.tolist(), *data.validation.labels.tolist()]
    assert sorted(learned) == sorted(map(int, TRAIN))
    # One number of each length validates; a length that is there once trains.
    assert sorted(len(str(number)) for number in data.validation.labels.tolist()) == [1, 2, 3]
    for part in (data.training, data.validation, data.test):
        assert part.images.shape[1:] == (3, 64, 64)
    assert load("svhn", root, side=32).test.images.shape == (3, 3, 32, 32)


def test_the_box_grows_by_30_percent(root):
    """Two digits cover the ink: of 64 columns and rows, the ink takes the inner 64 / 1.3."""
    number = load("svhn", root).test.images[1].numpy()  # 40
    margin = round(64 * (1 - 1 / 1.3) / 2)
    inner = number[:, margin + 2 : -margin - 2, margin + 2 : -margin - 2]
    assert np.array_equal(inner, np.broadcast_to(np.array(INK, np.uint8)[:, None, None], inner.shape))
    border = np.ones((64, 64), bool)
    border[margin - 1 : 1 - margin, margin - 1 : 1 - margin] = False
    assert np.array_equal(np.unique(number[:, border], axis=1)[:, 0], GRAY)


def test_a_box_is_cut_to_the_image():
    assert enlarge((0.0, 0.0, 100.0, 20.0), 100, 20) == (0, 0, 100, 20)
    assert enlarge((-5.0, 5.0, 15.0, 15.0), 100, 20) == (0, 3.5, 18, 16.5)
    for outside in ((100, 0, 120, 20), (-20, 0, 0, 20), (0, 20, 10, 30), (0, -9, 10, 0)):
        assert enlarge(outside, 100, 20) is None


def test_with_the_folder_extra(root):
    write_folder(root / "extra", ["7", "8", "9", "30", "31"])
    numbers = load("svhn", root).training.labels.tolist()
    assert len(numbers) == 21, "extra is read on request alone"
    data = load("svhn-extra", root)
    assert (len(data.training.labels), len(data.validation.labels)) == (21 + 3, 3 + 2)
    learned = [*data.training.labels.tolist(), *data.validation.labels.tolist()]
    assert sorted(learned) == sorted([*map(int, TRAIN), 7, 8, 9, 30, 31])


def test_images_are_decoded_once(root, monkeypatch):
    first = load("svhn", root)
    with monkeypatch.context() as patch:
        patch.setattr(Image, "open", lambda *_: pytest.fail("decoded again"))
        again = load("svhn", root)
    assert np.array_equal(again.training.images, first.training.images)
    write_struct(root / "test" / "digitStruct.mat", {"1.png": digits_of("6"), "2.png": digits_of("41")})
    assert load("svhn", root).test.labels.tolist() == [6, 41], "changed files are decoded again"


def check_refused(root: Path, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load("svhn", root)
    assert "\n" not in caught.value.message
    check_words(caught.value.message)


def test_files_that_are_cut_short_or_missing(root):
    file = root / "test" / "2.png"
    file.write_bytes(file.read_bytes()[:60])
    check_refused(root, f"^{file}: cannot be read")
    file = root / "test" / "digitStruct.mat"
    file.write_bytes(file.read_bytes()[:2000])
    check_refused(root, f"^{file}: no digitStruct.mat of SVHN's format 1")
    (root / "train" / "3.png").unlink()
    check_refused(root, r"train/3.png: cannot be read: .*No such file")


STRUCT_FAULTS = {
    "label 11": ([(3, 1, 1, 5, 5), (11, 9, 1, 5, 5)], "1.png has label 11, labels are 1 to 10"),
    "a label between": ([(1.5, 1, 1, 5, 5)], "1.png has label 1.5"),
    "a box nowhere": ([(1, np.inf, 1, 5, 5)], "1.png has a box without an area"),
    "too many digits": (digits_of("1" * 19), "1.png needs 1 to 18 digits"),
}


@pytest.mark.parametrize("fault", STRUCT_FAULTS)
def test_annotations_that_make_no_sense(fault, root):
    digits, message = STRUCT_FAULTS[fault]
    write_struct(root / "test" / "digitStruct.mat", {"1.png": digits})
    check_refused(root, f"no digitStruct.mat of SVHN's format 1: {message}")


def test_a_box_outside_of_the_image(root):
    write_struct(root / "test" / "digitStruct.mat", {"1.png": digits_of("12", left=90)})
    check_refused(
        root, "test/1.png: the box round the digits, 90, 10, 110, 30, is outside of the 90×40 image"
    )
