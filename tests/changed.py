"""Which tests `--quick` runs: the tests of rooms that changed."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = ("tests/test_rooms.py", "tests/test_wording.py")
# Beginnings of paths of tests, by the beginning of a changed file's path; the longest counts.
TESTS_OF = {
    "benchmarks/": ("tests/test_benchmarks.py",),
    "compiler/": ("tests/compiler/", "tests/test_networks.py"),
    "compiler/emit/": ("tests/c/", "tests/emit/", "tests/cuda/test_functions.py"),
    "docs/": ("tests/test_docs.py", "tests/test_contributing.py"),
    "examples/": ("tests/examples/",),
    "experiments/": ("tests/experiments/",),
    "library/": ("tests/library/", "tests/cuda/"),
    "nsc/": ("tests/runtime/", "tests/test_api.py", "tests/test_walks.py"),
    "nsc/cli/": ("tests/cli/",),
    "nsc/deploying.py": ("tests/deploy/",),
    "nsc/join/deploying.py": ("tests/deploy/",),
    "nsc/numpy/": ("tests/test_numpy",),
    "runtime/": ("tests/runtime/", "tests/test_walks.py"),
    "study/": ("tests/study/", "tests/test_networks.py"),
    "study/explorer/": ("tests/study/test_explorer_facts.py", "tests/explorer/"),
    "study/proofs/": ("tests/study/test_certificates.py", "tests/test_networks.py"),
    "study/search/": ("tests/study/test_search.py",),
    "templates/": ("tests/templates/", "tests/compiler/test_render.py"),
    "tools/": ("tests/study/test_certificates.py", "tests/test_release.py"),
}


def changed_files() -> list[str]:
    """Return what changed since the last commit, or in the last commit if nothing did since."""
    since = _git("status", "--porcelain", "--untracked-files=all", "--no-renames")
    return [line[3:] for line in since] or _git("diff", "--name-only", "HEAD~1")


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()


def chosen_for(path: str) -> tuple[str, ...]:
    """Return the beginnings of the paths of a changed file's tests; of a file in no room those of all."""
    if path.startswith("tests/"):
        return (path if Path(path).name.startswith("test_") else f"{Path(path).parent}/",)
    room = "docs/" if path.endswith(".md") else max(filter(path.startswith, TESTS_OF), key=len, default="")
    return TESTS_OF.get(room, ("tests/",))


@functools.cache
def chosen_tests() -> tuple[str, ...]:
    """Return the beginnings of the paths of all tests to run."""
    changed = changed_files()
    return tuple({*ALWAYS}.union(*map(chosen_for, changed))) if changed else ("tests/",)
