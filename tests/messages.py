"""Rules for the words of every message and every printed line."""

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
    "a plural after 1": re.compile(rf"(?<![\w.,…^+-])(?<!… )1 (?:{_PLURALS})\b(?! …)"),
    "a wrong article": re.compile(r"\b(?:a [aeio]\w+|an [bcdfgjklmnpqrstvwxyz]\w+)\b"),
    "two commas": re.compile(r",\s*,"),
}
# Quotations in a message are not checked; a long quotation ends in an ellipsis.
_QUOTED = re.compile(r"""(?<!\w)(['"])(?:\\.|(?!\1).)*?(?:\1|…|\Z)""", re.DOTALL)
_OPTION = re.compile(r"(?:^|[\s(])--[a-z]")
_ARGUMENT = re.compile(
    r"(?:^|[\s(])(?:n|format|index_base|unproved|remove_redundant|select|targets|dtypes|top_k|ranks|wires|name|folder|"
    r"max_memory|time_limit)="
)


def check_words(text: str) -> None:
    """Fail on a wrong count, article or comma."""
    unquoted = _QUOTED.sub("'…'", text)
    for fault, pattern in _FAULTS.items():
        match = pattern.search(unquoted)
        assert match is None, f"{fault}, {match[0]!r}: {text}"


def check_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the words of all errors from now on, and that they name options or arguments as callers do."""
    init = NscError.__init__

    def checked(self: NscError, *arguments: object) -> None:
        init(self, *arguments)
        if isinstance(self, BuildError | ToolchainError):  # these quote commands and compilers
            return
        message = str(self)
        check_words(message)
        wrong = _ARGUMENT if wording._option_of.get() else _OPTION
        assert not wrong.search(message), f"{wrong.search(message)[0]!r} is the other language: {message}"

    monkeypatch.setattr(NscError, "__init__", checked)
