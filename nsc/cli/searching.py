"""nsc search: networks of less cost."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import click

from nsc.cli.interrupts import INTERRUPTED
from nsc.cli.outputs import Output, check_json, output_options
from nsc.cli.reporting import reporting, verbose_option
from nsc.cli.shared import EXIT_CODES, PropertyOptions, counts_of, json_option, property_options
from nsc.cli.sources import complete_networks
from nsc.compiler.describe import describe
from nsc.compiler.formats import save
from nsc.compiler.network import Network
from nsc.compiler.optimize import counts, records_of
from nsc.compiler.verify import Verdict, rank_errors
from nsc.errors import NetworkError
from nsc.study.search.goal import Goal, Objective
from nsc.study.search.islands import State, state_of_json
from nsc.study.search.rounds import work
from nsc.study.search.running import KNOWN, Searched, begin, rounds
from nsc.study.search.starting import known_network
from nsc.study.search.workers import workers
from nsc.wording import count

# The state is written after so many seconds without a gain.
_PAUSE = 5.0


@click.command("search")
@click.option("--n", type=click.IntRange(min=1), metavar="N", help="Number of wires; a file has its own.")
@property_options
@click.option(
    "--minimize",
    type=click.Choice([objective.name.lower() for objective in Objective]),
    default="size",
    show_default=True,
    help="What counts: size, the comparators; depth, the layers; cost, the minima and maxima of a selection.",
)
@click.option(
    "--depth", type=click.IntRange(min=1), metavar="D", help="The most layers; default: any number."
)
@click.option(
    "--from",
    "origin",
    metavar="NETWORK|known",
    shell_complete=complete_networks,
    help="Begin with this file or family, or with the best that nsc knows; default: with random networks.",
)
@click.option(
    "--prefix",
    type=click.IntRange(min=0),
    metavar="LAYERS",
    help="First layers that stay as they are; default: as few as keep the search exact.",
)
@click.option("--symmetric", is_flag=True, help="Networks that are the same upside down; N is even.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of random changes.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="How long to search; a round that has begun is finished.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Searches side by side, each in a process; they exchange what they find.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster, whose workers search instead.")
@output_options
@json_option
@verbose_option
def search_command(
    n: int | None,
    stated: PropertyOptions,
    minimize: str,
    depth: int | None,
    origin: str | None,
    prefix: int | None,
    symmetric: bool,
    seed: int,
    seconds: float,
    jobs: int,
    scheduler: str | None,
    output: Output,
    as_json: bool,
    verbose: bool,
) -> None:
    """Search networks with fewer comparators, fewer layers, or a selection of less cost.

    Random changes are made to a network. A change is kept if the changed network costs no more and no 0-1
    input of a pool refutes it. Without --from the first layers are given (see --prefix). A network is written
    once it is proved, as by nsc verify. The search ends after --seconds, with Ctrl-C, or when no network can
    cost less.

    The same options give the same networks in the same order; time only decides where the search ends. With
    -o each better network is written at once, and OUT.search.json keeps the state: the same command goes on
    from there. Only a search that begins --from a file replaces the network of another search in it.

    Exit code: 0 found and proved, 2 bad input, 3 not found or unproved, 130 interrupted (the best network is
    written).
    """
    check_json(as_json, output, "network")
    began = time.monotonic()
    with reporting(verbose) as progress:
        progress.phase("read")
        first = None if origin is None or origin == KNOWN else describe(origin, n, progress=progress)
        if n is None and first is None:
            raise click.UsageError("say how many wires: --n N, or --from FILE")
        wires = first.n if first is not None else int(n or 0)
        goal = Goal(stated.property(wires), Objective[minimize.upper()], depth, symmetric)
        if origin == KNOWN:
            progress.phase("construct the best network that is known")
            first = known_network(goal)
        asked = _asked(goal, first, prefix, seed, jobs)
        state = _resumed(output, goal, asked)
        if state is None:
            _check_replaceable(output, origin)
            state = begin(goal, first, prefix, seed, jobs, progress)
        store, found = _Store(output, asked), Searched(state)
        with workers(work, jobs, scheduler) as map_:
            try:
                for found in rounds(state, map_, began + seconds, progress):
                    store.keep(found)
            except KeyboardInterrupt:
                found = replace(found, interrupted=True)
            store.keep(found, force=True)
    _finish(found, first, output, as_json, time.monotonic() - began)


class _Store:
    """The files of a search: its best network, and the state from which it goes on; a device has no state."""

    def __init__(self, output: Output, asked: str) -> None:
        self.output, self.asked = output, asked
        self.network: Network | None = None
        self.kept = time.monotonic()

    def keep(self, found: Searched, force: bool = False) -> None:
        """Write the network if it is new; write the state with it, and from time to time without it."""
        if self.output.path is None:
            return
        gained = found.network is not None and found.network != self.network and found.is_proved
        if gained and found.network is not None:
            self.output.write_network(found.network)
            self.network = found.network
        if gained or force or time.monotonic() - self.kept >= _PAUSE:
            if self.output.path.is_file() or not self.output.path.exists():
                save(found.state.to_json(self.asked).encode(), state_path(self.output.path))
            self.kept = time.monotonic()


def state_path(path: Path) -> Path:
    """Return the file of the state of a search that writes its network to a path."""
    return path.with_name(f"{path.name}.search.json")


def _asked(goal: Goal, first: Network | None, prefix: int | None, seed: int, jobs: int) -> str:
    """Return the request of a search in words, without the time that it may take."""
    return ", ".join(
        [
            f"{goal.wanted.name} of {count(goal.n, 'wire')} by {goal.objective.name.lower()}",
            *([] if goal.depth is None else [f"depth {goal.depth}"]),
            *(["symmetric"] if goal.symmetric else []),
            *([] if first is None else [f"from {first.digest[:12]}"]),
            *([] if prefix is None else [f"prefix {prefix}"]),
            f"seed {seed}",
            count(jobs, "job"),
        ]
    )


def _resumed(output: Output, goal: Goal, asked: str) -> State | None:
    """Return the state that an earlier run of the same search left; None if there is none."""
    if output.path is None or not state_path(output.path).exists():
        return None
    place = state_path(output.path)
    try:
        return state_of_json(place.read_text(encoding="utf-8"), asked, goal)
    except (NetworkError, OSError, ValueError) as error:
        raise NetworkError(f"{place}: {error}: name another file with -o, or remove it") from None


def _check_replaceable(output: Output, origin: str | None) -> None:
    """Raise NetworkError if the file has a network, maybe a better one, and the search ignores it."""
    path = output.path
    if path is not None and path.is_file() and path.stat().st_size and str(path) != origin:
        raise NetworkError(f"{path} exists: begin with it, by --from {path}, or name another file with -o")


def _finish(found: Searched, first: Network | None, output: Output, as_json: bool, seconds: float) -> None:
    """Print the result, and end the process with the exit code."""
    state, goal, network, proof = found.state, found.state.goal, found.network, found.proof
    if network is None or proof is None:
        limit = "" if goal.depth is None else f" of at most {count(goal.depth, 'layer')}"
        click.echo(
            f"nsc: no network{limit} found in {seconds:.1f} s: search longer, with another --seed, or --from "
            f"{KNOWN}",
            err=True,
        )
        sys.exit(INTERRUPTED if found.interrupted else EXIT_CODES[Verdict.UNPROVED])
    if output.path is None and found.is_proved:
        output.finish(network, output.write_network(network))
    records = records_of(goal.wanted)
    errors = rank_errors(network, goal.wanted) if goal.wanted.off_by else None
    if as_json:
        facts = {
            **counts_of(network),
            "half_operations": counts(network, goal.wanted).half_operations,
            **proof.facts(),
            "seed": state.seed,
            "rounds": state.rounds,
            "candidates": state.tried,
            "search_seconds": round(seconds, 3),
            "rank_errors": None if errors is None else errors.facts(),
            "best_known": None if records is None else asdict(records),
        }
        click.echo(json.dumps(facts))
    else:
        lines = [
            f"{output.words}: {goal.words(network)}",
            f"{proof.sentence()}: {network.counts}, by {proof.method}",
            *([] if errors is None else errors.lines()),
            *([] if first is None else [f"began with {goal.words(first)}"]),
            f"{count(state.tried, 'candidate')} in {count(state.rounds, 'round')} of seed {state.seed}, "
            f"{seconds:.1f} s",
            *([] if records is None else [records.words]),
        ]
        click.echo("\n".join(lines), err=output.path is None)
    if found.interrupted:
        click.echo("nsc: interrupted", err=True)
    sys.exit(INTERRUPTED if found.interrupted else EXIT_CODES[proof.verdict])
