"""Windows of images: the operator `nsc::filter`, and the windows of all pixels as a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from nsc.contract.manifest import digest
from nsc.contract.windows import MODES, MOST_CHANNELS, NO_RANK, Folded, PlaceOfRank, Tables, Window, fold
from nsc.errors import ToolchainError
from nsc.join.on_demand import filter_kernel
from nsc.operators.exact import DTYPE_NAMES, select_rows
from nsc.operators.samples import SIGNED
from nsc.runtime.devices.pool import thread_pool
from nsc.runtime.dispatch.registering import below, is_differentiated, register_operator
from nsc.runtime.dispatch.relaxed import dense
from nsc.runtime.dispatch.ways import PLAIN, is_written_out, way_of
from nsc.runtime.exact.windows import FilterFunction, FilterKernel, Images, Missing
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
class Windows:
    """The windows of all pixels of an image, and what is selected of each.

    Attributes:
        key: the kernel's name, as `keep` returned it, or the key of the window.
        window: the window; its rank is selected where windows lack nothing.
        origin: how many pixels earlier a window begins along each axis, as in scipy.ndimage.
        mode, cval: which values stand outside of the image.
        tables: which pixels results are made of, for each number of pixels that a window may lack; None:
            windows lack nothing.
        mask: a tensor of the images' shape, True for missing pixels; None: there are none.
        skips_nan: whether NaN is missing.
    """

    key: str
    window: Window
    origin: tuple[int, ...]
    mode: str
    cval: float
    tables: Tables | None = None
    mask: Tensor | None = None
    skips_nan: bool = False

    @property
    def axes(self) -> int:
        """How many axes an image has: the last ones."""
        return len(self.origin)


@lru_cache(maxsize=64)
def _folded(sizes: tuple[int, ...], origin: tuple[int, ...], order: tuple[int, ...]) -> Folded:
    """Return the window of a kernel that reads the axes of images in an order."""
    leading = len(order) - len(sizes)
    before = [0] * leading + [size // 2 + shift for size, shift in zip(sizes, origin, strict=True)]
    sizes = (1,) * leading + sizes
    return fold([sizes[axis] for axis in order], [before[axis] for axis in order])


def _windows(x: Tensor, key: str, mode: str, cval: float, whole_cval: int, origin: Sequence[int]) -> Windows:
    """Return the windows that the arguments of `nsc::filter` name."""
    return Windows(key, _window_of(key), tuple(origin), mode, cval if x.is_floating_point() else whole_cval)


def _window_of(key: str) -> Window:
    if key in _loaded:
        return _loaded[key][0]
    return Window.of_key(key.partition("@")[0])


def find_filter(key: str) -> FilterKernel:
    """Return the kernel of a name: a loaded package's, else one compiled for the window."""
    return _loaded[key][1] if key in _loaded else filter_kernel(_window_of(key))


def filter_images(x: Tensor, windows: Windows) -> Tensor:
    """Return filtered images, by the way that a call with them takes; channels_last stays channels_last."""
    if way_of(x, windows.mask) is PLAIN:
        needs_gradient = x.requires_grad and torch.is_grad_enabled()
        return (apply_filter if needs_gradient else _filtered)(x, windows)
    if is_written_out() or windows.tables is not None:
        return by_windows(x, windows)
    # Operators of torch's stable ABI take no Scalar.
    cval, whole_cval = (windows.cval, 0) if isinstance(windows.cval, float) else (0.0, windows.cval)
    return torch.ops.nsc.filter(x, windows.key, windows.mode, cval, whole_cval, windows.origin)  # type: ignore[no-any-return]


def spread(is_nan: Tensor, windows: Windows) -> Tensor:
    """Return whether the window around each pixel has a NaN, within the image or outside."""
    window = replace(windows.window, ranks=(windows.window.values - 1,))
    outside = int(windows.cval != windows.cval)
    tables = Tables.of(PlaceOfRank(-1), window.values, 1) if windows.mode == "shrink" else None
    return filter_images(is_nan, Windows(window.key, window, windows.origin, windows.mode, outside, tables))


def _filtered(x: Tensor, windows: Windows) -> Tensor:
    """Return the filtered images, their axes in memory as `_order` says."""
    tables, sizes, origin = windows.tables, windows.window.sizes, windows.origin
    if tables is not None and tables.is_mean and x.dtype in (torch.float16, torch.bfloat16):
        # Means of 16 bits are rounded once, from float32.
        return _filtered(x.float(), windows).to(x.dtype)
    read = order = _order(x, windows.axes)
    folded = _folded(sizes, origin, tuple(order))
    behind, axes = len(order) - folded.behind, tuple(range(x.dim()))
    # A row with channels behind would be the column of another kernel.
    is_other = folded.window != _folded(sizes, origin, axes).window
    channels = 1 if folded.is_column else math.prod(x.shape[axis] for axis in order[behind:])
    if is_other or channels > MOST_CHANNELS:
        read = order[behind:] + order[:behind]
        folded = _folded(sizes, origin, tuple(read))
    images = Images.of([x.shape[axis] for axis in read], folded)
    kernel = _kernel(x, windows, images.channels)
    values = by_windows(x, windows) if kernel is None else _by_kernel(kernel, x, windows, read, images)
    if _permuted(values, order).is_contiguous():
        return values
    return torch.empty_permuted(x.shape, order, dtype=x.dtype, device=x.device).copy_(values)


def _by_kernel(
    kernel: FilterFunction, x: Tensor, windows: Windows, order: list[int], images: Images
) -> Tensor:
    """Return the results of a kernel that reads images' axes in an order."""
    pixels, missing = _permuted(x, order), None
    if not pixels.is_contiguous():
        # Rows with gaps between them are read where they lie; a mask has none.
        has_axes = images.lengths == (1,) * (4 - x.dim()) + pixels.shape
        if has_axes and pixels.stride(-1) == 1 and windows.tables is None:
            images = replace(images, strides=(0,) * (4 - x.dim()) + pixels.stride()[:-1])
        else:
            pixels = pixels.contiguous()
    values = torch.empty_permuted(x.shape, order, dtype=x.dtype, device="cpu")
    outside = torch.tensor(windows.cval, dtype=x.dtype, device="cpu")
    if windows.tables is not None:
        none = torch.tensor(_none(x, windows), dtype=x.dtype, device="cpu")
        mask = None if windows.mask is None else _permuted(windows.mask, order).contiguous()
        address = None if mask is None else mask.data_ptr()
        missing = Missing.of(windows.tables, address, none.data_ptr(), windows.skips_nan)
    mode, pool = MODES[windows.mode], thread_pool()
    kernel.call(pixels.data_ptr(), images, values.data_ptr(), mode, outside.data_ptr(), missing, pool)
    return values


def _order(x: Tensor, axes: int) -> list[int]:
    """Return the order of results' axes in memory: channels_last for images that are, else their own."""
    order, channel = [*range(x.dim())], x.dim() - axes - 1
    if channel >= 0 and not x.is_contiguous() and x.movedim(channel, -1).is_contiguous():
        order.append(order.pop(channel))
    return order


def _permuted(x: Tensor, order: list[int]) -> Tensor:
    """Return a tensor whose axes are in an order."""
    return x if order == [*range(x.dim())] else x.permute(order)


def _kernel(x: Tensor, windows: Windows, channels: int) -> FilterFunction | None:
    """Return the kernel for some images; None: there is none here."""
    if not x.is_cpu or not x.numel():
        return None
    dtype = DTYPE_NAMES[x.dtype]
    try:
        if windows.tables is None:
            return find_filter(windows.key).function(dtype, channels)
        window = replace(windows.window, ranks=windows.tables.ranks)
        return filter_kernel(window).function(dtype, channels, may_miss=True)
    except ToolchainError:
        return None


def by_windows(x: Tensor, windows: Windows) -> Tensor:
    """Filter without a kernel for images: write out each pixel's window, and select from it."""
    if not x.numel():
        return x.clone(memory_format=torch.contiguous_format)
    if x.dtype == torch.bool:
        return by_windows(x.to(torch.uint8), windows).to(torch.bool)
    if windows.tables is None:
        return select_rows(windows_of(x, windows), windows.window.rank)
    if x.dtype in SIGNED:  # torch does not sort these; numbers of the other kind have the same order
        least = torch.iinfo(SIGNED[x.dtype]).min
        shifted = replace(windows, cval=windows.cval + least)
        return (by_windows(x.view(SIGNED[x.dtype]) ^ least, shifted) ^ least).view(x.dtype)
    return _of_numbers(x, windows, windows.tables)


def _of_numbers(x: Tensor, windows: Windows, tables: Tables) -> Tensor:
    """Return the results of windows of which values are missing, differentiable by torch."""
    is_gone = x.isnan() if windows.skips_nan else torch.zeros_like(x, dtype=torch.bool)
    is_gone = is_gone if windows.mask is None else is_gone | windows.mask
    outside = windows.mode == "shrink" or (windows.skips_nan and windows.cval != windows.cval)
    gone = windows_of(is_gone, replace(windows, cval=int(outside)))
    most = math.nan if x.is_floating_point() else torch.iinfo(x.dtype).max
    # Missing values come last.
    values = windows_of(x, windows).masked_fill(gone, most).sort(dim=-1, stable=True).values
    lacks = gone.sum(-1)
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
    return low.masked_fill(is_none, _none(x, windows))


def _none(x: Tensor, windows: Windows) -> float:
    """Return the value of a window without a result."""
    return math.nan if x.is_floating_point() else windows.cval


def windows_of(x: Tensor, windows: Windows) -> Tensor:
    """Return each pixel's window: (…, rows, columns, values)."""
    window, first = windows.window, x.dim() - windows.axes
    for axis, (size, shift) in enumerate(zip(window.sizes, windows.origin, strict=True), start=first):
        x = _extended(x, axis, size, size // 2 + shift, windows.mode, windows.cval)
    for axis, size in enumerate(window.sizes, start=first):
        x = x.unfold(axis, size, 1)
    x = x.flatten(start_dim=-windows.axes)
    return x[..., list(window.places)] if window.places else x


def _extended(x: Tensor, axis: int, size: int, before: int, mode: str, cval: float) -> Tensor:
    """Return images extended along an axis by the pixels that windows of a size reach, `before` in front."""
    length = x.shape[axis]
    if size == 1 or not length:
        return x
    if mode in ("constant", "shrink"):
        return torch.constant_pad_nd(x, [0, 0] * (x.dim() - axis - 1) + [before, size - 1 - before], cval)
    places = torch.arange(length + size - 1, device=x.device)
    if mode == "nearest":
        return x.index_select(axis, (places - before).clamp(0, length - 1))
    period = {"wrap": length, "reflect": 2 * length, "mirror": max(1, 2 * length - 2)}[mode]
    at = (places + -before % period).remainder(period)  # Inductor fails at remainders of negative numbers
    if mode != "wrap":  # a row and its reversal repeat
        at = torch.minimum(at, (period - 1 if mode == "reflect" else period) - at)
    return x.index_select(axis, at)


def _places(x: Tensor, values: Tensor, windows: Windows) -> Tensor:
    """Return the place of each result's pixel in its flattened image, (…, pixels); -1: outside.

    If several pixels of a window have the value, the first counts.
    """
    if not x.numel():
        return torch.zeros_like(x, dtype=torch.int64).flatten(start_dim=-windows.axes)
    pixels, values = windows_of(x, windows), values.unsqueeze(-1)
    # 0 and -0 are two values that compare equal; NaN is one value.
    is_same = (pixels == values) & (pixels.signbit() == values.signbit())
    is_value = is_same | pixels.isnan() & values.isnan()
    first = is_value.to(torch.uint8).argmax(-1, keepdim=True)
    image = x.shape[-windows.axes :]
    numbered = torch.arange(math.prod(image), device=x.device).reshape(image)
    places = windows_of(numbered, replace(windows, cval=-1)).expand(pixels.shape).gather(-1, first)
    return places.squeeze(-1).flatten(start_dim=-windows.axes)


class PlainFilter(torch.autograd.Function):
    """The filter for plain tensors. Only the backward pass looks for the places of pixels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, windows: Windows) -> Tensor:
        values, ctx.windows = _filtered(x, windows), windows
        ctx.save_for_backward(x, values)
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x, values), grad = (each.detach() for each in ctx.saved_tensors), dense(grad)
        if ctx.windows.tables is None:
            places = _places(x, values, ctx.windows)
            grads = torch.where(places < 0, 0, grad.reshape(places.shape))
            moved = torch.zeros_like(grads).scatter_add(-1, places.clamp(min=0), grads)
            return moved.reshape(x.shape), None
        with torch.enable_grad():
            results = by_windows(x.requires_grad_(), ctx.windows)
        return *torch.autograd.grad(results, x, grad, create_graph=torch.is_grad_enabled()), None


# How PlainFilter is called; see `dispatch.relaxed`.
apply_filter: Callable[..., Tensor] = super(torch.autograd.Function, PlainFilter).apply


def _differentiable(keyset: Any, x: Tensor, key: str, *options: Any) -> Tensor:
    """Do what `nsc::filter` does, with derivatives if one may be asked for."""
    values: Tensor = below("filter", keyset, (x.detach(), key, *options))
    if not is_differentiated(x):
        return values
    windows = _windows(x, key, *options)
    places = _places(x.detach(), values, windows)
    # A gather has all of torch's derivatives.
    gathered = x.reshape(places.shape).gather(-1, places.clamp(min=0))
    return torch.where(places < 0, values.reshape(places.shape), gathered).reshape(x.shape)


def _fake(x: Tensor, key: str, *options: Any) -> Tensor:
    order = _order(x, len(_window_of(key).sizes))
    return torch.empty_permuted(x.shape, order, dtype=x.dtype, device=x.device)


def _vmap(
    call: Callable[..., Tensor], info: Any, dims: tuple[Any, ...], x: Tensor, *rest: Any
) -> tuple[Tensor, int]:
    return call(x.movedim(dims[0], 0), *rest), 0


register_operator(
    "filter",
    "(Tensor x, str kernel, str mode, float cval, int whole_cval, int[] origin) -> Tensor",
    dict.fromkeys(DEVICES, lambda x, *options: _filtered(x, _windows(x, *options))),
    fake=_fake,
    vmap=_vmap,
    autograd=_differentiable,
)
