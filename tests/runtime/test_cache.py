"""Catches a damaged, half-written or planted file of the cache that is loaded, and a build that is lost."""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import json
import os
import signal
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
from nsc.runtime.build.cache import opened, used
from nsc.runtime.build.entries import clear, entries_of
from nsc.runtime.build.folder import UntrustedError, check_folder, read_trusted, user_folder
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
        "from nsc.runtime.build.cache import opened, used",
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


def builds(tmp_path):
    path = tmp_path / "count"
    return len(path.read_text().splitlines()) if path.exists() else 0


def wait_for_a_build(tmp_path, process):
    while not builds(tmp_path):
        assert process.poll() is None
        time.sleep(0.02)


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
    running = [start("print(used(tiny, opened).answer())", NSC_CXX=compiler) for _ in range(2)]
    assert {finish(process) for process in running} == {"42\n"}
    assert builds(tmp_path) == 1


@pytest.mark.slow("processes build")
def test_a_killed_build_is_built_again_and_swept_up(folder, tmp_path, monkeypatch):
    process = start("tiny()", NSC_CXX=slow_compiler(tmp_path, 60))
    wait_for_a_build(tmp_path, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list(folder.glob("*.so"))
    leftovers = [path for path in folder.iterdir() if path.is_dir()]
    assert leftovers
    monkeypatch.setenv("NSC_CXX", slow_compiler(tmp_path, 0))
    assert not tiny().cached
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


def test_a_library_that_cannot_be_loaded_is_an_error(folder):
    library = tiny().binary
    library.write_bytes(b"no library")
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    library.with_suffix(".json").write_text(json.dumps({"sha256": digest}))
    with pytest.raises(BuildError, match=r"cannot load .*set NSC_CACHE_DIR"):
        used(tiny, opened)


@pytest.mark.slow("a process builds")
@pytest.mark.parametrize(
    ("term", "is_shown"),
    [
        ("xterm-256color", True),
        pytest.param("dumb", False, marks=pytest.mark.nightly("more terminals see a build")),
    ],
)
def test_a_terminal_says_what_a_call_waits_for(term, is_shown, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CXX", slow_compiler(tmp_path, 2.5))
    code, printed, output = at_a_terminal([sys.executable, "-c", program("tiny(); print(42)")], term)
    assert (code, printed) == (0, b"42\n")
    text = f"nsc: building tiny, kept in {folder} …"
    assert output.decode() == (f"\r{text}\r{' ' * len(text)}\r" if is_shown else "")


READ_ONLY = """
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
            artifact = cache.build("k", source, toolchain)
        print(artifact.cached, folder in artifact.binary.parents, *[w.message for w in caught])
finally:
    folder.chmod(0o700)
    shutil.rmtree(folder)
"""


@pytest.mark.slow("a process builds")
def test_a_read_only_cache_folder_serves_hits_and_warns_once_without_one():
    folder = Path(tempfile.gettempdir()) / f"nsc-read-only-{os.getpid()}"
    process = start(READ_ONLY, NSC_CACHE_DIR=str(folder), HOME=str(folder))
    lines = finish(process).splitlines()
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
        os.chown(path, STRANGER, -1)
    else:
        path.chmod(0o620 if change == "group" else 0o602)
    with pytest.warns(RuntimeWarning, match=WHY[change]) as lines:
        assert cache.binary_of(path.with_suffix(".so").name) is None
    assert len(lines) == 1
    assert not tiny().cached  # the warning came before
    assert tiny().cached
    status = path.lstat()
    assert (status.st_uid, status.st_mode & 0o077) == (os.getuid(), 0)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_text_that_another_may_have_written_is_not_read(folder, mode):
    texts.write("name", "text")
    (file,) = folder.iterdir()
    file.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"others may write to .*name-.*\.json; it is not used, but made"):
        assert texts.read("name") is None
    file.chmod(0o600)
    assert texts.read("name") == "text"
    folder.chmod(mode | 0o500)
    assert texts.read("name") is None
    texts.write("later", "text")
    folder.chmod(0o700)
    assert texts.read("later") is None
    file.write_bytes(b"\xff\xfe")
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


@pytest.mark.parametrize(
    ("rights", "owner", "refusal"),
    [
        (0o755, None, None),
        pytest.param(0o755, STRANGER, None, marks=as_root),
        pytest.param(0o775, STRANGER, None, marks=as_root),
        (0o1777, None, None),
        pytest.param(0o1777, STRANGER, None, marks=as_root),
        (0o777, None, "everybody may rename what lies in {}: chmod"),
    ],
)
def test_folders_above(tmp_path, rights, owner, refusal):
    """A folder of this user's own lies in another, directly or below."""
    above = made(tmp_path / "above", rights, owner)
    for folder in (made(above / "own", 0o700), made(above / "own" / "below", 0o700)):
        if refusal is None:
            check_folder(folder)
        else:
            with pytest.raises(UntrustedError, match=refusal.format(above)):
                check_folder(folder)


@as_root
def test_a_folder_that_another_user_put_into_a_folder_of_everybody(tmp_path):
    above = made(tmp_path / "above", 0o1777)
    planted = made(above / "planted", 0o755, STRANGER)
    with pytest.raises(UntrustedError, match=f"{planted} belongs to user {STRANGER}"):
        check_folder(made(planted / "own", 0o700))


@as_root
def test_a_link_to_the_folder_is_resolved_once(folder, tmp_path):
    """Another user may turn the link elsewhere at any time."""
    own, foreign = made(tmp_path / "own", 0o700), made(tmp_path / "foreign", 0o700, STRANGER)
    folder.symlink_to(own)
    assert user_folder() == own
    artifact = tiny()
    folder.unlink()
    folder.symlink_to(foreign)
    assert artifact.binary.parent == own
    with pytest.warns(RuntimeWarning, match=f"the build cache {foreign} cannot be used"):
        assert foreign not in tiny().binary.parents
    assert [*foreign.iterdir()] == []


def test_what_is_no_plain_file(tmp_path):
    """A pipe does not make a process wait, and nothing stays open."""
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    open_ones = len(os.listdir("/proc/self/fd"))
    begin = time.monotonic()
    for name, why in (("link", "a link"), ("pipe", "no plain file"), ("folder", "no plain file")):
        with pytest.raises(UntrustedError, match=f"{name} is {why}"):
            read_trusted(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_trusted(tmp_path / "none")
    assert read_trusted(tmp_path / "file") == b"text"
    assert time.monotonic() - begin < 5
    assert len(os.listdir("/proc/self/fd")) == open_ones


AS_ANOTHER_USER = """
toolchain = find_toolchain()
os.setgid(23456)
os.setuid(23456)
for number in (42, 43):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        artifact = cache.build("tiny", ANSWER % number, toolchain)
    print(artifact.cached, artifact.binary.parent, *(str(line.message) for line in caught))
"""


@as_root
@pytest.mark.slow("a process builds")
def test_roots_files_are_taken_by_all_who_may_read_them(monkeypatch):
    """As from a cache that an administrator filled. What is not there is built elsewhere."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        monkeypatch.setenv("NSC_CACHE_DIR", folder)
        artifact = tiny()
        for path in (folder, artifact.binary, artifact.binary.with_suffix(".json")):
            os.chmod(path, 0o755)
        hit, miss = finish(start(AS_ANOTHER_USER)).splitlines()
    assert hit == f"True {folder}"
    assert miss.startswith("False ")
    assert f"the build cache {folder} cannot be used" in miss


def test_each_file_is_of_an_entry_or_named(folder):
    assert entries_of(folder) == ([], [])
    assert clear(folder) == ([], [])
    tiny()
    texts.write(f"proof-16-{'0' * 24}", "text")
    texts.write(f"task-{'0' * 24}", "text")
    killed = folder / f".killed-{'1' * 24}.abcd"
    killed.mkdir()
    (killed / "source.cpp").write_text("x" * 1000)
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
    sizes = {entry.what: entry.size for entry in entries}
    assert sizes["proof-16"] == 4
    assert sizes["bitonic_4_forward"] == 2002
    assert sizes["killed"] >= 1000
    assert clear(folder) == (entries, [])
    assert left(folder) == ["pictures-0123.npz"]
    assert clear(folder) == ([], [])
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
    assert clear(folder, 3) == ([], [])
    assert len(clear(folder, 1)[0]) == 2
    assert listed(folder) == {"used": "library", "proof-3": "proof"}
    assert tiny(2, "used").cached


@pytest.mark.slow("a build is waited for")
def test_what_a_process_builds_is_kept(folder, tmp_path):
    tiny()
    building = start("print(used(tiny, opened).answer())", NSC_CXX=slow_compiler(tmp_path, 2))
    wait_for_a_build(tmp_path, building)
    removed, kept = clear(folder)
    assert ([entry.what for entry in kept], len(removed)) == (["tiny"], 1)
    assert finish(building) == "42\n"
    assert listed(folder) == {"tiny": "library"}


def test_what_is_cleared_before_it_is_loaded_is_built_again(folder):
    built = []

    def build():
        built.append(tiny())
        if len(built) == 1:
            clear(folder)
        return built[-1]

    assert used(build, opened).answer() == 42
    assert [artifact.cached for artifact in built] == [False, False]
    with pytest.raises(BuildError, match=r"cannot load .*no_such_function"):
        used(build, lambda path: opened(path, "no_such_function"))
    assert len(built) == 3  # it is there, so it is not built again


@pytest.mark.slow("processes build and clear")
def test_processes_build_while_another_clears(folder):
    """They build the same libraries at the same time, and each loads every one."""
    running = [
        start("print([used(lambda: tiny(number), opened).answer() for number in range(8)])") for _ in range(2)
    ]
    removed = 0
    while any(process.poll() is None for process in running):
        removed += len(clear(folder)[0])
    assert [finish(process) for process in running] == [f"{list(range(8))}\n"] * 2
    assert removed > 0
    clear(folder)
    assert left(folder) == []


def test_a_link_is_removed_and_not_what_it_leads_to(folder, tmp_path):
    tiny()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    for name in (f".tiny-{'0' * 24}.abcd", f"tiny-{'1' * 24}.so"):
        (folder / name).symlink_to(tmp_path / "precious")
    assert len(clear(folder)[0]) == 3
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
        nsc.c_header(UNSORTED)


@as_root
def test_a_proof_of_another_user_is_found_anew(folder):
    """Its words are right, so nothing but its owner tells."""
    nsc.compile("odd_even", 5, name="kept")
    (file,) = folder.glob("proof-5-*")
    os.chown(file, STRANGER, -1)
    with pytest.warns(RuntimeWarning, match=WHY["owner"]):
        nsc.compile("odd_even", 5, name="found")
    assert file.stat().st_uid == 0


def test_operators_and_numpy_keep_their_proofs(folder):
    on_demand.exact_kernel.__wrapped__(5)
    assert len(list(folder.glob("proof-5-*.json"))) == 1
    on_demand.compiled_filter.__wrapped__(Window.of((1, 3)))
    assert list(folder.glob("proof-3-*.json"))
    assert budget_of().archive is None
