"""nsc compile --window: filters of images."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import click
from click.core import ParameterSource

from nsc.cli.reporting import reporting
from nsc.cli.shared import Limits, counts_of
from nsc.compiler.filters import compile_filter
from nsc.compiler.package import replaces, write
from nsc.compiler.selection import Median, Selection
from nsc.compiler.windows import Window
from nsc.contract.exact import ELEMENTS
from nsc.runtime.window import WindowKernel
from nsc.version import VERSION

# Options of nsc compile that go with --window.
_OPTIONS = {
    "window",
    "median",
    "rank",
    "dtypes",
    "folder",
    "name",
    "max_memory",
    "time_limit",
    "as_json",
    "verbose",
}


def is_given(context: click.Context, name: str) -> bool:
    """Say whether an option stands on the command line."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def check_options(context: click.Context) -> None:
    """Raise UsageError if an option was given that filters do not have."""
    for option in context.command.params:
        if option.name is not None and option.name not in _OPTIONS and is_given(context, option.name):
            given = "a network" if isinstance(option, click.Argument) else option.opts[0]
            raise click.UsageError(f"{given} does not go with --window")


def window_of(size: str, select: Selection | None, rank: int | None) -> Window:
    """Return the window that the options name."""
    if (select is None) == (rank is None):
        raise click.UsageError("say what a filter selects of a window: --median or --rank R")
    assert select is None or isinstance(select, Median)
    return Window.of(size, rank)


def compile_window(
    window: Window,
    dtypes: tuple[str, ...],
    folder: Path,
    name: str | None,
    limits: Limits,
    as_json: bool,
    verbose: bool,
) -> None:
    """Prove a filter, write its package to folder/NAME, and build it for some types of pixels."""
    unknown = [dtype for dtype in dtypes if dtype not in ELEMENTS]
    if unknown:
        raise click.UsageError(
            f"--dtype of a filter: some of {', '.join(ELEMENTS)}, got {', '.join(unknown)}"
        )
    start = time.perf_counter()
    with reporting(verbose) as progress:
        compiled = compile_filter(window, name, VERSION, limits.budget(progress))
        package = compiled.package
        progress.phase("build")
        kernel = WindowKernel(compiled.source)
        artifacts = [kernel.build(dtype) for dtype in dtypes]
        progress.phase("write")
        replaced = replaces(package, folder)
        place = write(package, folder)
    seconds = time.perf_counter() - start
    whole, stages = compiled.proof.windows, compiled.proof.stages
    if as_json:
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
    if verbose:
        for artifact in artifacts:
            click.echo(shlex.join(artifact.command))
    if replaced:
        click.echo(f"replaced: {place} held another package")
    built = f"built for {', '.join(dtypes)}" if dtypes else "written, built on first use"
    click.echo(f"{built}, in {seconds:.2f} s; use it with: nsc.load_filter({str(place)!r})")
