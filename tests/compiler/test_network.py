"""Catches a network that takes bad comparators, changes behind its digest, or does not do what they say."""

import subprocess
import sys
import warnings

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import layer_lists, networks, run

from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import read_network, writable, write_network
from nsc.compiler.network import MAX_WIRES, Network
from nsc.errors import NetworkError

quick = settings(max_examples=60)


@pytest.mark.parametrize(
    ("n", "layers", "message"),
    [
        (4, [[(0, 4)]], r"\(0, 4\).*outside 0 … 3"),
        (4, [[(0, 1)], [(-1, 2)]], r"\(-1, 2\) in layer 1.*outside"),
        (4, [[(2, 2)]], r"\(2, 2\).*itself"),
        (4, [[(0, 1)], [(2, 3), (3, 0)]], "layer 1 touches wire 3 a second time"),
        (4, [[(0, 1, 2)]], "pairs"),
        (4, [[(0, 1), (2,)]], "pairs"),
        (4, [[(0, 1.0)]], "pairs"),
        (4, [np.array([[True, False]])], "pairs"),
        (4, [[(0, None)]], "pairs"),
        (4, [[(0, 2**63)]], "pairs|outside"),
        (4, [np.array([[0, 2**64 - 1]], dtype=np.uint64)], "pairs|outside"),
    ],
)
def test_bad_comparators_are_refused(n, layers, message):
    with pytest.raises(NetworkError, match=message):
        Network.from_layers(n, layers)
    if len(layers) == 1 and "second" not in message:
        with pytest.raises(NetworkError, match=message):
            Network.from_comparators(n, layers[0])


@quick
@given(st.data())
def test_networks_follow_each_other(data):
    n = data.draw(st.integers(1, 7))
    first, second, third = (Network.from_layers(n, data.draw(layer_lists(n, 4))) for _ in range(3))
    x = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    both = first + second
    assert (both.apply(x) == second.apply(first.apply(x))).all()
    assert (both.size, both.depth) == (first.size + second.size, first.depth + second.depth)
    assert (first + second) + third == first + (second + third)
    assert first + Network.from_layers(n, []) == first == Network.from_layers(n, []) + first


@quick
@given(st.data())
def test_networks_lie_side_by_side(data):
    first, second, third = (data.draw(networks((1, 5), 4)) for _ in range(3))
    both = first | second
    x, y = (np.array(data.draw(st.permutations(range(each.n)))) for each in (first, second))
    assert (both.apply([*x, *y]) == [*first.apply(x), *second.apply(y)]).all()
    assert (both.n, both.size) == (first.n + second.n, first.size + second.size)
    assert both.depth == max(first.depth, second.depth)
    assert (first | second) | third == first | (second | third)


@quick
@given(networks((1, 7), 6), st.data())
def test_a_network_is_a_sequence_of_layers(network, data):
    assert len(network) == network.depth
    assert bool(network)
    assert Network.from_layers(network.n, network) == network
    assert [layer.tolist() for layer in network] == [layer.tolist() for layer in network.layers()]
    cut = data.draw(st.integers(-8, 8))
    assert network[:cut] + network[cut:] == network
    lists = [layer.tolist() for layer in network]
    a, b, step = data.draw(st.tuples(*[st.integers(-8, 8)] * 2, st.sampled_from([-2, -1, 1, 2])))
    assert [layer.tolist() for layer in network[a:b:step]] == lists[a:b:step]
    for index in range(-len(network), len(network)):
        assert network[index].tolist() == lists[index]
    assert network[::-1][::-1] == network
    assert network == network[:]
    assert hash(network) == hash(network[:])


def test_what_networks_refuse():
    two, three = Network.from_layers(2, [[(0, 1)]]), Network.from_layers(3, [[(0, 1)]])
    with pytest.raises(NetworkError, match=r"of 2 wires and one of 3 wires cannot follow each other"):
        two + three
    with pytest.raises(NetworkError, match=r"\bn\b"):
        Network.from_layers(MAX_WIRES, []) | two
    pair = (0, 1)
    for wrong in (lambda: two + pair, lambda: two | 3, lambda: two["0"]):
        with pytest.raises(TypeError):
            wrong()
    for index in (1, -2):
        with pytest.raises(IndexError, match=f"layer {index} of a network of 1 layer"):
            two[index]


@pytest.mark.parametrize("n", [0, -1, True, False, 2.0, "2", None, MAX_WIRES + 1, 10**30])
def test_bad_numbers_of_wires_are_refused(n):
    for build in (
        lambda: Network.from_layers(n, []),
        lambda: Network.from_layers(n, [[("a", "b")]]),
        lambda: Network.from_comparators(n, [(0, 1)]),
        lambda: Network(n, np.empty((0, 2), np.int64), np.zeros(1, np.int64)),
    ):
        with pytest.raises(NetworkError, match=r"\bn\b"):
            build()


@pytest.mark.parametrize("starts", [[0, 2], [1], [], [0.0, 1.0], [0, [1]], None, "01", 1, [0, 2, 1]])
def test_bad_starts_of_layers_are_refused(starts):
    with pytest.raises(NetworkError, match="layer_starts must"):
        Network(2, np.array([[0, 1]]), starts)


def test_a_network_has_frozen_arrays_of_its_own():
    pairs, starts = np.array([[0, 1], [1, 2]]), np.array([0, 1, 2])
    network = Network(3, pairs, starts)
    pairs[:] = starts[:] = 7
    assert network.comparators.tolist() == [[0, 1], [1, 2]]
    assert network.layer_starts.tolist() == [0, 1, 2]
    for array in (network.comparators, network.layer_starts, *network.layers()):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    with pytest.raises(AttributeError):
        network.n = 4


@quick
@given(st.data(), st.integers(1, 8))
def test_equality_ignores_order_inside_a_layer_and_empty_layers(data, n):
    layers = data.draw(layer_lists(n))
    shuffled = [data.draw(st.permutations(layer)) for layer in layers]
    for index in data.draw(st.lists(st.integers(0, len(layers)), max_size=3)):
        shuffled.insert(index, [])
    a, b = Network.from_layers(n, layers), Network.from_layers(n, shuffled)
    assert a == b
    assert hash(a) == hash(b)
    assert a.digest == b.digest
    assert a.comparators.tolist() == b.comparators.tolist()
    assert a.layer_starts.tolist() == b.layer_starts.tolist()
    assert a.size == sum(map(len, layers))
    assert a.depth == sum(bool(layer) for layer in layers)
    assert [{*map(tuple, layer.tolist())} for layer in a.layers()] == [{*map(tuple, x)} for x in layers if x]


def test_different_networks_differ():
    layers = [[(0, 1), (2, 3)]]
    network = Network.from_layers(4, layers)
    others = (
        Network.from_layers(5, layers),
        Network.from_layers(4, [[(1, 0), (2, 3)]]),
        Network.from_layers(4, [[(0, 1)], [(2, 3)]]),
        Network.from_layers(4, [[(0, 2), (1, 3)]]),
        Network.from_layers(4, [[(0, 1)]]),
    )
    assert len({network.digest, *(other.digest for other in others)}) == 6
    assert len({network, *others}) == 6
    assert network != layers
    assert Network.from_layers(np.int32(4), map(iter, layers)) == network


@quick
@given(networks())
def test_from_comparators_puts_each_comparator_in_the_earliest_layer(network):
    pairs = [tuple(pair) for pair in network.comparators.tolist()]
    free, layers = [0] * network.n, {}
    for lo, hi in pairs:
        layer = max(free[lo], free[hi])
        free[lo] = free[hi] = layer + 1
        layers.setdefault(layer, []).append((lo, hi))
    early = Network.from_comparators(network.n, pairs)
    assert early == Network.from_layers(network.n, [layers[k] for k in sorted(layers)])
    assert early.depth == max(free)


@quick
@given(networks(), st.data())
def test_apply_compares_and_exchanges_along_the_last_axis(network, data):
    values = data.draw(
        st.lists(st.lists(st.integers(-5, 5), min_size=network.n, max_size=network.n), min_size=1, max_size=4)
    )
    pairs = network.comparators.tolist()
    expected = [run(pairs, row) for row in values]
    assert network.apply(values).tolist() == expected
    assert network.apply(np.array(values)[None]).tolist() == [expected]
    assert network.apply(values[0]).tolist() == expected[0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (1, "2 wires, got values of shape"),
        ([[1, 2, 3]], "2 wires, got values of shape"),
        ([[1], [1, 2]], "values"),
        (["b", "a"], "values of 2 numbers"),
        ([None, 1], "values of 2 numbers"),
    ],
)
def test_what_is_no_sample_is_not_applied(values, message):
    network = Network.from_layers(2, [[(0, 1)]])
    with pytest.raises(NetworkError, match=message):
        network.apply(values)
    values = np.array([2**70, 1], object)
    assert network.apply(values).tolist() == [1, 2**70]
    assert values.tolist() == [2**70, 1]


@quick
@given(networks(), st.randoms(use_true_random=False))
def test_graph_round_trip_is_relayered(network, random):
    graph = network.to_graph()
    assert networkx.is_directed_acyclic_graph(graph)
    assert [(d["lo"], d["hi"]) for _, d in graph.nodes(data=True)] == [
        tuple(pair) for pair in network.comparators.tolist()
    ]
    segments = sum(max(0, int((network.comparators == wire).sum()) - 1) for wire in range(network.n))
    assert sum(len(wires) for _, _, wires in graph.edges(data="wires")) == segments
    names = [f"c{k}" for k in range(network.size)]
    random.shuffle(names)
    renamed = networkx.relabel_nodes(graph, dict(enumerate(names)))
    assert Network.from_graph(renamed) == Network.from_comparators(network.n, network.comparators)


def _graph(**changes):
    graph = Network.from_layers(3, [[(0, 1)], [(1, 2)]]).to_graph()
    graph.nodes[0].update(changes)
    return graph


def test_graphs_of_graphml_are_read(tmp_path):
    network = FAMILIES["bitonic"](8)
    graph = network.to_graph()
    for _, _, facts in graph.edges(data=True):
        del facts["wires"]  # GraphML has no tuples
    networkx.write_graphml(graph, tmp_path / "network.graphml")
    assert Network.from_graph(networkx.read_graphml(tmp_path / "network.graphml")) == network


def test_from_graph_says_what_is_wrong():
    missing_n = _graph()
    del missing_n.graph["n"]
    missing_wire = _graph()
    del missing_wire.nodes[1]["hi"]
    cycle = _graph()
    cycle.add_edge(1, 0)
    missing_edge = _graph()
    missing_edge.remove_edge(0, 1)
    for graph, message in [
        (missing_n, r"graph\.graph\['n'\]"),
        (missing_wire, "hi must be a wire's number; it is missing"),
        (cycle, "cycle"),
        (missing_edge, "both touch wire 1"),
        (_graph(lo=5), "outside 0 … 2"),
        (_graph(lo="a"), "wire"),
        (networkx.Graph(_graph()), "direct"),
    ]:
        with pytest.raises(NetworkError, match=message):
            Network.from_graph(graph)


def test_a_network_writes_itself_as_the_command_does(tmp_path):
    network = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]])
    for name in writable():
        assert network.text(name) == write_network(network, name)
        assert network.save(tmp_path / "four", name) == tmp_path / "four"
        assert (tmp_path / "four").read_text(encoding="utf-8") == network.text(name)
    assert network.text() == network.text("nsc")
    network.save(str(tmp_path / "four.KNUTH"))
    assert read_network(tmp_path / "four.KNUTH", format="knuth") == network
    for bad in (lambda: network.text("dott"), lambda: network.save("four"), lambda: network.save("a/b/c.cn")):
        with pytest.raises(NetworkError):
            bad()


def test_a_network_warns_of_what_its_file_does_not_hold(tmp_path):
    network = Network.from_layers(3, [[(0, 1)]])
    with pytest.warns(UserWarning, match=r"nsc: .*one\.cn: cn has no number of wires.* read it with n=3"):
        network.save(tmp_path / "one.cn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network.save(tmp_path / "one.json")


def test_a_network_writes_itself_where_only_its_own_room_is_imported():
    """As in a process that unpickles one."""
    code = "from nsc.compiler.network import Network; print(Network.from_layers(2, [[(0, 1)]]).text('cn'))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr) == ("0:1\n\n", "")
