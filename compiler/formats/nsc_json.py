"""nsc-network/1, nsc's own format: JSON, a layer a line, large networks as progressions.

In the place of layers a text may name a family, with the digest of its network: the largest networks of
packages, whose listing takes megabytes, are written so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.compiler.families import family_network
from nsc.compiler.formats.json_lists import are_integers, integers_array, json_object, layered, stated_wires
from nsc.compiler.formats.listing import Format, Listing, Pairs, quoted
from nsc.compiler.network import MAX_SIZE, Network, check_wires
from nsc.errors import NetworkError
from nsc.wording import count

NSC_FORMAT = "nsc-network/1"

# A network of more comparators than this is written as progressions: at two numbers and two brackets a
# comparator, odd-even transposition on 1,024 wires would be 6 MB of text; as progressions it is 20 kB.
LONGEST_PLAIN = 1 << 16
# Families' networks of more comparators than this are named: bitonic on 65,536 wires would be 9 MB of text.
LONGEST_LISTED = 1 << 20
# (k, 4) integers lo, hi, step, count: comparators (lo + i·step, hi + i·step) for i in 0 … count - 1.
Progressions = npt.NDArray[np.int64]


def _recognises(text: str) -> bool:
    opens = re.match(r'\s*\{\s*("|\}|\Z)', text) is not None
    return opens and (NSC_FORMAT.partition("/")[0] in text or '"nw"' not in text)


def _write(network: Network) -> str:
    """Return nsc-network/1 JSON, a layer a line; the same network, the same bytes."""
    layers: Iterable[list[list[int]]] = (layer.tolist() for layer in network.layers())
    if network.size > LONGEST_PLAIN:
        layers = map(list, map(progressions_of, layers))
    encode = json.JSONEncoder(separators=(",", ":")).encode
    lines = ",\n".join(f"  {encode(layer)}" for layer in layers)
    body = f"\n{lines}\n " if lines else ""
    return f'{{"format": "{NSC_FORMAT}",\n "n": {network.n},\n "layers": [{body}]}}\n'


def named(family: str, network: Network) -> str:
    """Return nsc-network/1 JSON that names a family's network, with the digest that it must have."""
    facts = {"format": NSC_FORMAT, "n": network.n, "family": family, "sha256": network.digest}
    return json.dumps(facts) + "\n"


def progressions_of(pairs: list[list[int]]) -> Iterator[list[int]]:
    """Yield a layer's comparators as progressions [lo, hi, step, count], or [lo, hi] alone, found greedily.

    Classic families have few progressions a layer: odd-even transposition one, bitonic at most n/2.
    """
    start = 0
    while start < len(pairs):
        (lo, hi), end = pairs[start], start + 1
        step = pairs[end][0] - lo if end < len(pairs) else 0
        reach = 0
        while step > 0 and end < len(pairs):
            reach += step
            if pairs[end] != [lo + reach, hi + reach]:
                break
            end += 1
        yield [lo, hi] if end == start + 1 else [lo, hi, step, end - start]
        start = end


def _parse(text: str) -> Listing:
    data = json_object(text)
    if data.get("format") != NSC_FORMAT:
        raise NetworkError(f'"format" must be "{NSC_FORMAT}", found {quoted(data.get("format"))}')
    n = stated_wires(data, "n")
    check_wires(n)  # before any is expanded: n bounds a progression's length
    layers = data.get("layers")
    if "family" in data:
        if layers is not None:
            raise NetworkError('the text has both "layers" and a "family": keep one of them')
        return _of_family(n, data["family"], data.get("sha256"))
    if not isinstance(layers, list):
        raise NetworkError('"layers" must be a list of layers, each a list of [lo, hi]')
    if 4 not in {
        len(item) for layer in layers if type(layer) is list for item in layer if type(item) is list
    }:
        return replace(layered(layers), n=n, index_base=0)
    progressions, sizes = _progressions(n, layers)
    if sum(sizes) > MAX_SIZE:
        raise NetworkError(f"a network has at most {MAX_SIZE:,} comparators, this one has more")
    return Listing(_expanded(progressions), sizes, n, index_base=0)


def _of_family(n: int, family: object, digest: object) -> Listing:
    """Return the comparators of a family's network, which must have the digest, unless it is None."""
    if not isinstance(family, str):
        raise NetworkError(f'"family" must be the name of a family, found {quoted(family)}')
    network = family_network(family, n)
    if digest is not None and digest != network.digest:
        raise NetworkError(
            f"the file names {family} on {count(n, 'wire')} with the sha256 {quoted(digest)}, and this nsc's "
            f"network has {network.digest}: use the nsc that wrote it, or compile the package again"
        )
    sizes = np.diff(network.layer_starts).tolist()
    return Listing(network.comparators.astype(np.int64), sizes, n, index_base=0)


def _progressions(n: int, layers: list[Any]) -> tuple[Progressions, list[int]]:
    """Return the progressions of layers, and how many comparators each layer has."""
    rows, sizes = list[list[int]](), list[int]()
    for index, layer in enumerate(layers):
        if not isinstance(layer, list):
            raise NetworkError(f"layer {index} must be a list of [lo, hi], found {quoted(layer)}")
        size = 0
        for item in layer:
            if not isinstance(item, list) or len(item) not in (2, 4) or not are_integers([item]):
                raise NetworkError(f"layer {index}: a comparator is [lo, hi], found {quoted(item)}")
            step, number = item[2:] or (1, 1)
            if not (1 <= number <= n and 1 <= step <= n):
                raise NetworkError(
                    f"layer {index}: a progression is [lo, hi, step, count], found {quoted(item)}"
                )
            size += number
            if size > n:
                raise NetworkError(
                    f"layer {index} has more comparators than the {count(n, 'wire')}, at {quoted(item)}"
                )
            rows.append([*item[:2], step, number])
        sizes.append(size)
    return integers_array(rows, 4), sizes


def _expanded(progressions: Progressions) -> Pairs:
    """Return the comparators of progressions."""
    counts = progressions[:, 3]
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    place *= np.repeat(progressions[:, 2], counts)
    pairs: Pairs = np.repeat(progressions[:, :2], counts, axis=0)
    pairs += place[:, None]
    return pairs


FORMAT = Format(
    suffixes=(".json",),
    holds_layers=True,
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
