"""The 0-1 principle, bit-parallel: a network sorts all inputs iff it sorts all 0-1 inputs.

A set of 0-1 inputs is held as one row of 64-bit words per wire; input t is bit t % 64 of word
t // 64. A comparator is then one `and` and one `or` of two rows. Source: Knuth 5.3.4, theorem Z.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network

Words = npt.NDArray[np.uint64]
Vector = tuple[int, ...]

# Bit w of the index of an input, for the six bits that lie inside a word.
_INSIDE = np.array([sum(1 << t for t in range(64) if t >> bit & 1) for bit in range(6)], dtype=np.uint64)
_CHUNK_WORDS = 1 << 14
_SAMPLE_BYTES = 1 << 26


def first_unsorted(network: Network, inputs: Words, count: int) -> int | None:
    """Return the index of an input that comes out unsorted, or None.

    Args:
        network: any network.
        inputs: (n, words) packed 0-1 inputs.
        count: number of inputs; bits beyond it are ignored.
    """
    state = inputs.copy()
    for layer in network.layers():
        lo, hi = layer[:, 0], layer[:, 1]
        a, b = state[lo], state[hi]
        state[lo], state[hi] = a & b, a | b
    failing = np.bitwise_or.reduce(state[:-1] & ~state[1:], axis=0)
    bits = np.unpackbits(failing.astype("<u8").view(np.uint8), bitorder="little")[:count]
    return int(bits.argmax()) if bits.any() else None


def pack(vectors: npt.NDArray[np.bool_]) -> Words:
    """Return (count, n) 0-1 inputs packed as (n, words)."""
    count, n = vectors.shape
    padded = np.zeros((n, -(-count // 64) * 64), dtype=bool)
    padded[:, :count] = vectors.T
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def exhaust(network: Network) -> Vector | None:
    """Return a 0-1 input that comes out unsorted, or None: all 2^n are tried.

    Cost: 2·size·2^n / 64 word operations; n = 20 takes about 0.1 s.
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
        found = first_unsorted(network, inputs, min(1 << n, 64 * len(index)))
        if found is not None:
            which = (start << 6) + found
            return tuple(which >> wire & 1 for wire in range(n))
    return None


def sample_inputs(n: int, random_count: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield 0-1 inputs, (count, n) at a time, that refute most networks that do not sort.

    The structured ones settle three questions exactly: the sorted inputs whether untangling ends
    with the identity; the reversed ones whether a network of neighbours sorts (de Bruijn 1974);
    one exchange away from sorted whether comparator (i, i+1) is missing. The random ones, each
    with its own share of ones, come from a fixed seed.
    """
    ramp = np.arange(n)
    piece = max(64, _SAMPLE_BYTES // n)
    for start in range(0, n + 1, piece):
        thresholds = np.arange(start, min(start + piece, n + 1))[:, None]
        ascending = ramp >= thresholds
        yield ascending
        yield ~ascending
        exchanged = ascending[(thresholds[:, 0] >= 1) & (thresholds[:, 0] < n)].copy()
        first = exchanged.argmax(axis=1)
        rows = np.arange(len(exchanged))
        exchanged[rows, first - 1], exchanged[rows, first] = True, False
        yield exchanged
    generator = np.random.default_rng(0)
    for start in range(0, random_count, piece):
        count = min(piece, random_count - start)
        yield generator.random((count, n)) < generator.random((count, 1))


def permutation_of(vector: Vector) -> Vector:
    """Return a permutation of 0 … n-1 that a network leaves unsorted if it leaves the 0-1 input so.

    The zeros get the smallest values: a network commutes with the monotone map back to 0 and 1.

    >>> permutation_of((1, 0, 1, 0))
    (2, 0, 3, 1)
    """
    zeros = vector.count(0)
    next_value = [0, zeros]
    values = []
    for bit in vector:
        values.append(next_value[bit])
        next_value[bit] += 1
    return tuple(values)
