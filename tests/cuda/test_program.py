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

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """What each check found, run by a process whose libcuda is driver.cpp."""
    folder = tmp_path_factory.mktemp("driven")
    library = folder / "libcuda.so.1"
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, HERE / "driver.cpp", "-o", library], check=True)
    done = subprocess.run(
        [sys.executable, HERE / "driven.py", folder],
        capture_output=True,
        text=True,
        env=os.environ | {"LD_LIBRARY_PATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a driver of its own")
@pytest.mark.parametrize("check", CHECKS)
def test_with_the_driver(check, problems):
    assert problems[check] is None, problems[check]
