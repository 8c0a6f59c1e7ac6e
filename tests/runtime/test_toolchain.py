"""Catches another compiler or other flags than a user asked for, or a failure that is not named."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_cache import folder as _folder
from test_cache import tiny

import nsc
from nsc.errors import BuildError, ToolchainError
from nsc.runtime.build import toolchain
from nsc.runtime.build.toolchain import find_toolchain

pytestmark = pytest.mark.slow("compilers are called")

ROOT = Path(__file__).parents[2]
folder = _folder


def run(script, *arguments, **environment):
    """Return what a process prints that runs a script."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_fast_math():
    command = " ".join(find_toolchain().command)
    for flag in ("fast-math", "Ofast", "funsafe", "ffinite", "fassociative", "freciprocal"):
        assert flag not in command


def test_a_named_compiler_that_is_missing(folder, monkeypatch):
    monkeypatch.setenv("NSC_CXX", "/nonexistent/c++")
    with pytest.raises(ToolchainError, match="NSC_CXX is '/nonexistent/c"):
        tiny()


@pytest.mark.parametrize("body", ["kill -9 $$", 'case "$*" in *.cpp*) exit 3;; esac; g++ "$@"'])
def test_a_failing_compiler_is_an_error_with_command_and_log(folder, tmp_path, monkeypatch, body):
    script = tmp_path / "failing"
    script.write_text(f"#!/bin/sh\necho unhappy >&2\n{body}\n")
    script.chmod(0o755)
    monkeypatch.setenv("NSC_CXX", str(script))
    with pytest.raises(
        BuildError, match=r"the compiler failed with exit code -?\d.\ncommand: .*\nunhappy"
    ) as caught:
        tiny()
    assert str(script) in caught.value.command
    assert "unhappy" in caught.value.log
    assert not list(folder.glob("*.so")) if folder.exists() else True


def test_order_of_compilers(folder, tmp_path, monkeypatch):
    real = shutil.which("g++")

    def program(name):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
        path.chmod(0o755)
        return str(path)

    chosen = lambda: find_toolchain().command[0]  # noqa: E731
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    clang = program("clang++")
    monkeypatch.setattr(
        toolchain.shutil, "which", lambda p, which=shutil.which: which(p, path=str(tmp_path / "bin"))
    )
    assert chosen() == clang
    for name in ("g++", "c++"):
        path = program(name)
        toolchain._find.cache_clear()
        assert chosen() == path
    monkeypatch.setenv("CXX", "g++ -pipe")
    command = find_toolchain().command
    assert (command[0], command[-1]) == (str(tmp_path / "bin" / "g++"), "-pipe")
    monkeypatch.setenv("NSC_CXX", clang)
    assert chosen() == clang
    toolchain._find.cache_clear()


CALLS = """
def calls(op):
    x = torch.tensor([[3.0, 1.0, 2.0, 0.0]], requires_grad=True)
    values, P = op.sort_with_permutation(x, 20.0)
    values.square().sum().backward()
    loss, hard = op.cross_entropy(x, torch.tensor([[3, 1, 2, 0]])), op.hard_sort(x)[1]
    return [*values[0].tolist(), P.sum().item(), *x.grad[0].tolist(), loss.item(), *hard[0].tolist()]
"""
WITHOUT = f"""
import sys, warnings
sys.modules["ziglang"] = None
import torch, nsc
{CALLS}
op = nsc.compile("bitonic", 4)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    numbers = calls(op)
    try:
        op.cross_entropy(torch.ones(1, 4), torch.tensor([[0, 0, 0, 0]]))
    except nsc.OperandError as error:
        print(error)
print(op.kernel.library().functions, *(line.message for line in caught if "nsc" in str(line.message)))
print(*numbers)
"""


def test_without_a_compiler_the_reference_serves_with_one_warning(folder, tmp_path, cache):
    error, warning, numbers = run(WITHOUT, PATH=str(tmp_path)).splitlines()
    assert "each rank" in error
    assert warning.startswith("{'float32': None} nsc: no C++ compiler found")
    assert warning.count("pip install ziglang") == 1
    names = {"torch": torch}
    exec(CALLS, names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSC_CACHE_DIR", str(cache))
        patch.setenv("NSC_CXXFLAGS", "-O0")
        op = nsc.compile("bitonic", 4)
        expected = names["calls"](op)
        assert op.kernel.library().functions["float32"] is not None
    assert [*map(float, numbers.split())] == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("compiler", ["c++", "ziglang"])
def test_a_key_depends_on_no_process_and_no_working_folder(compiler, tmp_path, monkeypatch):
    """The commands that a compiler runs in turn name temporary files and the working folder."""
    if compiler == "ziglang":
        pytest.importorskip("ziglang", reason="the extra `compiler` is not installed")
        monkeypatch.setenv("PATH", str(tmp_path))
    identities = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        toolchain._find.cache_clear()
        identities.add(find_toolchain().identity)
    (identity,) = identities
    assert compiler in identity[0]
    assert "avx2" in identity[2].lower() or platform.machine() != "x86_64"


def test_a_compiler_that_refuses_a_flag_is_quoted(folder, monkeypatch):
    monkeypatch.setenv("CXX", "g++ -Wfoo")
    with pytest.raises(
        BuildError, match=r"exit code 1.\ncommand: .*\ng\+\+: error: unrecognized .* .-Wfoo.$"
    ):
        tiny()


def test_more_flags_come_last_and_make_another_library(folder, monkeypatch):
    monkeypatch.setenv("NSC_CXX", "c++ -O3")
    plain = tiny()
    monkeypatch.setenv("NSC_CXXFLAGS", "-O1 -DNAME='two words'")
    other = tiny()
    assert find_toolchain().command == (*plain.command[:-3], "-O1", "-DNAME=two words")
    assert not other.cached
    assert other.binary != plain.binary
    assert tiny().cached


def test_more_flags_that_cannot_be_used_are_named(folder, monkeypatch):
    monkeypatch.setenv("NSC_CXXFLAGS", "-O1 -Wfoo")
    with pytest.raises(
        BuildError, match=r"exit code 1.(.|\n)*NSC_CXXFLAGS, '-O1 -Wfoo': correct or unset it"
    ):
        tiny()
    monkeypatch.setenv("NSC_CXXFLAGS", "-O1 'x")
    with pytest.raises(ToolchainError, match=r"NSC_CXXFLAGS is .*: correct or unset it"):
        tiny()
