"""Functions for networks, without torch: read, list, shrink, write them; count errors."""

from __future__ import annotations

from collections.abc import Sequence

from nsc.arguments import names
from nsc.compiler import families
from nsc.compiler.describe import Named, describe
from nsc.compiler.driver import prove
from nsc.compiler.emit import compile_emitted
from nsc.compiler.families import KINDS, Found, found
from nsc.compiler.network import Network, check_wires
from nsc.compiler.optimize import MOST_RECORDED, Optimized
from nsc.compiler.optimize import optimize as optimize_network
from nsc.compiler.request import Request
from nsc.compiler.selection import Selection
from nsc.compiler.verify import Budget, Property, RankErrors, Verdict, property_of
from nsc.compiler.verify import rank_errors as rank_errors_of
from nsc.errors import NetworkError, UnprovedError
from nsc.join.budget import MAX_MEMORY, budget_of
from nsc.version import VERSION
from nsc.wording import argument

__all__ = ["emit", "network", "optimize", "rank_errors", "records"]


def network(
    named: Named,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
    name: str | None = None,
) -> Network:
    """Return the network that a family, a file or lists name. It need not sort.

    Args:
        named: a family's name, the path of a file, comparators (lo, hi) in one list or a list for each
            layer, or a Network, which is returned.
        n, format, index_base: as in `compile`. Of several networks in a file, n chooses the one of so many
            wires.
        name: of the network, in a file that has several.

    Raises:
        NetworkError: no such family or file, or no network in it.

    >>> network("bitonic", 16).counts
    '16 wires, 80 comparators, 10 layers'
    """
    return describe(named, n, format, index_base, name=name)


def records(n: int | None = None) -> tuple[Found, ...]:
    """Return the best known networks on n wires, or all networks that are smaller than published ones.

    Args:
        n: number of wires: first the sorters and medians that no other beats in both comparators and layers,
            then the networks for the largest values that search found. None: all sorters and medians that are
            smaller than the published ones.

    Raises:
        NetworkError: n that is no number of wires, or too large.

    >>> [record.name for record in records(10) if record.kind == "sort"]
    ['sort_10_29_8', 'sort_10_31_7']
    """
    if n is None:
        return tuple(entry for kind in KINDS for entry in found(kind))
    wires = check_wires(n)
    if wires > MOST_RECORDED:
        raise NetworkError(f"records go up to {MOST_RECORDED:,} wires, got {argument('n', wires)}")
    return families.records(wires)


def optimize(
    network: Named,
    n: int | None = None,
    *,
    property: str | Property = "sort",
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
) -> Optimized:
    """Make a network smaller for a property that it has: without dead and redundant comparators.

    The smaller network has the property and is never larger or deeper. Exactly sorted values stay the same,
    soft values change.

    Args:
        network, n, format, index_base: the network, as in `compile`.
        property, max_memory, time_limit: as in `verify`.

    Raises:
        NetworkError: no such family or file, or no network in it.
        PropertyError: as in `verify`.
        VerificationError: the network does not have the property.
        UnprovedError: no method settled it within the limits.

    >>> optimize(network("bitonic", 4) + network("bitonic", 4)).network.size
    6
    """
    budget = budget_of(max_memory, time_limit)
    described = describe(network, n, format, index_base)
    return proved_and_optimized(described, property_of(property, described.n), budget)


def rank_errors(
    network: Named,
    n: int | None = None,
    *,
    property: str | Property = "sort",
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
) -> RankErrors:
    """Count for how many orders of different values each output of a network carries which rank.

    Args:
        network, n, format, index_base: the network, as in `compile`; it need not have the property.
        property: the right ranks, as in `verify`. Presorted inputs are sorted in each order.
        max_memory: MB for counted 0-1 patterns. Where they need more, and from 65 wires on, random orders are
            sampled, always the same.

    Raises:
        NetworkError: no such family or file, or no network in it.
        PropertyError: as in `verify`.

    >>> found = rank_errors([(0, 1), (1, 2)], property="median").outputs[0]
    >>> found.right, found.most_off
    (Fraction(2, 3), 1)
    """
    described = describe(network, n, format, index_base)
    return rank_errors_of(described, property_of(property, described.n), budget_of(max_memory, None))


def proved_and_optimized(network: Network, property_: Property, budget: Budget) -> Optimized:
    """Prove a property of a network, and make the network smaller for it; raises as `optimize`."""
    proof = prove(network, property_, unproved=True, budget=budget)
    if proof.verdict is not Verdict.PROVED:
        raise UnprovedError(f"the network is unproved, so nothing is removed: {proof.detail}")
    budget.progress.phase("optimise")
    return optimize_network(network, property_, budget)


def emit(
    language: str,
    network: Named,
    n: int | None = None,
    *,
    select: Selection | None = None,
    wires: Sequence[int] | None = None,
    off_by: int = 0,
    remove_redundant: bool = False,
    dtypes: str | Sequence[str] = ("float32",),
    name: str | None = None,
    unproved: bool = False,
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
) -> str:
    """Prove a network and return a text in a language, whose functions or circuit sort or select exactly.

    Args:
        language: one of c, cuda, rust, verilog, vhdl.
        network, n, select, wires, remove_redundant, unproved, format, index_base, max_memory, time_limit: as
            in `compile`.
        off_by: how far the ranks of results may be from those selected, for networks that approximate.
        dtypes: for C the types of values, one or several: float64, float32, int64, int32, int16, int8,
            uint64, uint32, uint16 and uint8.
        name: how the functions begin, or the name of the circuit; None: the default name of a package of
            this network.

    Raises:
        The errors of `compile`.
        LoweringError: an unknown language, or an option that it does not have.

    >>> text = emit("c", "best", 16, dtypes=("int32", "float32"))
    >>> "void best_16_int32(const int32_t *x, int32_t *values)" in text
    True
    """
    request = Request(
        network=network,
        n=n,
        dtypes=names(dtypes),
        name=name,
        unproved=unproved,
        version=VERSION,
        format=format,
        index_base=index_base,
        select=select,
        wires=wires,
        off_by=off_by,
        remove_redundant=remove_redundant,
        language=language,
    )
    return compile_emitted(request, budget_of(max_memory, time_limit)).text
