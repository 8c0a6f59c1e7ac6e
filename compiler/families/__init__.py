"""Families: functions from a number of wires to a network, and networks that are known.

The order of the files: lists (published networks, and smaller ones), best (what is merged from them),
classic (constructions by formula), top_k (constructions for the k largest values), table (FAMILIES),
bounds (of size and depth).
"""

from nsc.compiler.families.best import Comparator, best, merge, shallowest
from nsc.compiler.families.bounds import least_depth, least_size, stated_depth, stated_size
from nsc.compiler.families.classic import bitonic, merge_exchange, odd_even
from nsc.compiler.families.lists import (
    KINDS,
    LIST_DATE,
    Found,
    found,
    is_known_name,
    known,
    known_name,
    known_network,
    known_networks,
    published,
    records,
    selected,
)
from nsc.compiler.families.table import FAMILIES, QUADRATIC, family_network, summary_of
from nsc.compiler.families.top_k import BLOCK_MERGES, MERGES, MOST_CUT, cut_and_merged

__all__ = [
    "BLOCK_MERGES",
    "FAMILIES",
    "KINDS",
    "LIST_DATE",
    "MERGES",
    "MOST_CUT",
    "QUADRATIC",
    "Comparator",
    "Found",
    "best",
    "bitonic",
    "cut_and_merged",
    "family_network",
    "found",
    "is_known_name",
    "known",
    "known_name",
    "known_network",
    "known_networks",
    "least_depth",
    "least_size",
    "merge",
    "merge_exchange",
    "odd_even",
    "published",
    "records",
    "selected",
    "shallowest",
    "stated_depth",
    "stated_size",
    "summary_of",
]
