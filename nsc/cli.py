"""The command line: nsc compile, verify, convert, optimize, list, show, explain.

Exit codes: 0 done, or the network sorts; 1 the network does not sort; 2 bad input or no toolchain;
3 unproved; 130 interrupted.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
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
from nsc.compiler.optimize import optimize
from nsc.compiler.package import write
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.render import REALS
from nsc.compiler.schedule import schedule
from nsc.compiler.selecting import top_k_candidates
from nsc.compiler.verify import FORMS, Budget, Failure, Proof, Verdict, check_proof, diagnose, read_proof
from nsc.compiler.verify import parse as parse_property
from nsc.compiler.verify import verify as verify_network
from nsc.errors import NetworkError, NscError, UnprovedError, VerificationError
from nsc.runtime.kernel import Kernel
from nsc.runtime.nvrtc import build as build_cuda

F = TypeVar("F", bound=Callable[..., Any])

EXIT_CODES = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNPROVED: 3}
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
        return EXIT_CODES[Verdict.REFUTED]
    return EXIT_CODES[Verdict.UNPROVED] if isinstance(error, UnprovedError) else BAD_INPUT


def _index_base_option(function: F) -> F:
    return click.option(
        "--index-base", type=click.IntRange(0, 1), metavar="0|1", help="What a file counts wires from."
    )(function)


def _reading_options(function: F) -> F:
    function = click.option(
        "--format",
        type=click.Choice(readable()),
        help="A file's format; default: found from its content.",
    )(_index_base_option(function))
    return click.option("--n", type=int, metavar="N", help="Number of wires; needed with a family.")(function)


def _network_options(required: bool) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        return click.option(
            "--net",
            required=required,
            metavar="FAMILY|FILE",
            help=f"A family ({', '.join(FAMILIES)}) or a network file.",
        )(_reading_options(function))

    return decorate


def _property_options(function: F) -> F:
    options = (
        click.option(
            "--property",
            "asked",
            default="sort",
            show_default=True,
            metavar="PROPERTY",
            help=f"What the network does: {'; '.join(FORMS)}.",
        ),
        click.option("--wires", metavar="W,W,…", help="Where the property's outputs are, smallest first."),
        click.option("--presorted", default="", metavar="A-B,C-D", help="Runs of wires whose inputs ascend."),
        click.option(
            "--max-states",
            type=click.IntRange(min=1),
            default=Budget().states,
            show_default=True,
            help="0-1 patterns that the method of reachable sets may hold at a time.",
        ),
        click.option(
            "--time-limit", type=click.FloatRange(min=0), metavar="SECONDS", help="When to give up."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


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
    click.echo(f"{folder}: {network.n} wires, {network.size:,} comparators, {network.depth} layers")
    click.echo(f"{proof.sentence()}: {proof.method}: {proof.detail}")
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
@_property_options
@click.option(
    "--check",
    "proof_file",
    type=click.Path(path_type=Path),
    help="Prove nothing anew: say whether this proof, as --json printed it, is of this network.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the proof as JSON.")
def verify_command(
    file: Path | None,
    net: str | None,
    n: int | None,
    format: str | None,
    index_base: int | None,
    asked: str,
    wires: str | None,
    presorted: str,
    max_states: int,
    time_limit: float | None,
    proof_file: Path | None,
    as_json: bool,
) -> None:
    """Say whether a network sorts, or has another property: proved, refuted or unproved.

    What is refuted comes with a counterexample, and with the comparator that would mend it if a single
    one does. Exit code: 0 proved, 1 refuted, 2 bad input, 3 unproved.
    """
    named = net if file is None else str(file)
    if named is None or (file is not None and net is not None):
        raise click.UsageError("give a network file, or --net FAMILY --n N, and not both")
    network = describe(named, n, format, index_base)
    if proof_file is not None:
        proof = check_proof(network, read_proof(proof_file))
    else:
        property_ = parse_property(asked, network.n, _wires(wires), presorted)
        with _status("verifying", as_json):
            proof = verify_network(network, property_, _budget(max_states, time_limit))
    failure = None
    if proof.counterexample is not None:
        with _status("looking for the cause", as_json):
            failure = diagnose(network, parse_property(proof.property, network.n), proof.counterexample)
        proof = replace(proof, counterexample=failure.vector, failing_input=failure.values)
    if as_json:
        causes = {} if failure is None else _causes(failure)
        click.echo(json.dumps({**_counts(network), **proof.facts(), **causes}))
    else:
        _print_proof(network, proof, failure)
    sys.exit(EXIT_CODES[proof.verdict])


def _wires(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(wire) for wire in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--wires takes numbers such as 3,1,2, found {text!r}") from None


def _budget(max_states: int, time_limit: float | None) -> Budget:
    return Budget(max_states, None if time_limit is None else time.monotonic() + time_limit)


def _causes(failure: Failure) -> dict[str, object]:
    return {"wrong_wires": failure.wires, "wrong_layer": failure.layer, "mend": failure.mend}


def _print_proof(network: Network, proof: Proof, failure: Failure | None) -> None:
    click.echo(f"{proof.sentence()}: {network.n} wires, {network.size:,} comparators, {network.depth} layers")
    seconds = "" if proof.seconds is None else f" ({proof.seconds:.2f} s)"
    click.echo(f"method: {proof.method}: {proof.detail}{seconds}")
    if failure is None:
        return
    for what, values in (("0-1", failure.vector), ("integer", failure.values)):
        click.echo(f"{what} input:  {' '.join(map(str, values))}")
        click.echo(f"comes out as: {' '.join(map(str, network.apply(values).tolist()))}")
    shown = ", ".join(map(str, failure.wires[:16])) + (", …" if len(failure.wires) > 16 else "")
    where = (
        "which no comparator touches" if failure.layer is None else f"last touched in layer {failure.layer}"
    )
    click.echo(f"wrong on wires {shown}, {where}")
    if failure.mend is not None:
        click.echo(f"mended by one comparator: {failure.mend}")


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


@main.command("optimize")
@click.argument("network", metavar="FILE|FAMILY", type=click.Path(path_type=Path))
@_reading_options
@_property_options
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="OUT",
    help="File for the smaller network, in the format of its suffix.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def optimize_command(
    network: Path,
    n: int | None,
    format: str | None,
    index_base: int | None,
    asked: str,
    wires: str | None,
    presorted: str,
    max_states: int,
    time_limit: float | None,
    out: Path,
    as_json: bool,
) -> None:
    """Make a network smaller for a property that it has: no dead and no redundant comparators.

    What comes out has the property and is never larger or deeper; sorted values are the same, values of
    a relaxed network are not. Exit code: 0 written, 1 the network lacks the property, 2 bad input, 3
    unproved.
    """
    given = describe(str(network), n, format, index_base)
    property_ = parse_property(asked, given.n, _wires(wires), presorted)
    to = format_of_path(out)
    with _status("verifying", as_json):
        proof = verify_network(given, property_, _budget(max_states, time_limit))
    if proof.verdict is not Verdict.PROVED:
        click.echo(f"nsc: {proof.sentence()}, so nothing is written; see nsc verify", err=True)
        sys.exit(EXIT_CODES[proof.verdict])
    with _status("optimising", as_json):
        made = optimize(given, property_, _budget(max_states, time_limit))
    save_network(made.network, out, to)
    if as_json:
        counts = {"before": asdict(made.before), "after": asdict(made.after), "skipped": made.skipped}
        click.echo(json.dumps({"property": property_.name, **counts, **_counts(made.network)}))
        return
    table = Table(title=f"{out}: {property_.name}, {given.n} wires", title_justify="left")
    for column in ("", "before", "after"):
        table.add_column(column, justify="right" if column else "left")
    for row, key in (("comparators", "size"), ("layers", "depth"), ("half operations", "half_operations")):
        table.add_row(row, *(f"{getattr(part, key):,}" for part in (made.before, made.after)))
    Console().print(table)
    if made.skipped is not None:
        click.echo(f"redundant comparators were not looked for: {made.skipped}")


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
@_network_options(required=False)
@click.option(
    "--top-k",
    type=int,
    metavar="K",
    help="Instead: list constructions for the K largest of N values, fewest half operations first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain_command(
    net: str | None,
    n: int | None,
    format: str | None,
    index_base: int | None,
    top_k: int | None,
    as_json: bool,
) -> None:
    """Say how a network is scheduled: codelets, comparators per wire loaded, light cones.

    With --top-k K --n N: what the constructions for the K largest of N values cost. A half operation is a
    minimum or a maximum that one of the K outputs depends on; live wires are the values held at a time.
    """
    if top_k is not None:
        if net is not None or n is None:
            raise click.UsageError("--top-k K goes with --n N, and without --net")
        _explain_top_k(n, top_k, as_json)
        return
    if net is None:
        raise click.UsageError("say what to explain: --net FAMILY --n N, --net FILE, or --top-k K --n N")
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


def _explain_top_k(n: int, k: int, as_json: bool) -> None:
    rows = [
        {
            "name": candidate.name,
            "size": candidate.network.size,
            "half_operations": candidate.half_operations,
            "depth": candidate.network.depth,
            "live_wires": candidate.live_wires,
        }
        for candidate in top_k_candidates(n, k)
    ]
    if as_json:
        click.echo(json.dumps({"n": n, "k": k, "candidates": rows}, indent=1))
        return
    table = Table(title=f"The {k} largest of {n}", title_justify="left")
    table.add_column("construction")
    for column in ("comparators", "half operations", "depth", "live wires"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, *figures in (row.values() for row in rows):
        table.add_row(str(name), *(f"{figure:,}" for figure in figures))
    Console().print(table)


def _counts(network: Network) -> dict[str, object]:
    return {
        "n": network.n,
        "size": network.size,
        "depth": network.depth,
        "network": network.digest,
    }
