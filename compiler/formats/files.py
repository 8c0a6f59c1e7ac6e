"""Files: the one table of formats, and reading and writing by it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from nsc.arguments import is_name
from nsc.atomic import write_whole
from nsc.compiler.diagram import svg, tikz
from nsc.compiler.formats import drawings, json_lists, lists
from nsc.compiler.formats.comments import without_leading_comments
from nsc.compiler.formats.graphs import dot
from nsc.compiler.formats.listing import MOST_NAMED, Format, Listing, quoted, settle
from nsc.compiler.network import Network
from nsc.contract.manifest import NETWORK
from nsc.errors import NetworkError
from nsc.wording import argument, count, spelled

_Read = TypeVar("_Read")

# In the order in which a text's format is looked for.
FORMATS: dict[str, Format] = {
    "nsc": json_lists.NSC,
    "sorterhunter": json_lists.SORTERHUNTER,
    "ascii": drawings.FORMAT,
    "list": lists.FORMAT,
    "cn": lists.COLONS,
    "knuth": lists.KNUTH,
    "code": lists.CODE,
    "dot": Format(suffixes=(".dot", ".gv"), holds_layers=True, holds_wires=True, write=dot),
    "svg": Format(suffixes=(".svg",), holds_layers=True, holds_wires=True, write=svg),
    "tikz": Format(suffixes=(".tex", ".tikz"), holds_layers=True, holds_wires=True, write=tikz),
}

# Half a million comparators take 6 MB in the plainest formats; nothing that compiles needs more.
MOST_BYTES = 1 << 28


def readable() -> dict[str, Callable[[str], Listing | list[Listing]]]:
    """Return the readers of formats, by the formats' names."""
    return {name: format_.parse for name, format_ in FORMATS.items() if format_.parse}


def writable() -> dict[str, Callable[[Network], str]]:
    """Return the writers of formats, by the formats' names."""
    return {name: format_.write for name, format_ in FORMATS.items() if format_.write}


def read_network(
    file: Path | BinaryIO,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
    name: str | None = None,
) -> Network:
    """Read a network from a file.

    Args:
        file: a text in UTF-8, in any encoding where letters are in comments; an open file is standard input.
        n: number of wires, for formats that do not say it; must agree with those that do. Of several networks
            it chooses the one that has so many wires.
        format: a name in FORMATS; None: found from the content.
        index_base: what the file counts wires from, 0 or 1, where its format does not define it.
        name: of the network, in a file that has several.

    Raises:
        NetworkError: the file cannot be read, has no known format, or describes no network or
            possibly several (the package's docstring lists the cases).
    """
    with _text(file) as text:
        return parse_network(text, n, format=format, index_base=index_base, name=name)


def read_networks(
    file: Path | BinaryIO, *, format: str | None = None, index_base: int | None = None
) -> dict[str, Network | NetworkError]:
    """Return all networks of a file by their names, an error for one that cannot be read."""
    with _text(file) as text:
        return _settled(_listings(text, format), index_base)


@contextmanager
def _text(file: Path | BinaryIO) -> Iterator[str]:
    """Yield the text of a file, and name the file in errors."""
    where = str(file) if isinstance(file, Path) else "standard input"
    try:
        with file.open("rb") if isinstance(file, Path) else nullcontext(file) as stream:
            pieces = iter(partial(stream.read, 1 << 20), b"")
            content = b"".join(islice(pieces, (MOST_BYTES >> 20) + 1))
        if len(content) > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES >> 20} MB")
    except (OSError, ValueError) as error:
        network = os.path.join(where, NETWORK)
        package = f"; the network of this package is {network}" if os.path.isfile(network) else ""
        fault = f"it is a folder{package}" if isinstance(error, IsADirectoryError) else error
        raise NetworkError(f"cannot read {where}: {fault}") from None
    try:
        yield content.decode(errors="replace")  # letters of other encodings are in comments
    except NetworkError as error:
        raise NetworkError(f"{where}: {error}") from None


def parse_network(
    text: str,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
    name: str | None = None,
) -> Network:
    """Return the network that a text describes; arguments and errors are as in `read_network`.

    >>> parse_network("[(0,2),(1,3)]\\n[(0,1),(2,3)]\\n[(1,2)]").size
    5
    >>> parse_network("void sort2(int *x) { swap(x[0], x[1]); } int net[] = {0,2, 0,1, 1,2};", name="net").n
    3
    """
    return _chosen(_listings(text, format), n, index_base, name)


def _listings(text: str, format: str | None) -> list[Listing]:
    """Return what a text says in the stated format, or in the one that it looks like."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").rstrip()
    text = without_leading_comments(text)
    known = readable()
    found = next((name for name in known if FORMATS[name].recognises(text)), "list")
    parse = _known(found if format is None else format, known, "read")
    try:
        listings = parse(text)
    except NetworkError as error:
        if format is not None or found != "list":
            raise
        raise NetworkError(
            f"{error}; or state {argument('format')}, one of {', '.join(known)}, which says where it differs"
        ) from None
    return listings if isinstance(listings, list) else [listings]


def _settled(listings: list[Listing], index_base: int | None) -> dict[str, Network | NetworkError]:
    """Return the networks of a text by their names.

    Program text has other calls and lists of numbers too. A way of writing counts if a network of more than
    one comparator is written so, or what could be a part of one. Lists whose labels differ by numbers alone
    count if one of them is a network.
    """
    networks: dict[str, Network | NetworkError] = {}
    for listing in listings:
        try:
            networks[listing.name] = settle(listing, None, index_base)
        except NetworkError as error:
            networks[listing.name] = error
    read = [one for one in listings if isinstance(networks[one.name], Network)]
    parts = [
        one for one in listings if one.fault and len(one.comparators) > 2 and np.diff(one.comparators).all()
    ]
    long = [one for one in read if len(one.comparators) > 1] + parts
    shapes = {one.shape for one in long or read or listings}
    labels, uses = {one.label for one in read or listings}, Counter(one.label for one in listings)
    return {
        one.name: networks[one.name]
        for one in listings
        if one.shape in shapes and (one.fault or one.label in labels or uses[one.label] == 1)
    }


def _chosen(listings: list[Listing], n: int | None, index_base: int | None, name: str | None) -> Network:
    """Return the network that the user chooses, or the only one."""
    if len(listings) == 1 and name is None:
        return settle(listings[0], n, index_base)
    found = _settled(listings, index_base)
    fits = {
        key: len(found) == 1 or n in (None, getattr(network, "n", None)) for key, network in found.items()
    }
    chosen = [one for one in listings if (fits.get(one.name) if name is None else is_name(name, [one.name]))]
    if len(chosen) == 1:
        return settle(chosen[0], n, index_base)
    if not any(isinstance(network, Network) for network in found.values()):
        largest = max(listings, key=lambda one: (one.name in found, len(one.comparators)))
        raise NetworkError(str(found[largest.name]))
    shown = [f"{key} ({getattr(network, 'counts', 'cannot be read')})" for key, network in found.items()]
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    asked = "" if name is None else f"no network {quoted(name)}: "
    raise NetworkError(
        f"{asked}{count(len(shown), 'network')} in one file, {', '.join(shown[:MOST_NAMED])}{more}: choose "
        f"one by {argument('n')}, if no other has as many wires, or by its name, with "
        f"{spelled('nsc.network(FILE, name=NAME)', 'nsc convert FILE --name NAME OUT.json')}"
    )


def write_network(network: Network, format: str = "nsc") -> str:
    """Return the text of a network in a format; the same network, the same text.

    Raises:
        NetworkError: no such format, or one that is read only.
    """
    return _known(format, writable(), "written")(network)


def _known(name: object, known: dict[str, _Read], done: str) -> _Read:
    """Return what a format's name stands for. The error for another name lists the known ones."""
    if not is_name(name, known):
        raise NetworkError(f"no format {str(name)[:40]!r} is {done}; known: {', '.join(known)}")
    return known[name]


def format_of_path(path: Path) -> str:
    """Return the name of the format that a file's suffix stands for.

    Raises:
        NetworkError: a suffix that stands for none.
    """
    suffixes = {suffix: name for name, format_ in FORMATS.items() for suffix in format_.suffixes}
    if path.suffix.lower() not in suffixes:
        known = ", ".join(f"{suffix} {name}" for suffix, name in suffixes.items())
        raise NetworkError(
            f"{path}: no format has the suffix {path.suffix!r}. Known: {known}; or state the format, one of "
            f"{', '.join(writable())}"
        )
    return suffixes[path.suffix.lower()]


def losses(network: Network, format: str) -> list[str]:
    """Return what a format does not hold of a network, a sentence each."""
    format_, lost = FORMATS[format], list[str]()
    if not format_.holds_wires and len(np.unique(network.comparators)) < network.n:
        n = argument("n", network.n)
        lost.append(f"{format} has no number of wires, and some are in no comparator: read it with {n}")
    relayered = Network.from_comparators(network.n, network.comparators)
    if not format_.holds_layers and relayered != network:
        lost.append(
            f"{format} has no layers: read back, each comparator comes as early as it can "
            f"(depth {relayered.depth}, here {network.depth})"
        )
    return lost


def save(content: bytes, path: Path) -> None:
    """Write a network file, or a picture of a network, whole or not at all, in the place of an old file.

    A link is followed. A device or a pipe is written to as it is.

    Raises:
        NetworkError: a file that cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # as it is given: the real path of a pipe in /proc is no name of a file
            return
        place = Path(os.path.realpath(path))
        if not place.parent.is_dir():
            raise NotADirectoryError(f"{place.parent} is no folder: make it first")
        write_whole(place, content)
    except (OSError, ValueError) as error:
        # Not the error's own file: a temporary file beside the path, whose name tells nothing.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise NetworkError(f"cannot write {path}: {reason}") from None
