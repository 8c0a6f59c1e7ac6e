"""Build the archives of a release, and go through its check-list.

`python tools/release.py build` and `kernels` write dist/, `check` prints a line a check. Exit code: 0 if
nothing is not ok.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from nsc.join.prebuilding import PLATFORMS

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


class NotOkError(Exception):
    """What is wrong, and what to do, in one line."""


def run(*command: str | Path, cwd: Path = ROOT, umask: int = -1, **variables: str) -> str:
    """Run a command and return what it prints."""
    found = subprocess.run(
        command, cwd=cwd, umask=umask, env=os.environ | variables, capture_output=True, text=True
    )
    if found.returncode:
        printed = (found.stdout + found.stderr).strip().splitlines()
        raise NotOkError(f"{' '.join(map(str, command))}: {printed[-1] if printed else 'no output'}")
    return found.stdout.strip()


def build() -> str:
    """Write the sdist and the wheel of the last commit into dist/.

    Both are made twice: from the commit, and from the sdist with other rights of new files. So the same bytes
    say that the archives do not depend on the folder or the user, and that the sdist has all that it needs.
    """
    time = run("git", "log", "-1", "--format=%ct")
    with tempfile.TemporaryDirectory() as name:
        tree, out, again = (Path(name) / part for part in ("tree", "out", "again"))
        _export(tree)
        _hatch(tree, out, {"SOURCE_DATE_EPOCH": time}, umask=0o022)
        (sdist,) = out.glob("*.tar.gz")
        run("tar", "--extract", "--file", sdist, cwd=tree)
        _hatch(tree / sdist.name.removesuffix(".tar.gz"), again, {"SOURCE_DATE_EPOCH": time}, umask=0o077)
        built = {file.name: file.read_bytes() for file in out.iterdir()}
        differ = [file.name for file in again.iterdir() if file.read_bytes() != built.pop(file.name, None)]
        if differ or built:
            raise NotOkError(f"from its sdist another file is built: {', '.join([*differ, *built])}")
        DIST.mkdir(exist_ok=True)
        for old in DIST.iterdir():
            old.unlink()
        for file in out.iterdir():
            (DIST / file.name).write_bytes(file.read_bytes())
    return ", ".join(sorted(file.name for file in DIST.iterdir()))


def kernels() -> str:
    """Write the wheels of prebuilt kernels of the last commit into dist/, in about ten minutes."""
    DIST.mkdir(exist_ok=True)
    time = run("git", "log", "-1", "--format=%ct")
    for platform in PLATFORMS:
        with tempfile.TemporaryDirectory() as name:
            tree, out = Path(name) / "tree", Path(name) / "out"
            _export(tree)
            variables = {"SOURCE_DATE_EPOCH": time, "SORTNETS_PLATFORM": platform}
            _hatch(tree / "tools" / "kernels", out, variables, umask=0o022, target=("-t", "wheel"))
            (wheel,) = out.iterdir()
            (DIST / wheel.name).write_bytes(wheel.read_bytes())
    sizes = ((wheel.name, wheel.stat().st_size / 1e6) for wheel in sorted(DIST.glob("sortnets_kernels*")))
    return ", ".join(f"{name}, {size:.1f} MB" for name, size in sizes)


def _export(tree: Path) -> None:
    tree.mkdir()
    run("git", "archive", "--output", tree / "tree.tar", "HEAD")
    run("tar", "--extract", "--file", "tree.tar", cwd=tree)


def _hatch(
    tree: Path, out: Path, variables: dict[str, str], umask: int, target: tuple[str, ...] = ()
) -> None:
    command = (sys.executable, "-m", "hatchling", "build", "-d", str(out), *target)
    run(*command, cwd=tree, umask=umask, **variables)


def first(pattern: str, file: str) -> str:
    """Return what a group of a pattern first matches in a file."""
    found = re.search(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE)
    if not found:
        raise NotOkError(f"{file} has no line {pattern}")
    return found[1]


def version() -> str:
    return first(r'^VERSION = "(.*)"$', "nsc/version.py")


def clean_tree() -> str:
    if changed := run("git", "status", "--porcelain").splitlines():
        raise NotOkError(f"{len(changed)} files differ from the last commit: commit or remove them")
    return run("git", "log", "-1", "--format=%h %s")


def one_version() -> str:
    for file, pattern in (("CHANGELOG.md", r"^## (\S+)"), ("CITATION.cff", r"^version: (.*)$")):
        if (stated := first(pattern, file)) != version():
            raise NotOkError(f"{file} says {stated}, nsc/version.py {version()}")
    return version()


def date() -> str:
    found = first(r"^## (.*)$", "CHANGELOG.md")
    if not re.fullmatch(r"\S+ \(\d{4}-\d\d-\d\d\)", found):
        raise NotOkError(f'CHANGELOG.md says "{found}": write the day of the release, as (2026-01-31)')
    return found


def said_to_be_released() -> str:
    if re.search(r"is not\s+released", (ROOT / "README.md").read_text("utf-8")):
        raise NotOkError("README.md says that this version is not released")
    return "README.md does not say otherwise"


def tag() -> str:
    name = f"v{version()}"
    if run("git", "tag", "--list", name) and name not in run("git", "tag", "--points-at").splitlines():
        raise NotOkError(f"{name} is another commit: raise the version")
    return f"{name} is free, or is this commit"


def installs() -> str:
    """Install the wheel without PyTorch, which is the larger part, and ask it what it finds."""
    (wheel,) = DIST.glob("sortnets-*.whl")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "venv", folder)
        pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, wheel, cwd=folder)
        return f"nsc doctor: {run(folder / 'bin' / 'nsc', 'doctor', cwd=folder).splitlines()[-1]}"


# Files of tests, or one test of a file.
TESTS = {
    "links": "tests/test_docs.py::test_targets_of_links_exist",
    "goldens": "tests/compiler/test_render.py",
    "certificates": "tests/study/test_certificates.py::test_networks_that_were_found_are_certified",
}


def tests(selected: str) -> Callable[[], str]:
    """Return a check that tests pass."""
    return lambda: run(sys.executable, "-m", "pytest", "-q", selected).splitlines()[-1]


CHECKS: dict[str, Callable[[], str]] = {
    "clean tree": clean_tree,
    "version": one_version,
    "date": date,
    "README": said_to_be_released,
    "tag": tag,
    "archives": build,
    "kernels": kernels,
    "wheel": installs,
    **{name: tests(selected) for name, selected in TESTS.items()},
}


@click.group(help=__doc__)
def main() -> None: ...


@main.command("build")
def build_command() -> None:
    """Build the archives, twice, and compare them."""
    sys.exit(report({"archives": build}))


@main.command("kernels")
def kernels_command() -> None:
    """Build the wheels of prebuilt kernels, which takes what nsc requires and ziglang, but not PyTorch."""
    sys.exit(report({"kernels": kernels}))


@main.command("check")
def check_command() -> None:
    """Go through the check-list."""
    sys.exit(report(CHECKS))


def report(checks: dict[str, Callable[[], str]]) -> int:
    """Print a line a check; return the exit code."""
    code = 0
    for name, check in checks.items():
        try:
            mark, text = "ok", check()
        except NotOkError as error:
            mark, text, code = "not ok", str(error), 1
        click.echo(f"{mark:6}  {name:12}  {text}")
    return code


if __name__ == "__main__":
    main()
