"""The report: results as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.gpu.building import ART_LAMBDA
from benchmarks.gpu.checks import TOLERANCE
from benchmarks.gpu.events import ROUNDS
from benchmarks.gpu.jobs import JOBS, MEMORY_BATCH, Outcome
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.peers import NSC, STEEPNESS
from benchmarks.gpu.predictions import predicted
from benchmarks.gpu.results import Results
from benchmarks.gpu.timing import Timing
from benchmarks.gpu.tools import COUNTERS
from benchmarks.marks import marked
from nsc.wording import count

PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"
# Jobs that neither time nor count.
_CHECKS = {job.name for job in JOBS if job.kind}
COMMAND = "`PYTHONPATH=. python -m benchmarks.gpu`"


def markdown(results: Results) -> str:
    """Return a report of the results so far, in the order of the jobs."""
    return "\n\n".join(_parts(results, "#")) + "\n"


def write_page(devices: Sequence[Results]) -> None:
    """Write the tables of docs/gpu.md anew, of the results on some devices."""
    parts = [part for results in devices for part in _parts(results, "###")]
    text = "\n\n".join(parts or ["No GPU has run the kernels yet."]) + "\n"
    PAGE.write_text(marked(PAGE.read_text("utf-8"), text, " on GPUs"), encoding="utf-8")


def _parts(results: Results, mark: str) -> list[str]:
    """Return the paragraphs of a report, with this mark in front of its heading."""
    outcomes = [*results.outcomes.values()]
    versions = sorted({outcome.versions for outcome in outcomes if outcome.versions})
    missing = [job.name for job in JOBS if job.name not in results.outcomes]
    parts = [f"# {results.device}", f"{COMMAND} with {'; or '.join(versions) or 'unknown versions'}."]
    if missing:
        parts.append(f"Not run: {count(len(missing), 'job')}, the first {missing[0]}.")
    parts += [
        *_failures([(outcome.name, failure) for outcome in outcomes for failure in outcome.failures]),
        *(_limits(results.limits) if results.limits else ()),
        *_checks([outcome for outcome in outcomes if outcome.name in _CHECKS]),
        *_timings([outcome.timings for outcome in outcomes if outcome.timings]),
        *_counters(outcomes),
        *_memory(outcomes),
        *_launches(outcomes),
        *_builds(results),
    ]
    return [part.replace("#", mark, 1) if part.startswith("#") else part for part in parts]


def share_of_limit(timing: Timing) -> str:
    """Return a timing's share of the limit that binds, in words; "" where no limit is known."""
    return "" if timing.share is None else f"{timing.share:.0%} of {timing.binding}"


def _failures(failures: list[tuple[str, str]]) -> list[str]:
    if not failures:
        return []
    lines = [f"- {name}: {' '.join(failure.split())}" for name, failure in failures]
    return ["## Failures", "\n".join(lines)]


def _limits(limits: Limits) -> list[str]:
    return [
        "## Limits",
        f"A copy moves {limits.bytes_per_second / 1e9:,.0f} GB/s, read and written. Multiply-adds run at "
        f"{limits.operations_per_second / 1e12:.1f} T/s, warps issue "
        f"{limits.instructions_per_second / 1e9:,.0f} G instructions/s. An empty kernel takes "
        f"{limits.launch_seconds * 1e6:.1f} µs, launched by CuPy one after another, and "
        f"{limits.event_seconds * 1e6:.1f} µs between two events.",
    ]


def _checks(outcomes: list[Outcome]) -> list[str]:
    if not outcomes:
        return []
    rows = [
        (o.name, f"{len(o.failures)} wrong" if o.failures else "right", f"{o.seconds:.1f}") for o in outcomes
    ]
    return [
        "## Checks",
        f"All numbers are within {TOLERANCE:g} of the largest, against the plain torch reference in float64. "
        "A second run and samples alone have the same bits. Exact sorting equals torch.sort(stable=True) on "
        "the CPU.",
        _table(("check", "result", "seconds"), 2, rows),
    ]


def _timings(cases: list[tuple[Timing, ...]]) -> list[str]:
    if not cases:
        return []
    rows = []
    for t, own in ((t, _own(timings)) for timings in cases for t in timings):
        times = (
            "" if own is None or t is own else f"{t.nanoseconds_per_sample / own.nanoseconds_per_sample:,.1f}"
        )
        spread = f"{t.low / t.batch * 1e9:,.1f} – {t.high / t.batch * 1e9:,.1f}"
        rows.append(
            (
                t.work,
                f"{t.network} {t.n}",
                t.peer,
                f"{t.batch:,}",
                f"{t.nanoseconds_per_sample:,.1f}",
                spread,
                predicted(t.work, t.network, t.n, t.batch) if t is own else "",
                f"{t.host * 1e6:,.0f}",
                share_of_limit(t),
                times,
            )
        )
    columns = (
        *("work", "network", "peer", "batch", "ns per sample", "low – high", "expected", "host µs"),
        *("share of the limit", "times nsc"),
    )
    return [
        "## Times",
        f"float32 where nothing else is said, steepness {STEEPNESS:g}, logistic with ART {ART_LAMBDA:g}. "
        f"Medians of up to {ROUNDS} rounds in which the peers take turns, by CUDA events. What was expected "
        "was worked out from the machine code before a GPU ran it, for an H200 (predictions.py). The host's "
        "time is that until a call returns; a call that has to wait for the device takes longer. The limit "
        "is the longest of these: inputs and outputs at the speed of a copy; in float32 operations of mixes "
        "inside light cones at the rate of multiply-adds, and instructions of the routing, as counted for "
        "sm_90, at the rate of issue.",
        _table(columns, 3, rows),
    ]


def _own(timings: Iterable[Timing]) -> Timing | None:
    """Return the timing of nsc on a case, which the others are compared with."""
    return next((timing for timing in timings if timing.peer == NSC), None)


def _memory(outcomes: list[Outcome]) -> list[str]:
    rows = [(o.name, f"{o.memory:.2f} × P") for o in outcomes if o.memory is not None]
    if not rows:
        return []
    text = f"P + gradient, batch {MEMORY_BATCH}: the peak above inputs and outputs."
    return ["## Memory", text, _table(("case", "peak"), 1, rows)]


def _counters(outcomes: list[Outcome]) -> list[str]:
    rows = [(o.name.removeprefix("counters, "), *o.counters.values()) for o in outcomes if o.counters]
    if not rows:
        return []
    text = (
        "As ncu counts them, at the clock of the run: the use of each unit in percent, and waits of a warp."
    )
    return ["## Counters", text, _table(("kernel", *COUNTERS.values()), 1, rows)]


def _launches(outcomes: list[Outcome]) -> list[str]:
    rows = []
    for outcome in outcomes:
        batches = {timing.peer: timing.batch for timing in outcome.timings}
        for launch in outcome.launches:
            rows.append(
                (
                    outcome.name,
                    launch.peer,
                    launch.function,
                    f"{launch.blocks:,}",
                    f"{launch.launches:,}",
                    f"{launch.seconds / batches[launch.peer] * 1e9:,.1f}",
                    f"{launch.share:.0%}",
                )
            )
    if not rows:
        return []
    columns = ("case", "peer", "kernel", "blocks", "launches", "ns per sample", "share")
    return [
        "## Kernels",
        "Two CUDA events time each launch, and their own time counts. Times are medians over calls of the "
        "sum of a kernel's launches.",
        _table(columns, 3, rows),
    ]


def _builds(results: Results) -> list[str]:
    if not results.builds:
        return []
    rows = [(str(b.form), f"{b.text:.1f}", f"{b.binary:.1f}") for b in results.builds.values()]
    return [
        "## Builds",
        "Seconds, several at a time: to CUDA text, and by NVRTC (0.0 where the cache had the binary).",
        _table(("kernel", "text", "machine code"), 1, rows),
    ]


def _table(columns: Sequence[str], left: int, rows: Iterable[Sequence[str]]) -> str:
    rules = tuple("---" if place < left else "---:" for place in range(len(columns)))
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, rules, *rows))
