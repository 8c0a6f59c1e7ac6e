"""CSV with the columns layer, lo and hi; others, such as pandas' index, are passed over.

Rows may stand in any order: the layers come in the order of their numbers, counted from anything.
"""

from __future__ import annotations

import csv
import io
import re
from array import array

import numpy as np

from nsc.compiler.formats.listing import Format, Listing, quoted
from nsc.compiler.network import Network
from nsc.errors import NetworkError

COLUMNS = ["layer", "lo", "hi"]
_ROW = re.compile(",".join([r"\s*([0-9]{1,9})\s*"] * 3))


def _recognises(text: str) -> bool:
    return {*COLUMNS} <= {word.strip(' "') for word in text.lstrip()[:200].partition("\n")[0].split(",")}


def _parse(text: str) -> Listing:
    reader = csv.reader(io.StringIO(text.lstrip()), strict=True)
    numbers = array("q")
    try:
        header = [word.strip() for word in next(reader, [])]
        if sorted(word for word in header if word in COLUMNS) != sorted(COLUMNS):
            raise NetworkError(f"the header must name layer, lo and hi once each, found {quoted(header[:9])}")
        layer, lo, hi = map(header.index, COLUMNS)
        for row in filter(None, reader):
            match = _ROW.fullmatch(f"{row[layer]},{row[lo]},{row[hi]}") if len(row) == len(header) else None
            if match is None:
                raise NetworkError(
                    f"line {reader.line_num}: expected as many values as the header has, layer, lo and hi "
                    f"whole numbers, found {quoted(row[:9])}"
                )
            numbers.extend(map(int, match.groups()))
    except csv.Error as error:
        raise NetworkError(f"line {reader.line_num}: {error}") from None
    return Listing.of_rows(np.frombuffer(numbers, np.int64).reshape(-1, 3))


def _write(network: Network) -> str:
    rows = [
        f"{index},{lo},{hi}\n" for index, layer in enumerate(network.layers()) for lo, hi in layer.tolist()
    ]
    return "".join([",".join(COLUMNS) + "\n", *rows])


FORMAT = Format(suffixes=(".csv",), holds_layers=True, recognises=_recognises, parse=_parse, write=_write)
