"""Formats: how a network is read from a file and written to one, a file per format and one table."""

from nsc.compiler.formats.nsc_json import LONGEST_PLAIN, NSC_FORMAT, write_network
from nsc.compiler.formats.table import FORMATS, Format, parse_network, read_network

__all__ = [
    "FORMATS",
    "LONGEST_PLAIN",
    "NSC_FORMAT",
    "Format",
    "parse_network",
    "read_network",
    "write_network",
]
