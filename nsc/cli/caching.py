"""nsc cache."""

from __future__ import annotations

import time

import click
from rich.filesize import decimal

from nsc.runtime.build.entries import Entry, clear, entries_of
from nsc.runtime.build.folder import user_folder


@click.group("cache")
def cache_command() -> None:
    """Look at the cache of built kernels and kept proofs, and clear it.

    Removed kernels are built again, and removed proofs found again, when they are needed.
    """


@cache_command.command("where")
def where_command() -> None:
    """Print the folder of the cache."""
    click.echo(user_folder())


@cache_command.command("list")
def list_command() -> None:
    """List what is there, used last first.

    A line has a name, a kind, a size and the time of the last use. An entry is a library or a CUDA binary,
    with the name of its kernel; a proof, with the wires of its network; or a task, which says what library
    serves it. A file that a killed process left is listed as unfinished.
    """
    entries, others = entries_of(user_folder())
    width = max((len(entry.what) for entry in entries), default=0)
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        click.echo(f"{entry.what:{width}}  {entry.kind:11}  {decimal(entry.size):>9}  {used}")
    for path in others:
        click.echo(f"nsc: note: {path} is not nsc's", err=True)


@cache_command.command("size")
def size_command() -> None:
    """Print how many entries there are, and how large they are together."""
    entries, _ = entries_of(user_folder())
    click.echo(f"{_entries(entries)}, {_size(entries)}")


@cache_command.command("clear")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=0,
    metavar="DAYS",
    help="Remove only what was last used so many days ago.",
)
def clear_command(older_than: float) -> None:
    """Remove what is there, and say how much that frees.

    Files that nsc did not write are kept and named. What another process may build now is kept too.
    """
    folder = user_folder()
    removed = clear(folder, older_than)
    click.echo(f"removed {_entries(removed)}, which frees {_size(removed)}")
    for path in entries_of(folder)[1]:
        click.echo(f"kept {path}: it is not nsc's")


def _entries(entries: list[Entry]) -> str:
    return f"{len(entries):,} {'entry' if len(entries) == 1 else 'entries'}"


def _size(entries: list[Entry]) -> str:
    return decimal(sum(entry.size for entry in entries))
