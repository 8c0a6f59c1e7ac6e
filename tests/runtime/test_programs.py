"""Public programs, with one import changed: the same losses and gradients as with diffsort."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("diffsort")

from benchmarks.programs import PROGRAMS, inputs_of, one_step, package_of


@pytest.mark.slow("programs run with diffsort")
@pytest.mark.parametrize("key", PROGRAMS)
def test_a_program_gives_what_it_gives_with_diffsort(key):
    program = PROGRAMS[key]
    results = [
        one_step(program, package_of(name), inputs_of(program, torch.float64))
        for name in ("nsc.compat", "diffsort")
    ]
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6 * expected.abs().max().item())
