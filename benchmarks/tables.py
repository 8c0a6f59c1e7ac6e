"""The sections of a report: tables with their explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks import exact, growth, pictures
from benchmarks.arithmetic import Arithmetic
from benchmarks.building import Build
from benchmarks.cases import IRREGULAR
from benchmarks.exact import ExactTime, Target
from benchmarks.kernels import KernelTime
from benchmarks.measure import Timing
from benchmarks.memory import Peak
from benchmarks.peers import WORKS, left_out
from nsc.compiler.schedule import CONE_COLUMNS

# One and two threads are compared where there is work for two.
LEAST_WIRES, LEAST_BATCH = 128, 2

Row = tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """All measurements; those that were not taken are empty.

    Attributes:
        timings: of nsc and its peers.
        arithmetics: limits by the set of registers, the set of the timings last.
        kernels: kernels without torch.
        peaks: peak memory.
        builds: seconds of builds.
        exact: exact sorting and selection, of nsc and its peers.
    """

    timings: Sequence[Timing] = ()
    arithmetics: Mapping[str, Arithmetic] = field(default_factory=dict)
    kernels: Sequence[KernelTime] = ()
    peaks: Sequence[Peak] = ()
    builds: Sequence[Build] = ()
    exact: Sequence[ExactTime] = ()

    @property
    def arithmetic(self) -> Arithmetic | None:
        """The limit for the registers of the timings."""
        return [*self.arithmetics.values()][-1] if self.arithmetics else None

    @property
    def threads(self) -> list[int]:
        """The numbers of threads that were measured."""
        return sorted({timing.threads for timing in self.timings})


@dataclass(frozen=True)
class Section:
    """A table with its heading and explanation.

    Attributes:
        title: the heading.
        text: the explanation, Markdown.
        columns: names of the columns.
        rows: the cells.
        left: how many of the first columns are text, and aligned left.
        picture: how the file name of its picture ends; None: it has none.
    """

    title: str
    text: str
    columns: Row
    rows: Sequence[Row]
    left: int = 1
    picture: str | None = None


def sections(results: Results) -> list[Section]:
    """Return the sections of a report; those without rows are left out."""
    in_order = [
        against_peers(results),
        two_threads(results),
        exact_sorting(results),
        kernels_alone(results),
        against_arithmetic(results),
        irregular(results),
        memory(results),
        builds(results),
    ]
    return [section for section in in_order if section.rows]


def against_peers(results: Results) -> Section:
    """Return the times per sample of nsc and its peers."""
    timings = {(t.case, t.peer, t.threads): t for t in results.timings}
    counts = results.threads

    def row(timing: Timing, first: bool) -> Row:
        own = [timings[timing.case, "nsc", count] for count in counts]
        times = [timings[timing.case, timing.peer, count] for count in counts]
        ratios = [f"{_short(t.seconds / o.seconds)}×" for t, o in zip(times, own, strict=True)]
        return (
            timing.case.name if first else "",
            timing.peer,
            *(_short(t.microseconds_per_sample) for t in times),
            *(ratios if timing.peer != "nsc" else [""] * len(counts)),
        )

    shown = [t for t in results.timings if t.threads == min(counts) and t.case not in IRREGULAR]
    rows = [row(t, first=t.peer == "nsc") for t in shown]
    text = [
        "Microseconds per sample, float32; medians of rounds in which the peers take turns.",
        *_limits(),
        *(f"- {name} computes another relaxation: only its times are comparable" for name in _others()),
        *map(_left_out, left_out()),
    ]
    columns = (
        "work",
        "peer",
        *(f"{_threads(count)}, µs" for count in counts),
        *(f"nsc is faster, {_threads(count)}" for count in counts),
    )
    return Section("Against peers", "\n".join(text), columns, rows, 2, pictures.TIMES)


def _limits() -> list[str]:
    lines = []
    for peer in (peer for work in WORKS.values() for peer in work.peers if peer.why):
        reach = f"n = {peer.widest:,}" if peer.widest else f"{peer.deepest} layers"
        lines.append(f"- {peer.name} goes up to {reach}: {peer.why}")
    return list(dict.fromkeys(lines))


def _left_out(module: str) -> str:
    return f"- {module} is left out, because it cannot be imported: see `benchmarks/__init__.py`"


def _others() -> list[str]:
    return [peer.name for work in WORKS.values() for peer in work.peers if peer.own_relaxation]


def two_threads(results: Results) -> Section:
    """Return the times of nsc on one and on two threads."""
    own = [t for t in results.timings if t.peer == "nsc"]
    single = {t.case: t for t in own if t.threads == 1}
    rows = [
        (
            t.case.name,
            _short(single[t.case].microseconds_per_sample),
            _short(t.microseconds_per_sample),
            f"{single[t.case].seconds / t.seconds:.2f}×",
        )
        for t in own
        if t.threads == 2 and t.case in single and t.case.n >= LEAST_WIRES and t.case.batch >= LEAST_BATCH
    ]
    text = f"nsc alone, n ≥ {LEAST_WIRES} and batches of at least {LEAST_BATCH} samples."
    return Section(
        "Two threads against one", text, ("work", "µs, 1 thread", "µs, 2 threads", "faster by"), rows
    )


def exact_sorting(results: Results) -> Section:
    """Return the times of exact sorting and selection, and what is asked of nsc."""
    times = {(t.case, t.peer, t.threads): t.nanoseconds for t in results.exact}
    rows = []
    for case in dict.fromkeys(t.case for t in results.exact):
        for target in (target for target in case.targets if (case, target.peer, 1) in times):
            ours = exact.WORKS[case.work].peers[target.peer].against
            single = times[case, ours, 1], times[case, target.peer, 1]
            double = (times.get((case, peer, 2)) for peer in (ours, target.peer))
            rows.append(
                (
                    case.name,
                    ours,
                    target.peer,
                    *map(_short, single),
                    f"{_short(single[1] / single[0])}×",
                    *_asked(target),
                    *("" if time is None else _short(time) for time in double),
                )
            )
    text = [
        "Nanoseconds per sample; medians of rounds in which all take turns. All return new arrays. "
        "Functions of NumPy, bottleneck and numbagg are compared with `nsc.numpy`, torch's with nsc's "
        "operators. Ratios are those of one thread, and so are the targets: how many times as fast nsc must "
        "be, and the aim. NumPy and bottleneck run on one thread alone.",
        "- a sample of a filter is a value of a pixel; scipy filters an eighth of the rows of the image, the "
        "others all. Works on numbers have NaN among them, a tenth of a stack and a hundredth of a series. "
        "pandas, scipy and numbagg get an eighth of the samples of statistics, and what NumPy computes in "
        "Python a five-hundredth. OpenCV's windows beyond 5 × 5 are of uint8, whatever the others filter",
        "- memory reads as many bytes in order, and writes as many; a ratio of 0.5 is twice its time",
        *map(_left_out, exact.left_out()),
    ]
    columns = (
        *("work", "nsc", "peer", "nsc, ns", "peer, ns", "nsc is faster", "must", "aim"),
        *("nsc, 2 threads, ns", "peer, 2 threads, ns"),
    )
    return Section("Exact sorting and selection", "\n".join(text), columns, rows, 3)


def _asked(target: Target) -> tuple[str, str]:
    least, aim = ("" if number is None else f"{number:g}×" for number in (target.least, target.aim))
    return least, aim


def kernels_alone(results: Results) -> Section:
    """Return the times of kernels without torch and their limits, for each set of registers."""
    rows = [
        (
            k.case.name,
            k.registers,
            "" if k.forward is None else _micro(k.forward),
            _micro(k.backward),
            _micro(k.limit(limit)),
            f"{k.seconds / k.limit(limit):.2f}×",
            _short(k.nanoseconds),
            _short(limit.cycles(k.nanoseconds)),
            _micro(k.keys),
            "" if k.operator is None else _micro(k.operator),
        )
        for k, limit in ((k, results.arithmetics[k.registers]) for k in results.kernels)
    ]
    columns = (
        "work",
        "registers",
        "forward, µs",
        "backward, µs",
        "limit, µs",
        "time / limit",
        "ns a comparator",
        "cycles",
        "keys alone, µs",
        "operator, µs",
    )
    text = [
        "The C functions alone, one thread, microseconds per sample; the quickest of many calls, in which "
        "all functions take turns. One function does everything for a loss. Keys alone is the part of both "
        "passes that the limit leaves out. Operator is the whole call in torch, with the same work. A "
        f"comparator's ns are those on {CONE_COLUMNS} columns of P, its cycles those on one register, "
        f"forward and backward together. {_LIMIT}",
        *map(_of_limit, results.arithmetics.values()),
    ]
    return Section("Kernels against the limit", "\n".join(text), columns, rows, 2)


_LIMIT = (
    "The limit is the arithmetic of all comparators on the columns that reach them, at the rate that this "
    "processor sustains in registers; `benchmarks/arithmetic.py` says what it has and leaves out."
)


def _of_limit(arithmetic: Arithmetic) -> str:
    """Return a line of a list: what a comparator's arithmetic takes."""

    def figure(nanoseconds: float) -> str:
        return f"{nanoseconds:.2f} ns ({arithmetic.cycles(nanoseconds):.1f} cycles)"

    return (
        f"- {arithmetic.registers}, {arithmetic.lanes} lanes, {arithmetic.gigahertz:.2f} GHz: forward "
        f"{figure(arithmetic.forward_four)} by four operations, {figure(arithmetic.forward_three)} by three "
        f"and a selection; backward {figure(arithmetic.backward_four)} and "
        f"{figure(arithmetic.backward_three)}"
    )


def against_arithmetic(results: Results) -> Section:
    """Return the times of nsc beside the limit of their arithmetic, over n."""
    columns = ("work", "threads", "comparators", "light cone", "limit, µs", "nsc, µs", "nsc / limit")
    if results.arithmetic is None:
        return Section("Against the arithmetic", "", columns, [])
    limit = results.arithmetic
    rows = [
        (
            p.timing.case.name,
            str(p.timing.threads),
            f"{p.work.comparators:,}",
            f"{p.work.light_cone:.0%}",
            _short(p.limit * 1e6),
            _short(p.timing.microseconds_per_sample),
            f"{_short(p.ratio)}×",
        )
        for p in growth.growth(results.timings, limit)
    ]
    text = (
        f"The whole operator, medians. {_LIMIT} It is divided by the number of threads. The light cone is "
        "the share of the columns of P that reach a comparator. The cross entropy counts comparators in "
        "front of the last merge."
    )
    return Section("Against the arithmetic", text, columns, rows, 1, pictures.GROWTH)


def irregular(results: Results) -> Section:
    """Return the times per comparator of irregular networks."""
    rows = []
    for threads, (base, *others) in growth.irregular(results.timings).items():
        first = _per_comparator(base)
        for timing in (base, *others):
            own = _per_comparator(timing)
            case = timing.case
            rows.append(
                (
                    f"{case.network} {case.n}",
                    str(threads),
                    f"{growth.work_of(case.network, case.n).comparators:,}",
                    _short(timing.microseconds_per_sample),
                    *(text for a, b in zip(own, first, strict=True) for text in (_short(a), f"{a / b:.2f}×")),
                )
            )
    text = (
        "P and its gradient, batch 100, all networks in turns. Merge exchange and pairwise are cut "
        "off where n is no power of two; `random_merge` is a merge sort of wires in random order, "
        "cut at random places. A comparator of a wider network has more columns to mix: the last two "
        "figures count it once for every 16 columns inside its light cone."
    )
    columns = (
        "network",
        "threads",
        "comparators",
        "µs",
        "ns a comparator",
        "against bitonic 64",
        "ns for 16 columns",
        "against bitonic 64",
    )
    return Section("Irregular networks", text, columns, rows)


def _per_comparator(timing: Timing) -> tuple[float, float]:
    """Return nanoseconds per comparator, and per comparator on 16 columns."""
    work = growth.work_of(timing.case.network, timing.case.n)
    nanoseconds = timing.microseconds_per_sample * 1e3
    return nanoseconds / work.comparators, nanoseconds / work.on_columns


def memory(results: Results) -> Section:
    """Return the peak memory above inputs and outputs."""
    rows = [
        (p.case.name, p.peer, _short(max(p.call, 0)), f"{_short(max(p.permutations, 0))} × P")
        for p in results.peaks
    ]
    threads = max((p.threads for p in results.peaks), default=1)
    text = (
        f"Peak of the first call in a process of its own, {_threads(threads)}, MB of 2^20 bytes: the "
        "memory that the call adds to the process, less its outputs (P and the gradient of x). The kernel's "
        "code and the memory that it keeps for later calls count; torch's one-time setup does not."
    )
    columns = ("work", "peer", "MB", "in sizes of P")
    return Section("Memory", text, columns, rows, 2, pictures.MEMORY)


def builds(results: Results) -> Section:
    """Return the seconds of builds with an empty cache."""
    rows = [
        (f"{b.network} {b.n}", f"{b.text:.1f}", f"{b.library:.1f}", f"{b.text + b.library:.1f}")
        for b in results.builds
    ]
    columns = ("network", "proof and C++ text, s", "C++ compiler, s", "together, s")
    return Section("Builds from nothing", "With an empty cache.", columns, rows)


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _micro(seconds: float) -> str:
    """Return microseconds, at least three digits of them."""
    return _short(seconds * 1e6)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
