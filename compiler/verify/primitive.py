"""Primitive networks: networks that compare only neighbouring wires."""

from __future__ import annotations

import numpy as np

from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question
from nsc.wording import count


def primitive(question: Question) -> Answer | None:
    """Decide a primitive network by one input: n, n-1, …, 1.

    The network sorts iff it sorts this input. Its first (last) k outputs are the k smallest (largest)
    values iff they are for this input. A single wire in the middle may be right for this input and
    wrong for others. Cost: O(n·depth).

    Source: de Bruijn 1974; Knuth 5.3.4, exercise 36.
    """
    network, ranks = question.network, question.ranks
    wires = set(ranks)
    at_an_end = wires in (set(range(len(wires))), set(range(network.n - len(wires), network.n)))
    in_place = all(wire == rank for wire, rank in ranks.items())
    # A certificate has the comparators as they are; those of neighbours may be so in standard form alone.
    if question.tangled and question.budget.certify:
        return None
    if question.runs or not (at_an_end and in_place) or (np.diff(network.comparators, axis=1) != 1).any():
        return None
    out = network.apply(np.arange(network.n)[::-1])
    for wire, rank in ranks.items():
        actual = int(out[wire])
        if actual != rank:
            # The same input as 0 and 1, with a threshold between the actual value and the right one.
            threshold = max(actual, rank)
            return Answer(failing=tuple(int(value >= threshold) for value in range(network.n)[::-1]))
    verdict = "comes out sorted" if len(ranks) == network.n else "comes out right"
    reversed_input = f"the reversed input of {count(network.n, 'value')}"
    return Answer(proved=f"only neighbours are compared, and {reversed_input} {verdict}")
