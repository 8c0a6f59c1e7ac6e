"""What every message and every printed line is held to."""

from __future__ import annotations

import re

import pytest

from nsc import wording
from nsc.errors import BuildError, NscError, ToolchainError

_PLURALS = (
    "wires|comparators|layers|outputs|ranks|values|columns|codelets|shapes|loads|inputs|patterns|"
    "half operations|samples|largest"
)
_FAULTS = {
    "a number that its noun does not fit": re.compile(rf"(?<![\w.,…^+-])(?<!… )1 (?:{_PLURALS})\b(?! …)"),
    "an article that its noun does not fit": re.compile(r"\b(?:a [aeio]\w+|an [bcdfgjklmnpqrstvwxyz]\w+)\b"),
    "a comma too many": re.compile(r",\s*,"),
}
# What a message quotes is not its own; a long quotation ends in an ellipsis.
_QUOTED = re.compile(r"""(?<!\w)(['"])(?:\\.|(?!\1).)*?(?:\1|…|\Z)""", re.DOTALL)
_OPTION = re.compile(r"(?:^|[\s(])--[a-z]")
_ARGUMENT = re.compile(
    r"(?:^|[\s(])(?:n|format|index_base|unproved|remove_redundant|select|targets|dtypes|top_k|ranks|wires|name|folder|"
    r"max_memory|time_limit)="
)


def check_words(text: str) -> None:
    """Fail on a count, an article or a comma that is wrong."""
    own = _QUOTED.sub("'…'", text)
    for fault, pattern in _FAULTS.items():
        match = pattern.search(own)
        assert match is None, f"{fault}, {match[0]!r}: {text}"


def check_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every error of nsc that is raised from now on fail unless it speaks its caller's language."""
    init = NscError.__init__

    def checked(self: NscError, *arguments: object) -> None:
        init(self, *arguments)
        if isinstance(self, BuildError | ToolchainError):  # they quote commands and compilers
            return
        message = str(self)
        check_words(message)
        other = _ARGUMENT if wording._option_of.get() else _OPTION
        assert not other.search(message), f"{other.search(message)[0]!r} is the other language: {message}"

    monkeypatch.setattr(NscError, "__init__", checked)
