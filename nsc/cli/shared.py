"""What several commands use: groups of options, options that list values, counts."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from nsc.compiler import selection
from nsc.compiler.describe import describe
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import read_network, read_stream, readable
from nsc.compiler.network import Network
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.verify import FORMS, Budget, Property, Verdict, parse
from nsc.join.budget import MAX_MEMORY, budget_of

F = TypeVar("F", bound=Callable[..., Any])

# Names standard input, or output, in the place of a file.
STANDARD = "-"

EXIT_CODES = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNPROVED: 3}


@dataclass(frozen=True)
class Reading:
    """The options that say how a network is read."""

    n: int | None
    format: str | None
    index_base: int | None

    @property
    def is_stated(self) -> bool:
        """Whether the user gave one of them."""
        return (self.n, self.format, self.index_base) != (None, None, None)

    def network(self, name: str | Path, progress: Progress = SILENT) -> Network:
        """Return the network of a family, of a file, or of standard input, which is named -."""
        if str(name) == STANDARD:
            return self.file(Path(name), progress)
        return describe(name, self.n, self.format, self.index_base, progress)

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
class PropertyOptions:
    """The options that say what a network should do."""

    name: str
    wires: str | None
    presorted: str

    @property
    def is_stated(self) -> bool:
        """Whether the user named another property than the default, sort."""
        return (self.name, self.wires, self.presorted) != ("sort", None, "")

    def property(self, n: int) -> Property:
        """Return the property, of n wires."""
        return parse(self.name, n, numbers_of("--wires", self.wires), self.presorted)


@dataclass(frozen=True)
class Limits:
    """The options that limit a proof."""

    max_memory: int
    time_limit: float | None

    def budget(self, progress: Progress) -> Budget:
        """Return the budget; its time begins now."""
        return budget_of(self.max_memory, self.time_limit, progress)


def index_base_option(function: F) -> F:
    return click.option(
        "--index-base", type=click.IntRange(0, 1), metavar="0|1", help="Number of a file's first wire."
    )(function)


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --n, --format and --index-base, as its argument `reading`."""

    @click.option("--n", type=int, metavar="N", help="Number of wires; a family needs it.")
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
    return click.option(
        "--wires",
        metavar="W,W,…",
        help="Wires that carry the outputs, smallest first, or in the order of the ranks.",
    )(function)


def selection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --top-k, --median and --ranks, as its argument `select`: a Selection or None."""

    @click.option("--top-k", type=int, metavar="K", help="Select the K largest values, largest first.")
    @click.option("--median", is_flag=True, help="Select the middle value; of an even N the two middle ones.")
    @click.option("--ranks", metavar="R,R,…", help="Select the values of these ranks, 0 the smallest.")
    @functools.wraps(function)
    def command(*, top_k: int | None, median: bool, ranks: str | None, **others: Any) -> Any:
        numbers = numbers_of("--ranks", ranks)
        selections = [
            *([] if top_k is None else [selection.top_k(top_k)]),
            *([selection.median()] if median else []),
            *([] if numbers is None else [selection.ranks(*numbers)]),
        ]
        if len(selections) > 1:
            raise click.UsageError(
                f"one of --top-k, --median, --ranks can be selected at a time, got {len(selections)}"
            )
        return function(select=selections[0] if selections else None, **others)

    return command


def property_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a property, as its argument `stated`."""

    @click.option(
        "--property",
        "name",
        default="sort",
        show_default=True,
        metavar="PROPERTY",
        help=f"What the network should do: {'; '.join(FORMS)}.",
    )
    @wires_option
    @click.option("--presorted", default="", metavar="A-B,C-D", help="Runs of wires whose inputs ascend.")
    @functools.wraps(function)
    def command(*, name: str, wires: str | None, presorted: str, **others: Any) -> Any:
        return function(stated=PropertyOptions(name, wires, presorted), **others)

    return command


def limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of what a proof may take, as its argument `limits`."""

    @click.option(
        "--max-memory",
        type=click.IntRange(min=1),
        default=MAX_MEMORY,
        show_default=True,
        metavar="MB",
        help="Memory that the method of reachable sets may take for 0-1 patterns.",
    )
    @click.option(
        "--time-limit",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="Time after which the proof gives up; default: about 20 a method.",
    )
    @functools.wraps(function)
    def command(*, max_memory: int, time_limit: float | None, **others: Any) -> Any:
        return function(limits=Limits(max_memory, time_limit), **others)

    return command


def list_option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Give a command an option that lists words, with commas or by repetition; each word counts once."""

    def split(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
        words = [word.strip() for text in texts for word in text.split(",")]
        return tuple(dict.fromkeys(words))

    return click.option(*names, multiple=True, callback=split, **settings)


def numbers_of(option: str, text: str | None) -> list[int] | None:
    """Return the numbers that an option lists; None if it is not given."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text, re.ASCII):
        raise click.UsageError(f"{option} takes numbers such as 3,1,2, found {text!r}")
    return [int(number) for number in text.split(",")]


def counts_of(network: Network) -> dict[str, object]:
    """Return a network's counts and digest, as commands print them in JSON."""
    return {
        "n": network.n,
        "size": network.size,
        "depth": network.depth,
        "network": network.digest,
    }
