import itertools

import pytest
from hypothesis import given, settings
from strategies import networks

from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.schedule import schedule


def check(network):
    made = schedule(network)
    assert made.network == network
    assert [runs[:, 3].sum() for runs in made.layers] == [len(layer) for layer in network.layers()]
    assert made.segments[0] == 0
    assert made.segments[-1] == network.depth
    assert all(a < b for a, b in itertools.pairwise(made.segments))
    sizes = [len(layer) for layer in network.layers()]
    cut = [sum(sizes[a:b]) for a, b in itertools.pairwise(made.segments)]
    assert sum(cut) == network.size
    assert made.widest_segment == max(cut, default=0)
    return made


@settings(deadline=None, max_examples=100)
@given(networks(wires=(1, 12), most=12))
def test_segments_cover_the_layers_in_order(network):
    check(network)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 16, 100, 256])
def test_segments_keep_the_memory_of_the_backward_pass_small(name, n):
    network = FAMILIES[name](n)
    made = check(network)
    rows = (len(made.segments) - 1) * n + made.widest_segment
    assert rows <= 4 * (n * network.size) ** 0.5 + n  # 2 sqrt(n size) is the least; layers are whole


def test_a_network_without_layers_has_no_segment():
    made = check(Network.from_layers(3, []))
    assert made.segments == (0,)
    assert made.layers == ()
    assert made.widest_segment == 0
