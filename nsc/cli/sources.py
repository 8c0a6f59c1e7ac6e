"""Sources: how every command names a network, by one argument and the options for reading a file."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import click
from click.shell_completion import CompletionItem

from nsc.compiler.describe import describe, is_family
from nsc.compiler.families import FAMILIES, KINDS, known_networks, selected
from nsc.compiler.formats import read_network, read_networks, readable
from nsc.compiler.network import Network
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.request import Request
from nsc.errors import NetworkError
from nsc.version import VERSION

# Names standard input or standard output in the place of a file.
STANDARD = "-"

_MISSING = "give a network: a family with --n N, a known network, a network file, or - for standard input"

_NETWORK = (
    f"NETWORK is a family ({', '.join(FAMILIES)}) with its number of wires, as bitonic 8 or bitonic --n 8, "
    "a network of the lists such as sort_16_60_10 (nsc records shows them), a network file, or - for "
    "standard input."
)


@dataclass(frozen=True)
class Source:
    """A network as a command names it.

    Attributes:
        name: a family, a network of the lists, the path of a file, or - for standard input.
        n, format, index_base: the options of the same names, as `describe` takes them.
        member: the name of the network, in a file that has several.
    """

    name: str
    n: int | None
    format: str | None
    index_base: int | None
    member: str | None = None

    @property
    def has_options(self) -> bool:
        """Whether options say how the network is read."""
        return (self.n, self.format, self.index_base, self.member) != (None,) * 4

    def network(self, progress: Progress = SILENT) -> Network:
        """Return the network.

        Raises:
            NetworkError: as `describe`, or a standard input that is closed.
        """
        if self.name != STANDARD:
            return describe(self.name, self.n, self.format, self.index_base, progress, self.member)
        progress.phase("read")
        base, name = self.index_base, self.member
        return read_network(_standard_input(), self.n, format=self.format, index_base=base, name=name)

    def networks(self, progress: Progress) -> dict[str, Network | NetworkError]:
        """Return all networks of the file by their names, an error for one that cannot be read."""
        progress.phase("read")
        file = _standard_input() if self.name == STANDARD else Path(self.name)
        return read_networks(file, format=self.format, index_base=self.index_base)

    def request(self, progress: Progress, **settings: Any) -> Request:
        """Return a request to compile the network; standard input is read here."""
        if self.name == STANDARD:
            return Request(self.network(progress), self.n, version=VERSION, **settings)
        settings |= {"format": self.format, "index_base": self.index_base}
        return Request(self.name, self.n, version=VERSION, **settings)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise NetworkError("standard input is closed: name a family or a network file instead of -")
    return sys.stdin.buffer


def complete_networks(
    _context: click.Context, _parameter: click.Parameter, beginning: str
) -> list[CompletionItem]:
    """Return the families and listed networks whose names begin so; if none does, the shell looks for files.

    The networks of the lists are many, so they are offered once the word before their numbers is complete.
    """
    names = [name for name in FAMILIES if name.startswith(beginning)]
    for kind in (*KINDS, *selected()):
        if beginning.startswith(f"{kind.partition('-')[0]}_"):
            names += [name for name in known_networks(kind) if name.startswith(beginning)]
    return [CompletionItem(name) for name in names] or [CompletionItem(beginning, type="file")]


def network_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a network, as its argument `source`.

    The network is the first argument, or --net. The second argument may be the number of a family's wires;
    otherwise it is the command's own next argument, `target`, if the command has one. --name chooses one of
    several networks in a file, except in commands whose own --name names what they write.
    """

    @click.argument("net", metavar="NETWORK", required=False, shell_complete=complete_networks)
    @click.argument("second", metavar="[N]", required=False)
    @click.option("--net", "alias", metavar="NETWORK", help="The network, in the place of the argument.")
    @click.option(
        "--n",
        type=int,
        metavar="N",
        help="Number of wires; a family needs it. It chooses in a file of several.",
    )
    @click.option(
        "--from",
        "--format",
        "format",
        type=click.Choice(readable()),
        metavar="FORMAT",
        help=f"A file's format: {', '.join(readable())}. Default: found from its content.",
    )
    @click.option(
        "--index-base", type=click.IntRange(0, 1), metavar="0|1", help="Number of a file's first wire."
    )
    @functools.wraps(function)
    def command(
        *,
        net: str | None,
        second: str | None,
        alias: str | None,
        n: int | None,
        format: str | None,
        index_base: int | None,
        member: str | None = None,
        **others: Any,
    ) -> Any:
        if net is not None and alias is not None:
            raise click.UsageError(f"the network is named twice, {net} and --net {alias}: name it once")
        name = alias if net is None else net
        if name is None:
            raise click.UsageError(_MISSING)
        if second is not None and is_family(name) and second.isdecimal():
            if n is not None:
                raise click.UsageError(f"the wires are named twice, {second} and --n {n}: name them once")
            n = int(second)
        elif second is not None:
            if others.get("target", second) is not None:
                if second.isdecimal() and not Path(name).exists():
                    describe(name, int(second))  # refuses an unknown family, and names a similar one
                raise click.UsageError(f"got an unexpected extra argument ({second})")
            others["target"] = Path(second)
        return function(source=Source(name, n, format, index_base, member), **others)

    if not any("--name" in option.opts for option in command.__click_params__):  # type: ignore[attr-defined]
        command = click.option("--name", "member", help="Name of the network, in a file of several.")(command)
    command.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{_NETWORK}"
    return command
