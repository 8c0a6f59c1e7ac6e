"""JSON texts, whose long list is decoded in pieces: whole, Python's objects take ten times its memory."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from nsc.compiler.formats.scanning import quoted
from nsc.errors import NetworkError
from nsc.strict_json import read_json, value_at

# Characters that are decoded at a time; an item may be longer.
_PIECE = 1 << 16
_SPACE = " \t\n\r"


class JsonList:
    """A list inside a JSON text, found by its brackets and decoded when it is iterated over.

    Attributes:
        start, end: the places of its bracket and behind its closing one.
    """

    def __init__(self, text: str, start: int) -> None:
        self.text, self.start = text, start
        self.end = self._cuts()[-1] + 1

    def _cuts(self) -> list[int]:
        """Return the places of commas between items, one in some thousands, and of the closing bracket."""
        cuts: list[int] = []
        depth, place = 0, self.start
        while chunk := self.text[place : place + _PIECE]:
            codes = np.frombuffer(chunk.encode("latin-1", "replace"), dtype=np.uint8)
            opens, closes = ((codes == a) | (codes == b) for a, b in (b"[{", b"]}"))
            depths = depth + np.cumsum(opens.astype(np.int32) - closes)
            ends = np.flatnonzero(depths == 0)
            if len(ends):
                return [*cuts, place + int(ends[0])]
            commas = np.flatnonzero((codes == ord(",")) & (depths == 1))
            if len(commas):
                cuts.append(place + int(commas[-1]))
            depth, place = int(depths[-1]), place + len(chunk)
        raise _invalid("Expecting ',' delimiter", self.text, len(self.text))

    def __iter__(self) -> Iterator[list[object]]:
        """Yield the items, some thousands at a time.

        Raises:
            NetworkError: the list is no JSON.
        """
        place = self.start + 1
        for cut in self._cuts():
            try:
                items = read_json(f"[{self.text[place:cut]}]")
            except json.JSONDecodeError as error:
                raise _invalid(error.msg, self.text, place + error.pos - 1) from None
            except (ValueError, RecursionError) as error:
                raise NetworkError(f"not valid JSON: {error}") from None
            # Nothing is between two commas, or between one and the closing bracket.
            if not items and (place, cut) != (self.start + 1, self.end - 1):
                raise _invalid("Expecting value", self.text, cut)
            yield items
            place = cut + 1
        if self.text[self.end - 1] != "]":
            raise _invalid("Expecting ',' delimiter", self.text, self.end - 1)


def json_list(text: str) -> JsonList:
    """Return the list that a JSON text is.

    Raises:
        NetworkError: it is none.
    """
    start = _next(text, 0)
    if text[start : start + 1] != "[":
        raise NetworkError(f"expected a list, found {quoted(_value(text, start)[0])}")
    items = JsonList(text, start)
    _refuse_more(text, items.end)
    return items


def json_object(text: str, long: str) -> dict[str, object]:
    """Return the JSON object that a text is; the list under the key `long` is a JsonList.

    Raises:
        NetworkError: it is none, or has a key twice.
    """
    place = _next(text, 0)
    if text[place : place + 1] != "{":
        raise NetworkError(f"expected a JSON object, found {quoted(_value(text, place)[0])}")
    facts: dict[str, object] = {}
    place = _next(text, place + 1)
    while not (text[place : place + 1] == "}" and not facts):
        if text[place : place + 1] != '"':
            raise _invalid("Expecting property name enclosed in double quotes", text, place)
        key, place = _value(text, place)
        place = _next(text, place)
        if text[place : place + 1] != ":":
            raise _invalid("Expecting ':' delimiter", text, place)
        place = _next(text, place + 1)
        if str(key) in facts:
            raise NetworkError(f"the key {quoted(key)} is stated twice: keep one of them")
        if key == long and text[place : place + 1] == "[":
            items = JsonList(text, place)
            facts[long], place = items, items.end
        else:
            facts[str(key)], place = _value(text, place)
        place = _next(text, place)
        if text[place : place + 1] == "}":
            break
        if text[place : place + 1] != ",":
            raise _invalid("Expecting ',' delimiter", text, place)
        place = _next(text, place + 1)
    _refuse_more(text, place + 1)
    return facts


def _value(text: str, place: int) -> tuple[object, int]:
    try:
        return value_at(text, place)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"not valid JSON: {error}") from None


def _next(text: str, place: int) -> int:
    """Return the place of the first character from a place on that is no space."""
    while text[place : place + 1] in _SPACE and place < len(text):
        place += 1
    return place


def _refuse_more(text: str, place: int) -> None:
    if (more := _next(text, place)) < len(text):
        raise _invalid("Extra data", text, more)


def _invalid(what: str, text: str, place: int) -> NetworkError:
    return NetworkError(f"not valid JSON: {json.JSONDecodeError(what, text, place)}")
