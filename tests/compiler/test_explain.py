"""Catches figures of a schedule that count wrongly, and light cones that leave out what is not zero."""

import numpy as np
import pytest
import torch

import nsc
from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.schedule import CONE_COLUMNS, explain, schedule


def test_figures_of_bitonic_1024():
    figures = explain(schedule(FAMILIES["bitonic"](1024)))
    assert figures.comparators == 28160
    assert figures.comparators_per_load == pytest.approx(figures.comparators / figures.loads)
    assert figures.comparators_per_load > 2.1
    assert figures.flops_per_byte == pytest.approx(0.75 * figures.comparators_per_load)
    assert figures.widest == 16
    assert 0.3 < figures.light_cone < 0.4


def test_a_light_cone_saves_nothing_on_small_networks():
    assert explain(schedule(FAMILIES["odd_even"](16))).light_cone == 1


def test_an_empty_network():
    figures = explain(schedule(Network.from_layers(2, [])))
    assert (figures.codelets, figures.loads, figures.comparators_per_load, figures.light_cone) == (0, 0, 0, 0)


@pytest.mark.parametrize(("family", "n"), [("bitonic", 64), ("odd_even", 128), ("bitonic", 256)])
def test_P_is_zero_outside_the_light_cone(family, n):
    """A dense P with weights of 1/2 shows which blocks of columns are not zero in a codelet's rows."""
    network = FAMILIES[family](n)
    scheduled = schedule(network)
    P = np.eye(n)
    needed = 0
    for codelet in scheduled.codelets:
        rows = np.array(codelet.wires)
        reached = P[rows].any(axis=0).reshape(-1, CONE_COLUMNS).any(axis=1)
        needed += len(codelet.shape) * np.count_nonzero(reached)
        for pair in codelet.shape:
            ends = rows[[pair.a, pair.b]]
            P[ends] = P[ends].mean(axis=0)
    blocks = n // CONE_COLUMNS
    share = needed / (blocks * network.size)
    assert share < 1, "some of P is zero on the way"
    # A light cone holds all wires of a codelet or none, so a few of its blocks are zero.
    assert share <= explain(scheduled).light_cone <= 1.05 * share


@pytest.mark.slow("networks are large")
def test_P_is_right_where_half_of_the_work_is_skipped():
    """Two networks side by side, then a sorter: no column of either reaches the other's codelets."""
    halves = [FAMILIES["bitonic"](16).comparators + 16 * side for side in (0, 1)]
    network = Network.from_comparators(32, [*halves[0].tolist(), *halves[1].tolist()])
    assert explain(schedule(network)).light_cone <= 0.5
    whole = FAMILIES["merge_exchange"](32)
    sorter = Network.from_comparators(32, [*network.comparators.tolist(), *whole.comparators.tolist()])
    op = nsc.compile(sorter, name="halves_first", unproved=True, dtypes=("float64",))
    x = torch.randn(32, dtype=torch.float64)
    values, P = op.sort_with_permutation(x, 5.0)
    torch.testing.assert_close(P @ x, values)
    torch.testing.assert_close(P.sum(0), torch.ones(32, dtype=torch.float64))
