"""Networks by their names, and smaller ones, without torch."""

from __future__ import annotations

import subprocess
import sys

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


def test_networks_need_no_torch():
    code = "import nsc, sys; nsc.optimize('best', 5); nsc.draw('best', 5); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
