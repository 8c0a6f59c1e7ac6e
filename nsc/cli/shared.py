"""Parts of several commands: groups of options, options that list values, counts."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from nsc.cli.reporting import verbose_option
from nsc.cli.sources import STANDARD
from nsc.compiler import selection
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.verify import FORMS, Budget, Proof, Property, Verdict, parse
from nsc.contract.interface import REALS
from nsc.join.budget import MAX_MEMORY, budget_of

F = TypeVar("F", bound=Callable[..., Any])

EXIT_CODES = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNPROVED: 3}


def _grouped(
    name: str, make: Callable[..., object], *options: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command options; `make` turns their values into one argument."""
    parameters = tuple(inspect.signature(make).parameters)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**given: Any) -> Any:
            made = make(**{parameter: given.pop(parameter) for parameter in parameters})
            return function(**{name: made}, **given)

        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def list_option(
    *names: str,
    known: Collection[str] | None = None,
    note: str = "",
    default: tuple[str, ...] = (),
    **settings: Any,
) -> Callable[[F], F]:
    """Give a command an option that lists words, with commas or by repetition; each word counts once.

    Unknown words are refused with the list of the known words, and `note` behind it.
    """

    def split(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(word.strip() for text in texts for word in text.split(",")))
        unknown = [] if known is None else [word for word in words if word not in known]
        if unknown:
            raise click.UsageError(
                f"{names[0]} must be some of {', '.join(known or ())}{note}, got {', '.join(unknown)}"
            )
        return words

    def complete(_context: click.Context, _option: click.Parameter, beginning: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in known or () if word.startswith(beginning)]

    settings |= {"multiple": True, "default": default, "show_default": bool(default)}
    return click.option(*names, callback=split, shell_complete=complete, **settings)


def dtype_option(
    known: Collection[str], help: str, default: tuple[str, ...] = (), note: str = ""
) -> Callable[[F], F]:
    """Give a command --dtype, as its argument `dtypes`; the known types replace {} in the help."""
    words = help.format(", ".join(known))
    return list_option(
        "--dtype", "dtypes", known=known, note=note, default=default, metavar="TYPE,…", help=words
    )


def _numbers(_context: click.Context, option: click.Parameter, text: str | None) -> list[int] | None:
    """Return the numbers that an option lists; None if it is not given."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text, re.ASCII):
        raise click.UsageError(f"{option.opts[-1]} takes numbers such as 3,1,2, found {text!r}")
    return [int(number) for number in text.split(",")]


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_SERVES = "float32 also serves bfloat16 and float16"
real_option = dtype_option(REALS, f"Arithmetic types: {{}}; {_SERVES}.", ("float32",), f" ({_SERVES})")
remove_redundant_option = click.option(
    "--remove-redundant",
    is_flag=True,
    help="Remove comparators that exact results do not need, which changes soft values.",
)
unproved_option = click.option(
    "--unproved", is_flag=True, help="Accept a network that no exact method settles."
)
wires_option = click.option(
    "--wires",
    metavar="W,W,…",
    callback=_numbers,
    help="Wires that carry the outputs, smallest first, or in the order of the ranks.",
)
off_by_option = click.option(
    "--off-by",
    type=click.IntRange(min=0),
    default=0,
    metavar="R",
    help="How far the rank of an output may be from the right one; default: 0.",
)


def _selection(top_k: int | None, median: bool, ranks: list[int] | None) -> selection.Selection | None:
    selections = [
        *([] if top_k is None else [selection.top_k(top_k)]),
        *([selection.median()] if median else []),
        *([] if ranks is None else [selection.ranks(*ranks)]),
    ]
    if len(selections) > 1:
        raise click.UsageError(
            f"one of --top-k, --median, --ranks can be selected at a time, got {len(selections)}"
        )
    return selections[0] if selections else None


selection_options = _grouped(
    "select",
    _selection,
    click.option("--top-k", type=int, metavar="K", help="Select the K largest values, largest first."),
    click.option("--median", is_flag=True, help="Select the median, the middle value of an odd N."),
    click.option(
        "--rank",
        "--ranks",
        "ranks",
        metavar="R,R,…",
        callback=_numbers,
        help="Select the values of these ranks, 0 the smallest.",
    ),
)

relaxation_options = _grouped(
    "relaxation",
    Relaxation,
    click.option(
        "--relaxation",
        "sigmoid",
        type=click.Choice(list(SIGMOIDS)),
        default="logistic",
        show_default=True,
        help="How comparators are softened.",
    ),
    click.option(
        "--art-lambda",
        type=float,
        default=0.25,
        show_default=True,
        help="Strength of the activation replacement trick, in [0, 1); 0 is none.",
    ),
    click.option("--error-free", is_flag=True, help="Exact values and a 0/1 P, with soft gradients."),
)


@dataclass(frozen=True)
class PropertyOptions:
    """The options that say what a network should do."""

    name: str
    wires: list[int] | None
    presorted: str
    off_by: int

    @property
    def is_stated(self) -> bool:
        """Whether the user named another property than the default, sort."""
        return self != PropertyOptions("sort", None, "", 0)

    def property(self, n: int) -> Property:
        """Return the property, of n wires."""
        return parse(self.name, n, self.wires, self.presorted, self.off_by)


property_options = _grouped(
    "stated",
    PropertyOptions,
    click.option(
        "--property",
        "name",
        default="sort",
        show_default=True,
        metavar="PROPERTY",
        help=f"What the network should do: {'; '.join(FORMS)}.",
    ),
    wires_option,
    click.option("--presorted", default="", metavar="A-B,C-D", help="Runs of wires whose inputs ascend."),
    off_by_option,
)


@dataclass(frozen=True)
class ResultOptions:
    """The options that say where a result is written, and how a command reports it."""

    folder: Path
    name: str | None
    as_json: bool
    verbose: bool

    @property
    def package_folder(self) -> Path:
        """The folder of a result that is several files.

        Raises:
            click.UsageError: the result should go to standard output.
        """
        if str(self.folder) == STANDARD:
            raise click.UsageError("a package is several files: name a folder with -o, not -")
        return self.folder


result_options = _grouped(
    "result",
    ResultOptions,
    click.option(
        "-o",
        "--out",
        "folder",
        type=click.Path(path_type=Path, allow_dash=True),
        default="generated",
        show_default=True,
        help="Folder to write the result to.",
    ),
    click.option("--name", help="Its name; default: what it is of, and the options that are not defaults."),
    json_option,
    verbose_option,
)


@dataclass(frozen=True)
class Limits:
    """The options that limit a proof."""

    max_memory: int
    time_limit: float | None

    def budget(self, progress: Progress) -> Budget:
        """Return the budget; its time begins now."""
        return budget_of(self.max_memory, self.time_limit, progress)


limit_options = _grouped(
    "limits",
    Limits,
    click.option(
        "--max-memory",
        type=click.IntRange(min=1),
        default=MAX_MEMORY,
        show_default=True,
        metavar="MB",
        help="Memory that the method of reachable sets may take for 0-1 patterns.",
    ),
    click.option(
        "--time-limit",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="Time after which the proof gives up; default: so many steps a method, alike on every machine.",
    ),
)


def counts_of(network: Network) -> dict[str, object]:
    """Return a network's counts and digest, as commands print them in JSON."""
    return {
        "n": network.n,
        "size": network.size,
        "depth": network.depth,
        "network": network.digest,
    }


def say_proof(proof: Proof) -> None:
    """Print what is proved of a network, and how."""
    click.echo(f"{proof.sentence()}: {proof.method}: {proof.detail}")
