"""The headers of the library for a GPU: each compiles by itself in the emulation."""

from __future__ import annotations

import re
import subprocess

import pytest
from emulated import COMMAND, HEADER, SHARED

from nsc import library
from nsc.contract.launch import LANE_BYTES

NAMES = [
    path.relative_to(library.FOLDER).as_posix() for path in sorted(library.FOLDER.glob("nsc/**/cuda/*.h"))
]


def compiled(text):
    """Return what the compiler says of a text."""
    command = [*COMMAND, "-fsyntax-only", "-include", str(HEADER), "-xc++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120).stderr


@pytest.mark.slow("the emulation is compiled with each header")
@pytest.mark.parametrize("name", NAMES)
def test_each_header_stands_alone(name):
    # emulation.h has the declaration of the shared memory.
    assert compiled(library.expanded(f"#include <{name}>\n").replace(SHARED, "")) == ""


def test_a_header_that_lacks_another_is_refused():
    text = (library.FOLDER / "nsc/relaxed/cuda/tile.h").read_text(encoding="utf-8")
    assert "error" in compiled(re.sub("#include.*\n|#pragma once\n", "", text))


def test_a_lane_has_as_many_bytes_as_launches_count_with():
    text = (library.FOLDER / "nsc/relaxed/cuda/columns.h").read_text(encoding="utf-8")
    assert f"constexpr int32_t lane_bytes = {LANE_BYTES};\n" in text
