"""Finished tables: what they say follows from the outcomes, and no file is half written."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import statistics
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from works import run_of

from experiments.errors import ExperimentError
from experiments.run import Result
from experiments.writing import comparing, figures, json_table, report, show, write
from experiments.writing.explaining import at_an_edge, how_to_read
from experiments.writing.files import report_of, tables
from experiments.writing.markdown import markdown, metric_table
from experiments.writing.quantities import METRICS
from experiments.writing.records import (
    Axis,
    Cell,
    Column,
    Finished,
    Outcome,
    Panel,
    PaperNumber,
    Row,
    Tuned,
)

pytestmark = pytest.mark.slow("tables of the experiments are drawn")

pytest.importorskip("matplotlib")

RUN = replace(
    run_of(0),
    model="half",
    batch=100,
    steps=1000,
    learning_rate=2e-3,
    one_cycle=True,
    noise=0.1,
    validations=4,
    validation=5000,
    test=30000,
)
RESULTS = Path(__file__).parents[2] / "experiments" / "results"
EM5, SECONDS = METRICS["em5"], METRICS["seconds"]


def cell(row, column, values, paper=None, n=5, metric="em5", data="digits"):
    """Return a cell with a run of each value; None is a run that failed."""
    outcomes = []
    for seed, value in enumerate(values):
        run = replace(RUN, method=row, n=n, seed=seed, data=data)
        if value is None:
            outcomes.append(Outcome(run, "the loss is not a number at step 40", {}, {}, 9.0, "a machine"))
        else:
            training = {metric: min(1.0, value + 0.03)}
            outcomes.append(Outcome(run, "", {metric: value}, training, 30.0, "a machine"))
    number = {} if paper is None else {metric: PaperNumber(*paper)}
    return Cell(row, column, tuple(outcomes), number)


def panel(**changes):
    """Return two methods at two n: the network is ahead at 15, and not told apart at 5."""
    cells = (
        cell("Network", "n = 5", (0.40, 0.42), (86.3, 0.9)),
        cell("Network", "n = 15", (0.44, 0.46), (87.6,), n=15),
        cell("Other", "n = 5", (0.41, 0.42, None), (77.7,)),
        cell("Other", "n = 15", (0.40, 0.42), n=15),
    )
    rows, columns = (Row("Network"), Row("Other")), (Column("n = 5", 5), Column("n = 15", 15))
    return replace(Panel("", Axis("n"), ("em5",), rows, columns, cells), **changes)


def finished(*panels, **changes):
    tuned = (Tuned("Other", "", "τ", "em5", (0.5, 1.0, 2.0), (0.31, 0.38, None), 1.0),)
    table = Finished(
        name="mnist",
        title="Four-digit numbers",
        source="table 1",
        profile="quick",
        command="python -m experiments mnist",
        panels=panels or (panel(),),
        tuned=tuned,
        deviations=("Images are smaller than the paper's.",),
        notes=("A note.",),
        seconds=120.0,
    )
    return replace(table, **changes)


def times(**changes):
    """Return times and memory of two methods, and one that was left out."""
    outcomes = {
        ("Network", 4): {"seconds": 1.1e-6, "bytes": 840.0},
        ("Network", 1024): {"seconds": 0.05, "bytes": 5.5e8},
        ("Other", 4): {"seconds": 7.1e-6, "bytes": 1e3},
    }
    cells = [
        Cell(row, f"n = {n}", (Outcome(None, "", test, {}, 0.0, "a machine"),), {})
        for (row, n), test in outcomes.items()
    ]
    slow = Outcome(None, "a call takes more than 20 s", {}, {}, 0.0, "a machine")
    cells.append(Cell("Other", "n = 1024", (slow,), {"seconds": PaperNumber(31.0)}))
    only = Panel(
        title="",
        axis=Axis("n", "log"),
        metrics=("seconds", "bytes"),
        rows=(Row("Network"), Row("Other")),
        columns=(Column("n = 4", 4), Column("n = 1024", 1024)),
        cells=tuple(cells),
    )
    new = {"name": "runtime", "title": "Time and memory", "source": "table 4", "tuned": (), "seconds": None}
    return finished(only, **{**new, **changes})


def test_a_figure_has_mean_deviation_and_error():
    figure = figures.figure([0.1, 0.2, 0.6])
    assert figure.mean == pytest.approx(0.3)
    assert figure.deviation == pytest.approx(math.sqrt(0.07))
    assert figure.error == pytest.approx(math.sqrt(0.07 / 3))
    assert figures.shown_figure(EM5, figure) == "30.0 ± 26.5 (15.3)"
    assert figures.figure([]) is None


def test_one_seed_has_no_error_and_is_never_told_apart():
    one, other = figures.figure([0.9]), figures.figure([0.1])
    assert one.error is None
    assert figures.order(EM5, one, other) == 0
    assert figures.shown_figure(EM5, one) == "90.0"


@pytest.mark.parametrize(
    ("metric", "samples", "text"),
    [
        ("em5", 6000, "40.0 (0.6 by the sample)"),
        ("em", 2000, "40.0 (1.1 by the sample)"),
    ],
)
def test_a_share_of_one_seed_has_the_error_by_the_sample(metric, samples, text):
    one = figures.figure_of(cell("Network", "n = 15", (0.4,), n=15, metric=metric), metric)
    assert one.sampling_error == pytest.approx(math.sqrt(0.4 * 0.6 / samples))
    assert figures.shown_figure(METRICS[metric], one) == text
    assert one.error is None
    assert figures.order(METRICS[metric], one, replace(one, mean=0.1)) == 0


@pytest.mark.parametrize(
    ("values", "metric", "changes"),
    [
        ((0.4, 0.5), "em5", {}),  # the error over seeds says more
        ((0.4,), "top1", {}),  # how many images were measured is not recorded
        ((0.0,), "em5", {}),  # the formula would call 0 certain
        ((0.4,), "em5", {"test": 4}),
    ],
)
def test_no_error_by_the_sample_where_it_is_not_known(values, metric, changes):
    whole = cell("Network", "n = 5", values, metric=metric)
    outcomes = tuple(replace(o, run=replace(o.run, **changes)) for o in whole.outcomes)
    assert figures.figure_of(replace(whole, outcomes=outcomes), metric).sampling_error is None
    assert figures.figure_of(replace(whole, outcomes=()), metric) is None


SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=4)


@given(SHARES, SHARES)
def test_an_order_is_reversed_with_its_sides(one, other):
    one, other = figures.figure(one), figures.figure(other)
    for metric in (EM5, SECONDS):
        assert figures.order(metric, one, other) == -figures.order(metric, other, one)
        assert figures.order(metric, one, one) == 0


@given(SHARES, SHARES)
def test_whoever_is_ahead_is_ahead_by_more_than_two_errors(one, other):
    one, other = figures.figure(one), figures.figure(other)
    if figures.order(EM5, one, other) == 1:
        assert one.mean - other.mean > 2 * math.hypot(one.error, other.error)


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("em5", 1.0, "100.0"),
        ("seconds", 52e-9, "52 ns"),
        ("seconds", 1.25e-3, "1.2 ms"),
        ("bytes", 4.9e9, "4.9 GB"),
    ],
)
def test_values_are_shown_with_their_units(metric, value, text):
    assert figures.shown(METRICS[metric], value) == text


def test_differences_have_a_sign_or_are_multiples():
    figure = figures.figure([0.5])
    assert figures.shown_difference(EM5, figure, PaperNumber(77.7)) == "−27.7"
    assert figures.shown_difference(EM5, figure, PaperNumber(49.0)) == "+1.0"
    assert figures.shown_difference(EM5, figure, PaperNumber(50.0)) == "0.0"
    assert figures.shown_difference(SECONDS, figure, PaperNumber(2.0)) == "× 0.25"


def test_the_markdown_of_a_metric():
    assert metric_table(panel(), "em5").splitlines() == [
        "|  |  | n = 5 | n = 15 |",
        "| --- | --- | ---: | ---: |",
        "| Network | ours | **41.0 ± 1.4 (1.0)** | **45.0 ± 1.4 (1.0)** |",
        "|  | paper | 86.3 ± 0.9 | 87.6 |",
        "|  | difference | −45.3 | −42.6 |",
        "| Other | ours | **41.5 ± 0.7 (0.5)**, 2 of 3 | 41.0 ± 1.4 (1.0) |",
        "|  | paper | 77.7 |  |",
        "|  | difference | −36.2 |  |",
    ]


@pytest.mark.parametrize(("metric", "ahead", "behind"), [("em5", 0.9, 0.1), ("seconds", 1.0, 9.0)])
def test_a_reference_is_never_first(metric, ahead, behind):
    values = {"Reference": ahead, "Network": (ahead + behind) / 2, "Other": behind}
    columns = (Column("n = 5", 5), Column("n = 15", 15))
    cells = tuple(
        cell(row, column.title, (v, v), (50.0 + i,), metric=metric)
        for i, (row, v) in enumerate(values.items())
        for column in columns
    )
    rows = tuple(Row(row, reference=row == "Reference") for row in values)
    only = panel(metrics=(metric,), rows=rows, columns=columns, cells=cells)
    assert [comparing.best(only, metric, column.title) for column in columns] == [["Network"]] * 2
    assert all("Network is first" in sentence for sentence in comparing.who_is_first(only))
    assert "Reference" not in " ".join(comparing.who_is_first(only))
    bold = [line.split(" | ")[0] for line in metric_table(only, metric).splitlines() if "**" in line]
    assert bold == ["| Network"]
    (claim,) = comparing.claims(only)
    assert sum(map(len, claim.places)) == len(columns)
    unflagged = replace(only, rows=tuple(map(Row, values)))
    assert comparing.best(unflagged, metric, "n = 5") == ["Reference"]


def test_who_is_first():
    assert comparing.who_is_first(panel()) == [
        "n = 5: Other and Network cannot be told apart. In the paper Network is first of 2 rows.",
        "n = 15: Network is first, 4.0 points ahead of Other, 2.8 standard errors.",
    ]
    assert comparing.who_is_first(times().panels[0]) == [
        "n = 4: Network is first; Other takes 6.5 times as much."
    ]


def test_the_papers_orders_are_judged_one_by_one():
    values = {"A": (0.50, 0.52), "B": (0.40, 0.42), "C": (0.40, 0.43), "D": (0.30, 0.31)}
    paper = {"A": 90.0, "B": 80.0, "C": 70.0, "D": 95.0}
    cells = tuple(cell(row, "n = 5", v, (paper[row],)) for row, v in values.items())
    one = panel(rows=tuple(map(Row, values)), columns=(Column("n = 5", 5),), cells=cells)
    judged = {claim.text: claim.places for claim in comparing.claims(one)}
    here = ("n = 5",)
    agree, unclear, disagree = (here, (), ()), ((), here, ()), ((), (), here)
    assert judged == {
        "A before B": agree,
        "A before C": agree,
        "B before C": unclear,
        "D before A": disagree,
        "D before B": disagree,
        "D before C": disagree,
    }
    text = markdown(finished(one))
    assert "| A before B | EM5 | n = 5 |  |  |" in text
    assert "| D before C | EM5 |  |  | n = 5 |" in text


def columns_in_two_orders(metric, axis):
    """Return one method whose second column is better in the paper, and worse by ours."""
    cells = (
        cell("Network", "first", (0.40, 0.42), (50.0,), metric=metric),
        cell("Network", "second", (0.30, 0.32), (60.0,), n=15, metric=metric),
    )
    places = (None, None) if axis.scale == "names" else (5, 15)
    columns = tuple(Column(name, at) for name, at in zip(("first", "second"), places, strict=True))
    return panel(metrics=(metric,), axis=axis, rows=(Row("Network"),), columns=columns, cells=cells)


def test_columns_are_compared_where_the_metric_measures_the_same_at_every_n():
    (claim,) = comparing.claims(columns_in_two_orders("em5", Axis("n")))
    assert (claim.text, claim.metric) == ("second before first", "em5")
    assert claim.places == ((), (), ("Network",))


@pytest.mark.parametrize(
    ("metric", "axis"),
    [
        *((metric, Axis("n")) for metric in METRICS if metric != "em5"),
        ("em5", Axis("n and λ", "names")),
        ("em5", Axis("λ", "linear")),
        ("top1", Axis("data and model", "names")),
    ],
)
def test_columns_that_differ_whatever_the_method_are_not_compared(metric, axis):
    assert comparing.claims(columns_in_two_orders(metric, axis)) == []


def one_seed():
    cells = tuple(cell(row, "n = 5", (v,)) for row, v in (("Network", 0.9), ("Other", 0.1)))
    return finished(panel(cells=cells))


def test_one_seed_has_nothing_bold_and_says_why():
    conclusions, figures_of_table = markdown(one_seed()).split("In the paper: ")
    figures_of_table, _ = figures_of_table.split("\n## Training and test")
    assert "| Network | 90.0 (0.4 by the sample) |" in figures_of_table
    assert "**" not in figures_of_table
    below = figures_of_table[figures_of_table.rindex("|") :]
    assert "contains neither the spread over seeds nor that over other test images" in below
    assert "Network has the highest EM5; with one seed the rows cannot be told apart." in conclusions
    assert "Shares of one seed have no error over seeds" in how_to_read([one_seed()])
    assert "√(p (1 − p) / m)" in how_to_read([one_seed()])
    assert "bold" not in how_to_read([one_seed()])
    assert "bold" in how_to_read([one_seed(), finished()])


def tuned(row, chosen, column=""):
    return Tuned(row, column, "τ", "em5", (2.0, 0.5, 1.0), (0.3, 0.4, None), chosen)


def test_temperatures_at_an_edge_of_their_grid_are_named():
    low, inside, high = tuned("A, λ = 0", 0.5), tuned("C", 1.0), tuned("B", 2.0, "n = 5")
    assert at_an_edge([inside]) == ""
    assert at_an_edge([low, inside, high]) == (
        "The chosen temperature is the smallest of its grid for A, λ = 0, and the largest of its grid for B, "
        "n = 5: the best one may lie beyond the grid."
    )


def test_a_result_becomes_an_outcome():
    result = Result(RUN, "", {"em5": 0.5}, {"em5": 0.6}, ((10, 0.4),), ((10, 1.5),), 12.0, "a machine")
    assert Outcome.of(result) == Outcome(RUN, "", {"em5": 0.5}, {"em5": 0.6}, 12.0, "a machine")


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.none() | st.floats(0, 1), max_size=3), min_size=2, max_size=2),
    st.none() | st.tuples(st.floats(0, 100), st.none() | st.floats(0, 10)),
    st.none() | st.floats(0, 1e9),
    st.text(),
)
def test_a_table_that_is_written_is_read_as_it_was(tmp_path_factory, values, paper, seconds, note):
    cells = tuple(cell(f"row {i}", "n = 5", v, paper) for i, v in enumerate(values))
    rows = tuple(Row(f"row {i}", reference=bool(i)) for i in range(len(values)))
    table = finished(panel(rows=rows, cells=cells), notes=(note,), seconds=seconds)
    path = tmp_path_factory.mktemp("table") / f"{table.stem}.json"
    path.write_text(json_table.to_json(table), encoding="utf-8")
    assert json_table.read(path) == table


def _edit(change):
    def edited(text):
        facts = json.loads(text)
        change(facts)
        return json.dumps(facts)

    return edited


def _first(facts):
    return facts["panels"][0]["cells"][0]["outcomes"][0]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: text[:200], "Unterminated|delimiter|Expecting"),
        (lambda text: text.replace("table 1", "table 2", 1), "no format"),
        (_edit(lambda facts: facts.pop("notes")), "other fields than Finished: notes"),
        (_edit(lambda facts: _first(facts)["run"].update(one_cycle=1)), "of type bool"),
        (_edit(lambda facts: _first(facts).update(test={"em5": math.nan})), "finite number"),
        (_edit(lambda facts: _first(facts).update(test={"em5": 40.0})), "a share in"),
        (_edit(lambda facts: _first(facts).update(test={})), "either metrics or a failure"),
        (_edit(lambda facts: facts["tuned"][0].update(chosen=3.0)), "not in the grid"),
        (_edit(lambda facts: facts["panels"][0]["rows"].pop()), "unknown row 'Other'"),
    ],
)
def test_a_damaged_table_is_refused_in_one_line(tmp_path, edit, message):
    path = tmp_path / "mnist-digits-quick.json"
    path.write_text(edit(json_table.to_json(finished())), encoding="utf-8")
    with pytest.raises(ExperimentError, match=message) as caught:
        json_table.read(path)
    assert str(path) in caught.value.message
    assert "make the table again" in caught.value.message
    assert "\n" not in caught.value.message
    with pytest.raises(ExperimentError, match=message):
        report(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": (Column("n = 5", 5),)}, "unknown column 'n = 15'"),
        ({"rows": (Row("Network"), Row("Other"), Row("Other", True))}, "a row is stated twice"),
        ({"cells": panel().cells * 2}, "a cell is stated twice"),
    ],
)
def test_a_panel_that_makes_no_sense_cannot_be_built(changes, message):
    with pytest.raises(ValueError, match=message):
        panel(**changes)


def test_pictures_of_all_kinds_are_drawn_without_a_warning():
    from experiments.writing import pictures

    names = panel(axis=Axis("data", "names"), columns=(Column("n = 5"), Column("n = 15")))
    linear = panel(title="λ", axis=Axis("λ", "linear"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table in (finished(names), finished(panel(), linear), times()):
            png = pictures.draw(table)
            assert png.startswith(b"\x89PNG\r\n")
        assert pictures.draw(table) == png


@pytest.mark.parametrize("name", ["mnist-fashion-standard", "recipe-fashion-standard", "topk-digits-quick"])
def test_the_legend_lies_within_the_picture(name):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from experiments.writing import pictures

    picture = pictures.picture_of(json_table.read(RESULTS / f"{name}.json"))
    canvas = FigureCanvasAgg(picture)
    canvas.draw()
    (legend,) = picture.legends
    extent = legend.get_window_extent(canvas.get_renderer())
    assert picture.bbox.x0 <= extent.x0 < extent.x1 <= picture.bbox.x1


def test_all_files_of_a_table_are_written_and_read_back(tmp_path):
    out = tmp_path / "new" / "results"
    paths = write(out, finished())
    assert {path.name for path in paths} == {f"mnist-digits-quick.{end}" for end in ("md", "png", "json")}
    assert {*out.iterdir()} == {*paths}
    assert json_table.read(out / "mnist-digits-quick.json") == finished()


def test_the_report_of_the_repository_is_that_of_its_tables():
    for file, text in report_of(tables(RESULTS)).items():
        assert (RESULTS / file).read_text() == text
    page = (RESULTS / "README.md").read_text()
    anchors = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^## (.*)$", page, re.MULTILINE)
    }
    assert {*re.findall(r"\]\(#(.*?)\)", page)} == anchors
    assert all((RESULTS / picture).is_file() for picture in re.findall(r"!\[.*?\]\((.*?)\)", page))


def test_a_report_replaces_only_its_own_page_and_needs_tables(tmp_path):
    with pytest.raises(ExperimentError, match="has no tables"):
        report(tmp_path)
    write(tmp_path, finished())
    (tmp_path / "README.md").write_text("# My project\n")
    with pytest.raises(ExperimentError, match=r"README.md is not a page of this command.*move it away"):
        report(tmp_path)


def test_a_report_has_every_figure_for_programs():
    lines = list(csv.DictReader(report_of([finished(), times()])["figures.csv"].splitlines()))
    for table in (finished(), times()):
        for panel_ in table.panels:
            for key, of in itertools.product(panel_.metrics, panel_.cells):
                place = {"table": table.stem, "panel": panel_.title, "row": of.row, "column": of.column}
                place |= {"metric": METRICS[key].title}
                found = [line for line in lines if place.items() <= line.items()]
                values = of.values(key)
                assert len(found) == bool(values), place
                for line in found:
                    scale = 100 if line["unit"] == "%" else 1
                    assert float(line["mean"]) == pytest.approx(scale * statistics.fmean(values), rel=1e-5)
                    assert int(line["seeds"]) == len(values)
                    paper = of.paper.get(key)
                    assert line["paper"] == (f"{paper.value:.6g}" if paper else "")


def test_the_terminal_shows_figures_the_papers_numbers_and_failures():
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(show(finished()))
    text = console.export_text()
    for part in ("41.0 ± 1.4 (1.0)", "paper 86.3 ± 0.9", "- n = 15: Network is first, 4.0 points ahead"):
        assert part in text
    assert "Without figures:\n- Other, n = 5, seed 2: the loss is not a number at step 40\n" in text
