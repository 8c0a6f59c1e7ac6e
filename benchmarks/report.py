"""Reports: the same results as JSON, and as Markdown with pictures."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import growth, pictures
from benchmarks.arithmetic import Arithmetic
from benchmarks.cases import Case
from benchmarks.machine import machine, processors
from benchmarks.measure import Timing
from benchmarks.memory import Peak
from benchmarks.tables import Results, Section, sections
from nsc.atomic import write_whole


def write(folder: Path, name: str, results: Results) -> list[Path]:
    """Write JSON, Markdown and pictures, whose names begin with `name`; return their paths.

    All contents are ready before the first file is written. Each file is replaced by a rename.
    """
    drawn = pictures.draw_all(results.timings, results.arithmetic, results.peaks)
    contents = {
        f"{name}.json": (json.dumps(_facts(results), indent=1) + "\n").encode(),
        f"{name}.md": markdown(results, name).encode(),
        **{name + ending: picture for ending, picture in drawn.items()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        write_whole(folder / file, content)
    return [folder / file for file in contents]


def redraw(folder: Path) -> list[Path]:
    """Draw the pictures of all results of a folder again, from their JSON; return their paths.

    Results of earlier versions may lack what some picture needs: it stays as it is.
    """
    drawn = {}
    for file in sorted(folder.glob("*.json")):
        facts = json.loads(file.read_text(encoding="utf-8"))
        timings = [
            Timing(
                _case_of(each),
                each["peer"],
                each["threads"],
                seconds=each["us_per_sample"] * each["batch"] / 1e6,
                low=each["lowest"] * each["batch"] / 1e6,
                high=each["highest"] * each["batch"] / 1e6,
                rounds=each["rounds"],
            )
            for each in facts["timings"]
        ]
        limits = facts.get("arithmetics", [])
        arithmetic = Arithmetic(**limits[-1]) if limits else None
        peaks = [Peak(_case_of(each), each["peer"], each["threads"], each["mb"]) for each in facts["memory"]]
        for ending, picture in pictures.draw_all(timings, arithmetic, peaks).items():
            drawn[folder / (file.stem + ending)] = picture
    for path, picture in drawn.items():
        path.write_bytes(picture)
    return list(drawn)


def _case_of(facts: Mapping[str, Any]) -> Case:
    return Case(facts["work"], facts["network"], facts["n"], facts["batch"])


def others(folder: Path, name: str) -> str | None:
    """Return the processors that measured the results of a name in a folder, if they are not these."""
    file = folder / f"{name}.json"
    if not file.exists():
        return None
    measured: str = json.loads(file.read_text(encoding="utf-8"))["machine"].partition(", torch ")[0]
    return None if measured == processors() else measured


def paragraph(text: str) -> str:
    """Return prose in lines of at most 120 columns."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _paragraphs(text: str) -> str:
    """Return prose with a paragraph or an item of a list on each line."""
    return "\n".join(map(paragraph, text.splitlines()))


def markdown(results: Results, name: str) -> str:
    """Return the whole report as Markdown; its pictures are files whose names begin with `name`."""
    registers = results.arithmetic.registers if results.arithmetic else "other"
    head = f"# CPU\n\n`python -m benchmarks` on {machine()}. Kernels use {registers} registers."
    return "\n\n".join((head, *(_markdown(section, name) for section in sections(results)))) + "\n"


def _markdown(section: Section, name: str) -> str:
    rules = tuple("---" if i < section.left else "---:" for i in range(len(section.columns)))
    table = "\n".join(f"| {' | '.join(row)} |" for row in (section.columns, rules, *section.rows))
    parts = [f"## {section.title}", _paragraphs(section.text)]
    if section.picture:
        parts.append(f"![{section.title}]({name}{section.picture})")
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
        "exact": [
            {
                "work": t.case.work,
                "dtype": t.case.dtype,
                "shape": t.case.shape,
                "axis": t.case.axis,
                "window": t.case.window,
                "peer": t.peer,
                "threads": t.threads,
                "ns_per_sample": round(t.nanoseconds, 2),
                "lowest": round(t.per_sample(t.rounds.low), 2),
                "highest": round(t.per_sample(t.rounds.high), 2),
                "rounds": t.rounds.rounds,
            }
            for t in results.exact
        ],
        "arithmetics": [dataclasses.asdict(arithmetic) for arithmetic in results.arithmetics.values()],
        "kernels": [
            {
                **_case(k.case),
                "registers": k.registers,
                "limit": round(k.limit(results.arithmetics[k.registers]) * 1e6, 4),
                "forward": k.forward and round(k.forward * 1e6, 4),
                "backward": round(k.backward * 1e6, 4),
                "keys": round(k.keys * 1e6, 4),
                "operator": k.operator and round(k.operator * 1e6, 4),
            }
            for k in results.kernels
        ],
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
