"""Networks that nsc itself does not offer, for the tests of the kernels."""

from __future__ import annotations

import random

import nsc
from nsc.compiler.families import merge_exchange


def irregular(n, size, seed):
    """Return a sorting network with redundant comparators in front, so that its graph has no pattern.

    About half of these comparators are reversed.
    """
    rng = random.Random(seed)
    front = [rng.sample(range(n), 2) for _ in range(size)]
    back = merge_exchange(n).comparators.tolist()
    return nsc.Network.from_comparators(n, front + back)
