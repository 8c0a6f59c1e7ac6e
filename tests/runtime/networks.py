"""Networks and operators that nsc itself does not offer, for the tests of the kernels."""

from __future__ import annotations

import random

import nsc
from nsc.compiler.driver import Request, compile_network
from nsc.compiler.families import merge_exchange
from nsc.compiler.relaxations import Relaxation
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter

# Large networks run some shapes from a table: kernels build faster, and both kinds of code are tested.
FEW_STRAIGHT = 120


def irregular(n, size, seed):
    """Return a sorting network with redundant comparators in front, so that its graph has no pattern.

    About half of these comparators are reversed.
    """
    rng = random.Random(seed)
    front = [rng.sample(range(n), 2) for _ in range(size)]
    back = merge_exchange(n).comparators.tolist()
    return nsc.Network.from_comparators(n, front + back)


def partly_tabled(
    network,
    n=None,
    *,
    straight_line=FEW_STRAIGHT,
    select=None,
    relaxation="logistic",
    art_lambda=0.25,
    error_free=False,
    **options,
):
    """Return what `nsc.compile` returns, with less straight-line code; `select` is as in a Request."""
    request = Request(
        network,
        n,
        Relaxation(relaxation, art_lambda, error_free),
        select=select,
        straight_line=straight_line,
        version=nsc.__version__,
        **options,
    )
    kind = Sorter if select is None else Selector
    return kind(compile_network(request).package.files)
