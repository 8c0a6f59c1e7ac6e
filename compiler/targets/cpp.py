"""The C++ target: a schedule to the text of a kernel for processors.

A call goes through the keys pass, the routing pass and, for gradients, the reverse keys pass. Many samples
are shared out among threads: a thread takes a sample through all passes. Few samples go through one pass
after another, in groups whose weights fit SCRATCH_BYTES. The keys are then shared out by samples, the routing
by pieces of their columns.

P of a narrow network goes through all passes a few samples at a time, each in a lane of its own.
"""

from __future__ import annotations

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import Schedule, butterflies, butterflies_of, in_butterflies
from nsc.compiler.targets.records import Constant, CppKernel, Header, Tuning
from nsc.compiler.targets.tables import braced, shared_values, wrapped
from nsc.contract.interface import Status
from nsc.contract.launch import MOST_CHUNKS
from nsc.templates import fill

# Mixes that a piece of columns should have at least: a few microseconds, far more than its sums take.
CHUNK_MIXES = 4096
# Aim for the memory of the weights, and their gradients, of a group of samples.
SCRATCH_BYTES = 32 << 20
# Wires of the widest network whose P is routed with a sample in each lane, which a small batch does not fill.
NARROW = 32
# Bytes of a row of a group of blocks: two cache lines, so that two blocks of the widest registers share a
# butterfly's weights and the sums over their lanes, and four blocks of registers half as wide.
GROUP_BYTES = 128
# Differences of a group that the backward pass keeps at a time, unless an eighth of P in float32 is more:
# with these, two threads need less memory for P of 1,024 wires than P itself.
KEPT_BYTES = 700 << 10


def lower(schedule: Schedule, relaxation: Relaxation) -> Schedule:
    """Return the schedule with the comparators of codelets joined to butterflies."""
    return in_butterflies(schedule)


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
    return fill("cpp/kernel.cpp.j2", CppKernel(**values, statuses=statuses, tuning=_tuning(schedule)))  # type: ignore[arg-type]


def _tuning(schedule: Schedule) -> Tuning:
    joined = [tuple(butterflies_of(shape)) for shape in schedule.shapes]
    count_of = dict(zip(schedule.shapes, map(len, joined), strict=True))
    return Tuning(
        most_chunks=MOST_CHUNKS,
        chunk_mixes=CHUNK_MIXES,
        scratch_bytes=SCRATCH_BYTES,
        group_bytes=GROUP_BYTES,
        kept_bytes=KEPT_BYTES,
        butterflies=sum(count_of[codelet.shape] for codelet in schedule.codelets),
        # C has no empty arrays: the table ends with an entry that is not used.
        joined_lines=wrapped(
            [*(braced((it.pattern.name.lower(), braced(it.wires))) for each in joined for it in each), "{}"]
        ),
        narrow_lines=_narrow_lines(schedule),
    )


def _narrow_lines(schedule: Schedule) -> tuple[str, ...]:
    """Return the butterflies of a narrow network that is sorted, as lines of a table."""
    if schedule.network.n > NARROW or schedule.outputs is not None:
        return ()
    found = butterflies(schedule.codelets)
    if not found:
        return ()
    return wrapped(braced((it.pattern.name.lower(), braced(it.wires), braced(it.slots))) for it in found)
