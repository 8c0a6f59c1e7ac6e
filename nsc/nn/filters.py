"""Rank filters of images as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch import Tensor

from nsc.arguments import flag
from nsc.contract.windows import NanRule, check_mode, check_nan, least_of, origins_of, outside_of
from nsc.errors import OperandError, OperandTypeError
from nsc.nn.layer import Layer, call
from nsc.operators.filters import compile_filter

if TYPE_CHECKING:
    from typing_extensions import Unpack

# For torch.fx it is one node.
torch.fx.wrap("call")


class RankFilter2d(torch.nn.Module):
    """The value of a rank of the window around each pixel of images (…, H, W).

    The results have the shape and dtype of the images. An exact result has a gradient for the one pixel that
    has its value. A relaxed result, of the same network, has one for every pixel of the window.

    Args:
        size: the window's size: one number, or rows and columns.
        rank: 0 the smallest value, -1 the largest; None: the median of an odd number of values.
        mode: which values stand outside of an image: reflect, nearest, mirror, wrap or constant, as in
            scipy.ndimage. With shrink windows are cut at the border.
        cval: the value outside, for the mode constant.
        origin: how many pixels earlier windows begin, one number or two, as in scipy.ndimage.
        footprint: in place of a size, an array whose true values are the window's places.
        nan: what NaN means: largest, propagate, ignore or keep, as in `nsc.numpy.median_filter`.
        min_count: how many numbers a window must have where pixels may be missing; None: 1.
        relaxed: whether the network is relaxed; it then takes the memory of the images times the
            values of a window.
        steepness: the relaxation's steepness, in units of a pixel^(λ − 1), λ = 0.25; None: 2 × the network's
            depth.
        learnable: whether the steepness is a parameter.

    Raises:
        WindowError: no such window or origin, or no rank for an even number of values.
        OperandError: no such mode, or a steepness that is not above 0 or is no use.
        OperandTypeError: an option of another type.

    >>> RankFilter2d(3, -1)(torch.tensor([[1, 9, 3], [4, 5, 6], [7, 8, 2]]))[1, 1]
    tensor(9)
    """

    def __init__(
        self,
        size: Any = None,
        rank: int | None = None,
        mode: str = "reflect",
        cval: float = 0.0,
        origin: int | Sequence[int] = 0,
        *,
        footprint: Any = None,
        nan: NanRule = "largest",
        min_count: int | None = None,
        relaxed: bool = False,
        steepness: float | None = None,
        learnable: bool = False,
    ) -> None:
        super().__init__()
        name, self.filter = type(self).__name__, compile_filter(size, rank, footprint=footprint)
        window = self.filter.window
        if window.planes > 1:
            raise OperandError(
                f"{name}: size must have rows and columns, got {size!r}: use nsc.compile_filter"
            )
        self.mode, self.origin = mode, origins_of(window.sizes, origin)
        check_mode(name, mode)
        check_nan(name, nan)
        self.nan, self.min_count = nan, min_count
        least_of(name, min_count, window.values, True)
        self.cval = outside_of(name, "float64", cval)
        self.relaxation = None
        if flag("relaxed", relaxed, OperandTypeError):
            if nan != "largest" or min_count is not None:
                raise OperandError(f"{name}: nan and min_count are for exact filters")
            selector = self.filter.selector(torch.get_default_dtype())
            self.relaxation = Layer(selector, steepness, learnable, name)
        elif steepness is not None or flag("learnable", learnable, OperandTypeError):
            raise OperandError(f"{name}: steepness and learnable are for relaxed=True")

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the filtered images; mask: of the shape of x, True for missing pixels, for exact filters."""
        options: dict[str, Any] = {"mode": self.mode, "cval": self.cval, "origin": self.origin}
        if self.relaxation is None:
            options |= {"nan": self.nan, "mask": mask, "min_count": self.min_count}
            return call(self.filter, "__call__", None, x, **options)  # type: ignore[no-any-return]
        if mask is not None:
            raise OperandError(f"{type(self).__name__}: a mask is for exact filters, this one is relaxed")
        return call(self.filter, "relaxed", self.relaxation.log_steepness, x, **options)  # type: ignore[no-any-return]

    @property
    def steepness(self) -> Tensor | None:
        """The steepness as a 0-d tensor; None: an exact filter has none."""
        return None if self.relaxation is None else self.relaxation.steepness

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        outside = f", cval={self.cval:g}" if self.mode == "constant" else ""
        shifted = f", origin={self.origin}" if any(self.origin) else ""
        missing = f", nan={self.nan!r}" if self.nan != "largest" else ""
        least = f", min_count={self.min_count}" if self.min_count is not None else ""
        return f"{self.filter.window.words}, mode={self.mode!r}{outside}{shifted}{missing}{least}"


class Options(TypedDict, total=False):
    """Options that `MedianFilter2d` takes by name; see `RankFilter2d`."""

    footprint: Any
    nan: NanRule
    min_count: int | None
    relaxed: bool
    steepness: float | None
    learnable: bool


class MedianFilter2d(RankFilter2d):
    """The median of the window around each pixel of images (…, H, W).

    The window has an odd number of values. Arguments and errors as in `RankFilter2d`.

    >>> MedianFilter2d(3)(torch.tensor([[1, 9, 3], [4, 5, 6], [7, 8, 2]]))[1, 1]
    tensor(5)
    """

    def __init__(
        self,
        size: Any = None,
        mode: str = "reflect",
        cval: float = 0.0,
        origin: int | Sequence[int] = 0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(size, None, mode, cval, origin, **options)
