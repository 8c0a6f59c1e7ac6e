"""Lower bounds of the size and the depth of a sorting network on n wires: those with a published proof.

The list of best known networks states higher sizes since April 2025, 44 for 13 wires. They rest on a bound
for the paths of the two largest values (Van Voorhis, Toward a lower bound for sorting networks, 1972). We
know of no complete published proof of that bound, so nsc does not use it.
"""

from __future__ import annotations

import itertools

from nsc.compiler.network import check_wires

# The least sizes and depths that are known, from n = 1. Sizes: Knuth 5.3.4 up to 8 wires; Codish et al. 2014
# for 9 and 10; Harder 2020 for 11 and 12. Depths: Parberry 1989 up to 10; Bundala & Závodný 2014 up to 16;
# Ehlers & Müller 2015 for 17.
_LEAST_SIZES = (0, 1, 3, 5, 9, 12, 16, 19, 25, 29, 35, 39)
_LEAST_DEPTHS = (0, 1, 3, 3, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9, 9, 10)


def least_size(n: int) -> int:
    """Return a number of comparators that every sorting network on n wires has.

    Up to 12 wires it is the least size; beyond, each further wire m adds ⌈log2 m⌉ comparators.

    Source: Van Voorhis, An improved lower bound for sorting networks, 1972: S(n) >= S(n - 1) + ⌈log2 n⌉;
    Knuth 5.3.4, exercise 42; the least sizes as above.

    >>> least_size(12), least_size(13), least_size(16)
    (39, 43, 55)
    """
    return next(itertools.islice(_sizes(), check_wires(n) - 1, None))


def least_depth(n: int) -> int:
    """Return a number of layers that every sorting network on n wires has.

    Up to 17 wires it is the least depth. Beyond, it is the most of three: the bound of one wire less, for a
    wire can be dropped; ⌈log2 n⌉, for an output depends on all inputs, and a layer at most doubles the inputs
    that it depends on; and the least size by the ⌊n/2⌋ comparators that fit a layer.

    Source: as above.

    >>> least_depth(16), least_depth(17), least_depth(64), least_depth(1024)
    (9, 10, 11, 19)
    """
    n = check_wires(n)
    known = min(n, len(_LEAST_DEPTHS))
    depth = _LEAST_DEPTHS[known - 1]
    for wires, size in enumerate(itertools.islice(_sizes(), known, n), start=known + 1):
        depth = max(depth, (wires - 1).bit_length(), -(-size // (wires // 2)))
    return depth


def _sizes() -> itertools.chain[int]:
    """Return the bounds of the size, for 1 wire, 2 wires and so on."""
    further = itertools.accumulate(
        itertools.count(len(_LEAST_SIZES) + 1),
        lambda size, wires: size + (wires - 1).bit_length(),
        initial=_LEAST_SIZES[-1],
    )
    return itertools.chain(_LEAST_SIZES[:-1], further)
