"""`python -m benchmarks.search`: what a search finds from nothing, and from the published networks."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from benchmarks.machine import machine
from benchmarks.report import paragraph
from nsc.compiler.families import KINDS, known_name, published
from nsc.compiler.formats import save_network
from nsc.compiler.network import Network
from nsc.compiler.search import (
    Goal,
    Objective,
    Outcome,
    Round,
    Standing,
    State,
    advance,
    from_network,
    from_nothing,
    known_network,
)
from nsc.compiler.verify import parse
from nsc.join.budget import budget_of
from nsc.join.searching import search_engine, work
from nsc.join.workers import workers
from nsc.wording import count

RESULTS = Path(__file__).parent / "results" / "search.md"
SEEDS = range(3)


@dataclass(frozen=True)
class Case:
    """A goal, and what is wanted of the first term of its cost."""

    goal: Goal
    target: int

    @property
    def words(self) -> str:
        symmetric = ", symmetric" * self.goal.symmetric
        return f"{self.goal.wanted.name} of {self.goal.n} by {self.goal.objective.name.lower()}{symmetric}"


# The least sizes and depths that are known.
FROM_NOTHING = [
    *(Case(Goal(parse("sort", n)), size) for n, size in ((8, 19), (9, 25), (10, 29), (11, 35), (12, 39))),
    *(
        Case(Goal(parse("sort", n), Objective.DEPTH, symmetric=symmetric), depth)
        for n, depth, symmetric in ((8, 6, False), (9, 7, False), (10, 7, False), (12, 8, True))
    ),
    Case(Goal(parse("sort", 16), symmetric=True), 60),
]
# Searched by half operations, from the network of fewest that is known.
SELECTIONS = [("median", 9), ("median", 25), ("median", 49), ("top-8", 64)]


@click.command()
@click.option(
    "--wires",
    type=click.IntRange(2, 64),
    nargs=2,
    default=(26, 40),
    show_default=True,
    help="Least and most, of published networks.",
)
@click.option(
    "--seconds",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="For each published network and selection.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes, for published networks."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A folder for published networks made smaller, in .cn files.",
)
def main(wires: tuple[int, int], seconds: int, jobs: int, keep: Path | None) -> None:
    """Search from nothing, from published networks and from selections, and write what was found."""
    low, high = wires
    search_engine()  # the build is no part of a search
    with Console(stderr=True).status("") as status:
        tables = [
            _table(("network", "found", "CPU seconds"), _from_nothing(status.update)),
            _table(
                ("network", "before", "after", "layers", "CPU seconds"),
                _from_published(range(low, high + 1), seconds, jobs, keep, status.update),
            ),
            _table(
                ("half operations of", "before", "after", "CPU seconds"), _selections(seconds, status.update)
            ),
        ]
    options = f"--wires {low} {high} --seconds {seconds} --jobs {jobs}"
    head = (
        f"`python -m benchmarks.search {options}` on {machine()}. From nothing: the time until the "
        f"least that is known was found, with {count(len(SEEDS), 'seed')}. "
        f"From each published sorter and median of {low} to {high} wires, with its own depth as the "
        f"limit, and from the cheapest known selections: deletions, then {count(seconds, 'second')} of "
        "changes; from published networks then as long for one with a layer less. Networks of which nothing "
        "came are counted."
    )
    text = "\n\n".join(["# Search", paragraph(head), *tables])
    partial = RESULTS.with_suffix(".partial")
    partial.write_text(f"{text}\n", encoding="utf-8")
    os.replace(partial, RESULTS)
    click.echo(f"wrote {RESULTS}")


def _table(head: tuple[str, ...], rows: Iterator[tuple[object, ...]]) -> str:
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _here(rounds: Sequence[Round]) -> list[Outcome]:
    return [work(each) for each in rounds]


def _from_nothing(told: Callable[[str], None]) -> Iterator[tuple[object, ...]]:
    for case in FROM_NOTHING:
        told(case.words)
        times = sorted(_time_of(case, seed) for seed in SEEDS)
        yield case.words, case.target, " ".join(f"{seconds:.2f}" for seconds in times)


def _time_of(case: Case, seed: int) -> float:
    """Return the seconds until the target is found."""
    start = time.process_time()
    state = from_nothing(case.goal, None, seed, 1)
    while state.best is None or case.goal.cost(state.best)[1] > case.target:
        state = advance(state, _here)
    return time.process_time() - start


def _from_published(
    wires: range, seconds: float, jobs: int, keep: Path | None, told: Callable[[str], None]
) -> Iterator[tuple[object, ...]]:
    every = [(kind, each) for kind in KINDS for n in wires for each in published(kind).get(n, [])]
    stayed = 0
    with workers(partial(_of_published, seconds), jobs) as searched:
        for start in range(0, len(every), jobs):
            told(f"{every[start][0]} {every[start][1].counts}")
            for found in searched(every[start : start + jobs]):
                stayed += not found.gains
                for network in found.gains:
                    if keep is not None:
                        save_network(network, keep / f"{known_name(found.kind, network)}.cn")
                    yield found.words, found.before.size, network.size, network.depth, f"{found.seconds:.1f}"
    yield "others", count(stayed, "network"), "unchanged", "", ""


@dataclass(frozen=True)
class Found:
    """What a search made of a published network.

    Attributes:
        kind: of which list.
        before: the network.
        gains: a network of fewer comparators, and one of fewer layers, if no published network beats it.
        seconds: what both searches took.
    """

    kind: str
    before: Network
    gains: tuple[Network, ...]
    seconds: float

    @property
    def words(self) -> str:
        return f"{KINDS[self.kind]} of {self.before.n}, {self.before.depth} layers"


def _of_published(seconds: float, kind_and_network: tuple[str, Network]) -> Found:
    kind, before = kind_and_network
    start = time.process_time()
    goal = Goal(parse(KINDS[kind], before.n), depth=before.depth)
    state = _improved(goal, before, seconds)
    best = state.islands[0].best
    island = Standing(current=best, best=best, origin=best)
    flat_goal = replace(state.goal, depth=before.depth - 1)
    flat = _advanced(State(flat_goal, state.seed, (island,), state.found), seconds)
    smaller, flatter = _best(state), _best(flat)
    gains = [smaller] if smaller.size < before.size else []
    if flatter.depth < before.depth and not any(
        each.size <= flatter.size and each.depth <= flatter.depth for each in published(kind)[before.n]
    ):
        gains.append(flatter)
    return Found(kind, before, tuple(gains), time.process_time() - start)


def _selections(seconds: float, told: Callable[[str], None]) -> Iterator[tuple[object, ...]]:
    for name, n in SELECTIONS:
        told(f"{name} of {n}")
        goal = Goal(parse(name, n), Objective.COST)
        before = known_network(goal)
        start = time.process_time()
        after = _best(_improved(goal, before, seconds))
        taken = time.process_time() - start
        yield f"{name} of {n}", goal.cost(before)[1], goal.cost(after)[1], f"{taken:.1f}"


def _improved(goal: Goal, network: Network, seconds: float) -> State:
    """Return a search that begins with a network, after deletions and some seconds of changes."""
    return _advanced(from_network(goal, network, None, 0, 1, search_engine(), budget_of()), seconds)


def _advanced(state: State, seconds: float) -> State:
    end = time.process_time() + seconds
    while time.process_time() < end:
        state = advance(state, _here)
    return state


def _best(state: State) -> Network:
    assert state.best is not None
    return state.best


if __name__ == "__main__":
    sys.exit(main())
