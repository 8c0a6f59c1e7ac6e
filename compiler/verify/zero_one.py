"""The 0-1 principle, bit-parallel: a network is right for all inputs iff it is right for all 0-1 inputs.

A set of 0-1 inputs is held as one row of 64-bit words per wire; input t is bit t % 64 of word
t // 64. A comparator is then one `and` and one `or` of two rows. A wire carries rank r iff it is 1
for exactly those 0-1 inputs that have at most r zeros. Source: Knuth 5.3.4, theorem Z, wire by wire.

Two methods are here: `exhaustion` tries all inputs, `primitive` one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.verify.proof import Vector
from nsc.compiler.verify.question import Answer, Question, in_place
from nsc.wording import count

Words = npt.NDArray[np.uint64]
Inputs = npt.NDArray[np.bool_]
Runs = Sequence[Sequence[int]]
# A matrix of 0 and 1, eight columns to a byte.
Bits = npt.NDArray[np.uint8]

# _INSIDE[b] holds bit b of the indices of the 64 inputs in a word.
_INSIDE = np.array([sum(1 << t for t in range(64) if t >> bit & 1) for bit in range(6)], dtype=np.uint64)
# _AT_LEAST[c] marks the inputs in a word whose index has at least c ones among its lowest six bits.
_AT_LEAST = np.array(
    [sum(1 << t for t in range(64) if t.bit_count() >= c) for c in range(8)], dtype=np.uint64
)
# `exhaustion` takes so many wires: 2^24 inputs take a few seconds through about a hundred comparators.
MOST_WIRES = 24
_CHUNK_WORDS = 1 << 12
_SAMPLE_BYTES = 1 << 26


def exhaustion(question: Question) -> Answer | None:
    """Try every 0-1 input of n ≤ 24 wires, none presorted. Cost: as `exhaust`."""
    network, n = question.network, question.network.n
    if question.runs or n > MOST_WIRES:
        return None
    for tried, failing in enumerate(exhaust(network, question.ranks), start=1):
        if failing is not None:
            return Answer(failing=failing)
        question.budget.check()
        question.budget.progress.count("pieces of the 0-1 inputs", tried)
    verdict = "come out sorted" if question.is_sort else "come out right"
    return Answer(proved=f"all 2^{n} 0-1 inputs {verdict}")


def primitive(question: Question) -> Answer | None:
    """Decide a primitive network by one input: n, n-1, …, 1.

    The network sorts iff it sorts this input. Its first (last) k outputs are the k smallest (largest)
    values iff they are for this input. A single wire in the middle may be right for this input and
    wrong for others. Cost: O(n·depth).

    Source: de Bruijn 1974; Knuth 5.3.4, exercise 36.
    """
    network, ranks = question.network, question.ranks
    ends = set(range(len(ranks))), set(range(network.n - len(ranks), network.n))
    fits = in_place(ranks) and set(ranks) in ends
    # A certificate has the comparators as they are, and they may join neighbours in standard form alone.
    if question.tangled and question.budget.certify:
        return None
    if question.runs or not fits or (np.diff(network.comparators, axis=1) != 1).any():
        return None
    out = network.apply(np.arange(network.n)[::-1])
    for wire in ranks:
        actual = int(out[wire])
        if actual != wire:
            # The same input as 0 and 1, with a threshold between the actual value and the right one.
            threshold = max(actual, wire)
            return Answer(failing=tuple(int(value >= threshold) for value in range(network.n)[::-1]))
    verdict = "comes out sorted" if len(ranks) == network.n else "comes out right"
    reversed_input = f"the reversed input of {count(network.n, 'value')}"
    return Answer(proved=f"only neighbours are compared, and {reversed_input} {verdict}")


def first_wrong(
    network: Network, ranks: dict[int, range], inputs: Words, least: Words, most: Words, count: int
) -> int | None:
    """Return the index of an input for which some wire does not carry its rank, or None.

    Args:
        network: any network.
        ranks: some wires to the ranks that they may carry.
        inputs: (n, words) packed 0-1 inputs.
        least, most: (len(ranks), words): the packed bounds of the values that are right on these wires.
        count: number of inputs; bits beyond it are ignored.
    """
    state = inputs.copy()
    for layer in network.layers():
        lo, hi = layer[:, 0], layer[:, 1]
        a, b = state[lo], state[hi]
        state[lo], state[hi] = a & b, a | b
    found = state[list(ranks)]
    failing = np.bitwise_or.reduce((found ^ least) & (found ^ most), axis=0)
    bits = np.unpackbits(failing.astype("<u8").view(np.uint8), bitorder="little")[:count]
    return int(bits.argmax()) if bits.any() else None


def first_wrong_vector(network: Network, ranks: dict[int, range], inputs: Inputs) -> int | None:
    """Return the index of the first of (count, n) 0-1 inputs that comes out wrong, or None."""
    bounds = bounds_of(network.n - inputs.sum(axis=1), ranks.values())
    return first_wrong(network, ranks, pack(inputs), pack(bounds[0]), pack(bounds[1]), len(inputs))


def bounds_of(zeros: npt.NDArray[np.int64], ranks: Iterable[range]) -> Inputs:
    """Return the least and the most right values, (2, inputs, wires), for 0-1 inputs of so many zeros.

    A wire carries one of some ranks iff it is 1 for inputs of at most as many zeros as the lowest of them,
    and 0 for those of more than the highest.
    """
    return np.asarray(zeros)[:, None] <= _ends(ranks)[:, None]


def _ends(ranks: Iterable[range]) -> npt.NDArray[np.int64]:
    """Return the lowest and the highest ranks, (2, wires)."""
    return np.array([*zip(*((span[0], span[-1]) for span in ranks), strict=True)])


def pack(vectors: Inputs) -> Words:
    """Return (count, n) 0-1 inputs packed as (n, words)."""
    count, n = vectors.shape
    words = np.zeros((n, -(-count // 64) * 8), dtype=np.uint8)
    if count:
        words[:, : -(-count // 8)] = transposed(np.packbits(vectors, axis=1, bitorder="little"))[:n]
    return words.view("<u8").astype(np.uint64)


def exhaust(network: Network, ranks: dict[int, range]) -> Iterator[Vector | None]:
    """Try all 2^n inputs in pieces; yield None for each right piece, end with the first wrong input.

    Cost: 2·size·2^n / 64 word operations; n = 20 takes about 0.1 s, n = 24 a second.
    """
    n = network.n
    words = max(1, (1 << n) >> 6)
    for start in range(0, words, _CHUNK_WORDS):
        index = np.arange(start, min(start + _CHUNK_WORDS, words), dtype=np.uint64)
        rows = [
            np.broadcast_to(_INSIDE[wire], index.shape)
            if wire < 6
            else -((index >> np.uint64(wire - 6)) & np.uint64(1)).astype(np.int64)
            for wire in range(n)
        ]
        inputs = np.stack([row.astype(np.uint64) for row in rows])
        ones = np.bitwise_count(index).astype(np.int64)
        least, most = _AT_LEAST[np.clip(n - _ends(ranks.values())[..., None] - ones, 0, 7)]
        wrong = first_wrong(network, ranks, inputs, least, most, min(1 << n, 64 * len(index)))
        if wrong is not None:
            number = (start << 6) + wrong
            yield tuple(number >> wire & 1 for wire in range(n))
            return
        yield None


def sample_inputs(
    n: int, random_count: int, ranks: Sequence[range] = (), runs: Runs = ()
) -> Iterator[Inputs]:
    """Yield 0-1 inputs, (count, n) at a time, that refute most wrong networks.

    The structured inputs settle three questions exactly. Sorted inputs: does untangling end with the
    identity? Reversed inputs: does a primitive network sort (de Bruijn 1974)? Inputs one exchange
    away from sorted: is a comparator (i, i+1) missing? The random inputs, from a fixed seed, have
    each a random share of ones; if only some wires have ranks, others follow that decide one of these
    wires: with as many zeros as the lowest rank that it may carry, or one more than the highest.
    """
    for inputs in _sample(n, random_count, ranks):
        order_runs(inputs, runs)
        yield inputs


def order_runs(inputs: Inputs, runs: Runs) -> None:
    """Bring the values of each run of (count, n) inputs into ascending order, in place."""
    for run in runs:
        inputs[:, list(run)] = np.sort(inputs[:, list(run)], axis=1)


def _sample(n: int, random_count: int, ranks: Sequence[range]) -> Iterator[Inputs]:
    ramp = np.arange(n)
    piece = max(64, _SAMPLE_BYTES // n)
    for start in range(0, n + 1, piece):
        thresholds = np.arange(start, min(start + piece, n + 1))[:, None]
        ascending = ramp >= thresholds
        yield ascending.copy()
        yield ~ascending
        exchanged = ascending[(thresholds[:, 0] >= 1) & (thresholds[:, 0] < n)].copy()
        first = exchanged.argmax(axis=1)
        rows = np.arange(len(exchanged))
        exchanged[rows, first - 1], exchanged[rows, first] = True, False
        yield exchanged
    yield from random_inputs(n, random_count, ranks)


def random_inputs(n: int, random_count: int, ranks: Sequence[range] = ()) -> Iterator[Inputs]:
    """Yield the random inputs of `sample_inputs`, (count, n) at a time."""
    piece = max(64, _SAMPLE_BYTES // n)
    generator = np.random.default_rng(0)
    for start in range(0, random_count, piece):
        count = min(piece, random_count - start)
        yield generator.random((count, n)) < generator.random((count, 1))
    if 0 < len(ranks) < n:
        for start in range(0, random_count, piece):
            count = min(piece, random_count - start)
            chosen = generator.integers(len(ranks), size=count)
            zeros = np.add(_ends(ranks), [[0], [1]])[generator.integers(0, 2, count), chosen]
            order = generator.random((count, n)).argsort(axis=1)
            yield order >= zeros[:, None]


def permutation_of(vector: Vector) -> Vector:
    """Return a permutation of 0 … n-1 that comes out wrong if the 0-1 input does.

    The zeros get the smallest values: a network commutes with the monotone map back to 0 and 1.

    >>> permutation_of((1, 0, 1, 0))
    (2, 0, 3, 1)
    """
    return tuple(np.argsort(vector, kind="stable").argsort().tolist())


def transposed(rows: Bits) -> Bits:
    """Return the transpose of a matrix of 0 and 1 whose rows are packed into bytes, lowest bit first.

    Rows are padded with zeros to whole bytes, so (r, b) becomes (8·b, ⌈r / 8⌉).

    Each block of 8 × 8 bits is transposed in one 64-bit word. Source: Warren, Hacker's Delight, section 7-3.
    """
    count, width = rows.shape
    padded = np.zeros((-(-count // 8) * 8, width), dtype=np.uint8)
    padded[:count] = rows
    block = padded.reshape(-1, 8, width).transpose(0, 2, 1).copy().view("<u8")[..., 0]
    for distance, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
        swapped = (block ^ (block >> np.uint64(distance))) & np.uint64(mask)
        block = block ^ swapped ^ (swapped << np.uint64(distance))
    return np.ascontiguousarray(block.view(np.uint8).reshape(len(block), 8 * width).T)
