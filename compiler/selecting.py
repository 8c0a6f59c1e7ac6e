"""Networks for some ranks alone: pruned families and block merges for the k largest, with what each costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nsc.compiler.best import best, known
from nsc.compiler.families import FAMILIES, family_network
from nsc.compiler.network import Network, check_wires
from nsc.compiler.optimize import optimize
from nsc.compiler.passes.restrict import live_halves, restrict
from nsc.compiler.passes.untangle import untangle
from nsc.compiler.verify import Budget, Property
from nsc.errors import NetworkError

Pair = tuple[int, int]
# Two ascending lists of wires and k to the comparators that merge them and the wires, ascending, that
# then carry the k largest of their values.
Merge = Callable[[Sequence[int], Sequence[int], int], tuple[list[Pair], list[int]]]
Combine = Callable[[list[list[int]], int, Merge], tuple[list[Pair], list[int]]]

# Up to this many wires and patterns redundant comparators are looked for.
MOST_OPTIMIZED = 64
OPTIMIZING_STATES = 1 << 16


@dataclass(frozen=True)
class Candidate:
    """A network whose last k wires carry the k largest values, ascending.

    Attributes:
        name: its construction.
        network: standard form, without what these wires do not depend on.
        half_operations: minima and maxima that they depend on.
        live_wires: values that are held at a time if the comparators run in the construction's order.
    """

    name: str
    network: Network
    half_operations: int
    live_wires: int


def top_k_candidates(n: int, k: int) -> list[Candidate]:
    """Return networks for the k largest of n values, fewest half operations first.

    Raises:
        NetworkError: n out of range, or k not in 1 … n.

    >>> best = top_k_candidates(1024, 8)[0]
    >>> best.network.size
    4972
    """
    check_wires(n)
    if not 1 <= k <= n:
        raise NetworkError(f"the top k of {n} wires needs 1 <= k <= {n}, got {k}")
    made = [_pruned(family, n, k) for family in FAMILIES if family not in _QUADRATIC]
    if k < n:
        made += [
            _block_merge(f"blocks of {k}, {how} of {what} merges", n, k, combine, merge)
            for how, combine in COMBINATIONS.items()
            for what, merge in MERGES.items()
        ]
    return sorted(made, key=lambda c: (c.half_operations, c.network.size, c.network.depth, c.live_wires))


# Families whose n² comparators are no candidates.
_QUADRATIC = {"odd_even", "insertion"}


def _pruned(family: str, n: int, k: int) -> Candidate:
    network = restrict(untangle(family_network(family, n)).network, range(n - k, n))
    return _candidate(f"pruned {family}", network, k, n)


def _candidate(name: str, network: Network, k: int, live_wires: int) -> Candidate:
    halves = live_halves(network, range(network.n - k, network.n))
    return Candidate(name, network, int(np.count_nonzero(halves)), live_wires)


def _block_merge(name: str, n: int, k: int, combine: Combine, merge: Merge) -> Candidate:
    """Sort blocks of k wires and merge them, keeping k of every two.

    Source: the half-cleaner of two sorted lists, Batcher 1968.
    """
    blocks = [list(range(start, min(start + k, n))) for start in range(0, n, k)]
    pairs, outputs = combine(blocks, k, merge)
    # Inputs may lie on any wires, so the outputs can be given the last ones.
    others = [wire for wire in range(n) if wire not in set(outputs)]
    place = {wire: index for index, wire in enumerate([*others, *outputs])}
    renamed = [(place[lo], place[hi]) for lo, hi in pairs]
    whole = Network.from_comparators(n, renamed)
    standard, moved = untangle(whole)
    assert (moved[n - k :] == np.arange(n - k, n)).all()
    network = restrict(standard, range(n - k, n))
    return _candidate(name, network, k, _most_live(renamed, n, range(n - k, n)))


def _most_live(pairs: list[Pair], n: int, outputs: range) -> int:
    """Return how many values are held at a time: from a wire's first comparator to its last needed one."""
    last = {wire: index for index, pair in enumerate(pairs) for wire in pair}
    last |= dict.fromkeys(outputs, len(pairs))
    live: set[int] = set()
    most = 0
    for index, pair in enumerate(pairs):
        live.update(pair)
        most = max(most, len(live))
        live -= {wire for wire in pair if last[wire] == index}
    return max(most, len(outputs))


def _sorted_block(block: Sequence[int]) -> list[Pair]:
    return [(block[lo], block[hi]) for lo, hi in best(len(block)).comparators.tolist()]


def _tree(blocks: list[list[int]], k: int, merge: Merge) -> tuple[list[Pair], list[int]]:
    pairs = [pair for block in blocks for pair in _sorted_block(block)]
    while len(blocks) > 1:
        merged = []
        for a, b in zip(blocks[::2], blocks[1::2], strict=False):
            more, out = merge(a, b, k)
            pairs += more
            merged.append(out)
        blocks = merged + ([blocks[-1]] if len(blocks) % 2 else [])
    return pairs, blocks[0]


def _fold(blocks: list[list[int]], k: int, merge: Merge) -> tuple[list[Pair], list[int]]:
    kept = blocks[0]
    pairs = _sorted_block(kept)
    for block in blocks[1:]:
        more, kept = merge(kept, block, k)
        pairs += [*_sorted_block(block), *more]
    return pairs, kept


def _bitonic_merge(a: Sequence[int], b: Sequence[int], k: int) -> tuple[list[Pair], list[int]]:
    """Keep the larger of each wire of one list and its mirror in the other, and sort what is bitonic then.

    Both lists are filled up with -inf below, the bitonic list with +inf above; neither is compared.
    """
    if len(a) + len(b) < k:
        return _odd_even_merge(a, b, k)
    missing = [-1]
    first, second = missing * (k - len(a)) + list(a), missing * (k - len(b)) + list(b)
    pairs, valley = [], []
    for x, y in zip(first, reversed(second), strict=True):
        if x >= 0 and y >= 0:
            pairs.append((y, x))
        valley.append(x if x >= 0 else y)
    power = 1 << (k - 1).bit_length()
    row = valley + missing * (power - k)
    distance = power // 2
    while distance:
        for low in range(power):
            if low & distance == 0 and row[low + distance] >= 0:
                pairs.append((row[low], row[low + distance]))
        distance //= 2
    return pairs, row[:k]


def _odd_even_merge(a: Sequence[int], b: Sequence[int], k: int) -> tuple[list[Pair], list[int]]:
    """Merge by Batcher's odd-even merge, the lists filled up with -inf below, which is not compared."""
    half = 1 << (max(len(a), len(b)) - 1).bit_length()
    row = [-1] * (half - len(a)) + list(a) + [-1] * (half - len(b)) + list(b)
    pairs = []
    distance = half
    while distance:
        first = distance % half
        for low in range(first, 2 * half - distance):
            if (low - first) // distance % 2 == 0:
                x, y = row[low], row[low + distance]
                if x >= 0 and y >= 0:
                    pairs.append((x, y))
                elif x >= 0:
                    row[low], row[low + distance] = y, x
        distance //= 2
    kept = [wire for wire in row if wire >= 0]
    return pairs, kept[-k:]


MERGES: dict[str, Merge] = {"bitonic": _bitonic_merge, "odd-even": _odd_even_merge}
COMBINATIONS: dict[str, Combine] = {"tree": _tree, "left fold": _fold}


def smallest(property_: Property) -> Network:
    """Return the network of fewest half operations for some ranks that nsc knows or can construct.

    The wanted ranks come out on the wires of their number. Candidates are sorters restricted to these
    ranks, for the largest alone those of `top_k_candidates`, for a median that of the public list; up to
    MOST_OPTIMIZED wires redundant comparators are left out of each.

    Raises:
        NetworkError: wires that are not named as the ranks they carry.
    """
    n, ranks = property_.n, sorted(property_.ranks.values())
    if any(wire != rank for wire, rank in property_.ranks.items()):
        raise NetworkError(
            "the smallest network leaves each rank on the wire of its number: leave --wires out"
        )
    if ranks == list(range(n)):
        return best(n)
    if ranks == list(range(n - len(ranks), n)):
        made = [candidate.network for candidate in top_k_candidates(n, len(ranks))]
    else:
        sorters = [family_network(family, n) for family in FAMILIES if family not in _QUADRATIC]
        made = [restrict(untangle(sorter).network, ranks) for sorter in sorters]
    if ranks == list(range((n - 1) // 2, n // 2 + 1)) and n in known("medians"):
        (median,) = known("medians")[n]
        # Of an even number the two middle values leave it in any order.
        made.append(Network.from_layers(n, [*median.layers(), *([[tuple(ranks)]] if len(ranks) > 1 else [])]))
    if n <= MOST_OPTIMIZED:
        made = [optimize(network, property_, Budget(states=OPTIMIZING_STATES)).network for network in made]
    return min(made, key=lambda m: (np.count_nonzero(live_halves(m, ranks)), m.size, m.depth))
