"""The workflows of .github name jobs, make targets, scripts, commands and requirements that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from changed import ALWAYS, TESTS_OF, chosen_for

from nsc.cli.main import main

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
# What a job makes before it is named.
MADE = ("dist/*.whl", "installed/bin/python")
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
