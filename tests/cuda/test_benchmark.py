"""The GPU benchmark's own checks and report; its timings need a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from device import EmulatedProgram

from benchmarks import gpu
from nsc.runtime import cuda

ROOT = Path(__file__).parents[2]
# What a machine may lack on which the benchmark must run.
ABSENT = ("rich", "platformdirs", "diffsort", "matplotlib", "sklearn", "mpmath")


@pytest.fixture
def emulated(monkeypatch, tmp_path):
    def emulate(edit=str):
        kernel = gpu.operator("odd_even", 4).kernel
        program = EmulatedProgram(kernel, tmp_path, edit=edit)
        monkeypatch.setattr(cuda, "program_of", lambda kernel, device: program)
        monkeypatch.setattr(gpu, "DEVICE", "cpu")

    return emulate


def test_right_kernels_pass_the_check(emulated):
    emulated()
    assert list(gpu.check("odd_even", 4)) == []


def test_wrong_kernels_do_not(emulated):
    emulated(lambda text: text.replace("product[c] = difference(a, b, half...)", "product[c] = a + b"))
    problems = list(gpu.check("odd_even", 4))
    assert any("permutation, gradient 0: off by" in problem for problem in problems)
    assert not any("values: off" in problem for problem in problems)


def test_without_a_gpu_it_says_so_and_imports_little(tmp_path):
    absent = "; ".join(f"sys.modules[{name!r}] = None" for name in ABSENT)
    program = f"import sys; {absent}; from benchmarks.gpu import main; main(['--out', {str(tmp_path)!r}])"
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "torch sees no CUDA device" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_report(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU (1 GB)")
    limits = gpu.Limits(4e12, 3e13)
    timings = [
        gpu.Timing(
            gpu.P_GRAD,
            16,
            1000,
            "nsc",
            1e-5,
            9e-6,
            2e-5,
            gpu.limit_seconds(gpu.P_GRAD, 16, 1000, limits) / 1e-5,
        ),
        gpu.Timing(gpu.P_GRAD, 16, 10, "indexed torch", 1e-5, 9e-6, 2e-5, None),
    ]
    data, report = gpu.write(tmp_path, limits, timings, 0.5)
    assert (data.name, report.name) == ("some_gpu_1_gb.json", "some_gpu_1_gb.md")
    assert json.loads(data.read_text())["timings"][1]["peer"] == "indexed torch"
    assert "| P + gradient | 16 | nsc | 1,000 | 10.0 | 9.0 – 20.0 | 6% |  |" in report.read_text()
    assert "| 10 | 1,000.0 | 900.0 – 2,000.0 |  | 100.0 |" in report.read_text()


def test_limits_grow_with_the_work():
    limits = gpu.Limits(4e12, 3e13)
    times = [gpu.limit_seconds(gpu.P_GRAD, n, 1, limits) for n in (4, 16, 64, 256, 1024)]
    assert times == sorted(times)
    assert gpu.limit_seconds(gpu.P, 64, 2, limits) == 2 * gpu.limit_seconds(gpu.P, 64, 1, limits)
    assert gpu.limit_seconds(gpu.P, 64, 1, limits) < gpu.limit_seconds(gpu.P_GRAD, 64, 1, limits)
