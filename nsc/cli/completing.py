"""Completing words in a shell: what click's completion offers for networks and for lists of words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator

import click
from click.shell_completion import CompletionItem

from nsc.compiler.families import FAMILIES, KINDS, known_networks, selected

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

# Names of files that a shell takes as they are.
_PLAIN = re.compile(r"[\w./+~-]+")


def networks(_context: click.Context, _parameter: click.Parameter, beginning: str) -> list[CompletionItem]:
    """Return the families and files whose names begin so; where no family does, the shell looks for files.

    The networks of the lists are many, so they are offered where the word before their numbers is complete. A
    shell that is told to look for files shows nothing else, so beside families the files are listed here.
    """
    families = [name for name in FAMILIES if name.startswith(beginning)]
    for kind in (*KINDS, *selected()):
        if beginning.startswith(f"{kind.partition('-')[0]}_"):
            families += [name for name in known_networks(kind) if name.startswith(beginning)]
    if not families:
        return [CompletionItem(beginning, type="file")]
    return [CompletionItem(name) for name in (*families, *_files(beginning))]


def _files(beginning: str) -> Iterator[str]:
    """Yield the files of this folder whose names begin so, but for those that begin with a dot."""
    try:
        names = sorted(entry.name for entry in os.scandir() if entry.is_file())
    except OSError:  # the folder is gone
        return
    for name in names:
        if name.startswith(beginning) and not name.startswith(".") and _PLAIN.fullmatch(name):
            yield name


def some_of(words: Collection[str]) -> Completer:
    """Return the completer of an option that lists some of the words, with commas."""

    def complete(
        _context: click.Context, _parameter: click.Parameter, beginning: str
    ) -> list[CompletionItem]:
        before, comma, last = beginning.rpartition(",")
        chosen = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{word}")
            for word in words
            if word.startswith(last) and word not in chosen
        ]

    return complete
