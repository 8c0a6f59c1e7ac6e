"""nsc header."""

from __future__ import annotations

import json
import time

import click

from nsc.cli.completing import some_of
from nsc.cli.outputs import Output, check_json, output_at
from nsc.cli.reporting import reporting
from nsc.cli.shared import (
    Limits,
    ResultOptions,
    counts_of,
    limit_options,
    list_option,
    numbers_of,
    remove_redundant_option,
    result_options,
    selection_options,
    unproved_option,
    wires_option,
)
from nsc.cli.sources import Source, network_options
from nsc.compiler.header import compile_header
from nsc.compiler.package import replaces_file, write_file
from nsc.compiler.selection import Selection
from nsc.contract.exact import C_TYPES


@click.command("header")
@network_options
@selection_options
@wires_option
@remove_redundant_option
@list_option(
    "--dtype",
    "dtypes",
    default=("float32",),
    show_default=True,
    metavar="TYPE,…",
    shell_complete=some_of(C_TYPES),
    help=f"Types of values: {', '.join(C_TYPES)}.",
)
@result_options
@limit_options
@unproved_option
def header_command(
    source: Source,
    select: Selection | None,
    wires: str | None,
    remove_redundant: bool,
    dtypes: tuple[str, ...],
    result: ResultOptions,
    limits: Limits,
    unproved: bool,
) -> None:
    """Prove a network and write C functions that sort or select exactly, without dependencies, to OUT/NAME.h.

    OUT is a folder, or the file itself if it ends in .h; - is standard output.

    With --top-k, --median or --ranks only these values are stored. --wires names the wires on which a network
    file leaves them. In the place of NETWORK a window such as 3x3, with --median or --rank R, gives the
    functions of a filter of images.

    --dtype takes one value, several with commas, or is repeated.
    """
    output, name = output_at(result.out, "a header"), result.name
    check_json(result.as_json, output, "header")
    file = output.path
    if file is not None and file.suffix == ".h":
        if name not in (None, file.stem):
            raise click.UsageError(f"the header is named twice, {file} and --name {name}: name it once")
        output, name = Output(file.parent, output.format), file.stem
    start = time.perf_counter()
    with reporting(result.verbose) as progress:
        request = source.request(
            progress,
            dtypes=dtypes,
            name=name,
            unproved=unproved,
            select=select,
            wires=numbers_of("--wires", wires),
            remove_redundant=remove_redundant,
            is_header=True,
        )
        compiled = compile_header(request, limits.budget(progress))
        if output.path is None:
            click.echo(output.write(compiled.text.encode()), nl=False)
            return
        progress.phase("write")
        written = f"{compiled.name}.h"
        replaced = replaces_file(written, compiled.text, output.path)
        place = write_file(written, compiled.text, output.path)
    network, proof, seconds = compiled.network, compiled.proof, time.perf_counter() - start
    if result.as_json:
        facts = {
            "name": compiled.name,
            "header": str(place),
            "replaced": replaced,
            **counts_of(network),
            "proof": proof.facts(),
            "dtypes": request.dtypes,
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts, indent=1))
        return
    click.echo(f"{place}: {network.counts}")
    click.echo(f"{proof.sentence()}: {proof.method}: {proof.detail}")
    if replaced:
        click.echo(f"replaced: {place} held another header")
    call = f"{compiled.name}_{request.dtypes[0]}(x, values)"
    click.echo(f'written, in {seconds:.2f} s; use it with: #include "{place.name}" and {call}')
