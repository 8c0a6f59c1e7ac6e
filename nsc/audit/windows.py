"""Checks of built filters: a package's kernel is run on windows of zeros and ones, and on whole images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from nsc.contract.windows import Folded, Mode, Window
from nsc.runtime.exact.windows import FilterKernel, Images

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
}
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
    for mode in _PADDING:
        for columns in _COLUMNS:
            shape = (2, window.folded.planes + 1, 11, columns, channels)
            images = random.integers(lowest, 50, shape).astype(dtype)
            wanted = [_sorted_windows(each, window, mode) for each in np.moveaxis(images, -1, 0)]
            if (_filtered(kernel, window, images, mode) == np.stack(wanted, axis=-1)).all():
                count += len(images)
            else:
                wrong = wrong or f"images of {columns} columns in mode {mode.name.lower()} come out wrong"
    part = "images" if channels == 1 else f"images of {channels} channels"
    return Check(part, dtype, count, "images, in every mode,", None, wrong)


def _sorted_windows(images: npt.NDArray[Any], window: Window, mode: Mode) -> npt.NDArray[Any]:
    """Return the results that define a filter: the value of a rank of each pixel's window."""
    sizes = window.folded.shape
    outside = {"constant_values": _OUTSIDE} if mode is Mode.CONSTANT else {}
    around = [(0, 0), *((size // 2, size - 1 - size // 2) for size in sizes)]
    padded = np.pad(images, around, _PADDING[mode], **outside)  # type: ignore[call-overload]
    windows = np.lib.stride_tricks.sliding_window_view(padded, sizes, axis=(1, 2, 3))
    values = windows.reshape(*images.shape, -1)[..., [*window.places] or slice(None)]
    return np.sort(values, axis=-1)[..., window.rank]


def _filtered(kernel: FilterKernel, window: Window, images: npt.NDArray[Any], mode: Mode) -> npt.NDArray[Any]:
    """Return the filtered images (count, planes, rows, columns, channels)."""
    x, values = np.ascontiguousarray(images), np.empty_like(images, order="C")
    planes, rows, columns = window.folded.shape
    # Channels lie behind; behind a column the columns of its image do too.
    behind = 2 if columns == 1 else 1
    folded = Folded((planes, rows, columns), (planes // 2, rows // 2, columns // 2), behind)
    lying, outside = Images.of(x.shape, folded), np.array(_OUTSIDE, x.dtype)
    call = kernel.function(x.dtype.name, lying.channels).call
    call(x.ctypes.data, lying, values.ctypes.data, mode, outside.ctypes.data)
    return values
