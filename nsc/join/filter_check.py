"""Checks of built filters: a package's kernel is run on windows of zeros and ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.compiler.formats import parse_network
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Emitted, Property, check_emitted, parse
from nsc.compiler.windows import MOST_ROWS
from nsc.contract.folding import Folded, fold
from nsc.contract.manifest import MANIFEST, NETWORK
from nsc.contract.windows import FilterManifest, Mode, read_filter_files
from nsc.runtime.window import Images, WindowKernel

# The type of pixels that is checked; the kernels of others come from the same text.
CHECKED = "uint8"


def read_filter(folder: Path) -> tuple[WindowKernel, FilterManifest, Network, Property]:
    """Return a package's kernel, its manifest, the network of a window, and what this must do.

    Raises:
        PackageError: `nsc compile --window` did not write the folder, or its files were changed since.
    """
    files = read_filter_files(folder)
    manifest = FilterManifest.from_text(files[MANIFEST])
    kernel = WindowKernel.from_files(manifest, files)
    network = parse_network(files[NETWORK])
    return kernel, manifest, network, parse(f"rank-{manifest.rank}", network.n, [manifest.output])


def check_filter(
    kernel: WindowKernel, manifest: FilterManifest, network: Network, property_: Property, budget: Budget
) -> Emitted:
    """Run the kernel of CHECKED on windows that show whether it does the same as the network.

    The windows lie side by side, so that each lane has some, and again further down, once for each row of
    results that a step may make.

    Raises:
        ToolchainError, BuildError: it cannot be built.
    """
    folded = fold(fold(manifest.window).window)
    planes, rows, columns = folded.window

    def run(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], None]:
        windows = values.astype(CHECKED).reshape(len(values), planes, rows, columns)
        image = np.moveaxis(windows, 0, 2).reshape(planes, rows, len(values) * columns)
        results = [
            _filtered(kernel, folded, np.concatenate([*[image[:, :1]] * extra, image], axis=1))[
                planes // 2, rows // 2 + extra, columns // 2 :: columns
            ]
            for extra in range(MOST_ROWS)
        ]
        # Results that differ are wrong, whatever they are.
        same = (np.array(results) == results[0]).all(axis=0)
        return np.where(same, results[0], 2)[:, None], None

    return check_emitted(network, property_, [manifest.rank], run, budget)


def _filtered(kernel: WindowKernel, folded: Folded, image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    image = np.ascontiguousarray(image)
    values = np.empty_like(image)
    images = Images.without_gaps(image.shape, folded)
    kernel.call(CHECKED, image.ctypes.data, images, folded.before, values.ctypes.data, Mode.NEAREST, None)
    return values
