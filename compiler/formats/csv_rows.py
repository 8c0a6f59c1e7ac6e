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
from nsc.wording import count

COLUMNS = ("layer", "lo", "hi")
_CELL = re.compile(r"\s*([0-9]{1,9})\s*")
_ROW = re.compile(",".join([_CELL.pattern] * 3))


def _recognises(text: str) -> bool:
    header = text.lstrip()[:200].partition("\n")[0]
    return set(COLUMNS) <= {word.strip(' "') for word in header.split(",")}


def _parse(text: str) -> Listing:
    reader = csv.reader(io.StringIO(text.lstrip()), strict=True)
    numbers, row_of = array("q"), _ROW.fullmatch
    try:
        header = [word.strip() for word in next(reader, [])]
        if any(header.count(column) != 1 for column in COLUMNS):
            raise NetworkError(f"the header must name layer, lo and hi once each, found {quoted(header[:9])}")
        layer, lo, hi = map(header.index, COLUMNS)
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise NetworkError(
                    f"line {reader.line_num} has {count(len(row), 'value')}, the header {len(header)}"
                )
            match = row_of(f"{row[layer]},{row[lo]},{row[hi]}")
            if match is None:
                other = next(row[place] for place in (layer, lo, hi) if not _CELL.fullmatch(row[place]))
                raise NetworkError(
                    f"line {reader.line_num}: layer, lo and hi are whole numbers, found {quoted(other[:60])}"
                )
            numbers.extend(map(int, match.groups()))
    except csv.Error as error:
        raise NetworkError(f"line {reader.line_num}: {error}") from None
    return Listing.of_rows(np.frombuffer(numbers, np.int64).reshape(-1, 3))


def _write(network: Network) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for index, layer in enumerate(network.layers()):
        writer.writerows((index, lo, hi) for lo, hi in layer.tolist())
    return out.getvalue()


FORMAT = Format(
    suffixes=(".csv",),
    holds_layers=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
