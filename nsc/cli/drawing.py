"""nsc draw."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nsc.cli.outputs import Output, output_at
from nsc.cli.reporting import reporting, verbose_option
from nsc.cli.shared import Limits, limit_options, relaxation_options, selection_options, wires_option
from nsc.cli.sources import Source, network_options
from nsc.study.explorer.facts import gather
from nsc.study.explorer.page import render_page
from nsc.study.explorer.pictures import PICTURES, picture

PAGE = "html"
# Maps suffixes of files to the formats that nsc draw writes.
SUFFIXES = {".html": PAGE, ".svg": "svg", ".tex": "tikz", ".tikz": "tikz", **PICTURES}
FORMATS = list(dict.fromkeys(SUFFIXES.values()))
# The parameters that pictures have too.
_OF_PICTURES = {"net", "second", "alias", "n", "format", "index_base", "out", "to", "verbose"}


@click.command("draw")
@network_options
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="OUT",
    help="File to write: .html, .svg, .tex, .png or .pdf; - is standard output. Default: NAME.html, in this "
    "folder.",
)
@click.option(
    "--to",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help=f"Format to write: {', '.join(FORMATS)}. Default: by the suffix of OUT, or html.",
)
@selection_options
@wires_option
@relaxation_options
@click.option(
    "--steepness", type=float, help="Its steepness; default: 2 × depth / N, for the page's inputs 1 … N."
)
@limit_options
@verbose_option
def draw_command(
    source: Source,
    out: Path | None,
    to: str | None,
    steepness: float | None,
    limits: Limits,
    verbose: bool,
    **options: Any,
) -> None:
    """Draw a network: as a page to explore in a browser, or as a picture.

    The page is one file that loads nothing. It has the diagram with values, 0-1 inputs and relaxed runs, the
    network in every format, generated source, bounds and the proof. If a network does not sort, the drawing
    shows where it fails. A page shows at most 128 wires.

    With --top-k, --median or --ranks, the page shows the part of the network that these ranks need. The page
    begins with the relaxation of the options, and its generated source has this relaxation.
    OUT is written whole or not at all; an existing OUT is replaced. .png and .pdf need matplotlib.
    """
    output = _output(out, to)
    if output is not None and output.format != PAGE:
        context = click.get_current_context()
        given = [
            param.opts[-1]
            for param in context.command.params
            if param.name not in _OF_PICTURES
            and context.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        ]
        if given:
            raise click.UsageError(f"{given[0]} is for a page, -o NAME.html, not for {output.words}")
        with reporting(verbose) as progress:
            network = source.network(progress)
            progress.phase("write")
            if output.format in PICTURES.values():
                content = output.write(picture(network, output.format))
            else:
                content = output.write_network(network)
        said = network.counts
    else:
        with reporting(verbose) as progress:
            request = source.request(progress, **options)
            facts = gather(request, limits.budget(progress), steepness=steepness)
            output = output or Output(Path(f"{facts['name']}.html"), PAGE)
            content = output.write(render_page(facts).encode())
        said = f"{facts['title']}; {facts['proof']['sentence']}"
    click.echo(content, nl=False)
    if output.path is not None:
        click.echo(f"{output.path}: {said}")


def _output(out: Path | None, to: str | None) -> Output | None:
    """Return the output of a drawing; None: a page that has the network's name."""
    if out is None:
        if to not in (None, PAGE):
            raise click.UsageError(f"--to {to}: name its file with -o; - is standard output")
        return None
    output = output_at(out, to or PAGE)
    if output.path is None:
        if output.format in PICTURES.values() and sys.stdout is not None and sys.stdout.isatty():
            raise click.UsageError(f"{output.format} is not text: name a file with -o, or a pipe or > FILE")
        return output
    format = to or SUFFIXES.get(out.suffix.lower())
    if format is None:
        raise click.UsageError(
            f"{out}: nsc draw writes {', '.join(SUFFIXES)}; nsc convert writes other formats"
        )
    return Output(out, format)
