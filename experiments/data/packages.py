"""Packages that only some data sets need, imported when such a data set is read."""

from __future__ import annotations

import importlib
from typing import Any

from experiments.errors import DataError


def need(module: str, data: str, condition: str = "") -> Any:
    """Return a module.

    Args:
        module: its name, such as "PIL.Image".
        data: the data set that needs it, for the error.
        condition: what else its package needs, such as "on Python 3.11 or newer".

    Raises:
        DataError: it is not installed or cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        advice = " ".join(filter(None, ["pip install -e '.[experiments]'", condition]))
        raise DataError(f"{data} needs the module {module} ({error}): {advice}") from None
