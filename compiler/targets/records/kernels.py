"""What the templates of relaxed kernels are given."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.targets.records.common import Constant, Head, Real


@dataclass(frozen=True)
class Schedule:
    """The tables of codelets, their wires and their shapes, as lines of initialisers, and their sums.

    Attributes:
        wires, comparators, levels: of the network; levels at most.
        codelet_count: how many codelets there are.
        slots: places for weights.
        slot_alignment: a codelet's slots begin at a multiple of this number.
        widest_codelet, longest_codelet: most wires, most slots of a codelet.
        turned: whether any comparator leaves the minimum on its second wire.
        turn_words: 64-bit words of a codelet's pattern of turned comparators.
        halved: whether there are half comparators.
    """

    wires: int
    comparators: int
    levels: int
    codelet_count: int
    slots: int
    slot_alignment: int
    widest_codelet: int
    longest_codelet: int
    turned: bool
    turn_words: int
    halved: bool
    codelet_lines: tuple[str, ...]
    spread_lines: tuple[str, ...]
    shape_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    turn_lines: tuple[str, ...]


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
class Polynomial:
    """The coefficients of a polynomial, lowest degree first."""

    name: str
    count: int
    coefficients: str


@dataclass(frozen=True)
class Constants:
    """What the functions of a relaxation need to know of an arithmetic type; see `Approximations`."""

    type: str
    whole: str
    mantissa_bits: int
    exponent_bias: int
    rounding: str
    log2_high: str
    log2_low: str
    half_root: str
    root_guess: str
    newton_steps: int
    polynomials: tuple[Polynomial, ...]


@dataclass(frozen=True)
class Relaxation:
    """The sigmoid and the activation replacement trick as C++ expressions.

    Attributes:
        tail, slope: f(-t) and f'(v); see `Sigmoid`.
        source: where the sigmoid comes from.
        functions: the functions of templates/shared/functions.j2 that are needed.
        has_art: whether λ is not 0.
        art_lambda: λ as people write it.
        art_epsilon: ε, the same.
        lambda_literal: λ; lambda_high and lambda_low are two parts of it, the first of 12 bits.
        root: 1/λ where it is 2 or 4, else 0.
        root_shift: its logarithm to base 2.
        root_power: power^(1/λ).
        rest_literal: 1 - λ.
        over_size: what divides by |d| + ε in the elasticity of φ.
        error_free: whether the forward pass is exact.
        arrays: how many numbers the keys pass leaves for each comparator.
    """

    tail: str
    slope: str
    source: str
    functions: tuple[str, ...]
    has_art: bool
    art_lambda: str
    art_epsilon: str
    lambda_literal: str
    lambda_high: str
    lambda_low: str
    root: int
    root_shift: int
    root_power: str
    rest_literal: str
    over_size: str
    error_free: bool
    arrays: int


@dataclass(frozen=True)
class Loss:
    """A loss: its name and the source of its functions NAME_loss and NAME_gradient."""

    name: str
    part: str


@dataclass(frozen=True)
class Losses:
    """The losses, and the constants that they share.

    Attributes:
        unit: the number that stands for 1 while P is computed.
        lowest_log, least_probability: where logarithms are cut.
        surrogate_least: the least probability whose reciprocal the error-free form takes.
        large: above this 1 - p is the sum of the column's other entries.
        each: the losses.
    """

    unit: str
    lowest_log: int
    least_probability: str
    surrogate_least: str
    large: str
    each: tuple[Loss, ...]


@dataclass(frozen=True)
class RoutingGroup:
    """A function that tells some routings from the others.

    Attributes:
        function: its name.
        condition: what it tells, in words that follow "whether".
        routings: those of which it is true.
    """

    function: str
    condition: str
    routings: tuple[str, ...]


@dataclass(frozen=True)
class Tuning:
    """How the C++ kernel shares work among threads.

    Attributes:
        most_chunks: pieces that a sample's columns are cut into, at most.
        chunk_mixes: mixes that a piece has, at least.
        scratch_bytes: aim for the memory of the weights that are held at a time.
        group_bytes: bytes of a row of a group of blocks, a multiple of the bytes of every register.
        kept_bytes: differences of a group that are kept at a time, unless an eighth of P is more.
        butterflies: how many butterflies the codelets have.
        joined_lines: those of each shape: the pattern, and the places of its wires.
        narrow_lines: the butterflies of a narrow network, with their slots; empty if it is wide.
    """

    most_chunks: int
    chunk_mixes: int
    scratch_bytes: int
    group_bytes: int
    kept_bytes: int
    butterflies: int
    joined_lines: tuple[str, ...]
    narrow_lines: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """What the kernels of all targets are made from."""

    kernel: Head
    schedule: Schedule
    straight_shapes: tuple[StraightShape, ...]
    relaxation: Relaxation
    approximations: tuple[Constants, ...]
    losses: Losses
    routings: tuple[Constant, ...]
    routing_groups: tuple[RoutingGroup, ...]
    reals: tuple[Real, ...]


@dataclass(frozen=True)
class CppKernel(Kernel):
    """What cpp/kernel.cpp.j2 is given."""

    statuses: tuple[Constant, ...]
    tuning: Tuning


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
class Direction:
    """A direction of the routing: the name of its function, and whether it is reversed, as C++ writes it."""

    name: str
    reversed: str


@dataclass(frozen=True)
class Threads:
    """The tables of rounds, levels and light cones, as lines of initialisers, and the threads that run them.

    Attributes:
        level_count: levels of the codelets.
        tile_warps: warps that share a tile of columns.
        tile_lanes: lanes that a tile lies on.
        lane_bytes: bytes of a row that a lane holds.
        widest_group: columns of a tile that a sample takes, at most.
        sample_threads: threads that share a sample's keys.
        keys_threads, routing_threads: threads of a block of either pass.
        forward_blocks: blocks of the forward routing that a multiprocessor must hold at a time.
        rounds: of the keys pass.
        cone_columns: columns of P whose light cone is taken as one.
        cones: how many light cones there are.
        all_straight: whether every shape has straight-line code.
    """

    level_count: int
    tile_warps: int
    tile_lanes: int
    lane_bytes: int
    widest_group: int
    sample_threads: int
    keys_threads: int
    routing_threads: int
    forward_blocks: int
    rounds: int
    comparator_lines: tuple[str, ...]
    round_end_lines: tuple[str, ...]
    cone_columns: int
    cones: int
    listed_lines: tuple[str, ...]
    level_bound_lines: tuple[str, ...]
    known_spreads: tuple[KnownSpread, ...]
    straight_codes: tuple[StraightCode, ...]
    all_straight: bool
    directions: tuple[Direction, ...]


@dataclass(frozen=True)
class CudaKernel(Kernel):
    """What cuda/kernel.cu.j2 is given."""

    cuda: Threads
