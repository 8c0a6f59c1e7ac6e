"""The lists of known networks: those published, and those found since that are smaller."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import count

# The day of the published lists, which their repository says.
LIST_DATE = "2026-02-22"
KINDS = {"sort": "sorters.txt", "median": "medians.txt"}
"""From a property to the list of its published networks."""

_NAME = re.compile(rf"({'|'.join(KINDS)}|top_\d{{1,2}})_(\d{{1,5}})_\d{{1,6}}_\d{{1,6}}", re.ASCII)


@dataclass(frozen=True)
class Found:
    """A network of the lists: a published one, or one that was found since.

    Attributes:
        name: the name that `known_network` takes.
        kind: its property: sort, median, or the k largest values, such as top-8.
        network: the network.
        published: the fewest comparators of all published networks with at most as many layers. None: no
            such network was published, or this one is published itself.
        by: who found it first. None: it is published, and the published list names its authors.
        date: when it was found, as far as that is known; None for a published network.
        how: how it was made; None for a published network.
    """

    name: str
    kind: str
    network: Network
    published: int | None = None
    by: str | None = None
    date: str | None = None
    how: str | None = None


@cache
def published(kind: str) -> dict[int, list[Network]]:
    """Return the published networks of a property by their number of wires; none but for sort and median.

    They are the Pareto points: none has both as few comparators and as few layers as another.

    Source: the head of the file.
    """
    assert kind in KINDS or re.fullmatch(r"top-\d+", kind), f"no list is of {kind}"
    lines = _text(KINDS[kind]).splitlines() if kind in KINDS else []
    return _pareto_points(_read(line) for line in lines if not line.startswith("#"))


@cache
def found(kind: str) -> tuple[Found, ...]:
    """Return the networks that are smaller than the published ones, by their wires and then their layers.

    Each stands in its certificate. Source: the `by` of each.
    """
    smaller = []
    for line in _text("found.jsonl").splitlines():
        facts = json.loads(line)
        if _kind(facts["name"]) != kind:
            continue
        network = _certified(_text(f"found/{facts['name']}.cert"))
        sizes = [m.size for m in published(kind).get(network.n, []) if m.depth <= network.depth]
        smaller.append(Found(**facts, kind=kind, network=network, published=min(sizes, default=None)))
    return tuple(sorted(smaller, key=lambda entry: (entry.network.n, entry.network.depth)))


@cache
def known(kind: str) -> dict[int, list[Network]]:
    """Return the best networks that are known by their number of wires.

    They are the Pareto points of `published` and `found`, the smallest first and the shallowest last.
    """
    return _pareto_points(known_networks(kind).values())


def records(n: int) -> tuple[Found, ...]:
    """Return the sorters and medians on n wires that no other beats in both comparators and layers.

    The networks for the largest values that were found are behind them.
    """
    listed = [
        next((entry for entry in found(kind) if entry.network == m), Found(known_name(kind, m), kind, m))
        for kind in KINDS
        for m in known(kind).get(n, [])
    ]
    return (*listed, *(entry for kind in selected() for entry in found(kind) if entry.network.n == n))


def known_name(kind: str, network: Network) -> str:
    """Return the name of a network of a list, as `known_network` takes it.

    >>> known_name("median", known("median")[9][0])
    'median_9_19_7'
    """
    return f"{kind.replace('-', '_')}_{network.n}_{network.size}_{network.depth}"


@cache
def known_networks(kind: str) -> dict[str, Network]:
    """Return every network of `published` and `found` by its name."""
    networks = [network for group in published(kind).values() for network in group]
    networks += [entry.network for entry in found(kind)]
    networks.sort(key=lambda m: (m.n, m.size, m.depth))
    return {known_name(kind, network): network for network in networks}


def is_known_name(name: object) -> bool:
    """Return whether a text has the form of the names of `known_name`."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def known_network(name: str) -> Network:
    """Return a network of the lists by its name: its property, then wires, comparators and layers.

    Raises:
        NetworkError: no network of that name; the message says which there are on as many wires.

    >>> known_network("sort_16_61_9").counts
    '16 wires, 61 comparators, 9 layers'
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise NetworkError(f"networks of the lists have names such as sort_16_60_10, got {name!r}")
    named = known_networks(_kind(name))
    if name not in named:
        near = [other for other in named if other.startswith(f"{match[1]}_{match[2]}_")]
        wires = count(int(match[2]), "wire")
        hint = f"on {wires} there are {', '.join(near)}" if near else f"they have none on {wires}"
        raise NetworkError(f"the lists have no {name}: {hint}")
    return named[name]


@cache
def selected() -> tuple[str, ...]:
    """Return the properties of the selections that were found, such as top-8."""
    names = [json.loads(line)["name"] for line in _text("found.jsonl").splitlines()]
    return tuple(sorted({_kind(name) for name in names} - {*KINDS}, key=lambda kind: int(kind[4:])))


def _kind(name: str) -> str:
    """Return the property that stands in front of a name."""
    return name.rsplit("_", 3)[0].replace("_", "-")


def _text(file: str) -> str:
    return (resources.files("nsc.compiler.families") / "known" / file).read_text(encoding="utf-8")


def _certified(certificate: str) -> Network:
    """Return the network of a certificate, whose lines the page Certificates describes."""
    layers = [line.split()[1:] for line in certificate.splitlines() if line.startswith("layer ")]
    return _read(" ".join(",".join(layer) for layer in layers))


def _read(line: str) -> Network:
    """Return the network of a line: layers divided by spaces, comparators lo:hi divided by commas."""
    wires = [int(wire) for wire in line.replace(":", " ").replace(",", " ").split()]
    starts = np.cumsum([0, *(layer.count(":") for layer in line.split())])
    return Network(1 + max(wires), np.array(wires, dtype=np.int32).reshape(-1, 2), starts)


def _pareto_points(networks: Iterable[Network]) -> dict[int, list[Network]]:
    """Return the networks that no other beats or equals in both counts, by n, the smallest first."""
    points: dict[int, list[Network]] = {}
    for network in sorted(networks, key=lambda m: (m.n, m.size, m.depth)):
        kept = points.setdefault(network.n, [])
        if not kept or network.depth < kept[-1].depth:
            kept.append(network)
    return points
