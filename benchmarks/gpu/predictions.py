"""What the kernels were expected to take on an H200, before any GPU ran them.

Instructions counted in the machine code for sm_90, inputs and outputs, and the rows that backward passes
keep, at the rates of an H200: 132 multiprocessors that issue four instructions a cycle at 1,755 MHz, 4.3 TB/s
from memory and 5.5 TB/s from the second cache, all of them estimates. A range spans what was not known: how
much of the waits overlaps, and how much of the kept rows stays in the cache.
"""

from __future__ import annotations

from benchmarks.gpu.peers import LOSS_GRAD, P_GRAD, RANKS, P

# The work and the width of a bitonic network to nanoseconds a sample, least and most, of a batch that fills
# the device.
PREDICTED: dict[tuple[str, int], tuple[float, float]] = {
    (P, 16): (0.9, 1.2),
    (P_GRAD, 16): (3, 4.5),
    (LOSS_GRAD, 16): (2.2, 3.2),
    (P, 32): (3.5, 4.5),
    (P_GRAD, 32): (13, 18),
    (LOSS_GRAD, 32): (9.5, 13),
    (P, 128): (45, 60),
    (P_GRAD, 128): (200, 280),
    (LOSS_GRAD, 128): (150, 210),
    (P, 256): (170, 240),
    (P_GRAD, 256): (900, 1300),
    (LOSS_GRAD, 256): (700, 1000),
    (P, 1024): (3000, 4000),
    (P_GRAD, 1024): (18_000, 28_000),
    (LOSS_GRAD, 1024): (14_000, 22_000),
    ("hard_sort, float32", 16): (0.12, 0.2),
    ("hard_sort, float32", 64): (0.6, 0.9),
}


# Nanoseconds of a call on the host, with a driver that does nothing, on one core of an AMD EPYC: docs/gpu.md.
# A real driver was expected to take as long again. A call of few samples takes that.
HOST: dict[str, float] = {P: 25_000, P_GRAD: 67_000, LOSS_GRAD: 66_000, RANKS: 25_000}


def predicted(work: str, network: str, n: int, batch: int) -> str:
    """Return what was expected of a case, in nanoseconds a sample; "" where nothing was."""
    result, _, stated = work.partition(", batch ")
    low, high = PREDICTED.get((result, n), (0, 0)) if network == "bitonic" else (0, 0)
    if stated:
        host = HOST[result] / batch
        # The host's time is all that was expected of few samples, and of none that fill the device.
        low, high = (max(low, host), max(high, 2 * host)) if high or batch < 1000 else (0, 0)
    return f"{low:,g} – {high:,g}" if high else ""
