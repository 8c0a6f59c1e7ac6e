"""nsc compile."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import click

import nsc
from nsc.cli.reporting import reporting
from nsc.cli.shared import (
    STANDARD,
    Limits,
    Reading,
    counts_of,
    limit_options,
    network_options,
    numbers_of,
    wires_option,
)
from nsc.compiler.driver import Request, compile_network, selection
from nsc.compiler.package import replaces, write
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.contract.interface import REALS
from nsc.contract.targets import TARGETS
from nsc.runtime.build.nvrtc import build as build_cuda
from nsc.runtime.kernel import Kernel


@click.command("compile")
@network_options(required=True)
@click.option("--top-k", type=int, metavar="K", help="Select the K largest alone, largest first.")
@click.option(
    "--median", is_flag=True, help="Select the middle value alone; of an even N the two middle ones."
)
@click.option("--ranks", metavar="R,R,…", help="Select these ranks alone, 0 the smallest value.")
@wires_option
@click.option(
    "--remove-redundant",
    "without_redundant",
    is_flag=True,
    help="Leave out comparators that never exchange anything, which changes soft values.",
)
@click.option("--relaxation", type=click.Choice(list(SIGMOIDS)), default="logistic", show_default=True)
@click.option(
    "--art-lambda",
    type=float,
    default=0.25,
    show_default=True,
    help="Strength of the activation replacement trick, in [0, 1); 0 is none.",
)
@click.option("--error-free", is_flag=True, help="Exact values and a 0/1 P, with soft gradients.")
@click.option(
    "--dtype",
    "dtypes",
    type=click.Choice(list(REALS)),
    multiple=True,
    default=("float32",),
    show_default=True,
    help="Arithmetic type, repeatable; float32 also serves bfloat16 and float16.",
)
@click.option(
    "--target",
    "targets",
    default="cpu",
    show_default=True,
    metavar="TARGET[,TARGET]",
    help=f"What to compile for: some of {', '.join(TARGETS)}.",
)
@click.option(
    "--arch",
    "architectures",
    multiple=True,
    metavar="sm_NN",
    help="GPU architecture to build the CUDA kernels for now, repeatable; else they are built on first use.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("generated"),
    show_default=True,
    help="Folder that the package goes into.",
)
@click.option("--name", help="Name of the package; default: the network's name, n, and what is not default.")
@limit_options
@click.option("--unproved", is_flag=True, help="Accept a network that no exact method settles.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Say on standard error what is being done, a line a phase; print the full build command.",
)
def compile_command(
    net: str,
    reading: Reading,
    top_k: int | None,
    median: bool,
    ranks: str | None,
    wires: str | None,
    without_redundant: bool,
    relaxation: str,
    art_lambda: float,
    error_free: bool,
    dtypes: tuple[str, ...],
    targets: str,
    architectures: tuple[str, ...],
    folder: Path,
    name: str | None,
    limits: Limits,
    unproved: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Prove a network, write its package to OUT/NAME and build it.

    With --top-k, --median or --ranks the package has what these need of the network, with half comparators
    where only a minimum or a maximum is needed; --wires says where a network file leaves them. Of best
    every choice of ranks may be a network of its own, with soft values of its own.
    """
    start = time.perf_counter()
    with reporting(verbose, as_json) as progress:
        piped = reading.network(net, progress) if net == STANDARD else None
        request = Request(
            network=net if piped is None else piped,
            n=reading.n,
            relaxation=Relaxation(relaxation, art_lambda, error_free),
            dtypes=tuple(dict.fromkeys(dtypes)),
            targets=tuple(targets.split(",")),
            name=name,
            unproved=unproved,
            version=nsc.__version__,
            format=reading.format if piped is None else None,
            index_base=reading.index_base if piped is None else None,
            select=selection(top_k, median, numbers_of("--ranks", ranks)),
            wires=None if wires is None else tuple(numbers_of("--wires", wires) or ()),
            without_redundant=without_redundant,
        )
        if architectures and "cuda" not in request.targets:
            raise click.UsageError("--arch is for the CUDA kernels: add --target cpu,cuda")
        compiled = compile_network(request, limits.budget(progress))
        kernel = Kernel(compiled.package.files)
        progress.phase("build")
        artifacts = [kernel.build()] if "cpu" in request.targets else []
        artifacts += [build_cuda(kernel, architecture) for architecture in dict.fromkeys(architectures)]
        progress.phase("write")
        replaced = replaces(compiled.package, folder)
        place = write(compiled.package, folder)
    seconds = time.perf_counter() - start
    if as_json:
        facts = {
            "name": compiled.package.name,
            "folder": str(place),
            "replaced": replaced,
            **counts_of(compiled.network),
            "proof": compiled.proof.facts(),
            "binaries": [str(artifact.binary) for artifact in artifacts],
            "targets": request.targets,
            "cached": all(artifact.cached for artifact in artifacts),
            "commands": [shlex.join(artifact.command) for artifact in artifacts],
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts, indent=1))
        return
    network, proof = compiled.network, compiled.proof
    built = "built before" if all(artifact.cached for artifact in artifacts) else "built"
    click.echo(f"{place}: {network.counts}")
    click.echo(f"{proof.sentence()}: {proof.method}: {proof.detail}")
    if verbose:
        for artifact in artifacts:
            click.echo(shlex.join(artifact.command))
    if replaced:
        click.echo(f"replaced: {place} held another package")
    if "cuda" in request.targets and not architectures:
        click.echo("the CUDA kernels are built on first use; --arch sm_NN builds them now")
    click.echo(
        f"{built if artifacts else 'written'}, in {seconds:.2f} s; "
        f"use it with: {_import_line(place, request)}"
    )


def _import_line(folder: Path, request: Request) -> str:
    if not folder.is_absolute() and len(folder.parts) == 2 and folder.parts[0].isidentifier():
        return f"from {folder.parts[0]} import {folder.name}"
    return f"nsc.{'load' if request.select is None else 'load_selector'}({str(folder)!r})"
