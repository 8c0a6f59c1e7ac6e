"""What the tests of the runtime share."""

from __future__ import annotations

import pytest

# Files that ask what kernels compute, not how well they are optimised: there they are built in half the
# time. All others build them as users do.
QUICK_BUILDS = {
    "test_accuracy",
    "test_arguments",
    "test_cache",
    "test_compat",
    "test_gradients",
    "test_hard_sort",
    "test_losses",
    "test_manifest",
    "test_modes",
    "test_operands",
    "test_operator",
    "test_selector",
    "test_transforms",
}


@pytest.fixture(autouse=True)
def quick_builds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.module.__name__ in QUICK_BUILDS:
        monkeypatch.setenv("NSC_CXX", "c++ -Og")
