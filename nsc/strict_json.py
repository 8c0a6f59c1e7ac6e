"""Strict JSON: an object with a repeated key is an error."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


def read_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or an object repeats a key; other readers may take either value.
        RecursionError: the value is nested too deeply.
    """
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {json.dumps(key[:40])} is stated twice")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
