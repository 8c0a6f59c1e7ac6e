"""Catches a text that counts wires or layers from 1."""

from __future__ import annotations

import pytest

import nsc
from nsc.errors import NetworkError, NscError

# Networks whose fault lies on wire 2 of the second layer of three, in every form that has layers.
WRONG = {
    "lists": [[(0, 1)], [(2, 2)], [(1, 2)]],
    "nsc.json": '{"format": "nsc-network/1", "n": 3, "layers": [[[0, 1]], [[2, 2]], [[1, 2]]]}',
    "lists.json": "[[[0, 1]], [[2, 2]], [[1, 2]]]",
    "rows.csv": "layer,lo,hi\n0,0,1\n1,2,2\n2,1,2\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_names_its_layer_and_wires_from_0(name, tmp_path):
    wrong = WRONG[name]
    if isinstance(wrong, str):
        (tmp_path / name).write_text(wrong)
        wrong = str(tmp_path / name)
    with pytest.raises(NscError, match=r"comparator \(2, 2\) in layer 1 joins a wire to itself"):
        nsc.verify(wrong)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, 2, "x", 4], "got 'x' for wire 2, of 4 values"),
        ([1, float("nan"), 3, 4], "got nan for wire 1, of 4 values"),
        ([1, 2, 3], "the network has 4 wires, values has 3 values"),
    ],
)
def test_wrong_values_name_the_wire_and_how_many_there_are(values, told):
    with pytest.raises(NetworkError, match=told):
        nsc.draw("bitonic", 4, values=values)
