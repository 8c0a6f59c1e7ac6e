"""Catches a selection that names another property, package or option than its own."""

from __future__ import annotations

import click
import pytest

from nsc.cli.shared import selection_options
from nsc.compiler import driver
from nsc.compiler.families import FAMILIES
from nsc.compiler.naming import command, default_name, purpose
from nsc.compiler.network import Network
from nsc.compiler.optimize import smallest_first
from nsc.compiler.request import Request
from nsc.compiler.selection import median, ranks, top_k
from nsc.compiler.verify import Budget, parse, verify
from nsc.compiler.verify.reachable import FEW_STATES
from nsc.compiler.verify.sat import FEW_PROPAGATIONS
from nsc.errors import PropertyError, UnprovedError, VerificationError

# Selection of 9 values: property, name of a package, words, option, outputs in order.
SELECTIONS = {
    top_k(1): ("top-1", "top_1", "the largest", "--top-k 1", [8]),
    top_k(3): ("top-3", "top_3", "the 3 largest", "--top-k 3", [8, 7, 6]),
    median(): ("median", "median", "the median", "--median", [4]),
    ranks(4): ("rank-4", "rank_4", "rank 4", "--ranks 4", [4]),
    ranks(7, 0, 8): ("rank-7,0,8", "rank_7_0_8", "3 ranks", "--ranks 7,0,8", [7, 0, 8]),
    ranks(*range(9)): (
        "rank-0,1,2,3,4,5,6,7,8",
        "9_ranks",
        "9 ranks",
        "--ranks 0,1,2,3,4,5,6,7,8",
        list(range(9)),
    ),
}


@pytest.mark.parametrize("select", SELECTIONS)
def test_a_selection_names_itself_and_its_property(select):
    property_, label, words, option, outputs = SELECTIONS[select]
    request = Request("bitonic", 9, select=select)
    assert request.property_of(9) == parse(property_, 9)
    assert request.outputs(9) == {rank: rank for rank in outputs}
    assert list(request.outputs(9)) == outputs
    assert default_name(request, 9) == f"bitonic_9_{label}"
    assert purpose(request, 9) == f"selection of {words} of 9 values"
    assert command(request, "unused") == f"nsc compile bitonic --n 9 {option}"


@pytest.mark.parametrize("select", SELECTIONS)
def test_the_command_line_reads_the_option_that_a_selection_names(select):
    @click.command()
    @selection_options
    def reader(select):
        return select

    assert reader.main(select.option.split(), standalone_mode=False) == select


def test_wires_are_named_from_the_smallest_rank_or_as_the_ranks_are():
    assert top_k(2).outputs(4, (0, 1)) == {1: 3, 0: 2}
    assert list(top_k(2).outputs(4, (0, 1))) == [1, 0]
    assert median().outputs(5, (3,)) == {3: 2}
    assert ranks(3, 0).outputs(4, (1, 2)) == {1: 3, 2: 0}
    assert ranks(3, 0).property_of(4, (1, 2)) == parse("rank-3,0", 4, (1, 2))


def test_the_median_of_an_even_number_is_no_value():
    with pytest.raises(PropertyError, match=r"mean of ranks 7 and 8.* select both, nsc.ranks\(7, 8\)"):
        median().outputs(16)
    # A network has both in the middle, in any order.
    network = Network.from_layers(4, [[(0, 1), (2, 3)], [(0, 2), (1, 3)]])
    assert verify(network, parse("median", 4))
    assert not verify(network, ranks(1, 2).property_of(4))


@pytest.fixture
def tried(monkeypatch):
    """Return a function that compiles a request whose first proofs fail, and returns what is tried."""

    def tries_of(request, network, *failures):
        tries, errors = [], iter(failures)

        def prove(network, property_, unproved, budget, methods):
            tries.append((network, budget))
            for error in errors:
                raise error
            return "a proof"

        monkeypatch.setattr(driver, "prove", prove)
        monkeypatch.setattr(driver, "transform", lambda network, *_: network)
        found = driver._first_that_holds(network, request.property_of(network.n), request, Budget())
        assert found == (tries[-1][0], "a proof")
        return tries

    return tries_of


UNPROVED, REFUTED = UnprovedError("limits"), VerificationError("refuted", (), ())


def test_most_requests_try_one_network(tried):
    network = FAMILIES["bitonic"](7)
    for select in (None, median(), top_k(2), ranks(1, 3), ranks(1, 2, 3)):
        request = Request(network, select=select)
        assert tried(request, network) == [(network, Budget())]
        with pytest.raises(VerificationError, match="refuted"):
            tried(request, network, REFUTED)


def test_two_neighbouring_ranks_may_take_one_comparator_more(tried):
    """As networks for the median of an even number leave the two middle values in any order."""
    network = FAMILIES["bitonic"](6)
    for select, wires in ((ranks(2, 3), (4, 1)), (ranks(3, 2), (1, 4))):
        request = Request(network, select=select, wires=wires)
        (first, _), (second, _) = tried(request, network, REFUTED)
        assert first is network
        assert second.comparators.tolist() == [*network.comparators.tolist(), [4, 1]]
        with pytest.raises(UnprovedError):
            tried(request, network, UNPROVED)


def test_the_best_network_is_the_first_that_is_proved_quickly(tried):
    network, request = FAMILIES["best"](10), Request("best", 10, select=top_k(3))
    networks = smallest_first(parse("top-3", 10))
    *quick, last = tried(request, network, *[UNPROVED] * len(networks))
    limits = Budget(states=FEW_STATES, propagations=FEW_PROPAGATIONS)
    assert quick == [(each, limits) for each in networks]
    assert last == (networks[0], Budget())
    trusted = tried(Request("best", 10, select=top_k(3), unproved=True), network)
    assert trusted == [(networks[0], Budget())]
