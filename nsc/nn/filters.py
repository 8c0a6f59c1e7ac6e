"""Rank filters of images as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nsc.arguments import flag
from nsc.contract.windows import NanRule, check_mode, check_nan, least_of, origins_of, outside_of
from nsc.errors import OperandError, OperandTypeError
from nsc.nn.layer import Layer, call
from nsc.operators.filters import compile_filter

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
        self.filter = compile_filter(size, rank, footprint=footprint)
        if self.filter.window.planes > 1:
            raise OperandError(
                f"{type(self).__name__}: size must have rows and columns, got {size!r}: "
                "use nsc.compile_filter"
            )
        self.mode, self.origin = mode, origins_of(self.filter.window.sizes, origin)
        check_mode(type(self).__name__, mode)
        check_nan(type(self).__name__, nan)
        self.nan, self.min_count = nan, min_count
        if min_count is not None:
            least_of(type(self).__name__, min_count, self.filter.window.values, True)
        self.cval = outside_of(type(self).__name__, "float64", cval)
        is_relaxed = flag("relaxed", relaxed, OperandTypeError)
        if not is_relaxed and (steepness is not None or flag("learnable", learnable, OperandTypeError)):
            raise OperandError(f"{type(self).__name__}: steepness and learnable are for relaxed=True")
        self.relaxation = None
        if is_relaxed:
            if nan != "largest" or min_count is not None:
                raise OperandError(f"{type(self).__name__}: nan and min_count are for exact filters")
            selector = self.filter.selector(torch.get_default_dtype())
            self.relaxation = Layer(selector, steepness, learnable, type(self).__name__)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the filtered images; mask: of the shape of x, True for missing pixels, for exact filters."""
        method = "__call__" if self.relaxation is None else "relaxed"
        log_steepness = None if self.relaxation is None else self.relaxation.log_steepness
        options: dict[str, Any] = {"mode": self.mode, "cval": self.cval, "origin": self.origin}
        if self.relaxation is None:
            options |= {"nan": self.nan, "mask": mask, "min_count": self.min_count}
        elif mask is not None:
            raise OperandError(f"{type(self).__name__}: a mask is for exact filters, this one is relaxed")
        return call(self.filter, method, log_steepness, x, **options)  # type: ignore[no-any-return]

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
        *,
        footprint: Any = None,
        nan: NanRule = "largest",
        min_count: int | None = None,
        relaxed: bool = False,
        steepness: float | None = None,
        learnable: bool = False,
    ) -> None:
        super().__init__(
            size,
            None,
            mode,
            cval,
            origin,
            footprint=footprint,
            nan=nan,
            min_count=min_count,
            relaxed=relaxed,
            steepness=steepness,
            learnable=learnable,
        )
