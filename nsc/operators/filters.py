"""Filters: the value of a rank of the window around each pixel, exact or relaxed, for torch users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from nsc.arguments import is_name, real, whole
from nsc.compiler.driver import compile_network
from nsc.compiler.formats import parse_network
from nsc.compiler.request import Request
from nsc.compiler.selection import ranks
from nsc.compiler.windows import Window
from nsc.contract.folding import Folded, fold
from nsc.contract.manifest import MANIFEST, NETWORK, digest
from nsc.contract.windows import MODES, FilterManifest
from nsc.errors import OperandError, OperandTypeError, PackageError, ToolchainError
from nsc.join.budget import budget_of
from nsc.join.filters import compiled_filter, window_kernel
from nsc.operators.exact import DTYPE_NAMES, select_rows
from nsc.operators.operands import Steepness
from nsc.operators.selector import Selector
from nsc.runtime.devices.cpu import thread_pool
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.window import Images, WindowKernel
from nsc.version import VERSION

# Kernels of packages that were loaded, by the digest of their text.
_loaded: dict[str, WindowKernel] = {}


class Filter:
    """A rank filter of images: each pixel becomes the value of one rank of the window around it.

    Images are (…, rows, columns), or (…, planes, rows, columns) for a window that has planes, of any leading
    shape. Types are the floats of 16, 32 and 64 bits, the integers and bool; results keep dtype and device.
    NaN is larger than every number; -0 comes before 0. On a GPU the windows are written out, and an exact
    kernel selects from them. Without a compiler torch sorts them.

    The gradient of a result goes to the pixel that has its value; where several have, to the first of the
    window.

    Attributes:
        window: its size and rank.
        name: in messages.
        network: the comparators of one window, wire w its value w, planes first, then rows, then columns.
        output: the wire that carries the result.

    >>> compile_filter("3x5")
    Filter(median_3x5: the median of 3x5 pixels)
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """Take a generated package's files.

        Raises:
            PackageError: files that no `nsc compile --window` of this version wrote.
        """
        if MANIFEST not in files:
            raise PackageError("no readable manifest: there is none: compile the package again")
        manifest = FilterManifest.from_text(files[MANIFEST])
        kernel = WindowKernel.from_files(manifest, files)
        self.name = manifest.name
        planes, rows, columns = manifest.window
        self.window = Window(planes, rows, columns, manifest.rank)
        self.network = parse_network(files[NETWORK])
        if self.network.digest != manifest.network:
            raise PackageError(f"{self.name}: {NETWORK} is another network than the manifest says")
        self.output = manifest.output
        self._key = f"{_key_of(self.window)}@{digest(kernel.source.text)[:16]}"
        self._selectors: dict[str, Selector] = {}
        _loaded.setdefault(self._key, kernel)

    def __repr__(self) -> str:
        return f"Filter({self.name}: {self.window.words})"

    def __call__(self, x: Tensor, mode: str = "reflect", cval: float = 0.0) -> Tensor:
        """Return the filtered images.

        Args:
            x: images.
            mode: what stands outside of an image, as in scipy.ndimage: reflect (d c b a | a b c d | d c b a),
                nearest (a a a | a b c d | d d d), mirror (d c b | a b c d | c b a), wrap, or constant.
            cval: the value outside, for the mode constant.

        Raises:
            OperandTypeError: x is no tensor, or of a dtype that is not served.
            OperandError: too few axes, no such mode, or a cval that the dtype does not have.
        """
        cval = self._checked(x, mode, cval)
        if way_of(x) is PLAIN and not x.requires_grad:
            return _filter(x, self._key, mode, cval)
        return torch.ops.nsc.window_filter(x, self._key, mode, cval)  # type: ignore[no-any-return]

    def relaxed(
        self, x: Tensor, steepness: Steepness = None, mode: str = "reflect", cval: float = 0.0
    ) -> Tensor:
        """Return the images of the relaxed network.

        They are differentiable in every pixel of a window and in steepness.
        The windows of all pixels are written out: memory is that of x times the values of a window. Each
        window's pixel is a relaxed median, or other rank; None as steepness is 2 × the depth of the network.

        Raises:
            OperandTypeError, OperandError: as in a call, or a dtype that is no float.

        >>> image = torch.rand(8, 8, requires_grad=True)
        >>> compile_filter(3).relaxed(image).sum().backward()
        >>> bool(image.grad.abs().min() > 0)
        True
        """
        cval = self._checked(x, mode, cval)
        if not x.is_floating_point():
            raise OperandTypeError(f"{self.name}.relaxed: x must be of a float dtype, got {x.dtype}")
        windows = _windows(x, self.window, mode, cval)
        return self.selector(x.dtype).select(windows, steepness).squeeze(-1)

    def selector(self, dtype: torch.dtype = torch.float32) -> Selector:
        """Return the operator of one window's values, (…, values), that `relaxed` applies to all.

        >>> compile_filter(3).selector().n
        9
        """
        real_ = "float64" if dtype == torch.float64 else "float32"
        if real_ not in self._selectors:
            request = Request(
                self.network,
                select=ranks(self.window.rank),
                wires=(self.output,),
                dtypes=(real_,),
                name=f"{self.name}_soft",
                version=VERSION,
            )
            self._selectors[real_] = Selector(compile_network(request, budget_of(keeps=True)).package.files)
        return self._selectors[real_]

    def _checked(self, x: Tensor, mode: str, cval: float) -> float:
        """Return cval as a number of Python."""
        if not isinstance(x, Tensor):
            raise OperandTypeError(f"{self.name}: x must be a tensor, got {type(x).__name__}")
        axes = _axes(self.window)
        if x.dim() < axes:
            raise OperandError(
                f"{self.name}: x must have {axes} axes or more, rows and columns last, got shape "
                f"{tuple(x.shape)}"
            )
        if x.dtype not in DTYPE_NAMES:
            raise OperandTypeError(
                f"{self.name}: dtype {x.dtype} is not served: {', '.join(DTYPE_NAMES.values())} are"
            )
        return checked_options(self.name, x.dtype, mode, cval)


def checked_options(name: str, dtype: torch.dtype, mode: str, cval: float) -> float:
    """Return cval as a number of Python, an integer for an integer dtype.

    Args:
        name: of the filter, for messages.
        dtype, mode, cval: of a call.

    Raises:
        OperandError: an unknown mode, or a cval that the dtype does not have.
    """
    if not is_name(mode, MODES):
        raise OperandError(f"{name}: mode must be one of {', '.join(MODES)}, got {mode!r}")
    number = float(cval) if isinstance(cval, bool) and dtype == torch.bool else real(cval)
    if number is not None and dtype.is_floating_point:
        return number
    exact = whole(cval)
    if exact is None and number is not None and number.is_integer():
        exact = int(number)
    least, most = (0, 1) if dtype == torch.bool else _range(dtype)
    if exact is None or not least <= exact <= most:
        raise OperandError(f"{name}: cval must be a number that {dtype} has, got {cval!r}")
    return exact


def _range(dtype: torch.dtype) -> tuple[int, int]:
    if dtype.is_floating_point:
        return 1, 0  # no number
    info = torch.iinfo(dtype)
    return info.min, info.max


def compile_filter(size: Any, rank: Any = None) -> Filter:
    """Prove a rank filter of images and return it; its kernels are built on first use and cached on disk.

    Args:
        size: 3 for 3 × 3 pixels; two or three numbers, rows and columns or planes, rows and columns; or text
            such as "3x5"; at most 225 pixels.
        rank: which value of a window is selected, 0 the smallest, -1 the largest; None: the median of an odd
            number of values.

    Raises:
        WindowError: no such window, or no rank for an even number of values.
        UnprovedError: no method settled its network.

    Cost: half a second for 7 × 7, proof and plan; a second or two for each type of pixels when it is first
    used.

    >>> compile_filter(3)(torch.tensor([[1, 9, 3], [4, 5, 6], [7, 8, 2]]))[1, 1]
    tensor(5)
    """
    return Filter(compiled_filter(Window.of(size, rank)).package.files)


def _axes(window: Window) -> int:
    return 3 if window.planes > 1 else 2


def _key_of(window: Window) -> str:
    return f"{'x'.join(map(str, window.shape))}:{window.rank}"


def _window_of(key: str) -> Window:
    size, rank = key.partition("@")[0].split(":")
    planes, rows, columns = map(int, size.split("x"))
    return Window(planes, rows, columns, int(rank))


def _kernel(key: str) -> WindowKernel:
    """Return the kernel that a registered operator names; that of a package exists where it was loaded."""
    return _loaded.get(key) or window_kernel(_window_of(key))


def _filter(x: Tensor, key: str, mode: str, cval: float) -> Tensor:
    """Implement `nsc::window_filter`."""
    window = _window_of(key)
    if not x.is_cpu:
        return _by_windows(x, window, mode, cval)
    kernel, folded = _kernel(key), fold(window.shape[-_axes(window) :])
    lying, images = _lying(x, folded)
    try:
        kernel.load(DTYPE_NAMES[x.dtype], images.channels)
    except ToolchainError:
        return _by_windows(x, window, mode, cval)
    values = torch.empty_like(x, memory_format=torch.contiguous_format)
    if values.numel():
        outside = torch.tensor(cval, dtype=x.dtype)
        kernel.call(
            DTYPE_NAMES[x.dtype],
            lying.data_ptr(),
            images,
            folded.before,
            values.data_ptr(),
            MODES[mode],
            outside.data_ptr(),
            thread_pool(),
        )
    return values


def _lying(x: Tensor, folded: Folded) -> tuple[Tensor, Images]:
    """Return images whose columns lie side by side; with one leading axis or none, other strides are free."""
    axes = 3 if folded.window[0] > 1 else 2
    is_free = not folded.behind and axes <= x.dim() <= axes + 1
    if is_free and x.stride(-1) == 1 and min(x.stride()) >= 0 and x.numel():
        lengths, strides = [1] * (4 - x.dim()) + list(x.shape), [0] * (4 - x.dim()) + list(x.stride())
        if axes == 2 and x.dim() == 3:
            lengths, strides = [lengths[1], 1, *lengths[2:]], [strides[1], 0, *strides[2:]]
        return x, Images(
            (lengths[0], lengths[1], lengths[2], lengths[3]), (strides[0], strides[1], strides[2])
        )
    x = x.contiguous()
    return x, Images.without_gaps(tuple(x.shape), folded)


def _by_windows(x: Tensor, window: Window, mode: str, cval: float) -> Tensor:
    if not x.numel():
        return x.clone()
    if x.dtype == torch.bool:
        return _by_windows(x.to(torch.uint8), window, mode, cval).to(torch.bool)
    return select_rows(_windows(x, window, mode, cval), window.rank)


def _windows(x: Tensor, window: Window, mode: str, cval: float) -> Tensor:
    """Return each pixel's window: (…, rows, columns, values)."""
    axes = _axes(window)
    sizes = window.shape[-axes:]
    for axis, size in enumerate(sizes, start=x.dim() - axes):
        x = _extended(x, axis, size, mode, cval)
    for axis, size in enumerate(sizes, start=x.dim() - axes):
        x = x.unfold(axis, size, 1)
    return x.flatten(start_dim=-axes)


def _extended(x: Tensor, axis: int, size: int, mode: str, cval: float) -> Tensor:
    """Return images with the pixels outside that windows of a size have along an axis."""
    length, before = x.shape[axis], size // 2
    if size == 1 or not length:
        return x
    if mode == "constant":
        ends = [
            x.new_full((*x.shape[:axis], count, *x.shape[axis + 1 :]), cval)
            for count in (before, size - 1 - before)
        ]
        return torch.cat([ends[0], x, ends[1]], dim=axis)
    places = torch.arange(-before, length + size - 1 - before, device=x.device)
    return x.index_select(axis, _inside(places, length, mode))


def _inside(places: Tensor, length: int, mode: str) -> Tensor:
    """Return the places inside an image whose pixels stand at any places."""
    if mode == "nearest":
        return places.clamp(0, length - 1)
    if mode == "wrap":
        return places.remainder(length)
    if mode == "reflect":
        at = places.remainder(2 * length)
        return torch.minimum(at, 2 * length - 1 - at)
    at = places.remainder(max(1, 2 * length - 2))
    return torch.minimum(at, (2 * length - 2 - at).clamp(min=0))


def _backward(context: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
    x, values = context.saved_tensors
    window = _window_of(context.key)
    with torch.enable_grad():
        # The gradient of a sum of windows' pixels, each times the share of the result that it is: 0 or 1.
        pixels = torch.zeros_like(x, requires_grad=True)
        spread = _windows(pixels, window, context.mode, 0.0)
    windows = _windows(x, window, context.mode, context.cval)
    is_value = (windows == values.unsqueeze(-1)) | (windows.isnan() & values.isnan().unsqueeze(-1))
    is_first = is_value & (is_value.cumsum(dim=-1) == 1)
    weights = is_first.to(grad.dtype) * grad.unsqueeze(-1)
    (result,) = torch.autograd.grad(spread, pixels, weights, create_graph=torch.is_grad_enabled())
    return result, None, None, None


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, ctx.key, ctx.mode, ctx.cval = inputs
    ctx.save_for_backward(x, output)


def _vmap(info: Any, dims: Sequence[Any], x: Tensor, key: str, mode: str, cval: float) -> tuple[Tensor, int]:
    return torch.ops.nsc.window_filter(x.movedim(dims[0], 0), key, mode, cval), 0


_library: Any = torch.library.Library("nsc", "FRAGMENT")  # type: ignore[no-untyped-call]
_library.define(
    "window_filter(Tensor x, str kernel, str mode, Scalar cval) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
for _device in ("CPU", "CUDA"):
    _library.impl("window_filter", _filter, _device)
torch.library.register_fake(
    "nsc::window_filter", lambda x, key, mode, cval: x.new_empty(x.shape), lib=_library
)
torch.library.register_autograd("nsc::window_filter", _backward, setup_context=_setup, lib=_library)
torch.library.register_vmap("nsc::window_filter", _vmap, lib=_library)
