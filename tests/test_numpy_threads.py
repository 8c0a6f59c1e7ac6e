"""Catches a call on more threads than said, a lost part of its work, an array or a lock that is held."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from test_numpy_arrays import CALLS, X

import nsc
import nsc.numpy as exact
from nsc.numpy.calls import thread_count
from nsc.runtime.devices import threads
from nsc.runtime.exact.kernel import ExactFunction

WITH_KERNELS = pytest.mark.usefixtures("kernels")


@pytest.fixture(autouse=True)
def number(monkeypatch):
    """Nothing is set, before a test and after it."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("nsc.numpy.calls._threads", None)


@pytest.fixture
def asked(monkeypatch):
    """Return a list of the numbers of threads that calls ask for."""
    numbers = []
    for module in ("windows", "samples"):
        monkeypatch.setattr(
            f"nsc.numpy.{module}.share_out",
            lambda do, threads, work: (numbers.append(threads), do(0, 1)),
        )
    return numbers


@WITH_KERNELS
@pytest.mark.parametrize("name", ["sort", "median", "trimmed_mean", "median_filter", "rolling"])
def test_the_number_of_the_process_is_that_of_calls(name, asked, monkeypatch):
    monkeypatch.setattr("nsc.numpy.calls._LEAST_VALUES", 1)
    for set_to, said, expected in ((3, {}, 3), (3, {"workers": 2}, 2), (-1, {}, threads.cores())):
        exact.set_num_threads(set_to)
        asked.clear()
        CALLS[name](X, **said)
        assert max(asked) == expected  # a block has one


def test_without_a_number_it_is_that_of_the_environment_or_the_cores(monkeypatch):
    assert exact.get_num_threads() == threads.cores()
    for text, expected in (("3", 3), (" 4,2", 4), ("0", threads.cores()), ("many", threads.cores())):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert exact.get_num_threads() == thread_count("sort", None, 1 << 20) == expected
    assert thread_count("sort", -1, 1) == threads.cores()
    exact.set_num_threads(np.int8(5))
    assert exact.get_num_threads() == 5


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system pins no process")
def test_a_pinned_process_uses_its_cores():
    code = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); import nsc.numpy as exact; "
    code += "assert exact.get_num_threads() == 1"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


@pytest.mark.parametrize("value", [0, -2, 1.0, "2", None, True])
def test_other_numbers_are_refused(value):
    with pytest.raises(nsc.NscError, match=r"k must be (at least 1, or -1|an integer), got"):
        exact.set_num_threads(value)
    assert exact.get_num_threads() == threads.cores()


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("work", [0, 1, 3, 1000])
def test_parts_of_a_work(count, work, monkeypatch):
    monkeypatch.setattr(threads, "LEAST_WORK", 10)
    parts = threads.parts_of(count, 10 * work + 9)
    assert parts == (1 if count == 1 or work < 2 else min(work // count * count or work, 8 * count))


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("parts", [1, 2, 30])
def test_each_part_is_done_once(count, parts):
    done = []
    threads.share_out(lambda *part: done.append(part), count, parts)
    assert sorted(done) == [(part, parts) for part in range(parts)]


def test_a_thread_that_is_held_up_leaves_its_parts_to_others():
    goes_on, by, caller = threading.Event(), [], threading.get_ident()

    def do(part, parts):
        if threading.get_ident() != caller:
            goes_on.wait()
        by.append(threading.get_ident())
        if len(by) == parts - 1:
            goes_on.set()

    threads.share_out(do, 2, 30)
    assert by.count(caller) >= len(by) - 1


def test_an_error_of_a_part_ends_the_call():
    """An IndexError too, which is also what an empty list of parts says."""
    done = []

    def do(part, parts):
        done.append(part)
        time.sleep(0.01)
        raise IndexError("of a part")

    with pytest.raises(IndexError, match="of a part"):
        threads.share_out(do, 2, 30)
    assert len(done) <= 2


@WITH_KERNELS
def test_arrays_are_free_when_a_call_ends(monkeypatch):
    """Even if the pool has not come to a part yet, since it does others."""
    monkeypatch.setattr(threads, "LEAST_WORK", 1)
    threads.share_out(lambda *part: None, 2, 2)  # there is a pool
    goes_on = threading.Event()
    held_up = [threads._kept[0].submit(goes_on.wait) for _ in range(os.cpu_count())]
    x = np.zeros((5, 500))
    gone = weakref.ref(x)
    exact.sort(x, 0, workers=2)
    del x
    assert gone() is None
    goes_on.set()
    assert all(one.result() for one in held_up)


@pytest.mark.slow("kernels are built in a process of its own")
def test_first_calls_of_eight_threads_at_once():
    """Imports, proofs, builds and calls; Pythons without a global lock run them truly at once."""
    command = [sys.executable, "-W", "error::RuntimeWarning", Path(__file__).with_name("at_once.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@WITH_KERNELS
def test_threads_of_a_caller_share_the_pool(monkeypatch):
    monkeypatch.setattr(threads, "LEAST_WORK", 1)
    x = np.random.default_rng(0).random((5, 500))
    expected, found = np.median(x, axis=0), []
    callers = [threading.Thread(target=lambda: found.append(exact.median(x, 0, workers=3))) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all(np.array_equal(one, expected) for one in found)
    assert len(found) == 8


@WITH_KERNELS
def test_other_threads_run_during_a_call(monkeypatch):
    """The interpreter's lock is free while a kernel runs."""
    ticks, ends, during, call = [0], threading.Event(), [], ExactFunction.call

    def tick():
        while not ends.wait(0.001):
            ticks[0] += 1

    def noted(*arguments, **more):
        before = ticks[0]
        call(*arguments, **more)
        during.append(ticks[0] - before)

    monkeypatch.setattr(ExactFunction, "call", noted)
    clock = threading.Thread(target=tick)
    clock.start()
    x = np.random.default_rng(0).random((33, 200_000))
    for _ in range(5):
        exact.sort(x, 0, workers=1)
    ends.set()
    clock.join()
    assert sum(during) > 10
