"""Failures as text."""

from __future__ import annotations

import sys
import traceback

MOST_CHARACTERS = 800


def failure(error: Exception) -> str:
    """Return the type and the message of an error, and print its traceback on standard error."""
    traceback.print_exception(error, limit=-4, file=sys.stderr)
    text = str(error).strip()
    if len(text) > MOST_CHARACTERS:  # a compiler's error stands first, a traceback's last
        text = f"{text[: MOST_CHARACTERS // 2]} … {text[-MOST_CHARACTERS // 2 :]}"
    return f"{type(error).__name__}: {text}"
