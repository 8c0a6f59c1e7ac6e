"""The example of updates in files, run as its user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow("files of 130 MB are written"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the data of a process"),
]

ROOT = Path(__file__).parents[2]


def run(folder, *options):
    words = [sys.executable, "-m", "examples.updates", "--folder", str(folder), "--parameters", "3000000"]
    return subprocess.run([*words, *options], capture_output=True, text=True, timeout=120, cwd=ROOT)


def test_run_combines_files_in_less_memory_than_they_take(tmp_path):
    result = run(tmp_path, "--memory", "100")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "3,000,000 parameters, 0.13 GB of files" in result.stdout
    assert "in at most 100 MB of memory" in result.stdout
    assert float(re.search(r"median is (\S+) from what is right", result.stdout)[1]) < 0.5
    assert not [*tmp_path.iterdir()]


def test_the_limit_holds(tmp_path):
    result = run(tmp_path, "--memory", "10")
    assert result.returncode != 0
    assert "MemoryError" in result.stderr
