"""Files: the one table of formats, and reading and writing by it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nsc.arguments import is_name
from nsc.atomic import write_whole
from nsc.compiler.diagram import diagram_text, svg, tikz
from nsc.compiler.formats import csv_rows, graphs, json_lists, layers, nsc_json, plain
from nsc.compiler.formats.listing import Format, settle
from nsc.compiler.network import Network
from nsc.contract.manifest import NETWORK
from nsc.errors import NetworkError
from nsc.wording import argument

# In the order in which a text's format is looked for.
FORMATS: dict[str, Format] = {
    "nsc": nsc_json.FORMAT,
    "sorterhunter": json_lists.SORTERHUNTER,
    "sorterhunter-log": json_lists.SORTERHUNTER_LOG,
    "layers": layers.FORMAT,
    "json": json_lists.FORMAT,
    "knuth": plain.KNUTH,
    "cn": plain.COLONS,
    "table": plain.TABLE,
    "pairs": plain.PAIRS,
    "csv": csv_rows.FORMAT,
    "dot": graphs.DOT,
    "graphml": graphs.GRAPHML,
    "code": plain.CODE,
    "svg": Format(suffixes=(".svg",), write=svg),
    "tikz": Format(suffixes=(".tex", ".tikz"), write=tikz),
    "ascii": Format(suffixes=(".ascii",), write=diagram_text),
}

# Half a million comparators take 6 MB in the plainest formats; nothing that compiles needs more.
MOST_BYTES = 1 << 28
# A comment before a network.
_COMMENT = re.compile(r"\s*(?:#[^\n]*|//[^\n]*|/\*.*?\*/)", re.DOTALL)
# Characters of a text that a message shows.
_BEGINNING = 40


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
) -> Network:
    """Read a network from a file.

    Args:
        path: the file, in UTF-8.
        n: number of wires, for formats that do not say it; must agree with those that do.
        format: a name in FORMATS; None: found from the content.
        index_base: what the file counts wires from, 0 or 1, where its format does not define it.

    Raises:
        NetworkError: the file cannot be read, has no known format, or describes no network or
            possibly several (the package's docstring lists the cases).
    """
    try:
        stream = path.open("rb")
    except IsADirectoryError:
        network = path / NETWORK
        package = f"; the network of this package is {network}" if network.is_file() else ""
        raise NetworkError(f"cannot read the network file {path}: it is a folder{package}") from None
    except (OSError, ValueError) as error:
        raise NetworkError(f"cannot read the network file {path}: {error}") from None
    with stream:
        return read_stream(stream, str(path), n, format=format, index_base=index_base)


def read_stream(
    stream: BinaryIO,
    name: str,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
) -> Network:
    """Read a network from an open file, as `read_network`; `name` is what messages call it."""
    content = bytearray()
    try:
        while len(content) <= MOST_BYTES and (chunk := stream.read(1 << 20)):
            content += chunk
    except (OSError, ValueError) as error:  # a folder, or a stream that is not for reading
        raise NetworkError(f"cannot read {name}: {error}") from None
    if len(content) > MOST_BYTES:
        raise NetworkError(f"{name}: larger than {MOST_BYTES >> 20} MB, no network is read from that much")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NetworkError(f"cannot read the network file {name}: {error}") from None
    del content
    try:
        return parse_network(text, n, format=format, index_base=index_base)
    except NetworkError as error:
        raise NetworkError(f"{name}: {error}") from None


def parse_network(
    text: str,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
) -> Network:
    """Return the network that a text describes; arguments and errors are as in `read_network`.

    >>> parse_network("[(0,2),(1,3)]\\n[(0,1),(2,3)]\\n[(1,2)]").size
    5
    >>> parse_network("1:3,2:4\\n1:2,3:4\\n2:3", format="cn", index_base=1).depth
    3
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").rstrip()
    text = _without_leading_comments(text)
    names = _recognised(text) if format is None else [format]
    networks: dict[str, Network] = {}
    faults: list[str] = []
    for name in names:
        parse = _known(name, readable()).parse
        if parse is None:
            raise NetworkError(f"{name} is written only; formats that are read: {', '.join(readable())}")
        try:
            networks[name] = settle(parse(text), n, index_base)
        except NetworkError as error:
            faults.append(f"in format {name!r}: {error}")
    if not networks:
        raise NetworkError("; ".join(faults))
    first = next(iter(networks.values()))
    if any(network != first for network in networks.values()):
        read = " and ".join(f"as {name} ({network.counts})" for name, network in networks.items())
        raise NetworkError(f"can be read {read}: state {argument('format')}")
    return first


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
    if names:
        return names
    raise NetworkError(
        f"not a network in a known format, it begins {text[:_BEGINNING]!r}: write comparators as "
        f"(0,2),(1,3), or state {argument('format')}, one of {', '.join(readable())}, which says where it "
        "differs"
    )


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
