"""Catches a network of the lists that lacks its property, its name, or its place among the best."""

import itertools
from importlib import resources

import pytest

from nsc.compiler.families import (
    KINDS,
    best,
    found,
    known,
    known_name,
    known_network,
    known_networks,
    published,
    selected,
    shallowest,
)
from nsc.compiler.network import Network
from nsc.compiler.optimize import top_k_candidates
from nsc.compiler.passes import half_operations
from nsc.compiler.verify import Verdict, parse, verify
from nsc.errors import NetworkError

FOUND = [entry for kind in KINDS for entry in found(kind)]
SELECTED = [entry for kind in selected() for entry in found(kind)]
# Their proofs take seconds.
LONG = {"median_53_294_20", "median_54_299_19", "median_55_307_20", "median_56_313_19", "median_57_320_20"}


def is_proved(kind, network):
    return verify(network, parse(kind, network.n)).verdict is Verdict.PROVED


def test_the_published_lists_are_whole():
    """Every Pareto point of size and depth: 124 sorters and 210 medians."""
    counts = {kind: sum(map(len, published(kind).values())) for kind in KINDS}
    assert counts == {"sort": 124, "median": 210}
    assert [*published("sort")] == [*range(2, 65)]
    assert [*published("median")] == [*range(3, 65)]
    medians = [(m.size, m.depth) for m in published("median")[25]]
    assert medians == [(85, 16), (86, 15), (87, 14), (94, 13)]


@pytest.mark.slow("proofs and searches are long")
def test_every_known_sorter_sorts():
    for n, networks in known("sort").items():
        assert (best(n), shallowest(n)) == (networks[0], networks[-1])
        assert all(is_proved("sort", network) for network in networks), n


@pytest.mark.slow("proofs and searches are long")
def test_the_smallest_medians_are_medians():
    for n in (*range(3, 20), 25, 37, 64):
        assert is_proved("median", known("median")[n][0])


@pytest.mark.nightly("proofs take many seconds")
def test_every_published_median_is_one():
    for network in itertools.chain(*published("median").values()):
        assert is_proved("median", network), network


@pytest.mark.slow("proofs and searches are long")
def test_medians_smaller_than_published_are_proved():
    """The sorters that were found are among the known ones."""
    for entry in found("median"):
        assert entry.name in LONG or is_proved("median", entry.network), entry.name


@pytest.mark.nightly("proofs take many seconds")
@pytest.mark.parametrize("name", sorted(LONG))
def test_the_last_networks_smaller_than_published_are_proved(name):
    assert is_proved("median", known_network(name))


def test_what_is_found_is_smaller_than_published():
    """It has fewer comparators than each published network of no more layers, and says what of that it is."""
    for entry in FOUND:
        network, rivals = entry.network, published(entry.kind)[entry.network.n]
        assert network.size < entry.published
        assert all(m.size > network.size for m in rivals if m.depth <= network.depth)
        assert network in known(entry.kind)[network.n]
        assert all((entry.by, entry.date, entry.how))


@pytest.mark.nightly("proofs take many seconds")
def test_each_selection_that_was_found_costs_less_than_what_nsc_constructs():
    for entry in SELECTED:
        k, network = int(entry.kind.removeprefix("top-")), entry.network
        assert is_proved(entry.kind, network), entry.name
        assert entry.published is None
        cost = half_operations(network, range(network.n - k, network.n))
        candidates = {each.name: each for each in top_k_candidates(network.n, k)}
        assert candidates.pop("known selections, cut and merged").half_operations == cost
        least = min((each.half_operations, each.network.size) for each in candidates.values())
        assert (cost, network.size) < least, entry.name


def test_what_is_found_has_the_name_of_its_counts():
    for entry in (*FOUND, *SELECTED):
        assert entry.name == known_name(entry.kind, entry.network)
    certificates = (resources.files("nsc.compiler.families") / "known" / "found").iterdir()
    assert {f"{entry.name}.cert" for entry in (*FOUND, *SELECTED)} == {file.name for file in certificates}


@pytest.mark.parametrize("kind", KINDS)
def test_known_networks_are_the_pareto_points_of_both_lists(kind):
    for n, networks in known(kind).items():
        points = [(m.size, m.depth) for m in networks]
        for (size, depth), (larger, shallower) in itertools.pairwise(points):
            assert size < larger
            assert depth > shallower
        everything = [*published(kind)[n], *(entry.network for entry in found(kind) if entry.network.n == n)]
        for m in everything:
            assert any(size <= m.size and depth <= m.depth for size, depth in points)
        assert all(m in everything for m in networks)


@pytest.mark.parametrize("kind", [*KINDS, *selected()])
def test_each_network_of_the_lists_has_a_name_and_is_in_standard_form(kind):
    everything = [*itertools.chain(*published(kind).values()), *(entry.network for entry in found(kind))]
    assert len(known_networks(kind)) == len(everything)
    for network in everything:
        assert known_network(known_name(kind, network)) == network
        assert (network.comparators[:, 0] < network.comparators[:, 1]).all()
        assert network == Network.from_comparators(network.n, network.comparators)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sort_16_60_11", "on 16 wires there are sort_16_60_10, sort_16_61_9"),
        ("median_65_1_1", "they have none on 65 wires"),
        ("top_8_48_1_1", "on 48 wires there are top_8_48_187_16"),
        ("top_9_48_1_1", "they have none on 48 wires"),
        ("bitonic", "have names such as sort_16_60_10, got 'bitonic'"),
    ],
)
def test_a_name_that_the_lists_do_not_have(name, message):
    with pytest.raises(NetworkError, match=message):
        known_network(name)
