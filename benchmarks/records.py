"""`python -m benchmarks.records`: write the tables of docs/records.md anew, in about five minutes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.report import paragraph
from nsc.compiler.families import KINDS, found, known, published
from nsc.compiler.network import Network
from nsc.compiler.optimize import smallest_constructions
from nsc.compiler.passes import half_operations
from nsc.compiler.verify import parse

PAGE = Path(__file__).parents[1] / "docs" / "records.md"

MOST_WIRES = 64
COLUMNS = range(1, 9)
# A letter in the table for the construction whose name begins so.
LETTERS = {"best": "", "pruned": "p", "known sorters": "c", "blocks": "b", "known selections": "s"}


def main() -> None:
    """Write both tables, and the sentences on them."""
    text = PAGE.read_text("utf-8")
    wires = range(2, MOST_WIRES + 1)
    made = (("smaller", smaller()), ("extreme", extreme()), ("saved", saved(wires)), ("top-k", top_k(wires)))
    for name, rows in made:
        text = with_table(text, name, "\n".join(rows))
    PAGE.write_text(text, encoding="utf-8")


def with_table(page: str, name: str, table: str) -> str:
    """Return a page with another table between the marks of its name."""
    before, rest = page.split(f"<!-- {name} -->\n")
    after = rest.split(f"<!-- end of {name} -->\n")[1]
    return f"{before}<!-- {name} -->\n\n{table}\n\n<!-- end of {name} -->\n{after}"


def smaller() -> Iterator[str]:
    """Yield the rows of the networks that are smaller than published."""
    yield "| network | wires | layers | published | here | found by | date | made of |"
    yield "|---|---:|---:|---:|---:|---|---|---|"
    for kind in KINDS:
        for entry in found(kind):
            m = entry.network
            by = f"[{entry.by}](https://github.com/{entry.by})" if "/" in entry.by else entry.by
            cells = (m.n, m.depth, entry.published, m.size, by, entry.date, entry.how)
            yield f"| `{entry.name}` | {' | '.join(map(str, cells))} |"


def extreme() -> Iterator[str]:
    """Yield the lines of two sentences: which of them are smaller, or shallower, than every published one."""
    every = [(entry, published(kind)[entry.network.n]) for kind in KINDS for entry in found(kind)]
    smallest = [e.name for e, others in every if e.network.size < min(m.size for m in others)]
    shallowest = [e.name for e, others in every if e.network.depth < min(m.depth for m in others)]
    yield paragraph(
        f"{_have(smallest)} fewer comparators than every published network on as many wires. "
        f"{_have(shallowest)} fewer layers."
    )


def _have(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    if len(quoted) < 2:
        return f"{quoted[0] if quoted else 'None of them'} has"
    return f"{', '.join(quoted[:-1])} and {quoted[-1]} have"


def top_k(sizes: range) -> Iterator[str]:
    """Yield the rows of the networks for the k largest values, in order, and for the n/2 largest as a set."""
    yield f"| n | {' | '.join(map(str, COLUMNS))} | n/2 | n/2, as a set |"
    yield f"|---:|{'---:|' * (len(COLUMNS) + 2)}"
    for n in sizes:
        cells = [selection(n, k) if k <= n else "" for k in (*COLUMNS, n // 2)]
        halved = halver(n)
        yield f"| {n} | {' | '.join(cells)} | {'' if halved is None else halved.size} |"


def selection(n: int, k: int) -> str:
    """Return the size of the best construction for the k largest of n values, with its letter."""
    name, network = constructions(n, k)[0]
    letter = next(letter for start, letter in LETTERS.items() if name.startswith(start))
    return f"{network.size} {letter}".rstrip()


@cache
def constructions(n: int, k: int) -> list[tuple[str, Network]]:
    """Return the networks for the k largest of n values, the cheapest first, with their constructions."""
    return smallest_constructions(parse(f"top-{k}", n))


def saved(sizes: range) -> Iterator[str]:
    """Yield the lines of a sentence: what selections found by search save against all other constructions."""
    entries = [(n, k) for n in sizes for k in COLUMNS if k < n]
    shares = []
    for n, k in entries:
        (name, network), *others = constructions(n, k)
        if name.startswith("known selections"):
            outputs = range(n - k, n)
            other = next(m for made, m in others if not made.startswith("known selections"))
            shares.append(1 - half_operations(network, outputs) / half_operations(other, outputs))
    yield paragraph(
        f"Of the {len(entries)} entries with k < n and k up to {COLUMNS[-1]}, {len(shares)} are *s*. They "
        f"take up to {100 * max(shares):.1f} % fewer half operations than the best of the others, "
        f"{100 * median(shares):.1f} % in the median."
    )


def halver(n: int) -> Network | None:
    """Return the smallest known median network of an even n, with a comparator of its two middle wires.

    Then the n/2 largest values are on the upper wires, in any order.
    """
    if n % 2 or n not in known("median"):
        return None
    return Network.from_layers(n, [*known("median")[n][0].layers(), [(n // 2 - 1, n // 2)]])


if __name__ == "__main__":
    main()
