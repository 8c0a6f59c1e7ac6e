"""nsc compile."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import click

from nsc.cli.completing import some_of
from nsc.cli.filtering import check_options, compile_window, is_given, window_of
from nsc.cli.headers import write_c_header
from nsc.cli.reporting import reporting
from nsc.cli.shared import (
    Limits,
    counts_of,
    limit_options,
    list_option,
    numbers_of,
    selection_options,
    wires_option,
)
from nsc.cli.sources import MISSING, Source, network_options
from nsc.compiler.driver import compile_network
from nsc.compiler.package import replaces, write
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.selection import Selection
from nsc.contract.c_types import C_TYPES
from nsc.contract.interface import REALS
from nsc.contract.targets import C_HEADER, TARGETS
from nsc.runtime.build import nvrtc
from nsc.runtime.devices.cubin import build as build_cuda
from nsc.runtime.kernel import Kernel


@click.command("compile")
@network_options(required=False)
@selection_options
@click.option(
    "--window",
    metavar="AxB",
    help="Compile a rank filter of images for windows such as 3x3, 5x7 or 3x3x3, with --median or --rank.",
)
@click.option(
    "--rank", type=int, metavar="R", help="Select this rank of a window; 0 the smallest, -1 the largest."
)
@wires_option
@click.option(
    "--remove-redundant",
    is_flag=True,
    help="Remove comparators that never exchange anything, which changes soft values.",
)
@click.option(
    "--relaxation",
    type=click.Choice(list(SIGMOIDS)),
    default="logistic",
    show_default=True,
    help="How comparators are softened.",
)
@click.option(
    "--art-lambda",
    type=float,
    default=0.25,
    show_default=True,
    help="Strength of the activation replacement trick, in [0, 1); 0 is none.",
)
@click.option("--error-free", is_flag=True, help="Exact values and a 0/1 P, with soft gradients.")
@list_option(
    "--dtype",
    "dtypes",
    default=("float32",),
    show_default=True,
    metavar="TYPE,…",
    shell_complete=some_of(dict.fromkeys((*REALS, *C_TYPES))),
    help=f"Arithmetic types: {', '.join(REALS)}; float32 also serves bfloat16 and float16. Of a C header: "
    f"types of values, {', '.join(C_TYPES)}.",
)
@list_option(
    "--target",
    "targets",
    default=("cpu",),
    show_default=True,
    metavar="TARGET,…",
    shell_complete=some_of((*TARGETS, C_HEADER)),
    help=f"Targets to compile for: {', '.join(TARGETS)}; or {C_HEADER} alone: a C header OUT/NAME.h.",
)
@list_option(
    "--arch",
    "architectures",
    metavar="sm_NN,…",
    help="GPU architectures to build the CUDA kernels for now; default: they are built on first use.",
)
@click.option(
    "-o",
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default="generated",
    show_default=True,
    help="Folder to write the package's folder, or the C header, to.",
)
@click.option(
    "--name",
    help="Name of the package or the header; default: the network's name, N and the options that are not "
    "defaults.",
)
@limit_options
@click.option("--unproved", is_flag=True, help="Accept a network that no exact method settles.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print each phase on standard error, a line each, and the full build command.",
)
@click.pass_context
def compile_command(
    context: click.Context,
    source: Source | None,
    select: Selection | None,
    window: str | None,
    rank: int | None,
    wires: str | None,
    remove_redundant: bool,
    relaxation: str,
    art_lambda: float,
    error_free: bool,
    dtypes: tuple[str, ...],
    targets: tuple[str, ...],
    architectures: tuple[str, ...],
    folder: Path,
    name: str | None,
    limits: Limits,
    unproved: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Prove a network, write its package to OUT/NAME and build it.

    With --top-k, --median or --ranks, the package keeps only the comparators that these ranks depend on, and
    only half of a comparator where a minimum or a maximum is enough. --wires names the wires on which a
    network file leaves them. The family best may be another network, with other soft values, for every
    selection.

    With --window, the package is a rank filter of images. --dtype then names the types of pixels to build for
    now, of any float or integer type; others are built when they are first used.

    --target c writes OUT/NAME.h instead: C functions that sort or select exactly, without dependencies.

    --dtype, --target and --arch take one value, several with commas, or are repeated.
    """
    if window is not None:
        check_options(context)
        chosen = window_of(window, select, rank)
        types = dtypes if is_given(context, "dtypes") else ()
        compile_window(chosen, types, folder, name, limits, as_json, verbose)
        return
    if rank is not None:
        raise click.UsageError("--rank is for --window; a network selects --ranks")
    if source is None:
        raise click.UsageError(f"{MISSING}; or --window AxB")
    start = time.perf_counter()
    with reporting(verbose) as progress:
        request = source.request(
            progress,
            relaxation=Relaxation(relaxation, art_lambda, error_free),
            dtypes=dtypes,
            targets=targets,
            name=name,
            unproved=unproved,
            select=select,
            wires=numbers_of("--wires", wires),
            remove_redundant=remove_redundant,
        )
        if architectures and "cuda" not in request.targets:
            raise click.UsageError("--arch is for the CUDA kernels: add --target cpu,cuda")
        if request.is_header:
            write_c_header(request, limits.budget(progress), folder, as_json, start)
            return
        compiled = compile_network(request, limits.budget(progress))
        kernel = Kernel(compiled.package.files)
        progress.phase("build")
        artifacts = [kernel.build()] if "cpu" in request.targets else []
        artifacts += [build_cuda(kernel, architecture) for architecture in architectures]
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
        click.echo(
            "the CUDA kernels are built on first use; --arch sm_NN builds them now"
            if nvrtc.is_installed()
            else f"the CUDA kernels are written and cannot be built here, without CuPy: {nvrtc.INSTALL}"
        )
    click.echo(
        f"{built if artifacts else 'written'}, in {seconds:.2f} s; use it with: nsc.load({str(place)!r})"
    )
