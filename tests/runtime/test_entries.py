"""Entries of the build cache: what they are, when they were used, and removal beside other processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nsc
from nsc.errors import BuildError
from nsc.runtime.build import cache
from nsc.runtime.build.entries import clear, entries_of
from nsc.runtime.build.loading import opened, used
from nsc.runtime.build.texts import Texts
from nsc.runtime.build.toolchain import find_toolchain

ANSWER = 'extern "C" __attribute__((visibility("default"))) int answer() { return %d; }'
HOUR = 3600


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Set an empty build cache for one test, and return its folder."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def tiny(number=42, name="tiny"):
    return cache.build(name, ANSWER % number, find_toolchain(), nsc.__version__)


def start(line, **environment):
    """Start a process that runs a line with the names of this file."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    return subprocess.Popen(
        [sys.executable, "-c", f"from test_entries import *\n{line}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def finish(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out


def listed(folder):
    return {entry.what: entry.kind for entry in entries_of(folder)[0]}


def left(folder):
    return [path.name for path in folder.iterdir() if path.suffix != ".lock"]


def test_each_file_is_of_an_entry_or_named(folder):
    assert entries_of(folder) == ([], [])
    assert clear(folder).entries == 0
    tiny()
    Texts("1.0").write(f"proof-16-{'0' * 24}", "text")
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
        "killed": "unfinished",
        "bitonic_4_forward": "CUDA binary",
    }
    assert [path.name for path in others] == ["pictures-0123.npz"]
    sizes = {entry.what: entry.size for entry in entries}
    assert sizes["proof-16"] == 4
    assert sizes["bitonic_4_forward"] == 2002
    assert sizes["killed"] >= 1000
    cleared = clear(folder)
    assert (cleared.entries, cleared.size, cleared.kept) == (4, sum(sizes.values()), ())
    assert left(folder) == ["pictures-0123.npz"]
    again = clear(folder)
    assert (again.entries, again.size) == (0, 0)
    assert not tiny().cached


def test_the_last_use_is_that_of_a_hit(folder):
    """Of a library and of a text: what was used since is not removed."""
    texts = Texts("1.0")
    texts.write(f"proof-2-{'0' * 24}", "old")
    texts.write(f"proof-3-{'1' * 24}", "used")
    tiny(1, "old"), tiny(2, "used")
    long_ago = time.time() - 48 * HOUR
    for path in folder.iterdir():
        os.utime(path, (long_ago, long_ago))
    assert all(entry.used == pytest.approx(long_ago) for entry in entries_of(folder)[0])
    assert tiny(2, "used").cached
    assert texts.read(f"proof-3-{'1' * 24}") == "used"
    assert clear(folder, 3).entries == 0
    assert clear(folder, 1).entries == 2
    assert listed(folder) == {"used": "library", "proof-3": "proof"}
    assert tiny(2, "used").cached


@pytest.mark.slow("a build is waited for")
def test_what_a_process_builds_is_kept(folder, tmp_path):
    script = tmp_path / "slow-c++"
    begun = tmp_path / "begun"
    script.write_text(f'#!/bin/sh\ncase "$*" in *.cpp*) touch {begun}; sleep 2;; esac\nexec g++ "$@"\n')
    script.chmod(0o755)
    tiny()
    building = start("print(used(tiny, opened).answer())", NSC_CXX=str(script))
    while not begun.exists():
        assert building.poll() is None
        time.sleep(0.02)
    cleared = clear(folder)
    assert ([entry.what for entry in cleared.kept], cleared.entries) == (["tiny"], 1)
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
        removed += clear(folder).entries
    assert [finish(process) for process in running] == [f"{list(range(8))}\n"] * 2
    assert removed > 0
    clear(folder)
    assert left(folder) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
def test_in_the_folder_of_another_user_nothing_is_removed(folder):
    tiny()
    os.chown(folder, 12345, -1)
    with pytest.raises(BuildError, match=r"nothing is removed: .* belongs to user 12345"):
        clear(folder)
    assert listed(folder) == {"tiny": "library"}


def test_a_link_is_removed_and_not_what_it_leads_to(folder, tmp_path):
    tiny()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    for name in (f".tiny-{'0' * 24}.abcd", f"tiny-{'1' * 24}.so"):
        (folder / name).symlink_to(tmp_path / "precious")
    assert clear(folder).entries == 3
    assert left(folder) == []
    assert (tmp_path / "precious" / "file").read_text() == "mine"


def test_a_folder_that_is_none(folder):
    folder.write_text("a file")
    with pytest.raises(BuildError, match=f"cannot read {folder}: Not a directory"):
        entries_of(folder)
