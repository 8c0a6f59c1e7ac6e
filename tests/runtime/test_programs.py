"""Catches public programs whose losses and gradients change with one import."""

from __future__ import annotations

import pytest
import torch

from benchmarks.programs import PACKAGES, PROGRAMS, gradient, inputs_of, package_of

# By day one program of each package.
_SAME = {key: program.package for key, program in PROGRAMS.items() if program.is_same}
_FIRST = {package: key for key, package in reversed(_SAME.items())}


@pytest.mark.slow("programs run with the packages that they use")
@pytest.mark.parametrize(
    "key",
    [
        key if key in _FIRST.values() else pytest.param(key, marks=pytest.mark.nightly("more programs run"))
        for key in _SAME
    ],
)
def test_a_program_gives_what_it_gives_with_its_package(key):
    program = PROGRAMS[key]
    pytest.importorskip(program.package)
    # difftopk takes float32 alone.
    dtype, tolerance = (torch.float64, 1e-6) if program.package == "diffsort" else (torch.float32, 1e-3)
    results = [
        gradient(program.make(package_of(name), program.shape[1]), inputs_of(program, dtype))
        for name in (PACKAGES[program.package], program.package)
    ]
    for actual, expected in zip(*results, strict=True):
        most = expected.abs().max().item()
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance * most)
