"""The one table of formats, and reading and writing by it."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from nsc.arguments import is_name
from nsc.compiler.formats import (
    code,
    colons,
    csv_rows,
    dot,
    drawings,
    graphml,
    json_lists,
    knuth,
    layers,
    nsc_json,
    pairs,
    sorterhunter,
    sorterhunter_log,
    table,
)
from nsc.compiler.formats.listing import Format, settle
from nsc.compiler.formats.recognising import recognised, without_leading_comments
from nsc.compiler.network import Network
from nsc.compiler.progress import SILENT, Progress
from nsc.contract.manifest import NETWORK
from nsc.errors import NetworkError
from nsc.wording import argument

# In the order in which a text's format is looked for.
FORMATS: dict[str, Format] = {
    "nsc": nsc_json.FORMAT,
    "sorterhunter": sorterhunter.FORMAT,
    "sorterhunter-log": sorterhunter_log.FORMAT,
    "layers": layers.FORMAT,
    "json": json_lists.FORMAT,
    "knuth": knuth.FORMAT,
    "cn": colons.FORMAT,
    "table": table.FORMAT,
    "pairs": pairs.FORMAT,
    "csv": csv_rows.FORMAT,
    "dot": dot.FORMAT,
    "graphml": graphml.FORMAT,
    "code": code.FORMAT,
    "svg": drawings.SVG,
    "tikz": drawings.TIKZ,
    "ascii": drawings.ASCII,
}

# Half a million comparators take 6 MB in the plainest formats; nothing that compiles needs more.
MOST_BYTES = 1 << 28


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
    progress: Progress = SILENT,
) -> Network:
    """Read a network from a file.

    Args:
        path: the file, in UTF-8.
        n: number of wires, for formats that do not say it; must agree with those that do.
        format: a name in FORMATS; None: found from the content.
        index_base: what the file counts wires from, 0 or 1, where its format does not define it.
        progress: is told of the comparators read.

    Raises:
        NetworkError: the file cannot be read, has no known format, or describes no network or
            possibly several (the package's docstring lists the cases).
    """
    try:
        with path.open("rb") as stream:
            return read_stream(stream, str(path), n, format=format, index_base=index_base, progress=progress)
    except IsADirectoryError:
        network = path / NETWORK
        package = f"; the network of this package is {network}" if network.is_file() else ""
        raise NetworkError(f"cannot read the network file {path}: it is a folder{package}") from None
    except (OSError, ValueError) as error:
        if isinstance(error, NetworkError):
            raise
        raise NetworkError(f"cannot read the network file {path}: {error}") from None


def read_stream(
    stream: BinaryIO,
    name: str,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
    progress: Progress = SILENT,
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
        return parse_network(text, n, format=format, index_base=index_base, progress=progress)
    except NetworkError as error:
        raise NetworkError(f"{name}: {error}") from None


def parse_network(
    text: str,
    n: int | None = None,
    *,
    format: str | None = None,
    index_base: int | None = None,
    progress: Progress = SILENT,
) -> Network:
    """Return the network that a text describes; arguments and errors as of `read_network`.

    >>> parse_network("[(0,2),(1,3)]\\n[(0,1),(2,3)]\\n[(1,2)]").size
    5
    >>> parse_network("1:3,2:4\\n1:2,3:4\\n2:3", format="cn", index_base=1).depth
    3
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").rstrip()
    text = without_leading_comments(text)
    names = recognised(text, FORMATS) if format is None else [format]
    networks: dict[str, Network] = {}
    faults: list[str] = []
    for name in names:
        parse = _known(name, readable()).parse
        if parse is None:
            raise NetworkError(f"{name} is written only; formats that are read: {', '.join(readable())}")
        try:
            networks[name] = settle(parse(text, progress), n, index_base)
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
    """Return the format of a name. The error for another name lists those that are of use here."""
    if not is_name(name, FORMATS):
        raise NetworkError(f"no format {str(name)[:40]!r}; known: {', '.join(usable)}")
    return FORMATS[name]
