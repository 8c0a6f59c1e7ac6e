"""Whether running a kernel on the inputs of a proof tells right kernels from wrong ones."""

import numpy as np
import pytest

from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.optimize import top_k_candidates
from nsc.compiler.verify import Budget, check_emitted, parse, sort


def kernel_of(network, ranks):
    """Return a run of a network, on entries of value and place as kernels have them, and what it ran on."""
    seen = []

    def run(values):
        seen.append(values)
        entries = values.astype(np.int64) * network.n + np.arange(network.n)
        out = network.apply(entries)[:, ranks]
        return (out // network.n).astype(np.float32), out % network.n

    return run, seen


@pytest.mark.parametrize(
    ("name", "n", "what"), [("bitonic", 9, "all 2^9"), ("merge_exchange", 64, "of the reachable sets")]
)
def test_right_kernels_and_each_with_a_comparator_less(name, n, what):
    network = family_network(name, n)
    ranks = list(range(n))
    outcome = check_emitted(network, sort(n), ranks, kernel_of(network, ranks)[0], Budget())
    assert (outcome.complete, outcome.what, outcome.failing) == (True, what, None)
    pairs = network.comparators.tolist()
    for left_out in range(0, len(pairs), 7):
        less = Network.from_comparators(n, pairs[:left_out] + pairs[left_out + 1 :])
        failing = check_emitted(network, sort(n), ranks, kernel_of(less, ranks)[0], Budget()).failing
        assert failing is not None, left_out


def test_selections_are_run_on_the_inputs_of_their_own_proof():
    network = top_k_candidates(60, 3)[0].network
    ranks = [59, 58, 57]
    run, seen = kernel_of(network, ranks)
    outcome = check_emitted(network, parse("top-3", 60), ranks, run, Budget())
    assert (outcome.complete, outcome.failing) == (True, None)
    assert outcome.inputs == sum(map(len, seen)) < 10_000
    swapped = kernel_of(network, [58, 59, 57])[0]
    assert check_emitted(network, parse("top-3", 60), ranks, swapped, Budget()).failing is not None


def test_where_the_reachable_sets_do_not_end_a_sample_is_said_to_be_one():
    network = family_network("pairwise", 64)
    ranks = list(range(64))
    outcome = check_emitted(network, sort(64), ranks, kernel_of(network, ranks)[0], Budget(states=1000))
    assert (outcome.complete, outcome.what, outcome.failing) == (False, "sampled", None)
    assert outcome.inputs > 4096


def test_an_unstable_kernel_is_wrong():
    network = family_network("bitonic", 4)

    def unstable(values):
        order = np.argsort(-values, axis=1, kind="stable")[:, ::-1]
        return np.take_along_axis(values, order, axis=1), order

    assert check_emitted(network, sort(4), list(range(4)), unstable, Budget()).failing is not None
