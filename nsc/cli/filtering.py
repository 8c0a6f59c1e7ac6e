"""nsc filter."""

from __future__ import annotations

import json
import shlex
import time

import click

from nsc.cli.completing import some_of
from nsc.cli.deploying import DEPLOYED, deploy_option, deployed_file
from nsc.cli.reporting import reporting
from nsc.cli.shared import (
    Limits,
    ResultOptions,
    counts_of,
    how_to_use,
    limit_options,
    list_option,
    result_options,
)
from nsc.compiler.package import replaces, write, write_file
from nsc.compiler.windows import Window
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract.exact import ELEMENTS
from nsc.runtime.windows.kernel import FilterKernel
from nsc.version import VERSION


@click.command("filter")
@click.argument("size", metavar="AxB")
@click.option("--median", is_flag=True, help="Select the median of an odd number of pixels.")
@click.option("--rank", type=int, metavar="R", help="Select this rank; 0 the smallest, -1 the largest.")
@list_option(
    "--dtype",
    "dtypes",
    metavar="TYPE,…",
    shell_complete=some_of(ELEMENTS),
    help=f"Types of pixels to build for now: {', '.join(ELEMENTS)}. Others are built when first used.",
)
@deploy_option
@result_options
@limit_options
def filter_command(
    size: str,
    median: bool,
    rank: int | None,
    dtypes: tuple[str, ...],
    deploy: bool,
    result: ResultOptions,
    limits: Limits,
) -> None:
    """Prove a rank filter of images, write its package to OUT/NAME and build it.

    AxB is the window around each pixel, such as 3x3, 5x7 or 3x3x3.

    --dtype takes one value, several with commas, or is repeated.
    """
    if median == (rank is not None):
        raise click.UsageError("say what a filter selects of a window: --median or --rank R")
    unknown = [dtype for dtype in dtypes if dtype not in ELEMENTS]
    if unknown:
        raise click.UsageError(f"--dtype must be some of {', '.join(ELEMENTS)}, got {', '.join(unknown)}")
    if deploy and not dtypes:
        raise click.UsageError("--deploy builds for the types that --dtype lists: add --dtype float32")
    window = Window.of(size, rank)
    start = time.perf_counter()
    with reporting(result.verbose) as progress:
        compiled = compile_filter(window, result.name, VERSION, limits.budget(progress))
        package = compiled.package
        progress.phase("build")
        kernel = FilterKernel(compiled.source)
        artifacts = [kernel.build(dtype) for dtype in dtypes]
        source_file = deployed_file(compiled.manifest, kernel, dtypes, result.folder) if deploy else None
        progress.phase("write")
        replaced = replaces(package, result.folder)
        place = write(package, result.folder)
        deployed = write_file(*source_file, result.folder) if source_file else None
    seconds = time.perf_counter() - start
    whole, stages = compiled.proof.windows, compiled.proof.stages
    if result.as_json:
        facts = {
            "name": package.name,
            "folder": str(place),
            "replaced": replaced,
            "window": window.shape,
            "rank": window.rank,
            **counts_of(compiled.network),
            "operations": compiled.operations,
            "proofs": [proof.facts() for proof in whole],
            "stages": [proof.facts() for proof in stages],
            "deployed": deployed and str(deployed),
            "binaries": [str(artifact.binary) for artifact in artifacts],
            "commands": [shlex.join(artifact.command) for artifact in artifacts],
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts, indent=1))
        return
    click.echo(f"{place}: {window.words}: {compiled.network.counts}")
    click.echo(
        f"shared with neighbours, {compiled.operations:g} minima and maxima a pixel, not "
        f"{compiled.whole_operations}"
    )
    click.echo(f"{whole[0].sentence()}: {whole[0].method}: {whole[0].detail}")
    click.echo(f"proved too: {len(stages)} networks that it shares, with the lists that they read presorted")
    if result.verbose:
        for artifact in artifacts:
            click.echo(shlex.join(artifact.command))
    if replaced:
        click.echo(f"replaced: {place} held another package")
    if deployed:
        click.echo(DEPLOYED.format(deployed))
    built = f"built for {', '.join(dtypes)}" if dtypes else "written, built on first use"
    click.echo(f"{built}, in {seconds:.2f} s; use it with: {how_to_use(place)}")
