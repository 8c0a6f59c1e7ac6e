"""The files of finished tables, NAME-DATA-PROFILE.json, .md and .png, and the report of a folder."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.errors import ExperimentError
from experiments.writing import comparing, csv_figures, json_table
from experiments.writing.explaining import how_to_read
from experiments.writing.markdown import markdown, paragraph, table
from experiments.writing.records import Finished

REPORT = "README.md"
FIGURES = "figures.csv"
HEADING = "# The paper's tables"


def write(folder: Path, finished: Finished) -> list[Path]:
    """Write a table as JSON, Markdown and a picture; return their paths.

    Raises:
        ExperimentError: the folder cannot be written to; then the files are as they were.
    """
    # Runs read the records of tables in many processes; only writing needs matplotlib.
    from experiments.writing import pictures

    contents = {
        f"{finished.stem}.md": markdown(finished).encode(),
        f"{finished.stem}.png": pictures.draw(finished),
        f"{finished.stem}.json": json_table.to_json(finished).encode(),
    }
    return _write_all(folder, contents)


def report(folder: Path) -> Path:
    """Write all tables of a folder as one page into its README.md; return its path.

    Beside it are their pictures, and all figures in figures.csv.

    Raises:
        ExperimentError: the folder has no table, or one that is damaged, or a README.md that is no such page,
            or cannot be written to.
    """
    from experiments.writing import pictures

    _check_report(folder / REPORT)
    found = tables(folder)
    contents = {file: text.encode() for file, text in report_of(found).items()}
    drawn = {f"{each.stem}.png": pictures.draw(each) for each in found}
    return _write_all(folder, contents | drawn)[0]


def report_of(found: Sequence[Finished]) -> dict[str, str]:
    """Return the texts of a report, by file."""
    return {REPORT: _page(found), FIGURES: csv_figures.to_csv(found)}


def _check_report(path: Path) -> None:
    """Refuse to replace a page that somebody wrote by hand."""
    try:
        first = path.read_bytes().partition(b"\n")[0].rstrip()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror or error}") from None
    if first != HEADING.encode():
        raise ExperimentError(
            f"{path} is not a page of this command, it does not begin with {HEADING!r}: move it away, or "
            "choose a folder with --out"
        )


def _page(found: Sequence[Finished]) -> str:
    """Return tables as one page of Markdown with an index; pictures are linked."""
    head = paragraph(
        "Every section is one table, made by the command that it names. NAME-DATA-PROFILE.json has every "
        f"training, {FIGURES} every figure. `python -m experiments report` makes this page from the JSON. "
        "The last three columns of the list count the pairs of figures that the paper has in an order."
    )
    sections = [markdown(each, level=2) for each in found]
    return (
        "\n\n".join([HEADING, head, paragraph(how_to_read(found)), _index(found), *sections]).rstrip() + "\n"
    )


def tables(folder: Path) -> list[Finished]:
    """Return the tables of a folder, in the order of their sources: the paper's tables, then its figures.

    JSON files that are no tables are left out, see `json_table.is_table`.

    Raises:
        ExperimentError: the folder has no table, or one that is damaged.
    """
    found = [json_table.read(path) for path in sorted(folder.glob("*.json")) if json_table.is_table(path)]
    if not found:
        known = "make one first, for example `python -m experiments mnist`"
        raise ExperimentError(f"{folder} has no tables (NAME-DATA-PROFILE.json): {known}")
    return sorted(found, key=lambda each: (_place(each.source), each.name, each.profile))


def _index(found: Sequence[Finished]) -> str:
    lines = []
    for each in found:
        runs = [outcome.run for outcome in each.outcomes if outcome.run]
        seeds = ", ".join(map(str, sorted({run.seed for run in runs})))
        verdicts = [claim.places for panel in each.panels for claim in comparing.claims(panel)]
        counts = [sum(map(len, places)) for places in zip(*verdicts, strict=True)]
        link = f"[{each.heading}](#{_anchor(each.heading)})"
        lines.append([link, each.source, seeds, *map(str, (len(runs) or "", *counts))])
    heads = ["table", "in the paper", "seeds", "trainings", *comparing.VERDICTS]
    padded = [line + [""] * (len(heads) - len(line)) for line in lines]
    return table(heads, padded, left=3)


def _place(source: str) -> tuple[bool, bool, int]:
    """Return the place of a source such as "table 1" or "figures 6 and 7" in the order of the page."""
    number = re.search(r"\d+", source)
    return not source.lower().startswith("table"), number is None, int(number[0]) if number else 0


def _anchor(heading: str) -> str:
    """Return a heading's anchor as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _write_all(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Replace files by renames, after all contents are on the disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=folder) as name:
            for file, content in contents.items():
                (Path(name) / file).write_bytes(content)
            if blocked := [file for file in contents if (folder / file).is_dir()]:
                raise IsADirectoryError(f"{folder / blocked[0]} is a folder")
            for file in contents:
                os.replace(Path(name) / file, folder / file)
    except OSError as error:
        reason = error.strerror or error
        raise ExperimentError(f"cannot write to {folder}: {reason}; choose a folder with --out") from None
    return [folder / file for file in contents]
