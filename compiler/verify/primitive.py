"""Primitive networks: those that compare neighbours only."""

from __future__ import annotations

import numpy as np

from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question
from nsc.wording import count


def primitive(asked: Question) -> Answer | None:
    """Decide a network of neighbours by one input: n, n-1, …, 1.

    It sorts iff it sorts that input, and its first (last) k outputs are the k smallest (largest) iff
    they are for that input; a single wire in the middle may be right for it and wrong for others.
    Cost: O(n·depth).

    Source: de Bruijn 1974; Knuth 5.3.4, exercise 36.
    """
    network, ranks = asked.network, asked.ranks
    wires = set(ranks)
    at_an_end = wires in (set(range(len(wires))), set(range(network.n - len(wires), network.n)))
    in_place = all(wire == rank for wire, rank in ranks.items())
    if asked.runs or not (at_an_end and in_place) or (np.diff(network.comparators, axis=1) != 1).any():
        return None
    out = network.apply(np.arange(network.n)[::-1])
    for wire, rank in ranks.items():
        found = int(out[wire])
        if found != rank:
            # As 0 and 1, with the border between the value that is there and the one that should be.
            border = max(found, rank)
            return Answer(failing=tuple(int(value >= border) for value in range(network.n)[::-1]))
    what = "comes out sorted" if len(ranks) == network.n else "comes out right"
    reversed_input = f"the reversed input of {count(network.n, 'value')}"
    return Answer(proved=f"only neighbours are compared, and {reversed_input} {what}")
