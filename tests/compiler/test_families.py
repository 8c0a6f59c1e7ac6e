"""Catches a family that does not sort, or has another size or depth than published, at any n."""

import math

import pytest
from strategies import sorts_all

from nsc.compiler.families import FAMILIES, Growth, family_network
from nsc.compiler.network import MAX_WIRES
from nsc.errors import NetworkError

BATCHER = ["bitonic", "odd_even_merge", "merge_exchange", "pairwise"]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_grows_as_its_record_says(family):
    """Twice the wires make four times the size, or less than three times."""
    ratio = family(256).size / family(128).size
    assert (ratio > 3.9) if family.growth is Growth.QUADRATIC else (2 < ratio < 3)


@pytest.mark.parametrize("n", range(1, 21))
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_sorts(name, n):
    network = family_network(name, n)
    assert network.n == n
    assert sorts_all(n, network.comparators.tolist())


@pytest.mark.parametrize(
    ("name", "n", "size", "depth"),
    [
        ("merge_exchange", 33, 207, 17),
        ("odd_even_merge", 33, 246, 20),
        ("bitonic", 33, 321, 21),
        ("merge_exchange", 100, 1077, 28),
        ("odd_even_merge", 100, 1104, 28),
        ("bitonic", 100, 1334, 28),
        ("merge_exchange", 1000, 23499, 55),
        ("odd_even_merge", 1000, 23521, 55),
        ("bitonic", 1000, 27268, 55),
        ("merge_exchange", 1024, 24063, 55),
        ("bitonic", 3, 3, 3),
        ("bitonic", 5, 11, 6),
        ("bitonic", 7, 18, 6),
        ("bitonic", 9, 37, 10),
        ("bitonic", 15, 70, 10),
        ("bitonic", 16, 80, 10),
        ("bitonic", 32, 240, 15),
        ("bitonic", 128, 1792, 28),
        ("bitonic", 1024, 28160, 55),
        ("odd_even", 1024, 523776, 1024),
    ],
)
def test_published_sizes_and_depths(name, n, size, depth):
    network = family_network(name, n)
    assert (network.size, network.depth) == (size, depth)


@pytest.mark.parametrize("n", range(1, 70))
def test_quadratic_families_have_their_size_and_depth(n):
    transposition, insertion = family_network("odd_even", n), family_network("insertion", n)
    assert transposition.size == insertion.size == n * (n - 1) // 2
    assert transposition.depth == (n if n > 2 else n - 1)
    assert insertion.depth == max(0, 2 * n - 3)


@pytest.mark.parametrize("k", range(1, 11))
def test_batcher_families_have_their_size_and_depth_at_powers_of_two(k):
    n = 1 << k
    for name in BATCHER:
        network = family_network(name, n)
        assert network.depth == k * (k + 1) // 2
        assert network.size == (n * k * (k + 1) // 4 if name == "bitonic" else (k * k - k + 4) * n // 4 - 1)


@pytest.mark.parametrize("n", range(1, 70))
def test_batcher_families_stay_below_the_power_above(n):
    k = math.ceil(math.log2(n))
    nets = {name: family_network(name, n) for name in BATCHER}
    assert all(network.depth <= k * (k + 1) // 2 for network in nets.values())
    assert nets["merge_exchange"].size == min(network.size for network in nets.values())


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "bitonic"])
@pytest.mark.parametrize("n", [2, 3, 13, 64, 100])
def test_only_bitonic_has_descending_comparators(name, n):
    comparators = family_network(name, n).comparators
    assert (comparators[:, 0] < comparators[:, 1]).all()
    assert (
        family_network("bitonic", 4).comparators[:, 0] > family_network("bitonic", 4).comparators[:, 1]
    ).any()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [0, -3, True, False, 2.0, "4", None, MAX_WIRES + 1, 10**30])
def test_numbers_of_wires_out_of_range_are_refused(name, n):
    with pytest.raises(NetworkError, match=r"\bn\b"):
        family_network(name, n)


@pytest.mark.parametrize("name", ["odd_even", "insertion"])
def test_a_quadratic_family_that_grows_too_large_names_another(name):
    with pytest.raises(NetworkError, match="merge_exchange"):
        family_network(name, MAX_WIRES)


def test_an_unknown_family_lists_the_known_ones():
    with pytest.raises(NetworkError) as caught:
        family_network("bionic", 4)
    assert "'bionic'" in str(caught.value)
    assert all(name in str(caught.value) for name in FAMILIES)
