"""Fixtures that every room's tests share."""

from __future__ import annotations

import gc
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
import pytest
from changed import chosen_tests
from messages import check_messages

from nsc import library

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


# What was left out and why, with the number of tests or files.
LEFT_OUT = pytest.StashKey[Counter[str]]()
# The line by which all tests of a file have a mark.
MARK_OF_FILE = re.compile(r'^pytestmark = pytest\.mark\.(slow|nightly)\("(.+)"\)$', re.MULTILINE)
# CPU seconds of each file's tests, with the processes that they waited for, and of the browser.
SECONDS = pytest.StashKey[Counter[str]]()
BROWSER = "the browser of tests/explorer"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")
    parser.addoption("--daily", action="store_true", help="leave out nightly tests, and say why")
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out nightly and slow tests and those of rooms without a change, and say why",
    )


def why(item: pytest.Item, *marks: str) -> str | None:
    """Return the reason that a test has one of some marks for, or None."""
    return next((mark.args[0] for mark in item.iter_markers() if mark.name in marks), None)


def marks_left_out(config: pytest.Config) -> list[str]:
    """Return the marks of the tests that the options leave out."""
    return ["nightly"] * config.getoption("--daily") + ["nightly", "slow"] * config.getoption("--quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file by its room or the line of its mark: each worker would import what only it needs."""
    marks = marks_left_out(config)
    if not marks or not collection_path.match("test_*.py"):
        return None
    path = collection_path.relative_to(ROOT).as_posix()
    if config.getoption("--quick") and not path.startswith(chosen_tests()):
        config.stash[LEFT_OUT]["files left out, because their rooms did not change"] += 1
        return True
    found = MARK_OF_FILE.search(collection_path.read_text(encoding="utf-8"))
    if found is None or found[1] not in marks:
        return None
    config.stash[LEFT_OUT][f"files left out, because {found[2]}"] += 1
    return True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the options say, and put slow tests first.

    A long one that is started last would leave the other worker idle.
    """
    items.sort(key=lambda item: why(item, "nightly", "slow") is None)
    marks = marks_left_out(config)
    left_out = {item: reason for item in items if (reason := why(item, *marks)) is not None}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))
    config.stash[LEFT_OUT].update(f"tests left out, because {reason}" for reason in left_out.values())


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules and tests, which live as long as the process."""
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    # A busy machine takes many times as long for an example.
    hypothesis.settings.register_profile("nsc", deadline=None)
    hypothesis.settings.load_profile("nsc")
    config.stash[SECONDS] = Counter()
    config.stash[LEFT_OUT] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count the CPU seconds of a test, its fixtures and its processes for its file."""
    seconds, path = item.config.stash[SECONDS], item.path.relative_to(ROOT).as_posix()
    before = cpu_seconds() - seconds[BROWSER]
    result = yield
    seconds[path] += cpu_seconds() - seconds[BROWSER] - before
    return result


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the reasons and the seconds to the process that started this worker."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[LEFT_OUT])
        session.config.workeroutput["seconds"] = dict(session.config.stash[SECONDS])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep what a worker tells: each that ended well knows all reasons, and its own seconds."""
    told = getattr(node, "workeroutput", {})
    if told.get("left_out"):
        node.config.stash[LEFT_OUT] = Counter(told["left_out"])
    node.config.stash[SECONDS].update(told.get("seconds", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for why_not, count in sorted(config.stash[LEFT_OUT].items()):
        terminalreporter.line(f"{why_not}: {count}")
    if len(config.stash[SECONDS]) > 1:
        path = ROOT / "tests" / "output" / "seconds.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(table_of_seconds(config.stash[SECONDS]), encoding="utf-8")
        terminalreporter.line(f"CPU seconds of each file: {path.relative_to(ROOT)}")


def table_of_seconds(seconds: Counter[str]) -> str:
    """Return the seconds as Markdown, the most first; files below one second share a line."""
    lines = [["file", "CPU s"], ["---", "---:"], ["all", f"{sum(seconds.values()):.0f}"]]
    lines += [[name, f"{value:.0f}"] for name, value in seconds.most_common() if value >= 1]
    rest = [value for value in seconds.values() if value < 1]
    lines.append([f"{len(rest)} files of less than a second", f"{sum(rest):.0f}"])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


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
BUILT_AS_USERS_DO = {"test_accuracy", "test_engine"}


@pytest.fixture(scope="module", autouse=True)
def builds(request: pytest.FixtureRequest) -> Iterator[None]:
    """Build without an optimiser, which takes less than half of the time.

    A process loads a kernel once: files that need another one give it a name that no other file uses.
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


@pytest.fixture
def kernels() -> Iterator[None]:
    """Let kernels serve all calls of arrays that one can serve, whatever they save."""
    from nsc.join.choosing import prepare

    with prepare():
        yield


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


@pytest.fixture
def generated(golden: Callable[[str, str], Path]) -> Callable[[str, str], Path]:
    """Return a function that compares as `golden` does, with [library] in place of the library's digest."""

    def compare(name: str, text: str) -> Path:
        return golden(name, text.replace(library.digest(), "[library]"))

    return compare


@pytest.fixture(scope="session")
def browser(pytestconfig: pytest.Config) -> Iterator[Browser]:
    """Return a browser without a window, one for the session.

    It ends with the last test of whatever file, so its seconds are counted apart.
    """
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"pages are tested in one of {', '.join(BROWSERS)}: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        before = cpu_seconds()
        browser.close()
    pytestconfig.stash[SECONDS][BROWSER] += cpu_seconds() - before
