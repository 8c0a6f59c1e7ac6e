"""nsc convert and nsc optimize: from one network file to another."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from nsc.cli.outputs import Output, check_json, output_options
from nsc.cli.reporting import print_table, reporting, verbose_option
from nsc.cli.shared import Limits, PropertyOptions, counts_of, json_option, limit_options, property_options
from nsc.cli.sources import Source, network_options
from nsc.compiler.families import known, known_name
from nsc.networks import proved_and_optimized
from nsc.wording import count


@click.command("convert")
@network_options
@output_options
@verbose_option
def convert_command(source: Source, output: Output, verbose: bool) -> None:
    """Write a network to a file, in another format.

    Without OUT the network goes to standard output. An existing file is replaced.
    Properties of the network that the format cannot hold are named on standard error.
    """
    with reporting(verbose) as progress:
        network = source.network(progress)
        progress.phase("write")
        content = output.write_network(network)
    output.finish(network, content)
    if output.path is not None:
        click.echo(f"{output.path}: {network.counts}, as {output.format}")


@click.command("optimize")
@network_options
@property_options
@limit_options
@output_options
@json_option
@verbose_option
def optimize_command(
    source: Source,
    stated: PropertyOptions,
    limits: Limits,
    output: Output,
    as_json: bool,
    verbose: bool,
) -> None:
    """Make a network smaller for a property that it has: remove dead and redundant comparators.

    The smaller network has the property and is never larger or deeper. Exactly sorted values stay the same,
    soft values change. Without OUT the network goes to standard output, and its counts to standard error.
    Exit code: 0 written, 1 the network lacks the property, 2 bad input, 3 unproved.
    """
    check_json(as_json, output, "network")
    with reporting(verbose) as progress:
        original = source.network(progress)
        property_ = stated.property(original.n)
        optimized = proved_and_optimized(original, property_, limits.budget(progress))
        progress.phase("write")
        content = output.write_network(optimized.network)
    output.finish(optimized.network, content)
    if as_json:
        counts = {
            "before": asdict(optimized.before),
            "after": asdict(optimized.after),
            "skipped": optimized.skipped,
            "best_known": None if optimized.known is None else asdict(optimized.known),
        }
        click.echo(json.dumps({"property": property_.name, **counts, **counts_of(optimized.network)}))
        return
    before, after, on_error = optimized.before, optimized.after, output.path is None
    print_table(
        f"{output.words}: {property_.name}, {count(original.n, 'wire')}",
        ("", "before", "after"),
        [
            ("comparators", before.size, after.size),
            ("layers", before.depth, after.depth),
            ("half operations", before.half_operations, after.half_operations),
        ],
        wide="",
        err=on_error,
    )
    if optimized.known is not None:
        click.echo(optimized.known.words, err=on_error)
        if optimized.known.size < optimized.network.size:
            # Smaller ones are known of sorters and medians alone.
            is_sort, n = property_.is_sort, property_.n
            smallest = f"best --n {n}" if is_sort else known_name("median", known("median")[n][0])
            click.echo(f"a smaller one: nsc convert {smallest}", err=on_error)
    if optimized.skipped is not None:
        click.echo(f"redundant comparators were not looked for: {optimized.skipped}", err=on_error)
