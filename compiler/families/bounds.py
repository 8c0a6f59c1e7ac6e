"""Lower bounds of the size and the depth of a sorting network on n wires.

`least_size` and `least_depth` have a published proof. The list of best known networks states higher ones,
44 comparators for 13 wires: `stated_size` and `stated_depth`. They rest on a bound for the paths of the two
largest values. We know of no complete published proof of it, so nsc tells of them and relies on none.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsc.compiler.network import check_wires

# The least sizes and depths that are known, from n = 1. Sizes: Knuth 5.3.4 up to 8 wires; Codish et al. 2014
# for 9 and 10; Harder 2020 for 11 and 12. Depths: Parberry 1989 up to 10; Bundala & Závodný 2014 up to 16;
# Ehlers & Müller 2015 for 17.
_LEAST_SIZES = (0, 1, 3, 5, 9, 12, 16, 19, 25, 29, 35, 39)
_LEAST_DEPTHS = (0, 1, 3, 3, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9, 9, 10)
# These sizes, and those that the published list states for 13 to 64 wires. Source: B. Dobbelaere, "List of
# sorting networks", sorting_networks_extended.html of SorterHunter, since 2025-04-21 (commit cac0eba): by
# S(n) >= S(n - 2) + P(2, n), after Van Voorhis, Toward a lower bound for sorting networks, 1972; suggested by
# Jelmer Firet.
# fmt: off
_STATED_SIZES = (
    *_LEAST_SIZES,
    44, 48, 53, 57, 63, 68, 73, 78, 84, 89, 95, 100, 106, 111, 117, 123, 129, 135, 141, 147, 153, 159,
    165, 171, 178, 184, 191, 197, 204, 210, 217, 223, 230, 236, 243, 249, 257, 263, 271, 277, 285, 291,
    299, 305, 313, 319, 327, 333, 341, 347, 355, 361,
)
# fmt: on


def least_size(n: int) -> int:
    """Return a number of comparators that every sorting network on n wires has.

    Up to 12 wires it is the least size; beyond, each further wire m adds ⌈log2 m⌉ comparators.

    Source: Van Voorhis, An improved lower bound for sorting networks, 1972: S(n) >= S(n - 1) + ⌈log2 n⌉;
    Knuth 5.3.4, exercise 42; the least sizes as above.

    >>> least_size(12), least_size(13), least_size(16)
    (39, 43, 55)
    """
    return _sizes(check_wires(n))[-1]


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
    return _depth(n, _sizes(n))


def stated_size(n: int) -> int | None:
    """Return the number of comparators that the published list states as a lower bound; beyond 64 wires None.

    >>> stated_size(12), stated_size(13), stated_size(65)
    (39, 44, None)
    """
    n = check_wires(n)
    return _STATED_SIZES[n - 1] if n <= len(_STATED_SIZES) else None


def stated_depth(n: int) -> int | None:
    """Return the number of layers that the published list states as a lower bound; beyond 64 wires None.

    As `least_depth`, from the sizes that the list states.

    >>> stated_depth(38), stated_depth(39), stated_depth(55)
    (10, 11, 12)
    """
    n = check_wires(n)
    return _depth(n, _STATED_SIZES) if n <= len(_STATED_SIZES) else None


def _depth(n: int, sizes: Sequence[int]) -> int:
    """Return the least depth of n wires if networks on 1 wire, 2 wires and so on have these least sizes."""
    known = min(n, len(_LEAST_DEPTHS))
    depth = _LEAST_DEPTHS[known - 1]
    for wires in range(known + 1, n + 1):
        depth = max(depth, (wires - 1).bit_length(), -(-sizes[wires - 1] // (wires // 2)))
    return depth


def _sizes(n: int) -> list[int]:
    """Return the bounds of the size, for 1 to n wires."""
    sizes = [*_LEAST_SIZES[:n]]
    for wires in range(len(sizes) + 1, n + 1):
        sizes.append(sizes[-1] + (wires - 1).bit_length())
    return sizes
