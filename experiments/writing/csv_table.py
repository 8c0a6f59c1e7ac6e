"""A finished table as CSV: a line for each outcome, with all fields of its run."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields

from experiments.run import Run
from experiments.writing.records import Finished, Outcome


def to_csv(finished: Finished) -> str:
    """Return all outcomes as CSV, each with its row and column; shares are in [0, 1], numbers round-trip."""
    metrics = list(dict.fromkeys(metric for panel in finished.panels for metric in panel.metrics))
    has_runs = any(outcome.run for outcome in finished.outcomes)
    has_training = any(outcome.training for outcome in finished.outcomes)
    parts = ("test", "training") if has_training else ("test",)
    names = [
        *("panel", "row", "column"),
        *(("key", *(field.name for field in fields(Run))) if has_runs else ()),
        *(f"{part}_{metric}" if has_training else metric for part in parts for metric in metrics),
        *(("training_seconds",) if has_runs else ()),
        *("failure", "machine"),
    ]
    file = io.StringIO()
    writer = csv.DictWriter(file, names, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for panel in finished.panels:
        for cell in panel.cells:
            for outcome in cell.outcomes:
                place = {"panel": panel.title, "row": cell.row, "column": cell.column}
                writer.writerow({**place, **_facts(outcome, has_training)})
    return file.getvalue()


def _facts(outcome: Outcome, has_training: bool) -> dict[str, object]:
    prefix = "test_" if has_training else ""
    return {
        **({"key": outcome.run.key, **asdict(outcome.run)} if outcome.run else {}),
        **{f"{prefix}{metric}": value for metric, value in outcome.test.items()},
        **{f"training_{metric}": value for metric, value in outcome.training.items()},
        "training_seconds": outcome.seconds,
        "failure": outcome.failure,
        "machine": outcome.machine,
    }
