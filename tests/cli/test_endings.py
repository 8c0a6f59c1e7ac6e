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
MORE = pytest.mark.nightly("more commands are started and ended")


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


@pytest.mark.parametrize("ending", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=MORE)])
def test_an_ended_proof_leaves_nothing_behind(ending):
    running = start("optimize", "pairwise", "--n", 200, "--property", "median", "-o", "small.json")
    time.sleep(2)  # the proof still runs: no method settles this network within the 20 s of SAT
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
    words = "optimize", "pairwise", "--n", 200, "--property", "median", "-o", "small.json"
    out, err = call(*words, "--time-limit", 1, code=3)
    assert (out, paths()) == ("", [])
    assert "unproved" in err
    assert time.monotonic() - start < 15


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "line", ["verify two.txt", "--version", *(pytest.param(line, marks=MORE) for line in ("list", "--help"))]
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


# Python imports it before the program. At each import it makes a child of the process, which gets Ctrl-C.
AT_EVERY_IMPORT = """
import os, sys, _signal

_signal.signal(_signal.SIGINT, _signal.default_int_handler)
results = os.environ.pop("RESULTS", None)
mother, busy = os.getpid(), results is None

def interrupt(event, arguments):
    global busy
    if event != "import" or busy or os.getpid() != mother:
        return
    busy = True
    child = os.fork()
    if child == 0:
        printed = os.open(results + ".printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.kill(os.getpid(), _signal.SIGINT)
        return
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(results + ".printed") as printed, open(results, "a") as file:
        print(arguments[0], code, ascii(printed.read()), sep="\\t", file=file)
    busy = False

sys.addaudithook(interrupt)
"""


def test_an_interrupt_at_any_import_is_clean(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(AT_EVERY_IMPORT, encoding="utf-8")
    where = os.pathsep.join([str(tmp_path / "site"), str(Path(nsc.__file__).parents[1])])
    result = subprocess.run(
        [sys.executable, "-m", "nsc", "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": where, "RESULTS": str(tmp_path / "results")},
    )
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.split("\t") for line in (tmp_path / "results").read_text(encoding="utf-8").splitlines()]
    begun = next(place for place, (name, *_) in enumerate(lines) if name == "nsc.cli.main")
    assert len(lines) > begun + 200
    for line in lines[begun:]:
        assert line[1:] == ["130", "'nsc: interrupted\\n'"], line


def test_a_process_that_ignores_interrupts_continues_to_ignore_them():
    running = subprocess.Popen(
        [sys.executable, "-m", "nsc", "list", "--n", "4"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    for _ in range(20):
        running.send_signal(signal.SIGINT)
        time.sleep(0.03)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "")
    assert "odd_even" in out
