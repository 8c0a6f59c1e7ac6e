"""Progress: who is told how far long work has come."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Is told of phases and counts; called some times a second at most of what is counted by the thousand."""

    def phase(self, name: str) -> None:
        """Begin a phase: read, transform, prove, schedule, render, write, build."""

    def count(self, what: str, number: int, total: int | None = None) -> None:
        """Say how much of something the phase has done, or holds: comparators, layers, patterns."""


class _Silent:
    def phase(self, name: str) -> None:
        pass

    def count(self, what: str, number: int, total: int | None = None) -> None:
        pass


# Tells nobody.
SILENT: Progress = _Silent()
