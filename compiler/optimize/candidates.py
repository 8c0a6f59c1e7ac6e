"""Networks for some ranks alone: candidates for the k largest, the cost of each, and the smallest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsc.arguments import integer
from nsc.compiler.families import (
    BLOCK_MERGES,
    FAMILIES,
    MOST_CUT,
    Comparator,
    Family,
    Growth,
    best,
    cut_and_merged,
    known,
    selected,
)
from nsc.compiler.network import Network, check_wires
from nsc.compiler.optimize.pipeline import optimize
from nsc.compiler.passes.reflect import reflect
from nsc.compiler.passes.restrict import half_operations, restrict
from nsc.compiler.passes.untangle import untangle
from nsc.compiler.verify import Budget, Property
from nsc.errors import NetworkError
from nsc.wording import argument, count

# Up to this many wires and patterns redundant comparators are looked for.
MOST_OPTIMIZED = 64
OPTIMIZING_STATES = 1 << 16


@dataclass(frozen=True)
class TopKCandidate:
    """A network whose last k wires carry the k largest values, ascending.

    Attributes:
        name: its construction.
        network: the network in standard form, without comparators that these wires do not depend on.
        half_operations: minima and maxima that these wires depend on.
        live_wires: most values held at a time, if the comparators run in the construction's order.
    """

    name: str
    network: Network
    half_operations: int
    live_wires: int


def top_k_candidates(n: int, k: int) -> list[TopKCandidate]:
    """Return networks for the k largest of n values, fewest half operations first.

    Raises:
        NetworkError: n out of range, or k not in 1 … n.

    >>> best = top_k_candidates(1024, 8)[0]
    >>> best.network.size
    4438
    """
    n, k = check_wires(n), integer("k", k, NetworkError)
    if not 1 <= k <= n:
        raise NetworkError(f"the top k of {count(n, 'wire')} needs 1 <= k <= {n}, got {k}")
    families = [family for family in FAMILIES.values() if family.growth is not Growth.QUADRATIC]
    candidates = [_pruned(family, n, k) for family in families]
    if k < n:
        candidates += [
            _placed(f"blocks of {k}, {name}", n, *construct(n, k)) for name, construct in BLOCK_MERGES.items()
        ]
    if k < n and k <= MOST_CUT:
        candidates.append(_placed("known sorters, cut and merged", n, *cut_and_merged(n, k, ("sort",))))
    if k < n and (kind := f"top-{k}") in selected():
        pairs, outputs = cut_and_merged(n, k, ("sort", kind))
        candidates.append(_placed("known selections, cut and merged", n, pairs, outputs))
    return sorted(
        candidates, key=lambda c: (c.half_operations, c.network.size, c.network.depth, c.live_wires)
    )


def _pruned(family: Family, n: int, k: int) -> TopKCandidate:
    network = restrict(untangle(family(n)).network, range(n - k, n))
    return _candidate(f"pruned {family.name}", network, k, n)


def _candidate(name: str, network: Network, k: int, live_wires: int) -> TopKCandidate:
    return TopKCandidate(name, network, half_operations(network, range(network.n - k, network.n)), live_wires)


def _placed(name: str, n: int, pairs: list[Comparator], outputs: list[int]) -> TopKCandidate:
    """Return the candidate of a construction: its wires renamed so that its outputs are the last ones."""
    k = len(outputs)
    others = [wire for wire in range(n) if wire not in set(outputs)]
    place = {wire: index for index, wire in enumerate([*others, *outputs])}
    renamed = [(place[lo], place[hi]) for lo, hi in pairs]
    standard, moved = untangle(Network.from_comparators(n, renamed))
    assert (moved[n - k :] == np.arange(n - k, n)).all()
    network = restrict(standard, range(n - k, n))
    return _candidate(name, network, k, _most_live(renamed, n, range(n - k, n)))


def _most_live(pairs: list[Comparator], n: int, outputs: range) -> int:
    """Return the most values held at a time; a wire's is held from its first comparator to its last one."""
    last = {wire: index for index, pair in enumerate(pairs) for wire in pair}
    last |= dict.fromkeys(outputs, len(pairs))
    live: set[int] = set()
    most = 0
    for index, pair in enumerate(pairs):
        live.update(pair)
        most = max(most, len(live))
        live -= {wire for wire in pair if last[wire] == index}
    return max(most, len(outputs))


def smallest_first(property_: Property) -> list[Network]:
    """Return the networks of `smallest_constructions`."""
    return [network for _, network in smallest_constructions(property_)]


def smallest_constructions(property_: Property) -> list[tuple[str, Network]]:
    """Return the networks for some ranks that nsc knows or can construct, fewest half operations first.

    Each has the name of its construction in front, and leaves each rank on the wire of its number. The
    candidates are restricted to the ranks: those of `top_k_candidates` for the values from the lowest rank
    on, those for the values up to the highest rank, upside down, and for a median the smallest that is known.
    Up to MOST_OPTIMIZED wires their redundant comparators are removed.

    Raises:
        NetworkError: a rank that is wanted on a wire of another number.
    """
    n, ranks = property_.n, sorted(property_.ranks.values())
    if any(wire != rank for wire, rank in property_.ranks.items()):
        raise NetworkError(
            f"the smallest network leaves each rank on the wire of its number: leave {argument('wires')} out"
        )
    if ranks == list(range(n)):
        return [("best", best(n))]
    found = [(candidate.name, candidate.network) for candidate in top_k_candidates(n, n - ranks[0])]
    # Ranks such as a median's are the same upside down, so reflected networks would cost the same. Small ones
    # are tried too: without their redundant comparators they may differ.
    if n <= MOST_OPTIMIZED or ranks != [n - 1 - rank for rank in reversed(ranks)]:
        found += [
            (f"{candidate.name}, upside down", reflect(candidate.network))
            for candidate in top_k_candidates(n, ranks[-1] + 1)
        ]
    networks = [(name, restrict(network, ranks)) for name, network in found]
    if ranks == list(range((n - 1) // 2, n // 2 + 1)) and n in known("median"):
        median = known("median")[n][0]
        # Of an even number the two middle values leave it in any order.
        in_order = [[tuple(ranks)]] if len(ranks) > 1 else []
        networks.append(("known median", Network.from_layers(n, [*median.layers(), *in_order])))
    if n <= MOST_OPTIMIZED:
        short = Budget(states=OPTIMIZING_STATES)
        networks = [(name, optimize(network, property_, short).network) for name, network in networks]
    return sorted(
        networks, key=lambda entry: (half_operations(entry[1], ranks), entry[1].size, entry[1].depth)
    )
