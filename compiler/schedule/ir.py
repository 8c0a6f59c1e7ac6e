"""Schedule: a network cut into the pieces that a kernel runs, as data that a template prints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate

from nsc.compiler.network import Network
from nsc.compiler.passes.restrict import live_halves
from nsc.compiler.schedule.codelets import Codelet, Needed, Shape, cut, shapes_of

# The weights of a codelet begin at a multiple of this many, the widest register's lanes, so that sums
# over lanes can be added to them a register at a time.
SLOT_ALIGNMENT = 16


@dataclass(frozen=True)
class Schedule:
    """The order in which a kernel runs a network's comparators.

    Weights are stored in slots, codelet by codelet.

    Attributes:
        network: what is scheduled.
        codelets: its comparators cut into codelets, in order.
        shapes: the codelets' shapes, the most frequent first.
        outputs: the wires that are wanted, in the order in which they are given out; None: all.
    """

    network: Network
    codelets: tuple[Codelet, ...]
    shapes: tuple[Shape, ...]
    outputs: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        assert sum(len(codelet.shape) for codelet in self.codelets) == self.network.size
        assert {codelet.shape for codelet in self.codelets} == set(self.shapes)

    @property
    def loads(self) -> int:
        """Number of wires that the codelets load together."""
        return sum(len(codelet.wires) for codelet in self.codelets)

    @property
    def halved(self) -> bool:
        """Whether any comparator is a half comparator."""
        return any(pair.needed is not Needed.BOTH for shape in self.shapes for pair in shape)

    @property
    def slots(self) -> int:
        """Number of weight slots."""
        return sum(map(slots_of, self.codelets))


def schedule(network: Network, outputs: tuple[int, ...] | None = None) -> Schedule:
    """Cut a network into codelets.

    Args:
        network: what is scheduled; where only some outputs are wanted, without comparators that none of
            them depends on, as `restrict` leaves it.
        outputs: the wires that are wanted, each once; None: all, in order.
    """
    codelets = cut(network, None if outputs is None else live_halves(network, outputs))
    return Schedule(network, codelets, shapes_of(codelets), outputs)


def in_levels(made: Schedule) -> tuple[Schedule, tuple[int, ...]]:
    """Order a schedule's codelets by level: those of a level take no wire from each other.

    A codelet's level is the first behind all it takes wires from; inside a level codelets of one shape
    stand together.

    Returns:
        The schedule in that order, and where in it each level ends.
    """
    number = {shape: index for index, shape in enumerate(made.shapes)}
    free = [0] * made.network.n
    levels: list[list[Codelet]] = []
    for codelet in made.codelets:
        level = max(free[wire] for wire in codelet.wires)
        if level == len(levels):
            levels.append([])
        levels[level].append(codelet)
        for wire in codelet.wires:
            free[wire] = level + 1
    for level_codelets in levels:
        level_codelets.sort(key=lambda codelet: (number[codelet.shape], codelet.wires))
    ordered = tuple(codelet for level_codelets in levels for codelet in level_codelets)
    ends = tuple(accumulate(map(len, levels)))
    return replace(made, codelets=ordered), ends


def slots_of(codelet: Codelet) -> int:
    """Return how many weight slots a codelet takes."""
    return -(-len(codelet.shape) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT
