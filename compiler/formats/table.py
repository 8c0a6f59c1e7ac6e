"""The one table of formats, and reading by it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nsc.compiler.formats.layers import parse_layers
from nsc.compiler.formats.nsc_json import parse_nsc
from nsc.compiler.formats.sorterhunter import parse_sorterhunter
from nsc.compiler.network import Network
from nsc.errors import NetworkError


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


FORMATS: dict[str, Format] = {
    "SorterHunter JSON": Format(
        example='{"N":4,"nw":[[0,2],[1,3],[0,1],[2,3],[1,2]]}',
        recognises=lambda text: text.lstrip().startswith("{") and '"nw"' in text,
        parse=parse_sorterhunter,
    ),
    "nsc JSON": Format(
        example='{"format":"nsc-network/1","n":4,"layers":[[[0,2],[1,3]],[[0,1],[2,3]],[[1,2]]]}',
        recognises=lambda text: text.lstrip().startswith("{"),
        parse=parse_nsc,
    ),
    "one layer per line": Format(
        example="[(0,2),(1,3)] / [(0,1),(2,3)] / [(1,2)]",
        recognises=lambda text: re.match(r"\s*\[\s*(\(|\])", text) is not None,
        parse=parse_layers,
    ),
}
