"""Catches a pixel of a filter that is not SciPy's or OpenCV's, for some type, mode, window or layout."""

from __future__ import annotations

import functools
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from torch.library import opcheck

import nsc
import nsc.numpy
from nsc.contract.windows import MODES, Window
from nsc.errors import OperandError, OperandTypeError, PackageError, WindowError
from nsc.join.on_demand import filter_kernel, filter_kind
from nsc.nn import MedianFilter2d, RankFilter2d
from nsc.operators import filtering
from nsc.operators.exact import DTYPE_NAMES

pytestmark = pytest.mark.slow("many kernels are built")

INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "bool")
FLOATS = ("float64", "float32", "float16")
# Windows that are cut at the border lack values; tests/test_numpy_windows.py has them.
SCIPYS = sorted({*MODES} - {"shrink"})
# Sizes, and a rank of each: the least, the largest, the median and others.
RANKS = (
    *(((3, 3), rank) for rank in (0, 4, -1)),
    *(((2, 5), 5), ((1, 4), 1), ((5, 1), 2), ((7, 7), 24)),
    *(((3, 3, 3), 13), ((2, 1, 3), 1), ((3, 3, 1), 4), ((4, 1, 1), -1), ((2, 5, 1), 0)),
)


@functools.cache
def filter_of(size, rank=None):
    return nsc.compile_filter(size, rank)


def images(shape, dtype, seed):
    """Return pixels with ties; floats have infinities and both zeros."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        most = min(info.max, 1 << 53)  # scipy filters double numbers
        few = random.integers(max(info.min, -most), most, 9, dtype=dtype, endpoint=True)
        return np.where(random.random(shape) < 0.5, few[random.integers(0, 9, shape)], few[0] // 2)
    x = random.integers(-3, 4, shape) / 2
    special = np.array([0.0, -0.0, np.inf, -np.inf])
    return np.where(random.random(shape) < 0.2, special[random.integers(0, 4, shape)], x).astype(dtype)


@settings(max_examples=15)
@given(data=st.data())
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_any_dtype_in_any_mode_is_scipys(dtype, data):
    shape = data.draw(st.tuples(st.integers(1, 9), st.sampled_from([1, 2, 5, 33, 70, 200])))
    mode = data.draw(st.sampled_from(SCIPYS))
    cval = data.draw(st.sampled_from([0, 1]))
    x = images(shape, dtype, data.draw(st.integers(0, 1000)))
    expected = ndimage.median_filter(_for_scipy(x), size=3, mode=mode, cval=cval)
    assert (nsc.numpy.median_filter(x, 3, mode, cval) == expected).all()
    if hasattr(torch, dtype) and torch.tensor([], dtype=getattr(torch, dtype)).dtype in DTYPE_NAMES:
        result = filter_of(3)(torch.from_numpy(x), mode, cval)
        assert result.dtype == getattr(torch, dtype)
        assert (result.numpy() == expected).all()


def _for_scipy(x):
    """Return an array of a type that scipy filters, in the same order."""
    return x.astype({"float16": "float32", "bool": "uint8"}.get(x.dtype.name, x.dtype))


@settings(max_examples=40)
@given(data=st.data())
def test_any_window_and_rank_is_scipys(data):
    size, rank = data.draw(st.sampled_from(RANKS))
    last = st.sampled_from([1, 2, 3, 70]) if size[-1] == 1 else st.integers(1, 80)
    shape = data.draw(st.tuples(*[st.integers(1, 40 if axis == 1 else 6) for axis in size[1:]], last))
    origin = data.draw(origins(size))
    mode = data.draw(st.sampled_from(SCIPYS))
    x = images(shape, "int16", data.draw(st.integers(0, 1000)))
    expected = ndimage.rank_filter(x, rank, size=size, mode=mode, cval=-7, origin=origin)
    assert (nsc.numpy.rank_filter(x, rank, size, mode, -7, origin) == expected).all()
    result = filter_of(size, rank)(torch.from_numpy(x), mode, -7, origin)
    assert (result.numpy() == expected).all()
    shifts = (origin,) * len(size) if isinstance(origin, int) else origin
    all_windows = filtering.Windows("", Window.of(size, rank), shifts, mode, -7)
    sorted_ = filtering.by_windows(torch.from_numpy(x), all_windows)
    assert (sorted_.numpy() == expected).all()


def origins(size):
    """Draw one origin for all axes of a window, or one for each: those with which the pixel is inside."""
    each = [st.integers(-(length // 2), (length - 1) // 2) for length in size]
    common = st.integers(-(min(size) // 2), (min(size) - 1) // 2)
    return st.one_of(st.just(0), common, st.tuples(*each))


@pytest.mark.parametrize(
    ("size", "shape", "origin"),
    [
        ((3, 3, 1), (6, 9, 40), (1, -1, 0)),  # channels, too many to be filtered where they lie
        ((3, 3, 1, 1), (5, 40, 2, 3), 0),  # two axes of them
        ((1, 3, 3, 1), (2, 5, 40, 3), 0),  # a batch of colour images
        ((2, 1, 1, 3), (5, 2, 4, 30), (0, 0, 0, 1)),  # axes that are no neighbours
        ((3, 1, 3), (5, 4, 30), (-1, 0, 0)),
        ((1, 1, 1), (2, 3, 4), 0),
        ((5, 1, 1), (9, 4, 8), (2, 0, 0)),  # along time, of the past alone
        ((4, 1, 1), (9, 4, 8), (1, 0, 0)),
    ],
)
def test_sizes_for_any_axes_are_scipys(size, shape, origin):
    x = images(shape, "uint8", 0)
    expected = ndimage.median_filter(x, size=size, origin=origin)
    assert (nsc.numpy.median_filter(x, size, origin=origin) == expected).all()


def test_one_size_mixes_colours_and_a_size_of_1_does_not():
    x = images((9, 30, 3), "uint8", 0)
    each = [nsc.numpy.median_filter(x[..., channel], 3) for channel in range(3)]
    assert (nsc.numpy.median_filter(x, (3, 3, 1)) == np.stack(each, -1)).all()
    assert (nsc.numpy.median_filter(x, 3) == ndimage.median_filter(x, 3)).all()
    assert (nsc.numpy.median_filter(x, 3) != np.stack(each, -1)).any()
    batch = np.ascontiguousarray(x.transpose(2, 0, 1))
    assert (nsc.numpy.median_filter(batch, (1, 3, 3)) == np.stack(each)).all()


@pytest.mark.parametrize("mode", SCIPYS)
def test_windows_that_are_wider_than_the_image(mode):
    for shape in [(1, 1), (1, 2), (2, 1), (3, 2), (2, 3)]:
        x = images(shape, "int16", 0)
        expected = ndimage.median_filter(x, size=7, mode=mode, cval=3)
        assert (nsc.numpy.median_filter(x, 7, mode, 3) == expected).all()


def test_large_images_have_strips_and_bands():
    """A strip has some hundred columns and a band 128 rows; threads take several."""
    x = images((300, 5000), "uint8", 0)
    expected = ndimage.median_filter(x, size=3)
    assert (nsc.numpy.median_filter(x, 3) == expected).all()
    for threads in (1, 2):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            assert (filter_of(3)(torch.from_numpy(x)).numpy() == expected).all()
        finally:
            torch.set_num_threads(before)


def test_layouts_of_tensors():
    """Leading axes, crops, flips, steps and transposes: a copy has the same results."""
    x = torch.from_numpy(images((2, 3, 20, 40), "float32", 0))
    median = filter_of(3)
    views = [
        x,
        x[0],
        x[0, 0],
        x[0, :, 2:9, 5:30],
        x[:, 0],
        x[0, 0].T,
        x[..., ::2],
        x.flip(0),
        x[:, :1].expand(2, 3, 20, 40),
    ]
    for view in views:
        result = median(view)
        assert result.shape == view.shape
        assert result.is_contiguous()
        assert torch.equal(result, median(view.clone(memory_format=torch.contiguous_format)))
        each = view.reshape(-1, *view.shape[-2:])
        expected = [ndimage.median_filter(image.numpy(), size=3) for image in each]
        assert (result.reshape(each.shape).numpy() == np.stack(expected)).all()
    for empty in (x[:0], x[:, :, :0], x[..., :0]):
        assert median(empty).shape == empty.shape


def test_nan_is_the_largest_value_and_bits_are_kept():
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[nan, 1.0, 2.0, -nan, 3.0]])
    assert torch.equal(filter_of("1x3", 2)(x).isnan(), torch.tensor([[True, True, True, True, True]]))
    assert filter_of("1x3", 1)(x).nan_to_num(9).tolist() == [[9, 2, 2, 3, 3]]
    tiny = torch.tensor([[0.0, -0.0, 1e-45, -1e-45, inf]])
    least = filter_of("1x3", 0)(tiny)
    assert torch.equal(least, tiny[:, [1, 1, 3, 3, 3]])
    assert least.signbit().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_sorted_as_they_are(dtype):
    x = torch.randn(20, 30, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert torch.equal(filter_of(3)(x), filter_of(3)(x.float()).to(dtype))


def test_opencv_has_the_same_median():
    cv2 = pytest.importorskip("cv2")
    for channels in (3, 4):
        x = images((50, 333, channels), "uint8", 1)
        assert (nsc.numpy.median_filter(x, (3, 3, 1), "nearest") == cv2.medianBlur(x, 3)).all()


def test_channels_last_is_filtered_where_it_lies():
    """A copy in torch's usual order has the same results, in the layout of the images."""
    image = torch.from_numpy(images((2, 20, 30, 3), "uint8", 0))
    volume = torch.randn(2, 3, 5, 6, 7).to(memory_format=torch.channels_last_3d)
    many = torch.randn(1, 40, 9, 8).to(memory_format=torch.channels_last)
    for x, size in (
        (image.movedim(-1, 1), (3, 3)),
        (image[0].movedim(-1, 0), (3, 2)),  # an image as OpenCV or Pillow has it
        (image.movedim(-1, 1), (3, 1)),
        (image.movedim(-1, 1), (1, 3)),
        (volume, (3, 3, 2)),
        (many, (3, 3)),
    ):
        median = filter_of(size, int(np.prod(size)) // 2)
        origin = (-(size[0] // 2),) + (0,) * (len(size) - 1)
        result = median(x, "mirror", 0, origin)
        assert result.stride() == x.stride()
        assert torch.equal(result, median(x.contiguous(), "mirror", 0, origin))
    opcheck(torch.ops.nsc.filter, (x, median._key, "mirror", 0.0, 0, origin))


@pytest.mark.usefixtures("kernels")
def test_only_the_kernel_for_the_channels_is_built(tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path))
    filter_kernel.cache_clear()
    filter_kind.cache_clear()
    x = images((9, 30, 3), "uint8", 0)
    nsc.numpy.rank_filter(x, 2, (3, 3, 1))
    assert {each[1] for each in filter_kernel(Window(1, 3, 3, (2,)))._libraries._functions} == {3}


@pytest.mark.parametrize("mode", MODES)
def test_the_gradient_goes_to_the_pixel_that_has_the_value(mode):
    x = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    median = filter_of((3, 2), 3) if mode != "shrink" else filter_of(3)
    assert torch.autograd.gradcheck(lambda x: median(x, mode, 0.1, (1, -1)), x)
    assert torch.autograd.gradgradcheck(lambda x: median(x, mode, 0.1), x)
    last = x.detach().movedim(0, -1).contiguous().movedim(-1, 0).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: median(x, mode, 0.1, (1, -1)), last)


@pytest.mark.parametrize("nan", ["propagate", "ignore", "keep"])
def test_gradients_of_windows_that_lack_values(nan):
    """They do not depend on what is missing, and are the derivatives of what is returned."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 5, dtype=torch.float64, generator=generator).requires_grad_()
    mask = torch.rand(x.shape, generator=generator) < 0.3
    for options in ({"mode": "shrink"}, {"mode": "nearest", "mask": mask}):
        rule = functools.partial(filter_of(3), nan=nan, **options)
        assert torch.autograd.gradcheck(rule, x)
        assert torch.autograd.gradgradcheck(rule, x)
    hidden = x.detach().masked_fill(mask, 1e300)
    found, expected = (filter_of(3)(each, nan="ignore", mask=mask) for each in (hidden, x))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [str(dtype).removeprefix("torch.") for dtype in DTYPE_NAMES])
def test_windows_that_lack_values_in_any_dtype(dtype):
    """By a kernel, and written out in a transform."""
    x, median = torch.from_numpy(images((9, 20), "int16", 0)).abs().to(getattr(torch, dtype)), filter_of(3)
    mask = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) < 0.4
    for nan in ("ignore", "keep"):
        found = median(x, "shrink", 1, nan=nan, mask=mask, min_count=3)
        written = torch.func.vmap(
            lambda x, mask, nan=nan: median(x, "shrink", 1, nan=nan, mask=mask, min_count=3)
        )(x[None], mask[None])[0]
        assert found.dtype == x.dtype
        assert torch.equal(found.isnan(), written.isnan())
        assert torch.equal(found[~found.isnan()], written[~written.isnan()])


def test_the_gradient_of_ties_goes_to_the_first():
    x = torch.ones(1, 4, requires_grad=True)
    filter_of("1x3")(x, "constant", 1.0).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1, 0]]  # that of the first window stands outside


@pytest.mark.parametrize("mode", SCIPYS)
def test_the_relaxed_filter_is_differentiable_and_near_the_exact_one(mode):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 6, dtype=torch.float64, generator=generator).requires_grad_()
    steepness = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    median = filter_of(3)
    assert torch.autograd.gradcheck(lambda x, s: median.relaxed(x, s, mode, 0.5), (x, steepness))
    assert (median.relaxed(x, 1e6, mode, 0.5) - median(x, mode, 0.5)).abs().max() < 1e-3
    soft = nsc.compile(median.network, select=nsc.ranks(4), wires=[median.output], dtypes="float64")
    window = x[0, 1:4, 2:5].reshape(9)
    assert torch.allclose(median.relaxed(x, 3.0, mode, 0.5)[0, 2, 3], soft.select(window, 3.0)[0])


def test_layers():
    x = torch.randn(2, 3, 8, 9)
    assert torch.equal(MedianFilter2d(3)(x), filter_of(3)(x))
    assert torch.equal(
        RankFilter2d((3, 5), 0, "constant", -1.0)(x), filter_of((3, 5), 0)(x, "constant", -1.0)
    )
    layer = MedianFilter2d(3, "mirror", relaxed=True, steepness=2.0, learnable=True)
    layer(x).sum().backward()
    assert layer.relaxation.log_steepness.grad.isfinite().all()
    assert torch.allclose(layer(x), filter_of(3).relaxed(x, 2.0, "mirror"))
    shifted = MedianFilter2d(3, "mirror", origin=(0, 1), relaxed=True, steepness=2.0)
    assert torch.allclose(shifted(x), filter_of(3).relaxed(x, 2.0, "mirror", origin=(0, 1)))
    assert torch.equal(MedianFilter2d(3, origin=1)(x), filter_of(3)(x, origin=(1, 1)))
    assert layer.double()(x.double()).dtype == torch.float64
    again = MedianFilter2d(3, "mirror", relaxed=True, learnable=True)
    again.load_state_dict(layer.state_dict())
    assert "median of 3x3 pixels" in repr(layer)
    for wrong in (
        lambda: MedianFilter2d((3, 3, 3)),
        lambda: MedianFilter2d(3, steepness=2.0),
        lambda: MedianFilter2d(3, learnable=True),
        lambda: MedianFilter2d(3, "mirrored"),
    ):
        with pytest.raises(OperandError):
            wrong()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: filter_of(3)(np.zeros((3, 3))), OperandTypeError, "must be a tensor"),
        (lambda: filter_of(3)(torch.zeros(3)), OperandError, "2 axes or more"),
        (lambda: filter_of((3, 3, 3))(torch.zeros(3, 3)), OperandError, "3 axes or more"),
        (lambda: filter_of(3)(torch.zeros(3, 3, dtype=torch.complex64)), OperandTypeError, "not served"),
        (lambda: filter_of(3)(torch.zeros(3, 3), "edge"), OperandError, "mode must be one of reflect"),
        (lambda: filter_of(3)(torch.zeros(3, 3, dtype=torch.uint8), "constant", 256), OperandError, "cval"),
        (lambda: filter_of(3)(torch.zeros(3, 3, dtype=torch.uint8), "constant", 0.5), OperandError, "cval"),
        (lambda: filter_of(3).relaxed(torch.zeros(3, 3, dtype=torch.uint8)), OperandTypeError, "float"),
        (
            lambda: filter_of(3)(torch.zeros(3, 3), mask=torch.zeros(3, 3, dtype=torch.bool, device="meta")),
            OperandError,
            "x is on cpu and mask on meta",
        ),
        (lambda: nsc.numpy.median_filter(np.zeros((2,) * 4), 3), WindowError, "1 to 3 axes"),
        (lambda: nsc.numpy.median_filter(np.zeros(3), (3, 3)), WindowError, "one for each of the"),
        (lambda: nsc.numpy.median_filter(np.zeros(3, complex), 3), OperandTypeError, "must be of"),
        (lambda: nsc.numpy.median_filter(np.zeros(3), 3, origin=2), WindowError, "in -1 … 1 .* got 2"),
        (lambda: nsc.numpy.median_filter(np.zeros(3), 4, origin=-3), WindowError, "in -2 … 1"),
        (lambda: nsc.numpy.median_filter(np.zeros((3, 3)), 3, origin=(0, 0, 0)), WindowError, "2 sizes"),
        (lambda: filter_of(3).relaxed(torch.zeros(3, 3), origin=2), WindowError, "in -1 … 1"),
        (lambda: MedianFilter2d(3, origin=2), WindowError, "in -1 … 1"),
        (lambda: nsc.numpy.median_filter(np.zeros(3), 3, "edge"), OperandError, "mode"),
        (lambda: nsc.numpy.median_filter(np.zeros(3, "i1"), 3, "constant", 128), OperandError, "cval"),
        (lambda: nsc.numpy.rank_filter(np.zeros(3), 3, 3), WindowError, "-3 … 2"),
        (lambda: nsc.compile_filter((2, 3)), WindowError, "mean of ranks 2 and 3.* say rank=2 or rank=3"),
        (lambda: MedianFilter2d(4), WindowError, "mean of ranks 7 and 8"),
        (lambda: MedianFilter2d(), WindowError, "by size or by footprint, got neither"),
        (lambda: nsc.compile_filter(3, footprint=[[1]]), WindowError, "got both"),
        (lambda: nsc.compile_filter(footprint=[[0, 0]]), WindowError, "one place or more, got 0 places"),
        (lambda: nsc.numpy.minimum_filter(np.zeros(3), 3, "wrap", 0, 0, [1]), TypeError, "positional"),
        (lambda: nsc.load("generated"), PackageError, "no package"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_without_a_compiler_torch_sorts_the_windows(tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CXX", "no-such-compiler")
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path))
    code = (
        "import nsc, torch; x = torch.arange(20).reshape(4, 5) % 7; "
        "print(nsc.compile_filter(3)(x).tolist(), nsc.compile_filter(3)(x > 3).tolist())"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    x = np.arange(20).reshape(4, 5) % 7
    expected = [ndimage.median_filter(image, size=3) for image in (x, (x > 3).astype(np.uint8))]
    assert result.stdout.strip() == f"{expected[0].tolist()} {expected[1].astype(bool).tolist()}", (
        result.stderr
    )


def test_a_package_is_loaded_and_refused_if_it_changed(tmp_path):
    from nsc.compiler.package import write
    from nsc.compiler.windows.compiling import compile_filter
    from nsc.contract.windows import Window

    place = write(compile_filter(Window.of((3, 2), 3), "mine").package, tmp_path)
    mine = nsc.load(place)
    x = torch.randn(5, 6)
    assert torch.equal(mine(x), filter_of((3, 2), 3)(x))
    assert torch.equal(mine.relaxed(x), filter_of((3, 2), 3).relaxed(x))
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps({**manifest, "window": "1x3x2:2"}))
    with pytest.raises(PackageError, match=r"'window' is \"1x3x2:2\", and mine\.cpp has \"1x3x2:3\""):
        nsc.load(place)
    (place / "manifest.json").write_text(json.dumps(manifest))
    with (place / "mine.cpp").open("a") as file:
        file.write("// edited\n")
    with pytest.raises(PackageError, match="was changed"):
        nsc.load(place)
