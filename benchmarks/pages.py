"""`python -m benchmarks.pages`: write measured figures into README and pages of docs/."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.exact import CASES, FILTER, MEMORY, PLANES, ROLLING, ROLLING_NUMBERS, WORKS, ExactCase
from benchmarks.marks import marked

ROOT = Path(__file__).parents[1]
PAGE, README, XARRAY = ROOT / "docs" / "speed.md", ROOT / "README.md", ROOT / "docs" / "xarray.md"
LANGUAGES = ROOT / "docs" / "languages.md"
RESULTS = ROOT / "benchmarks" / "results"

# The times of README: n and batch, and peers by their names there.
TIMES = ((16, 100), (32, 100), (128, 16), (512, 2), (1024, 1))
PEERS = {
    "nsc": "nsc",
    "compiled torch": "compiled torch",
    "indexed torch": "indexed torch",
    "diffsort 0.2.0": "diffsort",
}
# Works that benchmarks.windows measures with more peers.
_WINDOWS = (FILTER, ROLLING, ROLLING_NUMBERS)
_WORDS = {MEMORY: "the memory alone", PLANES: "nsc.numpy, a colour at a time"}


def main() -> None:
    """Write the tables anew."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


def pages() -> dict[Path, str]:
    """Return the pages with their tables as the results have them; docs/speed.md names the machine's."""
    speed = PAGE.read_text("utf-8")
    (name,) = re.findall(r"\(\.\./(benchmarks/results/cpu-[^)]*)\.md\)", speed)
    results = json.loads((ROOT / f"{name}.json").read_text("utf-8"))
    ratios = "| nsc | peer | nsc is faster |\n|---|---|---|\n" + "".join(_rows(results["exact"]))
    times = _times(results["timings"])
    calls, peers = _tables("xarray.md")
    (windows,) = _tables("windows.md")
    (cells,) = _tables("cells.md")
    return {
        PAGE: marked(marked(marked(speed, ratios), peers, " numbagg"), windows, " windows"),
        README: marked(README.read_text("utf-8"), times),
        XARRAY: marked(XARRAY.read_text("utf-8"), calls),
        LANGUAGES: marked(LANGUAGES.read_text("utf-8"), cells, " cells"),
    }


def _tables(name: str) -> list[str]:
    """Return the tables of a file of results."""
    return re.findall(r"(?:^\|.*\n)+", (RESULTS / name).read_text("utf-8"), re.MULTILINE)


def _times(timings: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of P and a gradient, microseconds a sample on two threads."""
    times = {
        (t["n"], t["batch"], t["peer"]): t["us_per_sample"]
        for t in timings
        if (t["work"], t["network"], t["threads"]) == ("P + gradient", "bitonic", 2)
    }
    lines = [f"| n, batch | {' | '.join(PEERS)} |", f"|---|{'---:|' * len(PEERS)}"]
    for n, batch in TIMES:
        found = [times.get((n, batch, peer)) for peer in PEERS.values()]
        shown = ["" if time is None else f"{time:,.{1 if time < 10 else 0}f}" for time in found]
        lines.append(f"| {n}, {batch} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _rows(timings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a row for each peer of cases that differ in size alone, with the sizes that were measured."""
    single = {
        (t["work"], t["dtype"], tuple(t["shape"]), t["axis"], t["window"], t["peer"]): t["ns_per_sample"]
        for t in timings
        if t["threads"] == 1
    }

    def ratio(case: ExactCase, peer: str) -> float | None:
        key = (case.work, case.dtype, case.shape, case.axis, case.window)
        ours = single.get((*key, WORKS[case.work].peers[peer].against))
        theirs = single.get((*key, peer))
        return theirs / ours if ours and theirs else None

    for kind, group in groupby(CASES, key=lambda case: case.kind):
        cases = [case for case in group if case.work not in _WINDOWS]
        for peer in dict.fromkeys(target.peer for case in cases for target in case.targets):
            found = {case.n: measured for case in cases if (measured := ratio(case, peer))}
            if found:
                sizes = ", ".join(map(str, found))
                ratios = ", ".join(f"{each:,.{1 if each < 10 else 0}f}×" for each in found.values())
                yield f"| {kind}, n = {sizes} | {_WORDS.get(peer, f'`{peer}`')} | {ratios} |\n"


if __name__ == "__main__":
    main()
