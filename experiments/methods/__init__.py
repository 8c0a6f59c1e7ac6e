"""Methods: one table from names to losses of scores.

    loss = find("bitonic+cauchy").start(32, None, torch.Generator())
    loss(scores, Truth(ranks, values)).backward()

A method is a file here and a row of METHODS, or a file of the user's own. Methods that relax the permutation
matrix P have the loss of the paper, equation 6: the mean of -log P[rank of c, c]. Networks never store P.
Name, file, and time and memory of a sample, forward and backward:

    sorting networks    networks         O(n·size) and O(n·depth): bitonic n²·log² n, odd_even n³
    neural_sort         permutations     O(n²); stochastic_neural_sort: five times that
    soft_sort           permutations     O(n²)
    optimal_transport   transport        O(n²·iterations) and O(n²)
    lap_sum             laplace          O(n·log n) and O(n)
    fast_rank           ranks            O(n·rounds) and O(n), rounds about log n
    rank_net            pairs_and_lists  O(n²)
    list_mle            pairs_and_lists  O(n·log n) and O(n)
    regression          regression       O(n)

The file classes has the losses of logits.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.errors import ExperimentError
from experiments.methods.laplace import LAPSUM
from experiments.methods.networks import OPTIONS, depth, network_method, recorded, with_strength
from experiments.methods.pairs_and_lists import LISTMLE, RANKNET
from experiments.methods.permutations import NEURALSORT, SOFTSORT, STOCHASTIC_NEURALSORT
from experiments.methods.ranks import FAST_SORT_AND_RANK
from experiments.methods.records import Loss, Method, Truth, middle, usual_temperature
from experiments.methods.regression import REGRESSION
from experiments.methods.transport import TRANSPORT
from experiments.user_files import is_file_of, load_record, with_digest

__all__ = [
    "GRAMMAR",
    "METHODS",
    "Loss",
    "Method",
    "Truth",
    "depth",
    "find",
    "is_network",
    "middle",
    "record_name",
    "usual_temperature",
    "with_strength",
]

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        network_method("odd_even"),
        network_method("bitonic"),
        NEURALSORT,
        STOCHASTIC_NEURALSORT,
        SOFTSORT,
        TRANSPORT,
        FAST_SORT_AND_RANK,
        LAPSUM,
        RANKNET,
        LISTMLE,
        REGRESSION,
    )
}


def find(name: str) -> Method:
    """Return the method of a name.

    Args:
        name: a key of METHODS; or the path of a Python file that states METHOD, a Method; or a family of nsc
            or the path of a network file, followed by options that are joined with "+", such as
            "bitonic+cauchy", "odd_even+art=0" or "my.txt+bce".

    Raises:
        ExperimentError: an unknown name or option; the message lists the known ones.
    """
    if name in METHODS:
        return METHODS[name]
    if is_file_of(name):
        return replace(load_record(name, "METHOD", Method), name=name)
    try:
        return network_method(name)
    except ExperimentError as error:
        others = ", ".join(key for key in METHODS if key not in ("odd_even", "bitonic"))
        raise ExperimentError(
            f"{error.message}. Other methods: {others}. Options of networks: {', '.join(OPTIONS)}"
        ) from None


def is_network(name: str) -> bool:
    """Return whether a method is a sorting network."""
    return find(name).is_network


def record_name(name: str) -> str:
    """Return a method's name for the record of a run; a file's name has its digest."""
    if is_file_of(name):
        return with_digest(name)
    return recorded(name) if is_network(name) else name


GRAMMAR = (
    "A sorting network is a family of nsc, or the path of a network file, and options joined with +: "
    f"{', '.join(OPTIONS)}. For example bitonic+cauchy, odd_even+art=0.4, my_network.txt+bce. "
    "A method of your own is a Python file that states METHOD."
)
"""How a sorting network is named, a sentence for users."""
