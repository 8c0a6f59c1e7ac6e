"""A finished table as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import fields

from experiments.run import Run
from experiments.writing import comparing, figures
from experiments.writing.explaining import BY_THE_SAMPLE, at_an_edge, has_sampling_errors, how_to_read
from experiments.writing.quantities import METRICS
from experiments.writing.records import Column, Finished, Panel, Row, Tuned

MOST_COLUMNS = 120
# A field of the runs with more values than this is left to the JSON.
MOST_VALUES = 12


def markdown(finished: Finished, level: int = 1) -> str:
    """Return the page of a table; its heading has the level, 1 for a page of its own."""
    mark = "#" * level
    reading = f" {how_to_read([finished])}" if level == 1 else ""
    parts = [
        f"{mark} {finished.heading}",
        *_conclusions(finished),
        paragraph(f"In the paper: {finished.source}. Made by `{finished.command}`.{reading}"),
        f"![{finished.heading}]({finished.stem}.png)",
    ]
    for panel in finished.panels:
        parts += _panel(panel, mark + "#")
    parts += _section(f"{mark}# Temperatures", _TUNED, tuned_table(finished.tuned))
    parts.append(paragraph(at_an_edge(finished.tuned)))
    parts += _section(f"{mark}# Deviations from the paper's protocol", "", bullets(finished.deviations))
    parts += _section(f"{mark}# Cells without figures", "", bullets(failures(finished)))
    parts += _section(f"{mark}# Notes", "", bullets(finished.notes))
    parts += [f"{mark}# Runs", paragraph(_how_long(finished)), runs_table(finished)]
    return "\n\n".join(filter(None, parts)) + "\n"


_TUNED = (
    "Each grid with the metric on the validation part in %, of one run each; the chosen temperature is bold."
)


def _conclusions(finished: Finished) -> list[str]:
    """Return who is first in each column of each panel; nothing if no column has two rows."""
    sentences = [
        ", ".join(filter(None, (panel.title, sentence)))
        for panel in finished.panels
        for sentence in comparing.who_is_first(panel)
    ]
    metrics = dict.fromkeys(METRICS[panel.metrics[0]].title for panel in finished.panels)
    heading = f"Who is first, by {comparing.listed(list(metrics))}:"
    return [heading, bullets(sentences)] if sentences else []


def _panel(panel: Panel, mark: str) -> list[str]:
    parts = [f"{mark} {panel.title}"] if panel.title else []
    mark += "#" if panel.title else ""
    for key in panel.metrics:
        metric = METRICS[key]
        parts += [f"{mark} {metric.title}: {metric.text}", metric_table(panel, key)]
        parts += [paragraph(BY_THE_SAMPLE)] if has_sampling_errors(panel, key) else []
    parts += _agreement(panel, mark)
    gaps = gap_table(panel)
    title = METRICS[panel.metrics[0]].title
    text = f"{title} on the training part minus {title} on the test part, in points."
    return parts + _section(f"{mark} Training and test", text, gaps)


def metric_table(panel: Panel, metric: str) -> str:
    """Return a metric by rows and columns; below our figure the paper's number and the difference."""
    has_paper = any(metric in cell.paper for cell in panel.cells)
    best = {column.title: comparing.best(panel, metric, column.title) for column in panel.columns}
    lines = []
    for row in panel.rows:
        names = ("ours", "paper", "difference") if has_paper else ("ours",)
        columns = [_texts(panel, metric, row, column, best[column.title]) for column in panel.columns]
        for name, texts in zip(names, zip(*columns, strict=True), strict=False):
            if name == "ours" or any(texts):
                title = row.title if name == "ours" else ""
                lines.append([title, *([name] if has_paper else []), *texts])
    heads = ["", *([""] if has_paper else []), *(column.title for column in panel.columns)]
    return table(heads, lines, left=2 if has_paper else 1)


def _texts(panel: Panel, metric: str, row: Row, column: Column, best: list[str]) -> tuple[str, str, str]:
    cell = panel.cell(row.title, column.title)
    if cell is None:
        return "", "", ""
    figure, number = figures.figure_of(cell, metric), cell.paper.get(metric)
    ours = figures.shown_figure(METRICS[metric], figure) if figure else "–"
    if row.title in best:
        ours = f"**{ours}**"
    if figure and figure.count < len(cell.outcomes):
        ours += f", {figure.count} of {len(cell.outcomes)}"
    if number is None:
        return ours, "", ""
    difference = figures.shown_difference(METRICS[metric], figure, number) if figure else ""
    return ours, figures.shown_paper(METRICS[metric], number), difference


def _agreement(panel: Panel, mark: str) -> list[str]:
    claims = comparing.claims(panel)
    lines = [[claim.text, METRICS[claim.metric].title, *map(", ".join, claim.places)] for claim in claims]
    text = "Each line is two rows, or two columns, that the paper has in an order, and where ours agree."
    heads = ["the paper says", "by", *comparing.VERDICTS]
    return _section(f"{mark} The paper says, we found", text, table(heads, lines, left=len(heads)))


def gap_table(panel: Panel) -> str:
    """Return the first metric on the training part minus the same on the test part; "" if there is none."""
    metric = panel.metrics[0]
    lines = []
    for row in panel.rows:
        cells = [panel.cell(row.title, column.title) for column in panel.columns]
        gaps = [figures.figure(cell.gaps(metric)) if cell else None for cell in cells]
        if any(gaps):
            lines.append([row.title, *(figures.signed(gap.mean) if gap else "" for gap in gaps)])
    return table(["", *(column.title for column in panel.columns)], lines)


def tuned_table(tuned: Sequence[Tuned]) -> str:
    """Return the temperatures with their grids."""
    lines = []
    for choice in tuned:
        scores = [
            f"{temperature:g}: {'failed' if score is None else figures.shown(METRICS[choice.metric], score)}"
            for temperature, score in zip(choice.grid, choice.scores, strict=True)
        ]
        chosen = choice.grid.index(choice.chosen)
        scores[chosen] = f"**{scores[chosen]}**"
        metric = METRICS[choice.metric].title
        lines.append([choice.row, choice.column or "all", choice.temperature, metric, ", ".join(scores)])
    return table(["", "for", "temperature", "metric", "grid"], lines, left=5)


def failures(finished: Finished) -> list[str]:
    """Return one sentence for each failure; it begins with the titles of all panels that have the failure."""
    panels: dict[str, list[str]] = {}
    for panel in finished.panels:
        for cell in panel.cells:
            for outcome in cell.outcomes:
                if outcome.failure:
                    seed = f", seed {outcome.run.seed}" if outcome.run else ""
                    text = f"{cell.row}, {cell.column}{seed}: {outcome.failure}"
                    panels.setdefault(text, []).append(panel.title)
    return [", ".join(filter(None, (comparing.listed(titles), text))) for text, titles in panels.items()]


def _how_long(finished: Finished) -> str:
    trained = [o.seconds for o in finished.outcomes if o.run]
    machines = dict.fromkeys(o.machine for o in finished.outcomes if o.machine)
    text = f"On {'; '.join(machines)}."
    if trained:
        together, longest = map(figures.shown_duration, (sum(trained), max(trained)))
        text += f" {len(trained)} trainings took {together} together, without their validation;"
        text += f" the longest took {longest}."
    if finished.seconds is not None:
        text += f" The whole table took {figures.shown_duration(finished.seconds)}."
    return text


def runs_table(finished: Finished) -> str:
    """Return the fields of the runs with their values; "" if nothing was trained."""
    runs = [outcome.run for outcome in finished.outcomes if outcome.run]
    lines = []
    for field in fields(Run) if runs else ():
        values = list(dict.fromkeys(getattr(run, field.name) for run in runs))
        text = ", ".join(map(_value, values))
        if len(values) > MOST_VALUES:
            text = f"{len(values)} values: see the JSON"
        lines.append([field.name.replace("_", " "), text])
    return table(["field", "values"], lines, left=2) if lines else ""


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(heads: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table whose first columns are aligned left; "" if it has no lines."""
    if not lines:
        return ""
    rules = ["---" if i < left else "---:" for i in range(len(heads))]
    rows = [heads, rules, *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def bullets(sentences: Iterable[str]) -> str:
    """Return a list in lines of at most 120 columns."""
    return "\n".join(paragraph(f"- {sentence}", "  ") for sentence in sentences)


def paragraph(text: str, indent: str = "") -> str:
    """Return prose in lines of at most 120 columns."""
    return textwrap.fill(
        text, MOST_COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _section(heading: str, text: str, content: str) -> list[str]:
    return [heading, paragraph(text), content] if content else []
