"""How every command that writes a network or a drawing is told where to and in which format."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from nsc.cli.sources import STANDARD
from nsc.compiler.formats import format_of_path, losses, save, writable, write_network
from nsc.compiler.network import Network
from nsc.errors import NetworkError


@dataclass(frozen=True)
class Output:
    """Where a network or a drawing goes.

    Attributes:
        path: the file; None: standard output.
        format: a name in FORMATS, or of a drawing.
    """

    path: Path | None
    format: str

    @property
    def words(self) -> str:
        """What messages call it."""
        return "standard output" if self.path is None else str(self.path)

    def write(self, content: bytes) -> bytes:
        """Write to the file; return what is to print: the content for standard output, b"" after a file.

        Raises:
            NetworkError: a file that cannot be written, or a standard output that is closed.
        """
        if self.path is not None:
            save(content, self.path)
            return b""
        if sys.stdout is None:
            raise NetworkError("standard output is closed: name a file with -o")
        return content

    def write_network(self, network: Network) -> bytes:
        """Write a network in the format, as `write` does."""
        return self.write(write_network(network, self.format).encode())

    def finish(self, network: Network, content: bytes) -> None:
        """Print what `write` returned, and on standard error what the format cannot hold of the network."""
        click.echo(content, nl=False)
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
