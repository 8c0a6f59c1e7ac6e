"""nsc-network/1, nsc's own format: JSON, a layer a line, long layers as runs."""

from __future__ import annotations

import json

import numpy as np

from nsc.compiler.formats.json_text import is_integer, json_object, shown, stated_wires, wires_array
from nsc.compiler.network import MAX_SIZE, Network
from nsc.compiler.runs import Runs, runs_of
from nsc.errors import NetworkError

NSC_FORMAT = "nsc-network/1"

# A network of more comparators than this is written as runs: at two numbers and two brackets a
# comparator, odd-even transposition on 1,024 wires would be 6 MB of text; as runs it is 20 kB.
LONGEST_PLAIN = 1 << 16


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


def parse_nsc(text: str, n: int | None) -> Network:
    """Return the network of a text in nsc-network/1."""
    data = json_object(text)
    if data.get("format") != NSC_FORMAT:
        raise NetworkError(f'"format" must be "{NSC_FORMAT}", found {shown(data.get("format"))}')
    wires = stated_wires(data, "n", n)
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
        raise NetworkError(f"layer {index} must be a list of [lo, hi], found {shown(items)}")
    pairs: list[tuple[int, int]] = []
    for item in items:
        if not isinstance(item, list) or len(item) not in (2, 4) or not all(map(is_integer, item)):
            raise NetworkError(f"layer {index}: a comparator is [lo, hi], found {shown(item)}")
        lo, hi, step, count = item if len(item) == 4 else (*item, 1, 1)
        if not (1 <= count <= n and 1 <= step <= n):
            raise NetworkError(f"layer {index}: a run is [lo, hi, step, count], found {shown(item)}")
        if len(pairs) + count > n:
            raise NetworkError(f"layer {index} has more comparators than the {n} wires, at {shown(item)}")
        pairs.extend((lo + k * step, hi + k * step) for k in range(count))
    return wires_array(n, pairs)
