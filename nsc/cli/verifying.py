"""nsc verify."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import NoReturn

import click

from nsc.audit.relaxed import relaxed_claim
from nsc.audit.windows import filter_claim
from nsc.cli.outputs import Output, beside, certificate_option, check_json
from nsc.cli.reporting import reporting, verbose_option
from nsc.cli.shared import (
    EXIT_CODES,
    Limits,
    PropertyOptions,
    counts_of,
    json_option,
    limit_options,
    property_options,
)
from nsc.cli.sources import Source, network_options
from nsc.compiler.network import Network
from nsc.compiler.optimize import records_of
from nsc.compiler.verify import (
    CANONICAL_DIGEST,
    CERTIFICATE_DIGEST,
    METHODS,
    NETWORK_DIGEST,
    Budget,
    Failure,
    Proof,
    Property,
    RankErrors,
    Verdict,
    check_proof,
    diagnose,
    rank_errors,
    read_proof,
)
from nsc.compiler.verify import parse as parse_property
from nsc.compiler.verify import verify as verify_network
from nsc.contract.manifest import MANIFEST, FilterManifest, Manifest, RelaxedManifest, read_files
from nsc.errors import NetworkError, NscError
from nsc.study.proofs import certify

# Maps kinds of packages to functions that return their claims.
_CLAIMS = {RelaxedManifest.kind: relaxed_claim, FilterManifest.kind: filter_claim}


@click.command("verify")
@network_options
@property_options
@limit_options
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    help="Use this method alone; default: the cheapest that settles the question.",
)
@click.option(
    "--check",
    "proof_file",
    type=click.Path(path_type=Path),
    help="Check a proof that --json printed against this network, instead of proving anew.",
)
@click.option("--all", "judges_all", is_flag=True, help="Judge every network of a file, a line each.")
@certificate_option
@json_option
@verbose_option
def verify_command(
    source: Source,
    stated: PropertyOptions,
    limits: Limits,
    method: str | None,
    proof_file: Path | None,
    judges_all: bool,
    certificate_file: Output | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Decide whether a network sorts, or has another property: proved, refuted or unproved.

    NETWORK may also be a folder that nsc compile wrote. Then its network is proved anew, and its kernels are
    run: exact sorts, and values and ranks where they are exact, on all 0-1 inputs or on the inputs of the
    reachable sets; and gradients on random samples.

    For sorters and medians the best known size and depth and the lower bounds are printed too.

    For a refuted network a counterexample is printed, and the comparator that would mend it, if one
    comparator is enough; and for how many orders of different values each wrong output is right, and how far
    it is off. With --off-by this is printed of each network.

    Exit code: 0 proved, 1 refuted, 2 bad input, 3 unproved.

    --all judges each network of a file that has several. The exit code is the worst: of bad input, refuted,
    unproved and proved the first that occurs.
    """
    check_json(as_json, certificate_file, "certificate")
    if os.path.isfile(os.path.join(source.name, MANIFEST)):
        if source.has_options or stated.is_stated or method or proof_file or judges_all:
            raise click.UsageError(
                "a package states its network and property itself: only --certificate, --max-memory, "
                "--time-limit, --verbose and --json go with it"
            )
        _verify_package(Path(source.name), limits, certificate_file, as_json, verbose)
    if proof_file is not None and certificate_file is not None:
        raise click.UsageError(
            "--check proves nothing anew, so there is no certificate: leave one of them out"
        )
    if judges_all:
        if source.n is not None or source.member is not None or proof_file or certificate_file:
            raise click.UsageError(
                "--all judges every network: leave out --n, --name, --check and --certificate"
            )
        _verify_all(source, stated, limits, None if method is None else [method], as_json, verbose)
    failure = errors = None
    with reporting(verbose) as progress:
        network = source.network(progress)
        budget = limits.budget(progress)
        if proof_file is not None:
            wanted = stated.property(network.n) if stated.is_stated else None
            proof = check_proof(network, read_proof(proof_file), wanted)
        else:
            methods = None if method is None else [method]
            proof = _proof(network, stated.property(network.n), budget, methods, certificate_file)
        property_ = parse_property(proof.property, network.n)
        records = records_of(property_)
        if proof.counterexample is not None:
            progress.phase("find the cause")
            failure = diagnose(network, property_, proof.counterexample)
            proof = replace(proof, counterexample=failure.vector, failing_input=failure.values)
        if failure is not None or property_.off_by:
            progress.phase("count the orders that come out right")
            errors = rank_errors(network, property_, budget)
    with beside(certificate_file):
        if as_json:
            causes: dict[str, object] = {} if errors is None else {"rank_errors": errors.facts()}
            if failure is not None:
                mend = None if failure.mend is None else failure.mend.words
                causes |= {"wrong_wires": failure.wires, "wrong_layer": failure.layer, "mend": mend}
            known = {"best_known": None if records is None else asdict(records)}
            click.echo(json.dumps({**counts_of(network), **proof.facts(), **causes, **known}))
        else:
            _print_proof(network, proof, failure, errors)
            if records is not None:
                click.echo(records.words)
    sys.exit(EXIT_CODES[proof.verdict])


def _verify_all(
    source: Source,
    stated: PropertyOptions,
    limits: Limits,
    methods: list[str] | None,
    as_json: bool,
    verbose: bool,
) -> NoReturn:
    """Judge each network of a file, print a line each, and end the process with the worst exit code."""
    codes = []
    with reporting(verbose) as progress:
        for name, network in source.networks(progress).items():
            try:
                if isinstance(network, NetworkError):
                    raise network
                proof = verify_network(network, stated.property(network.n), limits.budget(progress), methods)
            except NscError as error:
                codes.append(2)
                click.echo(json.dumps({"name": name, "error": str(error)}) if as_json else f"{name}: {error}")
                continue
            codes.append(EXIT_CODES[proof.verdict])
            facts = json.dumps({"name": name, **counts_of(network), **proof.facts()})
            click.echo(facts if as_json else f"{name}: {network.counts}: {proof.sentence()}")
    sys.exit(min(codes, key=[2, 1, 3, 0].index))


def _verify_package(
    folder: Path, limits: Limits, certificate_file: Output | None, as_json: bool, verbose: bool
) -> NoReturn:
    """Prove the network of a package, run its built kernel, and end the process with the exit code."""
    with reporting(verbose) as progress:
        progress.phase("read")
        budget = limits.budget(progress)
        files = read_files(folder)
        network, property_, check_kernel = _CLAIMS[Manifest.from_text(files[MANIFEST]).kind](files)
        proof = _proof(network, property_, budget, None, certificate_file)
        progress.phase("run the built kernel")
        checks = list(check_kernel(budget))
    verdict = Verdict.REFUTED if any(check.wrong for check in checks) else proof.verdict
    with beside(certificate_file):
        if as_json:
            facts = [asdict(check) for check in checks]
            click.echo(json.dumps({**counts_of(network), **proof.facts(), "kernel": facts}))
        else:
            _print_proof(network, proof)
            for check in checks:
                click.echo(check.sentence())
    sys.exit(EXIT_CODES[verdict])


def _proof(
    network: Network,
    property_: Property,
    budget: Budget,
    methods: list[str] | None,
    certificate_file: Output | None,
) -> Proof:
    """Verify a network, and write the certificate if it is wanted; print a note if there is none."""
    if certificate_file is None:
        return verify_network(network, property_, budget, methods)
    proof, certificate = certify(network, property_, budget, methods)
    if certificate is None:
        what = "property that leaves ranks off" if proof else f"network that is {proof.verdict.value}"
        click.echo(
            f"nsc: note: a {what} has no certificate: {certificate_file.words} is not written",
            err=True,
        )
        return proof
    budget.progress.phase("write the certificate")
    click.echo(certificate_file.write(certificate.encode()), nl=False)
    return proof


def _print_proof(
    network: Network, proof: Proof, failure: Failure | None = None, errors: RankErrors | None = None
) -> None:
    click.echo(f"{proof.sentence()}: {network.counts}")
    seconds = "" if proof.seconds is None else f" ({proof.seconds:.2f} s)"
    click.echo(f"method: {proof.method}: {proof.detail}{seconds}")
    if failure is not None:
        for what, values in (("0-1", failure.vector), ("integer", failure.values)):
            click.echo(f"{what} input:  {' '.join(map(str, values))}")
            click.echo(f"comes out as: {' '.join(map(str, network.apply(values).tolist()))}")
        shown = ", ".join(map(str, failure.wires[:16])) + (", …" if len(failure.wires) > 16 else "")
        layer = failure.layer
        where = "which no comparator touches" if layer is None else f"last touched in layer {layer}"
        click.echo(f"wrong on wires {shown}, {where}")
        if failure.mend is not None:
            click.echo(f"mended by one comparator: {failure.mend.words}")
    for line in [] if errors is None else errors.lines():
        click.echo(line)
    click.echo(f"{NETWORK_DIGEST}: {network.digest}")
    click.echo(f"{CANONICAL_DIGEST}: {proof.canonical}")
    if proof.certificate is not None:
        click.echo(f"{CERTIFICATE_DIGEST}: {proof.certificate}")
