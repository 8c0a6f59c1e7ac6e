"""The plain arithmetic that `nsc verify` compares kernels with is that of the torch reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nsc.audit.relaxed_reference import SIGMOIDS
from nsc.compiler import relaxations
from nsc.runtime.relaxed.reference import TAILS


@pytest.mark.parametrize("sigmoid", relaxations.SIGMOIDS)
def test_tails_and_slopes_are_those_of_torch(sigmoid):
    t = torch.linspace(0.01, 30, 500, dtype=torch.float64, requires_grad=True)
    tails = TAILS[sigmoid](t) + 0 * t
    (slopes,) = torch.autograd.grad(-tails.sum(), t)
    for found, wanted in zip(SIGMOIDS[sigmoid], (tails, slopes), strict=True):
        np.testing.assert_allclose(found(t.detach().numpy()), wanted.detach().numpy(), rtol=1e-12)
