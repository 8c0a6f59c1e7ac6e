"""Schedule: a network cut into the pieces that kernels run.

The order of the files: codelets (the pieces), cones (which of them a column of P reaches), cutting, ir (the
Schedule), butterflies (its comparators joined), levels (a Schedule for threads that run at the same
time), explain (its figures).
"""

from nsc.compiler.schedule.butterflies import (
    Butterfly,
    Pattern,
    butterflies,
    butterflies_of,
    in_butterflies,
)
from nsc.compiler.schedule.codelets import LONGEST, WIDEST, Codelet, Needed, PlacedComparator, Shape
from nsc.compiler.schedule.cones import Cone, light_cones
from nsc.compiler.schedule.cutting import CONE_COLUMNS, STRAIGHT_LINE, Work, work_on_permutation
from nsc.compiler.schedule.explain import TERMS, Explanation, explain
from nsc.compiler.schedule.ir import SLOT_ALIGNMENT, Schedule, schedule, slots_of
from nsc.compiler.schedule.levels import TILE_COLUMNS, WIRES_PER_WARP, Levels, in_levels, levels

__all__ = [
    "CONE_COLUMNS",
    "LONGEST",
    "SLOT_ALIGNMENT",
    "STRAIGHT_LINE",
    "TERMS",
    "TILE_COLUMNS",
    "WIDEST",
    "WIRES_PER_WARP",
    "Butterfly",
    "Codelet",
    "Cone",
    "Explanation",
    "Levels",
    "Needed",
    "Pattern",
    "PlacedComparator",
    "Schedule",
    "Shape",
    "Work",
    "butterflies",
    "butterflies_of",
    "explain",
    "in_butterflies",
    "in_levels",
    "levels",
    "light_cones",
    "schedule",
    "slots_of",
    "work_on_permutation",
]
