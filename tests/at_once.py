"""Make first calls from eight threads at once, and compare results: python tests/at_once.py.

A test starts it in a process of its own, where nothing is imported or loaded yet. Threads switch as often as
the interpreter can; one without the global lock runs them truly at once.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS = 8
ROUNDS = 5
X = np.random.default_rng(0).normal(size=(600, 7))
IMAGE = np.random.default_rng(1).integers(0, 256, (60, 70), np.uint8)
# Each imports what it needs, so that imports too begin at once.


def medians():
    import nsc.numpy

    return np.array_equal(nsc.numpy.median(X, axis=1), np.median(X, axis=1))


def sorts():
    import nsc.numpy

    return np.array_equal(nsc.numpy.sort(X, axis=1, workers=2), np.sort(X, axis=1))


def rolls():
    import nsc.numpy

    windows = np.lib.stride_tricks.sliding_window_view(X[:, 0], 5)
    return np.array_equal(nsc.numpy.rolling(X[:, 0], 5).median()[4:], np.median(windows, axis=1))


def filters():
    import nsc.numpy

    windows = np.lib.stride_tricks.sliding_window_view(IMAGE, (3, 3)).reshape(58, 68, 9)
    return np.array_equal(nsc.numpy.median_filter(IMAGE, 3)[1:-1, 1:-1], np.median(windows, axis=2))


def prepares():
    """The blocks of other threads end at any time; here kernels serve all the same."""
    from nsc.join.choosing import is_prepared, prepare

    for _ in range(1000):
        with prepare():
            pass
    with prepare():
        return is_prepared() and medians() and sorts() and rolls() and filters()


def proves():
    import nsc

    return nsc.verify("odd_even_merge", 16).verdict is nsc.Verdict.PROVED


def learns():
    import torch

    import nsc

    x = torch.tensor(X[:20], dtype=torch.float32, requires_grad=True)
    nsc.compile("bitonic", 7).sort(x, 1e6).square().sum().backward()
    return torch.allclose(x.grad, 2 * x.detach(), atol=1e-3)


WORKS = [prepares, medians, sorts, rolls, filters, proves]
if importlib.util.find_spec("torch"):
    WORKS.append(learns)


def main():
    sys.setswitchinterval(1e-6)
    start = threading.Barrier(THREADS)

    def work(number):
        start.wait()
        for turn in range(ROUNDS):
            for place in range(len(WORKS)):
                done = WORKS[(number + place) % len(WORKS)]
                assert done(), f"{done.__name__} in round {turn} of thread {number}"

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))

    from nsc.join.choosing import is_prepared

    assert not is_prepared()


if __name__ == "__main__":
    main()
