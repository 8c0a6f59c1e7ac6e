"""Catches a workflow that names what does not exist, and code for some Pythons of those that are named."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from changed import ALWAYS, TESTS_OF, chosen_for

from nsc.cli.main import main

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
# What a job makes before it is named.
MADE = ("dist/*.whl", "dist/sortnets-*.whl", "installed/bin/python")
OTHERS = {"docker", "cyclonedx-py", "pip", "uv"}


def jobs_of(workflow):
    return yaml.safe_load(workflow.read_text("utf-8"))["jobs"]


def lines_of(workflow):
    steps = [step for job in jobs_of(workflow).values() for step in job["steps"]]
    return [line for step in steps for line in step.get("run", "").splitlines()]


def wrong(line):
    """Return the words of a shell line that name nothing."""
    words = shlex.split(line)
    if words[0] == "make":
        targets = re.findall(r"^([\w -]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return [word for word in words[1:] if word not in " ".join(targets).split()]
    if words[0] == "nsc":
        return [word for word in words[1:2] if word not in main.commands]
    extras = [extra for found in re.findall(r"\.whl\)?\[(.*)\]", line) for extra in found.split(",")]
    files = [word for word in words if re.search(r"\.(py|sh|txt|whl)$|^\w+/", word) and word not in MADE]
    return [
        *([words[0]] if words[0] not in OTHERS | {"python", *MADE} else []),
        *(extra for extra in extras if not re.search(rf"^{extra} = \[", PROJECT, re.MULTILINE)),
        *(file for file in files if not (ROOT / file).is_file()),
    ]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_a_workflow_names_what_exists(workflow):
    jobs = jobs_of(workflow)
    for job in jobs.values():
        assert job.get("needs", next(iter(jobs))) in jobs
        for step in job["steps"]:
            assert step.keys() <= {"uses", "with", "run"}
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", step.get("uses", "a/b@v1"))
    lines = lines_of(workflow)
    assert lines
    assert [(line, wrong(line)) for line in lines if wrong(line)] == []


PYTHONS = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
# What Python 3.10 lacks: text, and the complaint.
LATER = {
    "try: ...\nexcept* ValueError: ...\n": "except*",
    "type Pair = tuple[int, int]\n": "type",
    "def first[T](x: T) -> T: ...\n": "type parameter",
    "def said(x: dict[str, str]) -> str:\n    return f'{x['a']}'\n": "f-strings",
}


def test_the_pythons_of_the_project_agree():
    assert [f"3.{minor}" for minor in range(10, 10 + len(PYTHONS))] == PYTHONS
    assert re.findall(r'^requires-python = ">=(.+)"$', PROJECT, re.MULTILINE) == PYTHONS[:1]
    assert re.findall(r'^target-version = "py3(.+)"$', PROJECT, re.MULTILINE) == [PYTHONS[0][2:]]
    assert re.findall(r'^python_version = "(.+)"$', PROJECT, re.MULTILINE) == PYTHONS[:1]
    jobs = jobs_of(ROOT / ".github" / "workflows" / "test.yml").values()
    matrices = [job.get("strategy", {}).get("matrix", {}).get("python", []) for job in jobs]
    steps = [step.get("with", {}).get("python-version") for job in jobs for step in job["steps"]]
    assert {*steps}.union(*matrices) >= {*PYTHONS}


@pytest.mark.parametrize("text", LATER)
def test_syntax_of_later_pythons_is_found(text):
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise", "-"]
    done = subprocess.run(command, input=text, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "invalid-syntax" in line]
    assert len(found) == 1
    assert LATER[text] in found[0]
    assert found[0].endswith(f"(syntax was added in Python 3.{12 - ('*' in text)})")


def typed(*options):
    """Return what mypy prints, with the project's settings and a cache of its own."""
    command = [sys.executable, "-m", "mypy", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_a_library_of_later_pythons_is_found(tmp_path):
    file = tmp_path / "later.py"
    file.write_text("import tomllib\nfrom datetime import UTC\nfrom pathlib import Path\nPath().walk()\n")
    printed = typed("--cache-dir", str(tmp_path), str(file))
    assert re.findall(r":(\d): error", printed) == ["1", "2", "4"]


@pytest.mark.nightly("types are checked again, for the newest Python")
def test_types_hold_on_the_newest_python(tmp_path):
    assert typed("--cache-dir", str(tmp_path), "--python-version", PYTHONS[-1]).startswith("Success")


def test_rooms_that_change_have_tests():
    for room, tests in TESTS_OF.items():
        assert (ROOT / room).exists()
        assert all([*ROOT.glob(f"{test}*")] for test in (*tests, *ALWAYS))
    assert chosen_for("nsc/numpy/moving.py") == ("tests/test_numpy",)
    assert chosen_for("nsc/nn/ranking.py") == TESTS_OF["nsc/"]
    assert chosen_for("README.md") == TESTS_OF["docs/"]
    assert chosen_for("tests/cli/test_verifying.py") == ("tests/cli/test_verifying.py",)
    assert chosen_for("tests/cli/commands.py") == ("tests/cli/",)
    assert chosen_for("tests/conftest.py") == chosen_for("pyproject.toml") == ("tests/",)
