"""The public names of each page of the reference, for the list of all names."""

from __future__ import annotations

import importlib
import re
from operator import attrgetter
from pathlib import Path

import nsc
import nsc.compat.difftopk
import nsc.compat.torchsort

REFERENCE = Path(__file__).parent / "reference"


def names_of(page: str) -> list[str]:
    """Return the names that a page documents, in its order and without the leading `nsc.`."""
    names = []
    text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
    for kind, name in re.findall(r"^\.\. auto(function|class|module):: nsc\.(\S+)", text, re.MULTILINE):
        if kind != "module":
            names.append(name)
        elif name == "errors":
            errors = importlib.import_module("nsc.errors")
            names += [error for error in vars(errors) if error in nsc.__all__]
        else:
            names += [f"{name}.{each}" for each in importlib.import_module(f"nsc.{name}").__all__]
    return names


def with_names(text: str) -> str:
    """Return the page of all names with the names of each page in the place of its comment.

    A number has no line that says what it is for: the page's text does.
    """

    def listed(comment: re.Match[str]) -> str:
        callables = [name for name in names_of(comment[1]) if callable(attrgetter(name)(nsc))]
        lines = "".join(f"   {name}\n" for name in callables)
        return f"```{{eval-rst}}\n.. currentmodule:: nsc\n.. autosummary::\n   :nosignatures:\n\n{lines}```"

    return re.sub(r"<!-- names of (\w+) -->", listed, text)
