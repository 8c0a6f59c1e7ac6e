"""Outputs: the options of every command that writes one file, for the file and its format."""

from __future__ import annotations

import contextlib
import functools
import os
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
from nsc.study.explorer.pictures import PICTURES


@dataclass(frozen=True)
class Output:
    """The destination of a network, a drawing, a header or a certificate.

    Attributes:
        path: the file; None: standard output.
        format: a name in FORMATS, or in words.
    """

    path: Path | None
    format: str

    @property
    def words(self) -> str:
        """Its name in messages."""
        return "standard output" if self.path is None else str(self.path)

    def write(self, content: bytes) -> bytes:
        """Write to the file, if there is one; return the bytes to print: the content, or b"" after a file.

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
        """Print the bytes that `write` returned, and name on standard error what the format cannot hold."""
        click.echo(content, nl=False)
        for note in losses(network, self.format):
            click.echo(f"nsc: note: {note}", err=True)


def output_at(path: Path | None, format: str) -> Output:
    """Return the output that a path names.

    None, - and names of standard output's own file, such as /dev/stdout, mean standard output. Opening that
    file anew would overwrite the text that was printed to it before.
    """
    return Output(None if path is None or str(path) == STANDARD or _is_standard(path) else path, format)


def _is_standard(path: Path) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(sys.stdout.fileno()))
    except (AttributeError, OSError, ValueError):  # standard output is closed, or no file
        return False


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
        output = output_at(path if target is None else target, to or "nsc")
        if output.path is not None and to is None:
            if output.path.suffix.lower() in (".html", *PICTURES):
                raise click.UsageError(f"pages and pictures are drawn: nsc draw NETWORK -o {output.path}")
            output = Output(output.path, format_of_path(output.path))
        return function(output=output, **others)

    return command


# Gives a command an Output or None, as its argument `certificate_file`.
certificate_option = click.option(
    "--certificate",
    "certificate_file",
    type=click.Path(path_type=Path, allow_dash=True),
    callback=lambda _context, _option, path: None if path is None else output_at(path, "a certificate"),
    help="Write the proof as a text that tools/check_certificate.py checks, if the network is proved; "
    "- is standard output, the verdict then goes to standard error.",
)


def beside(output: Output | None) -> contextlib.AbstractContextManager[Any]:
    """Print a command's messages to standard error, if its standard output has the content of an output."""
    if output is None or output.path is not None:
        return contextlib.nullcontext()
    return contextlib.redirect_stdout(sys.stderr)


def check_json(as_json: bool, output: Output | None, noun: str) -> None:
    """Raise click.UsageError if both JSON and the content of an output would go to standard output."""
    if as_json and output is not None and output.path is None:
        raise click.UsageError(f"--json goes to standard output: name a file for the {noun}")
