"""Starting: the goal and the islands that a search begins with."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from nsc.compiler.families import best, known, shallowest
from nsc.compiler.network import Network
from nsc.compiler.optimize import smallest_first
from nsc.compiler.passes import relayer, restrict, untangle
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.verify import Property, Verdict, verify
from nsc.compiler.verify.counted import applied
from nsc.errors import NetworkError, PropertyError, UnprovedError
from nsc.join.budget import budget_of
from nsc.study.search.engine import Comparators, Standing, removable
from nsc.study.search.goal import Goal, first_layers, without_images
from nsc.study.search.islands import State
from nsc.study.search.patterns import reachable
from nsc.study.search.rounds import decide, pool_of
from nsc.wording import argument, count


def from_nothing(goal: Goal, layers: int | None, seed: int, islands: int) -> State:
    """Return the state of a search that begins with random networks.

    Args:
        goal: what is searched, without a prefix.
        layers: of `first_layers` that stay in front; None: as few as leave a pool of all patterns, at least
            one if its comparators can matter, and four of 16 wires, as the smallest known sorters have. If
            ranks may be off, as few as none: the smallest networks leave wires out.
        seed: of all random numbers.
        islands: how many.

    Raises:
        NetworkError: more layers than the goal allows.
    """
    if layers is None and goal.n == 16 and goal.wanted.is_sort:
        layers = 4
    if layers is None:
        fewest = range(0 if goal.wanted.off_by else 1, goal.n.bit_length())
        layers = next((layers for layers in fewest if _is_exact(goal, first_layers(goal.n, layers))), 1)
    prefix = first_layers(goal.n, 0 if goal.wanted.presorted else layers)
    goal = replace(goal, prefix=prefix)
    return State(goal, seed, (Standing(),) * islands)


def from_network(
    goal: Goal,
    network: Network,
    layers: int | None,
    seed: int,
    islands: int,
    progress: Progress = SILENT,
) -> State:
    """Return the state of a search that begins with a network, after deletions.

    Args:
        goal: what is searched, without a prefix.
        network: what it begins with; it must have the property.
        layers: of the network that stay in front; None: the fewest that leave a pool of all patterns, none
            if half of the layers are too few.
        seed, islands: as in `from_nothing`.
        progress: is told how far it is.

    Raises:
        NetworkError: the network does not have the property, or is not symmetric.
        UnprovedError: that is not settled.
    """
    network = standard_form(network, goal.wanted)
    proof = verify(network, goal.wanted, budget_of(progress=progress))
    if proof.verdict is Verdict.REFUTED:
        raise NetworkError(f"the network to begin with does not have the property {goal.wanted.name}")
    if proof.verdict is Verdict.UNPROVED:
        raise UnprovedError(f"the network to begin with: {proof.sentence()}")
    if layers is not None and layers > network.depth:
        raise NetworkError(
            f"{argument('prefix', layers)}: the network to begin with has {count(network.depth, 'layer')}"
        )
    comparators, found = deleted(goal, _listed(goal, network), progress)
    network = goal.network(comparators)
    if layers is None:
        prefixes = ((layers, _pairs(network[:layers])) for layers in range(network.depth // 2 + 1))
        layers = next((layers for layers, prefix in prefixes if _is_exact(goal, prefix)), 0)
    goal = replace(goal, prefix=_pairs(network[:layers]))
    rest = _listed(goal, network[layers:])
    island = Standing(current=rest, best=rest, origin=rest)
    patterns = applied(np.array(found, np.uint64), goal.prefix)
    return State(goal, seed, (island,) * islands, tuple(dict.fromkeys(patterns.tolist())))


def known_network(goal: Goal) -> Network:
    """Return the network of least cost that nsc knows for a goal: of the public lists, or constructed.

    Raises:
        PropertyError: nsc knows none for this property.
    """
    property_, n = goal.wanted, goal.n
    if property_.is_sort and not property_.presorted:
        candidates = known("sort").get(n, [best(n), shallowest(n)])
    elif property_.name == "median" and n in known("median"):
        candidates = known("median")[n]
    elif len(property_.ranks) == len(property_.groups) and not property_.presorted:
        candidates = smallest_first(property_)
    else:
        raise PropertyError(
            f"nsc has no network for {property_.name} to begin with: name a file with "
            f"{argument('from')}, or leave it out"
        )
    return min((standard_form(network, property_) for network in candidates), key=goal.cost)


def standard_form(network: Network, property_: Property) -> Network:
    """Return a network in standard form, without comparators that the outputs do not depend on.

    Raises:
        NetworkError: it has another number of wires, or its standard form moves outputs.
    """
    if network.n != property_.n:
        raise NetworkError(
            f"the network to begin with has {count(network.n, 'wire')}, the search {property_.n}: "
            f"correct {argument('n')}"
        )
    outputs = [wire for group in property_.groups for wire in group.wires]
    standard, moved = untangle(network)
    if (moved[outputs] != outputs).any():
        raise NetworkError("in standard form the outputs of the network to begin with lie on other wires")
    return relayer(restrict(standard, outputs))


def _is_exact(goal: Goal, prefix: Comparators) -> bool:
    """Return whether a prefix leaves a pool of all patterns."""
    return reachable(replace(goal, prefix=prefix)) is not None


def _listed(goal: Goal, network: Network) -> Comparators:
    """Return the comparators of a network as a standing lists them."""
    return tuple(without_images(network)) if goal.symmetric else _pairs(network)


def _pairs(network: Network) -> Comparators:
    return tuple((lo, hi) for lo, hi in network.comparators.tolist())


def deleted(goal: Goal, comparators: Comparators, progress: Progress) -> tuple[Comparators, tuple[int, ...]]:
    """Return comparators without those that can be left out, and patterns that refuted the others.

    First each comparator is left out, then each pair. The pool refutes most; the verifier decides the others.
    """
    found: tuple[int, ...] = ()
    progress.phase("leave out comparators")
    while True:
        smaller, more = _without_some(goal, comparators, found, progress)
        found += more
        if smaller is None:
            return comparators, found
        comparators = smaller


def _without_some(
    goal: Goal, comparators: Comparators, found: tuple[int, ...], progress: Progress
) -> tuple[Comparators | None, tuple[int, ...]]:
    """Return a list without one comparator or two; None if each is needed; and patterns that were found."""
    exact = reachable(goal) is not None
    more: tuple[int, ...] = ()
    size = range(len(comparators))
    for places in (zip(size, size, strict=True), itertools.combinations(size, 2)):  # one, then two
        chosen = np.array(list(places), np.int64).reshape(-1, 2)
        rows = pool_of(goal, found + more)
        for first, second in chosen[removable(goal, rows, comparators, chosen)].tolist():
            progress.count("leaves out", first, len(comparators))
            smaller = tuple(each for k, each in enumerate(comparators) if k not in (first, second))
            if exact:
                return smaller, more
            proof, refuting = decide(goal, smaller)
            more += refuting
            if proof.verdict is Verdict.PROVED:
                return smaller, more
    return None, more
