"""nsc list, records, show and explain."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.text import Text

from nsc.cli.reporting import Console, print_table
from nsc.cli.shared import json_option
from nsc.cli.sources import Source, network_options
from nsc.compiler.diagram import bands, in_ascii, knuth_diagram
from nsc.compiler.families import FAMILIES, KINDS, LIST_DATE, Found, summary_of
from nsc.compiler.network import Network, check_wires
from nsc.compiler.optimize import records_of, top_k_candidates
from nsc.compiler.schedule import TERMS, explain, schedule
from nsc.compiler.verify import parse, sort
from nsc.errors import NetworkError
from nsc.networks import records
from nsc.wording import count

# The largest diagram for a terminal; a column of it holds one comparator or a few.
MOST_WIRES, MOST_COMPARATORS = 64, 1 << 14
_LIST = f"B. Dobbelaere's lists of {LIST_DATE}"


@click.command("list")
@click.option("--n", type=int, default=16, show_default=True, help="Number of wires.")
@click.option("--top-k", type=int, metavar="K", help="List the constructions for the K largest instead.")
@json_option
def list_command(n: int, top_k: int | None, as_json: bool) -> None:
    """List the families with their size and depth at N wires.

    With --top-k K: list the constructions for the K largest of N values, fewest half operations first. A half
    operation is a minimum or a maximum that one of the K outputs depends on; live wires are the values held
    at a time.
    """
    check_wires(n)
    if top_k is None:
        _list_families(n, as_json)
    else:
        _list_top_k(n, top_k, as_json)


def _list_families(n: int, as_json: bool) -> None:
    rows: dict[str, dict[str, object]] = {}
    for name, family in FAMILIES.items():
        try:
            network = family(n)
            rows[name] = {"size": network.size, "depth": network.depth, "summary": summary_of(name)}
        except NetworkError as error:
            rows[name] = {"size": None, "depth": None, "summary": str(error)}
    if as_json:
        click.echo(json.dumps({"n": n, "families": rows}, indent=1))
        return
    cells = [
        (name, row["size"], row["depth"], str(row["summary"]).removeprefix("Return ").rstrip("."))
        for name, row in rows.items()
    ]
    print_table(f"Families at n = {n}", ("family", "size", "depth", ""), cells, wide="")


def _list_top_k(n: int, k: int, as_json: bool) -> None:
    rows = [
        {
            "name": candidate.name,
            "size": candidate.network.size,
            "half_operations": candidate.half_operations,
            "depth": candidate.network.depth,
            "live_wires": candidate.live_wires,
        }
        for candidate in top_k_candidates(n, k)
    ]
    if as_json:
        click.echo(json.dumps({"n": n, "k": k, "candidates": rows}, indent=1))
        return
    columns = ("construction", "comparators", "half operations", "depth", "live wires")
    title = f"The largest of {n}" if k == 1 else f"The {k} largest of {n}"
    print_table(title, columns, [[*row.values()] for row in rows], wide="construction")


@click.command("records")
@click.option("--n", type=int, metavar="N", help="Show the best known networks on N wires instead.")
@json_option
def records_command(n: int | None, as_json: bool) -> None:
    """List the sorters and medians of nsc that are smaller than the published ones, and who found them.

    With --n N: list the best known sorters and medians on N wires, with the lower bounds, and the networks
    for the k largest values that were found by search. No other network beats the listed sorters and medians
    in both comparators and layers. Every command takes the name of a listed network, such as sort_53_414_20,
    as its NETWORK.
    """
    listed = [_facts(entry) for entry in records(n)]
    if n is not None:
        _list_best(n, listed, as_json)
    elif as_json:
        click.echo(json.dumps({"list_date": LIST_DATE, "smaller": listed}, indent=1))
    else:
        _print_records("Networks smaller than published", listed, ("published", "depth", "by", "date"))
        click.echo(f"published: the smallest of so many layers or fewer, in {_LIST}")
        click.echo("prove one: nsc verify sort_27_152_13, nsc verify median_26_99_12 --property median")


def _list_best(n: int, listed: list[dict[str, object]], as_json: bool) -> None:
    bounds = {kind: records_of(parse(kind, n)) for kind in KINDS}
    by_kind = {kind: [entry for entry in listed if entry["property"] == kind] for kind in KINDS}
    selections = [entry for entry in listed if entry["property"] not in KINDS]
    if as_json:
        facts: dict[str, object] = {
            kind: None if (record := bounds[kind]) is None else {**asdict(record), "networks": by_kind[kind]}
            for kind in KINDS
        }
        facts["selections"] = selections
        click.echo(json.dumps({"n": n, "list_date": LIST_DATE, **facts}, indent=1))
        return
    for kind in KINDS:
        record = bounds[kind]
        if by_kind[kind]:
            _print_records(f"The best known networks, {kind}", by_kind[kind])
        if record is not None:
            click.echo(f"{kind}: {record.words}")
    if selections:
        _print_records("Networks for the k largest values", selections)
    if by_kind["sort"]:
        click.echo(f"published: {_LIST}, which name the authors")


def _print_records(
    title: str, rows: list[dict[str, object]], keys: tuple[str, ...] = ("depth", "by")
) -> None:
    keys = ("name", "size", *keys)
    columns = ["found by" if key == "by" else key for key in keys]
    cells = [["published" if row[key] is None else row[key] for key in keys] for row in rows]
    print_table(title, columns, cells, wide="found by")


def _facts(entry: Found) -> dict[str, object]:
    network = entry.network
    counts = {"n": network.n, "size": network.size, "depth": network.depth}
    facts: dict[str, object] = {"name": entry.name, "property": entry.kind, **counts, "by": entry.by}
    made = {"published": entry.published, "date": entry.date, "how": entry.how}
    return facts if entry.by is None else {**facts, **made}


@click.command("show")
@network_options
def show_command(source: Source) -> None:
    """Draw a network of at most 64 wires and 16,384 comparators as a Knuth diagram, and print its counts.

    A circle keeps the minimum, a filled circle the maximum; without UTF-8 they are o and @. In a terminal the
    diagram has colours. If it is wider than the window, it goes on below.
    """
    network = source.network()
    if network.n > MOST_WIRES:
        click.echo(f"no diagram: {count(network.n, 'wire')}, at most {MOST_WIRES} fit a terminal")
    elif network.size > MOST_COMPARATORS:
        comparators = count(network.size, "comparator")
        click.echo(f"no diagram: {comparators}, at most {MOST_COMPARATORS:,} fit a terminal")
    else:
        _draw(network)
    click.echo(network.counts)


def _draw(network: Network) -> None:
    console = Console(highlight=False)
    if not console.encoding.startswith("utf"):
        click.echo(in_ascii(knuth_diagram(network)))
        return
    if not console.is_terminal or console.width < 1:
        click.echo(knuth_diagram(network))
        return
    for part in bands(network, console.width):
        text = Text(knuth_diagram(part))
        for pattern, style in ((r"[─┼┆]+", "dim"), (r"○", "cyan"), (r"●", "bold magenta")):
            text.highlight_regex(pattern, style)
        console.print(text, soft_wrap=True)


@click.command("explain")
@network_options
@json_option
def explain_command(source: Source, as_json: bool) -> None:
    """Show how a network is scheduled: codelets, comparators per wire loaded, light cones.

    The best known size and depth of sorting networks and their lower bounds are printed too.
    """
    network = source.network()
    figures, records = explain(schedule(network)), records_of(sort(network.n))
    if as_json:
        known = {"best_known": None if records is None else asdict(records)}
        click.echo(json.dumps({**asdict(figures), **known}, indent=1))
        return
    click.echo(
        f"{count(figures.comparators, 'comparator')} in {count(figures.codelets, 'codelet')} of "
        f"{count(figures.shapes, 'shape')}"
    )
    click.echo(
        f"{figures.comparators_per_load:.2f} comparators per wire loaded ({count(figures.loads, 'load')}; "
        f"a layer at a time is 0.50), {figures.flops_per_byte:.2f} flops per byte"
    )
    click.echo(f"at most {count(figures.widest, 'wire')} live in a codelet")
    click.echo(f"P takes {figures.light_cone:.0%} of the dense work: the rest lies outside the light cones")
    if records is not None:
        click.echo(f"{network.counts}; {records.words}")
    for term, meaning in TERMS.items():
        click.echo(f"{term}: {meaning}")
