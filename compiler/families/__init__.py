"""Families: functions from a number of wires to a network, and networks that are known.

The order of the files: best (public lists, and what is merged from them), classic (constructions by formula),
top_k (constructions for the k largest values), table (FAMILIES), bounds (of size and depth).
"""

from nsc.compiler.families.best import Comparator, best, known, merge, shallowest
from nsc.compiler.families.bounds import least_depth, least_size
from nsc.compiler.families.classic import bitonic, merge_exchange, odd_even
from nsc.compiler.families.table import FAMILIES, Family, Growth, family_network
from nsc.compiler.families.top_k import BLOCK_MERGES, MERGES, MOST_CUT, cut_sorters

__all__ = [
    "BLOCK_MERGES",
    "FAMILIES",
    "MERGES",
    "MOST_CUT",
    "Comparator",
    "Family",
    "Growth",
    "best",
    "bitonic",
    "cut_sorters",
    "family_network",
    "known",
    "least_depth",
    "least_size",
    "merge",
    "merge_exchange",
    "odd_even",
    "shallowest",
]
