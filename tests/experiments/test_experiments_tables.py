"""Tables: which runs they need, and their commands from the request to the files."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from experiments import cli, making, methods, paper
from experiments.data import DATA
from experiments.profiles import PROFILES
from experiments.run import Result as Training
from experiments.run import Run
from experiments.tables import TABLES, large
from experiments.tables.plan import TUNING_SEED, PlannedPanel, Settings
from experiments.training import TASKS
from experiments.writing import json_table

pytestmark = pytest.mark.nightly("tables of trainings are made")

SHORT = {"images": 60, "images_a_step": 20, "validations": 1, "validation": 20, "test": 30, "seeds": 2}
TINY = replace(PROFILES["quick"], model="half", **SHORT)


def settings(table: str, profile: str) -> Settings:
    chosen = PROFILES[profile]
    return Settings(chosen, tuple((name, "0") for name in TABLES[table].data(chosen)), 2)


def panels(table: str, profile: str) -> tuple[PlannedPanel, ...]:
    return TABLES[table].plan(settings(table, profile), {})


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("table", TABLES)
def test_every_cell_has_a_run_of_each_seed(table: str, profile: str) -> None:
    for panel in panels(table, profile):
        places = Counter((p.row.title, p.column.title) for p in panel.runs)
        assert set(places.values()) == {2}
        for planned in panel.runs:
            assert planned.run.task in TASKS
            assert DATA[planned.run.data].kind in TABLES[table].kinds
            assert 1 <= planned.run.validations <= planned.run.steps
        runs = [planned.run for planned in panel.runs]
        assert len({run.key for run in runs}) == len(runs)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("table", TABLES)
def test_a_temperature_is_tuned_by_shorter_runs_that_no_table_shows(table: str, profile: str) -> None:
    shown = {p.run for panel in panels(table, profile) for p in panel.runs}
    longest = max(run.steps for run in shown)
    tuning = TABLES[table].tuning(settings(table, profile))
    for (method, temperature), run in tuning.items():
        assert temperature in method.grid
        assert run.temperature == temperature
        assert run.seed == TUNING_SEED
        assert run.steps < longest
    tried = {method.name: [t for m, t in tuning if m == method] for method, _ in tuning}
    assert all(list(method.grid) == tried[method.name] for method, _ in tuning)
    if table in ("mnist", "recipe", "svhn", "topk"):
        assert tried


@pytest.mark.parametrize("table", ["mnist", "networks", "svhn", "large", "ablation"])
def test_the_papers_profile_has_the_papers_cells(table: str) -> None:
    for panel in panels(table, "paper"):
        for planned in panel.runs:
            assert planned.paper is not None, planned
            metric = "em5" if table == "large" else "ew"
            assert paper.number(*planned.paper, metric) is not None, planned.paper


def test_the_papers_classification_has_the_papers_cells() -> None:
    (panel,) = panels("topk", "paper")
    known = [p for p in panel.runs if p.paper and paper.number(*p.paper, "top1")]
    assert len(known) == 2 * 2 * 2 * 2  # methods, data sets, models, seeds


@pytest.mark.parametrize("profile", ["quick", "standard"])
@pytest.mark.parametrize("table", ["mnist", "networks", "recipe", "large"])
def test_all_n_learn_from_as_many_images(table: str, profile: str) -> None:
    for panel in panels(table, profile):
        if "As many samples" not in panel.title:
            images = [p.run.steps * p.run.batch * p.run.n for p in panel.runs]
            assert max(images) / min(images) < 1.02


def test_the_papers_protocol_of_large_n() -> None:
    equal, fixed = panels("large", "paper")
    assert {p.run.batch * p.run.n for p in equal.runs} == {4096}
    assert {p.run.batch for p in fixed.runs} == {4}
    assert {p.run.steps for p in (*equal.runs, *fixed.runs)} == {10_000}
    for planned in equal.runs:
        steepness = planned.run.temperature * methods.depth(planned.run.method, planned.run.n)
        assert steepness == pytest.approx(float(planned.row.title.rpartition("s = ")[2]))


def test_steepness_is_that_of_the_column() -> None:
    by_steepness, _, by_factor = panels("sensitivity", "paper")
    for planned in by_steepness.runs:
        depth = methods.depth(planned.run.method, planned.run.n)
        assert planned.run.temperature * depth == pytest.approx(planned.column.at)
    for planned in by_factor.runs:
        assert planned.run.temperature == 2 * planned.column.at


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the quick profile a matter of seconds."""
    monkeypatch.setitem(PROFILES, "quick", TINY)


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli.main, [str(word) for word in words], catch_exceptions=False)


FAST = ("--jobs", 1, "--method", "soft_sort", "--method", "rank_net", "--n", 5)


@pytest.mark.usefixtures("tiny")
def test_a_table_from_the_command_to_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    train = making.train

    def counted(run, *rest, **more):
        done.append(run.method)
        return train(run, *rest, **more)

    monkeypatch.setattr(making, "train", counted)
    result = invoke("mnist", *FAST, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "SoftSort" in result.output
    assert "RankNet" in result.output
    # Tuning; then two methods and two seeds.
    table = json_table.read(tmp_path / "mnist-digits-quick.json")
    assert len(done) == sum(len(tuned.grid) for tuned in table.tuned) + 4
    assert {*methods.find("soft_sort").grid} <= {*table.tuned[0].grid}
    runs = [outcome.run for outcome in table.outcomes]
    assert {run.method for run in runs} == {"soft_sort", "rank_net"}
    assert {run.seed for run in runs} == {0, 1}
    page = (tmp_path / "mnist-digits-quick.md").read_text()
    assert "Temperatures are chosen by one rule" in page
    # A finished run is not repeated, and a table that shares runs with another reads them.
    again = len(done)
    assert invoke("mnist", *FAST, "--out", tmp_path).exit_code == 0
    assert len(done) == again
    assert invoke("mnist", *FAST, "--method", "list_mle", "--out", tmp_path).exit_code == 0
    assert set(done[again:]) == {"list_mle"}
    report = invoke("report", "--out", tmp_path)
    assert report.exit_code == 0
    assert "mnist-digits-quick.png" in (tmp_path / "README.md").read_text()


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("networks", ["--n", "4"]),
        ("ablation", ["--n", "4", "--method", "bitonic"]),
        ("sensitivity", ["--n", "4", "--method", "bitonic"]),
        ("large", ["--n", "8"]),
        ("topk", ["--method", "softmax", "--method", "topk:.5,.5"]),
    ],
)
def test_every_table_on_toy_data(
    table: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = replace(large.LENGTHS["quick"], images_a_step=16, steps=3)
    monkeypatch.setattr(large, "LENGTHS", {"quick": toy})
    monkeypatch.setattr("experiments.tables.topk.STEPS", {"quick": 3})
    result = invoke(table, "--jobs", 1, "--seeds", 1, *words, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    finished = json.loads((tmp_path / f"{table}-digits-quick.json").read_text())
    assert finished["name"] == table
    for suffix in ("md", "png"):
        assert (tmp_path / f"{table}-digits-quick.{suffix}").stat().st_size > 100


def test_the_runtime_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.timing.ROUND_SECONDS", 0.002)
    works = ("P of bitonic", "values of bitonic", "bitonic", "soft_sort", "regression")
    words = (*(word for work in works for word in ("--method", work)), "--n", 4)
    result = invoke("runtime", *words, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "runtime-cpu.md").read_text()
    assert "P of Bitonic" in page
    assert "SoftSort" in page
    assert "On 1 thread" in page
    rows = json_table.read(tmp_path / "runtime-cpu.json").panels[0].rows
    assert [row.title for row in rows if row.reference] == ["values of Bitonic", "Regression"]


@pytest.mark.usefixtures("tiny")
def test_the_runs_of_a_cell_are_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seeds_done(seeds: int) -> list[tuple[str, int]]:
        """Return method and seed of the runs that the command does."""
        done: list[tuple[str, int]] = []
        train = making.train
        with monkeypatch.context() as patch:
            patch.setattr(
                making, "train", lambda run, *rest: done.append((run.method, run.seed)) or train(run, *rest)
            )
            words = ("--n", 4, "--seeds", seeds, "--jobs", 1, "--out", tmp_path)
            result = invoke("networks", *words)
        assert result.exit_code == 0, result.output
        return done

    def moved(method: str) -> None:
        """Make the kept runs of a method those of another machine."""
        for path in (tmp_path / "runs").iterdir():
            facts = json.loads(path.read_text())
            if facts["run"]["method"] == method:
                path.write_text(json.dumps({**facts, "machine": "another machine"}))

    assert sorted(seeds_done(2)) == [("bitonic", 0), ("bitonic", 1), ("odd_even", 0), ("odd_even", 1)]
    moved("bitonic")
    assert seeds_done(2) == []  # two cells, each of one machine
    assert sorted(seeds_done(3)) == [("bitonic", 0), ("bitonic", 1), ("bitonic", 2), ("odd_even", 2)]
    outcomes = json_table.read(tmp_path / "networks-digits-quick.json").outcomes
    assert len({outcome.machine for outcome in outcomes}) == 1


@pytest.mark.usefixtures("tiny")
def test_cells_that_cannot_be_told_from_the_best_get_more_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # n = 4: odd-even and bitonic overlap; n = 8: bitonic is ahead. λ = 0 is behind at both.
    levels = {"odd_even": (0.80, 0.70), "bitonic": (0.81, 0.90), "bitonic+art=0": (0.50, 0.50)}
    done: list[tuple[str, int, int]] = []

    def graded(run: Run, *rest: object) -> Training:
        done.append((run.method, run.n, run.seed))
        share = levels[run.method][run.n == 8] + 0.05 * (run.seed % 2)
        metrics = {"em": share, "ew": share, "em5": share}
        return Training(run, "", metrics, {}, ((1, share),), (), 0.0, "a machine")

    monkeypatch.setattr(making, "train", graded)
    names = [word for name in levels for word in ("--method", name)]
    words = ("networks", *names, "--n", 4, "--n", 8, "--most-seeds", 5, "--jobs", 1, "--out", tmp_path)
    assert invoke(*words).exit_code == 0
    more = [(method, n) for method, n, seed in done if seed == 4]
    assert sorted(more) == [("bitonic", 4), ("odd_even", 4)]
    assert len(done) == 3 * 2 * 2 + 2 * 3
    page = (tmp_path / "networks-digits-quick.md").read_text().replace("\n", " ")
    assert "by 2 seeds have 5: Odd-Even at n = 4; Bitonic at n = 4." in page
    assert invoke(*words).exit_code == 0
    assert len(done) == 3 * 2 * 2 + 2 * 3


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ablation", "--method", "bitonic+art=0.4"], "leave art= out"),
        (["mnist", "--scheduler", "tcp://127.0.0.1:1", "--resume"], "--resume"),
        (["mnist", "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"], "--jobs"),
        (["mnist", "--data", "svhn"], "mnist needs digits"),
        (["mnist", "--data", "mnist", "--root", "nowhere"], "nowhere"),
        (["mnist", "--method", "bogosort"], "bogosort"),
        (["topk", "--method", "odd_even"], "odd_even"),
        (["mnist", "--seeds", "5", "--most-seeds", "4"], "less than the 5 seeds"),
        (["mnist", "--device", "fpga"], "does not compute on such a device"),
        (["runtime", "--method", "bogosort"], "bogosort"),
    ],
)
def test_a_wrong_request_is_one_message(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.main, [*words, "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2
    assert result.output.count("Error: ") == 1
    assert message in result.output[result.output.index("Error: ") :]
    assert not list(tmp_path.rglob("*.md"))


def test_list_names_everything() -> None:
    output = invoke("list").output
    for name in (*TABLES, *PROFILES, *DATA, *methods.METHODS, "runtime", "topk:1"):
        assert name in output


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("resume", [True, False])
def test_resume_goes_on_from_checkpoints(
    resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.training.CHECKPOINT_SECONDS", 0.0)
    options = ("--n", "4", "--method", "odd_even", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path))
    words = ["networks", *options]
    do = making.do

    def interrupted(run, *rest, report, **more):
        def stop(what: str, step: int, steps: int) -> None:
            if step == 3:
                raise KeyboardInterrupt

        return do(run, *rest, report=stop, **more)

    with monkeypatch.context() as patch:
        patch.setattr(making, "do", interrupted)
        assert CliRunner().invoke(cli.main, words).exit_code == 130
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1
    steps: list[int] = []

    def counted(run, *rest, report, **more):
        return do(run, *rest, report=lambda what, step, total: steps.append(step), **more)

    monkeypatch.setattr(making, "do", counted)
    refused = CliRunner().invoke(cli.main, words)
    assert refused.exit_code == 2
    assert "1 run was begun" in refused.output
    assert "--resume goes on with it, --restart begins it anew" in refused.output
    assert not steps
    assert CliRunner().invoke(cli.main, [*words, "--resume" if resume else "--restart"]).exit_code == 0
    assert steps[0] == (3 if resume else 1)
    assert not list((tmp_path / "checkpoints").iterdir())
