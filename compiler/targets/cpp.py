"""The C++ target: a schedule to the text of a kernel for processors."""

from __future__ import annotations

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import CONE_COLUMNS, Schedule
from nsc.compiler.targets.records import Constant, CppKernel, Header, Tuning
from nsc.compiler.targets.tables import shared_values
from nsc.contract.interface import Status
from nsc.contract.launch import MOST_CHUNKS
from nsc.templates import fill

# Mixes that a piece should have at least: a few microseconds, far above what its sums take.
CHUNK_MIXES = 4096
# Aim for the memory of weights and their gradients that are held at a time.
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
