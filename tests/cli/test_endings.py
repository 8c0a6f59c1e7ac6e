"""Builds and proofs that fail, are interrupted, are killed or run out of time leave nothing behind."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import paths, process, start


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


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_proof_leaves_nothing_behind(ending):
    running = start("optimize", "pairwise", "--n", 200, "-o", "small.json")
    time.sleep(3)  # the proof still runs: no method settles this network within the 20 s of SAT
    assert running.poll() is None
    signal_time = time.monotonic()
    os.killpg(running.pid, ending)
    out, err = running.communicate(timeout=30)
    assert time.monotonic() - signal_time < 5
    assert running.returncode == (130 if ending == signal.SIGINT else -ending)
    assert (out, paths()) == ("", [])
    assert "Traceback" not in err


def test_a_time_limit_ends_a_proof_with_nothing_written():
    start = time.monotonic()
    result = process("optimize", "pairwise", "--n", 200, "-o", "small.json", "--time-limit", 1)
    assert (result.returncode, result.stdout, paths()) == (3, "", [])
    assert "unproved" in result.stderr
    assert time.monotonic() - start < 15


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "line",
    [
        *["verify bitonic --n 4", "verify two.txt", "compile odd_even --n 3", "list", "--help"],
        *["show bitonic --n 4", "list --top-k 1 --n 4 --json", "convert two.txt -", "--version"],
        "optimize bitonic --n 4 -o out.json",
    ],
)
def test_output_that_cannot_be_written_is_no_refutation(line):
    """Exit code 1 would say that the network does not sort."""
    Path("two.txt").write_text("[(0,1)]", encoding="utf-8")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "nsc", *line.split()]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
        assert (result.returncode, result.stderr) == (
            2,
            "nsc: cannot write the output: No space left on device\n",
        )
    if line == "verify two.txt":
        with open("/dev/full", "w") as full:
            assert subprocess.run(command, stdout=full, stderr=full, timeout=120).returncode == 2


@pytest.mark.parametrize("module", ["nsc.cli", "click", "numpy", "rich.console", "nsc.runtime.kernel"])
@pytest.mark.parametrize("ignored", [False, True])
def test_an_interrupt_during_the_imports_is_clean(module, ignored):
    text = f"""
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN if {ignored} else signal.default_int_handler)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["nsc", "--version"]
runpy.run_module("nsc", run_name="__main__")
"""
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    if ignored:
        assert (result.returncode, result.stderr) == (0, "")
    else:
        assert (result.returncode, result.stdout, result.stderr) == (130, "", "nsc: interrupted\n")
