"""What commands share: options, spinner, counts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.console import Console

from nsc.building import build_library
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import readable
from nsc.compiler.network import Network
from nsc.compiler.verify import FORMS, Budget, Verdict

F = TypeVar("F", bound=Callable[..., Any])

EXIT_CODES = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNPROVED: 3}


def index_base_option(function: F) -> F:
    return click.option(
        "--index-base", type=click.IntRange(0, 1), metavar="0|1", help="What a file counts wires from."
    )(function)


def reading_options(function: F) -> F:
    function = click.option(
        "--format",
        type=click.Choice(readable()),
        help="A file's format; default: found from its content.",
    )(index_base_option(function))
    return click.option("--n", type=int, metavar="N", help="Number of wires; needed with a family.")(function)


def network_options(required: bool) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        return click.option(
            "--net",
            required=required,
            metavar="FAMILY|FILE",
            help=f"A family ({', '.join(FAMILIES)}) or a network file.",
        )(reading_options(function))

    return decorate


def wires_option(function: F) -> F:
    return click.option("--wires", metavar="W,W,…", help="Where the outputs asked for are, smallest first.")(
        function
    )


def property_options(function: F) -> F:
    options = (
        click.option(
            "--property",
            "asked",
            default="sort",
            show_default=True,
            metavar="PROPERTY",
            help=f"What the network does: {'; '.join(FORMS)}.",
        ),
        wires_option,
        click.option("--presorted", default="", metavar="A-B,C-D", help="Runs of wires whose inputs ascend."),
        click.option(
            "--max-states",
            type=click.IntRange(min=1),
            default=Budget().states,
            show_default=True,
            help="0-1 patterns that the method of reachable sets may hold at a time.",
        ),
        click.option(
            "--time-limit", type=click.FloatRange(min=0), metavar="SECONDS", help="When to give up."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def numbers_of(option: str, text: str | None) -> list[int] | None:
    """Return the numbers that an option lists, None where it is not given."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        raise click.UsageError(f"{option} takes numbers such as 3,1,2, found {text!r}")
    return [int(number) for number in text.split(",")]


def budget_of(max_states: int, time_limit: float | None) -> Budget:
    deadline = None if time_limit is None else time.monotonic() + time_limit
    return Budget(max_states, deadline, build_library)


def status(what: str, quiet: bool) -> Any:
    """Return a spinner on standard error; it shows nothing where that is no terminal."""
    return Console(stderr=True, quiet=quiet).status(what)


def counts_of(network: Network) -> dict[str, object]:
    return {
        "n": network.n,
        "size": network.size,
        "depth": network.depth,
        "network": network.digest,
    }
