"""`nsc verify` refuses a package whose kernel has wrong arithmetic, wherever in the templates it is."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from mutants import MUTANTS, WITHOUT

import nsc.templates
from nsc.cli import main
from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.verify import Verdict, sort, verify
from nsc.join.budget import budget_of
from nsc.join.exact import exact_kernel

pytestmark = pytest.mark.slow("wrong kernels are built")

TEMPLATES = Path(nsc.templates.__file__).parent
FOLDERS = ("cpp", "exact", "filter", "shared")
NUMBERED = [(file, *texts) for file, each in MUTANTS.items() for texts in each]
# A switch that is set before the kernel's tables are written.
SWITCH = (
    '#include <stdlib.h>\nextern "C" __attribute__((visibility("default"))) const int nsc_mutant = '
    'getenv("NSC_MUTANT") ? atoi(getenv("NSC_MUTANT")) : 0;\n'
)
WITH_SWITCH = ("cpp/kernel.cpp.j2", "exact/kernel.cpp.j2", "filter/kernel.cpp.j2", "cpp/checker.cpp.j2")
INCLUDE = "#include <stdint.h>\n"

# What is compiled: each template is part of one of them. Few wires, and relaxations that need all functions.
PACKAGES = {
    "logistic": "compile --net bitonic --n 6 --dtype float32 --dtype float64",
    "selector": "compile --net odd_even_merge --n 40 --top-k 2 --dtype float64",
    "gaussian": "compile --net bitonic --n 4 --relaxation gaussian --art-lambda 0.3 --dtype float64",
    "cauchy": "compile --net bitonic --n 4 --relaxation cauchy --art-lambda 0 --dtype float64",
    "error_free": "compile --net bitonic --n 4 --error-free --dtype float64",
    "median": "filter 3x3 --median",
}


def mutated(name: str) -> str:
    """Return a template's text with its mutants, and the switch if it is a whole source."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    for number, (file, marked, wrong) in enumerate(NUMBERED, start=1):
        if file != name:
            continue
        before, right, behind = re.split("[«»]", marked)
        assert text.count(before + right + behind) == 1, f"{name} has not once {marked!r}"
        both = f"(nsc_mutant == {number} ? ({wrong}) : ({right}))"
        text = text.replace(before + right + behind, before + both + behind)
    return text.replace(INCLUDE, INCLUDE + SWITCH) if name in WITH_SWITCH else text


def test_every_template_of_a_kernel_has_a_mutant_or_says_why_not():
    files = {f"{folder}/{path.name}" for folder in FOLDERS for path in (TEMPLATES / folder).iterdir()}
    assert {file for file in files if ".cu" not in file} == MUTANTS.keys() | WITHOUT.keys()
    assert not MUTANTS.keys() & WITHOUT.keys()
    for file in MUTANTS:
        mutated(file)


class Mutated:
    """Takes the place of importlib.resources in nsc.templates."""

    def __init__(self, name=None):
        self.name = name

    def files(self, package):
        return self

    def joinpath(self, name):
        return Mutated(name)

    def read_text(self, encoding):
        return mutated(self.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with packages that have mutants, and a cache with their builds."""
    folder = tmp_path_factory.mktemp("mutants")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nsc.templates, "resources", Mutated())
        patch.setenv("NSC_CXXFLAGS", "-O0")
        patch.setenv("NSC_CACHE_DIR", str(folder / "cache"))
        patch.setenv("NSC_MUTANT", "0")
        forget()
        for name, line in PACKAGES.items():
            words = [*line.split(), "--name", name, "--out", str(folder)]
            result = CliRunner().invoke(main, words)
            assert result.exit_code == 0, result.output
            assert refusal(folder / name) is None
        assert checker_is_right()
        yield folder
    forget()


def forget():
    """Forget templates, and exact kernels made of them."""
    for function in (nsc.templates._environment, nsc.templates._check, exact_kernel):
        function.cache_clear()


def refusal(package):
    """Return what `nsc verify` finds wrong in a package, None if nothing."""
    exact_kernel.cache_clear()  # a process loads a library once
    result = CliRunner().invoke(main, ["verify", str(package), "--json"])
    assert result.stdout, result.output or result.exception
    wrong = [check["wrong"] for check in json.loads(result.stdout)["kernel"]]
    found = next(filter(None, wrong), None)
    assert result.exit_code == (0 if found is None else 1), result.output
    return found


def checker_is_right():
    """Return whether the generated checker tells a network that sorts from one that does not."""
    sorter = family_network("bitonic", 10)
    less = Network.from_comparators(10, sorter.comparators[:-1])
    methods = ["generated exhaustion"]
    try:
        verdicts = [verify(each, sort(10), budget_of(), methods).verdict for each in (sorter, less)]
    except AssertionError:  # its counterexample is none
        return False
    return verdicts == [Verdict.PROVED, Verdict.REFUTED]


@pytest.mark.parametrize("number", range(1, len(NUMBERED) + 1))
def test_verify_refuses_a_mutant(number, folder, tmp_path, monkeypatch):
    file, marked, wrong = NUMBERED[number - 1]
    monkeypatch.setenv("NSC_MUTANT", str(number))
    # The loader knows libraries by their paths.
    cache = shutil.copytree(folder / "cache", tmp_path / "cache")
    monkeypatch.setenv("NSC_CACHE_DIR", str(cache))
    if file == "cpp/checker.cpp.j2":
        assert not checker_is_right()
        return
    packages = [name for name in PACKAGES if has(folder / name, f"nsc_mutant == {number} ")]
    kinds = ["logistic"] if file.startswith("exact/") else packages
    assert any(refusal(folder / kind) for kind in kinds), f"{kinds}: {wrong!r} is accepted in {marked!r}"


def has(package, text):
    return any(text in path.read_text(encoding="utf-8") for path in package.glob("*.cpp"))
