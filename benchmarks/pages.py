"""`python -m benchmarks.pages`: write measured figures into docs/speed.md, which names them, and README."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.exact import CASES, MEMORY, WORKS, ExactCase

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "docs" / "speed.md", ROOT / "README.md"

_MISSING = "–"
_HEAD = "| nsc | peer | nsc is faster |\n|---|---|---|\n"


def main() -> None:
    """Write the tables anew."""
    page = PAGE.read_text("utf-8")
    results = results_of(page)
    PAGE.write_text(updated(page, results), encoding="utf-8")
    README.write_text(readme(README.read_text("utf-8"), results), encoding="utf-8")


def results_of(page: str) -> Mapping[str, Any]:
    """Return the results that a page names."""
    (name,) = re.findall(r"\(\.\./(benchmarks/results/cpu-[^)]*)\.md\)", page)
    return json.loads((ROOT / f"{name}.json").read_text("utf-8"))  # type: ignore[no-any-return]


def updated(page: str, results: Mapping[str, Any]) -> str:
    """Return docs/speed.md with its table of exact sorting as the results have it, or without figures."""
    before, after = page.split(_HEAD)
    rest = re.sub(r"\A(\|.*\n)*", "", after)
    return before + _HEAD + "".join(_rows(results.get("exact", ()))) + rest


def readme(page: str, results: Mapping[str, Any]) -> str:
    """Return README with the times of P and a gradient in its table."""
    times = {
        (t["n"], t["batch"], t["peer"]): t["us_per_sample"]
        for t in results["timings"]
        if (t["work"], t["network"], t["threads"]) == ("P + gradient", "bitonic", 2)
    }
    head, *rows = re.findall(r"^\| (n, batch|\d+, \d+) \|(.*)\|$", page, re.MULTILINE)
    peers = [name.strip().removesuffix(" 0.2.0") for name in head[1].split("|")]
    for size, cells in rows:
        n, batch = map(int, size.split(", "))
        found = [times.get((n, batch, peer)) for peer in peers]
        shown = ["" if time is None else f"{time:,.{1 if time < 10 else 0}f}" for time in found]
        page = page.replace(f"| {size} |{cells}|", f"| {size} | {' | '.join(shown)} |")
    return page


def _rows(timings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a row for each peer of cases that differ in size alone."""
    single = {
        (t["work"], t["dtype"], tuple(t["shape"]), t["axis"], t["window"], t["peer"]): t["ns_per_sample"]
        for t in timings
        if t["threads"] == 1
    }

    def ratio(case: ExactCase, peer: str) -> str:
        key = (case.work, case.dtype, case.shape, case.axis, case.window)
        ours = single.get((*key, WORKS[case.work].peers[peer].against))
        theirs = single.get((*key, peer))
        return f"{theirs / ours:.{1 if theirs < 10 * ours else 0}f}×" if ours and theirs else _MISSING

    for kind, group in groupby(CASES, key=lambda case: case.kind):
        cases = list(group)
        for peer in dict.fromkeys(target.peer for case in cases for target in case.targets):
            sizes = ", ".join(str(case.n) for case in cases)
            ratios = [ratio(case, peer) for case in cases]
            shown = "" if set(ratios) == {_MISSING} else ", ".join(ratios)
            name = "the memory alone" if peer == MEMORY else f"`{peer}`"
            yield f"| {kind}, n = {sizes} | {name} | {shown} |\n"


if __name__ == "__main__":
    main()
