"""`nsc verify` refuses a package whose kernel has wrong arithmetic, wherever it is.

Each kernel is built once with all mutants, of which the number in a small library makes one run.
"""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from mutants import MUTANTS, WITHOUT

import nsc.templates
from nsc import library
from nsc.audit import laws, relaxed
from nsc.audit.windows import filter_claim
from nsc.cli.main import main
from nsc.contract.manifest import read_files
from nsc.join.budget import budget_of
from nsc.join.on_demand import exact_kernel, exact_kernel_of
from nsc.runtime.relaxed import kernel

pytestmark = pytest.mark.slow("wrong kernels are built")

ROOT = Path(__file__).parents[2]
FOLDERS = ("templates/relaxed", "templates/exact", "templates/windows", "library")
NUMBERED = [(file, *texts) for file, each in MUTANTS.items() for texts in each]
# The header that each kernel includes first, its first definition, and the number of the mutant that runs.
FIRST, DEFINITION = "library/nsc/attributes.h", "#define NSC_INLINE"
SWITCH = 'extern "C" __attribute__((visibility("default"))) int nsc_mutant;\n'

# What is compiled: each template is part of one of them. Few wires, and relaxations that need all functions.
PACKAGES = {
    "logistic": "compile --net bitonic --n 6 --dtype float32 --dtype float64",
    "error_free": "compile --net bitonic --n 4 --relaxation cauchy --art-lambda 0 --error-free "
    "--dtype float64",
    "selector": "compile --net odd_even_merge --n 40 --top-k 2 --relaxation gaussian --art-lambda 0.3 "
    "--dtype float64",
    "median": "filter 3x3 --median",
    "merge": "compile --net bitonic --n 128 --dtype float64",
}

# The packages that are tried, where not all in this order: what is in all of them, but runs in few.
OF_A_MERGE = [f"library/nsc/relaxed/{name}.h" for name in ("block_paths", "final_merge", "merge_columns")]
TRIED = {
    "library/nsc/exact/": ["logistic"],
    "library/nsc/windows/": ["median"],
    **{file: ["merge"] for file in OF_A_MERGE},
}


@functools.cache
def mutated(name: str) -> str:
    """Return a file's text with its mutants, and with the switch if it begins a kernel."""
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
def packages(tmp_path_factory):
    """Return packages that are compiled with mutants, and set a cache with their builds."""
    folder = tmp_path_factory.mktemp("mutants")
    (folder / "switch.cpp").write_text(f"{SWITCH}int nsc_mutant;\n", encoding="utf-8")
    command = ["g++", "-shared", "-fPIC", "switch.cpp", "-o", "switch.so"]
    subprocess.run(command, cwd=folder, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nsc.templates, "resources", Mutated())
        patch.setattr(library, "text", mutated_header)
        patch.setattr(laws, "_by_reference", computed_once(laws._by_reference))
        patch.setattr(kernel, "_kernels", {})
        # One package's exact kernels are enough.
        patch.setattr(relaxed, "exact_kernel_of", lambda of: exact_kernel_of(of) if of.n == 6 else None)
        forget()
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # for few wires, threads wait for each other
        yield Packages(folder, patch)
        torch.set_num_threads(threads)
    forget()


def forget():
    """Forget templates, and exact kernels made of them."""
    for function in (nsc.templates.environment, nsc.templates.names, exact_kernel):
        function.cache_clear()


def computed_once(function):
    """Return `laws._by_reference`, which computes for all mutants what does not depend on them."""
    known = {}

    def by_reference(of_kernel, routing, at, *others):
        operands = (None if each is None else each.numpy().tobytes() for each in at)
        key = (of_kernel.spec, routing, at.x.dtype, *operands)
        if key not in known:
            known[key] = function(of_kernel, routing, at, *others)
        return known[key]

    return by_reference


class Packages:
    """Compiled packages, and the mutant that runs in all their kernels."""

    def __init__(self, folder, patch):
        self.folder, self.patch = folder, patch
        switch = ctypes.CDLL(str(folder / "switch.so"), ctypes.RTLD_GLOBAL)
        self.mutant = ctypes.c_int.in_dll(switch, "nsc_mutant")
        patch.setenv("NSC_CACHE_DIR", str(folder / "cache"))
        for name, line in PACKAGES.items():
            self.set_flags(name)
            result = CliRunner().invoke(main, [*line.split(), "--name", name, "--out", str(folder)])
            assert result.exit_code == 0, result.output or result.exception

    def set_flags(self, name):
        """Set a compiler's flags: a large kernel runs longer than its compiler."""
        self.patch.setenv("NSC_CXXFLAGS", "-O1" if name == "merge" else "-O0")

    def load_again(self, cache):
        """Load all kernels again. The loader knows libraries by their paths."""
        shutil.copytree(self.folder / "cache", self.folder / cache)
        self.patch.setenv("NSC_CACHE_DIR", str(self.folder / cache))
        kernel._kernels.clear()
        exact_kernel.cache_clear()

    def refusal(self, name, mutant):
        """Return what `nsc verify` finds wrong in a package, None if nothing."""
        self.set_flags(name)
        self.mutant.value = mutant
        files = read_files(self.folder / name)
        if name == "merge":  # its wires are many for 0-1 inputs, which do not run a merge
            of_merge = kernel.register_kernel(files)
            of_merge.specialise()
            return laws.broken_law(of_merge, "float64")
        claim = filter_claim(files) if name == "median" else relaxed.relaxed_claim(files)
        return next((check.wrong for check in claim.check(budget_of()) if check.wrong), None)


def test_verify_refuses_each_mutant(packages):
    assert [packages.refusal(name, 0) for name in PACKAGES] == [None] * len(PACKAGES)
    accepted = dict(enumerate(NUMBERED, start=1))
    for loads_again in (False, True):
        for number, (file, *_) in list(accepted.items()):
            if loads_again:  # the mutant is in what is worked out when a kernel is loaded
                packages.load_again(f"cache of {number}")
            tried = next((names for start, names in TRIED.items() if file.startswith(start)), PACKAGES)
            if any(packages.refusal(name, number) for name in tried):
                del accepted[number]
    assert not accepted
