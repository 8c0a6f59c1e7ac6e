"""nsc list, show and explain."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.table import Table
from rich.text import Text

from nsc.cli.reporting import Console
from nsc.cli.sources import Source, network_options
from nsc.compiler.diagram import bands, in_ascii, knuth_diagram
from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network, check_wires
from nsc.compiler.optimize import records_of, top_k_candidates
from nsc.compiler.schedule import TERMS, explain, schedule
from nsc.compiler.verify import sort
from nsc.errors import NetworkError
from nsc.wording import count

# Of a diagram in the terminal, which has a column for one comparator or a few.
MOST_WIRES, MOST_COMPARATORS = 64, 1 << 14


@click.command("list")
@click.option("--n", type=int, default=16, show_default=True, help="Number of wires.")
@click.option("--top-k", type=int, metavar="K", help="List the constructions for the K largest instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
            rows[name] = {"size": network.size, "depth": network.depth, "summary": family.summary}
        except NetworkError as error:
            rows[name] = {"size": None, "depth": None, "summary": str(error)}
    if as_json:
        click.echo(json.dumps({"n": n, "families": rows}, indent=1))
        return
    table = Table(title=f"Families at n = {n}", title_justify="left")
    table.add_column("family", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("depth", justify="right", no_wrap=True)
    table.add_column("")
    for name, row in rows.items():
        size, depth = row["size"], row["depth"]
        table.add_row(
            name,
            "–" if size is None else f"{size:,}",
            "–" if depth is None else str(depth),
            str(row["summary"]).removeprefix("Return ").rstrip("."),
        )
    Console().print(table)


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
    table = Table(title=f"The largest of {n}" if k == 1 else f"The {k} largest of {n}", title_justify="left")
    table.add_column("construction")
    for column in ("comparators", "half operations", "depth", "live wires"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, *costs in (row.values() for row in rows):
        table.add_row(str(name), *(f"{cost:,}" for cost in costs))
    Console().print(table)


@click.command("show")
@network_options
def show_command(source: Source) -> None:
    """Draw a network of at most 64 wires and 16,384 comparators as a Knuth diagram, and print its counts.

    A circle keeps the minimum, a filled one the maximum; without UTF-8, o and @. In a terminal the diagram
    has colours, and goes on below where it is wider than the window.
    """
    network = source.network()
    if network.n > MOST_WIRES:
        click.echo(f"no diagram: {count(network.n, 'wire')}, at most {MOST_WIRES} fit a terminal")
    elif network.size > MOST_COMPARATORS:
        comparators = count(network.size, "comparator")
        click.echo(f"no diagram: {comparators}, at most {MOST_COMPARATORS:,} fit a terminal")
    else:
        _draw(network)
    click.echo(f"{network.counts}")


def _draw(network: Network) -> None:
    console = Console(highlight=False)
    if not console.encoding.startswith("utf"):
        click.echo(in_ascii(knuth_diagram(network)))
        return
    if not console.is_terminal or console.width < 1:
        click.echo(knuth_diagram(network))
        return
    for part in bands(network, console.width):
        console.print(_coloured(knuth_diagram(part)), soft_wrap=True)


def _coloured(diagram: str) -> Text:
    text = Text(diagram)
    for pattern, style in ((r"[─┼┆]+", "dim"), (r"○", "cyan"), (r"●", "bold magenta")):
        text.highlight_regex(pattern, style)
    return text


@click.command("explain")
@network_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
