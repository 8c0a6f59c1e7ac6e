"""The examples in docstrings and in the README run as they stand."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import nsc
from nsc.cli import main

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(nsc.__path__, "nsc.")
    if not module.name.endswith("__main__")
)
FENCES = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_doctests():
    finder = doctest.DocTestFinder()
    counts = [len(t.examples) for name in MODULES for t in finder.find(importlib.import_module(name))]
    assert sum(counts) >= 15


def test_the_readmes_shell_lines_and_python_run(tmp_path, monkeypatch):
    """In one folder, in the order of the text; make and pip lines are what this very run came from."""
    shell = [line for kind, text in FENCES if kind == "sh" for line in text.splitlines()]
    commands = [line.split("#")[0].strip() for line in shell if line.startswith("nsc ")]
    assert len(commands) >= 4
    monkeypatch.chdir(tmp_path)
    for command in commands:
        done = CliRunner().invoke(main, command.split()[1:])
        assert done.exit_code == 0, f"{command}: {done.stderr}"
    programs = [text for kind, text in FENCES if kind == "python"]
    assert programs
    for program in programs:
        (tmp_path / "program.py").write_text(program)
        done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_tests_that_the_table_of_modes_names_exist():
    text = (ROOT / "docs" / "torch-modes.md").read_text(encoding="utf-8")
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", text)
    assert len(named) >= 30
    for file, test in named:
        source = (ROOT / "tests" / "runtime" / file).read_text(encoding="utf-8")
        assert f"def {test}(" in source, f"{file} has no {test}"
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert all("::test_" in row for row in rows)
