"""Environments of Python in which the project is installed, with what it requires and no more."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

from copies import ROOMS, copy_project
from packaging.requirements import Requirement

TREE = (*ROOMS, "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore")


def install(source: Path, target: Path) -> None:
    """Install the project into a folder, without what it requires, from a copy of its tree that is made."""
    copy_project(TREE, source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(target), str(source)], check=True, capture_output=True)


def environment(folder: Path, required: Iterable[str]) -> Path:
    """Make an environment of some distributions and what these require; return its interpreter.

    Its packages are links to those of the running environment.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    waiting, known = [Requirement(line) for line in required], set()
    while waiting:
        requirement = waiting.pop()
        unwanted = requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})
        if unwanted or requirement.name in known:
            continue
        known.add(requirement.name)
        distribution = importlib.metadata.distribution(requirement.name)
        waiting += map(Requirement, distribution.requires or ())
        for name in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(distribution.locate_file(name))
    return folder / "bin" / "python"


def required(installed: Path, extra: str = "") -> set[str]:
    """Return the names of what the installed distribution requires, with one of its extras."""
    (distribution,) = importlib.metadata.distributions(path=[str(installed)])
    assert distribution.name == "sortnets"
    names = set()
    for each in map(Requirement, distribution.requires):
        if each.marker and not each.marker.evaluate({"extra": extra}):
            continue
        names |= {each.name} if each.name != "sortnets" else set()
        names = names.union(*(required(installed, inner) for inner in each.extras if each.name == "sortnets"))
    return names
