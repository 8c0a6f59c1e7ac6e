"""Failure: where a refuted network goes wrong, and which single change mends it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.verify import zero_one
from nsc.compiler.verify.ladder import verify
from nsc.compiler.verify.proof import Vector, Verdict
from nsc.compiler.verify.property import Property
from nsc.compiler.verify.question import Budget, sorted_groups

# All inputs of a weight are tried up to this many values; beyond, ones are removed from the failing input.
_MOST_OF_A_WEIGHT = 1 << 21
# Limit of mends times comparators: about two seconds, enough for a network on 32 wires.
_MOST_STEPS = 1 << 22
_SAMPLE = 1024
_MEND_STATES = 1 << 16

Pair = tuple[int, int]


@dataclass(frozen=True)
class Mend:
    """The change of one comparator after which a network has its property.

    Attributes:
        kind: "insert" or "turn".
        lo, hi: the comparator; for "turn", as it stands in the network.
        layer: the layer of the comparator; for "insert", the layer in front of which it comes, or the depth
            if it comes last.
    """

    kind: str
    lo: int
    hi: int
    layer: int

    @property
    def words(self) -> str:
        """The change in words, such as "insert (1, 2) behind layer 1"."""
        if self.kind == "turn":
            place = f"in layer {self.layer}"
        else:
            place = f"behind layer {self.layer - 1}" if self.layer else "in front"
        return f"{self.kind} ({self.lo}, {self.hi}) {place}"


@dataclass(frozen=True)
class Failure:
    """An input that comes out wrong, the place where it goes wrong, and a change that mends the network.

    Attributes:
        vector: a failing 0-1 input, with the fewest ones found.
        values: a permutation of 0 … n-1 that comes out wrong.
        wires: the output wires that are wrong for the vector.
        layer: the last layer with a comparator on one of these wires; None if there is none.
        mend: after which the property is proved; None if none was found, or the network is too large to try.
    """

    vector: Vector
    values: Vector
    wires: tuple[int, ...]
    layer: int | None
    mend: Mend | None


def diagnose(network: Network, property_: Property, vector: Vector) -> Failure:
    """Return the failure of a network that a 0-1 input refutes."""
    least = _lightest(network, property_, vector)
    wrong = zip(property_.groups, property_.wrong(network, np.array([least], bool)), strict=True)
    wires = tuple(wire for group, is_wrong in wrong if is_wrong.any() for wire in group.wires)
    layer = None
    for index, pairs in enumerate(network.layers()):
        if np.isin(pairs, wires).any():
            layer = index
    return Failure(least, zero_one.permutation_of(least), wires, layer, _mend(network, property_, least))


def _lightest(network: Network, property_: Property, vector: Vector) -> Vector:
    n = network.n
    best = np.array(vector, dtype=bool)
    for weight in range(1, int(best.sum())):
        if math.comb(n, weight) * n > _MOST_OF_A_WEIGHT:
            break
        places = np.array(list(itertools.combinations(range(n), weight)))
        inputs = np.zeros((len(places), n), dtype=bool)
        inputs[np.arange(len(places))[:, None], places] = True
        zero_one.order_runs(inputs, property_.presorted)
        failing = property_.fails(network, inputs)
        if failing.any():
            return tuple(inputs[int(failing.argmax())].astype(int).tolist())
    while True:
        ones = np.flatnonzero(best)
        lighter = np.repeat(best[None], len(ones), axis=0)
        lighter[np.arange(len(ones)), ones] = False
        zero_one.order_runs(lighter, property_.presorted)
        failing = property_.fails(network, lighter)
        if not failing.any():
            return tuple(best.astype(int).tolist())
        best = lighter[int(failing.argmax())]


def _mend(network: Network, property_: Property, vector: Vector) -> Mend | None:
    """Return the first change that mends the vector and a sample of inputs, and is proved."""
    n = network.n
    layers = [[(int(lo), int(hi)) for lo, hi in layer] for layer in network.layers()]
    if (network.size + (len(layers) + 1) * n * n) * network.size > _MOST_STEPS:
        return None
    behind, ranks = sorted_groups(property_)
    sample = [np.array([vector], dtype=bool)]
    sample += zero_one.sample_inputs(n, _SAMPLE, tuple(ranks.values()), property_.presorted)
    inputs = np.concatenate(sample)
    least, most = (
        {wire: _integer(values) for wire, values in zip(ranks, bound.T, strict=True)}
        for bound in zero_one.bounds_of(n - inputs.sum(axis=1), ranks.values())
    )
    state = [_integer(inputs[:, wire]) for wire in range(n)]
    front: list[Pair] = []
    for index in range(len(layers) + 1):
        layer, rest = (layers[index : index + 1] or [[]])[0], list(itertools.chain(*layers[index + 1 :]))
        for change, changed in _changes(layer, index, n):
            out = _applied([*changed, *rest, *behind], state)
            if not any((out[wire] ^ least[wire]) & (out[wire] ^ most[wire]) for wire in ranks):
                mended = Network.from_comparators(n, [*front, *changed, *rest])
                if verify(mended, property_, Budget(states=_MEND_STATES)).verdict is Verdict.PROVED:
                    return change
        state = _applied(layer, state)
        front += layer
    return None


def _changes(layer: list[Pair], index: int, n: int) -> Iterator[tuple[Mend, list[Pair]]]:
    """Yield the changes of a layer, each with the layer's new comparators."""
    for place, (lo, hi) in enumerate(layer):
        yield Mend("turn", lo, hi, index), [*layer[:place], (hi, lo), *layer[place + 1 :]]
    for pair in itertools.combinations(range(n), 2):
        yield Mend("insert", *pair, index), [pair, *layer]


def _integer(values: zero_one.Inputs) -> int:
    """Return a wire's values as the bits of an integer, so that a comparator is two operations."""
    return int.from_bytes(np.packbits(values).tobytes(), "big")


def _applied(comparators: list[Pair], state: list[int]) -> list[int]:
    out = list(state)
    for lo, hi in comparators:
        a, b = out[lo], out[hi]
        out[lo], out[hi] = a & b, a | b
    return out
