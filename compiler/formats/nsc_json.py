"""nsc-network/1, nsc's own format: JSON, a layer a line, large networks as progressions.

In the place of layers a text may name a family, with the digest of its network: the largest networks of
packages, whose listing takes megabytes, are written so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import numpy as np

from nsc.compiler.families import family_network
from nsc.compiler.formats.json_lists import joined, json_object, rows_of, stated_wires
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
        while step > 0 and pairs[end : end + 1] == [[lo + step * (end - start), hi + step * (end - start)]]:
            end += 1
        yield [lo, hi] if end == start + 1 else [lo, hi, step, end - start]
        start = end


def _parse(text: str) -> Listing:
    data = json_object(text)
    if data.get("format") != NSC_FORMAT:
        raise NetworkError(f'"format" must be "{NSC_FORMAT}", found {quoted(data.get("format"))}')
    n = check_wires(stated_wires(data, "n"))
    if "family" in data:
        if "layers" in data:
            raise NetworkError('the text has both "layers" and a "family": keep one of them')
        return _of_family(n, data["family"], data.get("sha256"))
    items, sizes = joined(data.get("layers"))
    rows = rows_of(items, (2, 4))
    if rows.shape[1] == 4:
        rows, sizes = _expanded(n, rows, sizes)
    return Listing(rows, sizes, n, index_base=0)


def _of_family(n: int, family: object, digest: object) -> Listing:
    """Return the comparators of a family's network, which must have the digest, unless it is None."""
    if not isinstance(family, str):
        raise NetworkError(f'"family" must be the name of a family, found {quoted(family)}')
    network = family_network(family, n)
    if digest not in (None, network.digest):
        raise NetworkError(
            f"the file names {family} on {count(n, 'wire')} with the sha256 {quoted(digest)}, and this nsc's "
            f"network has {network.digest}: use the nsc that wrote it, or compile the package again"
        )
    sizes = np.diff(network.layer_starts).tolist()
    return Listing(network.comparators.astype(np.int64), sizes, n, index_base=0)


def _expanded(n: int, progressions: Pairs, sizes: list[int]) -> tuple[Pairs, list[int]]:
    """Return the comparators that progressions stand for, and how many each layer has.

    Args:
        n: number of wires; it bounds what a short text may stand for.
        progressions: (k, 4) integers lo, hi, step, count, for (lo + i·step, hi + i·step), i in 0 … count - 1.
        sizes: number of progressions in each layer.
    """
    wrong = np.flatnonzero(((progressions[:, 2:] < 1) | (progressions[:, 2:] > n)).any(axis=1))
    if len(wrong):
        found = quoted(progressions[wrong[0]].tolist())
        raise NetworkError(f"a progression is [lo, hi, step, count], step and count 1 … {n}, found {found}")
    counts = progressions[:, 3]
    ends = np.concatenate([[0], np.cumsum(counts)])
    layer_sizes = np.diff(ends[np.cumsum([0, *sizes])])
    if layer_sizes.max() > n:
        layer = int(layer_sizes.argmax())
        raise NetworkError(f"layer {layer} has more comparators than the {count(n, 'wire')}")
    if ends[-1] > MAX_SIZE:
        raise NetworkError(f"a network has at most {MAX_SIZE:,} comparators, this one has more")
    steps = (np.arange(ends[-1]) - np.repeat(ends[:-1], counts)) * np.repeat(progressions[:, 2], counts)
    return np.repeat(progressions[:, :2], counts, axis=0) + steps[:, None], layer_sizes.tolist()


FORMAT = Format(
    suffixes=(".json",),
    holds_layers=True,
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
