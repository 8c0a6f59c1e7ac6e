"""Fixtures that every room's tests share."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from messages import check_messages

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A build cache for this run of the tests alone; workers of one run share it.

    Processes that the tests start find the project from any folder, installed or not.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "nsc-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSC_CACHE_DIR", str(folder))
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield folder


# Files that ask for the code that users run, by its numbers, its speed or both.
BUILT_AS_USERS_DO = {"test_accuracy", "test_digits", "test_far_scores", "test_generated", "test_gradients"}


@pytest.fixture(scope="module", autouse=True)
def cxxflags(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels are built without an optimiser, in a third of the time.

    A process loads a kernel once: the files that want it as users have it name it as no other does.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NSC_CXXFLAGS", raising=False)
        if request.module.__name__ not in BUILT_AS_USERS_DO:
            patch.setenv("NSC_CXXFLAGS", "-O0")
        yield


@pytest.fixture(autouse=True)
def seed() -> None:
    """One seed for everything that draws."""
    random.seed(0)
    np.random.seed(0)
    try:
        import torch
    except ImportError:
        return
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test makes nsc say is in the language of who it says it to."""
    check_messages(monkeypatch)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], Path]:
    """Compare a text with tests/golden/NAME; --update-golden rewrites it. Returns the file."""

    def compare(name: str, text: str) -> Path:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{name} changed: look, then --update-golden"
        return path

    return compare
