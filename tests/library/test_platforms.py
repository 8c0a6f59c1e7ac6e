"""Catches a library that does not build for another platform, or that lacks or needs something there."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import nsc
from nsc import library
from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.relaxed import cpp
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract.exact import ELEMENTS, for_element
from nsc.contract.interface import FUNCTIONS, REALS, function_name
from nsc.contract.windows import Window
from nsc.join.prebuilding import PLATFORMS
from nsc.runtime.build.toolchain import cross_toolchain
from nsc.study.search.engine import _SOURCE

WARNINGS = ("-Wall", "-Wextra", "-Werror")
# What libraries take from the C library of a Mac, and the loader of its linker.
TAKEN = {"memcpy", "memmove", "memset", "memset_pattern16", "bzero", "calloc", "free", "posix_memalign"}
LOADER = {"dyld_stub_binder", "_mh_dylib_header", "__dso_handle"}

pytestmark = [
    pytest.mark.slow("libraries are built"),
    pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="no extra `compiler`"),
]


def engine(sigmoid: str, real: str) -> tuple[str, set[str]]:
    text = cpp.engine(Relaxation(sigmoid), real)
    return text, {"nsc_open", *(function_name(name, real) for name in FUNCTIONS)}


def own(family: str, n: int) -> tuple[str, set[str]]:
    kernel = nsc.compile(family, n, dtypes=tuple(REALS)).kernel
    functions = {function_name(name, real) for name in FUNCTIONS for real in REALS}
    return kernel.sources["cpu"], {"nsc_prepare", *functions}


def exact(n: int, dtype: str) -> tuple[str, set[str]]:
    return for_element(compile_exact(n).texts["cpu"], dtype), {"nsc_exact_sort"}


def window(dtype: str, channels: int, may_miss: bool) -> tuple[str, set[str]]:
    source = compile_filter(Window.of("3x3", 4), None, "0").source
    return for_element(source.text, dtype, channels, may_miss), {"nsc_filter"}


# A source of each kind, and the functions that the loader looks up.
KINDS: dict[str, Callable[[], tuple[str, set[str]]]] = {
    "engine": lambda: engine("logistic", "float32"),
    "exact": lambda: exact(16, "float32"),
    "window": lambda: window("float32", 1, True),
    "search": lambda: (_SOURCE, {"nsc_search", "nsc_removable"}),
}
OTHERS: dict[str, Callable[[], tuple[str, set[str]]]] = {
    **{f"engine {s} {r}": lambda s=s, r=r: engine(s, r) for s in SIGMOIDS for r in REALS},
    **{f"exact {dtype}": lambda dtype=dtype: exact(16, dtype) for dtype in dict.fromkeys(ELEMENTS.values())},
    "exact 1024": lambda: exact(1024, "float32"),
    "bitonic": lambda: own("bitonic", 16),
    "odd-even": lambda: own("odd_even", 8),
    "window uint8": lambda: window("uint8", 1, False),
    "window colours": lambda: window("uint8", 3, False),
    "window float64": lambda: window("float64", 3, True),
}
DAILY = {("macosx_11_0_arm64", kind) for kind in KINDS} | {("macosx_11_0_x86_64", "exact")}
CASES = [
    pytest.param(
        platform, kind, marks=() if (platform, kind) in DAILY else pytest.mark.nightly("libraries are built")
    )
    for platform in PLATFORMS
    for kind in {**KINDS, **OTHERS}
]


@pytest.mark.parametrize(("platform", "kind"), CASES)
def test_a_library_builds_for_a_platform(platform, kind, tmp_path):
    text, functions = {**KINDS, **OTHERS}[kind]()
    path, binary = tmp_path / "library.cpp", tmp_path / f"library{PLATFORMS[platform].system.suffix}"
    path.write_text(library.expanded(text), encoding="utf-8")
    cpu = "generic" if PLATFORMS[platform].machine == "aarch64" else "x86_64_v3"
    toolchain = cross_toolchain(PLATFORMS[platform].target, cpu, PLATFORMS[platform].system)
    toolchain = replace(toolchain, command=(*toolchain.command, *WARNINGS))
    toolchain.compile(path, binary)
    image = binary.read_bytes()
    assert all(name.encode() in image for name in functions)
    assert str(tmp_path).encode() not in image
    if "macosx" in platform:
        check_of_a_mac(binary, functions, cpu == "generic")


def check_of_a_mac(binary: Path, functions: set[str], is_arm: bool) -> None:
    """Check what a library for a Mac exports, takes and links, and the oldest system that loads it."""
    from macholib.mach_o import CPU_TYPE_NAMES, LC_BUILD_VERSION, LC_CODE_SIGNATURE, LC_ID_DYLIB
    from macholib.MachO import MachO
    from macholib.SymbolTable import SymbolTable

    file = MachO(str(binary))
    (header,) = file.headers
    assert CPU_TYPE_NAMES[header.header.cputype] == ("ARM64" if is_arm else "x86_64")
    commands = {load.cmd: (command, data) for load, command, data in header.commands}
    assert commands[LC_BUILD_VERSION][0].minos == 11 << 16
    assert commands[LC_ID_DYLIB][1].rstrip(b"\0") == f"@rpath/{binary.name}".encode()
    assert (LC_CODE_SIGNATURE in commands) >= is_arm  # Apple's processors run signed code alone
    assert [name for _, _, name in header.walkRelocatables()] == ["/usr/lib/libSystem.B.dylib"]
    symbols = SymbolTable(file)
    exported = {name.decode()[1:] for _, name in symbols.extdefsyms} - LOADER
    assert functions <= exported
    assert all(name.startswith("nsc_") for name in exported)
    assert {name.decode().lstrip("_") for _, name in symbols.undefsyms} <= TAKEN | LOADER
    assert not any(word in binary.read_bytes().lower() for word in (b"linux", b"glibc"))
