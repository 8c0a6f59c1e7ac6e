"""Catches a call that NumPy serves with other results than the kernel, and a build that has not paid."""

import os
import pkgutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orders import stable_order

import nsc
import nsc.numpy as exact
from nsc.contract.windows import MODES
from nsc.errors import BuildError, ToolchainError
from nsc.join import choosing
from nsc.join.choosing import Kind, serve
from nsc.numpy.by_numpy import sort_by_numpy
from nsc.runtime.build import prebuilt

DTYPES = ["bool", "uint8", "int16", "uint32", "int32", "int64", "float16", "float32", "float64"]


def drawn(data, dtype, shape):
    """Return an array with many equal values; numbers with NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = (rng.normal(size=shape) * data.draw(st.sampled_from([2, 50]))).astype(dtype)
    if x.dtype.kind == "f":
        for value in (np.nan, np.inf, -0.0):
            x[rng.random(shape) < data.draw(st.sampled_from([0, 0.1, 0.7]))] = value
    return x


@settings(deadline=None, max_examples=150)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), n=st.sampled_from([1, 2, 3, 9, 40, 300]))
def test_numpy_sorts_and_selects_as_kernels_do(data, dtype, n):
    x = np.moveaxis(drawn(data, dtype, (6, n)), -1, axis := data.draw(st.integers(0, 1)))
    descending = data.draw(st.booleans())
    order = stable_order(x, axis, descending)
    k = data.draw(st.integers(1, n))
    some = data.draw(st.permutations(range(n)))[:k]
    for ranks in (None, range(k), range(n - 1, n - 1 - k, -1), some, {0, n // 2, max(0, n // 2 - 1), n - 1}):
        ranks = None if ranks is None else tuple(ranks)
        expected = order if ranks is None else order.take(ranks, axis)
        if ranks in (None, tuple(range(k))):
            places = sort_by_numpy(x, axis, ranks, descending, np.dtype(np.int64)).indices
            assert np.array_equal(places, expected)
        if descending and ranks is not None:
            continue
        values = sort_by_numpy(x, axis, ranks, descending).values
        wanted = np.take_along_axis(x, expected, axis)
        assert values.dtype == x.dtype
        assert np.array_equal(values, wanted, equal_nan=x.dtype.kind == "f")


@pytest.mark.parametrize(
    ("shape", "size", "origin"),
    [
        ((9, 40), (2, 3), (0, 1)),
        ((9, 30, 3), (3, 3, 1), (1, -1, 0)),  # channels
        ((9, 4, 8), (3, 1, 1), (1, 0, 0)),  # a column
        ((5, 2, 4, 30), (2, 1, 1, 3), (0, 0, 0, 1)),  # axes that are moved
    ],
)
def test_a_kernel_and_numpy_give_the_same_filter(shape, size, origin):
    x = np.random.default_rng(0).integers(0, 99, shape, np.uint8)
    for mode in {*MODES} - {"shrink"}:
        by_peer = exact.rank_filter(x, 1, size, mode, 7, origin)
        with exact.prepare():
            assert np.array_equal(exact.rank_filter(x, 1, size, mode, 7, origin), by_peer)


class Clock:
    """A clock of calls: a peer takes 3 s a sample, a kernel 1 s."""

    def __init__(self, monkeypatch):
        self.now, self.built = 0.0, []
        monkeypatch.setattr(choosing.time, "perf_counter", lambda: self.now)

    def kind(self, kept=None, build_seconds=1000.0, factor=3.0):
        return Kind(lambda: kept, lambda: self.built.append(self.now) or "kernel", build_seconds, factor)

    def call(self, kind, samples, by_kernel=1.0):
        def work(kernel):
            self.passes(samples * (by_kernel if kernel else 3.0))
            return kernel

        return serve(lambda: kind, samples, 10 * samples, work, lambda share: self.passes(3 * 16) or 16)

    def passes(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_a_kernel_that_another_thread_builds_is_not_lost(clock):
    """It is built between one thread's look for a kept one and that thread's note of what it found."""
    builds = threading.Thread(target=lambda: clock.call(kind, 300))

    def kept():
        if not builds.ident:
            builds.start()
            builds.join(0.2)

    kind = Kind(kept, lambda: "kernel", 500.0, 3.0)
    assert clock.call(kind, 300) is None
    clock.call(kind, 300)
    builds.join()
    assert clock.call(kind, 300) == "kernel"


def test_a_kernel_is_built_once_calls_have_lost_its_price(clock):
    kind = clock.kind()
    served = [clock.call(kind, 300) for _ in range(6)]
    # The first call is timed; then each loses 600 s.
    assert served == [None, None, "kernel", "kernel", "kernel", "kernel"]
    assert len(clock.built) == 1


@settings(deadline=None, max_examples=60, suppress_health_check=list(__import__("hypothesis").HealthCheck))
@given(sizes=st.lists(st.integers(300, 5000), min_size=1, max_size=30), price=st.integers(1, 20_000))
def test_no_program_takes_more_than_twice_the_best_choice(sizes, price):
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch)
        kind = clock.kind(build_seconds=price)
        for size in sizes:
            clock.call(kind, size)
    total = clock.now + price * len(clock.built)
    best = min(3 * sum(sizes), price + sum(sizes))
    probe = 3 * (16 + sizes[0])
    assert total <= 2 * best + probe


def test_a_kernel_that_is_slower_here_is_left(clock):
    kind = clock.kind(kept="kernel")
    assert [clock.call(kind, 600, by_kernel=9.0) for _ in range(5)] == [*["kernel"] * 3, None, None]


def test_a_kernel_is_not_left_for_one_slow_call(clock):
    kind = clock.kind(kept="kernel")
    assert [clock.call(kind, 600, by_kernel=seconds) for seconds in (9.0, 1.0, 9.0, 9.0)] == ["kernel"] * 4


def test_a_large_first_call_is_decided_by_a_share_of_it(clock):
    assert clock.call(clock.kind(), 16 * 32) == "kernel"
    assert clock.call(clock.kind(), 16 * 32 - 1) is None


def test_what_cannot_be_built_is_tried_once_and_warned_of(clock, monkeypatch):
    kind = clock.kind(build_seconds=1.0)

    def fails():
        clock.built.append(clock.now)
        raise BuildError("the compiler failed")

    monkeypatch.setattr(kind, "_built", fails)
    with pytest.warns(RuntimeWarning, match="the compiler failed"):
        assert [clock.call(kind, 600) for _ in range(5)] == [None] * 5
    assert len(clock.built) == 1
    with pytest.raises(BuildError), exact.prepare():
        clock.call(kind, 600)


@pytest.mark.parametrize("named", [True, False])
def test_with_prebuilt_libraries_no_compiler_is_missed_but_one_that_is_named(clock, named, monkeypatch):
    kind = clock.kind(build_seconds=1.0)

    def fails():
        raise ToolchainError(f"no compiler, {named}")

    monkeypatch.setattr(kind, "_built", fails)
    monkeypatch.setattr(prebuilt, "_folder", lambda: Path("sortnets_kernels"))
    monkeypatch.setattr(prebuilt, "level_here", lambda: "generic")
    for variable in ("NSC_CXX", "NSC_CXXFLAGS"):
        monkeypatch.delenv(variable, raising=False)
    if named:
        monkeypatch.setenv("NSC_CXX", "none-such")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [clock.call(kind, 600) for _ in range(5)] == [None] * 5
    assert len(caught) == named


def test_a_process_finds_kept_kernels_without_the_compiler_of_networks(tmp_path):
    """`prepare` keeps kernels of samples and of windows. A changed library is not used."""
    code = """
import sys
import numpy as np, nsc.numpy
from nsc.join import choosing
x = np.random.default_rng(0).random((7, 50_000), dtype=np.float32)
calls = (
    lambda: nsc.numpy.median(x, axis=0),
    lambda: nsc.numpy.median_filter(x, 3),
    lambda: nsc.numpy.rolling(x, 5).median(),
)
{}
print("nsc.compiler.network" in sys.modules, choosing.Kind is not None)
"""
    prepared = "with nsc.numpy.prepare():\n    [call() for call in calls]"
    served = (
        "choosing._LOADING = 0.001\nchoosing.LEAST_SAMPLES = 1\nchoosing.Kind.build = lambda self: None\n"
        "before = nsc.numpy.samples.ExactFunction.call\ncalled = []\n"
        "nsc.numpy.samples.ExactFunction.call = lambda *a, **k: called.append(0) or before(*a, **k)\n"
        "[call() for call in calls]\nassert called"
    )
    environment = {**os.environ, "NSC_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def run(body):
        return subprocess.run(
            [sys.executable, "-c", code.format(body)], env=environment, capture_output=True, text=True
        )

    assert run(prepared).stdout.split()[0] == "True"
    assert run(served).stdout.split()[0] == "False", run(served).stderr
    for library in tmp_path.glob("*.so"):
        library.write_bytes(library.read_bytes()[:-1])
    assert "AssertionError" in run(served).stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_while_a_kernel_is_built_goes_on():
    code = """
import os, threading, time
import nsc.join.choosing as choosing
building, ends = threading.Event(), threading.Event()
kinds = [choosing.Kind(lambda: None, lambda: (building.set(), ends.wait())[1], 1.0, 2.0) for _ in range(2)]
def build():
    with choosing.prepare():
        kinds[0].chosen(1, lambda share: 1)
threading.Thread(target=build, daemon=True).start()
building.wait()
child = os.fork()
if child == 0:
    ends.set()
    with choosing.prepare():
        os._exit(0 if [kind.chosen(1, lambda share: 1) for kind in kinds] == [True, True] else 1)
status = os.waitpid(child, 0)[1]
ends.set()
os._exit(os.waitstatus_to_exitcode(status))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_calls_go_on_after_the_main_thread():
    """Threads that outlive it, and functions of atexit, do their work alone."""
    code = """
import atexit, threading, time
import numpy as np
import nsc.numpy
from nsc.runtime.devices import threads
threads.LEAST_WORK = 1
x = np.random.default_rng(0).random((9, 40_000), dtype=np.float32)
def work():
    assert np.array_equal(nsc.numpy.sort(x, axis=0, workers=2), np.sort(x, axis=0))
    print("done", flush=True)
def later():
    threading.main_thread().join()
    work()
atexit.register(work)
threading.Thread(target=later).start()
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert done.stdout.split() == ["done", "done"], done.stderr


@pytest.mark.parametrize("where", ["concurrent.futures.ThreadPoolExecutor.submit", "threading.Event.wait"])
def test_nothing_is_written_after_an_interrupt(where, monkeypatch):
    from nsc.runtime.devices import threads

    home, _, name = where.rpartition(".")
    before = getattr(pkgutil.resolve_name(home), name)
    written, interrupts = [], [KeyboardInterrupt, KeyboardInterrupt]

    def interrupted(*arguments, **options):
        result = before(*arguments, **options)
        if interrupts and threading.current_thread() is threading.main_thread():
            while not written:  # a helper is at work
                time.sleep(0.001)
            raise interrupts.pop()
        return result

    def do(part, parts):
        written.append(None)
        is_helper = threading.current_thread() is not threading.main_thread()
        time.sleep(0.5 if is_helper else 0.1)
        written[written.index(None)] = part

    threads.share_out(lambda part, parts: None, 2, 2)  # the pool has its thread
    monkeypatch.setattr(where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        threads.share_out(do, 2, 3)
    assert None not in written
    count = len(written)
    time.sleep(0.2)
    assert len(written) == count


SURPRISES = [
    (lambda x: exact.median_filter(x, (3, 3)), r"\(3, 3, 1\) for colours .* \(1, 3, 3\) for a batch"),
    (lambda x: exact.rank_filter(x, None, 3), "rank must be an integer, got None"),
    (lambda x: exact.median_filter(x, 3, "constant", 1e39), "a number that float32 has"),
    (lambda x: exact.median(np.ma.array(x.astype(np.uint8))), r"x.astype\(float\).filled"),
    (lambda x: exact.median(x, weights=np.arange(5)), r"shape \(5, 6, 3\), got \(5,\); .* axis=0"),
    (lambda x: exact.median(x.astype(object)), r"x.astype\(float\)"),
]


@pytest.mark.parametrize(("call", "message"), SURPRISES)
def test_what_would_surprise_is_refused_with_what_to_do(call, message):
    with pytest.raises(nsc.NscError, match=message):
        call(np.zeros((5, 6, 3), np.float32))


@pytest.mark.parametrize("weights", [None, np.random.default_rng(1).random((1000, 129))])
def test_trimmed_means_do_not_depend_on_how_samples_are_cut(weights):
    x = np.random.default_rng(0).random((1000, 129))
    whole = exact.trimmed_mean(x, 0.1, axis=0, weights=weights)
    for column in (0, 128):
        w = None if weights is None else weights[:, column]
        assert exact.trimmed_mean(x[:, column], 0.1, weights=w) == whole[column]


def test_torch_sorts_tensors_until_a_kernel_has_paid(monkeypatch):
    torch = pytest.importorskip("torch")
    from nsc.operators import exact as operators

    by_kernel, sort = [], operators.CpuSort.sorted
    monkeypatch.setattr(operators.CpuSort, "sorted", lambda *a: by_kernel.append(a) or sort(*a))
    op, few = nsc.compile("odd_even", 9), torch.randint(9, (3, 9)).float()
    by_torch = op.hard_sort(few)
    assert not by_kernel
    with exact.prepare():
        assert all(map(torch.equal, op.hard_sort(few), by_torch))
    assert by_kernel


@settings(deadline=None, max_examples=120)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), n=st.integers(1, 40))
def test_small_arrays_are_served_as_others(data, dtype, n):
    """By NumPy's own functions, or what takes their place."""
    x = drawn(data, dtype, n)
    k, largest = data.draw(st.integers(1, n)), data.draw(st.booleans())
    calls = (
        lambda x: exact.sort(x),
        lambda x: exact.argsort(x),
        lambda x: exact.topk(x, k, largest=largest).indices,
        lambda x: exact.topk(x, k, largest=largest).values,
        lambda x: exact.select(x, k - 1),
        lambda x: exact.median(x),
        lambda x: exact.nanmedian(x),
        lambda x: exact.quantile(x, [0.3, 0.5]),
    )
    for call in calls:
        small = call(x)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("nsc.numpy.calls._SMALL", 0)
            general = call(x)
        assert small.dtype == general.dtype
        assert np.array_equal(small, general, equal_nan=small.dtype.kind == "f")
