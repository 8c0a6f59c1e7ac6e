"""Lower bounds of the size and the depth of a sorting network on n wires."""

from __future__ import annotations

from nsc.compiler.network import check_wires

# The least sizes and depths that are known, from n = 1. Sizes: Knuth 5.3.4 up to 8 wires; Codish et al. 2014
# for 9 and 10; Harder 2020 for 11 and 12. Depths: Parberry 1989 up to 10; Bundala & Závodný 2014 up to 16;
# Ehlers & Müller 2015 for 17.
_LEAST_SIZES = (0, 1, 3, 5, 9, 12, 16, 19, 25, 29, 35, 39)
_LEAST_DEPTHS = (0, 1, 3, 3, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9, 9, 10)


def least_size(n: int) -> int:
    """Return a number of comparators that every sorting network on n wires has.

    Up to 12 wires it is the least size; beyond, each further wire m adds ⌈log2 m⌉ comparators.

    Source: Van Voorhis 1972, S(n) >= S(n - 1) + ⌈log2 n⌉; the least sizes as above.

    >>> least_size(12), least_size(13), least_size(16)
    (39, 43, 55)
    """
    n = check_wires(n)
    known = min(n, len(_LEAST_SIZES))
    return _LEAST_SIZES[known - 1] + sum((wire - 1).bit_length() for wire in range(known + 1, n + 1))


def least_depth(n: int) -> int:
    """Return a number of layers that every sorting network on n wires has.

    Up to 17 wires it is the least depth. Beyond, it is that of 17 wires, or ⌈log2 n⌉ where that is more: an
    output depends on all inputs, and a layer at most doubles the inputs that it depends on.

    Source: as above.

    >>> least_depth(16), least_depth(17), least_depth(5000)
    (9, 10, 13)
    """
    n = check_wires(n)
    return max(_LEAST_DEPTHS[min(n, len(_LEAST_DEPTHS)) - 1], (n - 1).bit_length())
