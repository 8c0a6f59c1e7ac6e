"""nsc records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import click
from rich.table import Table

from nsc.cli.reporting import Console
from nsc.compiler.families import KINDS, LIST_DATE, Found
from nsc.compiler.optimize import records_of
from nsc.compiler.verify import parse
from nsc.networks import records

_LIST = f"B. Dobbelaere's lists as of {LIST_DATE}"


@click.command("records")
@click.option("--n", type=int, metavar="N", help="Show the best known networks on N wires instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def records_command(n: int | None, as_json: bool) -> None:
    """List the sorters and medians of nsc that are smaller than the published ones, and who found them.

    With --n N: list the best known sorters and medians on N wires, those that no other beats in both
    comparators and layers, with the lower bounds, and the networks for the k largest values that were found
    by search. Every command takes the name of one of these networks, such as sort_53_414_20, as its NETWORK.
    """
    if n is None:
        _list_smaller(as_json)
    else:
        _list_best(n, as_json)


def _list_smaller(as_json: bool) -> None:
    smaller = [_facts(entry) for entry in records()]
    if as_json:
        click.echo(json.dumps({"list_date": LIST_DATE, "smaller": smaller}, indent=1))
        return
    _print_table(
        "Networks smaller than published", ("name", "size", "published", "depth", "by", "date"), smaller
    )
    click.echo(f"published: the smallest of so many layers or fewer, in {_LIST}")
    click.echo("prove one: nsc verify sort_27_152_13, nsc verify median_26_99_12 --property median")


def _list_best(n: int, as_json: bool) -> None:
    listed = [_facts(entry) for entry in records(n)]
    bounds = {kind: records_of(parse(kind, n)) for kind in KINDS}
    of_kind = {kind: [entry for entry in listed if entry["property"] == kind] for kind in KINDS}
    selections = [entry for entry in listed if entry["property"] not in KINDS]
    if as_json:
        facts: dict[str, object] = {
            kind: None if (record := bounds[kind]) is None else {**asdict(record), "networks": of_kind[kind]}
            for kind in KINDS
        }
        facts["selections"] = selections
        click.echo(json.dumps({"n": n, "list_date": LIST_DATE, **facts}, indent=1))
        return
    for kind in KINDS:
        record = bounds[kind]
        if of_kind[kind]:
            _print_table(f"The best known networks, {kind}", ("name", "size", "depth", "by"), of_kind[kind])
        if record is not None:
            click.echo(f"{kind}: {record.words}")
    if selections:
        _print_table("Networks for the k largest values", ("name", "size", "depth", "by"), selections)
    if of_kind["sort"]:
        click.echo(f"published: {_LIST}, which name the authors")


def _print_table(title: str, keys: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    table = Table(title=title, title_justify="left")
    for key in keys:
        is_number = key in ("size", "published", "depth")
        table.add_column(
            "found by" if key == "by" else key,
            justify="right" if is_number else "left",
            no_wrap=key != "by",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*("published" if row[key] is None else str(row[key]) for key in keys))
    Console().print(table)


def _facts(entry: Found) -> dict[str, object]:
    network = entry.network
    counts = {"n": network.n, "size": network.size, "depth": network.depth}
    facts: dict[str, object] = {"name": entry.name, "property": entry.kind, **counts, "by": entry.by}
    made = {"published": entry.published, "date": entry.date, "how": entry.how}
    return facts if entry.by is None else {**facts, **made}
