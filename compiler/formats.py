"""Formats: how a network is read from a file and written to one, in one table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nsc.compiler.network import MAX_SIZE, Network, check_wires
from nsc.compiler.runs import Runs, runs_of
from nsc.errors import NetworkError

# A network of more comparators than this is written as runs: at two numbers and two brackets a
# comparator, odd-even transposition on 1,024 wires would be 6 MB of text; as runs it is 20 kB.
LONGEST_PLAIN = 1 << 16


@dataclass(frozen=True)
class Format:
    """A file format for networks.

    Attributes:
        example: the same 4-sorter in every format, for messages and documentation.
        recognises: whether a text looks like this format; a format later in the table is asked
            only when the earlier ones said no.
        parse: text and the number of wires the user stated (None: not stated) to a network.
    """

    example: str
    recognises: Callable[[str], bool]
    parse: Callable[[str, int | None], Network]


def read_network(path: Path, n: int | None = None) -> Network:
    """Read a network from a file, in whichever format it is.

    Args:
        path: the file.
        n: number of wires, for formats that do not say it; must agree with those that do.

    Raises:
        NetworkError: the file cannot be read, has no known format, or describes no network.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise NetworkError(f"cannot read the network file {path}: {error}") from None
    try:
        return parse_network(text, n)
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None


def parse_network(text: str, n: int | None = None) -> Network:
    """Return the network that a text in one of the known formats describes.

    >>> parse_network("[(0,2),(1,3)]\\n[(0,1),(2,3)]\\n[(1,2)]").size
    5
    """
    text = text.removeprefix("\ufeff")
    for name, format_ in FORMATS.items():
        if format_.recognises(text):
            try:
                return format_.parse(text, n)
            except NetworkError as error:
                raise NetworkError(f"as {name}: {error}") from None
    known = "; ".join(f"{name}, as in {f.example}" for name, f in FORMATS.items())
    raise NetworkError(f"not a network in a known format, it begins {text[:40]!r}. Known: {known}")


def write_network(network: Network) -> str:
    """Return the network as nsc-network/1 JSON, a layer a line; the same network, the same bytes."""
    if network.size > LONGEST_PLAIN:
        layers = [_run_items(runs) for runs in runs_of(network)]
    else:
        layers = [layer.tolist() for layer in network.layers()]
    lines = ",\n".join("  " + json.dumps(layer, separators=(",", ":")) for layer in layers)
    body = f"\n{lines}\n " if layers else ""
    return f'{{"format": "{NSC_FORMAT}",\n "n": {network.n},\n "layers": [{body}]}}\n'


def _run_items(runs: Runs) -> list[list[int]]:
    return [[lo, hi, step, count] if count > 1 else [lo, hi] for lo, hi, step, count in runs.tolist()]


def _parse_nsc(text: str, n: int | None) -> Network:
    data = _json_object(text)
    if data.get("format") != NSC_FORMAT:
        raise NetworkError(f'"format" must be "{NSC_FORMAT}", found {_short(data.get("format"))}')
    wires = _stated_wires(data, "n", n)
    layers = data.get("layers")
    if not isinstance(layers, list):
        raise NetworkError('"layers" must be a list of layers, each a list of [lo, hi]')
    arrays = []
    size = 0
    for index, items in enumerate(layers):
        arrays.append(_layer(wires, items, index))
        size += len(arrays[-1])
        if size > MAX_SIZE:
            raise NetworkError(f"a network has at most {MAX_SIZE:,} comparators, this one has more")
    return Network.from_layers(wires, arrays)


def _layer(n: int, items: object, index: int) -> np.ndarray:
    """Return a layer's pairs; an item is [lo, hi], or a run [lo, hi, step, count]."""
    if not isinstance(items, list):
        raise NetworkError(f"layer {index} must be a list of [lo, hi], found {_short(items)}")
    pairs: list[tuple[int, int]] = []
    for item in items:
        if not isinstance(item, list) or len(item) not in (2, 4) or not all(map(_is_integer, item)):
            raise NetworkError(f"layer {index}: a comparator is [lo, hi], found {_short(item)}")
        lo, hi, step, count = item if len(item) == 4 else (*item, 1, 1)
        if not (1 <= count <= n and 1 <= step <= n):
            raise NetworkError(f"layer {index}: a run is [lo, hi, step, count], found {_short(item)}")
        if len(pairs) + count > n:
            raise NetworkError(f"layer {index} has more comparators than the {n} wires, at {_short(item)}")
        pairs.extend((lo + k * step, hi + k * step) for k in range(count))
    return _wires_array(n, pairs)


def _parse_sorterhunter(text: str, n: int | None) -> Network:
    data = _json_object(text)
    wires = _stated_wires(data, "N", n)
    flat = data.get("nw")
    if not isinstance(flat, list) or not all(
        isinstance(p, list) and len(p) == 2 and all(map(_is_integer, p)) for p in flat
    ):
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {_short(flat)}')
    return Network.from_comparators(wires, _wires_array(wires, flat))


_PAIR = r"\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)"
_LINE = re.compile(rf"\[\s*(?:{_PAIR}\s*(?:,\s*{_PAIR}\s*)*)?\],?")


def _parse_brackets(text: str, n: int | None) -> Network:
    layers = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if not _LINE.fullmatch(line.strip()):
            raise NetworkError(f"line {number} is no layer [(lo,hi),…]: {_short(line)}")
        layers.append([(int(i), int(j)) for i, j in re.findall(_PAIR, line)])
    used = [wire for layer in layers for pair in layer for wire in pair]
    if n is None and not used:
        raise NetworkError("no comparator and no number of wires: state it with --n")
    wires = max(used) + 1 if n is None else n
    check_wires(wires)
    return Network.from_layers(wires, [_wires_array(wires, layer) for layer in layers])


def _json_object(text: str) -> dict[str, object]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise NetworkError(f"expected a JSON object, found {_short(data)}")
    return data


def _stated_wires(data: dict[str, object], key: str, n: int | None) -> int:
    stated = data.get(key)
    if not _is_integer(stated):
        found = f"found {_short(stated)}" if key in data else "it is missing"
        raise NetworkError(f'"{key}", the number of wires, must be an integer; {found}')
    assert isinstance(stated, int)
    if n is not None and n != stated:
        raise NetworkError(f"the file says {stated} wires, --n says {n}: leave --n out or correct it")
    check_wires(stated)
    return stated


def _wires_array(n: int, pairs: Iterable[Iterable[int]]) -> np.ndarray:
    listed = [tuple(pair) for pair in pairs]
    for pair in listed:
        if any(not 0 <= wire < n for wire in pair):
            raise NetworkError(f"comparator {pair} has a wire outside 0 … {n - 1} (n = {n})")
    return np.array(listed, dtype=np.int64).reshape(-1, 2)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: object) -> str:
    text = json.dumps(value).replace("\x7f", "\\u007f")  # no control character reaches a terminal
    return text if len(text) <= 60 else text[:57] + "…"


NSC_FORMAT = "nsc-network/1"

FORMATS: dict[str, Format] = {
    "SorterHunter JSON": Format(
        example='{"N":4,"nw":[[0,2],[1,3],[0,1],[2,3],[1,2]]}',
        recognises=lambda text: text.lstrip().startswith("{") and '"nw"' in text,
        parse=_parse_sorterhunter,
    ),
    "nsc JSON": Format(
        example='{"format":"nsc-network/1","n":4,"layers":[[[0,2],[1,3]],[[0,1],[2,3]],[[1,2]]]}',
        recognises=lambda text: text.lstrip().startswith("{"),
        parse=_parse_nsc,
    ),
    "one layer per line": Format(
        example="[(0,2),(1,3)] / [(0,1),(2,3)] / [(1,2)]",
        recognises=lambda text: re.match(r"\s*\[\s*(\(|\])", text) is not None,
        parse=_parse_brackets,
    ),
}
