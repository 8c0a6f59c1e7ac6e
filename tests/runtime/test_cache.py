"""Toolchains and the build cache, and their errors with compilers, folders and processes."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from pathlib import Path

import pytest

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.errors import BuildError, ToolchainError
from nsc.runtime.build import cache, toolchain
from nsc.runtime.build.texts import Texts
from nsc.runtime.relaxed.kernel import Kernel

pytestmark = pytest.mark.slow("caches are damaged, and built anew")

ROOT = Path(__file__).parents[2]

USE = """
import sys, warnings, torch, nsc
op = nsc.compile("odd_even", 3, name=sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    values = op.sort(torch.tensor([3.0, 1.0, 2.0]), 1e6)
    values = op.sort(torch.tensor([3.0, 1.0, 2.0]), 1e6)
print(values.tolist(), op.kernel.library() is not None, [str(w.message) for w in caught])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Set an empty build cache for one test, and return its folder."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("NSC_CXX", "CXX", "NSC_CXXFLAGS"):
        monkeypatch.delenv(name, raising=False)
    cache._warn_folder.cache_clear()
    return tmp_path / "cache"


def kernel(n=3, **options):
    request = Request(network="odd_even", n=n, version=nsc.__version__, **options)
    return Kernel(compile_network(request).package.files)


def tiny():
    """Build a library of one function, which takes a moment."""
    source = 'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }'
    return cache.build("tiny", source, toolchain.find_toolchain(), nsc.__version__)


def start(script, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def finish(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out


def counting_compiler(tmp_path, before="", after=""):
    """Return a compiler that writes a line for each library it builds."""
    script = tmp_path / "counting-c++"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *.cpp*) echo built >> {tmp_path}/count; {before} ;; esac\n'
        f'g++ "$@" -O0 || exit $?\ncase "$*" in *.cpp*) {after or ":"} ;; esac\n'
    )
    script.chmod(0o755)
    return script


def builds(tmp_path):
    path = tmp_path / "count"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_second_build_is_a_hit_and_leaves_nothing_behind(folder):
    first, second = tiny(), tiny()
    assert (first.cached, second.cached) == (False, True)
    assert first.binary == second.binary
    assert first.command[-1] == str(first.binary)
    endings = sorted(path.suffix for path in folder.iterdir())
    assert [e for e in endings if e != ".lock"] == [".cpp", ".json", ".so"]


def test_the_key_covers_source_version_command_and_instruction_set(folder, monkeypatch):
    native = toolchain.find_toolchain()
    assert native.instruction_set, "the compiler resolves -march=native"
    builds = [
        ("int x;", native, "1"),
        (
            "int x;",
            toolchain.Toolchain((*native.command, "-DX"), native.version, native.instruction_set),
            "1",
        ),
        ("int x;", toolchain.Toolchain(native.command, native.version + "1", native.instruction_set), "1"),
        (
            "int x;",
            toolchain.Toolchain(native.command, native.version, native.instruction_set + "-mfma4"),
            "1",
        ),
        ("int y;", native, "1"),
        ("int x;", native, "2"),
    ]
    first = [cache.build("k", source, compiler, version) for source, compiler, version in builds]
    assert not any(artifact.cached for artifact in first)
    assert len({artifact.binary for artifact in first}) == len(builds)
    second = [cache.build("k", source, compiler, version) for source, compiler, version in builds]
    assert all(artifact.cached for artifact in second)
    assert [artifact.binary for artifact in second] == [artifact.binary for artifact in first]


def test_no_fast_math():
    command = " ".join(toolchain.find_toolchain().command)
    for flag in ("fast-math", "Ofast", "funsafe", "ffinite", "fassociative", "freciprocal"):
        assert flag not in command


def test_two_processes_at_once_build_once(folder, tmp_path):
    compiler = counting_compiler(tmp_path, before="sleep 1")
    running = [start(USE, "twice", NSC_CXX=str(compiler)) for _ in range(2)]
    outputs = {finish(process) for process in running}
    assert outputs == {"[1.0, 2.0, 3.0] True []\n"}
    assert builds(tmp_path) == 1


def test_a_killed_build_is_built_again_and_swept_up(folder, tmp_path):
    slow = counting_compiler(tmp_path, before="sleep 60")
    process = start(USE, "killed", NSC_CXX=str(slow))
    deadline = time.monotonic() + 60
    while builds(tmp_path) == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert builds(tmp_path) == 1
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list(folder.glob("*.so"))
    leftovers = [path for path in folder.iterdir() if path.is_dir()]
    assert leftovers
    slow.write_text(slow.read_text().replace("sleep 60", ":"))
    assert finish(start(USE, "killed", NSC_CXX=str(slow))).startswith("[1.0, 2.0, 3.0] True")
    assert not [path for path in leftovers if path.exists()]
    assert builds(tmp_path) == 2


@pytest.mark.parametrize("damage", ["truncate", "corrupt", "empty", "no record", "bad record", "deep record"])
def test_a_damaged_entry_is_built_again(folder, damage):
    library = tiny().binary
    record = library.with_suffix(".json")
    whole = library.read_bytes()
    if damage == "truncate":
        library.write_bytes(whole[: len(whole) // 2])
    elif damage == "corrupt":
        library.write_bytes(whole[:4000] + bytes(255 - b for b in whole[4000:4064]) + whole[4064:])
    elif damage == "empty":
        library.write_bytes(b"")
    elif damage == "no record":
        record.unlink()
    else:
        record.write_text("[]" if damage == "bad record" else "[" * 100_000)
    rebuilt = tiny()
    assert not rebuilt.cached
    assert rebuilt.binary == library
    assert tiny().cached
    assert ctypes.CDLL(str(library)).answer() == 42


READ_ONLY = """
import os, sys, warnings
import filelock
from pathlib import Path
from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain

toolchain = find_toolchain()
# Root may write everywhere, so root becomes nobody, after all imports.
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
folder = Path(os.environ["NSC_CACHE_DIR"])
folder.mkdir(mode=0o700)
try:
    for source, mode in (("int x;", 0o700), ("int x;", 0o500), ("int y;", 0o500), ("int y;", 0o500)):
        folder.chmod(mode)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            artifact = cache.build("k", source, toolchain, "1")
        print(artifact.cached, folder in artifact.binary.parents, *[w.message for w in caught])
finally:
    folder.chmod(0o700)
    import shutil
    shutil.rmtree(folder)
"""


def test_a_read_only_cache_folder_serves_hits_and_warns_once_without_one():
    folder = Path(tempfile.gettempdir()) / f"nsc-read-only-{os.getpid()}"
    lines = finish(start(READ_ONLY, NSC_CACHE_DIR=str(folder), HOME=str(folder))).splitlines()
    assert lines[0] == "False True"
    assert lines[1] == "True True"
    assert lines[2].startswith("False False nsc: the build cache")
    assert "NSC_CACHE_DIR" in lines[2]
    assert lines[3] == "True False"


def test_a_cache_folder_that_cannot_be_created(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="NSC_CACHE_DIR"):
        artifact = tiny()
    assert artifact.binary.is_file()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tiny().cached


def test_a_cache_folder_that_others_may_write_to_is_not_trusted(folder):
    tiny()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"others may write to .*cache: chmod 700 "):
        artifact = tiny()
    assert folder not in artifact.binary.parents


def test_files_are_their_owners_alone_whatever_the_umask(folder):
    """Other users' rights are those of the folder's files, of whatever kind, and of the folder."""
    folder.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        tiny()
        Texts("1").write("proof", "text")
    finally:
        os.umask(before)
    files = [*folder.iterdir()]
    assert {path.suffix for path in files} == {".cpp", ".so", ".json", ".lock"}
    assert [path.name for path in files if path.stat().st_mode & 0o077] == []


WHY = {
    "group": "others may write to",
    "world": "others may write to",
    "owner": "belongs to user 12345, and this process to user 0; it is not used, but made anew",
    "link": "is a link",
}


@pytest.mark.parametrize("change", WHY)
@pytest.mark.parametrize("suffix", [".so", ".json"])
def test_a_file_that_another_may_have_written_is_built_again(folder, tmp_path, suffix, change):
    path = tiny().binary.with_suffix(suffix)
    if change == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif change == "owner":
        if os.getuid() != 0:
            pytest.skip("only root gives files away")
        os.chown(path, 12345, -1)
    else:
        path.chmod(0o620 if change == "group" else 0o602)
    with pytest.warns(RuntimeWarning, match=WHY[change]) as lines:
        assert not tiny().cached
    assert len(lines) == 1
    assert tiny().cached
    status = path.lstat()
    assert (status.st_uid, status.st_mode & 0o077) == (os.getuid(), 0)


def test_a_named_compiler_that_is_missing(folder, monkeypatch):
    monkeypatch.setenv("NSC_CXX", "/nonexistent/c++")
    with pytest.raises(ToolchainError, match="NSC_CXX is '/nonexistent/c"):
        kernel().build()


@pytest.mark.parametrize("body", ["exit 1", "kill -9 $$", 'case "$*" in *.cpp*) exit 3;; esac; g++ "$@"'])
def test_a_failing_compiler_is_an_error_with_command_and_log(folder, tmp_path, monkeypatch, body):
    script = tmp_path / "failing"
    script.write_text(f"#!/bin/sh\necho unhappy >&2\n{body}\n")
    script.chmod(0o755)
    monkeypatch.setenv("NSC_CXX", str(script))
    with pytest.raises(BuildError, match="compiler") as caught:
        kernel().build()
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

    chosen = lambda: toolchain.find_toolchain().command[0]  # noqa: E731
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
    command = toolchain.find_toolchain().command
    assert (command[0], command[-1]) == (str(tmp_path / "bin" / "g++"), "-pipe")
    monkeypatch.setenv("NSC_CXX", clang)
    assert chosen() == clang
    toolchain._find.cache_clear()


WITHOUT = """
import sys, warnings, torch, nsc
op = nsc.compile("bitonic", 4)
x = torch.tensor([[3.0, 1.0, 2.0, 0.0]], requires_grad=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    values, P = op.sort_with_permutation(x, 20.0)
    values.square().sum().backward()
    loss = op.cross_entropy(x, torch.tensor([[3, 1, 2, 0]]))
    hard = op.hard_sort(x)[1]
    try:
        op.cross_entropy(x, torch.tensor([[0, 0, 0, 0]]))
    except nsc.OperandError as error:
        print(error)
ours = [str(w.message) for w in caught if "nsc" in str(w.message)]
print(len(ours), *ours)
print(op.kernel.library() is None, values.tolist(), P.sum().item(), x.grad.tolist())
print(op.kernel.library() is None, loss.item(), hard.tolist())
"""


def test_without_a_compiler_the_reference_serves_with_one_warning(folder, tmp_path):
    hide = "import sys; sys.modules['ziglang'] = None\n"
    empty = tmp_path / "bin"
    empty.mkdir()
    error, warning, *reference_lines = finish(start(hide + WITHOUT, PATH=str(empty))).splitlines()
    assert "each rank" in error
    assert warning.startswith("1 nsc: no C++ compiler found")
    assert "pip install ziglang" in warning
    _, no_warning, *kernel_lines = finish(start(WITHOUT, NSC_CXX="c++ -O0")).splitlines()
    assert no_warning == "0"
    for plain, compiled in zip(reference_lines, kernel_lines, strict=True):
        assert plain.startswith("True")
        assert compiled.startswith("False")
        ours, theirs = (list(map(float, re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", x))) for x in (plain, compiled))
        assert len(ours) > 4
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-4)


@pytest.mark.nightly("another compiler builds a whole kernel")
def test_ziglang_is_tried_before_the_reference(folder, tmp_path):
    """And what it has built serves the next process."""
    pytest.importorskip("ziglang", reason="the extra `compiler` is not installed")
    empty = tmp_path / "bin"
    empty.mkdir()
    for _ in range(2):
        output = finish(start(USE, "zig", PATH=str(empty), NSC_CXXFLAGS="-O0"))
        assert output == "[1.0, 2.0, 3.0] True []\n"
    assert len(list(folder.glob("*.so"))) == 1


IDENTITY = """
from nsc.runtime.build.toolchain import find_toolchain
print(find_toolchain().identity)
"""


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
        identities.add(finish(start(IDENTITY)))
    (identity,) = identities
    assert compiler in identity
    assert "avx2" in identity.lower() or platform.machine() != "x86_64"


def test_a_library_that_cannot_be_loaded_is_an_error(folder, monkeypatch):
    monkeypatch.setenv("NSC_CXXFLAGS", "-O0")
    library = kernel().build().binary
    record = library.with_suffix(".json")
    library.write_bytes(b"no library")
    record.write_text(json.dumps({"sha256": hashlib.sha256(library.read_bytes()).hexdigest()}))
    with pytest.raises(BuildError, match="cannot load"):
        kernel().own_library()


def test_a_home_folder_in_the_cache_variable_is_found(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NSC_CACHE_DIR", "~/x/kernels")
    monkeypatch.chdir(tmp_path)
    assert tiny().binary.parent == tmp_path / "x" / "kernels"
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize("variable", ["CXX", "NSC_CXX"])
def test_a_compiler_that_refuses_a_flag_is_quoted(folder, variable, monkeypatch):
    monkeypatch.setenv(variable, "g++ -Wfoo")
    with pytest.raises(BuildError, match=r"ended with 1: g\+\+: error: unrecognized .* .-Wfoo.$"):
        tiny()


@pytest.mark.parametrize("compiler", ["c++", "c++ -O3", "ziglang"])
def test_more_flags_come_last_and_make_another_library(folder, compiler, tmp_path, monkeypatch):
    if compiler == "ziglang":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv("NSC_CXX", compiler)
    plain = tiny()
    monkeypatch.setenv("NSC_CXXFLAGS", "-O1 -DNAME='two words'")
    other = tiny()
    assert toolchain.find_toolchain().command == (*plain.command[:-3], "-O1", "-DNAME=two words")
    assert not other.cached
    assert other.binary != plain.binary
    assert tiny().cached


def test_more_flags_that_cannot_be_used_are_named(folder, monkeypatch):
    monkeypatch.setenv("NSC_CXXFLAGS", "-O1 -Wfoo")
    with pytest.raises(
        BuildError, match=r"ended with 1: (.|\n)*NSC_CXXFLAGS, '-O1 -Wfoo': correct or unset it"
    ):
        tiny()
    monkeypatch.setenv("NSC_CXXFLAGS", "-O1 'x")
    with pytest.raises(ToolchainError, match=r"NSC_CXXFLAGS is .*: correct or unset it"):
        tiny()
