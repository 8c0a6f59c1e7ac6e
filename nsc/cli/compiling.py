"""nsc compile."""

from __future__ import annotations

import json
import shlex
import time

import click

from nsc.cli.completing import some_of
from nsc.cli.deploying import DEPLOYED, deploy_option, deployed_file
from nsc.cli.outputs import Output, beside, certificate_option, check_json
from nsc.cli.reporting import reporting
from nsc.cli.shared import (
    Limits,
    ResultOptions,
    counts_of,
    how_to_use,
    limit_options,
    list_option,
    numbers_of,
    relaxation_options,
    remove_redundant_option,
    result_options,
    selection_options,
    unproved_option,
    wires_option,
)
from nsc.cli.sources import Source, network_options
from nsc.compiler.driver import certified, compile_network
from nsc.compiler.package import replaces, write, write_file
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.selection import Selection
from nsc.compiler.verify import CERTIFICATE_DIGEST
from nsc.contract.targets import TARGETS
from nsc.join.deploying import served_dtypes
from nsc.runtime.build import nvrtc
from nsc.runtime.relaxed.cubin import build_all
from nsc.runtime.relaxed.kernel import Kernel


@click.command("compile")
@network_options
@selection_options
@wires_option
@remove_redundant_option
@relaxation_options
@list_option(
    "--target",
    "targets",
    default=("cpu",),
    show_default=True,
    metavar="TARGET,…",
    shell_complete=some_of(TARGETS),
    help=f"Targets to compile for: {', '.join(TARGETS)}.",
)
@list_option(
    "--arch",
    "architectures",
    metavar="sm_NN,…",
    help="GPU architectures to build the CUDA kernels for now; default: they are built on first use.",
)
@click.option(
    "--single-file",
    is_flag=True,
    help="Write nsc's kernel library into the sources, which then include nothing of it.",
)
@deploy_option
@certificate_option
@result_options
@limit_options
@unproved_option
def compile_command(
    source: Source,
    select: Selection | None,
    wires: str | None,
    remove_redundant: bool,
    relaxation: Relaxation,
    dtypes: tuple[str, ...],
    targets: tuple[str, ...],
    architectures: tuple[str, ...],
    single_file: bool,
    deploy: bool,
    certificate_file: Output | None,
    result: ResultOptions,
    limits: Limits,
    unproved: bool,
) -> None:
    """Prove a network, write its package to OUT/NAME and build it.

    With --top-k, --median or --ranks, the package keeps only the comparators that these ranks depend on, and
    only half of a comparator where a minimum or a maximum is enough. --wires names the wires on which a
    network file leaves them. The family best may be another network, with other soft values, for every
    selection.

    --dtype, --target and --arch take one value, several with commas, or are repeated.
    """
    check_json(result.as_json, certificate_file, "certificate")
    start = time.perf_counter()
    with reporting(result.verbose) as progress:
        request = source.request(
            progress,
            relaxation=relaxation,
            dtypes=dtypes,
            targets=targets,
            name=result.name,
            unproved=unproved,
            select=select,
            wires=numbers_of("--wires", wires),
            remove_redundant=remove_redundant,
            single_file=single_file,
        )
        if architectures and "cuda" not in request.targets:
            raise click.UsageError("--arch is for the CUDA kernels: add --target cpu,cuda")
        if deploy and "cpu" not in request.targets:
            raise click.UsageError("--deploy is for processors: add --target cpu,cuda")
        if deploy and single_file:
            raise click.UsageError(
                "--deploy writes the kernel library into its source: leave out --single-file"
            )
        if certificate_file and unproved:
            raise click.UsageError(
                "--unproved asks for no proof, so there is no certificate: leave one of them out"
            )
        budget = limits.budget(progress)
        compiled, certificate = compile_network(request, budget), ""
        if certificate_file:
            compiled, certificate = certified(compiled, request, budget)
        kernel = Kernel(compiled.package.files)
        progress.phase("build")
        artifacts = [kernel.build()] if "cpu" in request.targets else []
        for architecture in architectures:
            artifacts += build_all(kernel, architecture)
        source_file = (
            deployed_file(kernel.manifest, kernel, served_dtypes(kernel), result.folder) if deploy else None
        )
        progress.phase("write")
        replaced = replaces(compiled.package, result.folder)
        place = write(compiled.package, result.folder)
        deployed = write_file(*source_file, result.folder) if source_file else None
        if certificate_file:
            click.echo(certificate_file.write(certificate.encode()), nl=False)
    seconds = time.perf_counter() - start
    if result.as_json:
        facts = {
            "name": compiled.package.name,
            "folder": str(place),
            "replaced": replaced,
            **counts_of(compiled.network),
            "proof": compiled.proof.facts(),
            "binaries": [str(artifact.binary) for artifact in artifacts],
            "deployed": deployed and str(deployed),
            "certificate": certificate_file and str(certificate_file.path),
            "targets": request.targets,
            "cached": all(artifact.cached for artifact in artifacts),
            "commands": [shlex.join(artifact.command) for artifact in artifacts],
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts, indent=1))
        return
    network, proof = compiled.network, compiled.proof
    built = "built before" if all(artifact.cached for artifact in artifacts) else "built"
    with beside(certificate_file):
        click.echo(f"{place}: {network.counts}")
        click.echo(f"{proof.sentence()}: {proof.method}: {proof.detail}")
        if proof.certificate:
            click.echo(f"{CERTIFICATE_DIGEST}: {proof.certificate}")
        if result.verbose:
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
        if deployed:
            click.echo(DEPLOYED.format(deployed))
        click.echo(
            f"{built if artifacts else 'written'}, in {seconds:.2f} s; use it with: {how_to_use(place)}"
        )
