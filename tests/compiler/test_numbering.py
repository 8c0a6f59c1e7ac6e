"""Wires and layers count from 0, in every text that names one."""

from __future__ import annotations

import pytest

import nsc
from nsc.compiler.network import Network
from nsc.compiler.verify import diagnose, sort
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


def test_an_index_of_a_layer_begins_at_0():
    network = Network.from_layers(3, [[(0, 1)], [(1, 2)], [(0, 1)]])
    assert network[0].tolist() == [[0, 1]]
    with pytest.raises((IndexError, NetworkError), match="layers are 0 to depth - 1"):
        network[3]


def test_a_failure_and_its_mend_name_layers_from_0():
    proof = nsc.verify([[(0, 2), (1, 3)], [(0, 1), (2, 3)]])
    assert not proof
    network = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)]])
    failure = diagnose(network, sort(4), proof.counterexample)
    assert failure.layer == 1
    assert failure.mend.words == "insert (1, 2) behind layer 1"


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
