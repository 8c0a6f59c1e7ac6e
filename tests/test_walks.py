"""The files that warm calls pass through stand in DESIGN.md's tables, in their order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import nsc
import nsc.numpy

ROOT = Path(__file__).parents[1]


def listed_files(call):
    """Return the files of the table below a call in DESIGN.md."""
    text = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
    section = re.search(rf"^`{re.escape(call)}`.*?\n\n(.*?)\n\n", text, re.DOTALL | re.MULTILINE)
    assert section, f"DESIGN.md has no walk of {call}"
    return re.findall(r"^\| `([^`]+)`", section[1], re.MULTILINE)


def walk(call):
    """Return the project's files that a call passes through, each where it first comes."""
    codes = {}

    def note(frame, event, argument):
        if event == "call":
            codes[frame.f_code.co_filename] = None

    call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    paths = [Path(name).resolve() for name in codes if not name.startswith("<")]
    rooms = ("nsc", "compiler", "runtime", "study")
    files = [path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT)]
    return [file.as_posix() for file in files if file.parts[0] in rooms]


def cross_entropy():
    op, x = nsc.compile("bitonic", 4), torch.randn(3, 4, requires_grad=True)
    ranks = x.detach().argsort(-1).argsort(-1)
    return lambda: op.cross_entropy(x, ranks)


def median():
    array = np.random.default_rng(0).random((5000, 9))
    return lambda: nsc.numpy.median(array, axis=-1)


@pytest.mark.parametrize(
    ("call", "program"),
    [("op.cross_entropy(x, ranks)", cross_entropy), ("nsc.numpy.median(array, axis=-1)", median)],
)
@pytest.mark.usefixtures("kernels")
def test_warm_calls_walk_as_designed(call, program, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # nobody says how many threads
    monkeypatch.delitem(sys.modules, "torch.distributed.tensor", raising=False)  # nobody has DTensors
    assert walk(program()) == listed_files(call)


@pytest.mark.slow("processes load torch")
def test_layers_load_without_the_tracer_of_torch():
    code = "import sys, nsc.compat, nsc.nn; sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
