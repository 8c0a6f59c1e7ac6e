"""Networks in Python: another than named, a smaller or found one that is wrong, an import of torch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import nsc
from nsc.errors import NetworkError, PropertyError, UnprovedError, VerificationError


def test_a_network_is_what_its_name_says(tmp_path):
    four = nsc.network("bitonic", 4)
    (tmp_path / "four.json").write_text("[[0, 1], [1, 2]]")
    assert nsc.network(four) is four
    assert nsc.network(tmp_path / "four.json", 4).comparators.tolist() == [[0, 1], [1, 2]]
    assert nsc.network([(1, 2)], index_base=1) == nsc.network([[(0, 1)]])
    for name in ("bitonic", "no_such", 4):
        with pytest.raises(NetworkError):
            nsc.network(name)


@pytest.mark.parametrize("what", ["itself", "deep", "a number", "bytes"])
def test_lists_that_are_no_comparators_are_refused(what):
    itself, deep = [], [[0, 1]]
    itself.append(itself)
    for _ in range(5_000):
        deep = [deep]
    found = {"itself": itself, "deep": deep, "a number": np.array(5), "bytes": [[b"a", b"b"]]}
    with pytest.raises(NetworkError, match=r"\[lo, hi\], found"):
        nsc.network(found[what])


def test_a_smaller_network_has_the_property():
    twice = nsc.network("odd_even_merge", 8) + nsc.network("bitonic", 8)
    smaller = nsc.optimize(twice).network
    assert smaller.size <= nsc.network("odd_even_merge", 8).size
    assert nsc.verify(smaller)
    largest = nsc.optimize("bitonic", 8, property="top-1").network
    assert largest.size < nsc.network("bitonic", 8).size
    assert nsc.verify(largest, property="top-1")
    assert not nsc.verify(largest)


def test_what_cannot_be_made_smaller_is_refused():
    with pytest.raises(VerificationError) as refuted:
        nsc.optimize([(0, 1)], 3)
    assert len(refuted.value.counterexample) == 3
    with pytest.raises(UnprovedError, match="nothing is removed"):
        nsc.optimize("best", 60, time_limit=0)
    with pytest.raises(PropertyError):
        nsc.optimize("bitonic", 4, property="top-5")


def test_a_search_returns_what_the_command_writes(tmp_path):
    network = nsc.search(5, property="median", minimize="cost", seconds=0.2, seed=3)
    assert nsc.verify(network, property="median")
    assert nsc.search(start="known", n=16, depth=9, seconds=0).depth <= 9
    assert nsc.search(start=nsc.network("insertion", 6), seconds=60).size == 12
    assert nsc.search(7, seconds=60) == nsc.search(7, seconds=60)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, NetworkError, "say how many wires"),
        ({"n": 8, "minimize": "least"}, NetworkError, "size, depth or cost"),
        ({"n": 8, "jobs": 0}, NetworkError, "jobs must be 1 or more"),
        ({"n": 8, "depth": 2, "seconds": 0}, UnprovedError, "no network found"),
        ({"n": 5, "symmetric": True}, NetworkError, "no symmetric network"),
    ],
)
def test_what_cannot_be_searched_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        nsc.search(**options)


def test_records_are_networks():
    for record in (*nsc.records(), *nsc.records(24)):
        assert nsc.network(record.name) == record.network
        assert record.by is None or record.how
    assert {record.kind for record in nsc.records(24)} >= {"sort", "median", "top-8"}
    with pytest.raises(NetworkError):
        nsc.records(0)


def test_a_network_prints_as_its_layers():
    network = nsc.network("odd_even_merge", 8)
    assert nsc.network([eval(line) for line in str(network).splitlines()]) == network
    assert repr(network).startswith("Network(n=8, ")
    for other in (nsc.network("bitonic", 256), nsc.network([], 3)):
        assert str(other) == repr(other)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, 2, "x", 4], "got 'x' for wire 2, of 4 values"),
        ([1, 2, 3], "the network has 4 wires, values has 3 values"),
    ],
)
def test_wrong_values_name_the_wire_and_how_many_there_are(values, told):
    with pytest.raises(NetworkError, match=told):
        nsc.draw("bitonic", 4, values=values)


def test_networks_need_no_torch():
    code = "import nsc, sys; nsc.optimize('best', 5); nsc.draw('best', 5); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
