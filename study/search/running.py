"""Searches for networks of less cost: the part that `nsc search` and `nsc.search` share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nsc.arguments import flag, integer, is_name, real
from nsc.compiler.describe import Named, describe
from nsc.compiler.network import Network
from nsc.compiler.optimize import records_of
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.verify import Proof, Property, Verdict, property_of, verify
from nsc.errors import NetworkError, UnprovedError
from nsc.join.budget import budget_of
from nsc.study.search.goal import Goal, Objective
from nsc.study.search.islands import State, Workers, advance
from nsc.study.search.rounds import work
from nsc.study.search.starting import from_network, from_nothing
from nsc.study.search.starting import known_network as best_known
from nsc.study.search.workers import workers
from nsc.wording import argument

__all__ = ["search"]

# In the place of a network: begin with the best one that nsc knows.
KNOWN = "known"


@dataclass(frozen=True)
class Searched:
    """The state of a search, its best network with a proof, and whether Ctrl-C ended it."""

    state: State
    network: Network | None = None
    proof: Proof | None = None
    interrupted: bool = False

    @property
    def is_proved(self) -> bool:
        """Whether there is a network, and its proof."""
        return self.proof is not None and self.proof.verdict is Verdict.PROVED


def search(
    n: int | None = None,
    *,
    property: str | Property = "sort",
    minimize: str = "size",
    depth: int | None = None,
    start: Named | None = None,
    prefix: int | None = None,
    symmetric: bool = False,
    seed: int = 0,
    seconds: float = 30.0,
    jobs: int = 1,
) -> Network:
    """Search a network of few comparators, few layers, or a selection of little cost, as `nsc search` does.

    The same arguments give the same networks in the same order; time only decides where the search ends.

    Args:
        n: number of wires, 2 to 64; None: as many as `start` has.
        property: as in `verify`.
        minimize: "size", comparators, then layers; "depth", layers, then comparators; "cost", the minima and
            maxima that a selection's outputs need.
        depth: the most layers; None: any number.
        start: a network to begin with, as `network` takes it, or "known", the best that nsc knows; None:
            random networks.
        prefix: how many first layers stay as they are; None: as few as keep the search exact.
        symmetric: whether networks are the same upside down.
        seed: of random changes.
        seconds: how long to search; a round that has begun is finished, and a search ends sooner where no
            network can cost less.
        jobs: searches side by side, each in a process.

    Returns:
        The best network that was found, proved.

    Raises:
        NetworkError: no such goal, or no network to begin with.
        PropertyError: no such property, or a rank on a wire with another number.
        UnprovedError: no network was found, or none was proved.

    >>> search(6).counts
    '6 wires, 12 comparators, 5 layers'
    """
    if not is_name(minimize, [objective.name.lower() for objective in Objective]):
        raise NetworkError(f"{argument('minimize')} must be size, depth or cost, got {minimize!r}")
    limit = real(seconds)
    if limit is None or not limit >= 0:
        raise NetworkError(f"{argument('seconds')} must be a number of seconds, got {seconds!r}")
    depth = None if depth is None else _count("depth", depth, 1)
    prefix = None if prefix is None else _count("prefix", prefix, 0)
    seed, jobs = _count("seed", seed, 0), _count("jobs", jobs, 1)
    first = None if start is None or is_name(start, [KNOWN]) else describe(start, n)
    wires = (None if n is None else _count("n", n, 1)) if first is None else first.n
    if wires is None:
        raise NetworkError(f"say how many wires: {argument('n', 9)}, or a network to begin with")
    goal = Goal(
        property_of(property, wires),
        Objective[minimize.upper()],
        depth,
        flag("symmetric", symmetric, NetworkError),
    )
    end = time.monotonic() + limit
    state = begin(goal, best_known(goal) if first is None and start else first, prefix, seed, jobs)
    with workers(work, jobs) as map_:
        *_, found = rounds(state, map_, end)
    if found.network is None or not found.is_proved:
        raise UnprovedError(
            f"no network found in {limit:g} s: search longer, or with another {argument('seed')}"
        )
    return found.network


def _count(name: str, value: int, least: int) -> int:
    number = integer(name, value, NetworkError)
    if number < least:
        raise NetworkError(f"{argument(name)} must be {least} or more, got {number}")
    return number


def begin(
    goal: Goal, first: Network | None, prefix: int | None, seed: int, jobs: int, progress: Progress = SILENT
) -> State:
    """Return the state of a search that begins with a network, or with random ones."""
    if first is None:
        return from_nothing(goal, prefix, seed, jobs)
    return from_network(goal, first, prefix, seed, jobs, progress)


def rounds(state: State, map_: Workers, end: float, progress: Progress = SILENT) -> Iterator[Searched]:
    """Yield the search as it stands, now and after each round, until a time or until the cost is least."""
    found = Searched(state)
    start = gained = time.monotonic()
    while True:
        before = found.network
        found = _proved(found, progress)
        yield found
        now = time.monotonic()
        gained = gained if found.network == before else now
        if now >= end or _is_least(found):
            return
        goal, tried = found.state.goal, found.state.tried
        best = "no network yet" if found.network is None else f"best {goal.words(found.network)}"
        rate = (tried - state.tried) / max(now - start, 1e-9)
        progress.phase(f"search: {best}")
        progress.count(f"candidates, {rate:,.0f} a second, last gain {now - gained:.0f} s ago", tried)
        found = replace(found, state=advance(found.state, map_))


def _proved(found: Searched, progress: Progress) -> Searched:
    """Return the search with the best network of its state and a proof, if that is better than before."""
    goal, best = found.state.goal, found.state.best
    if best is None or goal.cost(best)[0]:  # more layers than are wanted
        return found
    if found.network is not None and goal.cost(best) >= goal.cost(found.network):
        return found
    progress.phase("prove")
    proof = verify(best, goal.wanted, budget_of())
    assert proof.verdict is not Verdict.REFUTED, f"a search found {best!r}, which is wrong"
    return replace(found, network=best, proof=proof)


def _is_least(found: Searched) -> bool:
    """Return whether no network can cost less, by the known bounds."""
    goal = found.state.goal
    records = records_of(goal.wanted)
    if found.network is None or records is None or goal.objective is Objective.COST:
        return False
    least = records.least_size, records.least_depth
    return goal.cost(found.network) == (0, *(least if goal.objective is Objective.SIZE else least[::-1]))
