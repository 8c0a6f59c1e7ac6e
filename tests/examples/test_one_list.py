"""The example of a list that is spread over processes, run, killed and run again as its user does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("examples train")

pytest.importorskip("scipy")

ROOT = Path(__file__).parents[2]


def start(folder: Path) -> subprocess.Popen[str]:
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words += ["-m", "examples.one_list", "--items", "64", "--steps", "60", "--every", "5"]
    words += ["--folder", str(folder)]
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> list[str]:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out.splitlines()


def test_a_run_that_is_killed_goes_on_with_the_same_bits(tmp_path):
    whole = finished(start(tmp_path / "whole"))
    assert whole[-2].startswith("step 60: loss ")
    assert float(whole[-1].split()[-1]) > 0.8
    killed, folder = start(tmp_path / "killed"), tmp_path / "killed"
    while not list(folder.glob("*/.metadata")):
        assert killed.poll() is None
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    again = finished(start(folder))
    assert again[0].startswith("goes on from step ")
    assert again[1:] == whole[-len(again) + 1 :]
