"""Methods: one table from names to losses of scores.

    loss = find("bitonic+cauchy").start(32, None, torch.Generator())
    loss(scores, Truth(ranks, values)).backward()

A method is a file here and a row of METHODS. Methods that relax the permutation matrix P have the loss of the
paper, equation 6: the mean of -log P[rank of c, c]. Time and memory of a sample, forward and backward:

    sorting networks    O(n·size) and O(n·depth), P is never stored: bitonic n²·log² n, odd_even n³
    neuralsort          O(n²); stochastic: five times that
    softsort            O(n²)
    ot                  O(n²·iterations) and O(n²)
    lapsum              O(n·log n) and O(n)
    fastrank            O(n·rounds) and O(n), rounds about log n
    ranknet             O(n²)
    listmle             O(n·log n) and O(n)
    regression          O(n)
"""

from __future__ import annotations

from experiments.errors import ExperimentError
from experiments.methods.laplace import LAPSUM
from experiments.methods.networks import OPTIONS, network_method
from experiments.methods.pairs_and_lists import LISTMLE, RANKNET
from experiments.methods.permutations import NEURALSORT, SOFTSORT, STOCHASTIC_NEURALSORT
from experiments.methods.ranks import FAST_SORT_AND_RANK
from experiments.methods.records import Loss, Method, Truth, middle
from experiments.methods.regression import REGRESSION
from experiments.methods.transport import TRANSPORT

__all__ = ["METHODS", "Loss", "Method", "Truth", "find", "middle"]

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
        name: a key of METHODS; or a family of nsc or the path of a network file, followed by options that
            are joined with "+", such as "bitonic+cauchy", "odd_even+art=0" or "my.txt+bce".

    Raises:
        ExperimentError: an unknown name or option; the message lists the known ones.
    """
    if name in METHODS:
        return METHODS[name]
    try:
        return network_method(name)
    except ExperimentError as error:
        others = ", ".join(key for key in METHODS if key not in ("odd_even", "bitonic"))
        raise ExperimentError(
            f"{error.message}. Other methods: {others}. Options of networks: {', '.join(OPTIONS)}"
        ) from None
