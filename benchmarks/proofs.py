"""`python -m benchmarks.proofs`: how long proofs take, each in a process of its own, on one core."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.fresh import run_fresh
from nsc.atomic import write_whole
from nsc.compiler.families import KINDS, family_network, found, known
from nsc.compiler.network import Network
from nsc.compiler.optimize import top_k_candidates
from nsc.compiler.verify import Budget, Proof, parse, verify
from nsc.wording import count

RESULTS = Path(__file__).parent / "results" / "proofs.md"
MB_PER_KB = 1 / 1024
CHANGES = 1000


@dataclass(frozen=True)
class Outcome:
    """The verdicts and times of a case.

    Attributes:
        verdicts: verdicts and methods, each with its number of proofs.
        seconds: of all proofs.
        slowest: seconds of the slowest proof.
    """

    verdicts: str
    seconds: float
    slowest: float


def _family(name: str, n: int, property_name: str = "sort") -> Callable[[], Outcome]:
    return lambda: _all([(family_network(name, n), property_name)])


def _all(networks: list[tuple[Network, str]], methods: list[str] | None = None) -> Outcome:
    proofs: Counter[str] = Counter()
    seconds = []
    for network, property_name in networks:
        start = time.perf_counter()
        proof = verify(network, parse(property_name, network.n), Budget(), methods)
        seconds.append(time.perf_counter() - start)
        proofs[_words(proof)] += 1
    verdicts = (f"{number} × {words}" if len(networks) > 1 else words for words, number in proofs.items())
    return Outcome(", ".join(verdicts), sum(seconds), max(seconds))


def _words(proof: Proof) -> str:
    return f"{proof.verdict.value} by {proof.method}"


def _known() -> list[tuple[Network, str]]:
    """Return the known sorters and medians up to 64 wires."""
    return [(m, kind) for kind in KINDS for networks in known(kind).values() for m in networks]


def _changed() -> Outcome:
    """Check a thousand networks, each a known sorter with one comparator left out, reversed or moved."""
    draw = random.Random(0)
    sorters = [network for network, kind in _known() if kind == "sort"]
    networks = []
    for _ in range(CHANGES):
        network = draw.choice(sorters[2:])
        pairs = network.comparators.tolist()
        index = draw.randrange(len(pairs))
        lo, hi = pairs[index]
        other = draw.choice([wire for wire in range(network.n) if wire not in (lo, hi)])
        pairs[index : index + 1] = draw.choice([[], [[hi, lo]], [[lo, other]], [[other, hi]]])
        networks.append((Network.from_comparators(network.n, pairs), "sort"))
    return _all(networks)


# Name of a case, to its proofs and the limit of their seconds.
CASES: dict[str, tuple[Callable[[], Outcome], float | None]] = {
    "bitonic 1024": (_family("bitonic", 1024), 2),
    "odd-even merge 1024": (_family("odd_even_merge", 1024), 2),
    "odd-even transposition 1024": (_family("odd_even", 1024), 1),
    "best 1024": (_family("best", 1024), None),
    "bitonic 4096": (_family("bitonic", 4096), 2),
    "bitonic 65536": (_family("bitonic", 65536), 20),
    "odd-even merge 65536": (_family("odd_even_merge", 65536), 20),
    "odd-even transposition 8192": (_family("odd_even", 8192), 20),
    "top 8 of 4096": (lambda: _all([(top_k_candidates(4096, 8)[0].network, "top-8")]), 2),
    "pairwise 65536": (_family("pairwise", 65536), 20),
    "known sorters up to 64 wires": (lambda: _all([each for each in _known() if each[1] == "sort"]), 30),
    "known medians up to 64 wires": (lambda: _all([each for each in _known() if each[1] == "median"]), None),
    "networks smaller than published": (
        lambda: _all([(each.network, kind) for kind in KINDS for each in found(kind)]),
        None,
    ),
    f"{CHANGES:,} changed sorters": (_changed, None),
}


@click.command()
@click.option(
    "--only", default="", metavar="TEXT", help="Cases whose name contains TEXT; nothing is written."
)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def main(only: str, rounds: int) -> None:
    """Time proofs: medians of some rounds, with the peak memory of their processes."""
    from benchmarks.machine import machine
    from benchmarks.report import paragraph

    names = [name for name in CASES if only in name]
    if not names:
        raise click.UsageError(f"no case contains {only!r}; there are: {'; '.join(CASES)}")
    columns = ("proof", "verdict", "seconds", "slowest", "limit", "MB")
    rows = []
    with Console(stderr=True).status("") as status:
        for name in names:
            status.update(name)
            rows.append(_row(name, rounds))
    console = Console(width=max(180, Console().width))
    table = Table(title=machine(), title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in columns[:2] else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if not only:
        lines = [columns, ("---", "---", *["---:"] * 4), *rows]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        head = (
            f"`python -m benchmarks.proofs` on {machine()}. Medians of "
            f"{count(rounds, 'round')}, each in a process of its own: seconds of all proofs of a row and of "
            "its slowest, the limit for all, peak memory of the process."
        )
        write_whole(RESULTS, f"# Proofs\n\n{paragraph(head)}\n\n{text}\n")
        console.print(f"wrote {RESULTS}", soft_wrap=True)


def _row(name: str, rounds: int) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [
            run_fresh("benchmarks.proofs", "--case", name, env={"NSC_CACHE_DIR": folder})
            for _ in range(rounds)
        ]
    outcomes.sort(key=lambda outcome: float(outcome["seconds"]))
    median = outcomes[len(outcomes) // 2]
    limit = CASES[name][1]
    return (
        name,
        median["verdicts"],
        f"{median['seconds']:.2f}",
        f"{median['slowest']:.2f}",
        "" if limit is None else f"{limit:g}",
        f"{median['megabytes']:.0f}",
    )


def _run(name: str) -> None:
    """Run one case in this process, and print its outcome as JSON."""
    outcome = CASES[name][0]()
    # Not ru_maxrss, which begins with the size of the process that started this one.
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    facts = {**asdict(outcome), "megabytes": peak * MB_PER_KB}
    print(json.dumps(facts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        _run(sys.argv[2])
    else:
        main()
