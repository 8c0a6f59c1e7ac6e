"""Schedule: a network cut into the pieces that kernels run.

The order of the files: codelets (the pieces), cutting (into them, and which of them columns of P reach), ir
(the Schedule and its figures).

A layer at a time loads every wire for every comparator. A codelet is a piece of at most 16 wires: 2.1
comparators per loaded wire on bitonic 1024, 3.9 on odd-even, 0.5 for a layer at a time. One linear pass
cuts any network, from either end, and the cheaper cut is kept. More than 2^20 comparators are cut from the
front alone. Where only some ranks are selected, a comparator may be needed for one of its wires: then it is
half a comparator, a minimum or a maximum.
"""

from nsc.compiler.schedule.codelets import LONGEST, WIDEST, Codelet, Needed, PlacedComparator, Shape
from nsc.compiler.schedule.cutting import CONE_COLUMNS, Work, cut, reaching_blocks, work_on_permutation
from nsc.compiler.schedule.ir import SLOT_ALIGNMENT, TERMS, Explanation, Schedule, explain, schedule, slots_of

__all__ = [
    "CONE_COLUMNS",
    "LONGEST",
    "SLOT_ALIGNMENT",
    "TERMS",
    "WIDEST",
    "Codelet",
    "Explanation",
    "Needed",
    "PlacedComparator",
    "Schedule",
    "Shape",
    "Work",
    "cut",
    "explain",
    "reaching_blocks",
    "schedule",
    "slots_of",
    "work_on_permutation",
]
