"""Prebuilt libraries: found by their source and this processor's level, they serve without a compiler."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import nsc
from nsc import library, prebuilding
from nsc.compiler.relaxed import cpp
from nsc.compiler.relaxed.relaxations import Relaxation
from nsc.runtime.build import prebuilt
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.relaxed.kernel import Kernel

pytestmark = pytest.mark.slow("kernels are built for levels of processors")

ROOT = Path(__file__).parents[2]
LEVEL = prebuilt.level_here()
needs_level = pytest.mark.skipif(LEVEL is None, reason="no Linux on x86-64 with AVX2")

USE = """
import sys, warnings
sys.modules["ziglang"] = None
import torch, nsc
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for n in (4, 5):
        op = nsc.compile("bitonic" if n == 4 else "odd_even", n)
        x = torch.linspace(-1, 1, n).sin().flip(0).requires_grad_()
        loss = op.cross_entropy(x, torch.arange(n))
        loss.backward()
        print(type(op.kernel.library()).__name__, loss.item(), *x.grad.tolist())
print(*[w.message for w in caught])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return a folder for PYTHONPATH whose package has the engine of the default relaxation and a kernel."""
    folder = tmp_path_factory.mktemp("path") / prebuilt.PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    bitonic = nsc.compile("bitonic", 4).kernel
    for name, source in (*bitonic.engine_sources.values(), (bitonic.name, bitonic.sources["cpu"])):
        prebuilding.write(name, source, LEVEL, folder)
    return folder.parent


@pytest.fixture
def installed(package, monkeypatch):
    monkeypatch.syspath_prepend(str(package))
    for name in ("NSC_CXX", "NSC_CXXFLAGS"):
        monkeypatch.delenv(name, raising=False)
    prebuilt._folder.cache_clear()
    yield
    prebuilt._folder.cache_clear()


def lines(package, cache, **environment):
    """Return what USE prints, and the names of the libraries in the cache."""
    of_users = ("NSC_CXX", "CXX", "NSC_CXXFLAGS", "NSC_BUILD")
    stated = {name: text for name, text in os.environ.items() if name not in of_users}
    paths = os.pathsep.join(map(str, (ROOT, package)))
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env={**stated, "PYTHONPATH": paths, "NSC_CACHE_DIR": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), [re.sub("-.*", "", path.name) for path in sorted(cache.glob("*.so"))]


@needs_level
def test_a_kernel_and_an_engine_serve_without_a_compiler(package, tmp_path):
    (kernel, engine, warnings), built = lines(package, tmp_path / "cache", PATH=str(tmp_path))
    assert (warnings, built) == ("", [])
    for line, kind, name, n in ((kernel, "Library", "bitonic", 4), (engine, "Engine", "odd_even", 5)):
        found, *numbers = line.split()
        assert found == kind
        x = torch.linspace(-1, 1, n).sin().flip(0).requires_grad_()
        loss = nsc.compile(name, n).cross_entropy(x, torch.arange(n))
        loss.backward()
        torch.testing.assert_close(torch.tensor(list(map(float, numbers))), torch.cat([loss[None], x.grad]))


@needs_level
@pytest.mark.parametrize(
    ("environment", "kinds", "built"),
    [
        ({"NSC_BUILD": "engine"}, ["Library", "Engine"], []),
        ({"NSC_BUILD": "wait"}, ["Library", "Library"], ["odd_even_5"]),
        ({"NSC_CXXFLAGS": "-O0"}, ["Library", "Library"], ["bitonic_4", "odd_even_5"]),
        pytest.param(
            {"NSC_CXX": "g++ -O0"},
            ["Library", "Library"],
            ["bitonic_4", "odd_even_5"],
            marks=pytest.mark.nightly("a compiler that is named builds, too"),
        ),
    ],
)
def test_a_compiler_builds_what_is_not_there_and_what_its_user_asks_for(
    package, tmp_path, environment, kinds, built
):
    (*served, warnings), libraries = lines(package, tmp_path / "cache", **environment)
    assert warnings == ""
    assert [line.split()[0] for line in served] == kinds
    assert libraries == built


@needs_level
def test_a_library_is_that_of_its_source_and_version(installed):
    kernel = nsc.compile("bitonic", 4).kernel
    source = kernel.name, kernel.sources["cpu"]
    assert prebuilt.find(*source, nsc.__version__) is not None
    assert prebuilt.find(*source, "0.0.1") is None
    assert prebuilt.find(kernel.name, source[1] + "\n", nsc.__version__) is None
    assert LEVEL in prebuilt.description()
    (engine,) = nsc.compile("bitonic", 4, relaxation="cauchy").kernel.engine_sources.values()
    assert prebuilt.find(*engine, nsc.__version__) is None


@needs_level
def test_commands_run_the_library_that_calls_run(package, tmp_path, monkeypatch):
    """Without a compiler `nsc compile` writes the package; `nsc verify` refuses a library that is wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, package))))
    monkeypatch.delenv("NSC_CXXFLAGS", raising=False)
    hide = "import sys; sys.modules['ziglang'] = None; from nsc.cli import main; main()"

    def command(line, **environment):
        words = [sys.executable, "-c", hide, *line.split()]
        return subprocess.run(
            words, env=os.environ | environment, capture_output=True, text=True, timeout=300
        )

    compiled = command("compile bitonic --n 4", PATH=str(tmp_path))
    assert (compiled.returncode, "built before" in compiled.stdout) == (0, True), compiled.stderr
    assert json.loads(command("compile bitonic --n 4 --json", PATH=str(tmp_path)).stdout)["commands"] == []
    assert command("verify generated/bitonic_4").returncode == 0
    kernel = nsc.compile("bitonic", 4).kernel
    text = library.expanded(kernel.sources["cpu"])
    right, wrong = (
        "return steepness[sample * steepness_stride];",
        "return 3 * steepness[sample * steepness_stride];",
    )
    assert right in text
    Path("wrong.cpp").write_text(text.replace(right, wrong), encoding="utf-8")
    folder = Path("other") / prebuilt.PACKAGE
    shutil.copytree(package / prebuilt.PACKAGE, folder)
    name = prebuilt.file_name(kernel.name, kernel.sources["cpu"], nsc.__version__, LEVEL)
    find_toolchain(relaxed=True).compile(Path("wrong.cpp"), folder / name)
    paths = os.pathsep.join(map(str, (ROOT, folder.parent.resolve())))
    refused = command("verify generated/bitonic_4", PYTHONPATH=paths)
    assert refused.returncode == 1, refused.stdout


def test_without_the_package_nothing_is_found():
    kernel = nsc.compile("bitonic", 4).kernel
    assert prebuilt.find(kernel.name, kernel.sources["cpu"], nsc.__version__) is None
    assert prebuilt.description() is None


def test_levels_are_those_of_the_compiler():
    """Linux and the compiler name these instructions alike; a level has those of the levels behind it."""
    alike = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx", "avx2", "bmi2", "f16c", "fma"}
    has: set[str] = set()
    for level, needs in reversed(prebuilt.LEVELS.items()):
        has |= needs
        macros = find_toolchain().for_level(level).macros()
        assert alike & {macro.strip("_").lower() for macro in macros} == alike & has
    assert prebuilt.best_level(prebuilt.LEVELS["x86-64-v3"]) == "x86-64-v3"
    assert prebuilt.best_level({*prebuilt.LEVELS["x86-64-v3"], *prebuilt.LEVELS["x86-64-v4"]}) == "x86-64-v4"
    assert prebuilt.best_level(prebuilt.LEVELS["x86-64-v3"] - {"fma"}) is None


def test_what_is_prebuilt_is_what_users_compile():
    sources = dict(prebuilding.sources())
    for family in prebuilding.FAMILIES:
        for n in prebuilding.SIZES:
            kernel = nsc.compile(family, n).kernel
            assert sources[kernel.name] == kernel.sources["cpu"]
    engines = {source for name, source in prebuilding.sources() if name.startswith("engine")}
    for sigmoid in ("logistic", "cauchy"):
        assert cpp.engine(Relaxation(sigmoid), "float32") in engines
        kernel = Kernel(nsc.compile("bitonic", 4, relaxation=sigmoid).kernel.files)
        assert {source for _, source in kernel.engine_sources.values()} <= engines


@needs_level
@pytest.mark.skipif(not shutil.which("readelf"), reason="no binutils")
def test_libraries_ask_for_the_c_library_of_2014_at_most(package):
    for path in (package / prebuilt.PACKAGE).glob("*.so"):
        listed = subprocess.run(["readelf", "-V", path], capture_output=True, text=True, check=True).stdout
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)", listed)
        assert versions
        assert all((int(major), int(minor)) <= (2, 17) for major, minor in versions)
