"""Kernels loaded and launched by CuPy, with a driver that runs them on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from driven import CHECKS

pytestmark = pytest.mark.slow("whole GPU programs run in the emulation")

HERE = Path(__file__).parent


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a driver of its own")
def test_with_a_driver(tmp_path):
    """The checks of driven.py, in one process: its libcuda is driver.cpp, and it builds its kernels once."""
    library = tmp_path / "libcuda.so.1"
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, HERE / "driver.cpp", "-o", library], check=True)
    done = subprocess.run(
        [sys.executable, HERE / "driven.py", tmp_path],
        capture_output=True,
        text=True,
        env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    tracebacks = json.loads(done.stdout.splitlines()[-1])
    assert set(tracebacks) == set(CHECKS)
    assert not any(tracebacks.values()), "\n".join(filter(None, tracebacks.values()))
