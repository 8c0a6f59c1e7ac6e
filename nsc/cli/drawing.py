"""nsc draw."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nsc.cli.outputs import Output, output_at
from nsc.cli.reporting import reporting, verbose_option
from nsc.cli.shared import (
    Limits,
    is_given,
    limit_options,
    numbers_of,
    selection_options,
    wires_option,
)
from nsc.cli.sources import Source, network_options
from nsc.compiler.drawing import PICTURES, Start, gather, picture, render_page
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.selection import Selection

PAGE = "html"
# What draw writes, by the suffix of a file.
SUFFIXES = {".html": PAGE, ".svg": "svg", ".tex": "tikz", ".tikz": "tikz", **PICTURES}
FORMATS = list(dict.fromkeys(SUFFIXES.values()))
# Options that a picture does not have.
_OF_PAGES = (
    "top_k",
    "median",
    "ranks",
    "wires",
    "relaxation",
    "art_lambda",
    "error_free",
    "steepness",
    "time_limit",
    "max_memory",
)


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
@click.option(
    "--relaxation",
    type=click.Choice(list(SIGMOIDS)),
    default="logistic",
    show_default=True,
    help="How the page softens comparators first, and its generated source always.",
)
@click.option("--art-lambda", type=float, default=0.25, show_default=True, help="Its strength λ, in [0, 1).")
@click.option("--error-free", is_flag=True, help="Exact values and a 0/1 P, with soft gradients.")
@click.option(
    "--steepness", type=float, help="Its steepness; default: 2 × depth / N, for the page's inputs 1 … N."
)
@limit_options
@verbose_option
@click.pass_context
def draw_command(
    context: click.Context,
    source: Source,
    out: Path | None,
    to: str | None,
    select: Selection | None,
    wires: str | None,
    relaxation: str,
    art_lambda: float,
    error_free: bool,
    steepness: float | None,
    limits: Limits,
    verbose: bool,
) -> None:
    """Draw a network: as a page to explore in a browser, or as a picture.

    The page is one file that loads nothing. It has the diagram with values, 0-1 inputs and relaxed runs, the
    network in every format, generated source, bounds and the proof. A network that does not sort is drawn
    with where it fails. A page shows at most 128 wires.

    With --top-k, --median or --ranks, the page shows what these ranks need of the network.
    OUT is written whole or not at all; an existing OUT is replaced. .png and .pdf need matplotlib.
    """
    output = _output(out, to)
    if output is not None and output.format != PAGE:
        given = [name for name in _OF_PAGES if is_given(context, name)]
        if given:
            raise click.UsageError(
                f"--{given[0].replace('_', '-')} is for a page, -o NAME.html, not for {output.words}"
            )
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
            request = source.request(
                progress,
                relaxation=Relaxation(relaxation, art_lambda, error_free),
                select=select,
                wires=numbers_of("--wires", wires),
            )
            facts = gather(request, Start(steepness=steepness), limits.budget(progress))
            output = output or Output(Path(f"{facts.name}.html"), PAGE)
            content = output.write(render_page(facts).encode())
        said = f"{facts.title}; {facts.proof.sentence}"
    click.echo(content, nl=False)
    if output.path is not None:
        click.echo(f"{output.path}: {said}")


def _output(out: Path | None, to: str | None) -> Output | None:
    """Return where a drawing goes; None: into a page that has the network's name.

    Raises:
        click.UsageError: no format that draw writes, or a picture for a terminal.
    """
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
