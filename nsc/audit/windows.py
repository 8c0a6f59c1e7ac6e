"""Checks of built filters: a package's kernel is run on windows of zeros and ones, and on whole images."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.audit.check import Check, Claim
from nsc.compiler.formats import parse_network
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Property, Run, check_emitted, parse
from nsc.compiler.windows.plan import MOST_ROWS
from nsc.contract.manifest import NETWORK, FilterManifest
from nsc.contract.windows import Folded, Mode, PlaceOf, Tables, Window, place_of
from nsc.join.on_demand import filter_kernel
from nsc.runtime.exact.windows import FilterKernel, Images, Missing

# The types of pixels that are checked: uint8 values are compared as they are, float32 values by keys. The
# kernels of other types come from the same text.
CHECKED = ("uint8", "float32")
# Columns of the images that are checked: fewer than the lanes of a register, and more than the lanes of two.
_COLUMNS = (3, 150)
# NumPy's names of the modes.
_PADDING = {
    Mode.REFLECT: "symmetric",
    Mode.NEAREST: "edge",
    Mode.MIRROR: "reflect",
    Mode.CONSTANT: "constant",
    Mode.WRAP: "wrap",
    Mode.SHRINK: "constant",
}
# Shares of the pixels that are missing: windows lack none, few or most.
_MISSING = (0.0, 0.1, 0.8)
# The pixel outside, for the mode constant.
_OUTSIDE = 1


def filter_claim(files: Mapping[str, str]) -> Claim:
    """Return the claim of a package of a filter about the network of its window.

    Raises:
        PackageError: nsc did not write the files, or they were changed since.
    """
    manifest = FilterManifest.of_files(files)
    kernel = FilterKernel.of_package(manifest, files)
    network = parse_network(files[NETWORK])
    window = kernel.source.window
    property_ = parse(f"rank-{window.rank}", network.n, manifest.outputs)
    return network, property_, partial(_check, kernel, window, network, property_)


def _check(
    kernel: FilterKernel, window: Window, network: Network, property_: Property, budget: Budget
) -> Iterator[Check]:
    """Run the kernels of CHECKED; yield the check of each on windows, and on images in every mode."""
    for dtype in CHECKED:
        run = _run_windows(kernel, window, dtype)
        found = check_emitted(network, property_, [window.rank], {"windows": run}, budget)
        yield Check.of("windows", dtype, found["windows"])
        yield _check_images(kernel, window, dtype, channels=1)
        yield _check_missing(window, dtype)
    yield _check_images(kernel, window, CHECKED[0], channels=3)


def _run_windows(kernel: FilterKernel, window: Window, dtype: str) -> Run:
    """Return a function that runs a kernel on windows, to compare it with the network.

    The windows lie side by side, so that each lane has some. They are repeated further down, once for each
    row of results that a step may make.
    """
    planes, rows, columns = window.folded.shape
    places = [*window.places] or slice(None)

    def run(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], None]:
        boxes = np.zeros((len(values), planes * rows * columns), dtype)
        boxes[:, places] = values
        windows = boxes.reshape(len(values), planes, rows, columns)
        image = np.moveaxis(windows, 0, 2).reshape(planes, rows, len(values) * columns)
        results = []
        for extra in range(MOST_ROWS):
            pushed_down = np.concatenate([*[image[:, :1]] * extra, image], axis=1)[None, ..., None]
            all_results = _filtered(kernel, window, pushed_down, Mode.NEAREST)
            results.append(all_results[0, planes // 2, rows // 2 + extra, columns // 2 :: columns, 0])
        # Results of equal windows that differ are wrong.
        same = (np.array(results) == results[0]).all(axis=0)
        return np.where(same, results[0], 2)[:, None], None

    return run


def _check_images(kernel: FilterKernel, window: Window, dtype: str, channels: int) -> Check:
    """Compare the filtered images of random numbers, their borders too, with sorted windows."""
    random, count, wrong = np.random.default_rng(0), 0, None
    lowest = 0 if np.dtype(dtype).kind == "u" else -50
    for mode in {*_PADDING} - {Mode.SHRINK}:
        for columns in _COLUMNS:
            shape = (2, window.folded.planes + 1, 11, columns, channels)
            images = random.integers(lowest, 50, shape).astype(dtype)
            wanted = [
                _sorted_windows(each, window, mode)[..., window.rank] for each in np.moveaxis(images, -1, 0)
            ]
            if (_filtered(kernel, window, images, mode) == np.stack(wanted, axis=-1)).all():
                count += len(images)
            else:
                wrong = wrong or f"images of {columns} columns in mode {mode.name.lower()} come out wrong"
    part = "images" if channels == 1 else f"images of {channels} channels"
    return Check(part, dtype, count, "images, in every mode,", None, wrong)


def _check_missing(window: Window, dtype: str) -> Check:
    """Compare images that lack pixels, and whose windows are cut, with the numbers of each window in order.

    The kernel is the one that a filter of the window uses where pixels may be missing.
    """
    random, wrong = np.random.default_rng(0), None
    place = place_of(window.rank, window.values, dtype == "float32")
    tables = Tables.of(place, window.values, 1)
    kernel = filter_kernel(replace(window, ranks=tables.ranks))
    none = np.array(np.nan if dtype == "float32" else 0, dtype)
    for columns, share in itertools.product(_COLUMNS, _MISSING):
        images = random.integers(0, 50, (2, window.folded.planes + 1, 11, columns, 1)).astype(dtype)
        mask = random.random(images.shape) < share
        missing = Missing.of(tables, mask.ctypes.data, none.ctypes.data, nan_is_missing=True)
        found = _filtered(kernel, window, images, Mode.SHRINK, missing)
        ordered = _sorted_windows(images[..., 0], window, Mode.SHRINK, mask[..., 0])
        wanted = np.apply_along_axis(_result, -1, ordered, place, none).astype(dtype)
        if not np.array_equal(found[..., 0], wanted, equal_nan=dtype == "float32"):
            wrong = f"images of which {share:.0%} of the pixels are missing come out wrong"
    return Check("missing pixels", dtype, 2 * len(_COLUMNS) * len(_MISSING), "images", None, wrong)


def _result(ordered: npt.NDArray[Any], place_of_result: PlaceOf, none: npt.NDArray[Any]) -> Any:
    """Return the result of a window, given in ascending order, NaN for what it lacks."""
    numbers = ordered[ordered == ordered]
    found = place_of_result(len(numbers)) if len(numbers) else None
    return none if found is None else numbers[[found.low, found.high]].mean()


def _sorted_windows(
    images: npt.NDArray[Any], window: Window, mode: Mode, mask: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """Return each pixel's window in ascending order, with NaN for masked pixels and what is cut off."""
    images = images if mask is None else np.where(mask, np.nan, images)
    sizes, outside = window.folded.shape, {Mode.CONSTANT: _OUTSIDE, Mode.SHRINK: np.nan}
    fixed = {"constant_values": outside[mode]} if mode in outside else {}
    around = [(0, 0), *((size // 2, size - 1 - size // 2) for size in sizes)]
    padded = np.pad(images, around, _PADDING[mode], **fixed)  # type: ignore[call-overload]
    windows = np.lib.stride_tricks.sliding_window_view(padded, sizes, axis=(1, 2, 3))
    return np.sort(windows.reshape(*images.shape, -1)[..., [*window.places] or slice(None)], axis=-1)


def _filtered(
    kernel: FilterKernel,
    window: Window,
    images: npt.NDArray[Any],
    mode: Mode,
    missing: Missing | None = None,
) -> npt.NDArray[Any]:
    """Return the filtered images (count, planes, rows, columns, channels)."""
    x, values = np.ascontiguousarray(images), np.empty_like(images, order="C")
    planes, rows, columns = window.folded.shape
    # Channels lie behind; behind a column the columns of its image do too.
    behind = 2 if columns == 1 else 1
    folded = Folded((planes, rows, columns), (planes // 2, rows // 2, columns // 2), behind)
    lying, outside = Images.of(x.shape, folded), np.array(_OUTSIDE, x.dtype)
    call = kernel.function(x.dtype.name, lying.channels, missing is not None).call
    call(x.ctypes.data, lying, values.ctypes.data, mode, outside.ctypes.data, missing)
    return values
