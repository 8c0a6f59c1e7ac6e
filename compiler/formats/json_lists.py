"""JSON: nsc-network/1, SorterHunter's files, and Python's lists of the same shapes.

nsc-network/1 is nsc's own format: a layer a line, large networks as progressions. In the place of layers a
text may name a family, with the digest of its network: the largest networks of packages are written so.

SorterHunter's files have a flat list under "nw". The log that it prints has Python dictionaries, a line each,
among other lines. A line begins with ``{'N':`` and ends with ``}``. The program prints a network whenever it
has found a better one, so the last such line is read, for each number of wires. One that was cut off before
its ``}`` is passed over, with a warning.

Source: https://github.com/bertdobbelaere/SorterHunter
"""

from __future__ import annotations

import itertools
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.arguments import whole
from nsc.compiler.families import family_network
from nsc.compiler.formats.listing import Format, Listing, Pairs, quoted, settle
from nsc.compiler.network import MAX_SIZE, Network, check_wires
from nsc.errors import NetworkError
from nsc.strict_json import read_json
from nsc.wording import count

NSC_FORMAT = "nsc-network/1"
# A network of more comparators than this is written as progressions: at two numbers and two brackets a
# comparator, odd-even transposition on 1,024 wires would be 6 MB of text; as progressions it is 20 kB.
LONGEST_PLAIN = 1 << 16
# Families' networks of more comparators than this are named: bitonic on 65,536 wires would be 9 MB of text.
LONGEST_LISTED = 1 << 20
_LOG = re.compile(r"^[ \t]*\{'N'", re.MULTILINE)
_LOG_AS_JSON = str.maketrans("()'", '[]"')


def _json_object(text: str, wires: str) -> tuple[dict[str, Any], int]:
    """Return the JSON object that a text is, and the number of wires that it states under this key."""
    try:
        data = read_json(text)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"not valid JSON: {error}") from None
    found = data.get(wires) if isinstance(data, dict) else data
    if found is data or type(found) is not int:
        raise NetworkError(f'"{wires}", the number of wires, must be an integer, found {quoted(found)}')
    return data, found


def _rows_of(items: list[Any], widths: tuple[int, ...] = (2,)) -> npt.NDArray[np.int64]:
    """Return JSON's lists of integers, of these widths, as rows of an array; ones fill up the shorter."""
    for number, item in enumerate(items, start=1):
        if type(item) is not list or len(item) not in widths or {*map(type, item)} != {int}:
            raise NetworkError(f"comparator {number} must be [lo, hi], found {quoted(item)}")
    width = max(map(len, items), default=2)
    rows = items if width == 2 else [[*item, 1, 1][:width] for item in items]
    try:
        return np.array(rows, dtype=np.int64).reshape(-1, width)
    except OverflowError:
        raise NetworkError("a comparator has a wire outside every range: a number beyond 64 bits") from None


def _joined(layers: Any) -> tuple[list[Any], list[int]]:
    """Return what a JSON list of layers has in all layers, and how much in each."""
    for layer in layers if isinstance(layers, list) else [layers]:
        if not isinstance(layer, list):
            raise NetworkError(f"layers are lists of [lo, hi], found {quoted(layer)}")
    return list(itertools.chain.from_iterable(layers)), list(map(len, layers))


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
    items = _plain(comparators)
    first = items[0] if isinstance(items, list) and items else None
    if isinstance(first, list) and first and not isinstance(first[0], list):
        return settle(Listing(_rows_of(items)), n, index_base)
    items, sizes = _joined(items)
    return settle(Listing(_rows_of(items), sizes), n, index_base)


def _plain(value: Any, depth: int = 3) -> Any:
    """Return lists, tuples and arrays, as deep as layers are, as lists, and any whole numbers as int."""
    items: Any = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(items, list | tuple) and depth:
        return [_plain(item, depth - 1) for item in items]
    number = whole(items)
    return items if number is None else number


def _write_nsc(network: Network) -> str:
    """Return nsc-network/1 JSON, a layer a line; the same network, the same bytes."""
    layers: Iterable[list[list[int]]] = (layer.tolist() for layer in network.layers())
    if network.size > LONGEST_PLAIN:
        layers = map(list, map(_progressions_of, layers))
    encode = json.JSONEncoder(separators=(",", ":")).encode
    lines = ",\n".join(f"  {encode(layer)}" for layer in layers)
    body = f"\n{lines}\n " if lines else ""
    return f'{{"format": "{NSC_FORMAT}",\n "n": {network.n},\n "layers": [{body}]}}\n'


def named(family: str, network: Network) -> str:
    """Return nsc-network/1 JSON that names a family's network, with the digest that it must have."""
    facts = {"format": NSC_FORMAT, "n": network.n, "family": family, "sha256": network.digest}
    return json.dumps(facts) + "\n"


def _progressions_of(pairs: list[list[int]]) -> Iterator[list[int]]:
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


def _parse_nsc(text: str) -> Listing:
    data, n = _json_object(text, "n")
    if data.get("format") != NSC_FORMAT:
        raise NetworkError(f'"format" must be "{NSC_FORMAT}", found {quoted(data.get("format"))}')
    check_wires(n)  # before progressions are expanded
    if "family" in data:
        if "layers" in data:
            raise NetworkError('the text has both "layers" and a "family": keep one of them')
        return _of_family(n, data["family"], data.get("sha256"))
    items, sizes = _joined(data.get("layers"))
    rows = _rows_of(items, (2, 4))
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
    return Listing(
        network.comparators.astype(np.int64), np.diff(network.layer_starts).tolist(), n, index_base=0
    )


def _expanded(n: int, progressions: Pairs, sizes: list[int]) -> tuple[Pairs, list[int]]:
    """Return the comparators that progressions stand for, and how many each layer has.

    (lo, hi, step, count) is (lo + i·step, hi + i·step) for i in 0 … count - 1; `sizes` counts progressions.
    """
    wrong = np.flatnonzero(((progressions[:, 2:] < 1) | (progressions[:, 2:] > n)).any(axis=1))
    if len(wrong):
        found = quoted(progressions[wrong[0]].tolist())
        raise NetworkError(f"a progression is [lo, hi, step, count], step and count 1 … {n}, found {found}")
    counts = progressions[:, 3]
    ends = np.concatenate([[0], np.cumsum(counts)])
    layer_sizes = np.diff(ends[np.cumsum([0, *sizes])])
    if layer_sizes.max() > n:
        raise NetworkError(f"a layer has {layer_sizes.max():,}, more comparators than the {count(n, 'wire')}")
    if ends[-1] > MAX_SIZE:
        raise NetworkError(f"a network has at most {MAX_SIZE:,} comparators, this one has more")
    steps = (np.arange(ends[-1]) - np.repeat(ends[:-1], counts)) * np.repeat(progressions[:, 2], counts)
    return np.repeat(progressions[:, :2], counts, axis=0) + steps[:, None], layer_sizes.tolist()


def _parse_sorterhunter(text: str) -> Listing:
    data, n = _json_object(text, "N")
    if not isinstance(data.get("nw"), list):
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {quoted(data.get("nw"))}')
    return Listing(_rows_of(data["nw"]), n=n)


def _parse_log(text: str) -> list[Listing]:
    last, cut = dict[str, tuple[int, str]](), 0
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        if line and line.startswith("{'N'"[: len(line)]):  # a network, even only one character of it
            if line[-1] == "}":
                last[line.partition(",")[0]] = number, line
            else:
                cut = number
    if not last:
        raise NetworkError("no whole line {'N':4,…,'nw':[(0,2),…]}")
    listings = []
    for number, line in last.values():
        try:
            listings.append(replace(_parse_sorterhunter(line.translate(_LOG_AS_JSON)), name=f"line {number}"))
        except NetworkError as error:
            raise NetworkError(f"line {number}: {error}") from None
    if cut:
        whole_line = max(last.values())[0]
        warnings.warn(f"nsc: line {cut} of the log is cut off: line {whole_line} is read", stacklevel=2)
    return listings


def _write_sorterhunter(network: Network) -> str:
    pairs = json.dumps(network.comparators.tolist(), separators=(",", ":"))
    return f'{{"N":{network.n},"L":{network.size},"D":{network.depth},"nw":{pairs}}}\n'


SORTERHUNTER = Format(
    holds_wires=True,
    recognises=lambda text: bool(_LOG.search(text) or (re.match(r'\s*\{\s*"', text) and '"nw"' in text)),
    parse=lambda text: _parse_log(text) if _LOG.search(text) else _parse_sorterhunter(text),
    write=_write_sorterhunter,
)

NSC = Format(
    suffixes=(".json",),
    holds_layers=True,
    holds_wires=True,
    recognises=lambda text: text.lstrip().startswith("{") and "nsc-network" in text,
    parse=_parse_nsc,
    write=_write_nsc,
)
