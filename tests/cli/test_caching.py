"""nsc cache: entries that are not listed, or files that are removed and are not nsc's."""

import os
import time

import pytest
from commands import call, check_refused

from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Set an empty build cache, and return its folder."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def build(name):
    cache.build(name, "int x;", find_toolchain())


def test_the_cache_is_looked_at_and_cleared(place):
    assert call("cache", "where") == (f"{place}\n", "")
    assert call("cache", "list") == ("", "")
    assert call("cache", "size") == ("0 entries, 0 bytes\n", "")
    build("bitonic_4")
    build("median_3x3_float32")
    (place / "mine.txt").write_text("mine")
    old = next(place.glob("median*.json"))
    for path in place.glob("median*"):
        os.utime(path, (0, 0))
    sizes = {path.stem.split("-")[0]: 0 for path in place.glob("*.json")}
    for path in place.glob("*-*"):
        sizes[path.name.split("-")[0]] += path.stat().st_size
    out, err = call("cache", "list")
    assert [line.split() for line in out.splitlines()] == [
        ["bitonic_4", "library", *shown(sizes["bitonic_4"]), *day(time.time())],
        ["median_3x3_float32", "library", *shown(sizes["median_3x3_float32"]), *day(0)],
    ]
    assert err == f"nsc: note: {place / 'mine.txt'} is not nsc's\n"
    assert call("cache", "size")[0] == f"2 entries, {' '.join(shown(sum(sizes.values())))}\n"
    kept = f"kept {place / 'mine.txt'}: it is not nsc's\n"
    freed = " ".join(shown(sizes["median_3x3_float32"]))
    assert call("cache", "clear", "--older-than", 1) == (f"removed 1 entry, which frees {freed}\n{kept}", "")
    assert not old.exists()
    freed = " ".join(shown(sizes["bitonic_4"]))
    assert call("cache", "clear") == (f"removed 1 entry, which frees {freed}\n{kept}", "")
    assert call("cache", "clear") == (f"removed 0 entries, which frees 0 bytes\n{kept}", "")


def shown(size):
    return [f"{size / 1000:.1f}", "kB"]


def day(seconds):
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)).split()


def test_wrong_words_are_refused(place):
    for line in ("cache empty", "cache list x", "cache clear --older-than x", "cache where --all"):
        check_refused(line.split())
    check_refused(["cache", "clear", "--older-than", "-1"])
    place.write_text("a file")
    check_refused(["cache", "list"])
