"""Bits: matrices of 0 and 1, eight columns to a byte."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint8]


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
