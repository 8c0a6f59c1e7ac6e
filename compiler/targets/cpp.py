"""The C++ target: a schedule to the text of a kernel for processors.

A call takes its samples in groups whose weights fit SCRATCH_BYTES. A group goes through the keys pass, the
routing pass and, for gradients, the reverse keys pass. Each pass runs in parallel: the keys over samples, the
routing over samples × pieces of their columns. So a small batch uses all threads on columns of P, and a large
one on samples, by the same rule.
"""

from __future__ import annotations

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import CONE_COLUMNS, Schedule
from nsc.compiler.targets.records import Constant, CppKernel, Header, Tuning
from nsc.compiler.targets.tables import shared_values
from nsc.contract.interface import Status
from nsc.contract.launch import MOST_CHUNKS
from nsc.templates import fill

# Mixes that a piece of columns should have at least: a few microseconds, far more than its sums take.
CHUNK_MIXES = 4096
# Aim for the memory of the weights, and their gradients, of a group of samples.
SCRATCH_BYTES = 32 << 20


def lower(schedule: Schedule, relaxation: Relaxation) -> Schedule:
    """Return the schedule itself: a processor runs it as it stands."""
    return schedule


def launch(schedule: Schedule) -> None:
    """Return None: a call of a C++ kernel has no launch parameters."""
    return


def render(
    header: Header, facts: str, schedule: Schedule, relaxation: Relaxation, reals: tuple[str, ...]
) -> str:
    """Return the C++ source of a kernel; the same arguments, the same text.

    Args:
        header: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        schedule: what is run.
        relaxation: how comparators are softened.
        reals: names of arithmetic types, keys of REALS.
    """
    values = shared_values(header, facts, schedule, relaxation, reals, "cpp/{}.cpp")
    statuses = tuple(Constant(status.name.lower(), status.value) for status in Status)
    tuning = Tuning(MOST_CHUNKS, CHUNK_MIXES, SCRATCH_BYTES, CONE_COLUMNS)
    return fill("cpp/kernel.cpp.j2", CppKernel(**values, statuses=statuses, tuning=tuning))  # type: ignore[arg-type]
