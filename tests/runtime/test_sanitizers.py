"""Catches a kernel that reads or writes outside of its arguments, or whose behaviour is undefined.

Sanitizers watch kernels that C++ calls on memory of exact size.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest
from networks import irregular

from nsc import library
from nsc.compiler.driver import compile_network
from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.request import Request
from nsc.compiler.selection import top_k
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract.windows import Window

pytestmark = pytest.mark.nightly("kernels are built with sanitizers")

DRIVER = Path(__file__).with_name("sanitized.cpp")
# An optimiser would take ten times as long, and hide undefined behaviour.
COMMAND = (
    "g++",
    "-std=c++17",
    "-O0",
    "-g1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    f"-I{library.FOLDER}",
)
NATIVE = "-march=native"

REALS = {"float32": "float", "float64": "double"}
# The case for narrower registers.
NARROWER = "neighbours"
CASES = {
    "one wire": (("bitonic", 1), Relaxation(), "float64"),
    "three wires": (("bitonic", 3), Relaxation("gaussian", 0.4, error_free=True), "float32"),
    "more than one register, some ranks alone": (("bitonic", 17), Relaxation("cauchy", 0.5), "float32"),
    "many codelets": (("bitonic", 20), Relaxation(), "float64"),
    NARROWER: (("odd_even", 17), Relaxation("optimal", 0), "float32"),
    "reversed comparators": (
        (irregular(17, 10, 0),),
        Relaxation("reciprocal", 0.25, error_free=True),
        "float64",
    ),
}


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    """Return the driver's object file for each dtype, which all kernels of the dtype share."""
    folder = tmp_path_factory.mktemp("drivers")
    objects = {dtype: folder / f"{dtype}.o" for dtype in REALS}
    for dtype, path in objects.items():
        run(*COMMAND, f"-DREAL={REALS[dtype]}", "-Wall", "-Wextra", "-Werror", "-c", DRIVER, "-o", path)
    return objects


def run(*command, env=None):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, env=env)
    assert result.returncode == 0, result.stderr[:4000]
    return result.stdout


def check(case, flags, drivers, tmp_path):
    network, relaxation, dtype = CASES[case]
    select = top_k(3) if "ranks" in case else None
    request = Request(
        *network,
        relaxation=relaxation,
        dtypes=(dtype,),
        unproved=True,
        select=select,
    )
    package = compile_network(request).package
    source, program = tmp_path / "kernel.cpp", tmp_path / "program"
    source.write_text(package.files[f"{package.name}.cpp"], encoding="utf-8")
    run(*COMMAND, *flags, source, drivers[dtype], "-o", program, "-pthread")
    n = request.n or request.network.n
    # New memory is full of zeros in one run and of NaN in the other; results must not differ.
    fill = "max_malloc_fill_size=1000000000:malloc_fill_byte="
    zeros, nans = (run(program, n, env=os.environ | {"ASAN_OPTIONS": fill + byte}) for byte in ("0", "255"))
    assert zeros == nans


@pytest.mark.parametrize("case", [case for case in CASES if case != NARROWER])
def test_kernels_run_clean(case, drivers, tmp_path):
    check(case, [NATIVE], drivers, tmp_path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are of x86")
@pytest.mark.parametrize("flags", [["-mno-avx", "-mno-avx2", "-mno-fma"]], ids=" ".join)
def test_kernels_of_narrower_registers_run_clean(flags, drivers, tmp_path):
    check(NARROWER, [NATIVE, *flags], drivers, tmp_path)


@pytest.mark.parametrize(
    ("n", "element", "number", "flags"),
    [
        (5, "uint8", "uint8_t", (NATIVE,)),
        (17, "int16", "int16_t", ()),
        (9, "float32", "float", (NATIVE,)),
        (9, "float32", "float", ()),
        (9, "int64", "int64_t", ()),
        (9, "int64", "int64_t", (NATIVE,)),
    ],
)
def test_exact_kernels(n, element, number, flags, tmp_path):
    if platform.machine() not in ("x86_64", "AMD64") and flags:
        pytest.skip("-march=native is for x86")
    source, program = tmp_path / "kernel.cpp", tmp_path / "program"
    source.write_text(f"#define NSC_ELEMENT {element}\n{compile_exact(n).texts['cpu']}", encoding="utf-8")
    driver = Path(__file__).with_name("sanitized_exact.cpp")
    macros = (f"-DNUMBER={number}", f"-DWIRES={n}")
    run(*COMMAND, *flags, *macros, "-Wall", "-Wextra", "-Werror", source, driver, "-o", program)
    assert run(program) == "sorted\n"


@pytest.mark.parametrize(
    ("size", "rank", "element", "number", "channels", "missing", "flags"),
    [
        ("3x3", 4, "uint8", "uint8_t", 1, 0, (NATIVE,)),
        ("3x3", 4, "uint8", "uint8_t", 3, 0, ()),
        ("2x3x4", 12, "float32", "float", 2, 0, (NATIVE,)),
        ("3x3", 4, "uint8", "uint8_t", 1, 1, ()),
        ("2x3x4", 12, "float32", "float", 2, 1, (NATIVE,)),
    ],
)
def test_filters(size, rank, element, number, channels, missing, flags, tmp_path):
    if platform.machine() not in ("x86_64", "AMD64") and flags:
        pytest.skip("-march=native is for x86")
    window = Window.of(size, rank)
    source, program = tmp_path / "kernel.cpp", tmp_path / "program"
    text = compile_filter(window).source.text
    source.write_text(f"#define NSC_ELEMENT {element}\n{text}", encoding="utf-8")
    driver = Path(__file__).with_name("sanitized_filter.cpp")
    sizes = zip(("PLANES", "ROWS", "COLUMNS", "RANK"), (*window.shape, window.rank), strict=True)
    macros = [
        f"-DNUMBER={number}",
        f"-DNSC_CHANNELS={channels}",
        f"-DNSC_MISSING={missing}",
        *(f"-D{name}={value}" for name, value in sizes),
    ]
    run(*COMMAND, *flags, *macros, "-Wall", "-Wextra", "-Werror", source, driver, "-o", program)
    # Memory that nothing wrote is not 0, however large.
    fill = "max_malloc_fill_size=1000000000:malloc_fill_byte=190"
    assert run(program, env=os.environ | {"ASAN_OPTIONS": fill}) == "filtered\n"
