"""Windows of images: the operator `nsc::filter`, and the windows of all pixels as a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from nsc.contract.manifest import digest
from nsc.contract.windows import (
    MODES,
    MOST_CHANNELS,
    NO_RANK,
    Folded,
    PlaceOfRank,
    Tables,
    Window,
    fold,
)
from nsc.errors import ToolchainError
from nsc.join.on_demand import filter_kernel
from nsc.operators.exact import DTYPE_NAMES, select_rows
from nsc.runtime.devices.pool import thread_pool
from nsc.runtime.dispatch.registering import below, is_differentiated, register_operator
from nsc.runtime.dispatch.relaxed import dense
from nsc.runtime.dispatch.ways import PLAIN, is_written_out, way_of
from nsc.runtime.exact.windows import FilterKernel, Images, Missing
from nsc.runtime.relaxed.devices import DEVICES

# The window and the kernel of each loaded package, by the name that `keep` returned.
_loaded: dict[str, tuple[Window, FilterKernel]] = {}


def keep(window: Window, kernel: FilterKernel) -> str:
    """Keep the kernel of a package, and return the name by which `filter_images` finds it in this process.

    Compiled and exported programs hold the name. It states the window, so a process that has not loaded the
    package compiles a kernel for it.
    """
    key = f"{window.key}@{digest(kernel.source.text)[:16]}"
    _loaded.setdefault(key, (window, kernel))
    return key


@dataclass(frozen=True)
class Numbers:
    """Which pixels of a window count as numbers; the others are missing.

    Attributes:
        mask: a tensor of the images' shape, True for missing pixels; None: there are none.
        skips_nan: whether NaN is missing.
        tables: which pixels results are made of, for each number of pixels that a window may lack.
        none: the value of a window without a result.
    """

    mask: Tensor | None
    skips_nan: bool
    tables: Tables
    none: float


@dataclass(frozen=True)
class Windows:
    """The windows of all pixels of an image.

    Attributes:
        sizes: the sizes of a window's box, along the last axes.
        origin: how many pixels earlier a box begins along each axis, as in scipy.ndimage.
        mode, cval: which values stand outside of the image.
        places: the window's places in the box; none if it has no gaps.
        numbers: which pixels count; None: all do.
    """

    sizes: tuple[int, ...]
    origin: tuple[int, ...]
    mode: str
    cval: float
    places: tuple[int, ...] = ()
    numbers: Numbers | None = None

    @property
    def axes(self) -> int:
        """How many axes an image has: the last ones."""
        return len(self.sizes)

    @property
    def folded(self) -> Folded:
        """The box as a kernel has it."""
        before = [size // 2 + origin for size, origin in zip(self.sizes, self.origin, strict=True)]
        return fold(self.sizes, before)

    def moved(self, source: Any, destination: Any) -> Windows:
        """Return the windows of images whose axes outside of the box are moved, as by Tensor.movedim."""
        if self.numbers is None or self.numbers.mask is None:
            return self
        mask = self.numbers.mask.movedim(source, destination)
        return replace(self, numbers=replace(self.numbers, mask=mask))


def _windows(x: Tensor, key: str, mode: str, cval: float, whole_cval: int, origin: Sequence[int]) -> Windows:
    """Return the windows that the arguments of `nsc::filter` name."""
    outside = cval if x.is_floating_point() else whole_cval
    window = _window_of(key)
    return Windows(window.sizes, tuple(origin), mode, outside, window.places)


def _window_of(key: str) -> Window:
    if key in _loaded:
        return _loaded[key][0]
    return Window.of_key(key.partition("@")[0])


def find_filter(key: str) -> FilterKernel:
    """Return the kernel of a name: a loaded package's, else one compiled for the window."""
    return _loaded[key][1] if key in _loaded else filter_kernel(_window_of(key))


def filter_images(x: Tensor, key: str, windows: Windows) -> Tensor:
    """Return filtered images, by the way that a call with them takes; channels_last stays channels_last."""
    if way_of(x) is PLAIN:
        needs_gradient = x.requires_grad and torch.is_grad_enabled()
        return (apply_filter if needs_gradient else _filtered)(x, key, windows)
    if is_written_out() or windows.numbers is not None:
        return by_windows(x, windows, _window_of(key).rank)
    # Operators of torch's stable ABI take no Scalar.
    cval, whole_cval = (windows.cval, 0) if isinstance(windows.cval, float) else (0.0, windows.cval)
    return torch.ops.nsc.filter(x, key, windows.mode, cval, whole_cval, windows.origin)  # type: ignore[no-any-return]


def _filter(x: Tensor, key: str, *options: Any) -> Tensor:
    """Implement `nsc::filter`."""
    return _filtered(x, key, _windows(x, key, *options))


def _filtered(x: Tensor, key: str, windows: Windows) -> Tensor:
    if not _is_channels_last(x, windows.axes):
        return _contiguous(x, key, windows)
    channel = -windows.axes - 1
    behind = replace(windows.moved(channel, -1), sizes=(*windows.sizes, 1), origin=(*windows.origin, 0))
    return _contiguous(x.movedim(channel, -1), key, behind).movedim(-1, channel)


def _is_channels_last(x: Tensor, axes: int) -> bool:
    """Say whether the axis in front of an image's axes lies behind them in memory, as in channels_last."""
    return x.dim() > axes and not x.is_contiguous() and x.movedim(-axes - 1, -1).is_contiguous()


def _contiguous(x: Tensor, key: str, windows: Windows) -> Tensor:
    """Return the filtered images, contiguous."""
    folded, numbers = windows.folded, windows.numbers
    behind = folded.behind
    if not folded.is_column and math.prod(x.shape[x.dim() - behind :]) > MOST_CHANNELS:
        last, first = tuple(range(-behind, 0)), tuple(range(behind))
        planes = replace(
            windows.moved(last, first), sizes=windows.sizes[:-behind], origin=windows.origin[:-behind]
        )
        return _contiguous(x.movedim(last, first), key, planes).movedim(first, last).contiguous()
    if numbers is not None and numbers.tables.is_mean and x.dtype in (torch.float16, torch.bfloat16):
        # Means of 16 bits are rounded once, from float32.
        return _contiguous(x.float(), key, windows).to(x.dtype)
    lying, images = _lying(x, folded) if numbers is None else _without_gaps(x, folded)
    name, channels = DTYPE_NAMES[x.dtype], images.channels
    try:
        if not x.is_cpu:
            kernel = None
        elif numbers is None:
            kernel = find_filter(key).function(name, channels)
        else:
            window = replace(_window_of(key), ranks=numbers.tables.ranks)
            kernel = filter_kernel(window).function(name, channels, may_miss=True)
    except ToolchainError:
        kernel = None
    if kernel is None:
        return by_windows(x, windows, _window_of(key).rank)
    values = torch.empty_like(x, memory_format=torch.contiguous_format)
    if values.numel():
        outside, missing = torch.tensor(windows.cval, dtype=x.dtype), None
        if numbers is not None:
            mask, none = numbers.mask, torch.tensor(numbers.none, dtype=x.dtype)
            mask = None if mask is None else mask.expand(x.shape).contiguous()
            address = None if mask is None else mask.data_ptr()
            missing = Missing.of(numbers.tables, address, none.data_ptr(), numbers.skips_nan)
        kernel.call(
            lying.data_ptr(),
            images,
            folded.before,
            values.data_ptr(),
            MODES[windows.mode],
            outside.data_ptr(),
            thread_pool(),
            missing=missing,
        )
    return values


def _lying(x: Tensor, folded: Folded) -> tuple[Tensor, Images]:
    """Return images as a kernel reads them, and where their pixels lie.

    They are not copied if they have at most one leading axis and their columns lie side by side.
    """
    axes = 3 if folded.window[0] > 1 else 2
    is_free = not folded.behind and axes <= x.dim() <= axes + 1
    if is_free and x.stride(-1) == 1 and min(x.stride()) >= 0 and x.numel():
        lengths, strides = [1] * (4 - x.dim()) + list(x.shape), [0] * (4 - x.dim()) + list(x.stride())
        if axes == 2 and x.dim() == 3:
            lengths, strides = [lengths[1], 1, *lengths[2:]], [strides[1], 0, *strides[2:]]
        return x, Images(
            (lengths[0], lengths[1], lengths[2], lengths[3]), (strides[0], strides[1], strides[2])
        )
    return _without_gaps(x, folded)


def _without_gaps(x: Tensor, folded: Folded) -> tuple[Tensor, Images]:
    x = x.contiguous()
    return x, Images.without_gaps(tuple(x.shape), folded)


def by_windows(x: Tensor, windows: Windows, rank: int) -> Tensor:
    """Filter without a kernel for images: write out each pixel's window, and select from it."""
    if not x.numel():
        return x.clone(memory_format=torch.contiguous_format)
    if x.dtype == torch.bool:
        return by_windows(x.to(torch.uint8), windows, rank).to(torch.bool)
    if windows.numbers is not None:
        return _of_numbers(x, windows, windows.numbers)
    return select_rows(windows_of(x, windows), rank)


def spread(is_nan: Tensor, window: Window, windows: Windows) -> Tensor:
    """Return whether the window around each pixel has a NaN, within the image or outside."""
    key, outside = replace(window, ranks=(window.values - 1,)).key, windows.cval != windows.cval
    numbers = None
    if windows.mode == "shrink":
        tables = Tables.of(PlaceOfRank(-1), window.values, 1)
        numbers = Numbers(None, False, tables, 0.0)
    return filter_images(is_nan, key, replace(windows, cval=outside, numbers=numbers))


def _of_numbers(x: Tensor, windows: Windows, numbers: Numbers) -> Tensor:
    """Return the results of windows of which values are missing, differentiable by torch."""
    is_gone = x.isnan() if numbers.skips_nan else torch.zeros_like(x, dtype=torch.bool)
    is_gone = is_gone if numbers.mask is None else is_gone | numbers.mask
    outside = windows.mode == "shrink" or (numbers.skips_nan and windows.cval != windows.cval)
    gone = windows_of(is_gone, replace(windows, cval=outside))
    most = math.nan if x.is_floating_point() else torch.iinfo(x.dtype).max
    # Missing values come last.
    values = windows_of(x, windows).masked_fill(gone, most).sort(dim=-1, stable=True).values
    lacks, tables = gone.sum(-1), numbers.tables
    first = lacks if tables.is_least else torch.zeros_like(lacks)

    def at(ranks: tuple[int, ...]) -> Tensor:
        places = torch.tensor(ranks, device=x.device)[lacks] - first
        return values.gather(-1, places.clamp(0, values.shape[-1] - 1).unsqueeze(-1)).squeeze(-1)

    low, high = at(tables.low), at(tables.high)
    if tables.is_mean:
        wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
        mean = (low.to(wide) + high.to(wide)) / 2
        # The sum of two numbers may be too large for the type.
        mean = torch.where(mean.isinf(), low.to(wide) / 2 + high.to(wide) / 2, mean)
        low = torch.where(low == high, low, mean.to(x.dtype))
    is_none = torch.tensor([rank == NO_RANK for rank in tables.low], device=x.device)[lacks]
    return low.masked_fill(is_none, numbers.none)


def windows_of(x: Tensor, windows: Windows) -> Tensor:
    """Return each pixel's window: (…, rows, columns, values)."""
    first = x.dim() - windows.axes
    for axis, (size, origin) in enumerate(zip(windows.sizes, windows.origin, strict=True), start=first):
        x = _extended(x, axis, size, size // 2 + origin, windows.mode, windows.cval)
    for axis, size in enumerate(windows.sizes, start=first):
        x = x.unfold(axis, size, 1)
    x = x.flatten(start_dim=-windows.axes)
    return x[..., list(windows.places)] if windows.places else x


def _extended(x: Tensor, axis: int, size: int, before: int, mode: str, cval: float) -> Tensor:
    """Return images extended along an axis by the pixels that windows of a size reach, `before` in front."""
    length = x.shape[axis]
    if size == 1 or not length:
        return x
    if mode in ("constant", "shrink"):
        ends = [
            x.new_full((*x.shape[:axis], count, *x.shape[axis + 1 :]), cval)
            for count in (before, size - 1 - before)
        ]
        return torch.cat([ends[0], x, ends[1]], dim=axis)
    places = torch.arange(length + size - 1, device=x.device)
    return x.index_select(axis, _inside(places, before, length, mode))


def _inside(places: Tensor, before: int, length: int, mode: str) -> Tensor:
    """Return the places in an image for places in the extended one, which begins `before` pixels earlier."""
    if mode == "nearest":
        return (places - before).clamp(0, length - 1)
    period = {"wrap": length, "reflect": 2 * length, "mirror": max(1, 2 * length - 2)}[mode]
    at = (places + -before % period).remainder(period)  # Inductor fails at remainders of negative numbers
    if mode == "wrap":
        return at
    return torch.minimum(at, (period - 1 if mode == "reflect" else period) - at)


def _places(x: Tensor, values: Tensor, windows: Windows) -> Tensor:
    """Return the place of each result's pixel in its flattened image; -1: outside.

    If several pixels of a window have the value, the first counts.
    """
    if not x.numel():
        return torch.zeros_like(x, dtype=torch.int64)
    pixels, values = windows_of(x, windows), values.unsqueeze(-1)
    # 0 and -0 are two values that compare equal; NaN is one value.
    is_same = (pixels == values) & (pixels.signbit() == values.signbit())
    is_value = is_same | pixels.isnan() & values.isnan()
    first = is_value.to(torch.uint8).argmax(-1, keepdim=True)
    image = x.shape[-windows.axes :]
    numbered = torch.arange(math.prod(image), device=x.device).reshape(image)
    places = windows_of(numbered, replace(windows, cval=-1))
    return places.expand(pixels.shape).gather(-1, first).squeeze(-1)


def _flat(x: Tensor, windows: Windows) -> tuple[int, ...]:
    """Return the shape of x with the pixels of an image in one axis; there may be no images."""
    axes = windows.axes
    return *x.shape[:-axes], math.prod(x.shape[-axes:])


class PlainFilter(torch.autograd.Function):
    """The filter for plain tensors. Only the backward pass looks for the places of pixels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, key: str, windows: Windows) -> Tensor:
        values, ctx.windows = _filtered(x, key, windows), windows
        ctx.save_for_backward(x, values)
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, values = ctx.saved_tensors
        if ctx.windows.numbers is not None:
            with torch.enable_grad():
                again = x.detach().requires_grad_()
                results = by_windows(again, ctx.windows, 0)
            has_graph = torch.is_grad_enabled()
            (found,) = torch.autograd.grad(results, again, dense(grad), create_graph=has_graph)
            return found, None, None
        places = _places(x.detach(), values.detach(), ctx.windows)
        flat = _flat(x, ctx.windows)
        grads, places = torch.where(places < 0, 0, dense(grad)).reshape(flat), places.reshape(flat)
        moved = torch.zeros_like(grads).scatter_add(-1, places.clamp(min=0), grads)
        return moved.reshape(x.shape), None, None


# How PlainFilter is called; see `dispatch.relaxed`.
apply_filter: Callable[..., Tensor] = super(torch.autograd.Function, PlainFilter).apply


def _differentiable(keyset: Any, x: Tensor, key: str, *options: Any) -> Tensor:
    """Do what `nsc::filter` does, with derivatives if one may be asked for."""
    values: Tensor = below("filter", keyset, (x.detach(), key, *options))
    if not is_differentiated(x):
        return values
    windows = _windows(x, key, *options)
    places = _places(x.detach(), values, windows)
    flat = _flat(x, windows)
    # A gather has all of torch's derivatives.
    gathered = x.reshape(flat).gather(-1, places.clamp(min=0).reshape(flat))
    return torch.where(places < 0, values, gathered.reshape(x.shape))


def _fake(x: Tensor, key: str, *options: Any) -> Tensor:
    axes = len(_window_of(key).sizes)
    if not _is_channels_last(x, axes):
        return x.new_empty(x.shape)
    return x.new_empty(x.movedim(-axes - 1, -1).shape).movedim(-1, -axes - 1)


def _vmap(
    call: Callable[..., Tensor], info: Any, dims: tuple[Any, ...], x: Tensor, *rest: Any
) -> tuple[Tensor, int]:
    return call(x.movedim(dims[0], 0), *rest), 0


register_operator(
    "filter",
    "(Tensor x, str kernel, str mode, float cval, int whole_cval, int[] origin) -> Tensor",
    dict.fromkeys(DEVICES, _filter),
    fake=_fake,
    vmap=_vmap,
    autograd=_differentiable,
)
