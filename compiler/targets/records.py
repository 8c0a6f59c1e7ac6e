"""Records: what the templates of kernels and modules are given, one frozen record for each template.

Each field is a name in the template. `nsc.templates.fill` refuses a name that is no field, and a field
that no template uses.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Header:
    """What a generated file says of its purpose and origin.

    Attributes:
        name: of the package.
        purpose: such as "sorting of 16 values".
        command: what makes the package again.
        version: of nsc.
        proof: what is proved, by what.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str


@dataclass(frozen=True)
class Head:
    """The first lines of a kernel: a header, and what was compiled.

    Attributes:
        counts: of the network, in words.
        digest: of the network.
        relaxation: in words.
        facts: what the kernel states of itself, as a C string literal.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    counts: str
    digest: str
    relaxation: str
    facts: str


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
        outputs: how many wires are selected; 0: the network sorts.
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
    outputs: int
    codelet_lines: tuple[str, ...]
    spread_lines: tuple[str, ...]
    shape_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    turn_lines: tuple[str, ...]
    output_lines: tuple[str, ...]


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
class Constant:
    """A name and a number of an enumeration."""

    name: str
    value: int


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
class Real:
    """An arithmetic type: its name, its name in C++, and how the functions for it end."""

    name: str
    type: str
    suffix: str


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
    """What python/sort.py.j2 is given; `last` is the largest rank."""

    module: Module
    last: int
    losses: tuple[ModuleLoss, ...]


@dataclass(frozen=True)
class SelectModule:
    """What python/select.py.j2 is given: the count of the ranks, and lines that list them."""

    module: Module
    k: int
    rank_lines: tuple[str, ...]


@dataclass(frozen=True)
class ExactHead:
    """The first lines of an exact kernel; see `Head`."""

    name: str
    purpose: str
    version: str
    proof: str
    counts: str
    digest: str
    facts: str


@dataclass(frozen=True)
class ExactPiece:
    """Some comparators of a network, as a function.

    Attributes:
        index: its number.
        lines: the comparators as statements, with loads and stores of wires.
    """

    index: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ExactNetwork:
    """A network as exact kernels in C++ run it.

    Attributes:
        wires, comparators, outputs: how many.
        output_lines: the wire of each output, as lines of a table.
        pair_lines: the comparators as lines of a table.
        pieces: the comparators as statements; none for a network that runs from the table alone.
    """

    wires: int
    comparators: int
    outputs: int
    output_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    pieces: tuple[ExactPiece, ...]


@dataclass(frozen=True)
class ExactKernel:
    """What exact/kernel.cpp.j2 is given."""

    kernel: ExactHead
    statuses: tuple[Constant, ...]
    network: ExactNetwork


@dataclass(frozen=True)
class ExactLayers:
    """A network as exact kernels in CUDA run it; see `ExactNetwork`.

    Attributes:
        layers: how many.
        pair_lines: the comparators as lines of a table, layer by layer.
        layer_end_lines: where each layer ends there, as lines of a table.
    """

    wires: int
    layers: int
    outputs: int
    output_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    layer_end_lines: tuple[str, ...]
    pieces: tuple[ExactPiece, ...]


@dataclass(frozen=True)
class ExactCudaKernel:
    """What exact/kernel.cu.j2 is given."""

    kernel: ExactHead
    network: ExactLayers


@dataclass(frozen=True)
class WindowHead:
    """The first lines of a filter; see `Head`.

    Attributes:
        shared: how many minima and maxima a pixel takes, in words.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    shared: str
    counts: str
    digest: str
    facts: str


@dataclass(frozen=True)
class WindowSizes:
    """What a filter reads and writes in a step.

    Attributes:
        planes, rows, columns: of the window.
        step: rows of results.
        list_rows: rows of memory for the lists of its stages.
        operations: minima and maxima for a pixel.
    """

    planes: int
    rows: int
    columns: int
    step: int
    list_rows: int
    operations: int


@dataclass(frozen=True)
class WindowLoop:
    """A loop of a filter that writes a list.

    Attributes:
        number: of the loop.
        comment: what it makes.
        reach: how many places further on others read it.
        lines: its statements.
    """

    number: int
    comment: str
    reach: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class WindowKernel:
    """What window/kernel.cpp.j2 is given.

    Attributes:
        loops: those that write lists, in order.
        results: the last one, which writes results.
    """

    kernel: WindowHead
    statuses: tuple[Constant, ...]
    modes: tuple[Constant, ...]
    window: WindowSizes
    loops: tuple[WindowLoop, ...]
    results: WindowLoop


@dataclass(frozen=True)
class FilterFacts:
    """What a filter's module says of itself; see `WindowHead` and `WindowSizes`.

    Attributes:
        axes: the last axes of an image, in words.
    """

    name: str
    purpose: str
    command: str
    version: str
    counts: str
    proof: str
    axes: str
    planes: int
    rows: int
    columns: int
    rank: int


@dataclass(frozen=True)
class FilterModule:
    """What python/filter.py.j2 is given."""

    module: FilterFacts


@dataclass(frozen=True)
class CHead:
    """The first lines of a C header; see `Header` and `Head`.

    Attributes:
        sample: how many values it has, in words.
        result_lines: what its results are, in words, as lines.
        types: the names of the types of values, in words.
        stack: KB of stack that a call takes at most.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    counts: str
    digest: str
    sample: str
    result_lines: tuple[str, ...]
    types: str
    stack: int


@dataclass(frozen=True)
class CNetwork:
    """A network as C headers run it.

    Attributes:
        wires, comparators, outputs: how many.
        is_straight: whether it gets straight-line code, not a table.
        comparator_lines, input_lines, output_lines: the comparators, the wires, and each output with its
            wire, as lines of macros.
        pair_lines, output_wire_lines: the comparators and the wire of each output, as lines of tables.
    """

    wires: int
    comparators: int
    outputs: int
    is_straight: bool
    comparator_lines: tuple[str, ...]
    input_lines: tuple[str, ...]
    output_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    output_wire_lines: tuple[str, ...]


@dataclass(frozen=True)
class CWord:
    """Whole numbers that a comparator compares: their name in functions, and in C."""

    name: str
    type: str


@dataclass(frozen=True)
class CType:
    """A type of values of a C header, as C expressions.

    Attributes:
        name: of the type, as functions end.
        type: in C.
        rule: a line of dashes in front of its name.
        is_float: whether it is a floating-point type.
        key, key_type: the word whose order is that of the values: its name, and in C.
        bits: the unsigned whole numbers of its width.
        sign: the bit that makes keys unsigned, 0 where they are.
        sign_shift, size_bits: where the sign is, and the mask of all other bits.
        infinity: the bits of infinity; NaN has larger ones.
        is_pair: whether an item is a struct of a key and its place; else it is one word.
        item, item_type: what a key and its place are: the word's name, and in C.
        alone: what a comparator of pairs is told besides, whether a sample is sorted alone.
        item_key, item_place: the key of an item, in its lowest bits, and where it was.
        item_sign: the sign that the key of a zero or a NaN does not have.
        place_bits: bits of the place in an item of one word.
        lanes: samples that are sorted at a time.
    """

    name: str
    type: str
    rule: str
    is_float: bool
    key: str
    key_type: str
    bits: str
    sign: str
    sign_shift: int
    size_bits: str
    infinity: str
    is_pair: bool
    item: str
    item_type: str
    alone: str
    item_key: str
    item_place: str
    item_sign: str
    place_bits: int
    lanes: int


@dataclass(frozen=True)
class CHeader:
    """What c/header.h.j2 is given."""

    head: CHead
    network: CNetwork
    words: tuple[CWord, ...]
    has_pairs: bool
    types: tuple[CType, ...]


@dataclass(frozen=True)
class Code:
    """A name, a number and what it means, in words."""

    name: str
    value: int
    meaning: str


@dataclass(frozen=True)
class Interface:
    """What cpp/interface.h.j2 is given.

    Attributes:
        version: of the C interface.
        wires: of the network.
        sorted: how many values are sorted, or selected, exactly.
        order: their order, in words.
        values: what the relaxed values are, in words.
    """

    header: Header
    version: int
    wires: int
    sorted: int
    order: str
    values: str
    statuses: tuple[Code, ...]
    routings: tuple[Code, ...]
    reals: tuple[Real, ...]
