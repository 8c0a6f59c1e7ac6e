"""JSON as nsc reads it: a text that says a thing twice says nothing."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


def value_at(text: str, place: int) -> tuple[Any, int]:
    """Return the JSON value that begins at a place of a text, and its end; raises as `read_json`."""
    return _DECODER.raw_decode(text, place)


def read_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: no JSON, or an object with a repeated key, of which readers take the first, the last or
            none.
        RecursionError: nested too deeply.
    """
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {json.dumps(key[:40])} is stated twice")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
