"""Optimize: smaller networks with the same property.

The order of the files: redundant (a pass that needs reachable sets), records (what is known), pipeline
(optimize), candidates (networks for some ranks alone).
"""

from nsc.compiler.optimize.candidates import (
    MOST_OPTIMIZED,
    TopKCandidate,
    smallest_constructions,
    smallest_first,
    top_k_candidates,
)
from nsc.compiler.optimize.pipeline import Counts, Optimized, counts, optimize
from nsc.compiler.optimize.records import MOST_RECORDED, Records, records_of
from nsc.compiler.optimize.redundant import remove_redundant

__all__ = [
    "MOST_OPTIMIZED",
    "MOST_RECORDED",
    "Counts",
    "Optimized",
    "Records",
    "TopKCandidate",
    "counts",
    "optimize",
    "records_of",
    "remove_redundant",
    "smallest_constructions",
    "smallest_first",
    "top_k_candidates",
]
