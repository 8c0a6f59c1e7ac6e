"""`python -m benchmarks.pages`: write measured figures into docs/speed.md, from the results that it names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.exact import CASES, MEMORY, WORKS, ExactCase

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "speed.md"

_MISSING = "–"
_HEAD = "| nsc | peer | nsc is faster |\n|---|---|---|\n"


def main() -> None:
    """Write the page's table anew."""
    PAGE.write_text(updated(PAGE.read_text("utf-8")), encoding="utf-8")


def updated(page: str) -> str:
    """Return the page with its table of exact sorting as its results have it, or without figures."""
    (name,) = re.findall(r"\(\.\./(benchmarks/results/cpu-[^)]*)\.md\)", page)
    results = json.loads((ROOT / f"{name}.json").read_text("utf-8"))
    before, after = page.split(_HEAD)
    rest = re.sub(r"\A(\|.*\n)*", "", after)
    return before + _HEAD + "".join(_rows(results.get("exact", ()))) + rest


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
