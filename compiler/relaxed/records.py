"""What the templates of relaxed packages are given: kernels, C headers and Python modules."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.text.records import Head, Header, Real


@dataclass(frozen=True)
class Schedule:
    """The tables of codelets as CUDA runs them: lines of initialisers, and sums.

    Attributes:
        wires: of the network.
        slots: places for weights.
        widest_codelet, longest_codelet: most wires, most slots of a codelet.
        halved: whether there are half comparators, as C++ writes it.
    """

    wires: int
    slots: int
    widest_codelet: int
    longest_codelet: int
    halved: str
    codelet_lines: tuple[str, ...]
    spread_lines: tuple[str, ...]
    shape_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A comparator of a shape.

    Attributes:
        index: its number in the shape.
        a, b: the places of its wires.
        half: "First" or "Second" where only that wire is needed behind it, else "".
    """

    index: int
    a: int
    b: int
    half: str


@dataclass(frozen=True)
class StraightShape:
    """A shape that gets straight-line code.

    Attributes:
        index: its number among the shapes.
        counts: of wires and comparators, in words.
        length: how many comparators it has.
        loads: how many wires it loads.
        wires: the places it loads.
        stored: the places that are needed behind it.
        comparators, backwards: its comparators in order, and from the last to the first.
    """

    index: int
    counts: str
    length: int
    loads: int
    wires: tuple[int, ...]
    stored: tuple[int, ...]
    comparators: tuple[Step, ...]
    backwards: tuple[Step, ...]


@dataclass(frozen=True)
class Relaxation:
    """A relaxation by its names in nsc/relaxed/relaxations.h.

    Attributes:
        words: what it is.
        sigmoid, replacement: names of structs.
        strength: of the activation replacement, where its struct has to be told, else "".
        error_free: whether the forward pass is exact, as C++ writes it.
    """

    words: str
    sigmoid: str
    replacement: str
    strength: str
    error_free: str


@dataclass(frozen=True)
class Count:
    """A count of a network: its name in nsc/relaxed/network.h, and its value."""

    name: str
    value: int


@dataclass(frozen=True)
class Table:
    """A table of a network: the type of its entries, its name in nsc/relaxed/network.h, and initialisers."""

    type: str
    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Network:
    """A network as C++ runs it."""

    counts: tuple[Count, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class CppKernel:
    """What relaxed/kernel.cpp.j2 is given; facts: what the kernel states of itself, as a C string literal."""

    kernel: Head
    facts: str
    network: Network
    relaxation: Relaxation
    reals: tuple[Real, ...]


@dataclass(frozen=True)
class EngineKernel:
    """What relaxed/engine.cpp.j2 is given."""

    relaxation: Relaxation
    real: Real


@dataclass(frozen=True)
class KnownSpread:
    """A spread of wires that is known in straight-line code.

    Attributes:
        begin: where it begins in the table of spreads.
        count: how many wires it has.
        wires: how far they lie from the first, comma-separated.
    """

    begin: int
    count: int
    wires: str


@dataclass(frozen=True)
class StraightCode:
    """The code of a straight-line shape.

    Attributes:
        index: of the shape.
        known_spreads: where the spreads begin that have code of their own.
        has_others: whether codelets have other spreads.
    """

    index: int
    known_spreads: tuple[int, ...]
    has_others: bool


@dataclass(frozen=True)
class Threads:
    """The tables of rounds, levels and light cones, as lines of initialisers, and the threads that run them.

    Attributes:
        level_count: levels of the codelets.
        tile_warps: warps that share a tile of columns.
        tile_lanes: lanes that a tile lies on.
        widest_group: columns of a tile that a sample takes, at most.
        sample_threads: threads that share a sample's keys.
        keys_threads, routing_threads: threads of a block of either pass.
        forward_blocks: blocks of the forward routing that a multiprocessor must hold at a time.
        kept_rows_in_block: rows of a tile that the backward routing keeps in shared memory.
        rounds: of the keys pass.
        merge_layers: of the merge that is taken apart, 0 without one; see `levels.Merge`.
        front_levels, front_slots: in front of it.
        cone_columns: columns of P whose light cone is taken as one.
        cones: how many light cones there are.
        all_straight: whether every shape has straight-line code.
    """

    level_count: int
    tile_warps: int
    tile_lanes: int
    widest_group: int
    sample_threads: int
    keys_threads: int
    routing_threads: int
    forward_blocks: int
    kept_rows_in_block: int
    rounds: int
    merge_layers: int
    front_levels: int
    front_slots: int
    comparator_lines: tuple[str, ...]
    merge_slot_lines: tuple[str, ...]
    cone_columns: int
    cones: int
    listed_lines: tuple[str, ...]
    level_bound_lines: tuple[str, ...]
    known_spreads: tuple[KnownSpread, ...]
    straight_codes: tuple[StraightCode, ...]
    all_straight: bool


@dataclass(frozen=True)
class CudaKernel:
    """What relaxed/kernel.cu.j2 is given; facts: as in `CppKernel`."""

    kernel: Head
    facts: str
    schedule: Schedule
    straight_shapes: tuple[StraightShape, ...]
    relaxation: Relaxation
    reals: tuple[Real, ...]
    cuda: Threads


@dataclass(frozen=True)
class Code:
    """A name, a number and what it means, in words."""

    name: str
    value: int
    meaning: str


@dataclass(frozen=True)
class Declared:
    """The functions for an arithmetic type: its names, and lines that declare each function."""

    name: str
    suffix: str
    kept: tuple[str, ...]
    forward: tuple[str, ...]
    backward: tuple[str, ...]


@dataclass(frozen=True)
class Interface:
    """What relaxed/interface.h.j2 is given.

    Attributes:
        version: of the C interface.
        wires: of the network.
        values: what the relaxed values are, in words.
    """

    header: Header
    version: int
    wires: int
    values: str
    statuses: tuple[Code, ...]
    routings: tuple[Code, ...]
    reals: tuple[Declared, ...]


@dataclass(frozen=True)
class Module:
    """The facts in a Python module's docstring and constants.

    Attributes:
        name, purpose, command, version, proof: as of `Header`.
        counts: of the network, in words.
        relaxation: in words.
        dtypes, accepts: the types that are computed in, and those of tensors that are accepted.
        targets: what it is compiled for.
        n, size, depth: of the network.
        default_steepness: the steepness of a call without one.
        tie_note: words that the error-free form adds to the sentence on ties.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    counts: str
    relaxation: str
    dtypes: str
    targets: str
    accepts: str
    n: int
    size: int
    depth: int
    default_steepness: str
    tie_note: str


@dataclass(frozen=True)
class ModuleLoss:
    """A loss of a module: its function's name, and its value in words."""

    name: str
    sentence: str


@dataclass(frozen=True)
class SortModule:
    """What relaxed/sort.py.j2 is given."""

    module: Module
    losses: tuple[ModuleLoss, ...]


@dataclass(frozen=True)
class SelectModule:
    """What relaxed/select.py.j2 is given: its ranks in lines, and the names of losses."""

    module: Module
    rank_lines: tuple[str, ...]
    losses: tuple[str, ...]
