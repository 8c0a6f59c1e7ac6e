"""What several commands use: groups of options, options that list values, counts."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from nsc.cli.completing import some_of
from nsc.cli.sources import STANDARD
from nsc.compiler import selection
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.verify import FORMS, Budget, Property, Verdict, parse
from nsc.contract.interface import REALS
from nsc.errors import INSTALL_TORCH
from nsc.join.budget import MAX_MEMORY, budget_of

F = TypeVar("F", bound=Callable[..., Any])

EXIT_CODES = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNPROVED: 3}


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


def is_given(context: click.Context, name: str) -> bool:
    """Say whether an option stands on the command line."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def wires_option(function: F) -> F:
    return click.option(
        "--wires",
        metavar="W,W,…",
        help="Wires that carry the outputs, smallest first, or in the order of the ranks.",
    )(function)


def selection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --top-k, --median and --ranks, as its argument `select`: a Selection or None."""

    @click.option("--top-k", type=int, metavar="K", help="Select the K largest values, largest first.")
    @click.option("--median", is_flag=True, help="Select the median, the middle value of an odd N.")
    @click.option(
        "--rank",
        "--ranks",
        "ranks",
        metavar="R,R,…",
        help="Select the values of these ranks, 0 the smallest.",
    )
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


def relaxation_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --relaxation, --art-lambda, --error-free, as its argument `relaxation`; and --dtype."""

    @click.option(
        "--relaxation",
        type=click.Choice(list(SIGMOIDS)),
        default="logistic",
        show_default=True,
        help="How comparators are softened.",
    )
    @click.option(
        "--art-lambda",
        type=float,
        default=0.25,
        show_default=True,
        help="Strength of the activation replacement trick, in [0, 1); 0 is none.",
    )
    @click.option("--error-free", is_flag=True, help="Exact values and a 0/1 P, with soft gradients.")
    @list_option(
        "--dtype",
        "dtypes",
        default=("float32",),
        show_default=True,
        metavar="TYPE,…",
        shell_complete=some_of(REALS),
        help=f"Arithmetic types: {', '.join(REALS)}; float32 also serves bfloat16 and float16.",
    )
    @functools.wraps(function)
    def command(*, relaxation: str, art_lambda: float, error_free: bool, **others: Any) -> Any:
        return function(relaxation=Relaxation(relaxation, art_lambda, error_free), **others)

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


@dataclass(frozen=True)
class ResultOptions:
    """The options that say where a result is written, and how a command tells of it."""

    out: Path
    name: str | None
    as_json: bool
    verbose: bool

    @property
    def folder(self) -> Path:
        """The folder of a result that is several files.

        Raises:
            click.UsageError: it should go to standard output.
        """
        if str(self.out) == STANDARD:
            raise click.UsageError("a package is several files: name a folder with -o, not -")
        return self.out


def result_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --out, --name, --json and --verbose, as its argument `result`."""

    @click.option(
        "-o",
        "--out",
        "folder",
        type=click.Path(path_type=Path, allow_dash=True),
        default="generated",
        show_default=True,
        help="Folder to write the result to.",
    )
    @click.option("--name", help="Its name; default: what it is of, and the options that are not defaults.")
    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Print each phase on standard error, a line each, and build commands in full.",
    )
    @functools.wraps(function)
    def command(*, folder: Path, name: str | None, as_json: bool, verbose: bool, **others: Any) -> Any:
        return function(result=ResultOptions(folder, name, as_json, verbose), **others)

    return command


def how_to_use(place: Path) -> str:
    """Return how a program uses a package that a command wrote to a place, and what that needs."""
    load, parts = f"nsc.load({str(place.absolute())!r})", place.parts
    if all(part.isidentifier() for part in parts):
        *folders, name = parts
        line = f"from {'.'.join(folders)} import {name}" if folders else f"import {name}"
        used = f"{line}, in a program beside {parts[0]}/; in others: {load}"
    else:
        used = load
    return used if find_spec("torch") else f"{used}, once PyTorch is installed: {INSTALL_TORCH}"


def unproved_option(function: F) -> F:
    return click.option("--unproved", is_flag=True, help="Accept a network that no exact method settles.")(
        function
    )


def remove_redundant_option(function: F) -> F:
    return click.option(
        "--remove-redundant",
        is_flag=True,
        help="Remove comparators that exact results do not need, which changes soft values.",
    )(function)


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
        help="Time after which the proof gives up; default: so many steps a method, alike on every machine.",
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
