"""The headers of exact kernels and of filters, each by itself, in C++."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from nsc import library

HERE = Path(__file__).parent
FLAGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{library.FOLDER}")
CUDA_FLAGS = ("-D__CUDACC__", "-Wno-unknown-pragmas")
# Headers that need a device: tests/cuda/test_exact.py runs them in the emulation.
EMULATED = {"nsc/exact/cuda/kernel.h"}


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("exact", ("-march=native",)),
        ("exact", ()),
        ("windows", ("-march=native",)),
        ("windows", ()),
        ("exact_cuda", CUDA_FLAGS),
    ],
)
def test_headers(program, options, tmp_path):
    """The widest registers of this machine, and the narrowest; the program says which lines are wrong."""
    binary = tmp_path / program
    command = ["g++", *FLAGS, *options, HERE / f"{program}.cpp", "-o", binary]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([binary], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_each_header_has_a_test():
    texts = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("*.cpp"))
    tested = set(re.findall("#include <(.*)>", texts))
    headers = {
        path.relative_to(library.FOLDER).as_posix()
        for room in ("exact", "windows")
        for path in library.FOLDER.glob(f"nsc/{room}/**/*.h")
    }
    assert headers - tested == EMULATED
