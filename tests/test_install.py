"""Catches a module that needs more than the project requires, or a command that fails without torch."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from copies import ROOMS, ROOT
from environments import environment, install, required

from nsc.errors import INSTALL_TORCH

pytestmark = pytest.mark.slow("the project is installed")

NEED_TORCH = {
    "Filter",
    "Operator",
    "Selector",
    "Sizes",
    "Sorter",
    "compat",
    "compile",
    "compile_filter",
    "compile_sizes",
    "deploy",
    "load",
    "nn",
    "plain_torch",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the project from a copy of its tree, and return the folder it is installed in."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    install(source, target)
    return target


@pytest.fixture(scope="module")
def with_torch(installed, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("with_torch"), required(installed, "torch"))


@pytest.fixture(scope="module")
def without_torch(installed, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("without_torch"), required(installed))


def run(python, installed, *command, cwd):
    return subprocess.run(
        [python, *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={
            "PYTHONPATH": str(installed),
            "PYTHONIOENCODING": "utf-8",
            "PATH": "/usr/bin:/bin",
            "NSC_CACHE_DIR": os.environ["NSC_CACHE_DIR"],
            "NSC_CXXFLAGS": "-O0",
        },
    )


def output(*words, cwd):
    result = run(*words, cwd=cwd)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def files_of(folder):
    return [file for file in folder.rglob("*") if file.is_file() and file.parent.name != "__pycache__"]


def test_the_package_is_whole(installed):
    """It has each file of the rooms, where the links of nsc lead, and no other."""
    listed = {
        Path("nsc") / file.relative_to(ROOT if room != "nsc" else ROOT / "nsc")
        for room in ROOMS
        for file in files_of(ROOT / room)
    }
    assert {file.relative_to(installed) for file in files_of(installed / "nsc")} == listed
    assert {".h", ".j2", ".mjs", ".cert", ".typed"} <= {file.suffix for file in listed}
    assert not (installed / "nsc" / "compiler").is_symlink()
    assert "nsc.__main__" in (installed / "bin" / "nsc").read_text()


def test_torch_comes_with_its_extra_and_with_those_whose_programs_call_operators(installed):
    (distribution,) = importlib.metadata.distributions(path=[str(installed)])
    extras = {extra: required(installed, extra) for extra in distribution.metadata.get_all("Provides-Extra")}
    assert {extra for extra, names in extras.items() if "torch" not in names} == {"cluster", "compiler"}
    assert extras["torch"] - required(installed) == {"torch"}
    assert re.search(r"^torch==\S+$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)


EVERY_MODULE = """
import importlib, json, pkgutil, nsc
missing = {}
for module in pkgutil.walk_packages(nsc.__path__, "nsc.", onerror=lambda name: None):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            missing.setdefault(error.name, []).append(module.name)
print(json.dumps([nsc.__file__, missing]))
"""


def test_no_module_needs_more_than_is_required(installed, with_torch, tmp_path):
    file, missing = json.loads(output(with_torch, installed, "-c", EVERY_MODULE, cwd=tmp_path))
    assert Path(file).is_relative_to(installed)
    assert missing == {}


EVERY_NAME = """
import json, nsc
refused = {}
for name in nsc.__all__:
    try:
        getattr(nsc, name)
    except ImportError as error:
        refused[name] = str(error)
print(json.dumps(refused))
"""


def test_without_torch_a_name_that_needs_it_says_so(installed, without_torch, tmp_path):
    refused, (_, missing) = map(
        json.loads,
        output(without_torch, installed, "-c", EVERY_NAME + EVERY_MODULE, cwd=tmp_path).splitlines(),
    )
    assert refused == {
        name: f"nsc.{name} needs PyTorch, which is not installed: {INSTALL_TORCH}" for name in NEED_TORCH
    }
    assert set(missing) == {"torch"}
    result = run(without_torch, installed, "-c", "from nsc.compat import DiffSortNet", cwd=tmp_path)
    assert result.stderr.strip().endswith(
        f"nsc.compat needs PyTorch, which is not installed: {INSTALL_TORCH}"
    )


def test_without_torch_nothing_else_is_missing(installed, without_torch, tmp_path):
    printed = output(without_torch, installed, str(ROOT / "tests" / "installed.py"), cwd=tmp_path)
    assert "torch: not installed" in printed


@pytest.mark.parametrize(
    ("page", "torch"),
    [
        ("README.md", "with_torch"),
        pytest.param(
            "docs/start.md", "without_torch", marks=pytest.mark.nightly("test_docs runs it each day")
        ),
    ],
)
def test_what_a_first_reader_runs(installed, page, torch, request, tmp_path):
    """Without torch, the blocks of Python that have the word are left out."""
    text = (ROOT / page).read_text("utf-8").replace("```{code-cell}", "```python")
    if torch == "without_torch":
        text = re.sub(
            r"^```python\n.*?^```$",
            lambda block: "" if "torch" in block[0] else block[0],
            text,
            flags=re.DOTALL | re.MULTILINE,
        )
    (tmp_path / "page.md").write_text(text, "utf-8")
    python = request.getfixturevalue(torch)
    output(python, installed, str(ROOT / "tests" / "page.py"), "page.md", cwd=tmp_path)
