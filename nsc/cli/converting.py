"""nsc convert and nsc optimize: from one network file to another."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from nsc.cli.reporting import reporting, verbose_option
from nsc.cli.shared import (
    EXIT_CODES,
    STANDARD,
    Limits,
    PropertyOptions,
    Reading,
    counts_of,
    index_base_option,
    limit_options,
    property_options,
    reading_options,
)
from nsc.compiler.formats import (
    format_of_path,
    losses,
    readable,
    save_network,
    writable,
    write_network,
)
from nsc.compiler.optimize import optimize
from nsc.compiler.verify import Verdict
from nsc.compiler.verify import verify as verify_network
from nsc.wording import count


@click.command("convert")
@click.argument("source", metavar="A", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("target", metavar="B", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--from", "format", type=click.Choice(readable()), help="A's format; default: found from content."
)
@click.option("--to", type=click.Choice(writable()), help="B's format; default: by B's suffix, nsc for -.")
@click.option("--n", type=int, metavar="N", help="Number of wires, where A does not state it.")
@index_base_option
@verbose_option
def convert_command(
    source: Path,
    target: Path,
    format: str | None,
    to: str | None,
    n: int | None,
    index_base: int | None,
    verbose: bool,
) -> None:
    """Write the network in file A to file B, in another format; - is standard input or output.

    B is written whole or not at all; an existing B is replaced. Properties of the network that B's format
    cannot hold are named on standard error.
    """
    standard = Path(STANDARD)
    format_ = to or ("nsc" if target == standard else format_of_path(target))
    with reporting(verbose) as progress:
        network = Reading(n, format, index_base).file(source, progress)
        progress.phase("write")
        lost = losses(network, format_)
        if target == standard:
            text = write_network(network, format_)
        else:
            save_network(network, target, format_)
    for note in lost:
        click.echo(f"nsc: note: {note}", err=True)
    if target == standard:
        click.echo(text.encode(), nl=False)
        return
    click.echo(f"{target}: {network.counts}, as {format_}")


@click.command("optimize")
@click.argument("network", metavar="FILE|FAMILY", type=click.Path(path_type=Path, allow_dash=True))
@reading_options
@property_options
@limit_options
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="OUT",
    help="File for the smaller network, in the format of its suffix.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
@verbose_option
def optimize_command(
    network: Path,
    reading: Reading,
    stated: PropertyOptions,
    limits: Limits,
    out: Path,
    as_json: bool,
    verbose: bool,
) -> None:
    """Make a network smaller for a property that it has: remove dead and redundant comparators.

    The smaller network has the property and is never larger or deeper. Exactly sorted values stay the same,
    soft values change. Exit code: 0 written, 1 the network lacks the property, 2 bad input, 3 unproved.
    """
    to = format_of_path(out)
    with reporting(verbose, as_json) as progress:
        original = reading.network(str(network), progress)
        property_, budget = stated.property(original.n), limits.budget(progress)
        proof = verify_network(original, property_, budget)
        if proof.verdict is Verdict.PROVED:
            progress.phase("optimise")
            optimized = optimize(original, property_, budget)
            progress.phase("write")
            save_network(optimized.network, out, to)
    if proof.verdict is not Verdict.PROVED:
        click.echo(f"nsc: {proof.sentence()}, so nothing is written; see nsc verify", err=True)
        sys.exit(EXIT_CODES[proof.verdict])
    if as_json:
        counts = {
            "before": asdict(optimized.before),
            "after": asdict(optimized.after),
            "skipped": optimized.skipped,
        }
        click.echo(json.dumps({"property": property_.name, **counts, **counts_of(optimized.network)}))
        return
    table = Table(title=f"{out}: {property_.name}, {count(original.n, 'wire')}", title_justify="left")
    for column in ("", "before", "after"):
        table.add_column(column, justify="right" if column else "left")
    for row, key in (("comparators", "size"), ("layers", "depth"), ("half operations", "half_operations")):
        table.add_row(row, *(f"{getattr(part, key):,}" for part in (optimized.before, optimized.after)))
    Console().print(table)
    if optimized.skipped is not None:
        click.echo(f"redundant comparators were not looked for: {optimized.skipped}")
