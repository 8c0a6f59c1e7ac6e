"""Files: the one table of formats, and reading and writing by it."""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np

from nsc.arguments import is_name
from nsc.atomic import write_whole
from nsc.compiler.diagram import svg, tikz
from nsc.compiler.formats import csv_rows, drawings, graphs, json_lists, lists, nsc_json, table
from nsc.compiler.formats.listing import MOST_NAMED, Format, Listing, quoted, settle
from nsc.compiler.network import Network
from nsc.contract.manifest import NETWORK
from nsc.errors import NetworkError
from nsc.wording import argument, count

# Networks by their names, and an error in the place of a network that cannot be read.
Networks: TypeAlias = "dict[str, Network | NetworkError]"

# In the order in which a text's format is looked for.
FORMATS: dict[str, Format] = {
    "nsc": nsc_json.FORMAT,
    "sorterhunter": json_lists.SORTERHUNTER,
    "csv": csv_rows.FORMAT,
    "dot": graphs.DOT,
    "graphml": graphs.GRAPHML,
    "ascii": drawings.FORMAT,
    "table": table.FORMAT,
    "list": lists.FORMAT,
    "cn": lists.COLONS,
    "knuth": lists.KNUTH,
    "code": lists.CODE,
    "svg": Format(suffixes=(".svg",), write=svg),
    "tikz": Format(suffixes=(".tex", ".tikz"), write=tikz),
}

# Half a million comparators take 6 MB in the plainest formats; nothing that compiles needs more.
MOST_BYTES = 1 << 28
# A comment before a network.
_COMMENT = re.compile(r"\s*(?:#[^\n]*|//[^\n]*|/\*.*?\*/)", re.DOTALL)
# Bytes that no text has.
_NO_TEXT = bytes({*range(32)} - {*b"\t\n\r\f"})


def readable() -> list[str]:
    """Return the names of the formats that are read."""
    return [name for name, format_ in FORMATS.items() if format_.parse is not None]


def writable() -> list[str]:
    """Return the names of the formats that are written."""
    return [name for name, format_ in FORMATS.items() if format_.write is not None]


def read_network(
    path: Path,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
    name: str | None = None,
) -> Network:
    """Read a network from a file.

    Args:
        path: the file, in UTF-8 or Latin-1.
        n: number of wires, for formats that do not say it; must agree with those that do. Of several networks
            it chooses the one that has so many wires.
        format: a name in FORMATS; None: found from the content.
        index_base: what the file counts wires from, 0 or 1, where its format does not define it.
        name: of the network, in a file that has several.

    Raises:
        NetworkError: the file cannot be read, has no known format, or describes no network or
            possibly several (the package's docstring lists the cases).
    """
    with _opened(path) as stream:
        return read_stream(stream, str(path), n, format=format, index_base=index_base, name=name)


def read_stream(
    stream: BinaryIO,
    file: str,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
    name: str | None = None,
) -> Network:
    """Read a network from an open file, as `read_network`; `file` is what messages call it."""
    text = _text(stream, file)
    try:
        return parse_network(text, n, format=format, index_base=index_base, name=name)
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from None


def read_networks(
    file: str, stream: BinaryIO | None = None, *, format: str | None = None, index_base: int | None = None
) -> Networks:
    """Read all networks of a file, or of an open file that messages call so.

    Returns:
        The networks by their names, and an error in the place of a network that cannot be read.
    """
    with _opened(Path(file)) if stream is None else nullcontext(stream) as opened:
        text = _text(opened, file)
    try:
        readings, _ = _readings(text, format)
        if len(readings) != 1:
            return {"": parse_network(text, format=format, index_base=index_base)}
        (listings,) = readings.values()
        return _settled(listings, index_base)
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from None


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except IsADirectoryError:
        network = path / NETWORK
        package = f"; the network of this package is {network}" if network.is_file() else ""
        raise NetworkError(f"cannot read the network file {path}: it is a folder{package}") from None
    except (OSError, ValueError) as error:
        raise NetworkError(f"cannot read the network file {path}: {error}") from None


def _text(stream: BinaryIO, file: str) -> str:
    content = bytearray()
    try:
        while len(content) <= MOST_BYTES and (chunk := stream.read(1 << 20)):
            content += chunk
    except (OSError, ValueError) as error:  # a folder, or a stream that is not for reading
        raise NetworkError(f"cannot read {file}: {error}") from None
    if len(content) > MOST_BYTES:
        raise NetworkError(f"{file}: larger than {MOST_BYTES >> 20} MB, no network is read from that much")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(content.translate(None, _NO_TEXT)) < len(content):
            raise NetworkError(f"cannot read the network file {file}: {error}") from None
        return content.decode("latin-1")


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
    networks: dict[str, Network] = {}
    readings, faults = _readings(text, format)
    for format_, listings in readings.items():
        try:
            networks[format_] = _chosen(listings, n, index_base, name)
        except NetworkError as error:
            faults.append(
                f"in format {format_!r}: {error}" if len(readings) + len(faults) > 1 else str(error)
            )
    if not networks:
        raise NetworkError("; ".join(faults))
    first = next(iter(networks.values()))
    if any(network != first for network in networks.values()):
        read = " and ".join(f"as {format_} ({network.counts})" for format_, network in networks.items())
        raise NetworkError(f"can be read {read}: state {argument('format')}")
    return first


def _readings(text: str, format: str | None) -> tuple[dict[str, list[Listing]], list[str]]:
    """Return what a text says in each format that it looks like, or in the stated one, and the refusals."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").rstrip()
    text = _without_leading_comments(text)
    readings: dict[str, list[Listing]] = {}
    faults: list[str] = []
    names = _recognised(text) if format is None else [format]
    for name in names:
        parse = _known(name, readable()).parse
        if parse is None:
            raise NetworkError(f"{name} is written only; formats that are read: {', '.join(readable())}")
        try:
            listing = parse(text)
            readings[name] = listing if isinstance(listing, list) else [listing]
        except NetworkError as error:
            faults.append(f"in format {name!r}: {error}" if len(names) > 1 else str(error))
            if names == ["list"] and format is None:
                known = ", ".join(readable())
                faults[0] += f"; or state {argument('format')}, one of {known}, which says where it differs"
    return readings, faults


def _settled(listings: list[Listing], index_base: int | None) -> Networks:
    """Return the networks of a text by their names, an error for one that cannot be read.

    Program text has other calls and lists of numbers too. A way of writing counts if a network of more than
    one comparator is written so, or what could be a part of one. Lists whose labels differ by numbers alone
    count if one of them is a network.
    """
    networks: Networks = {}
    for listing in listings:
        try:
            networks[listing.name] = settle(listing, None, index_base)
        except NetworkError as error:
            networks[listing.name] = error
    read = [listing for listing in listings if isinstance(networks[listing.name], Network)]
    shapes = {listing.shape for listing in read if len(listing.comparators) > 1}
    for listing in listings:
        if listing.fault and len(listing.comparators) > 2 and np.diff(listing.comparators).all():
            shapes.add(listing.shape)
    shapes = shapes or {listing.shape for listing in read or listings}
    labels = {listing.label for listing in read}
    uses = Counter(listing.label for listing in listings)
    return {
        listing.name: networks[listing.name]
        for listing in listings
        if listing.shape in shapes and (listing.fault or listing.label in labels or uses[listing.label] == 1)
    }


def _chosen(listings: list[Listing], n: int | None, index_base: int | None, name: str | None) -> Network:
    """Return the network that the user chooses, or the only one.

    Raises:
        NetworkError: none, or several.
    """
    if len(listings) == 1 and (name is None or is_name(name, [listings[0].name])):
        return settle(listings[0], n, index_base)
    found = _settled(listings, index_base)
    networks = {key: network for key, network in found.items() if isinstance(network, Network)}
    if not networks:
        largest = max(listings, key=lambda listing: len(listing.comparators))
        raise NetworkError(largest.fault or f"{largest.name}: {found[largest.name]}")
    names = [*found] if len(found) == 1 else []
    if name is not None:
        names = [name] if is_name(name, found) else []
    if n is not None and name is None and len(found) > 1:
        names = [key for key, network in networks.items() if network.n == n]
    if len(names) == 1 and names[0] in found:
        (listing,) = (listing for listing in listings if listing.name == names[0])
        return settle(listing, n, index_base)
    shown = [
        f"{key} ({count(network.n, 'wire')}, {count(network.size, 'comparator')})"
        if isinstance(network, Network)
        else f"{key} (cannot be read)"
        for key, network in [*found.items()][:MOST_NAMED]
    ]
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    asked = "" if name is None else f"no network {quoted(str(name)[:60])}: "
    raise NetworkError(
        f"{asked}{count(len(found), 'network')} in one file, {', '.join(shown)}{more}: choose one by "
        f"{argument('n')}, if no other has as many wires, or by its name, as nsc.network, nsc verify and nsc "
        "convert take it"
    )


def write_network(network: Network, format: str = "nsc") -> str:
    """Return the text of a network in a format; the same network, the same text.

    Raises:
        NetworkError: no such format, or one that is read only.
    """
    write = _known(format, writable()).write
    if write is None:
        raise NetworkError(f"{format} is read only; formats that are written: {', '.join(writable())}")
    return write(network)


def _known(name: object, usable: list[str]) -> Format:
    """Return the format of a name. The error for another name lists the usable names."""
    if not is_name(name, FORMATS):
        raise NetworkError(f"no format {str(name)[:40]!r}; known: {', '.join(usable)}")
    return FORMATS[name]


def _without_leading_comments(text: str) -> str:
    """Return a text without the comments before its network; lines keep their numbers.

    >>> _without_leading_comments("# mine\\n0:1")
    '\\n0:1'
    """
    place = 0
    while (comment := _COMMENT.match(text, place)) is not None:
        place = comment.end()
    return "\n" * text.count("\n", 0, place) + text[place:] if place else text


def _recognised(text: str) -> list[str]:
    """Return the names of the formats that a text looks like, in the table's order, at least one."""
    names = [name for name, format_ in FORMATS.items() if format_.recognises(text)]
    unsure = names in ([], ["table"]) or (names == ["nsc"] and "nsc-network" not in text)
    return [*names, "list"] if unsure else names


def format_of_path(path: Path) -> str:
    """Return the name of the format that a file's suffix stands for.

    Raises:
        NetworkError: a suffix that stands for none.
    """
    for name, format_ in FORMATS.items():
        if path.suffix.lower() in format_.suffixes:
            return name
    known = ", ".join(f"{'/'.join(f.suffixes)} {name}" for name, f in FORMATS.items() if f.suffixes)
    raise NetworkError(
        f"{path}: no format has the suffix {path.suffix!r}. Known: {known}; or state the "
        f"format, one of {', '.join(writable())}"
    )


def losses(network: Network, format: str) -> list[str]:
    """Return what a format does not hold of a network, a sentence each; none for a diagram."""
    format_ = FORMATS[format]
    lost: list[str] = []
    if format_.parse is None:
        return lost
    if not format_.holds_wires and len(np.unique(network.comparators)) < network.n:
        lost.append(
            f"{format} has no number of wires, and some are in no comparator: read it with "
            f"{argument('n', network.n)}"
        )
    relayered = Network.from_comparators(network.n, network.comparators)
    if not format_.holds_layers and relayered != network:
        lost.append(
            f"{format} has no layers: read back, each comparator comes as early as it can "
            f"(depth {relayered.depth}, here {network.depth})"
        )
    return lost


def save(content: bytes, path: Path) -> None:
    """Write a network file, or a picture of a network, whole or not at all; a file that is there is replaced.

    Args:
        content: of the file.
        path: the file; a link is followed, and a device or a pipe is written to as it is.

    Raises:
        NetworkError: a file that cannot be written.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a folder")
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
