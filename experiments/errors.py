"""The errors that a user of the experiments can mend."""

from __future__ import annotations

import click


class ExperimentError(click.ClickException):
    """A wrong request or a failed run, shown as one line."""

    exit_code = 2


class DataError(ExperimentError):
    """A data set that cannot be read: which file, what was found, what to do."""
