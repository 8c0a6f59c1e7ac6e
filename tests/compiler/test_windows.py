"""Catches a plan of a filter that selects another rank, by what its windows share or its loops fuse."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsc.compiler.network import Network
from nsc.compiler.windows import proving
from nsc.compiler.windows.compiling import compile_filter
from nsc.compiler.windows.fusing import Loop, fuse, plan
from nsc.compiler.windows.merging import merged
from nsc.compiler.windows.proving import prove_plan, whole_network
from nsc.contract.windows import MOST_VALUES, Window
from nsc.errors import VerificationError, WindowError

pytestmark = pytest.mark.slow("proofs and searches are long")


@st.composite
def windows(draw, most=30):
    planes, rows, columns = (draw(st.integers(1, 6)) for _ in range(3))
    planes = planes if planes * rows * columns <= most else 1
    box = planes * rows * columns
    places = draw(st.sets(st.integers(0, box - 1), min_size=1)) if draw(st.booleans()) else range(box)
    ranks = draw(st.lists(st.integers(0, len(places) - 1), min_size=1, max_size=3, unique=True))
    return Window(planes, rows, columns, tuple(ranks), tuple(sorted(places)))


@given(st.integers(0, 9), st.integers(0, 9), st.data())
def test_a_merge_selects_its_ranks_of_any_two_ascending_lists(p, q, data):
    """By the 0-1 principle, lists of zeros and ones are all that need be tried."""
    if p + q == 0:
        return
    ranks = tuple(sorted(data.draw(st.sets(st.integers(0, p + q - 1), min_size=1))))
    merge = merged(p, q, ranks)
    ones = itertools.product(range(p + 1), range(q + 1))
    inputs = np.array([[0] * (p - a) + [1] * a + [0] * (q - b) + [1] * b for a, b in ones])
    outputs = merge.network.apply(inputs)[:, list(merge.outputs)]
    assert (outputs == np.sort(inputs, axis=1)[:, list(ranks)]).all()
    unused = sorted(set(range(p + q)) - set(merge.used))
    inputs[:, unused] = 7
    assert (merge.network.apply(inputs)[:, list(merge.outputs)] == outputs).all()


@settings(max_examples=12)
@given(windows(), st.randoms(use_true_random=False))
def test_every_plan_is_proved_and_its_proof_is_of_what_a_kernel_runs(window, random):
    """Run the loops of a step on a row of pixels, as a kernel does: each result is its window's rank."""
    planned = plan(window)
    proofs = prove_plan(planned)
    assert len(proofs) == planned.step
    assert all(proofs)
    width = 12 + window.columns - 1
    rows = window.planes * planned.rows
    image = np.array([[random.randrange(50) for _ in range(width)] for _ in range(rows)])
    results = run_step(planned, fuse(planned), image, 12)
    for result in range(planned.step):
        for x in range(12):
            values = np.array(
                [
                    image[plane * planned.rows + result + row, x + column]
                    for plane, row, column in window.offsets
                ]
            )
            assert results[result][x] == np.sort(values)[[*window.ascending]].tolist()
            network, outputs = whole_network(planned, result)
            assert network.apply(values)[[*outputs]].tolist() == results[result][x]


def run_step(planned, loops: tuple[Loop, ...], image, places):
    lists = {}
    for loop in loops:
        made = {}
        for instance in loop.instances:
            stage = planned.stages[instance.stage]
            values = []
            for read in stage.reads:
                at = read.shift + instance.shift
                if read.stage is None:
                    row = image[read.index]
                elif (read.stage, at) in made:
                    values.append(made[read.stage, at][read.index])
                    continue
                else:
                    row = lists[read.stage][read.index]
                values.append(row[at : at + places + loop.reach])
            out = stage.network.apply(np.array(values).T).T
            made[instance.stage, instance.shift] = [out[wire] for wire in stage.outputs]
        if loop.kept is None:
            return [np.array(made[result])[:, :places].T.tolist() for result in planned.results]
        lists[loop.kept] = made[loop.kept, 0]
    raise AssertionError("the last loop makes the results")


def test_sharing_saves_minima_and_maxima():
    """The figures of docs/exact.md."""
    page = (Path(__file__).parents[2] / "docs" / "exact.md").read_text("utf-8")
    found, rows = {}, []
    for size in (3, 5, 7):
        compiled = compile_filter(Window.of(size))
        found[size] = (compiled.operations, compiled.plan.half_operations)
        rows.append(f"| {size} × {size} | {compiled.operations:g} | {compiled.whole_operations} |")
    assert found == {3: (18.5, 18.5), 5: (69.25, 69.25), 7: (177.5, 177.5)}
    assert "\n".join(rows) in page


def test_a_proof_refutes_a_plan_that_selects_another_rank(monkeypatch):
    network, output = whole_network(plan(Window(1, 3, 3, (4,))))
    wrong = Network.from_comparators(9, network.comparators[:-1])
    monkeypatch.setattr(proving, "whole_network", lambda *_: (wrong, output))
    with pytest.raises(VerificationError, match="does not have rank-4"):
        prove_plan(plan(Window(1, 3, 3, (4,))))


@pytest.mark.parametrize("size", [(1, 1), (4, 3)])
def test_the_same_window_gives_the_same_text(size):
    first, second = (compile_filter(Window.of(size, 0)) for _ in range(2))
    assert dict(first.package.files) == dict(second.package.files)


def test_windows_as_users_write_them():
    assert (
        Window.of(3)
        == Window.of("3x3")
        == Window.of((3, 3))
        == Window.of(" 3 × 3 ", 4)
        == Window(1, 3, 3, (4,))
    )
    assert Window.of((3, 3, 3)) == Window(3, 3, 3, (13,))
    assert Window.of((1, 3, 5), -1) == Window(1, 3, 5, (14,))
    assert Window.of("2x5x3", 1).label == "rank_1_2x5x3"
    assert Window.of(np.int64(3)) == Window.of(np.array([3, 3]))


@pytest.mark.parametrize(
    ("size", "rank", "message"),
    [
        ("3", None, "such as 3"),
        ("3x", None, "such as 3"),
        (3.0, None, "such as 3"),
        (True, None, "such as 3"),
        ((3, 3.5), None, "such as 3"),
        ((3,), None, "such as 3"),
        (None, None, "such as 3"),
        (0, None, "at least 1 value"),
        ((3, -3), None, "at least 1 value"),
        (16, None, f"at most {MOST_VALUES} values, got 16x16 = 256"),
        (3, 9, "0 … 8"),
        (3, -10, "0 … 8"),
        (3, 1.5, "must be an integer"),
        (3, True, "must be an integer"),
    ],
)
def test_what_is_no_window_is_refused(size, rank, message):
    with pytest.raises(WindowError, match=message):
        Window.of(size, rank)
