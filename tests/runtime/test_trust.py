"""Who may have written what is loaded: files, folders, links, and folders above, planted by other users."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

import pytest

import nsc
from nsc.runtime.build import cache, trust
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.build.trust import UntrustedError, check_folder, read_trusted, resolved

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")

STRANGER = 12345


def answering(number):
    return f'extern "C" __attribute__((visibility("default"))) int answer() {{ return {number}; }}'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Set an empty build cache for one test, and return its folder."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    cache._warn_folder.cache_clear()
    return tmp_path / "cache"


def built():
    return cache.build("trusted", answering(42), find_toolchain(), nsc.__version__)


def made(path, rights, owner=None):
    path.mkdir(exist_ok=True)
    path.chmod(rights)
    if owner is not None:
        os.chown(path, owner, -1)
    return path


@as_root
def test_a_library_of_another_user_is_never_loaded(folder, tmp_path):
    """Its record fits it, and its name is that of the library that is asked for."""
    library = built().binary
    toolchain = find_toolchain()
    (tmp_path / "evil.cpp").write_text(answering(13))
    toolchain.compile(tmp_path / "evil.cpp", tmp_path / "evil.so")
    os.replace(tmp_path / "evil.so", library)
    record = library.with_suffix(".json")
    record.write_text(json.dumps({"sha256": hashlib.sha256(library.read_bytes()).hexdigest()}))
    assert built().cached  # as this user's own it would be taken
    os.chown(library, STRANGER, -1)
    with pytest.warns(RuntimeWarning, match=f"{library} belongs to user {STRANGER}"):
        assert cache.binary_of(library.name) is None
    artifact = built()  # the warning came before
    assert (artifact.cached, artifact.binary) == (False, library)
    assert ctypes.CDLL(str(library)).answer() == 42


@as_root
def test_a_folder_of_another_user_is_left_alone(folder):
    library = built().binary
    os.chown(folder, STRANGER, -1)
    before = sorted(folder.iterdir())
    with pytest.warns(RuntimeWarning, match=f"belongs to user {STRANGER}.*Set NSC_CACHE_DIR"):
        artifact = built()
    assert artifact.binary.name == library.name
    assert folder not in artifact.binary.parents
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
    assert resolved(folder) == own
    artifact = built()
    folder.unlink()
    folder.symlink_to(foreign)
    assert artifact.binary.parent == own
    with pytest.warns(RuntimeWarning, match=f"the build cache {foreign} cannot be used"):
        assert foreign not in built().binary.parents
    assert [*foreign.iterdir()] == []


def test_what_is_no_plain_file(tmp_path):
    """A pipe does not make a process wait, and nothing stays open."""
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    opened = len(os.listdir("/proc/self/fd"))
    start = time.monotonic()
    for name, why in (("link", "a link"), ("pipe", "no plain file"), ("folder", "no plain file")):
        with pytest.raises(UntrustedError, match=f"{name} is {why}"):
            read_trusted(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_trusted(tmp_path / "none")
    assert read_trusted(tmp_path / "file") == b"text"
    assert time.monotonic() - start < 5
    assert len(os.listdir("/proc/self/fd")) == opened


AS_ANOTHER_USER = """
import os, sys, warnings
import filelock  # while this process may read it
from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain

toolchain = find_toolchain()
os.setgid(23456)
os.setuid(23456)
for source in sys.argv[1:]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        artifact = cache.build("trusted", source, toolchain, "0")
    print(artifact.cached, artifact.binary.parent, *(str(line.message) for line in caught))
"""


@as_root
@pytest.mark.slow("a process builds")
def test_roots_files_are_taken_by_all_who_may_read_them(monkeypatch):
    """As from a cache that an administrator filled. What is not there is built elsewhere."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        monkeypatch.setenv("NSC_CACHE_DIR", folder)
        artifact = cache.build("trusted", answering(42), find_toolchain(), "0")
        for path in (folder, artifact.binary, artifact.binary.with_suffix(".json")):
            os.chmod(path, 0o755)
        done = subprocess.run(
            [sys.executable, "-c", AS_ANOTHER_USER, answering(42), answering(43)],
            capture_output=True,
            text=True,
            timeout=240,
        )
    assert done.returncode == 0, done.stderr
    hit, miss = done.stdout.splitlines()
    assert hit == f"True {folder}"
    assert miss.startswith("False ")
    assert f"the build cache {folder} cannot be used" in miss


def test_where_files_have_no_owners_nothing_is_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "_HAS_OWNERS", False)
    place = made(tmp_path / "place", 0o777)
    check_folder(place)
    (place / "file").write_text("text")
    (place / "file").chmod(0o666)
    assert read_trusted(place / "file") == b"text"
