"""Catches a prebuilt library of another source or processor that serves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
import torch

import nsc
from nsc.compat import DiffSortNet
from nsc.compiler.relaxations import SIGMOIDS
from nsc.contract.interface import REALS
from nsc.join import prebuilding
from nsc.runtime.build import prebuilt
from nsc.runtime.build.system import machine
from nsc.runtime.build.toolchain import cross_toolchain
from nsc.runtime.relaxed.kernel import Kernel

pytestmark = pytest.mark.slow("kernels are built for levels of processors")

LEVEL, PLATFORM = prebuilt.level_here(), f"manylinux_2_17_{machine()}"
needs_level = pytest.mark.skipif(LEVEL is None, reason="a processor of no level")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return a folder for PYTHONPATH whose package has the engine of the default relaxation."""
    folder = tmp_path_factory.mktemp("path") / prebuilt.PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    name, source = prebuilding.sources()[0]
    prebuilding.write(name, source, prebuilding.PLATFORMS[PLATFORM], LEVEL, folder)
    return folder.parent


@pytest.fixture
def installed(package, monkeypatch):
    monkeypatch.syspath_prepend(str(package))
    for name in ("NSC_CXX", "NSC_CXXFLAGS"):
        monkeypatch.delenv(name, raising=False)
    prebuilt._folder.cache_clear()
    yield
    prebuilt._folder.cache_clear()


@needs_level
def test_a_library_is_found_by_its_source(installed, monkeypatch):
    """Who names a compiler or flags gets none."""
    source = nsc.compile("bitonic", 4).kernel.engine_sources["float32"]
    assert prebuilt.find("engine_logistic", source) is not None
    assert prebuilt.find("engine_logistic", source + "\n") is None
    assert LEVEL in prebuilt.description()
    for variable in ("NSC_CXX", "NSC_CXXFLAGS"):
        with monkeypatch.context() as named:
            named.setenv(variable, "g++ -O0")
            assert prebuilt.find("engine_logistic", source) is None


def test_without_the_package_nothing_is_found():
    source = nsc.compile("bitonic", 4).kernel.engine_sources["float32"]
    assert prebuilt.find("engine_logistic", source) is None
    assert prebuilt.description() is None


def test_levels_are_those_of_the_compiler():
    """Linux and the compiler name these instructions alike; a level has those of the levels behind it."""
    alike = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx", "avx2", "bmi2", "f16c", "fma"}
    platform, levels = prebuilding.PLATFORMS["manylinux_2_17_x86_64"], prebuilt.LEVELS["x86_64"]
    has: set[str] = set()
    for level, needs in reversed(levels.items()):
        has |= needs
        toolchain = cross_toolchain(platform.target, level, platform.system)
        command = (*toolchain.command, "-dM", "-E", "-x", "c++", os.devnull)
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        macros = {line.split()[1] for line in lines if line.startswith("#define ")}
        assert alike & {macro.strip("_").lower() for macro in macros} == alike & has
    v4, v3 = levels.values()
    assert prebuilt.best_level("x86_64", v3) == "x86_64_v3"
    assert prebuilt.best_level("x86_64", {*v3, *v4}) == "x86_64_v4"
    assert prebuilt.best_level("x86_64", v3 - {"fma"}) is None
    assert prebuilt.best_level("aarch64", ()) == "generic"
    assert prebuilt.best_level("riscv64", ()) is None


def test_what_is_prebuilt_is_what_calls_run():
    texts = {source for _, source in prebuilding.sources()}
    kernels = [nsc.compile("bitonic", 4, relaxation=name, dtypes=tuple(REALS)).kernel for name in SIGMOIDS]
    kernels.append(DiffSortNet("bitonic", 4)._operator(torch.zeros(1, 4)).kernel)
    for kernel in kernels:
        assert set(Kernel(kernel.files).engine_sources.values()) <= texts


@needs_level
@pytest.mark.skipif(not shutil.which("readelf"), reason="no binutils")
def test_libraries_ask_for_the_c_library_of_2014_at_most(package):
    for path in (package / prebuilt.PACKAGE).glob("*.so"):
        listed = subprocess.run(["readelf", "-V", path], capture_output=True, text=True, check=True).stdout
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)", listed)
        assert versions
        assert all((int(major), int(minor)) <= (2, 17) for major, minor in versions)
