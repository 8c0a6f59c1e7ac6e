"""Lint: what every sorting network in standard form has."""

from __future__ import annotations

import numpy as np

from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question


def lint(asked: Question) -> Answer | None:
    """Refute a sorting network that lacks a comparator between two neighbours; it never proves, but one wire.

    The sorted 0-1 input with the values of wires i and i + 1 exchanged meets no comparator that
    changes it, but for (i, i + 1). Source: Knuth 5.3.4, exercise 35.
    """
    n = asked.network.n
    if not asked.is_sort or asked.runs:
        return None
    if n == 1:
        return Answer(proved="one wire is always sorted")
    pairs = asked.network.comparators
    present = np.zeros(n - 1, dtype=bool)
    present[pairs[np.diff(pairs, axis=1)[:, 0] == 1, 0]] = True
    missing = np.flatnonzero(~present)
    if not len(missing):
        return None
    wire = int(missing[0])
    vector = [int(place > wire) for place in range(n)]
    vector[wire], vector[wire + 1] = 1, 0
    return Answer(failing=tuple(vector))
