"""Commands that fail, are interrupted or run out of time, and leave files or a wrong exit code."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import call, paths, process, start

import nsc

pytestmark = pytest.mark.slow("commands are started and ended")


def script(text):
    """Write a compiler that runs `text` to build a library, and the real compiler otherwise."""
    path = Path("compiler.sh").resolve()
    path.write_text(f'#!/bin/sh\ncase "$*" in *.so) {text} ;; *) exec c++ "$@" ;; esac\n', encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_compiler_that_fails_shows_its_command_and_log(tmp_path):
    compiler = script('echo "out of luck" >&2; exit 7')
    cache = tmp_path / "cache"
    result = process("compile", "bitonic", "--n", 4, NSC_CXX=str(compiler), NSC_CACHE_DIR=str(cache))
    assert (result.returncode, result.stdout, paths()) == (2, "", ["compiler.sh"])
    for part in ("exit code 7", "out of luck", f"command: {compiler}", "-std=c++17"):
        assert part in result.stderr
    assert "Traceback" not in result.stderr
    assert not [path for path in cache.iterdir() if path.suffix != ".lock"]


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    compiler, cache = script("touch started; sleep 30"), tmp_path / "cache"
    running = start("compile", "bitonic", "--n", 4, NSC_CXX=str(compiler), NSC_CACHE_DIR=str(cache))
    try:
        while not Path("started").exists():
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        out, err = running.communicate(timeout=30)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130  # 1 would say that the network does not sort
    assert out == ""
    assert "Traceback" not in err
    assert paths() == ["compiler.sh", "started"]
    assert not [path for path in cache.iterdir() if path.suffix != ".lock"]


def test_an_interrupted_proof_leaves_nothing_behind():
    running = start("optimize", "pairwise", "--n", 200, "--property", "median", "-o", "small.json")
    time.sleep(2)  # the proof still runs: no method settles this network within the 20 s of SAT
    assert running.poll() is None
    signal_time = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert time.monotonic() - signal_time < 5
    assert running.returncode == 130
    assert (out, paths()) == ("", [])
    assert "Traceback" not in err


def test_a_time_limit_ends_a_proof_with_nothing_written():
    start = time.monotonic()
    words = "optimize", "pairwise", "--n", 200, "--property", "median", "-o", "small.json"
    out, err = call(*words, "--time-limit", 1, code=3)
    assert (out, paths()) == ("", [])
    assert "unproved" in err
    assert time.monotonic() - start < 15


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_that_cannot_be_written_is_no_refutation():
    """Exit code 1 would say that the network does not sort."""
    Path("two.txt").write_text("[(0,1)]", encoding="utf-8")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "nsc", "verify", "two.txt"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (
        2,
        "nsc: cannot write the output: No space left on device\n",
    )


# Python imports it before the program. Ctrl-C comes when the program imports a module.
AT_AN_IMPORT = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
module = os.environ.pop("MODULE")

def interrupt(event, arguments):
    if event == "import" and arguments[0] == module:
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
"""


@pytest.mark.parametrize("module", ["nsc.cli.main", "numpy.linalg"])
def test_an_interrupt_at_an_import_is_clean(module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(AT_AN_IMPORT, encoding="utf-8")
    where = os.pathsep.join([str(tmp_path), str(Path(nsc.__file__).parents[1])])
    result = process("--version", PYTHONPATH=where, MODULE=module)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "nsc: interrupted\n")
