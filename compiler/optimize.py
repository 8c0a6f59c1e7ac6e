"""Optimize: smaller networks with the same property, the least known cost, and networks for some ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsc.arguments import integer
from nsc.compiler.cards import card
from nsc.compiler.diagram import notebook_svg
from nsc.compiler.families import (
    BLOCK_MERGES,
    FAMILIES,
    MOST_CUT,
    QUADRATIC,
    Comparator,
    best,
    cut_and_merged,
    known,
    least_depth,
    least_size,
    selected,
    shallowest,
    stated_depth,
    stated_size,
)
from nsc.compiler.network import Network, check_wires
from nsc.compiler.passes import half_operations, reflect, relayer, restrict, untangle
from nsc.compiler.verify import Budget, Property
from nsc.compiler.verify.property import middle_ranks
from nsc.compiler.verify.question import BudgetError, Question, sorted_groups
from nsc.compiler.verify.reachable import search
from nsc.errors import NetworkError
from nsc.wording import argument, count

# Beyond this many wires it takes seconds to construct the best networks.
MOST_RECORDED = 4096


@dataclass(frozen=True)
class Records:
    """The least cost that is known on n wires; one network rarely has both the size and the depth.

    Attributes:
        n: number of wires.
        size, depth: fewest comparators and fewest layers that nsc knows or can construct.
        least_size, least_depth: no network has fewer; None where no bound is known.
        stated_size, stated_depth: bounds that the published list states, without a published proof that is
            complete; None where it states none.
    """

    n: int
    size: int
    depth: int
    least_size: int | None = None
    least_depth: int | None = None
    stated_size: int | None = None
    stated_depth: int | None = None

    @property
    def words(self) -> str:
        """The records in one line.

        >>> from nsc.compiler.verify import sort
        >>> records_of(sort(9)).words
        'best known on 9 wires: 25 comparators; 7 layers; lower bounds: 25 and 7'
        """
        words = (
            f"best known on {count(self.n, 'wire')}: {count(self.size, 'comparator')}; "
            f"{count(self.depth, 'layer')}"
        )
        if self.least_size is not None:
            words += f"; lower bounds: {self.least_size:,} and {self.least_depth}"
        if self.stated_size is not None and self.stated_size != self.least_size:
            words += f" proved, the published list states {self.stated_size:,} and {self.stated_depth}"
        return words


def records_of(property_: Property) -> Records | None:
    """Return the records of sort or the median; None for other properties and beyond MOST_RECORDED wires."""
    n = property_.n
    if property_.presorted or property_.off_by or n > MOST_RECORDED:
        return None
    if property_.is_sort:
        bounds = least_size(n), least_depth(n), stated_size(n), stated_depth(n)
        return Records(n, best(n).size, shallowest(n).depth, *bounds)
    (group, *others) = property_.groups
    carried = range(group.first, group.first + len(group.wires))
    if others or carried != middle_ranks(n) or n not in known("median"):
        return None
    medians = known("median")[n]
    return Records(n, medians[0].size, medians[-1].depth)


@dataclass(frozen=True)
class Counts:
    """The cost of a network.

    Attributes:
        size, depth: comparators and layers.
        half_operations: minima and maxima that the selected outputs depend on.
    """

    size: int
    depth: int
    half_operations: int


@dataclass(frozen=True)
class Optimized:
    """A smaller network.

    Attributes:
        network: a network that has the property if the original has it.
        before, after: the cost of the original network and of this one.
        skipped: why redundant comparators were not removed; None if they were.
        known: the least cost that is known for the property; None where nsc has no record of it.

    >>> import nsc
    >>> found = nsc.optimize([(0, 1), (1, 2), (0, 1), (0, 1)])
    >>> found.before.size, found.after.size, found.skipped
    (4, 3, None)
    """

    network: Network
    before: Counts
    after: Counts
    skipped: str | None
    known: Records | None = None

    def _repr_html_(self) -> str:
        """Return the gain and the new diagram, which a notebook shows."""
        saved = self.before.size - self.after.size
        facts = {
            name: f"{was:,} → {now:,}"
            for name, was, now in (
                ("comparators", self.before.size, self.after.size),
                ("layers", self.before.depth, self.after.depth),
                ("half operations", self.before.half_operations, self.after.half_operations),
            )
        }
        if self.known is not None:
            name, _, value = self.known.words.partition(": ")
            facts[name] = value
        if self.skipped is not None:
            facts["redundant comparators"] = f"not looked for: {self.skipped}"
        return card(f"{count(saved, 'comparator')} fewer", facts, notebook_svg(self.network) or "")


def optimize(network: Network, property_: Property, budget: Budget) -> Optimized:
    """Return a network with the same property, never larger or deeper.

    The steps, in order:

    1. Untangle, if the selected outputs stay on their wires.
    2. Restrict to the selected outputs.
    3. Remove redundant comparators, by reachable sets within the budget.
    4. Restrict again, and relayer.

    Raises:
        NetworkError: the network does not have the property.
    """
    before = counts(network, property_)
    outputs = [wire for group in property_.groups for wire in group.wires]
    together = [group.wires for group in property_.groups if len(group.wires) > 1]
    standard, moved = untangle(network)
    smaller = standard if (moved[outputs] == outputs).all() else network
    smaller = restrict(smaller, outputs, together)
    skipped = None
    try:
        smaller = remove_redundant(smaller, property_, budget)
    except BudgetError as ended:
        skipped = f"reachable sets ended at {ended}"
    # Without the redundant comparators, some before them may no longer be needed.
    smaller = relayer(restrict(smaller, outputs, together))
    return Optimized(smaller, before, counts(smaller, property_), skipped, records_of(property_))


def counts(network: Network, property_: Property) -> Counts:
    """Return the cost of a network for a property."""
    outputs = [wire for group in property_.groups for wire in group.wires]
    return Counts(network.size, network.depth, half_operations(network, outputs))


def remove_redundant(network: Network, property_: Property, budget: Budget) -> Network:
    """Return the network without the comparators that exchange nothing for inputs that the property needs.

    A wire of rank r needs the 0-1 inputs of r and r + 1 zeros. For these the other comparators exchange the
    same values as before, so the network keeps the property, which it must have. Exact results stay the same.
    Soft values change, since a relaxed comparator also mixes values that are in order. Never more comparators
    or layers. Cost: as the proof by reachable sets.

    Raises:
        NetworkError: the network does not have the property.
        BudgetError: more patterns than the budget allows.

    Source: a comparator (i, j) can go iff no reachable 0-1 pattern has 1 on i and 0 on j in front of it.
    """
    behind, ranks = sorted_groups(property_)
    whole = Network.from_layers(network.n, [*network.layers(), *([pair] for pair in behind)])
    used = np.zeros(whole.size, dtype=bool)
    if search(Question(whole, ranks, property_.presorted, budget), used).failing is not None:
        raise NetworkError(f"the network does not have the property {property_.name}: verify it first")
    kept = used[: network.size]
    layers = [
        network.comparators[start:end][kept[start:end]]
        for start, end in zip(network.layer_starts, network.layer_starts[1:], strict=False)
    ]
    return Network.from_layers(network.n, layers)


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
    candidates = [_pruned(name, n, k) for name in FAMILIES if name not in QUADRATIC]
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


def _pruned(family: str, n: int, k: int) -> TopKCandidate:
    network = restrict(untangle(FAMILIES[family](n)).network, range(n - k, n))
    return _candidate(f"pruned {family}", network, k, n)


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
    """Return the most values held at a time: a wire's value from its first comparator to its last one."""
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

    Each comes with the name of its construction, and leaves each rank on the wire of its number. The
    candidates are:

    - `top_k_candidates` for the values from the lowest rank on;
    - `top_k_candidates` for the values up to the highest rank, upside down;
    - for a median, the smallest known network.

    All are restricted to the ranks. Up to MOST_OPTIMIZED wires their redundant comparators are removed.

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
    if ranks == list(middle_ranks(n)) and n in known("median"):
        median = known("median")[n][0]
        # The two middle values of an even number leave it in any order.
        in_order = [[tuple(ranks)]] if len(ranks) > 1 else []
        networks.append(("known median", Network.from_layers(n, [*median.layers(), *in_order])))
    if n <= MOST_OPTIMIZED:
        short = Budget(states=OPTIMIZING_STATES)
        networks = [(name, optimize(network, property_, short).network) for name, network in networks]
    return sorted(
        networks, key=lambda entry: (half_operations(entry[1], ranks), entry[1].size, entry[1].depth)
    )
