"""Kernels loaded and launched by CuPy, with a driver that runs them on the CPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a driver of its own")
def test_kernels_are_launched_as_the_driver_wants_it(tmp_path):
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
    *right, foreign, refused = done.stdout.splitlines()
    assert right == ["right", "right in a thread"]
    assert re.match("the manifest of bitonic_64.*are not of one package", foreign)
    assert refused.startswith("the driver does not load")
