"""Results come back from their files exactly; whatever else lies there is no result."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from works import run_of

from experiments.errors import ExperimentError
from experiments.run import Result
from experiments.store import Store

RUN = dataclasses.replace(
    run_of(0),
    temperature=0.1,
    batch=100,
    steps=10,
    learning_rate=10**-3.5,
    validations=2,
    validation=50,
    test=50,
)
RESULT = Result(
    run=RUN,
    failure="",
    test={"em": 1 / 3, "ew": 0.1 + 0.2, "em5": 1.0},
    training={"em": 0.5},
    validations=((5, 0.25), (10, 2 / 3)),
    losses=((5, 1.5e-300), (10, 0.7)),
    seconds=12.25,
    machine="a processor, 2 threads, torch 2.10 – “quoted”",
)

floats = st.floats(allow_nan=False, allow_infinity=False)
shares = st.just(1) | st.floats(0, 1)
metrics = st.dictionaries(st.sampled_from(["em", "ew", "em5"]), shares, min_size=1)
curves = st.lists(st.tuples(st.integers(0, 10**9), floats), max_size=3).map(tuple)
measured = st.fixed_dictionaries(
    {
        "failure": st.just(""),
        "test": metrics,
        "training": metrics | st.just({}),
        "validations": st.builds(lambda curve, score: (*curve, (10, score)), curves, shares),
    }
)
failed = st.fixed_dictionaries(
    {
        "failure": st.text(min_size=1),
        "test": st.just({}),
        "training": st.just({}),
        "validations": curves,
    }
)
results = st.builds(
    lambda ends, **others: Result(**others, **ends),
    run=st.builds(
        dataclasses.replace,
        st.just(RUN),
        method=st.text(),
        temperature=st.none() | floats,
        side=st.none() | st.integers(1, 99),
        seed=st.integers(),
        noise=st.just(0) | floats,
    ),
    ends=measured | failed,
    losses=curves,
    seconds=floats,
    machine=st.text(),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "out")
    store.prepare()
    return store


@given(results)
@settings(max_examples=50)
def test_a_result_comes_back_as_it_was(result: Result) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        store.prepare()
        assert not store.has(result.run)
        assert store.write(result) == Path(folder) / "runs" / f"{result.run.key}.json"
        assert repr(store.read(result.run)) == repr(result)  # repr: 0 is not 0.0, and -0.0 is not 0.0
        assert store.has(result.run)


def test_a_file_is_json_for_every_reader(store: Store) -> None:
    """Python alone writes the words NaN and Infinity."""
    diverged = dataclasses.replace(
        RESULT,
        failure="the loss is not finite at step 10",
        test={},
        training={},
        losses=((5, math.inf), (10, math.nan)),
    )
    path = store.write(diverged)

    def refuse(word: str) -> None:
        pytest.fail(f"{word} is no JSON")

    assert json.loads(path.read_text(), parse_constant=refuse)["losses"] == [[5, None], [10, None]]
    found = store.read(RUN)
    assert found is not None
    assert [step for step, _ in found.losses] == [5, 10]
    assert all(math.isnan(loss) for _, loss in found.losses)
    assert dataclasses.replace(found, losses=diverged.losses) == diverged


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_metrics_and_seconds_are_finite(store: Store, value: float) -> None:
    for result in (
        dataclasses.replace(RESULT, test={"em": value}),
        dataclasses.replace(RESULT, seconds=value),
    ):
        with pytest.raises(ExperimentError, match=f"{RUN.key} has a number that is not finite"):
            store.write(result)
    assert list((store.folder / "runs").iterdir()) == []


def test_results_of_other_runs_stay_apart(store: Store) -> None:
    other = dataclasses.replace(RUN, seed=1)
    store.write(RESULT)
    assert store.read(other) is None
    store.write(dataclasses.replace(RESULT, run=other, seconds=1.0))
    assert store.read(RUN) == RESULT
    assert store.checkpoint(RUN) == store.folder / "checkpoints" / f"{RUN.key}.pt"
    assert store.checkpoint(RUN) != store.checkpoint(other)


def damaged_texts() -> dict[str, bytes]:
    fields = dataclasses.asdict(RESULT)
    text = json.dumps(fields)

    def altered(**changes: object) -> bytes:
        return json.dumps(fields | changes).encode()

    return {
        "empty": b"",
        "cut": text.encode()[:-20],
        "not text": b"\xff\xfe" + text.encode(),
        "a key twice": (text[:-1] + ', "seconds": 1.0}').encode(),
        "a field less": json.dumps({name: fields[name] for name in fields if name != "seconds"}).encode(),
        "another run": altered(run=fields["run"] | {"seed": 1}),
        "another type": altered(run=fields["run"] | {"one_cycle": 0}),
        "NaN": text.replace("12.25", "NaN").encode(),
        "seconds as text": altered(seconds="12"),
        "an unknown metric": altered(test={"top1": 0.5}),
        "a share above 1": altered(test=fields["test"] | {"em": 1.5}),
        "a failure and metrics": altered(failure="the loss is nan at step 3 of 10"),
        "no failure and no metrics": altered(test={}, training={}),
        "no finite validation": altered(validations=[[5, None]]),
        "a step as a float": altered(validations=[[5.0, 1.0]]),
        "deep": b"[" * 100_000,
    }


@pytest.mark.parametrize("damage", damaged_texts())
def test_what_is_no_result_counts_as_missing(
    store: Store, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store.result(RUN)
    path.write_bytes(damaged_texts()[damage])
    assert store.read(RUN) is None
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(rf"{RUN.key}\.json is not the result of its run .*done again", line)
    store.write(RESULT)
    assert store.read(RUN) == RESULT


@given(data=st.data())
@settings(max_examples=20)
def test_a_cut_file_is_never_taken(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        store.prepare()
        path = store.write(RESULT)
        whole = path.read_bytes().rstrip()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        assert not store.has(RUN)


def test_a_failed_write_leaves_the_old_result(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(RESULT)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExperimentError, match="No space left on device"):
        store.write(dataclasses.replace(RESULT, seconds=1.0))
    assert store.read(RUN) == RESULT
    assert [path.name for path in (store.folder / "runs").iterdir()] == [f"{RUN.key}.json"]
