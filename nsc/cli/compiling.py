"""nsc compile, filter and engine: they prove, write and build."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from nsc.cli.outputs import Output, beside, certificate_option, check_json
from nsc.cli.reporting import reporting
from nsc.cli.shared import (
    Limits,
    ResultOptions,
    counts_of,
    dtype_option,
    limit_options,
    list_option,
    real_option,
    relaxation_options,
    remove_redundant_option,
    result_options,
    say_proof,
    selection_options,
    unproved_option,
    wires_option,
)
from nsc.cli.sources import Source, network_options
from nsc.compiler.driver import compile_network
from nsc.compiler.package import Package, check_file, replaces, write, write_file
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import cpp
from nsc.compiler.verify import CERTIFICATE_DIGEST
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract.exact import ELEMENTS
from nsc.contract.manifest import Manifest
from nsc.contract.targets import TARGETS
from nsc.contract.windows import Window
from nsc.errors import INSTALL_TORCH, ToolchainError
from nsc.join.deploying import deployed_source, served_dtypes
from nsc.runtime.build import nvrtc
from nsc.runtime.build.cache import Artifact
from nsc.runtime.exact.windows import FilterKernel
from nsc.runtime.relaxed.cubin import build_all
from nsc.runtime.relaxed.kernel import Kernel
from nsc.runtime.relaxed.library import build
from nsc.study.proofs import certified
from nsc.version import VERSION

deploy_option = click.option(
    "--deploy",
    is_flag=True,
    help="Write OUT/NAME_torch.cpp too: the operators for programs of torch that have no Python.",
)


@click.command("compile")
@network_options
@selection_options
@wires_option
@remove_redundant_option
@relaxation_options
@real_option
@list_option(
    "--target",
    "targets",
    known=TARGETS,
    default=("cpu",),
    metavar="TARGET,…",
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
    architectures: tuple[str, ...],
    deploy: bool,
    certificate_file: Output | None,
    result: ResultOptions,
    limits: Limits,
    **options: Any,
) -> None:
    """Prove a network, write its package to OUT/NAME and build it.

    With --top-k, --median or --ranks, the package keeps only the comparators that these ranks depend on, and
    only half of a comparator where a minimum or a maximum is enough. --wires names the wires on which a
    network file leaves these ranks. The family best may be another network, with other soft values, for every
    selection.

    --dtype, --target and --arch take one value, several with commas, or are repeated.
    """
    check_json(result.as_json, certificate_file, "certificate")
    start, folder = time.perf_counter(), result.package_folder
    with reporting(result.verbose) as progress:
        request = source.request(progress, name=result.name, **options)
        if architectures and "cuda" not in request.targets:
            raise click.UsageError("--arch is for the CUDA kernels: add --target cpu,cuda")
        if deploy and "cpu" not in request.targets:
            raise click.UsageError("--deploy is for processors: add --target cpu,cuda")
        if deploy and request.single_file:
            raise click.UsageError(
                "--deploy writes the kernel library into its source: leave out --single-file"
            )
        if certificate_file and request.unproved:
            raise click.UsageError(
                "--unproved asks for no proof, so there is no certificate: leave one of them out"
            )
        budget = limits.budget(progress)
        compiled, certificate = compile_network(request, budget), ""
        if certificate_file:
            compiled, certificate = certified(compiled, request, budget)
        kernel = Kernel(compiled.package.files)
        progress.phase("build")
        artifacts = _built(kernel) if "cpu" in request.targets else []
        for architecture in architectures:
            artifacts += build_all(kernel, architecture)
        sources = _deployed(kernel.manifest, kernel, served_dtypes(kernel), folder) if deploy else None
        progress.phase("write")
        written = _Written.of(compiled.package, sources, artifacts, folder)
        if certificate_file:
            click.echo(certificate_file.write(certificate.encode()), nl=False)
    seconds = time.perf_counter() - start
    if result.as_json:
        facts = {
            **written.facts(seconds),
            **counts_of(compiled.network),
            "proof": compiled.proof.facts(),
            "certificate": certificate_file and str(certificate_file.path),
            "targets": request.targets,
            "cached": written.is_cached,
        }
        click.echo(json.dumps(facts, indent=1))
        return
    with beside(certificate_file):
        click.echo(f"{written.place}: {compiled.network.counts}")
        say_proof(compiled.proof)
        if compiled.proof.certificate:
            click.echo(f"{CERTIFICATE_DIGEST}: {compiled.proof.certificate}")
        if "cuda" in request.targets and not architectures:
            click.echo(
                "the CUDA kernels are built on first use; --arch sm_NN builds them now"
                if nvrtc.is_installed()
                else f"the CUDA kernels are written and cannot be built here, without CuPy: {nvrtc.INSTALL}"
            )
        if "cpu" in request.targets and not artifacts:
            click.echo("nothing is built, without a C++ compiler: the prebuilt engine runs the network")
        built = "built before" if written.is_cached else "built"
        written.say(built if artifacts else "written", seconds, result.verbose)


@click.command("filter")
@click.argument("size", metavar="AxB")
@click.option("--median", is_flag=True, help="Select the median of an odd number of pixels.")
@click.option("--rank", type=int, metavar="R", help="Select this rank; 0 the smallest, -1 the largest.")
@dtype_option(ELEMENTS, "Types of pixels to build for now: {}. Others are built when first used.")
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
    if deploy and not dtypes:
        raise click.UsageError("--deploy builds for the types that --dtype lists: add --dtype float32")
    window = Window.of(size, rank)
    start, folder = time.perf_counter(), result.package_folder
    with reporting(result.verbose) as progress:
        compiled = compile_filter(window, result.name, VERSION, limits.budget(progress))
        progress.phase("build")
        kernel = FilterKernel(compiled.source)
        artifacts = [kernel.build(dtype) for dtype in dtypes]
        sources = _deployed(compiled.manifest, kernel, dtypes, folder) if deploy else None
        progress.phase("write")
        written = _Written.of(compiled.package, sources, artifacts, folder)
    seconds = time.perf_counter() - start
    if result.as_json:
        facts = {
            **written.facts(seconds),
            "window": window.shape,
            "rank": window.rank,
            **counts_of(compiled.network),
            "operations": compiled.operations,
            "proofs": [proof.facts() for proof in compiled.proofs],
        }
        click.echo(json.dumps(facts, indent=1))
        return
    click.echo(f"{written.place}: {window.words}: {compiled.network.counts}")
    click.echo(
        f"shared with neighbours, {compiled.operations:g} minima and maxima a pixel, not "
        f"{compiled.whole_operations}"
    )
    say_proof(compiled.proofs[0])
    built = f"built for {', '.join(dtypes)}" if dtypes else "written, built on first use"
    written.say(built, seconds, result.verbose)


@click.command("engine")
@relaxation_options
@real_option
def engine_command(relaxation: Relaxation, dtypes: tuple[str, ...]) -> None:
    """Build the engine of a relaxation, which runs any network without a build.

    With the engine the first call of a new network takes milliseconds, and the time of its proof. Each
    relaxation and each type has its own engine. Without this command the first call that needs an engine
    builds it.

    --dtype takes one value, several with commas, or is repeated.
    """
    for dtype in dtypes:
        start = time.perf_counter()
        with reporting(False) as progress:
            progress.phase("build")
            artifact = build(relaxation.sigmoid, cpp.engine(relaxation, dtype))
        built = "built before" if artifact.cached else f"built in {time.perf_counter() - start:.1f} s"
        click.echo(f"the engine of {relaxation.describe()} in {dtype} is {built}")


@dataclass(frozen=True)
class _Written:
    """A package that was written, with its source for programs without Python, and its libraries."""

    place: Path
    replaced: bool
    deployed: Path | None
    artifacts: Sequence[Artifact]

    @classmethod
    def of(
        cls, package: Package, deployed: tuple[str, str] | None, artifacts: Sequence[Artifact], folder: Path
    ) -> _Written:
        """Write a package, and beside it its deployed source, which is given as a name and a text."""
        replaced, place = replaces(package, folder), write(package, folder)
        beside = None if deployed is None else write_file(folder / deployed[0], deployed[1])
        return cls(place, replaced, beside, artifacts)

    @property
    def is_cached(self) -> bool:
        """Whether nothing had to be built."""
        return all(artifact.cached for artifact in self.artifacts)

    def facts(self, seconds: float) -> dict[str, object]:
        """Return the facts that commands print in JSON."""
        return {
            "name": self.place.name,
            "folder": str(self.place),
            "replaced": self.replaced,
            "deployed": self.deployed and str(self.deployed),
            "binaries": [str(artifact.binary) for artifact in self.artifacts],
            "commands": [shlex.join(artifact.command) for artifact in self.artifacts],
            "seconds": round(seconds, 3),
        }

    def say(self, built: str, seconds: float, verbose: bool) -> None:
        """Print the outcome, and how programs use the package."""
        for artifact in self.artifacts if verbose else ():
            click.echo(shlex.join(artifact.command))
        if self.replaced:
            click.echo(f"replaced: {self.place} held another package")
        if self.deployed:
            click.echo(
                f"{self.deployed}: for programs of torch without Python; its first lines say how to build it"
            )
        click.echo(f"{built}, in {seconds:.2f} s; use it with: {how_to_use(self.place)}")


def _built(kernel: Kernel) -> list[Artifact]:
    """Return the network's own library; none where there is no compiler and the engine is prebuilt."""
    try:
        return [kernel.build()]
    except ToolchainError:
        if kernel.is_prebuilt:
            return []
        raise


def _deployed(
    manifest: Manifest, kernel: Kernel | FilterKernel, dtypes: Collection[str], folder: Path
) -> tuple[str, str]:
    """Return the name and the text of a package's deployed source, if the folder has room for it."""
    stem = f"{manifest.name}_torch"
    name, text = f"{stem}.cpp", deployed_source(stem, f"{manifest.command} --deploy", {kernel: dtypes})
    check_file(folder / name, text)
    return name, text


def how_to_use(place: Path) -> str:
    """Return a line that says how a program uses the package at a place, and whether to install PyTorch."""
    load, parts = f"nsc.load({str(place.absolute())!r})", place.parts
    if all(part.isidentifier() for part in parts):
        *folders, name = parts
        line = f"from {'.'.join(folders)} import {name}" if folders else f"import {name}"
        used = f"{line}, in a program beside {parts[0]}/; in others: {load}"
    else:
        used = load
    return used if find_spec("torch") else f"{used}, once PyTorch is installed: {INSTALL_TORCH}"
