"""Copies of the project for tests that change it, install it or make it a repository."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("nsc", "compiler", "library", "runtime", "study", "templates")


def copy_project(names: Iterable[str], folder: Path) -> None:
    """Copy files and folders of the project, with their links, into a folder; it is made if need be."""
    folder.mkdir(exist_ok=True)
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, folder)
