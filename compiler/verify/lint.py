"""Lint: comparators that every sorting network in standard form has."""

from __future__ import annotations

import numpy as np

from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question


def lint(question: Question) -> Answer | None:
    """Refute a network that has no comparator between some two neighbours; only one wire is ever proved.

    Take the sorted 0-1 input whose first 1 is on wire i + 1, and exchange wires i and i + 1. Of all
    comparators only (i, i + 1) changes it. Source: Knuth 5.3.4, exercise 35.
    """
    n = question.network.n
    if not question.is_sort or question.runs:
        return None
    if n == 1:
        return Answer(proved="one wire is always sorted")
    pairs = question.network.comparators
    present = np.zeros(n - 1, dtype=bool)
    present[pairs[np.diff(pairs, axis=1)[:, 0] == 1, 0]] = True
    missing = np.flatnonzero(~present)
    if not len(missing):
        return None
    wire = int(missing[0])
    vector = [int(place > wire) for place in range(n)]
    vector[wire], vector[wire + 1] = 1, 0
    return Answer(failing=tuple(vector))
