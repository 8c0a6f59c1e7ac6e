"""The files that CONTRIBUTING.md lists suffice: each addition changes only these in a copy, and then runs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from additions import ADDITIONS, NAME, Addition
from copies import ROOMS, ROOT, copy_project


def listed_files(heading: str) -> set[str]:
    """Return the files that begin the items of the numbered list below a heading of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {heading}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    assert section, f"CONTRIBUTING.md has no section {heading!r}"
    return set(re.findall(r"^\d+\. `([^`]+)`", section[1], re.MULTILINE))


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the project's rooms, and of what its tests need."""
    folder = tmp_path / "copy"
    copy_project((*ROOMS, "docs", "tests", "tools", "pyproject.toml", "CONTRIBUTING.md"), folder)
    return folder


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.heading)
def test_an_addition_touches_the_files_that_are_listed(addition: Addition):
    touched = {file.replace(NAME, "NAME") for file in addition.changes}
    assert touched == listed_files(addition.heading)


@pytest.mark.nightly("additions run in a copy of the project")
@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.heading)
def test_an_addition_works_and_breaks_no_test(addition: Addition, copy, tmp_path, monkeypatch):
    for file, change in addition.changes.items():
        path = copy / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        changed = change(text)
        assert changed != text
        path.parent.mkdir(exist_ok=True)
        path.write_text(changed, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(copy))
    for command, folder in (
        (("-c", addition.program), tmp_path),
        (("-m", "pytest", "-q", "-m", "not nightly", *addition.tests), copy),
    ):
        result = subprocess.run(
            [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=600
        )
        assert result.returncode == 0, result.stdout + result.stderr


def test_every_heading_but_one_has_its_addition():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading != "A target"] == [a.heading for a in ADDITIONS]


def test_every_file_that_is_named_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+/[\w.-]+\.\w+)`", text))
    assert len(named) > 20
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []
