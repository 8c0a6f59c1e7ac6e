"""The command line: nsc compile, verify, convert, list, show, explain.

Exit codes: 0 done, or the network sorts; 1 the network does not sort; 2 bad input or no toolchain;
3 unproved; 130 interrupted.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

import nsc
from nsc.compiler.diagram import knuth_diagram
from nsc.compiler.driver import TARGETS, Request, compile_network, describe
from nsc.compiler.explain import explain
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import (
    format_of_path,
    losses,
    read_network,
    read_stream,
    readable,
    save_network,
    writable,
    write_network,
)
from nsc.compiler.network import Network
from nsc.compiler.package import write
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.render import REALS
from nsc.compiler.schedule import schedule
from nsc.compiler.verification import Proof, Verdict
from nsc.compiler.verification import verify as verify_network
from nsc.errors import NetworkError, NscError, UnprovedError, VerificationError
from nsc.runtime.kernel import Kernel
from nsc.runtime.nvrtc import build as build_cuda

F = TypeVar("F", bound=Callable[..., Any])

EXIT_CODES = {Verdict.SORTS: 0, Verdict.DOES_NOT_SORT: 1, Verdict.UNPROVED: 3}
BAD_INPUT = 2
INTERRUPTED = 130
LARGEST_DIAGRAM = 32


class _Group(click.Group):
    """Turns nsc's errors into one message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NscError as error:
            click.echo(f"nsc: {error}", err=True)
            ctx.exit(_exit_code(error))
        except KeyboardInterrupt:
            click.echo("nsc: interrupted", err=True)
            ctx.exit(INTERRUPTED)


def _exit_code(error: NscError) -> int:
    if isinstance(error, VerificationError):
        return EXIT_CODES[Verdict.DOES_NOT_SORT]
    return EXIT_CODES[Verdict.UNPROVED] if isinstance(error, UnprovedError) else BAD_INPUT


def _index_base_option(function: F) -> F:
    return click.option(
        "--index-base", type=click.IntRange(0, 1), metavar="0|1", help="What a file counts wires from."
    )(function)


def _network_options(required: bool) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        function = click.option(
            "--format",
            type=click.Choice(readable()),
            help="A file's format; default: found from its content.",
        )(_index_base_option(function))
        function = click.option("--n", type=int, metavar="N", help="Number of wires; needed with a family.")(
            function
        )
        return click.option(
            "--net",
            required=required,
            metavar="FAMILY|FILE",
            help=f"A family ({', '.join(FAMILIES)}) or a network file.",
        )(function)

    return decorate


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(nsc.__version__, prog_name="nsc")
def main() -> None:
    """The compiler for sorting networks: proved, differentiable, fast."""


@main.command("compile")
@_network_options(required=True)
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
    type=click.Path(path_type=Path),
    default=Path("generated"),
    show_default=True,
    help="Folder that the package goes into.",
)
@click.option("--name", help="Name of the package; default: the network's name and n.")
@click.option("--unproved", is_flag=True, help="Accept a network that no exact method settles.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--verbose", is_flag=True, help="Print the full build command.")
def compile_command(
    net: str,
    n: int | None,
    format: str | None,
    index_base: int | None,
    relaxation: str,
    art_lambda: float,
    error_free: bool,
    dtypes: tuple[str, ...],
    targets: str,
    architectures: tuple[str, ...],
    out: Path,
    name: str | None,
    unproved: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Prove a network, write its package to OUT/NAME and build it."""
    start = time.perf_counter()
    request = Request(
        network=net,
        n=n,
        relaxation=Relaxation(relaxation, art_lambda, error_free),
        dtypes=tuple(dict.fromkeys(dtypes)),
        targets=tuple(targets.split(",")),
        name=name,
        unproved=unproved,
        version=nsc.__version__,
        format=format,
        index_base=index_base,
    )
    if architectures and "cuda" not in request.targets:
        raise click.UsageError("--arch is for the CUDA kernels: add --target cpu,cuda")
    with _status("proving and rendering", as_json):
        compiled = compile_network(request)
    kernel = Kernel(compiled.package.files)
    with _status("building", as_json):
        artifacts = [kernel.build()] if "cpu" in request.targets else []
        artifacts += [build_cuda(kernel, architecture) for architecture in dict.fromkeys(architectures)]
    folder = write(compiled.package, out)
    seconds = time.perf_counter() - start
    if as_json:
        facts = {
            "name": compiled.package.name,
            "folder": str(folder),
            **_counts(compiled.network),
            **_proof_facts(compiled.proof),
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
    click.echo(f"{folder}: {network.n} wires, {network.size:,} comparators, {network.depth} layers")
    click.echo(f"{proof.verdict.value}: {proof.method}: {proof.detail}")
    if verbose:
        for artifact in artifacts:
            click.echo(shlex.join(artifact.command))
    if "cuda" in request.targets and not architectures:
        click.echo("the CUDA kernels are built on first use; --arch sm_NN builds them now")
    click.echo(
        f"{built if artifacts else 'written'}, in {seconds:.2f} s; use it with: {_import_line(folder)}"
    )


def _import_line(folder: Path) -> str:
    if not folder.is_absolute() and len(folder.parts) == 2 and folder.parts[0].isidentifier():
        return f"from {folder.parts[0]} import {folder.name}"
    return f"nsc.load({str(folder)!r})"


def _status(what: str, quiet: bool) -> Any:
    """Return a spinner on standard error; it shows nothing where that is no terminal."""
    return Console(stderr=True, quiet=quiet).status(what)


@main.command("verify")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@_network_options(required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the proof as JSON.")
def verify_command(
    file: Path | None,
    net: str | None,
    n: int | None,
    format: str | None,
    index_base: int | None,
    as_json: bool,
) -> None:
    """Say whether a network sorts: proved, refuted with a counterexample, or unproved.

    Exit code: 0 sorts, 1 does not sort, 2 bad input, 3 unproved.
    """
    asked = net if file is None else str(file)
    if asked is None or (file is not None and net is not None):
        raise click.UsageError("give a network file, or --net FAMILY --n N, and not both")
    network = describe(asked, n, format, index_base)
    start = time.perf_counter()
    with _status("verifying", as_json):
        proof = verify_network(network)
    seconds = time.perf_counter() - start
    if as_json:
        click.echo(json.dumps({**_counts(network), **_proof_facts(proof), "seconds": round(seconds, 3)}))
    else:
        click.echo(
            f"{proof.verdict.value}: {network.n} wires, {network.size:,} comparators, {network.depth} layers"
        )
        click.echo(f"method: {proof.method}: {proof.detail} ({seconds:.2f} s)")
        if proof.counterexample is not None and proof.failing_input is not None:
            for what, values in (("0-1", proof.counterexample), ("integer", proof.failing_input)):
                click.echo(f"{what} input:  {' '.join(map(str, values))}")
                click.echo(f"comes out as: {' '.join(map(str, network.apply(values).tolist()))}")
    sys.exit(EXIT_CODES[proof.verdict])


@main.command("convert")
@click.argument("source", metavar="A", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("target", metavar="B", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--from", "from_", type=click.Choice(readable()), help="A's format; default: found from content."
)
@click.option("--to", type=click.Choice(writable()), help="B's format; default: by B's suffix, nsc for -.")
@click.option("--n", type=int, metavar="N", help="Number of wires, where A does not state it.")
@_index_base_option
def convert_command(
    source: Path, target: Path, from_: str | None, to: str | None, n: int | None, index_base: int | None
) -> None:
    """Write the network in file A to file B, in another format; - is standard input or output.

    B is written whole or not at all, and replaced if it is there. What its format cannot hold of the
    network is said on standard error.
    """
    standard = Path("-")
    format_ = to or ("nsc" if target == standard else format_of_path(target))
    if source == standard:
        network = read_stream(sys.stdin.buffer, "standard input", n, format=from_, index_base=index_base)
    else:
        network = read_network(source, n, format=from_, index_base=index_base)
    for lost in losses(network, format_):
        click.echo(f"nsc: note: {lost}", err=True)
    if target == standard:
        click.echo(write_network(network, format_).encode(), nl=False)
        return
    save_network(network, target, format_)
    click.echo(
        f"{target}: {network.n} wires, {network.size:,} comparators, {network.depth} layers, as {format_}"
    )


@main.command("list")
@click.option("--n", type=int, default=16, show_default=True, help="Number of wires.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(n: int, as_json: bool) -> None:
    """List the families with their size and depth at N wires."""
    rows: dict[str, dict[str, object]] = {}
    for name, family in FAMILIES.items():
        summary = (family.__doc__ or "").partition("\n")[0]
        try:
            network = family(n)
            rows[name] = {"size": network.size, "depth": network.depth, "summary": summary}
        except NetworkError as error:
            if n < 1:
                raise
            rows[name] = {"size": None, "depth": None, "summary": str(error)}
    if as_json:
        click.echo(json.dumps({"n": n, "families": rows}, indent=1))
        return
    table = Table(title=f"Families at n = {n}", title_justify="left")
    table.add_column("family", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("depth", justify="right", no_wrap=True)
    table.add_column("")
    for name, row in rows.items():
        size, depth = row["size"], row["depth"]
        table.add_row(
            name,
            "–" if size is None else f"{size:,}",
            "–" if depth is None else str(depth),
            str(row["summary"]).removeprefix("Return ").rstrip("."),
        )
    Console().print(table)


@main.command("show")
@_network_options(required=True)
def show_command(net: str, n: int | None, format: str | None, index_base: int | None) -> None:
    """Draw a network of at most 32 wires as a Knuth diagram, and print its counts."""
    network = describe(net, n, format, index_base)
    if network.n <= LARGEST_DIAGRAM:
        click.echo(knuth_diagram(network))
    else:
        click.echo(f"no diagram: {network.n} wires, at most {LARGEST_DIAGRAM} fit a terminal")
    click.echo(f"{network.n} wires, {network.size:,} comparators, {network.depth} layers")


@main.command("explain")
@_network_options(required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain_command(
    net: str, n: int | None, format: str | None, index_base: int | None, as_json: bool
) -> None:
    """Say how a network is scheduled: codelets, comparators per wire loaded, light cones."""
    made = explain(schedule(describe(net, n, format, index_base)))
    if as_json:
        click.echo(json.dumps(made.__dict__, indent=1))
        return
    click.echo(f"{made.comparators:,} comparators in {made.codelets:,} codelets of {made.shapes:,} shapes")
    click.echo(
        f"{made.comparators_per_load:.2f} comparators per wire loaded ({made.loads:,} loads; a layer at a "
        f"time is 0.50), {made.flops_per_byte:.2f} flops per byte"
    )
    click.echo(f"at most {made.widest} wires live in a codelet; {made.straight_line:.0%} straight-line code")
    click.echo(f"P takes {made.light_cone:.0%} of the dense work: the rest lies outside the light cones")


def _counts(network: Network) -> dict[str, object]:
    return {
        "n": network.n,
        "size": network.size,
        "depth": network.depth,
        "network": network.digest,
    }


def _proof_facts(proof: Proof) -> dict[str, object]:
    return {
        "verdict": proof.verdict.value,
        "method": proof.method,
        "detail": proof.detail,
        "counterexample": proof.counterexample,
        "failing_input": proof.failing_input,
    }
