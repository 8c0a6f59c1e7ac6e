"""Catches inputs of a proof on which a wrong kernel passes or a right one fails."""

import numpy as np
import pytest

from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.optimize import top_k_candidates
from nsc.compiler.verify import Budget, check_emitted, emitted, parse, sort


def check(network, property_, ranks, run, budget=None, **options):
    return check_emitted(network, property_, ranks, {"kernel": run}, budget or Budget(), **options)["kernel"]


def kernel_of(network, ranks):
    """Return a function that runs a network as kernels do, on values and indices, and a list of inputs."""
    batches = []

    def run(values):
        batches.append(values)
        entries = values.astype(np.int64) * network.n + np.arange(network.n)
        out = network.apply(entries)[:, ranks]
        return (out // network.n).astype(np.float32), out % network.n

    return run, batches


LARGE = pytest.mark.slow("networks are large")


@pytest.mark.parametrize(
    ("name", "n", "what"),
    [("bitonic", 9, "all 2^9"), pytest.param("merge_exchange", 64, "of the reachable sets", marks=LARGE)],
)
def test_a_right_kernel_passes_and_one_without_a_comparator_fails(name, n, what):
    network = family_network(name, n)
    ranks = list(range(n))
    outcome = check(network, sort(n), ranks, kernel_of(network, ranks)[0])
    assert (outcome.complete, outcome.what, outcome.failing) == (True, what, None)
    pairs = network.comparators.tolist()
    for index in range(0, len(pairs), 7):
        less = Network.from_comparators(n, pairs[:index] + pairs[index + 1 :])
        failing = check(network, sort(n), ranks, kernel_of(less, ranks)[0]).failing
        assert failing is not None, index


def test_selections_are_run_on_the_inputs_of_their_own_proof():
    network = top_k_candidates(60, 3)[0].network
    ranks = [59, 58, 57]
    run, batches = kernel_of(network, ranks)
    outcome = check(network, parse("top-3", 60), ranks, run)
    assert (outcome.complete, outcome.failing) == (True, None)
    assert outcome.inputs == sum(map(len, batches)) < 10_000
    swapped = kernel_of(network, [58, 59, 57])[0]
    assert check(network, parse("top-3", 60), ranks, swapped).failing is not None


def test_a_sample_of_inputs_is_reported_as_one():
    network = family_network("pairwise", 64)
    ranks = list(range(64))
    outcome = check(network, sort(64), ranks, kernel_of(network, ranks)[0], Budget(states=1000))
    assert (outcome.complete, outcome.what, outcome.failing) == (False, "sampled", None)
    assert outcome.inputs > 4096


def test_an_unstable_kernel_is_wrong():
    network = family_network("bitonic", 4)

    def unstable(values):
        order = np.argsort(-values, axis=1, kind="stable")[:, ::-1]
        return np.take_along_axis(values, order, axis=1), order

    assert check(network, sort(4), list(range(4)), unstable).failing is not None


def test_a_slow_kernel_is_run_on_a_sample_and_one_that_fails_no_more(monkeypatch):
    monkeypatch.setattr(emitted, "_NUMBERS", 15 << 14)
    network, ranks = family_network("bitonic", 15), list(range(15))
    less = Network.from_comparators(15, network.comparators.tolist()[:-1])
    kernels = {name: kernel_of(network, ranks) for name in ("fast", "slow")} | {
        "wrong": kernel_of(less, ranks)
    }
    runs = {name: run for name, (run, _) in kernels.items()}
    found = check_emitted(network, sort(15), ranks, runs, Budget(), slow=["slow"])
    assert found["fast"] == emitted.Emitted(1 << 15, True, "all 2^15", None)
    assert found["slow"] == emitted.Emitted((1 << 14) + (1 << 10), False, "a sample of all 2^15", None)
    assert found["wrong"].failing is not None
    assert len(kernels["wrong"][1]) == 1
