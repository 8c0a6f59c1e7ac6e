"""Fixtures that every room's tests share."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from messages import check_messages

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")
    parser.addoption(
        "--quick", action="store_true", help="leave out the tests in LEFT_OUT of tests/conftest.py"
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"quick, without {group}" for group in LEFT_OUT] if config.getoption("--quick") else []


# Tests that take ten seconds or more, mostly in a compiler. They run first: a late one would run alone.
LONGEST = (
    "test_machine_code.py::test_the_table_is_true",
    "test_compile.py::test_both_compilers_take_every_text_without_a_warning",
    "test_docs.py::test_a_pages_shell_lines_and_python_run",
    "test_docs.py::test_the_site_is_built_without_a_warning",
    "test_far_scores.py::test_run_prints_both_losses",
    "test_modes.py::test_aot_inductor",
    "test_modules.py::test_distributed_data_parallel_in_two_processes",
    "test_program.py::test_with_a_driver",
    "test_experiments_scheduling.py::test_trainings",
    "test_experiments_timing.py::test_memory",
    "test_experiments_tables.py::test_an_interrupted",
)


# The tests that --quick leaves out, as parts of their names. All others run, new tests too.
LEFT_OUT = {
    "the machine code of CUDA text": (
        "cuda/test_compile.py::test_both",
        "cuda/test_compile.py::test_building",
        "cuda/test_machine_code.py",
        "cuda/test_machine_loops.py::test_the_",
    ),
    "the site": ("test_docs.py::test_the_site_is_built",),
    "emulated CUDA but for the operators on few wires": (
        "cuda/test_program.py",
        "cuda/test_tensor_cores.py",
        "test_every_operator[16-",
        "test_every_operator[33-",
        "test_every_operator[64-",
        "test_every_operator[128-",
        "test_every_operator[256-",
        "cuda/test_kernels.py::test_tiles",
        "cuda/test_kernels.py::test_some_ranks",
        "cuda/test_kernels.py::test_losses",
        "cuda/test_kernels.py::test_every_relaxation",
        "cuda/test_kernels.py::test_tensors",
        "cuda/test_kernels.py::test_a_missing",
    ),
    "sanitizers, other registers, 50 digits": (
        "runtime/test_sanitizers.py",
        "test_operator.py::test_narrower",
        "test_render.py::test_the_text_compiles",
        "runtime/test_accuracy.py",
        "test_gradients.py",
        "test_generated.py::test_thirty_two",
    ),
    "torch.compile, torch.func, export, processes, threads, diffsort": (
        "runtime/test_modes.py",
        "runtime/test_modules.py",
        "runtime/test_torch_modes.py",
        "runtime/test_compat.py",
    ),
    "families, sizes and properties of CPU kernels, and all relaxations but the logistic": (
        "test_operator.py::test_every_family",
        "test_operator.py::test_hard_sort",
        "test_operator.py::test_irregular",
        "test_operator.py::test_a_samples",
        "test_operator.py::test_laws",
        "test_operator.py::test_monotone",
        "test_operator.py::test_values_and_gradients_are_the_references[gaussian",
        "test_operator.py::test_values_and_gradients_are_the_references[reciprocal",
        "test_operator.py::test_values_and_gradients_are_the_references[cauchy",
        "test_operator.py::test_values_and_gradients_are_the_references[optimal",
        "test_operator.py::test_values_and_gradients_are_the_references[hard",
        "test_losses.py::test_value_and_gradient",
        "test_losses.py::test_the_reference",
        "test_selector.py::test_values_rows",
        "runtime/test_hard_sort.py",
    ),
    "damaged caches and manifests": ("runtime/test_cache.py", "runtime/test_manifest.py"),
    "large files, random text, long searches and proofs": (
        "compiler/test_large_files.py",
        "compiler/test_format_fuzz.py",
        "compiler/test_foresight.py",
        "compiler/test_best.py",
        "compiler/test_properties.py",
        "compiler/test_verify.py::test_the_median",
        "test_render.py::test_1024",
    ),
    "trainings, tables and clusters of the experiments, and their methods' peers": (
        "test_experiments_scheduling.py",
        "test_experiments_tables.py",
        "test_experiments_training.py",
        "test_experiments_methods",
        "test_experiments_timing.py",
        "test_experiments_models.py",
    ),
    "the explorer in a browser": ("explorer/test_page.py", "explorer/test_arithmetic.py"),
    "whole programs: commands that build or end, examples, benchmarks, installing, the README": (
        "cli/test_compiling.py",
        "cli/test_endings.py",
        "cli/test_output.py",
        "cli/test_verifying.py",
        "tests/examples",
        "tests/test_benchmarks.py",
        "cuda/test_benchmark.py",
        "tests/test_install.py",
        "test_docs.py::test_a_pages",
        "test_docs.py::test_a_step",
        "tests/test_contributing.py::test_an_addition_works",
    ),
}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest tests first, keep the order of the others, and with --quick leave some out."""
    parts = [part for group in LEFT_OUT.values() for part in group]
    if config.args == config.getini("testpaths"):  # all tests are collected
        lost = [part for part in (*LONGEST, *parts) if not any(part in item.nodeid for item in items)]
        if lost:
            raise pytest.UsageError(f"LONGEST and LEFT_OUT in tests/conftest.py name no test: {lost}")
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONGEST))
    if config.getoption("--quick"):
        left_out = [item for item in items if any(part in item.nodeid for part in parts)]
        items[:] = [item for item in items if not any(part in item.nodeid for part in parts)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session", autouse=True)
def cache(pytestconfig: pytest.Config) -> Iterator[Path]:
    """Set the tests' build cache, which workers share and later runs find.

    A build's key covers all that it is made of. Tests of building itself take a new folder.
    PYTHONPATH lets processes that tests start find the project from any folder, installed or not.
    """
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir("nsc-builds")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSC_CACHE_DIR", str(folder))
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield folder


# These files test speed or last digits, so they need kernels as users build them: g++ fuses products with
# sums at -O2 but not at -O0.
BUILT_AS_USERS_DO = {"test_accuracy", "test_digits", "test_far_scores", "test_generated"}


@pytest.fixture(scope="module", autouse=True)
def cxxflags(request: pytest.FixtureRequest) -> Iterator[None]:
    """Build kernels without an optimiser, which takes less than half of the time.

    A process loads a kernel once: files that need an optimised one give it a name that no other file uses.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NSC_CXXFLAGS", raising=False)
        if request.module.__name__ not in BUILT_AS_USERS_DO:
            patch.setenv("NSC_CXXFLAGS", "-O0")
        yield


@pytest.fixture(autouse=True)
def seed() -> None:
    """Seed all random generators."""
    random.seed(0)
    np.random.seed(0)
    try:
        import torch
    except ImportError:
        return
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the words of every error of nsc that a test raises."""
    check_messages(monkeypatch)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], Path]:
    """Return a function that compares a text with tests/golden/NAME; --update-golden rewrites the file."""

    def compare(name: str, text: str) -> Path:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), (
            f"{name} changed: look at the difference, then run with --update-golden"
        )
        return path

    return compare


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a browser without a window, one for the session."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"pages are tested in one of {', '.join(BROWSERS)}: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()
