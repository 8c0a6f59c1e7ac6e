"""`nsc verify` refuses a package whose kernel has wrong arithmetic, wherever it is."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from mutants import MUTANTS, WITHOUT

import nsc.templates
from nsc import library
from nsc.cli import main
from nsc.join.on_demand import exact_kernel

pytestmark = pytest.mark.slow("wrong kernels are built")
MORE = pytest.mark.nightly("more kernels of 128 wires run")

ROOT = Path(__file__).parents[2]
FOLDERS = ("templates/relaxed", "templates/exact", "templates/windows", "library")
NUMBERED = [(file, *texts) for file, each in MUTANTS.items() for texts in each]
# A switch that is set before the kernel's tables are written.
SWITCH = (
    '#include <stdlib.h>\nextern "C" __attribute__((visibility("default"))) const int nsc_mutant = '
    'getenv("NSC_MUTANT") ? atoi(getenv("NSC_MUTANT")) : 0;\n'
)
# The header that each kernel includes first, and its first definition.
FIRST, DEFINITION = "library/nsc/attributes.h", "#define NSC_INLINE"

# What is compiled: each template is part of one of them. Few wires, and relaxations that need all functions.
PACKAGES = {
    "logistic": "compile --net bitonic --n 6 --dtype float32 --dtype float64",
    "selector": "compile --net odd_even_merge --n 40 --top-k 2 --dtype float64",
    "gaussian": "compile --net bitonic --n 4 --relaxation gaussian --art-lambda 0.3 --dtype float64",
    "cauchy": "compile --net bitonic --n 4 --relaxation cauchy --art-lambda 0 --dtype float64",
    "error_free": "compile --net bitonic --n 4 --error-free --dtype float64",
    "median": "filter 3x3 --median",
    "merge": "compile --net bitonic --n 128 --dtype float64",
}


# What is in all packages, but runs in few.
OF_A_MERGE = [f"library/nsc/relaxed/{name}.h" for name in ("block_paths", "final_merge", "merge_columns")]
OF_FEW = {"library/nsc/exact/": ["logistic"], **{file: ["merge"] for file in OF_A_MERGE}}


def mutated(name: str) -> str:
    """Return a file's text with its mutants, and the switch if it begins a kernel."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for number, (file, marked, wrong) in enumerate(NUMBERED, start=1):
        if file != name:
            continue
        before, right, behind = re.split("[«»]", marked)
        pattern = f"({anywhere(before)})({anywhere(right)})({anywhere(behind)})"
        text, count = re.subn(
            pattern,
            lambda found, number=number, wrong=wrong: (
                f"{found[1]}(nsc_mutant == {number} ? ({wrong}) : ({found[2]})){found[3]}"
            ),
            text,
        )
        assert count == 1, f"{name} has not once {marked!r}"
    return text.replace(DEFINITION, SWITCH + DEFINITION, 1) if name == FIRST else text


def anywhere(text):
    """Return a pattern of a text whose lines may be broken at other places."""
    return r"\s*".join(["", *map(re.escape, "".join(text.split())), ""])


def test_every_file_of_a_kernel_has_a_mutant_or_says_why_not():
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    files = {path.relative_to(ROOT).as_posix() for path in found if path.suffix in (".cpp", ".h", ".j2")}
    cuda = {file for file in files if ".cu" in file or "/cuda/" in file}
    assert files - cuda == MUTANTS.keys() | WITHOUT.keys()
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
        return mutated(f"templates/{self.name}")


def mutated_header(name):
    """Take the place of library.text."""
    return mutated(f"library/{name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with packages that have mutants, and a cache with their builds."""
    folder = tmp_path_factory.mktemp("mutants")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nsc.templates, "resources", Mutated())
        patch.setattr(library, "text", mutated_header)
        patch.setenv("NSC_CACHE_DIR", str(folder / "cache"))
        patch.setenv("NSC_MUTANT", "0")
        forget()
        for name, line in PACKAGES.items():
            words = [*line.split(), "--name", name, "--out", str(folder)]
            result = CliRunner().invoke(main, words)
            assert result.exit_code == 0, result.output
            assert refusal(folder / name) is None
        yield folder
    forget()


def forget():
    """Forget templates, and exact kernels made of them."""
    for function in (nsc.templates.environment, nsc.templates.names, exact_kernel):
        function.cache_clear()


def refusal(package):
    """Return what `nsc verify` finds wrong in a package, None if nothing."""
    exact_kernel.cache_clear()  # a process loads a library once
    # A large kernel runs longer than its compiler.
    flags = "-O1" if package.name == "merge" else "-O0"
    result = CliRunner().invoke(main, ["verify", str(package), "--json"], env={"NSC_CXXFLAGS": flags})
    assert result.stdout, result.output or result.exception
    wrong = [check["wrong"] for check in json.loads(result.stdout)["kernel"]]
    found = next(filter(None, wrong), None)
    assert result.exit_code == (0 if found is None else 1), result.output
    return found


def numbers():
    """Yield the numbers of the mutants, by day one for each file of a merge: its kernel runs for seconds."""
    for number, (file, *mutant) in enumerate(NUMBERED, start=1):
        is_more = file in OF_A_MERGE and tuple(mutant) != MUTANTS[file][0]
        yield pytest.param(number, marks=MORE) if is_more else number


@pytest.mark.parametrize("number", list(numbers()))
def test_verify_refuses_a_mutant(number, folder, tmp_path, monkeypatch):
    file, marked, wrong = NUMBERED[number - 1]
    monkeypatch.setenv("NSC_MUTANT", str(number))
    # The loader knows libraries by their paths.
    cache = shutil.copytree(folder / "cache", tmp_path / "cache")
    monkeypatch.setenv("NSC_CACHE_DIR", str(cache))
    packages = [name for name in PACKAGES if has(folder / name, f"nsc_mutant == {number} ")]
    kinds = next((kinds for start, kinds in OF_FEW.items() if file.startswith(start)), packages)
    assert any(refusal(folder / kind) for kind in kinds), f"{kinds}: {wrong!r} is accepted in {marked!r}"


def has(package, text):
    return any(text in library.expanded(path.read_text(encoding="utf-8")) for path in package.glob("*.cpp"))
