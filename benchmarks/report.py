"""Reports: the same results as JSON, and as Markdown with pictures."""

from __future__ import annotations

import dataclasses
import json
import os
import textwrap
from pathlib import Path

from benchmarks import growth, pictures
from benchmarks.cases import Case
from benchmarks.machine import machine
from benchmarks.tables import Results, Section, sections


def write(folder: Path, results: Results) -> list[Path]:
    """Write JSON, Markdown and pictures; return their paths.

    All contents are ready before the first file is written. Each file is replaced by a rename.
    """
    contents = {
        "cpu.json": (json.dumps(_facts(results), indent=1) + "\n").encode(),
        "cpu.md": markdown(results).encode(),
        **pictures.draw_all(results.timings, results.arithmetic, results.peaks),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f".{name}.partial").write_bytes(content)
    for name in contents:
        os.replace(folder / f".{name}.partial", folder / name)
    return [folder / name for name in contents]


def paragraph(text: str) -> str:
    """Return prose in lines of at most 120 columns."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def markdown(results: Results) -> str:
    """Return the whole report as Markdown."""
    return (
        "\n\n".join((f"# CPU\n\n`python -m benchmarks` on {machine()}.", *map(_markdown, sections(results))))
        + "\n"
    )


def _markdown(section: Section) -> str:
    rules = tuple("---" if i < section.left else "---:" for i in range(len(section.columns)))
    table = "\n".join(f"| {' | '.join(row)} |" for row in (section.columns, rules, *section.rows))
    parts = [f"## {section.title}", paragraph(section.text)]
    if section.picture:
        parts.append(f"![{section.title}]({section.picture})")
    return "\n\n".join(filter(None, (*parts, table)))


def _facts(results: Results) -> dict[str, object]:
    return {
        "machine": machine(),
        "timings": [
            {
                **_case(t.case),
                "peer": t.peer,
                "threads": t.threads,
                "us_per_sample": round(t.microseconds_per_sample, 3),
                "lowest": round(t.low / t.case.batch * 1e6, 3),
                "highest": round(t.high / t.case.batch * 1e6, 3),
                "rounds": t.rounds,
            }
            for t in results.timings
        ],
        "arithmetic": results.arithmetic and dataclasses.asdict(results.arithmetic),
        "limits": [
            {**_case(p.timing.case), "threads": p.timing.threads, "us_per_sample": round(p.limit * 1e6, 3)}
            for p in (growth.growth(results.timings, results.arithmetic) if results.arithmetic else ())
        ],
        "memory": [
            {**_case(p.case), "peer": p.peer, "threads": p.threads, "mb": round(p.call, 3)}
            for p in results.peaks
        ],
        "builds": [dataclasses.asdict(build) for build in results.builds],
    }


def _case(case: Case) -> dict[str, object]:
    return {"work": case.work, "network": case.network, "n": case.n, "batch": case.batch}
