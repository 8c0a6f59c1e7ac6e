"""Filters: the value of a rank of the window around each pixel, exact or relaxed, for torch users."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from nsc.compiler.driver import compile_network
from nsc.compiler.formats import parse_network
from nsc.compiler.network import Network
from nsc.compiler.request import Request
from nsc.compiler.selection import ranks
from nsc.contract.manifest import MANIFEST, NETWORK, FilterManifest, digest
from nsc.contract.windows import (
    NanRule,
    Tables,
    Window,
    check_mode,
    check_nan,
    least_of,
    origins_of,
    outside_of,
    place_of,
)
from nsc.errors import OperandError, OperandTypeError, PackageError, WindowError
from nsc.join.budget import budget_of
from nsc.join.on_demand import compiled_filter
from nsc.operators.exact import DTYPE_NAMES
from nsc.operators.filtering import Windows, filter_images, keep, spread, windows_of
from nsc.operators.operands import Steepness, check_dense, check_device
from nsc.operators.operator import Packaged, on_demand
from nsc.operators.samples import by_samples
from nsc.operators.selector import Selector
from nsc.operators.sharding import Axes
from nsc.runtime.exact.windows import FilterKernel
from nsc.version import VERSION


def _axes(filter_: Filter, *_: Any) -> int:
    """Return how many axes of x an image has."""
    return len(filter_.window.sizes)


class Filter(Packaged):
    """A rank filter of images: each pixel becomes the value of one rank of the window around it.

    Images are (…, rows, columns), or (…, planes, rows, columns) for a window that has planes, with any
    leading axes. Types are the floats of 16, 32 and 64 bits, the integers and bool; results keep dtype and
    device. NaN is larger than every number; -0 comes before 0. On a GPU the windows are written out, and an
    exact kernel selects from them. Without a compiler torch sorts them.

    The gradient of a result goes to the pixel that has its value. If several pixels have it, the gradient
    goes to the first of the window; where pixels may be missing, to any one of them. A mean of two pixels
    gives each half.

    Attributes:
        window: its size and rank.
        name: the filter's name, for messages.
        network: the network of one window. Wire w holds value w, by planes, then rows, then columns.
        output: the wire that carries the result.

    >>> compile_filter("3x5")
    Filter(median_3x5: the median of 3x5 pixels)
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """Take a generated package's files.

        Raises:
            PackageError: files that no `nsc filter` of this version wrote.
        """
        manifest = FilterManifest.of_files(files)
        super().__init__(f"{manifest.name}-{digest(files[MANIFEST])[:16]}", files)
        kernel = FilterKernel.of_package(manifest, files)
        self.name = manifest.name
        self.window = Window.of_key(manifest.window)
        self.network = parse_network(files[NETWORK])
        if self.network.digest != manifest.network:
            raise PackageError(f"{self.name}: {NETWORK} is another network than the manifest says")
        (self.output,) = manifest.outputs
        self._key = keep(self.window, kernel)

    def __repr__(self) -> str:
        return f"Filter({self.name}: {self.window.words})"

    @by_samples(Axes.OF_X, inner=_axes)
    def __call__(
        self,
        x: Tensor,
        mode: str = "reflect",
        cval: float = 0.0,
        origin: int | Sequence[int] = 0,
        *,
        nan: NanRule = "largest",
        mask: Tensor | None = None,
        min_count: int | None = None,
    ) -> Tensor:
        """Return the filtered images.

        Images in channels_last are filtered in this layout, and the results have it too.

        Args:
            x: images.
            mode: which values stand outside of an image, as in scipy.ndimage:
                reflect (d c b a | a b c d | d c b a), nearest (a a a | a b c d | d d d),
                mirror (d c b | a b c d | c b a), wrap, or constant. With shrink there are none: windows are
                cut at the border.
            cval: the value outside, for the mode constant. Also the result for integers whose window has
                fewer numbers than `min_count`.
            origin: how many pixels earlier windows begin, one number for all axes or one for each: with
                (size - 1) // 2 a window ends at its pixel, with -(size // 2) it begins there.
            nan, mask, min_count: which pixels are missing, as in `nsc.numpy.median_filter`. The median of an
                even number of floats is then their mean. A rank below the middle counts from the smallest
                number, one above it from the largest.

        Raises:
            OperandTypeError: x is no tensor, or of a dtype that is not served; a mask that is not of bool.
            OperandError: too few axes; no such mode or rule; a cval that the dtype does not have; a mask of
                another shape; a min_count that no window has.
            WindowError: an origin with which a pixel is not in its window.
        """
        windows = self._checked(x, mode, cval, origin)
        check_nan(self.name, nan)
        if mask is not None:
            self._check_mask(x, mask)
        is_float, values = x.is_floating_point(), self.window.values
        skips_nan = is_float and nan in ("ignore", "keep")
        may_miss = skips_nan or mask is not None or mode == "shrink"
        least = least_of(self.name, min_count, values, may_miss)
        if may_miss:
            place = place_of(self.window.rank, values, is_float)
            tables = Tables.of(place, values, least)
            windows = replace(windows, tables=tables, mask=mask, skips_nan=skips_nan)
        results = filter_images(x, windows)
        if nan == "propagate" and is_float:
            is_nan = x.isnan() if mask is None else x.isnan() & ~mask
            return results.masked_fill(spread(is_nan, windows), math.nan)
        if nan == "keep":
            is_kept = x.isnan() if mask is None else x.isnan() | mask
            return torch.where(is_kept, x, results)
        return results

    def _check_mask(self, x: Tensor, mask: object) -> None:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            found = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
            raise OperandTypeError(
                f"{self.name}: mask must be a tensor of bool, True for missing pixels, got {found}"
            )
        if mask.shape != x.shape:
            raise OperandError(
                f"{self.name}: mask must have the shape of x, {tuple(x.shape)}, got {tuple(mask.shape)}"
            )
        check_device(self.name, x, "mask", mask)

    @by_samples(Axes.OF_X, inner=_axes)
    def relaxed(
        self,
        x: Tensor,
        steepness: Steepness = None,
        mode: str = "reflect",
        cval: float = 0.0,
        origin: int | Sequence[int] = 0,
    ) -> Tensor:
        """Return the images of the relaxed network.

        Each result is a relaxed median, or another rank, of its window. It is differentiable in every pixel
        of the window and in steepness; None means 2 × the depth of the network. The windows of all pixels are
        written out, in the memory of x times the values of a window.

        Raises:
            OperandTypeError, OperandError, WindowError: as in a call, or a dtype that is no float.

        >>> image = torch.rand(8, 8, requires_grad=True)
        >>> compile_filter(3).relaxed(image).sum().backward()
        >>> bool(image.grad.abs().min() > 0)
        True
        """
        windows = self._checked(x, mode, cval, origin)
        if mode == "shrink":
            raise OperandError(f"{self.name}.relaxed: a relaxed window lacks no value: choose another mode")
        if not x.is_floating_point():
            raise OperandTypeError(f"{self.name}.relaxed: x must be of a float dtype, got {x.dtype}")
        return self.selector(x.dtype).select(windows_of(x, windows), steepness).squeeze(-1)

    def selector(self, dtype: torch.dtype = torch.float32) -> Selector:
        """Return the operator on one window's values, (…, values). `relaxed` applies it to all windows.

        >>> compile_filter(3).selector().n
        9
        """
        real_ = "float64" if dtype == torch.float64 else "float32"
        return _selector(self.network, self.window.rank, self.output, real_, f"{self.name}_soft")

    def _checked(self, x: Tensor, mode: str, cval: float, origin: object) -> Windows:
        check_dense(self.name, "x", x)
        sizes = self.window.sizes
        axes = len(sizes)
        if x.dim() < axes:
            raise OperandError(
                f"{self.name}: x must have {axes} axes or more, rows and columns last, got shape "
                f"{tuple(x.shape)}"
            )
        if x.dtype not in DTYPE_NAMES:
            raise OperandTypeError(
                f"{self.name}: dtype {x.dtype} is not served: {', '.join(DTYPE_NAMES.values())} are"
            )
        check_mode(self.name, mode)
        cval = outside_of(self.name, DTYPE_NAMES[x.dtype], cval)
        return Windows(self._key, self.window, origins_of(sizes, origin), mode, cval)


def compile_filter(size: Any = None, rank: Any = None, *, footprint: Any = None) -> Filter:
    """Prove a rank filter of images and return it; its kernels are built on first use and cached on disk.

    Args:
        size: 3 for 3 × 3 pixels; two or three numbers, rows and columns or planes, rows and columns; or text
            such as "3x5"; at most 225 pixels.
        rank: which value of a window is selected, 0 the smallest, -1 the largest; None: the median of an odd
            number of values.
        footprint: in place of a size, an array or nested lists of two or three axes, whose true values are
            the window's places.

    Raises:
        WindowError: no such window, or no rank for an even number of values.
        UnprovedError: no method settled its network.

    Cost: a proof and a plan, then a build for each type of pixels at its first use. All are kept on disk.

    >>> compile_filter(3)(torch.tensor([[1, 9, 3], [4, 5, 6], [7, 8, 2]]))[1, 1]
    tensor(5)
    """
    return Filter(compiled_filter(_window_of(size, rank, footprint)).package.files)


def _window_of(size: Any, rank: Any, footprint: Any) -> Window:
    if (size is None) == (footprint is None):
        found = "neither" if size is None else "both"
        raise WindowError(f"give a window by size or by footprint, got {found}")
    if footprint is None:
        return Window.of(size, rank)
    try:
        places = torch.as_tensor(footprint).bool()
    except (TypeError, ValueError, RuntimeError) as error:
        raise WindowError(f"a footprint must be an array of true and false values: {error}") from None
    if not 2 <= places.dim() <= 3 or not places.any():
        raise WindowError(
            "a footprint must have rows and columns, or planes too, and one place or more, got "
            f"{int(places.sum())} places of shape {tuple(places.shape)}"
        )
    planes, rows, columns = (1,) * (3 - places.dim()) + tuple(places.shape)
    listed = tuple(places.flatten().nonzero().flatten().tolist())
    return Window(planes, rows, columns, (0,), listed).with_rank(rank)


@on_demand
@functools.lru_cache(maxsize=64)
def _selector(network: Network, rank: int, output: int, real: str, name: str) -> Selector:
    """Return the operator of one window's values for an arithmetic type."""
    request = Request(
        network, select=ranks(rank), wires=(output,), dtypes=(real,), name=name, version=VERSION
    )
    return Selector(compile_network(request, budget_of(keeps=True)).package.files)
