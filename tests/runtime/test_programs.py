"""Public programs, with one import changed: the same losses and gradients as with diffsort."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("diffsort")

from benchmarks.programs import PROGRAMS, gradient, inputs_of, package_of


@pytest.mark.slow("programs run with diffsort")
@pytest.mark.parametrize("key", PROGRAMS)
def test_a_program_gives_what_it_gives_with_diffsort(key):
    program = PROGRAMS[key]
    results = [
        gradient(program.make(package_of(name), program.shape[1]), inputs_of(program, torch.float64))
        for name in ("nsc.compat", "diffsort")
    ]
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6 * expected.abs().max().item())
