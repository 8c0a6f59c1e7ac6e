"""Catches a damaged, half-written or planted file of the cache that is loaded, and a build that is lost."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from terminal import at_a_terminal

import nsc
from nsc.cli.main import main
from nsc.compiler.passes import canonical
from nsc.compiler.verify import saved, verify
from nsc.contract.windows import Window
from nsc.errors import BuildError, VerificationError
from nsc.join import on_demand
from nsc.join.budget import budget_of
from nsc.runtime.build import cache
from nsc.runtime.build import folder as texts
from nsc.runtime.build.cache import opened
from nsc.runtime.build.entries import clear, entries_of
from nsc.runtime.build.folder import UntrustedError, check_folder, user_folder
from nsc.runtime.build.toolchain import find_toolchain

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")

ANSWER = 'extern "C" __attribute__((visibility("default"))) int answer() { return %d; }'
STRANGER = 12345
HOUR = 3600


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Set an empty build cache for one test, and return its folder."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("NSC_CXX", "CXX", "NSC_CXXFLAGS"):
        monkeypatch.delenv(name, raising=False)
    cache._warn_folder.cache_clear()
    return tmp_path / "cache"


def tiny(number=42, name="tiny"):
    """Build a library of one function, which takes a moment."""
    return cache.build(name, ANSWER % number, find_toolchain())


def program(lines):
    """Return some lines with the names that they need; they do not import torch."""
    imports = (
        "import filelock, os, shutil, warnings",
        "from pathlib import Path",
        "from nsc.runtime.build import cache",
        "from nsc.runtime.build.cache import opened",
        "from nsc.runtime.build.toolchain import find_toolchain",
    )
    return "\n".join((*imports, f"ANSWER = {ANSWER!r}", inspect.getsource(tiny), lines))


def start(lines, **environment):
    """Start a process that runs some lines."""
    return subprocess.Popen(
        [sys.executable, "-c", program(lines)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def finish(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out


def slow_compiler(tmp_path, seconds):
    """Return a compiler that writes a line for each library it builds, and then waits."""
    script = tmp_path / "slow-c++"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *.cpp*) echo built >> {tmp_path}/count; sleep {seconds};; esac\n'
        'exec g++ "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


def listed(folder):
    return {entry.what: entry.kind for entry in entries_of(folder)[0]}


def left(folder):
    return [path.name for path in folder.iterdir() if path.suffix != ".lock"]


def made(path, rights, owner=None):
    path.mkdir(exist_ok=True)
    path.chmod(rights)
    if owner is not None:
        os.chown(path, owner, -1)
    return path


def test_a_second_build_is_a_hit_and_leaves_nothing_behind(folder):
    first, second = tiny(), tiny()
    assert (first.cached, second.cached) == (False, True)
    assert first.binary == second.binary
    assert first.command[-1] == str(first.binary)
    endings = sorted(path.suffix for path in folder.iterdir())
    assert [e for e in endings if e != ".lock"] == [".cpp", ".json", ".so"]


def test_the_key_covers_source_command_compiler_and_instruction_set(folder):
    native = find_toolchain()
    assert native.instruction_set, "the compiler resolves -march=native"
    asked = [
        ("int x;", native),
        ("int x;", replace(native, command=(*native.command, "-DX"))),
        ("int x;", replace(native, version=f"{native.version}1")),
        ("int x;", replace(native, instruction_set=f"{native.instruction_set}-mfma4")),
        ("int y;", native),
    ]
    first = [cache.build("k", source, compiler) for source, compiler in asked]
    assert not any(artifact.cached for artifact in first)
    assert len({artifact.binary for artifact in first}) == len(asked)
    second = [cache.build("k", source, compiler) for source, compiler in asked]
    assert [(each.binary, each.cached) for each in second] == [(each.binary, True) for each in first]


@pytest.mark.slow("processes build")
def test_two_processes_at_once_build_once(folder, tmp_path):
    compiler = slow_compiler(tmp_path, 1)
    running = [start("print(opened(tiny().binary).answer())", NSC_CXX=compiler) for _ in range(2)]
    assert {finish(process) for process in running} == {"42\n"}
    assert (tmp_path / "count").read_text() == "built\n"


@pytest.mark.parametrize("damage", ["truncated", "no record", "[]", "[" * 100_000])
def test_a_damaged_entry_is_built_again(folder, damage):
    library = tiny().binary
    record = library.with_suffix(".json")
    if damage == "truncated":
        library.write_bytes(library.read_bytes()[:-1])
    elif damage == "no record":
        record.unlink()
    else:
        record.write_text(damage)
    rebuilt = tiny()
    assert not rebuilt.cached
    assert rebuilt.binary == library
    assert tiny().cached
    assert opened(library, "answer").answer() == 42


def test_a_library_that_cannot_be_loaded_is_an_error(folder):
    library = tiny().binary
    with pytest.raises(BuildError, match=r"cannot load .*no_such_function"):
        opened(library, "no_such_function")
    (folder / "wrong.so").write_bytes(b"no library")
    with pytest.raises(BuildError, match=r"cannot load .*set NSC_CACHE_DIR"):
        opened(folder / "wrong.so")


@pytest.mark.slow("a process builds")
def test_a_terminal_says_what_a_call_waits_for(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CXX", slow_compiler(tmp_path, 2.5))
    code, printed, output = at_a_terminal([sys.executable, "-c", program("tiny(); print(42)")])
    assert (code, printed) == (0, b"42\n")
    text = f"nsc: building tiny, kept in {folder} …"
    assert output.decode() == f"\r{text}\r{' ' * len(text)}\r"


def test_a_read_only_folder_serves_hits_and_is_warned_of_once(folder, monkeypatch):
    tiny()
    plain = tempfile.TemporaryDirectory

    def refusing(*arguments, dir, **options):
        if dir == folder:
            raise PermissionError("Read-only file system")
        return plain(*arguments, dir=dir, **options)

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refusing)
    assert tiny().cached
    with pytest.warns(RuntimeWarning, match=r"nsc: the build cache .* cannot be used .*NSC_CACHE_DIR"):
        assert folder not in tiny(43).binary.parents
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tiny(43).cached


def test_a_cache_folder_that_cannot_be_created(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="NSC_CACHE_DIR"):
        assert tiny().binary.is_file()
    texts.write("name", "text")
    assert texts.read("name") is None


def test_a_home_folder_in_the_cache_variable_is_found(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NSC_CACHE_DIR", "~/x/kernels")
    monkeypatch.chdir(tmp_path)
    assert tiny().binary.parent == tmp_path / "x" / "kernels"
    assert not (tmp_path / "~").exists()


def test_files_are_their_owners_alone_whatever_the_umask(folder):
    """Other users' rights are those of the folder's files, of whatever kind, and of the folder."""
    before = os.umask(0)
    try:
        tiny()
        texts.write("proof", "first")
        texts.write("proof", "text ✓")
    finally:
        os.umask(before)
    assert texts.read("proof") == "text ✓"
    files = [*folder.iterdir()]
    assert {path.suffix for path in files} == {".cpp", ".so", ".json", ".lock"}
    assert [path.name for path in (folder, *files) if path.stat().st_mode & 0o077] == []


def test_texts_of_a_folder_to_which_others_may_write_are_not_read(folder):
    texts.write("name", "text")
    folder.chmod(0o702)
    assert texts.read("name") is None
    texts.write("later", "text")
    folder.chmod(0o700)
    assert (texts.read("name"), texts.read("later")) == ("text", None)
    next(folder.iterdir()).write_bytes(b"\xff\xfe")
    assert texts.read("name") is None


@as_root
def test_a_folder_of_another_user_is_left_alone(folder):
    library = tiny().binary
    os.chown(folder, STRANGER, -1)
    before = sorted(folder.iterdir())
    with pytest.warns(RuntimeWarning, match=f"belongs to user {STRANGER}.*Set NSC_CACHE_DIR"):
        artifact = tiny()
    assert artifact.binary.name == library.name
    assert folder not in artifact.binary.parents
    with pytest.raises(BuildError, match=rf"nothing is removed: .* belongs to user {STRANGER}"):
        clear(folder)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("rights", [0o770, 0o702, 0o1777])
def test_a_folder_to_which_others_may_write(folder, rights):
    with pytest.raises(UntrustedError, match=f"others may write to {folder}: chmod 700 {folder}"):
        check_folder(made(folder, rights))


@pytest.mark.parametrize(("rights", "is_taken"), [(0o775, True), (0o1777, True), (0o777, False)])
def test_folders_above(tmp_path, rights, is_taken):
    """A folder of this user's own lies in another, directly or below, which may be a stranger's."""
    for owner in (None, STRANGER) if os.getuid() == 0 else (None,):
        above = made(tmp_path / f"above_{owner}", rights, owner)
        for folder in (made(above / "own", 0o700), made(above / "own" / "below", 0o700)):
            if is_taken:
                check_folder(folder)
            else:
                with pytest.raises(UntrustedError, match=f"everybody may rename what lies in {above}: chmod"):
                    check_folder(folder)


@as_root
def test_a_folder_that_another_user_put_into_a_folder_of_everybody(tmp_path):
    above = made(tmp_path / "above", 0o1777)
    planted = made(above / "planted", 0o755, STRANGER)
    with pytest.raises(UntrustedError, match=f"{planted} belongs to user {STRANGER}"):
        check_folder(made(planted / "own", 0o700))


def test_a_link_to_the_folder_is_resolved_once(folder, tmp_path):
    """Another user may turn the link elsewhere at any time."""
    folder.symlink_to(made(tmp_path / "own", 0o700))
    assert user_folder() == tmp_path / "own"
    assert tiny().binary.parent == tmp_path / "own"


def test_roots_folders_are_taken_by_all(monkeypatch):
    """As from a cache that an administrator filled."""
    monkeypatch.setattr(os, "getuid", lambda: STRANGER)
    check_folder(Path("/usr"))


def test_each_file_is_of_an_entry_or_named(folder):
    assert entries_of(folder) == ([], [])
    assert clear(folder) == []
    tiny()
    texts.write(f"proof-16-{'0' * 24}", "text")
    texts.write(f"task-{'0' * 24}", "text")
    killed = folder / f".killed-{'1' * 24}.abcd"
    killed.mkdir()
    (killed / "source.cpp").write_text("x" * 1000)
    for path in (killed, killed / "source.cpp"):
        os.utime(path, (time.time() - 2 * HOUR,) * 2)
    (folder / f"bitonic_4_forward-{'2' * 24}.cubin").write_bytes(b"y" * 2000)
    (folder / f"bitonic_4_forward-{'2' * 24}.json").write_text("{}")
    (folder / "pictures-0123.npz").write_text("mine")
    entries, others = entries_of(folder)
    assert listed(folder) == {
        "tiny": "library",
        "proof-16": "proof",
        "task": "task",
        "killed": "unfinished",
        "bitonic_4_forward": "CUDA binary",
    }
    assert [path.name for path in others] == ["pictures-0123.npz"]
    assert entries[-1].what == "killed"
    sizes = {entry.what: entry.size for entry in entries}
    assert sizes["proof-16"] == 4
    assert sizes["bitonic_4_forward"] == 2002
    assert sizes["killed"] >= 1000
    assert clear(folder) == entries
    assert left(folder) == ["pictures-0123.npz"]
    assert clear(folder) == []
    assert not tiny().cached


def test_the_last_use_is_the_time_of_a_hit(folder):
    """What was used since is not removed, be it a library or a text."""
    texts.write(f"proof-2-{'0' * 24}", "old")
    texts.write(f"proof-3-{'1' * 24}", "used")
    tiny(1, "old"), tiny(2, "used")
    long_ago = time.time() - 48 * HOUR
    for path in folder.iterdir():
        os.utime(path, (long_ago, long_ago))
    assert all(entry.used == pytest.approx(long_ago) for entry in entries_of(folder)[0])
    assert tiny(2, "used").cached
    assert texts.read(f"proof-3-{'1' * 24}") == "used"
    assert clear(folder, 3) == []
    assert len(clear(folder, 1)) == 2
    assert listed(folder) == {"used": "library", "proof-3": "proof"}
    assert tiny(2, "used").cached


def test_a_build_that_may_go_on_is_kept(folder):
    building = folder / f".tiny-{'0' * 24}.abcd"
    building.mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    assert (clear(folder), left(folder)) == ([], [building.name])
    os.utime(building, (time.time() - 2 * HOUR,) * 2)
    assert len(clear(folder)) == 1
    assert left(folder) == []


def test_a_link_is_removed_and_not_what_it_leads_to(folder, tmp_path):
    tiny()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    for name in (f".tiny-{'0' * 24}.abcd", f"tiny-{'1' * 24}.so"):
        (folder / name).symlink_to(tmp_path / "precious")
        os.utime(folder / name, (0, 0), follow_symlinks=False)
    assert len(clear(folder)) == 3
    assert left(folder) == []
    assert (tmp_path / "precious" / "file").read_text() == "mine"


def test_a_folder_that_is_none(folder):
    folder.write_text("a file")
    with pytest.raises(BuildError, match=f"cannot read {folder}: Not a directory"):
        entries_of(folder)


UNSORTED = nsc.Network.from_layers(3, [[(0, 1)], [(1, 2)]])


def test_who_asks_for_a_proof_gets_a_new_one(folder, monkeypatch, tmp_path, capsys):
    """A false proof is planted: operators take it, as they would take a planted library."""
    truth = replace(verify(nsc.network("best", 3)), canonical=canonical(UNSORTED).digest)
    with monkeypatch.context() as patch:
        patch.setattr(saved, "verify", lambda *asked: truth)
        nsc.compile(UNSORTED, name="planted")
    nsc.compile(UNSORTED, name="taken")
    assert not nsc.verify(UNSORTED)
    file = tmp_path / "unsorted.txt"
    file.write_text("0:1\n1:2\n")
    for command in ("verify", "compile", "optimize"):
        with pytest.raises(SystemExit) as ended:
            main([command, str(file), "--n", "3"])
        assert ended.value.code == 1
        assert "sort" in "".join(capsys.readouterr())
    with pytest.raises(VerificationError):
        nsc.emit("c", UNSORTED)


def test_operators_and_numpy_keep_their_proofs(folder):
    on_demand.exact_kernel.__wrapped__(5)
    assert len(list(folder.glob("proof-5-*.json"))) == 1
    on_demand.compiled_filter.__wrapped__(Window.of((1, 3)))
    assert list(folder.glob("proof-3-*.json"))
    assert budget_of().archive is None
