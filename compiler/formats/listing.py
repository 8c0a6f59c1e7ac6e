"""Listing: what a text says of a network, and the one place that settles which network it means."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsc.arguments import integer
from nsc.compiler.network import Network, check_wires
from nsc.errors import NetworkError
from nsc.wording import argument, count

Pairs = npt.NDArray[np.int64]

MOST_NAMED = 8


@dataclass(frozen=True)
class Listing:
    """The facts that a text states of a network, in its own numbering of wires.

    Attributes:
        comparators: (size, 2) integers, lo and hi, in the text's order.
        layer_sizes: number of comparators in each layer; None: a flat list, to be relayered.
        n: number of wires, where the text states it.
        index_base: what the format counts wires from, 0 or 1; None: it does not define it.
        name: of the network, in a text that may have several.
        shape: how its comparators are written.
        label: its name with the words before it, "#" in the place of numbers.
        fault: why these comparators are no network; "": they are one.
    """

    comparators: Pairs
    layer_sizes: Sequence[int] | None = None
    n: int | None = None
    index_base: int | None = None
    name: str = "network"
    shape: str = ""
    label: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Format:
    """A file format for networks.

    Attributes:
        suffixes: endings of file names that stand for the format when a file is written.
        holds_layers: whether a written network is read back with the same layers.
        holds_wires: whether the text states n.
        recognises: whether a text looks like this format; asked in the table's order.
        parse: returns the listing of a text, or one for each network that it has. The text is without
            trailing space, with ``\\n`` as its newline. None: the format is not read.
        write: a network to its text. None: the format is not written.
    """

    suffixes: tuple[str, ...] = ()
    holds_layers: bool = False
    holds_wires: bool = False
    recognises: Callable[[str], bool] = lambda text: False
    parse: Callable[[str], Listing | list[Listing]] | None = None
    write: Callable[[Network], str] | None = None


def settle(listing: Listing, n: int | None, index_base: int | None) -> Network:
    """Return the network that a listing means, by the choices in the package's docstring.

    Args:
        listing: what the text says.
        n: number of wires that the user states.
        index_base: what the user says that the text counts wires from.

    Raises:
        NetworkError: a listing of no network, or one that could mean several.
    """
    if listing.fault:
        raise NetworkError(listing.fault)
    base, wires, pairs = _stated_base(listing, index_base), _stated_wires(listing, n), listing.comparators
    low, high = (int(pairs.min()), int(pairs.max())) if len(pairs) else (0, 0)
    if wires is None and not len(pairs):
        raise NetworkError(f"no comparator and no number of wires: state {argument('n')}")
    if wires in (None, high) and base is None and low > 0:
        raise NetworkError(
            f"no comparator touches wire 0: say whether wires are counted from 1, with "
            f"{argument('index_base', 1)}, or from 0, with {argument('index_base', 0)} and {argument('n')} "
            f"above {high}"
        )
    first = base or 0
    last = first + (check_wires(max(high - first + 1, 1)) if wires is None else wires) - 1
    outside = np.flatnonzero(((pairs < first) | (pairs > last)).any(axis=1))
    if len(outside):
        pair = tuple(pairs[outside[0]].tolist())
        raise NetworkError(f"comparator {pair} has a wire outside {first} … {last} (n = {last - first + 1})")
    unused = np.flatnonzero(np.bincount(pairs.ravel() - first, minlength=last - first + 1) == 0) + first
    if wires is None and len(unused):
        named = ", ".join(map(str, unused[:MOST_NAMED])) + (", …" if len(unused) > MOST_NAMED else "")
        raise NetworkError(
            f"no number of wires is stated, and of {first} … {last} no comparator touches {named}: state "
            f"{argument('n')}"
        )
    try:
        if listing.layer_sizes is None:
            return Network.from_comparators(last - first + 1, pairs - first)
        return Network(last - first + 1, pairs - first, np.cumsum([0, *listing.layer_sizes]))
    except NetworkError as error:
        counted = " (wires counted from 0 here, from 1 there)" if first else ""
        raise NetworkError(f"{error}{counted}") from None


def _stated_base(listing: Listing, index_base: int | None) -> int | None:
    if index_base is None:
        return listing.index_base
    if integer("index_base", index_base, NetworkError) not in (0, 1):
        raise NetworkError(f"wires are counted from 0 or 1, got {argument('index_base', index_base)}")
    if listing.index_base not in (None, index_base):
        raise NetworkError(
            f"this format counts wires from {listing.index_base} by definition: leave out "
            f"{argument('index_base', index_base)}, or name another {argument('format')}"
        )
    return index_base


def _stated_wires(listing: Listing, n: int | None) -> int | None:
    if listing.n is None:
        return None if n is None else check_wires(n)
    wires = check_wires(listing.n)
    if n is not None and integer("n", n, NetworkError) != wires:
        raise NetworkError(
            f"the file says {count(wires, 'wire')}, {argument('n', n)} disagrees: correct it or leave it out"
        )
    return wires


def quoted(value: object) -> str:
    """Return a JSON value, or one of Python, as a short text for a message, without control characters."""
    try:
        text = json.dumps(value, default=repr).replace("\x7f", "\\u007f")
    except (RecursionError, TypeError, ValueError):
        return "something too deep or too long to show"
    return text if len(text) <= 60 else text[:57] + "…"
