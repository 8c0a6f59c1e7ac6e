"""What JSON says: its values checked, the number of wires it states, and excerpts for messages."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np

from nsc.compiler.network import check_wires
from nsc.errors import NetworkError


def json_object(text: str) -> dict[str, object]:
    """Return the JSON object that a text is."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise NetworkError(f"expected a JSON object, found {shown(data)}")
    return data


def stated_wires(data: dict[str, object], key: str, n: int | None) -> int:
    """Return the number of wires that an object states, which must agree with the user's."""
    stated = data.get(key)
    if not is_integer(stated):
        found = f"found {shown(stated)}" if key in data else "it is missing"
        raise NetworkError(f'"{key}", the number of wires, must be an integer; {found}')
    assert isinstance(stated, int)
    if n is not None and n != stated:
        raise NetworkError(f"the file says {stated} wires, --n says {n}: leave --n out or correct it")
    check_wires(stated)
    return stated


def wires_array(n: int, pairs: Iterable[Iterable[int]]) -> np.ndarray:
    """Return pairs of wires below n as a (size, 2) array."""
    listed = [tuple(pair) for pair in pairs]
    for pair in listed:
        if any(not 0 <= wire < n for wire in pair):
            raise NetworkError(f"comparator {pair} has a wire outside 0 … {n - 1} (n = {n})")
    return np.array(listed, dtype=np.int64).reshape(-1, 2)


def is_integer(value: object) -> bool:
    """Say whether a JSON value is an integer and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value: object) -> str:
    """Return a value as a short text for a message."""
    text = json.dumps(value).replace("\x7f", "\\u007f")  # no control character reaches a terminal
    return text if len(text) <= 60 else text[:57] + "…"
