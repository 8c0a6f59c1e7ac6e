"""Progress: reports of phases and counts during long work."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives reports. Work on many thousands of items reports a few times a second at most."""

    def phase(self, name: str) -> None:
        """Begin a phase: read, transform, prove, schedule, render, write, build."""

    def count(self, unit: str, number: int, total: int | None = None) -> None:
        """Report how many comparators, layers, patterns or other units the phase has done or holds."""


class _Silent:
    def phase(self, name: str) -> None:
        pass

    def count(self, unit: str, number: int, total: int | None = None) -> None:
        pass


# Discards every report.
SILENT: Progress = _Silent()
