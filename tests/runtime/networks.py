"""Networks that no family makes, for the tests of the kernels."""

from __future__ import annotations

import random

import nsc
from nsc.compiler.families.classic import merge_exchange


def irregular(n, size, seed):
    """A sorting network with redundant comparators in front, so that its graph has no pattern.

    They point either way: half of them are reversed.
    """
    rng = random.Random(seed)
    front = [rng.sample(range(n), 2) for _ in range(size)]
    back = merge_exchange(n).comparators.tolist()
    return nsc.Network.from_comparators(n, front + back)
