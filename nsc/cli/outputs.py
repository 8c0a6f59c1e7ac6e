"""How every command that writes a network is told where to and in which format."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from nsc.cli.sources import STANDARD
from nsc.compiler.formats import format_of_path, losses, save_network, writable, write_network
from nsc.compiler.network import Network
from nsc.errors import NetworkError


@dataclass(frozen=True)
class Output:
    """Where a network goes.

    Attributes:
        path: the file; None: standard output.
        format: a name in FORMATS.
    """

    path: Path | None
    format: str

    @property
    def words(self) -> str:
        """What messages call it."""
        return "standard output" if self.path is None else str(self.path)

    def write(self, network: Network) -> str:
        """Write a network to the file; return its text for standard output, "" where a file is written.

        Raises:
            NetworkError: a file that cannot be written, or a standard output that is closed.
        """
        if self.path is not None:
            save_network(network, self.path, self.format)
            return ""
        if sys.stdout is None:
            raise NetworkError("standard output is closed: name a file with -o")
        return write_network(network, self.format)

    def finish(self, network: Network, text: str) -> None:
        """Print what `write` returned, and on standard error what the format cannot hold of the network."""
        click.echo(text.encode(), nl=False)
        for note in losses(network, self.format):
            click.echo(f"nsc: note: {note}", err=True)


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a second argument, -o and --to, as its argument `output`."""

    @click.argument(
        "target", metavar="[OUT]", required=False, type=click.Path(path_type=Path, allow_dash=True)
    )
    @click.option(
        "-o",
        "--out",
        "path",
        type=click.Path(path_type=Path, allow_dash=True),
        metavar="OUT",
        help="File to write the network to, whole or not at all; - is standard output, the default.",
    )
    @click.option(
        "--to",
        type=click.Choice(writable()),
        metavar="FORMAT",
        help=f"Format to write: {', '.join(writable())}. Default: by the suffix of OUT, or nsc.",
    )
    @functools.wraps(function)
    def command(*, target: Path | None, path: Path | None, to: str | None, **others: Any) -> Any:
        if target is not None and path is not None:
            raise click.UsageError(f"the output is named twice, {target} and -o {path}: name it once")
        place = path if target is None else target
        if place is None or str(place) == STANDARD:
            output = Output(None, to or "nsc")
        else:
            output = Output(place, to or format_of_path(place))
        return function(output=output, **others)

    return command
