"""Schedule: a network cut into the pieces that a kernel runs, and the figures that its speed depends on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nsc import library
from nsc.compiler.network import Network
from nsc.compiler.passes import live_halves
from nsc.compiler.schedule.codelets import Codelet, Needed, Shape, shapes_of
from nsc.compiler.schedule.cutting import CONE_COLUMNS, cut, work_on_permutation
from nsc.errors import LoweringError
from nsc.wording import count

# The weights of a codelet begin at a multiple of this many, the widest register's lanes, so that sums
# over lanes can be added to them a register at a time.
SLOT_ALIGNMENT = int(library.constant("slot_alignment", "relaxed/network.h"))

# A mix is two products and a sum on either wire; a float32 is loaded and stored.
FLOPS_PER_COMPARATOR = 6
BYTES_PER_LOAD = 8
# Meanings of the words in the figures of a schedule.
TERMS = {
    "P": "the relaxed permutation matrix: how much of each input leaves on each wire",
    "codelet": "a piece of the network on at most 16 wires, which are loaded once for all of its comparators",
    "shape": "codelets that differ in the numbers of their wires alone have one shape, and share a function",
    "comparators per wire loaded": "the more comparators a codelet runs on a wire that it loads, the less "
    "memory is read",
    "light cone": "the comparators that a column of P, or a block of columns, reaches from its own inputs; "
    "kernels skip the others",
}

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """The order in which a kernel runs a network's comparators, and how it runs them.

    Weights are stored in slots, codelet by codelet.

    Attributes:
        network: the network that is scheduled.
        codelets: its comparators cut into codelets, in running order.
        outputs: the selected wires, in the order of the results; None: all.

    Raises:
        LoweringError: codelets that do not run every comparator of the network once, in the order of the
            network on every wire, with the halves that the outputs need; or outputs that are not as above.
    """

    network: Network
    codelets: tuple[Codelet, ...]
    outputs: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        n, outputs = self.network.n, self.outputs
        if outputs is not None and (len(set(outputs)) < len(outputs) or not set(outputs) <= set(range(n))):
            raise LoweringError(f"outputs must be wires of 0 … {n - 1}, each once, got {outputs}")
        _check_comparators(self)

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The codelets' shapes, the most frequent first."""
        return shapes_of(self.codelets)

    @property
    def loads(self) -> int:
        """Number of wires that the codelets load together."""
        return sum(len(codelet.wires) for codelet in self.codelets)

    @property
    def halved(self) -> bool:
        """Whether any comparator is a half comparator."""
        return any(needed is not Needed.BOTH for shape in self.shapes for *_, needed in shape)

    @property
    def slots(self) -> int:
        """Number of weight slots."""
        return sum(map(slots_of, self.codelets))


def schedule(network: Network, outputs: tuple[int, ...] | None = None) -> Schedule:
    """Cut a network into codelets.

    Args:
        network: the network to run; for some outputs alone, without comparators that none of these
            depends on, as `restrict` leaves it.
        outputs: the wires to select, each once; None: all, in order.

    Raises:
        LoweringError: a comparator that no output depends on, or an output named twice.

    Cost: about 10 µs per comparator.
    """
    halves = None if outputs is None else live_halves(network, outputs)
    if halves is not None and not halves.any(axis=1).all():
        lo, hi = network.comparators[int(np.argmin(halves.any(axis=1)))].tolist()
        raise LoweringError(
            f"no output depends on comparator ({lo}, {hi}): restrict the network to outputs {outputs}"
        )
    return Schedule(network, cut(network, halves), outputs)


@dataclass(frozen=True)
class Explanation:
    """The figures of a schedule's routing pass.

    Attributes:
        comparators: size of the network.
        codelets: number of codelets.
        shapes: number of different shapes among them.
        loads: wires that the codelets load together.
        comparators_per_load: comparators per wire loaded; 0.5 is a layer at a time.
        widest: most wires of a codelet, the registers that are live in it.
        light_cone: share of the work on P that is left where each block of columns skips the codelets
            that it does not reach.
        flops_per_byte: arithmetic per byte between codelets and memory, forward, float32.
    """

    comparators: int
    codelets: int
    shapes: int
    loads: int
    comparators_per_load: float
    widest: int
    light_cone: float
    flops_per_byte: float


def explain(schedule: Schedule) -> Explanation:
    """Return the figures of a schedule. Cost: less than `schedule` takes."""
    size, loads = schedule.network.size, schedule.loads
    work = work_on_permutation(schedule.network.n, schedule.codelets)
    blocks = -(-schedule.network.n // CONE_COLUMNS)
    return Explanation(
        comparators=size,
        codelets=len(schedule.codelets),
        shapes=len(schedule.shapes),
        loads=loads,
        comparators_per_load=size / max(1, loads),
        widest=max((len(c.wires) for c in schedule.codelets), default=0),
        light_cone=work.comparators / max(1, blocks * size),
        flops_per_byte=FLOPS_PER_COMPARATOR * size / max(1, BYTES_PER_LOAD * loads),
    )


def slots_of(codelet: Codelet) -> int:
    """Return how many weight slots a codelet takes."""
    return -(-len(codelet.shape) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT


def _check_comparators(schedule: Schedule) -> None:
    """Raise LoweringError unless the codelets run the network's comparators, on every wire in its order.

    Two orders of comparators that agree on every wire differ only in comparators that share no wire, so
    they leave the same values.
    """
    network, outputs = schedule.network, schedule.outputs
    size = sum(len(codelet.shape) for codelet in schedule.codelets)
    if size != network.size:
        raise LoweringError(f"the network has {network.counts}; its schedule has {count(size, 'comparator')}")
    columns, scheduled_columns = [network.comparators.astype(np.int64)], [_running_order(schedule)]
    if schedule.halved or outputs is not None:
        needed = [codelet_ends for codelet in schedule.codelets for codelet_ends in _needed_ends(codelet)]
        scheduled_columns.append(np.array(needed, np.int64).reshape(size, 2))
        halves = np.ones((size, 2), bool) if outputs is None else live_halves(network, outputs)
        columns.append(halves.astype(np.int64))
    wires, wanted = _by_wire(np.hstack(columns))
    scheduled_wires, rows = _by_wire(np.hstack(scheduled_columns))
    wrong = np.flatnonzero((wires != scheduled_wires) | (wanted != rows).any(axis=1))
    if len(wrong):
        lo, hi, *_ = wanted[wrong[0]].tolist()
        raise LoweringError(
            f"the schedule does not run comparator ({lo}, {hi}) where the network has it on wire "
            f"{wires[wrong[0]]}, or not with the halves that are needed"
        )


def _running_order(schedule: Schedule) -> Rows:
    """Return the comparators (lo, hi) of the codelets, on the network's wires."""
    starts = np.cumsum([0, *(len(codelet.shape) for codelet in schedule.codelets)])
    rows = np.empty((starts[-1], 2), np.int64)
    alike: dict[tuple[Shape, int], list[int]] = {}
    for number, codelet in enumerate(schedule.codelets):
        alike.setdefault((codelet.shape, codelet.flips), []).append(number)
    for (shape, flips), numbers in alike.items():
        places = [(b, a) if flips >> index & 1 else (a, b) for index, (a, b, _) in enumerate(shape)]
        wires = np.array([schedule.codelets[number].wires for number in numbers])
        rows[starts[numbers][:, None] + np.arange(len(shape))] = wires[:, np.array(places)]
    return rows


def _needed_ends(codelet: Codelet) -> list[tuple[bool, bool]]:
    """Return for each comparator whether its minimum and its maximum are needed."""
    return [
        _ENDS[needed][::-1] if codelet.flips >> index & 1 else _ENDS[needed]
        for index, (*_, needed) in enumerate(codelet.shape)
    ]


_ENDS = {Needed.BOTH: (True, True), Needed.FIRST: (True, False), Needed.SECOND: (False, True)}


def _by_wire(comparators: Rows) -> tuple[Rows, Rows]:
    """Return each wire once per comparator that touches it, ascending, with the rows (lo, hi, …) in order."""
    ends = comparators[:, :2].ravel()
    order = np.argsort(ends, kind="stable")
    return ends[order], comparators[order // 2]
