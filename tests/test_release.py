"""Catches archives that differ from build to build, or a check before a release that sees nothing."""

from __future__ import annotations

import importlib
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from copies import ROOMS, copy_project

from nsc.join.prebuilding import PLATFORMS
from nsc.runtime.build.prebuilt import LEVELS

ROOT = Path(__file__).parents[1]
TREE = (
    *ROOMS,
    *("tools", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", ".gitignore"),
)


@pytest.fixture
def release(monkeypatch, tmp_path):
    """Return tools/release.py of a copy of the project."""
    copy_project(TREE, tmp_path)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.org")
    monkeypatch.syspath_prepend(str(tmp_path / "tools"))
    module = importlib.import_module("release")
    assert tmp_path == module.ROOT
    module.run("git", "init", "--quiet")
    commit(module)
    yield module
    del sys.modules["release"]


def commit(release, *changes):
    for file, old, new in changes:
        text = (release.ROOT / file).read_text("utf-8")
        assert old in text
        (release.ROOT / file).write_text(text.replace(old, new, 1), "utf-8")
    release.run("git", "add", "--all")
    release.run("git", "commit", "--quiet", "--message", "A commit")


def not_ok(check):
    """Return why a check fails."""
    with pytest.raises(sys.modules["release"].NotOkError) as error:
        check()
    return str(error.value)


@pytest.mark.nightly("archives are built")
def test_the_archives_are_the_same_bytes_each_time(release):
    release.build()
    sdist, wheel = sorted(release.DIST.iterdir(), key=lambda file: file.suffix)
    before = sdist.read_bytes(), wheel.read_bytes()
    for file in release.ROOT.rglob("*.py"):
        os.utime(file, (0, 0))
        file.chmod(0o600)
    release.build()
    assert (sdist.read_bytes(), wheel.read_bytes()) == before
    with tarfile.open(sdist) as archive:
        assert f"sortnets-{release.version()}/CHANGELOG.md" in archive.getnames()
        assert all(member.isfile() for member in archive)
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "__pycache__" in name]


@pytest.mark.nightly("archives are built")
def test_an_sdist_that_is_not_whole_is_refused(release):
    commit(release, ("pyproject.toml", 'only-include = ["nsc", ', 'only-include = ["nsc/version.py", '))
    assert "from its sdist" in not_ok(release.build)
    assert not release.DIST.exists()


def test_each_file_says_the_same_of_the_version(release):
    assert release.one_version() == release.version()
    commit(release, ("CITATION.cff", f"\nversion: {release.version()}", "\nversion: 9.9"))
    assert "CITATION.cff says 9.9" in not_ok(release.one_version)
    commit(release, ("nsc/version.py", release.version(), "9.9"))
    assert "CHANGELOG.md says" in not_ok(release.one_version)


def test_a_release_has_a_date_and_says_that_it_is_one(release):
    version = release.version()
    for heading in (f"{version} (unreleased)", version, f"{version} (soon)"):
        (release.ROOT / "CHANGELOG.md").write_text(f"# Changelog\n\n## {heading}\n", "utf-8")
        assert heading in not_ok(release.date)
    (release.ROOT / "CHANGELOG.md").write_text(f"# Changelog\n\n## {version} (2026-01-31)\n", "utf-8")
    assert release.date() == f"{version} (2026-01-31)"
    readme = release.ROOT / "README.md"
    readme.write_text("Version 0.1.0 is not\nreleased.", "utf-8")
    assert "README.md" in not_ok(release.said_to_be_released)
    readme.write_text("Version 0.1.0.", "utf-8")
    assert release.said_to_be_released()


def test_a_tag_is_of_one_commit(release):
    assert "free" in release.tag()
    assert release.clean_tree()
    release.run("git", "tag", f"v{release.version()}")
    assert release.tag()
    (release.ROOT / "README.md").write_text("Changed", "utf-8")
    assert not_ok(release.clean_tree).startswith("1 file")
    commit(release)
    assert "raise the version" in not_ok(release.tag)


@pytest.mark.nightly("kernels are built for each platform, twice")
def test_the_wheels_of_prebuilt_kernels(release):
    commit(release, ("nsc/join/prebuilding.py", "for real in REALS]", 'for real in ["float32"]][-1:]'))
    built = []
    for _ in range(2):
        release.kernels()
        built.append(
            {wheel.name: wheel.read_bytes() for wheel in release.DIST.glob("sortnets_kernels-*.whl")}
        )
    assert built[0] == built[1]
    assert len(built[0]) == len(PLATFORMS)
    for name in built[0]:
        with zipfile.ZipFile(release.DIST / name) as archive:
            names = archive.namelist()
            (metadata,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
            (tags,) = (archive.read(name).decode() for name in names if name.endswith("/WHEEL"))
        tag = name.removesuffix(".whl").rpartition("-")[2]
        libraries = [Path(name) for name in names if "engine" in name]
        assert {path.name.partition("-")[0] for path in libraries} == {"engine_cauchy"}
        assert {path.suffix for path in libraries} == {PLATFORMS[tag].system.suffix}
        assert len(libraries) == len(LEVELS[PLATFORMS[tag].machine])
        assert f"Requires-Dist: sortnets=={release.version()}" in metadata
        assert "Root-Is-Purelib: false" in tags
        assert f"Tag: py3-none-{tag}\n" in tags
