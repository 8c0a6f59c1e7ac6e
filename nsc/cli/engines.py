"""`nsc engine`: a relaxation built once, for all networks."""

from __future__ import annotations

import time

import click

from nsc.cli.reporting import reporting
from nsc.cli.shared import relaxation_options
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import cpp
from nsc.contract.interface import REALS
from nsc.runtime.relaxed.engine import build


@click.command("engine")
@relaxation_options
def engine_command(relaxation: Relaxation, dtypes: tuple[str, ...]) -> None:
    """Build the engine of a relaxation, which runs any network without a build.

    With it the first call of a new network takes milliseconds, and its proof. Each relaxation and each type
    has an engine.

    --dtype takes one value, several with commas, or is repeated.
    """
    unknown = [dtype for dtype in dtypes if dtype not in REALS]
    if unknown:
        raise click.UsageError(f"--dtype must be some of {', '.join(REALS)}, got {', '.join(unknown)}")
    for dtype in dtypes:
        start = time.perf_counter()
        with reporting(False) as progress:
            progress.phase("build")
            artifact = build(relaxation.sigmoid, cpp.engine(relaxation, dtype))
        built = "built before" if artifact.cached else f"built in {time.perf_counter() - start:.1f} s"
        click.echo(f"the engine of {relaxation.describe()} in {dtype} is {built}")
