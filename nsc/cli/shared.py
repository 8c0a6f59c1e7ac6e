"""What commands share: groups of options, counts."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from nsc.compiler.describe import describe
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import read_network, read_stream, readable
from nsc.compiler.network import Network
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.verify import FORMS, Budget, Property, Verdict, parse
from nsc.join.building import MAX_MEMORY, budget_of

F = TypeVar("F", bound=Callable[..., Any])

# What stands for standard input, and output, in the place of a file.
STANDARD = "-"

EXIT_CODES = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNPROVED: 3}


@dataclass(frozen=True)
class Reading:
    """How the user says that a network is read."""

    n: int | None
    format: str | None
    index_base: int | None

    @property
    def is_stated(self) -> bool:
        """Whether the user said anything."""
        return (self.n, self.format, self.index_base) != (None, None, None)

    def network(self, named: str | Path, progress: Progress = SILENT) -> Network:
        """Return the network that a family's name, a file, or - for standard input stands for."""
        if str(named) == STANDARD:
            return self.file(Path(named), progress)
        return describe(named, self.n, self.format, self.index_base, progress)

    def file(self, path: Path, progress: Progress = SILENT) -> Network:
        """Return the network in a file, or in standard input."""
        progress.phase("read")
        read = (
            functools.partial(read_stream, sys.stdin.buffer, "standard input")
            if str(path) == STANDARD
            else functools.partial(read_network, path)
        )
        return read(self.n, format=self.format, index_base=self.index_base, progress=progress)


@dataclass(frozen=True)
class Asked:
    """What the user asks of a network."""

    name: str
    wires: str | None
    presorted: str

    @property
    def is_stated(self) -> bool:
        """Whether the user named a property other than that all inputs are sorted."""
        return (self.name, self.wires, self.presorted) != ("sort", None, "")

    def property(self, n: int) -> Property:
        """Return the property, of n wires."""
        return parse(self.name, n, numbers_of("--wires", self.wires), self.presorted)


@dataclass(frozen=True)
class Limits:
    """What a proof may take."""

    max_memory: int
    time_limit: float | None

    def budget(self, progress: Progress) -> Budget:
        """Return the budget; its time begins now."""
        return budget_of(self.max_memory, self.time_limit, progress)


def index_base_option(function: F) -> F:
    return click.option(
        "--index-base", type=click.IntRange(0, 1), metavar="0|1", help="What a file counts wires from."
    )(function)


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --n, --format and --index-base, as its argument `reading`."""

    @click.option("--n", type=int, metavar="N", help="Number of wires; needed with a family.")
    @click.option(
        "--format", type=click.Choice(readable()), help="A file's format; default: found from its content."
    )
    @index_base_option
    @functools.wraps(function)
    def command(*, n: int | None, format: str | None, index_base: int | None, **others: Any) -> Any:
        return function(reading=Reading(n, format, index_base), **others)

    return command


def network_options(required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command --net, as its argument `net`, and the options of reading."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return click.option(
            "--net",
            required=required,
            metavar="FAMILY|FILE",
            help=f"A family ({', '.join(FAMILIES)}), a network file, or - for standard input.",
        )(reading_options(function))

    return decorate


def wires_option(function: F) -> F:
    return click.option("--wires", metavar="W,W,…", help="Where the outputs asked for are, smallest first.")(
        function
    )


def property_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a property, as its argument `asked`."""

    @click.option(
        "--property",
        "name",
        default="sort",
        show_default=True,
        metavar="PROPERTY",
        help=f"What the network does: {'; '.join(FORMS)}.",
    )
    @wires_option
    @click.option("--presorted", default="", metavar="A-B,C-D", help="Runs of wires whose inputs ascend.")
    @functools.wraps(function)
    def command(*, name: str, wires: str | None, presorted: str, **others: Any) -> Any:
        return function(asked=Asked(name, wires, presorted), **others)

    return command


def limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of what a proof may take, as its argument `limits`."""

    @click.option(
        "--max-memory",
        type=click.IntRange(min=1),
        default=MAX_MEMORY,
        show_default=True,
        metavar="MB",
        help="What the method of reachable sets may take for 0-1 patterns.",
    )
    @click.option(
        "--time-limit",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="When to give up; default: about 20 a method.",
    )
    @functools.wraps(function)
    def command(*, max_memory: int, time_limit: float | None, **others: Any) -> Any:
        return function(limits=Limits(max_memory, time_limit), **others)

    return command


def numbers_of(option: str, text: str | None) -> list[int] | None:
    """Return the numbers that an option lists, None where it is not given."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        raise click.UsageError(f"{option} takes numbers such as 3,1,2, found {text!r}")
    return [int(number) for number in text.split(",")]


def counts_of(network: Network) -> dict[str, object]:
    return {
        "n": network.n,
        "size": network.size,
        "depth": network.depth,
        "network": network.digest,
    }
