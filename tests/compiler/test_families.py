"""Catches a family that does not sort, or has another size or depth than published, at any n."""

import pytest
from strategies import sorts_all

from nsc.compiler.families import FAMILIES, QUADRATIC, family_network
from nsc.compiler.network import MAX_WIRES
from nsc.errors import NetworkError

BATCHER = ["bitonic", "odd_even_merge", "merge_exchange", "pairwise"]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_grows_as_the_table_says(name):
    """Twice the wires make four times the size, or less than three times."""
    ratio = FAMILIES[name](256).size / FAMILIES[name](128).size
    assert (ratio > 3.9) if name in QUADRATIC else (2 < ratio < 3)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_sorts(name):
    for n in range(1, 18):
        network = family_network(name, n)
        assert network.n == n
        assert sorts_all(n, network.comparators.tolist())
        is_standard = (network.comparators[:, 0] < network.comparators[:, 1]).all()
        assert is_standard == (name != "bitonic" or n < 3)


@pytest.mark.parametrize(
    ("name", "n", "size", "depth"),
    [
        ("merge_exchange", 33, 207, 17),
        ("odd_even_merge", 33, 246, 20),
        ("bitonic", 33, 321, 21),
        ("merge_exchange", 1000, 23499, 55),
        ("odd_even_merge", 1000, 23521, 55),
        ("bitonic", 1000, 27268, 55),
        ("merge_exchange", 1024, 24063, 55),
        ("bitonic", 15, 70, 10),
        ("bitonic", 1024, 28160, 55),
        ("odd_even", 1024, 523776, 1024),
    ],
)
def test_published_sizes_and_depths(name, n, size, depth):
    network = family_network(name, n)
    assert (network.size, network.depth) == (size, depth)


def test_sizes_and_depths_follow_their_formulas():
    for n in range(1, 70):
        k, sizes = (n - 1).bit_length(), {}
        for name in BATCHER:
            network = family_network(name, n)
            sizes[name] = network.size
            assert network.depth <= k * (k + 1) // 2
            if n == 1 << k:
                assert network.depth == k * (k + 1) // 2
                assert network.size == (
                    n * k * (k + 1) // 4 if name == "bitonic" else (k * k - k + 4) * n // 4 - 1
                )
        assert sizes["merge_exchange"] == min(sizes.values())
        transposition, insertion = family_network("odd_even", n), family_network("insertion", n)
        assert transposition.size == insertion.size == n * (n - 1) // 2
        assert transposition.depth == (n if n > 2 else n - 1)
        assert insertion.depth == max(0, 2 * n - 3)


@pytest.mark.parametrize("name", FAMILIES)
def test_numbers_of_wires_out_of_range_are_refused(name):
    for n in (0, -3, True, 2.0, "4", None, MAX_WIRES + 1, 10**30):
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
