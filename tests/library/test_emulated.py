"""Catches a library that computes something else on an ARM processor, which is emulated."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import nsc
from nsc import library
from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.relaxations import SIGMOIDS
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract.exact import for_element
from nsc.contract.manifest import TABLES
from nsc.contract.routings import ROUTINGS
from nsc.contract.tables import NetworkTables, layout_of
from nsc.contract.windows import Window
from nsc.join.prebuilding import PLATFORMS
from nsc.runtime.build.toolchain import cross_toolchain, find_toolchain

CALLER = Path(__file__).with_name("caller.c")
COMPILER, EMULATOR, SYSTEM = "aarch64-linux-gnu-gcc", "qemu-aarch64-static", "/usr/aarch64-linux-gnu"
BEFORE = "what the call before returned"

pytestmark = [
    pytest.mark.nightly("kernels run on an emulated ARM processor"),
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
        reason=f"{COMPILER} or {EMULATOR} is not installed",
    ),
]


@pytest.fixture(scope="module")
def callers(tmp_path_factory):
    """Return commands that call a library of this machine, and one of the emulated processor."""
    folder = tmp_path_factory.mktemp("callers")
    for name, *command in (("here", "gcc"), ("arm", COMPILER)):
        flags = ["-std=gnu11", "-Wall", "-Werror", str(CALLER), "-o", str(folder / name), "-ldl"]
        subprocess.run([*command, *flags], check=True)
    return [[folder / "here"], [EMULATOR, "-L", SYSTEM, folder / "arm"]]


def described(argument):
    """Return the words of an argument, as caller.c reads them."""
    if argument is BEFORE:
        return struct.pack("q", 2)
    if isinstance(argument, list):
        return struct.pack("qq", 3, len(argument)) + b"".join(map(described, argument))
    if isinstance(argument, np.ndarray):
        return struct.pack("qq", 1, argument.nbytes) + argument.tobytes()
    return struct.pack("qq", 0, argument or 0)


def both(callers, text, calls, tmp_path):
    """Return what calls of a source's library leave of their arrays: here, and on the emulated processor."""
    path = tmp_path / "library.cpp"
    path.write_text(library.expanded(text), encoding="utf-8")
    platform = PLATFORMS["manylinux_2_17_aarch64"]
    toolchains = find_toolchain(), cross_toolchain(platform.target, "generic", platform.system)
    said = struct.pack("q", len(calls)) + b"".join(
        struct.pack("q", len(name))
        + name.encode()
        + struct.pack("q", len(given))
        + b"".join(map(described, given))
        for name, given in calls
    )
    for caller, toolchain in zip(callers, toolchains, strict=True):
        toolchain.compile(path, tmp_path / "library.so")
        command = [*caller, tmp_path / "library.so"]
        done = subprocess.run(command, input=said, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout[:4] == bytes(4)  # the status
        yield done.stdout[4:]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64"])
@pytest.mark.parametrize("is_column", [False, True])
@pytest.mark.parametrize(("n", "index_bytes"), [(16, 0), (16, 8), (300, 4)])
def test_exact_kernels(n, index_bytes, is_column, dtype, callers, tmp_path):
    if dtype == "int8" and n > 256:
        pytest.skip("places of so many do not fit beside numbers of one byte")
    samples = 37
    x = np.random.default_rng(n).integers(0, 100, (samples, n)).astype(dtype)
    places = np.zeros(x.size * max(index_bytes, 1), np.uint8)
    layout = (1, samples, 0, samples, 1) if is_column else (1, samples, 0, 1, n)
    given = (x.T if is_column else x, *layout, np.zeros_like(x), places, index_bytes, 0, None, 0, 1)
    here, arm = both(
        callers, for_element(compile_exact(n).texts["cpu"], dtype), [("nsc_exact_sort", given)], tmp_path
    )
    assert here == arm
    values = np.frombuffer(arm[x.nbytes : 2 * x.nbytes], dtype)
    expected = np.sort(x, axis=1)
    assert (
        values.reshape(expected.T.shape) == expected.T if is_column else values.reshape(x.shape) == expected
    ).all()


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_windows(dtype, callers, tmp_path):
    image = np.random.default_rng(0).integers(0, 255, (1, 1, 20, 50)).astype(dtype)
    text = for_element(compile_filter(Window.of("3x3", 4), None, "0").source.text, dtype)
    lengths, strides, before = (np.array(each) for each in ((1, 1, 20, 50), (1000, 1000, 50), (0, 1, 1)))
    given = (image, lengths, strides, before, np.zeros_like(image), 0, np.zeros(1, dtype), None, 0, 1, None)
    here, arm = both(callers, text, [("nsc_filter", given)], tmp_path)
    assert here == arm
    start = image.nbytes + lengths.nbytes + strides.nbytes + before.nbytes
    found = np.frombuffer(arm[start : start + image.nbytes], dtype).reshape(20, 50)
    windows = np.lib.stride_tricks.sliding_window_view(image[0, 0], (3, 3)).reshape(18, 48, 9)
    assert (found[1:-1, 1:-1] == np.median(windows, axis=2)).all()


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("sigmoid", SIGMOIDS)
@pytest.mark.parametrize(("family", "n"), [("bitonic", 16), ("odd_even", 9)])
def test_engines(family, n, sigmoid, real, callers, tmp_path):
    kernel = nsc.compile(family, n, relaxation=sigmoid, dtypes=("float32", "float64")).kernel
    tables = NetworkTables.from_text(kernel.files[TABLES])
    members = [
        np.array(list(value), np.dtype(layout.numbers, align=True)) if (layout := layout_of(each)) else value
        for each in fields(tables)
        for value in [getattr(tables, each.name)]
    ]
    batch, suffix = 21, {"float32": "f32", "float64": "f64"}[real]
    draw = np.random.default_rng(n)
    x, grads = (draw.normal(size=(batch, n)).astype(real) for _ in range(2))
    rows = draw.normal(size=(batch, n, n)).astype(real)
    operands = (BEFORE, ROUTINGS["permutation"].code, batch, x, np.full(1, 3, real), 0, None, 0, 0)
    for call in (
        ("forward", (np.zeros_like(x), np.zeros_like(rows), None)),
        ("backward", (grads, rows, np.zeros_like(x), np.zeros(batch, real), None, None, None)),
    ):
        calls = [("nsc_open", ([*members],)), (f"nsc_{call[0]}_{suffix}", (*operands, *call[1]))]
        size = sum(each.nbytes for each in call[1] if each is not None and not each.any())
        here, arm = (
            np.frombuffer(each[-size:], real)
            for each in both(callers, kernel.engine_sources[real], calls, tmp_path)
        )
        np.testing.assert_allclose(arm, here, rtol=0, atol=256 * np.finfo(real).eps * np.abs(here).max())
        assert np.isfinite(here).all()
        assert np.abs(here).max() > 0
