"""nsc.compat: another value, P, gradient or matrix than diffsort 0.2.0 has; a wrong argument that passes."""

from __future__ import annotations

import itertools

import pytest
import torch

pytest.importorskip("diffsort")

import diffsort

import nsc
from nsc.compat import (
    DiffSortNet,
    bitonic_network,
    functional,
    get_sorting_network,
    networks,
    odd_even_network,
    sort,
)
from nsc.compat.functional import DISTRIBUTIONS

pytestmark = pytest.mark.slow("every variant of diffsort is built")

# Every distribution on one network, one of them on both, and sizes that diffsort prunes its network for.
BUILT = [
    *itertools.product(["odd_even"], [9], ["logistic_phi", "logistic", "reciprocal", "optimal"]),
    *itertools.product(["bitonic"], [8], ["logistic_phi", "gaussian", "cauchy"]),
    ("odd_even", 2, "logistic_phi"),
    ("bitonic", 11, "logistic_phi"),
]
assert {distribution for *_, distribution in BUILT} == set(DISTRIBUTIONS)


@pytest.mark.parametrize(("network", "n", "distribution"), BUILT)
def test_values_P_and_gradients_are_diffsorts(network, n, distribution):
    theirs = diffsort.DiffSortNet(network, n, steepness=3.0, distribution=distribution)
    ours = DiffSortNet(network, n, steepness=3.0, distribution=distribution)
    x = torch.randn(4, n, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(4, n, n, dtype=torch.float64)
    results = []
    for sorter in (ours, theirs):
        values, P = sorter(x)
        torch.testing.assert_close((x.unsqueeze(1) @ P).squeeze(1), values)
        (grad,) = torch.autograd.grad((P * upstream).sum() + values.square().sum(), x)
        results.append((values, P, grad / (1 + grad.abs().max())))
    # diffsort holds the width of its Gaussian in float32.
    tolerance = 1e-6 if distribution == "gaussian" else 1e-9
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_defaults_are_diffsorts():
    x = torch.randn(3, 8)
    for actual, expected in zip(
        DiffSortNet("bitonic", 8)(x), diffsort.DiffSortNet("bitonic", 8)(x), strict=True
    ):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    positional = DiffSortNet("odd_even", 4, "cpu", 5.0, 0.4, "logistic_phi")
    expected = diffsort.DiffSortNet("odd_even", 4, "cpu", 5.0, 0.4, "logistic_phi")
    torch.testing.assert_close(positional(x[:, :4])[1], expected(x[:, :4])[1])


def test_attributes_set_after_construction_act_as_diffsorts_do():
    """diffsort's forward reads these attributes; both classes build the network at construction."""
    x = torch.randn(3, 4)
    theirs, ours = diffsort.DiffSortNet("odd_even", 4), DiffSortNet("odd_even", 4)
    results = [ours(x)[1]]
    for name, value in (
        ("distribution", "logistic_phi"),
        ("art_lambda", 0.5),
        ("steepness", 3.0),
        ("distribution", "logistic"),
        ("sorting_network_type", "bitonic"),
    ):
        setattr(theirs, name, value)
        setattr(ours, name, value)
        for actual, expected in zip(ours(x), theirs(x), strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
        results.append(ours(x)[1])
    assert [torch.equal(a, b) for a, b in itertools.pairwise(results)] == [False] * 4 + [True]
    ours.distribution = "laplace"
    with pytest.raises(nsc.LoweringError, match="got 'laplace'"):
        ours(x)


def test_a_size_that_diffsorts_network_does_not_sort_is_refused():
    said = r"""diffsort's own bitonic network does not sort 22 values; nsc\.compile\("bitonic", 22\) does"""
    with pytest.raises(nsc.VerificationError, match=said) as refused:
        DiffSortNet("bitonic", 22)
    assert len(refused.value.failing_input) == 22
    assert nsc.verify(nsc.compiler.families.bitonic(22)).verdict is nsc.Verdict.PROVED


@pytest.mark.parametrize("n", [1, 2, 5, 8, 11])
@pytest.mark.parametrize("kind", ["bitonic", "odd_even"])
def test_layers_of_matrices_are_diffsorts_but_for_the_order_of_their_rows(kind, n):
    ours = {"bitonic": bitonic_network, "odd_even": odd_even_network}[kind](n)
    theirs = getattr(diffsort, f"{kind}_network")(n)
    # Layers without comparators do nothing, and are left out.
    theirs = [layer for layer in theirs if (layer[0] != layer[1]).any()]
    for our_layer, their_layer in zip(ours, theirs, strict=True):
        for x, y, axis in zip(our_layer, their_layer, (0, 0, 1, 1), strict=True):
            assert sorted(x.swapaxes(0, axis).tolist()) == sorted(y.swapaxes(0, axis).tolist())
    assert networks.network_of(ours) == networks.network_of(theirs) == networks.network_of(list(ours))
    assert len(ours[1:]) == max(0, len(ours) - 1)


@pytest.mark.parametrize("steepness", [-4.0, torch.tensor([3.0]), torch.tensor([[2.0], [-3.0], [5.0]])])
@pytest.mark.parametrize("distribution", ["cauchy", "logistic_phi"])
def test_functions_of_diffsort_take_its_networks_and_ours(distribution, steepness):
    x = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    theirs = diffsort.get_sorting_network("odd_even", 6, "cpu")
    expected = diffsort.functional.execute_sort(theirs, x, steepness, 0.3, distribution)
    (grad,) = torch.autograd.grad(expected[1].square().sum(), x)
    for layers in (theirs, get_sorting_network("odd_even", 6, "cpu"), odd_even_network(6)):
        for function in (functional.execute_sort, sort):
            actual = function(layers, x, steepness, 0.3, distribution)
            torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(torch.autograd.grad(actual[1].square().sum(), x)[0], grad)


def test_a_network_that_a_program_moves_by_hand_is_taken_back():
    sorter, x = DiffSortNet("odd_even", 5), torch.randn(2, 5)
    before = sorter(x)
    sorter.sorting_network = [[matrix.to("cpu") for matrix in layer] for layer in sorter.sorting_network]
    torch.testing.assert_close(sorter(x), before, rtol=0, atol=0)
    sorter.sorting_network = get_sorting_network("bitonic", 5, "cpu")
    torch.testing.assert_close(sorter(x), DiffSortNet("bitonic", 5)(x), rtol=0, atol=0)
    # A matrix that is written to makes another network.
    layers = [list(layer) for layer in get_sorting_network("odd_even", 2, "cpu")]
    assert functional.sort(layers, torch.tensor([[1.0, 0.0]]), 1e6)[0].round().tolist() == [[0, 1]]
    for layer in layers[:1]:
        low, high = layer[2].clone(), layer[3].clone()
        layer[2].copy_(high)
        layer[3].copy_(low)
    with pytest.raises(nsc.VerificationError):
        functional.sort(layers[:1], torch.tensor([[1.0, 0.0]]), 1e6)
    layers[0][0].zero_()
    with pytest.raises(nsc.NetworkError, match="layer 0 has matrices that are no comparators of 2 wires"):
        functional.sort(layers[:1], torch.tensor([[1.0, 0.0]]), 1e6)


def test_wrong_arguments():
    for call, message in (
        (lambda: DiffSortNet("bubble", 4), "must be one of odd_even, bitonic, got 'bubble'"),
        (lambda: get_sorting_network("bubble", 4, "cpu"), "sorting network 'bubble' is unknown"),
        (lambda: sort(odd_even_network(3), torch.randn(2, 3), distribution="laplace"), "must be one of log"),
        (lambda: DiffSortNet("bitonic", 4, distribution="logistic", interpolation_type="x"), "disagree"),
        (lambda: DiffSortNet("bitonic", 4, device="meta"), "'cpu' or 'cuda', got 'meta'"),
    ):
        with pytest.raises(nsc.LoweringError, match=message):
            call()
    for shape in ((4,), (2, 3), (2, 3, 4)):
        with pytest.raises(nsc.OperandError, match=r"sorts \(batch, 4\) along axis 1, got"):
            DiffSortNet("bitonic", 4)(torch.zeros(shape))
    assert (
        DiffSortNet("bitonic", 4, distribution=None, interpolation_type="gaussian").distribution == "gaussian"
    )
