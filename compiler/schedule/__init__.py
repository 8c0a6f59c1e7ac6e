"""Schedule: a network cut into the pieces that kernels run.

The order of the files: codelets (the pieces), cones (which of them a column of P reaches), cutting, ir (the
Schedule), explain (its figures).
"""

from nsc.compiler.schedule.codelets import LONGEST, WIDEST, Codelet, Needed, PlacedComparator, Shape
from nsc.compiler.schedule.cones import Cone, light_cones
from nsc.compiler.schedule.cutting import CONE_COLUMNS, STRAIGHT_LINE, Work, work_on_permutation
from nsc.compiler.schedule.explain import TERMS, Explanation, explain
from nsc.compiler.schedule.ir import SLOT_ALIGNMENT, Schedule, schedule, slots_of

__all__ = [
    "CONE_COLUMNS",
    "LONGEST",
    "SLOT_ALIGNMENT",
    "STRAIGHT_LINE",
    "TERMS",
    "WIDEST",
    "Codelet",
    "Cone",
    "Explanation",
    "Needed",
    "PlacedComparator",
    "Schedule",
    "Shape",
    "Work",
    "explain",
    "light_cones",
    "schedule",
    "slots_of",
    "work_on_permutation",
]
