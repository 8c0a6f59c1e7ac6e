"""Catches what only Linux has and macOS would meet. What macOS answers is put in the place of Linux's."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_cache import folder as _folder

from nsc import library
from nsc.compiler.driver import compile_network
from nsc.compiler.package import write
from nsc.compiler.request import Request
from nsc.errors import BuildError, LoweringError, ToolchainError
from nsc.runtime.build import cache, entries, prebuilt, system, toolchain
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.devices import pool, threads

folder = _folder
INTEL = """machdep.cpu.brand_string: Intel(R) Core(TM) i7-8559U CPU @ 2.70GHz
machdep.cpu.features: FPU SSE SSE2 SSE3 SSSE3 FMA CX16 SSE4.1 SSE4.2 MOVBE POPCNT AES XSAVE AVX1.0 RDRAND F16C
machdep.cpu.leaf7_features: RDWRFSGS BMI1 AVX2 SMEP BMI2 ERMS INVPCID RDSEED ADX SMAP CLFSOPT
machdep.cpu.extfeatures: SYSCALL XD 1GBPAGE EM64T LAHF LZCNT PREFETCHW RDTSCP TSCI
"""
APPLE = "machdep.cpu.brand_string: Apple M1\n"


@pytest.fixture
def macos(monkeypatch):
    """Let the project believe that this is macOS on an Apple M1, where no command of the system is there."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setattr("platform.mac_ver", lambda: ("14.5", ("", "", ""), "arm64"))
    monkeypatch.setattr(system, "_printed", lambda *command: "")
    monkeypatch.delattr(os, "sched_getaffinity")
    _forget()
    yield monkeypatch
    monkeypatch.undo()
    _forget()


def _forget():
    for known in (system.processor, system._has_tools_of_macos, prebuilt.level_here, toolchain._find):
        known.cache_clear()


@pytest.fixture
def compiler(macos, tmp_path):
    """Have ziglang for macOS as the compiler that a user names."""
    pytest.importorskip("ziglang", reason="the extra `compiler` is not installed")
    script = tmp_path / "clang++"
    command = f"{sys.executable} -m ziglang c++ -target aarch64-macos -nostdlib -lc"
    # ziglang takes native for this machine, which is no Mac.
    script.write_text(f'#!/bin/sh\nexec {command} $(echo "$@" | sed s/-mcpu=native/-mcpu=generic/)\n')
    script.chmod(0o755)
    macos.setenv("NSC_CXX", str(script))
    macos.chdir(tmp_path)  # asked for its version, it leaves an object file there


@pytest.mark.slow("a library is built")
def test_a_library_of_macos_is_built_kept_and_listed(folder, compiler):
    source = 'extern "C" __attribute__((visibility("default"))) int one() { return 1; }\n'
    built = cache.build("one", source, find_toolchain())
    assert built.binary.suffix == ".dylib"
    assert built.binary.read_bytes()[:4] == b"\xcf\xfa\xed\xfe"
    assert f"@rpath/{built.binary.name}".encode() in built.binary.read_bytes()
    assert "-mcpu=native" in built.command
    assert "14.5" in find_toolchain().identity
    assert cache.build("one", source, find_toolchain()).cached
    (entry,) = entries.entries_of(folder)[0]
    assert (entry.what, entry.kind) == ("one", "library")
    with pytest.raises(BuildError, match=r"cannot load .*dylib"):  # by Linux
        cache.opened(built.binary)


def test_compilers_of_macos_are_there_with_its_tools_alone(macos, tmp_path):
    """Without them /usr/bin/c++ opens a window that offers them, and fails."""
    macos.setitem(sys.modules, "ziglang", None)
    macos.setattr("importlib.util.find_spec", lambda name: None)
    for variable in ("NSC_CXX", "CXX"):
        macos.delenv(variable, raising=False)
    macos.setenv("PATH", "/usr/bin")
    with pytest.raises(ToolchainError, match=r"g\+\+.* Run xcode-select --install, or pip install ziglang"):
        find_toolchain()
    other = tmp_path / "c++"
    other.write_text("#!/bin/sh\necho clang version 19\n")
    other.chmod(0o755)
    macos.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin")
    assert find_toolchain().command[0] == str(other)
    macos.setattr(system, "_printed", lambda *command: "/Library/Developer/CommandLineTools\n")
    _forget()
    macos.setenv("PATH", f"/usr/bin{os.pathsep}{tmp_path}")
    assert Path(find_toolchain().command[0]).parent == Path("/usr/bin")


@pytest.mark.parametrize(
    ("machine", "said", "level"),
    [
        ("arm64", APPLE, "generic"),
        ("x86_64", INTEL, "x86_64_v3"),
        ("x86_64", INTEL.replace("AVX1.0 ", "").replace(" AVX2", ""), None),  # as Rosetta has it
        ("x86_64", "", None),
    ],
)
def test_a_processor_of_macos_has_its_level(macos, machine, said, level):
    macos.setattr("platform.machine", lambda: machine)
    macos.setattr(system, "_printed", lambda *command: said)
    assert prebuilt.level_here() == level
    assert said in system.processor()


def test_an_unknown_system_is_taken_for_linux(monkeypatch):
    monkeypatch.setattr(sys, "platform", "freebsd14")
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: (_ for _ in ()).throw(FileNotFoundError()))
    assert system.system().suffix == ".so"
    assert system.system().processor() == ""


def test_the_cache_lies_where_macos_keeps_caches(tmp_path):
    program = (
        "import sys; sys.platform = 'darwin'; from nsc.runtime.build.folder import made_folder; "
        "print(made_folder())"
    )
    said = {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=said, capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == tmp_path.resolve() / "Library" / "Caches" / "nsc"
    assert Path(done.stdout.strip()).is_dir()


def test_cores_are_counted(macos):
    assert threads.cores() == os.cpu_count()


def test_kernels_run_on_torchs_threads(macos, tmp_path):
    (tmp_path / "lib").mkdir()
    libtorch = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    (tmp_path / "lib" / "libtorch_cpu.dylib").symlink_to(libtorch)
    macos.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    found = pool.thread_pool.__wrapped__()
    assert found == ctypes.cast(ctypes.CDLL(str(libtorch)).torch_parallel_for, ctypes.c_void_p).value


def test_a_package_replaces_none_whose_name_differs_in_case(tmp_path, monkeypatch):
    package = compile_network(Request("bitonic", 4)).package
    place = write(package, tmp_path)
    # The file system of a Mac finds this folder as Bitonic_4 too.
    place.rename(tmp_path / "Bitonic_4")
    place.symlink_to(tmp_path / "Bitonic_4")
    listdir = os.listdir
    monkeypatch.setattr("os.listdir", lambda path: [name for name in listdir(path) if name != package.name])
    monkeypatch.setattr("nsc.compiler.package._holds", lambda *_: False)
    with pytest.raises(LoweringError, match=r"in case alone, .* choose another name"):
        write(package, tmp_path)
    assert library.FOLDER.is_dir()
