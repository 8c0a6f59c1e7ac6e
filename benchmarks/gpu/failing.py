"""Failures, in words."""

from __future__ import annotations

import sys
import traceback

MOST_CHARACTERS = 800


def failure(error: Exception) -> str:
    """Return an error in words that name its type, and leave its traceback on standard error."""
    traceback.print_exception(error, limit=-4, file=sys.stderr)
    text = str(error).strip()
    if len(text) > MOST_CHARACTERS:  # compilers say first what is wrong, and tracebacks last
        text = f"{text[: MOST_CHARACTERS // 2]} … {text[-MOST_CHARACTERS // 2 :]}"
    return f"{type(error).__name__}: {text}"
