"""`python -m benchmarks.search`: what a search finds from nothing, and from the known networks."""

from __future__ import annotations

import dataclasses
import json
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
from nsc.atomic import write_whole
from nsc.compiler.families import KINDS, known_name, known_networks, published
from nsc.compiler.network import Network
from nsc.compiler.optimize import smallest_constructions
from nsc.compiler.verify import parse
from nsc.study.search.engine import Standing, engine
from nsc.study.search.goal import Goal, Objective
from nsc.study.search.islands import State, advance
from nsc.study.search.rounds import Outcome, Round, work
from nsc.study.search.starting import from_network, from_nothing, known_network
from nsc.study.search.workers import workers
from nsc.wording import count

RESULTS = Path(__file__).parent / "results" / "search.md"
SEEDS = range(3)
_KEPT = "searched.jsonl"


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
# Searched by half operations, each from the best that nsc constructs without what was searched before.
SELECTIONS = [
    *(("median", n) for n in (9, 25, 49)),
    *((f"top-{k}", n) for n in (16, 32, 64) for k in (2, 4, 6, 8)),
]


@click.command()
@click.option(
    "--wires",
    type=click.IntRange(2, 64),
    nargs=2,
    default=(26, 40),
    show_default=True,
    help="Least and most, of known networks.",
)
@click.option(
    "--seconds",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="For each known network and selection.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes, for known networks."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A folder for what came of each known network: those made smaller are .cn files there, and a "
    "later run on this machine with the same seconds goes on.",
)
def main(wires: tuple[int, int], seconds: int, jobs: int, keep: Path | None) -> None:
    """Search from nothing, from known networks and from selections, and write what was found."""
    low, high = wires
    engine()  # the build is no part of a search
    with Console(stderr=True).status("") as status:
        tables = [
            _table(("network", "found", "CPU seconds"), _from_nothing(status.update)),
            _table(
                ("network", "before", "after", "layers", "CPU seconds"),
                _from_known(range(low, high + 1), seconds, jobs, keep, status.update),
            ),
            _table(
                ("selection", "half operations", "after", "comparators", "after", "CPU seconds", "known"),
                _selections(seconds, status.update),
            ),
        ]
    options = f"--wires {low} {high} --seconds {seconds} --jobs {jobs}"
    head = (
        f"`python -m benchmarks.search {options}` on {machine()}. From nothing: the time until the "
        f"least that is known was found, with {count(len(SEEDS), 'seed')}. "
        f"From each sorter and median of {low} to {high} wires that is published or was found by nsc, with "
        f"its own depth as the limit: deletions, then {count(seconds, 'second')} of changes, then as long "
        "for one with a layer less; those of which nothing came are counted, and their seconds are summed. "
        "From the cheapest selections that nsc constructs without those that were found so: deletions, then "
        f"{count(seconds, 'second')} of changes by half operations; known is the least that nsc has."
    )
    text = "\n\n".join(["# Search", paragraph(head), *tables])
    write_whole(RESULTS, f"{text}\n")
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


def _from_known(
    wires: range, seconds: int, jobs: int, keep: Path | None, told: Callable[[str], None]
) -> Iterator[tuple[object, ...]]:
    every = {
        name: (kind, network)
        for kind in KINDS
        for name, network in known_networks(kind).items()
        if network.n in wires
    }
    done = _kept(keep, seconds)
    rest = [name for name in every if name not in done]
    with workers(partial(_of_known, seconds), jobs) as searched:
        for start in range(0, len(rest), jobs):
            told(f"{len(done)} of {len(every)} networks, {rest[start]}")
            for found, networks in searched([every[name] for name in rest[start : start + jobs]]):
                done[found.name] = found
                if keep is not None:
                    _keep(keep, found, networks)
    shown = [done[name] for name in every]
    for found in shown:
        for size, depth in found.gains:
            yield found.words, found.before, size, depth, f"{found.seconds:.1f}"
    stayed = [found.seconds for found in shown if not found.gains]
    yield "others", count(len(stayed), "network"), "unchanged", "", f"{sum(stayed):.1f}"


@dataclass(frozen=True)
class Found:
    """What a search made of a known network.

    Attributes:
        name, words: of the network.
        before: how many comparators it has.
        gains: comparators and layers of a network of fewer comparators, and of one of fewer layers, if no
            published network beats it.
        asked: seconds of changes, for either of the two.
        seconds: what both searches took, with deletions.
        machine: what took them.
    """

    name: str
    words: str
    before: int
    gains: tuple[tuple[int, int], ...]
    asked: int
    seconds: float
    machine: str


def _keep(folder: Path, found: Found, networks: Sequence[Network]) -> None:
    """Write the networks that were found, and then a line."""
    for network in networks:
        network.save(folder / f"{found.name}_became_{network.size}_{network.depth}.cn")
    with (folder / _KEPT).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(dataclasses.asdict(found))}\n")


def _kept(folder: Path | None, seconds: int) -> dict[str, Found]:
    """Return what earlier runs found on this machine, with as many seconds."""
    if folder is None or not (folder / _KEPT).exists():
        return {}
    lines = (folder / _KEPT).read_text(encoding="utf-8").splitlines()
    every = [Found(**json.loads(line)) for line in lines]
    return {found.name: found for found in every if (found.asked, found.machine) == (seconds, machine())}


def _of_known(seconds: int, kind_and_network: tuple[str, Network]) -> tuple[Found, tuple[Network, ...]]:
    kind, before = kind_and_network
    start = time.process_time()
    goal = Goal(parse(kind, before.n), depth=before.depth)
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
    found = Found(
        known_name(kind, before),
        f"{kind} of {before.n}, {before.depth} layers",
        before.size,
        tuple((network.size, network.depth) for network in gains),
        seconds,
        time.process_time() - start,
        machine(),
    )
    return found, tuple(gains)


def _selections(seconds: int, told: Callable[[str], None]) -> Iterator[tuple[object, ...]]:
    for name, n in SELECTIONS:
        told(f"{name} of {n}")
        goal = Goal(parse(name, n), Objective.COST)
        constructions = smallest_constructions(goal.wanted)
        before = next(network for how, network in constructions if not how.startswith("known selections"))
        start = time.process_time()
        after = _best(_improved(goal, before, seconds))
        took = time.process_time() - start
        costs = [goal.cost(network)[1] for network in (before, after, known_network(goal))]
        yield f"{name} of {n}", *costs[:2], before.size, after.size, f"{took:.1f}", costs[2]


def _improved(goal: Goal, network: Network, seconds: float) -> State:
    """Return a search that begins with a network, after deletions and some seconds of changes."""
    return _advanced(from_network(goal, network, None, 0, 1), seconds)


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
