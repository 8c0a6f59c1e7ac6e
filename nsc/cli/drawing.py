"""nsc draw."""

from __future__ import annotations

from pathlib import Path

import click

from nsc.cli.filtering import is_given
from nsc.cli.reporting import reporting, verbose_option
from nsc.cli.shared import (
    Limits,
    limit_options,
    numbers_of,
    selection_options,
    wires_option,
)
from nsc.cli.sources import Source, network_options
from nsc.compiler.drawing import PICTURES, Start, gather, picture, render_page
from nsc.compiler.formats import save, write_network
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.selection import Selection

PAGE = ".html"
# The drawings among the formats, by the suffix of a file.
DRAWINGS = {".svg": "svg", ".tex": "tikz", ".tikz": "tikz"}
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
@network_options()
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="File to write: .html, .svg, .tex, .png or .pdf. Default: NAME.html, in this folder.",
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
    suffix = PAGE if out is None else out.suffix.lower()
    if suffix not in (PAGE, *DRAWINGS, *PICTURES):
        known = ", ".join([PAGE, *DRAWINGS, *PICTURES])
        raise click.UsageError(f"{out}: nsc draw writes {known}; nsc convert writes other formats")
    if out is not None and suffix != PAGE:
        given = [name for name in _OF_PAGES if is_given(context, name)]
        if given:
            raise click.UsageError(
                f"--{given[0].replace('_', '-')} is for a page, -o NAME.html, not for {out}"
            )
        with reporting(verbose) as progress:
            network = source.network(progress)
            progress.phase("write")
            if suffix in PICTURES:
                save(picture(network, PICTURES[suffix]), out)
            else:
                save(write_network(network, DRAWINGS[suffix]).encode(), out)
        click.echo(f"{out}: {network.counts}")
        return
    with reporting(verbose) as progress:
        request = source.request(
            progress,
            relaxation=Relaxation(relaxation, art_lambda, error_free),
            select=select,
            wires=numbers_of("--wires", wires),
        )
        facts = gather(request, Start(steepness=steepness), limits.budget(progress))
        place = Path(f"{facts.name}{PAGE}") if out is None else out
        save(render_page(facts).encode(), place)
    click.echo(f"{place}: {facts.title}; {facts.proof.sentence}")
