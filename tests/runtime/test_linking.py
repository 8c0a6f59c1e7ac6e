"""Catches a built kernel that needs more than the libraries of C and C++, such as libtorch."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract.windows import Window
from nsc.join.on_demand import exact_kernel
from nsc.runtime.exact.windows import FilterKernel
from nsc.runtime.relaxed.kernel import Kernel

pytestmark = pytest.mark.slow("kernels are built")

LIBRARIES = re.compile(r"(?:libc|libm|libgcc_s|libstdc\+\+|ld-linux[\w-]*)\.so\.\d")


def foreign(library):
    """Return the libraries that a library is linked with, beside the libraries of C and C++."""
    command = ["readelf", "-d", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"\(NEEDED\) .*\[(.*)\]", text)
    assert found
    return [name for name in found if not LIBRARIES.fullmatch(name)]


@pytest.fixture(scope="module")
def binaries(tmp_path_factory):
    """Build a kernel of each subject in an empty cache, and return its libraries by name."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSC_CACHE_DIR", str(folder))
        dtypes = ("float32", "float64")
        request = Request("bitonic", 8, version=nsc.__version__, dtypes=dtypes, name="relaxed")
        Kernel(compile_network(request).package.files).build()
        exact_kernel.__wrapped__(8).function("float32")
        FilterKernel(compile_filter(Window.of((3, 3)), version=nsc.__version__).source).build("uint8")
    return {path.name.split("-")[0]: path for path in folder.glob("*.so")}


@pytest.mark.skipif(not shutil.which("readelf"), reason="no binutils")
def test_a_kernel_needs_no_other_library(binaries):
    assert binaries.keys() == {"relaxed", "best_8_exact_float32", "median_3x3_uint8"}
    assert [name for path in binaries.values() for name in foreign(path)] == []


@pytest.mark.skipif(not shutil.which("readelf"), reason="no binutils")
def test_other_libraries_are_seen():
    assert "libtorch_cpu.so" in foreign(Path(torch.__file__).parent / "lib" / "libtorch.so")
