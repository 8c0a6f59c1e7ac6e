"""nsc-network/1, nsc's own format: JSON, a layer a line, large networks as progressions."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

import numpy as np

from nsc.compiler.formats.json_texts import JsonList, json_object
from nsc.compiler.formats.listing import Format, Listing, Pairs, joined
from nsc.compiler.formats.progressions import Progressions, progressions_of
from nsc.compiler.formats.scanning import shown, stated_wires
from nsc.compiler.network import MAX_SIZE, Network, check_wires
from nsc.compiler.progress import Progress
from nsc.errors import NetworkError
from nsc.wording import count

NSC_FORMAT = "nsc-network/1"

# A network of more comparators than this is written as progressions: at two numbers and two brackets a
# comparator, odd-even transposition on 1,024 wires would be 6 MB of text; as progressions it is 20 kB.
LONGEST_PLAIN = 1 << 16
# Comparators that are expanded at a time, or those of one layer.
_PIECE = 1 << 14


def _recognises(text: str) -> bool:
    opens = re.match(r'\s*\{\s*("|\}|\Z)', text) is not None
    return opens and (NSC_FORMAT.partition("/")[0] in text or '"nw"' not in text)


def _write(network: Network) -> str:
    """Return nsc-network/1 JSON, a layer a line; the same network, the same bytes."""
    if network.size > LONGEST_PLAIN:
        layers = [_progression_items(progressions) for progressions in progressions_of(network)]
    else:
        layers = [layer.tolist() for layer in network.layers()]
    lines = ",\n".join("  " + json.dumps(layer, separators=(",", ":")) for layer in layers)
    body = f"\n{lines}\n " if layers else ""
    return f'{{"format": "{NSC_FORMAT}",\n "n": {network.n},\n "layers": [{body}]}}\n'


def _progression_items(progressions: Progressions) -> list[list[int]]:
    return [[lo, hi, step, count] if count > 1 else [lo, hi] for lo, hi, step, count in progressions.tolist()]


def _parse(text: str, progress: Progress) -> Listing:
    data = json_object(text, "layers")
    if data.get("format") != NSC_FORMAT:
        raise NetworkError(f'"format" must be "{NSC_FORMAT}", found {shown(data.get("format"))}')
    n = stated_wires(data, "n")
    check_wires(n)  # before any is expanded: n bounds a progression's length
    layers = data.get("layers")
    if not isinstance(layers, JsonList):
        raise NetworkError('"layers" must be a list of layers, each a list of [lo, hi]')
    sizes: list[int] = []
    return Listing(joined(_layers(n, layers, sizes), progress), sizes, n, index_base=0)


def _layers(n: int, layers: JsonList, sizes: list[int]) -> Iterator[Pairs]:
    """Yield the comparators, those of some layers at a time, and append each layer's number to the sizes."""
    total = expanded = 0
    progressions: list[list[int]] = []
    for items in itertools.chain.from_iterable(layers):
        sizes.append(_add_progressions(n, items, len(sizes), progressions))
        total += sizes[-1]
        if total > MAX_SIZE:
            raise NetworkError(f"a network has at most {MAX_SIZE:,} comparators, this one has more")
        if total - expanded > _PIECE:
            yield _expanded(progressions)
            progressions, expanded = [], total
    yield _expanded(progressions)


def _add_progressions(n: int, items: object, index: int, progressions: list[list[int]]) -> int:
    """Append a layer's items as progressions and return its size; an item is [lo, hi] or a progression."""
    if not isinstance(items, list):
        raise NetworkError(f"layer {index} must be a list of [lo, hi], found {shown(items)}")
    size = 0
    for item in items:
        if not isinstance(item, list) or len(item) not in (2, 4) or not all(type(v) is int for v in item):
            raise NetworkError(f"layer {index}: a comparator is [lo, hi], found {shown(item)}")
        progression = item if len(item) == 4 else [*item, 1, 1]
        if not (1 <= progression[3] <= n and 1 <= progression[2] <= n):
            raise NetworkError(f"layer {index}: a progression is [lo, hi, step, count], found {shown(item)}")
        size += progression[3]
        if size > n:
            raise NetworkError(
                f"layer {index} has more comparators than the {count(n, 'wire')}, at {shown(item)}"
            )
        progressions.append(progression)
    return size


def _expanded(progressions: list[list[int]]) -> Pairs:
    try:
        rows = np.array(progressions, dtype=np.int64).reshape(-1, 4)
    except OverflowError:
        raise NetworkError("a comparator has a wire outside every range: a number beyond 64 bits") from None
    counts = rows[:, 3]
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    ends: Pairs = np.repeat(rows[:, :2], counts, axis=0)
    ends += (place * np.repeat(rows[:, 2], counts))[:, None]
    return ends


FORMAT = Format(
    example='{"format":"nsc-network/1","n":4,"layers":[[[0,2],[1,3]],[[0,1],[2,3]],[[1,2]]]}',
    suffixes=(".json",),
    holds_layers=True,
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
