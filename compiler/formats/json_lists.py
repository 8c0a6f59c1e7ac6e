"""Nested lists: a flat list of pairs, or a list of layers, as JSON or as Python prints it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.arguments import whole
from nsc.compiler.formats.json_texts import json_list
from nsc.compiler.formats.listing import Format, Listing, Pairs, comparators_array, joined, settle
from nsc.compiler.formats.scanning import are_pairs, is_pair, quoted
from nsc.compiler.network import Network
from nsc.compiler.progress import SILENT, Progress
from nsc.errors import NetworkError
from nsc.wording import argument

_AS_JSON = str.maketrans("()", "[]")


def _recognises(text: str) -> bool:
    return re.match(r"\s*\[\s*\[", text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    try:
        items = json_list(text.translate(_AS_JSON))
    except NetworkError as error:
        if "Extra data" not in str(error):
            raise
        raise NetworkError(
            f"{error}: one list a file; a layer per line is read with {argument('format', 'layers')}"
        ) from None
    return _listing(items, progress)


def network_of_lists(
    comparators: Sequence[Any] | npt.NDArray[Any], n: int | None = None, index_base: int | None = None
) -> Network:
    """Return the network of comparators (lo, hi) in Python's lists, tuples and arrays.

    Args:
        comparators: flat, each then as early as it can be, or a list for each layer.
        n: number of wires; None: the highest wire plus one, if all wires up to that one are used.
        index_base: what wires are counted from, 0 or 1; None: 0, if wire 0 is used.

    Raises:
        NetworkError: lists of no network, or of possibly several.
    """
    return settle(_listing([_plain(comparators)], SILENT), n, index_base)


def _plain(value: Any) -> Any:
    """Return lists, tuples and arrays as lists, and whole numbers of any kind as int."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    number = whole(value)
    return value if number is None else number


def _listing(pieces: Iterable[list[Any]], progress: Progress) -> Listing:
    """Return the listing of a list's items, which come some at a time."""
    first = next(iter(pieces))[:1]
    if first and isinstance(first[0], list) and first[0] and not isinstance(first[0][0], list):
        return Listing(joined(_flat(pieces), progress))
    sizes: list[int] = []
    return Listing(joined(_layers(pieces, sizes), progress), sizes)


def _flat(pieces: Iterable[list[Any]]) -> Iterator[Pairs]:
    before = 0
    for piece in pieces:
        if not are_pairs(piece):
            _refuse_others(piece, "item", before)
        before += len(piece)
        yield comparators_array(piece)


def _layers(pieces: Iterable[list[Any]], sizes: list[int]) -> Iterator[Pairs]:
    """Yield the comparators, those of some layers at a time, and append each layer's number to the sizes."""
    for piece in pieces:
        for index, layer in enumerate(piece, start=len(sizes)):
            if not isinstance(layer, list):
                raise NetworkError(f"layer {index} must be a list of [lo, hi], found {quoted(layer)}")
        flat = list(itertools.chain.from_iterable(piece))
        if not are_pairs(flat):
            for index, layer in enumerate(piece, start=len(sizes)):
                _refuse_others(layer, f"layer {index}, item")
        sizes.extend(map(len, piece))
        yield comparators_array(flat)


def _refuse_others(items: list[object], what: str, before: int = 0) -> None:
    for index, item in enumerate(items, start=before):
        if not is_pair(item):
            nested = isinstance(item, list) and bool(item) and isinstance(item[0], list)
            several = " (lists nested deeper are several networks: one network a file)" if nested else ""
            raise NetworkError(f"{what} {index}: a comparator is [lo, hi], found {quoted(item)}{several}")


def _write(network: Network) -> str:
    lines = [json.dumps(layer.tolist(), separators=(",", ":")) for layer in network.layers()]
    return "[" + ",\n ".join(lines) + "]\n"


FORMAT = Format(
    example="[[0,2],[1,3],[0,1],[2,3],[1,2]]",
    holds_layers=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
